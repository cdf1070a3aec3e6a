"""The verifier finds each kind of damage and says where it is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from selc.diag.span import NOWHERE, Span
from selc.ir.domain import Domain
from selc.ir.graph import Graph, Node
from selc.ir.op import Op
from selc.ir.program import Guard, Mark, Point, Program, Site
from selc.ir.residual import Candidates, Pin, Residual, ResidualGuard
from selc.ir.verify import InvalidGraph, graph_problems, verify, verify_program, verify_residual


def small() -> Graph:
    g = Graph()
    m = g.input("m", "runtime", Domain(0, 9))
    g.add(Op.ADD, m, g.const(1), origin=Span("tile.py", 14, 8, 14, 20))
    return g


def force(g: Graph, op: Op, *args: Node, attr: object = None, id: int | None = None) -> None:
    g.nodes.append(Node(len(g.nodes) if id is None else id, op, args, attr, 0))


def test_a_good_graph() -> None:
    g = small()
    verify(g, g.nodes)


def swap(g: Graph) -> None:
    g.nodes[1], g.nodes[2] = g.nodes[2], g.nodes[1]


def loop(g: Graph) -> None:
    force(g, Op.NEG, g.nodes[0])
    g.nodes[3].args = (g.nodes[3],)


DAMAGE: list[tuple[Callable[[Graph], object], str]] = [
    (lambda g: force(g, Op.NEG, g.nodes[0], id=7), "v7: its place is 3: v7 = neg v0"),
    (swap, "tile.py:14:8-20: v2: its place is 1: v2 = add v0, v1"),
    (loop, "v3: v3 does not stand before it: v3 = neg v3"),
    (lambda g: force(g, Op.NEG), "v3: 0 arguments instead of 1: v3 = neg"),
    (lambda g: force(g, Op.ADD, g.nodes[0], g.nodes[1]), "v3: equal to v2: v3 = add v0, v1"),
    (lambda g: force(g, Op.NEG, small().nodes[0]), "v0 is not in the graph"),
    (lambda g: force(g, Op.INPUT, attr="x"), "no such input is declared"),
    (lambda g: force(g, Op.NEG, g.nodes[0], attr=1), "v3: it takes no attribute"),
    (lambda g: force(g, Op.OK, g.nodes[0], attr="neg"), "not (operation, attribute)"),
    (lambda g: force(g, Op.OK, g.nodes[0], attr=("select", None)), "no partial operation select"),
    (lambda g: force(g, Op.OK, g.nodes[0], attr=("add", None)), "add takes 2 arguments"),
    (lambda g: force(g, Op.LOOKUP, g.nodes[0], attr=(1,)), "not a tuple of pairs"),
    (lambda g: force(g, Op.HASKEY, g.nodes[0], attr=1), "not a tuple of keys"),
    (lambda g: force(g, Op.METHOD, g.nodes[0], attr="__class__"), "no such method"),
    (
        lambda g: force(g, Op.SELECT, g.nodes[2], g.nodes[0], g.nodes[1]),
        "v3: the condition is of kind int: v3 = select v2, v0, v1",
    ),
]


@pytest.mark.parametrize(("damage", "message"), DAMAGE, ids=[m for _, m in DAMAGE])
def test_damage(damage: Callable[[Graph], object], message: str) -> None:
    g = small()
    damage(g)
    with pytest.raises(InvalidGraph) as error:
        verify(g)
    assert message in str(error.value)


def test_all_problems_are_told() -> None:
    g = small()
    force(g, Op.NEG)
    force(g, Op.NEG)
    assert len(graph_problems(g)) == 3  # the second is a duplicate too


def test_a_foreign_root() -> None:
    with pytest.raises(InvalidGraph, match="a root that is not in the graph"):
        verify(small(), [small().nodes[0]])


def program() -> Program:
    g = small()
    true, total = g.const(True), g.nodes[2]
    guard = Guard("require", "assert", "c", "", NOWHERE, true, g.add(Op.GT, total, g.const(0)))
    site = Site("f.x", "variable", NOWHERE, [Mark(total, true, 1)])
    point = Point("x", "bits", total, ("f.x",))
    return Program(g, "t.py:f", "f", "fam", "launch", "t.py", [point], [guard], {"f.x": site})


def test_a_good_program() -> None:
    verify_program(program())


PROGRAM_DAMAGE: list[tuple[Callable[[Program], object], str]] = [
    (lambda p: p.sites["f.x"].marks.clear(), "site f.x has no mark"),
    (lambda p: p.sites.update({"f.y": p.sites["f.x"]}), "site f.y calls itself f.x"),
    (lambda p: p.sites.clear(), "point x names no site: f.x"),
    (lambda p: p.guards.clear(), "site f.x stands after guard 1"),
    (
        lambda p: p.sites["f.x"].marks.append(Mark(p.graph.nodes[0], p.graph.nodes[0], 0)),
        "the path of site f.x is of kind int",
    ),
    (
        lambda p: p.points.append(Point("y", "bits", small().nodes[0])),
        "a root that is not in the graph",
    ),
]


@pytest.mark.parametrize(("damage", "message"), PROGRAM_DAMAGE, ids=[m for _, m in PROGRAM_DAMAGE])
def test_damage_to_a_program(damage: Callable[[Program], object], message: str) -> None:
    p = program()
    damage(p)
    with pytest.raises(InvalidGraph) as error:
        verify_program(p)
    assert message in str(error.value)


def test_residual() -> None:
    p = program()
    guard = ResidualGuard(p.guards[0], p.guards[0].cond)
    pin = Pin("f.x", p.sites["f.x"], Candidates((1, 2)), parameter="m")
    residual = Residual(
        p.graph, "launch", [(p.points[0], p.points[0].node)], [guard], [], [pin], []
    )
    with pytest.raises(InvalidGraph, match=r"pin f\.x: its parameter is of kind runtime"):
        verify_residual(residual)
    residual.pins[:] = [Pin("f.x", p.sites["f.x"], Candidates((1,)), free=True, constant=1)]
    verify_residual(residual)
    residual.guards.append(ResidualGuard(p.guards[0], p.graph.nodes[0]))
    with pytest.raises(InvalidGraph, match="a guard is of kind int"):
        verify_residual(residual)
