"""The text of whole programs and residuals."""

from __future__ import annotations

from selc.check import certificate
from selc.diag.span import NOWHERE, Span
from selc.ir.domain import Domain
from selc.ir.dump import dump_program, dump_residual
from selc.ir.graph import Graph
from selc.ir.op import Op
from selc.ir.program import Guard, Mark, Place, Point, Program, Site
from selc.ir.read import read
from selc.ir.read_whole import read_program
from selc.ir.residual import Candidates, Pin, Residual, ResidualGuard

PROGRAM = """\
program tile.py:tile
function tile
family gemm
scope launch
assumption the choice is applied to a whole launch
setting stride = 512
offer tile.block = (256,)

graph
input m: runtime 1..4096
v0 = const True
v1 = input m
v3 = const 64
v4 = floordiv v1, v3  ; tile.py:2:13-20
v5 = mark v4 [0]
v6 = ok v1, v5 [("mod", None)]

points:
  block: bits = v5  at tile.block

guards:
  0: require partial "m % block" because "no remainder" = v0 implies v6  ; tile.py:3:12-21

sites:
  tile.block: definition  ; tile.py:2:5-10
    v5 if v0 after 0
"""

RESIDUAL = """\
residual
scope launch

graph
input m: runtime 1..4096
input tile.block: pin {1, 2}
v0 = input m
v1 = input tile.block
v2 = lt v0, v1
v3 = gt v0, v1

points:
  block: bits = v1  at tile.block

pins:
  tile.block: pin = tile.block  ; tile.py:2:5-10
    candidates {1, 2}
    offered (256,)
  tile.free: free  ; tile.py:2:5-10
    candidates 0..64 step 8 at most
    constant 7
    proof "ranges"

knobs:
  stride

assumes:
  assume call "m" = v3

guards:
  require partial "c" = pinned v2, adaptive v3, unseen
"""


def test_program() -> None:
    g = Graph()
    true = g.const(True)
    m = g.input("m", "runtime", Domain(1, 4096))
    g.const("not read")
    tile = g.add(Op.FLOORDIV, m, g.const(64), origin=Span("tile.py", 2, 13, 2, 20))
    block = g.add(Op.MARK, tile, attr=0)
    ok = g.add(Op.OK, m, block, attr=("mod", None))
    site = Site("tile.block", "definition", Span("tile.py", 2, 5, 2, 10), [Mark(block, true, 0)])
    place = Span("tile.py", 3, 12, 3, 21)
    program = Program(
        graph=g,
        target="tile.py:tile",
        function="tile",
        family="gemm",
        scope="launch",
        path="tile.py",
        points=[Point("block", "bits", block, ("tile.block",))],
        guards=[Guard("require", "partial", "m % block", "no remainder", place, true, ok)],
        sites={"tile.block": site},
        assumptions=["the choice is applied to a whole launch"],
        settings={"stride": 512},
        offers={"tile.block": (256,)},
    )
    text = dump_program(program)
    assert text == PROGRAM
    assert len(read(text).nodes) == 6
    assert '"not read"' in dump_program(program, everything=True)


def test_places_are_read_back() -> None:
    g = Graph()
    m = g.input("m", "runtime", Domain(1, 4096))
    first = g.add(Op.MARK, m, attr=("place", "tile.m", 0))
    later = g.add(Op.MARK, first, attr=("place", "tile.m", 1))
    places = (Place((later,), (first,)), Place((first, later)))
    points = [Point("tile.m", "bits", later, (), places), Point("m", "aux", m)]
    program = Program(g, "t.py", "f", "f", "launch", "t.py", points, [], {})
    text = dump_program(program)
    assert "tile.m: bits = v2  over v2 and v1, v1 v2\n" in text
    back = read_program(text)
    assert dump_program(back) == text
    assert [p.places for p in back.points] == [
        (
            Place((back.graph.nodes[2],), (back.graph.nodes[1],)),
            Place((back.graph.nodes[1], back.graph.nodes[2])),
        ),
        (),
    ]
    assert certificate.read(text).points["tile.m"].places == (([2], [1]), ([1, 2], []))


def test_residual() -> None:
    g = Graph()
    m = g.input("m", "runtime", Domain(1, 4096))
    block = g.input("tile.block", "pin", Domain(values=(1, 2)))
    less, more = g.add(Op.LT, m, block), g.add(Op.GT, m, block)
    site = Site("tile.block", "definition", Span("tile.py", 2, 5, 2, 10), [])
    guard = Guard("require", "partial", "c", "", NOWHERE, less, less)
    promise = Guard("assume", "call", "m", "", NOWHERE, less, more)
    free = Candidates(None, (0, 64, 8), exact=False)
    residual = Residual(
        graph=g,
        scope="launch",
        points=[(Point("block", "bits", block, ("tile.block",)), block)],
        guards=[ResidualGuard(guard, less, adaptive=more, unseen=True)],
        assumes=[(promise, more)],
        pins=[
            Pin("tile.block", site, Candidates((1, 2)), (256,), "tile.block"),
            Pin("tile.free", site, free, free=True, constant=7, proof="ranges"),
        ],
        knobs=["stride"],
    )
    assert dump_residual(residual) == RESIDUAL
