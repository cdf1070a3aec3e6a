"""The reference interpreter on programs made by hand: guards, paths, sites, overwrites."""

from __future__ import annotations

import pytest

from selc.diag.span import NOWHERE
from selc.ir.domain import Domain
from selc.ir.graph import Graph, Node
from selc.ir.interp import run, run_program
from selc.ir.op import Op, TooWide
from selc.ir.program import Guard, Mark, Point, Program, Site
from selc.ir.value import UNDEF, Value


class Maker:
    """Builds a program statement by statement, as a front end would."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.true = self.graph.const(True)
        self.program = Program(self.graph, "t.py:f", "f", "fam", "launch", "t.py", [], [], {})
        self.marks = 0

    def define(self, name: str, value: Node, path: Node | None = None, kind: str = "definition"):
        node = self.graph.add(Op.MARK, value, attr=self.marks)
        self.marks += 1
        site = self.program.sites.setdefault(name, Site(name, kind, NOWHERE))
        site.marks.append(Mark(node, path or self.true, len(self.program.guards)))
        return node

    def guard(
        self, text: str, cond: Node, path: Node | None = None, origin: str = "assert"
    ) -> None:
        kind = "assume" if origin == "call" else "require"
        guard = Guard(kind, origin, text, "", NOWHERE, path or self.true, cond)
        self.program.guards.append(guard)

    def point(self, name: str, node: Node, *sites: str) -> None:
        self.program.points.append(Point(name, "bits", node, sites))


def division() -> Program:
    """`a = m // 64; b = n // a; assert b < 9; return b` with its implicit guard."""
    k = Maker()
    g = k.graph
    m = k.define("f.m", g.input("m", "runtime", Domain(0, 1000)), kind="parameter")
    n = g.input("n", "request", Domain(0, 1000))
    a = k.define("f.a", g.add(Op.FLOORDIV, m, g.const(64)))
    k.guard("n // a", g.add(Op.OK, n, a, attr=("floordiv", None)), origin="partial")
    b = k.define("f.b", g.add(Op.FLOORDIV, n, a))
    k.guard("b < 9", g.add(Op.LT, b, g.const(9)))
    k.point("result", b, "f.b")
    return k.program


def test_returns() -> None:
    result = run_program(division(), {"m": 128, "n": 7})
    assert result.returned
    assert result.points == {"result": 3}
    assert result.sites == {"f.m": 128, "f.a": 2, "f.b": 3}


def test_the_first_failing_guard_stops_the_program() -> None:
    result = run_program(division(), {"m": 3, "n": 7})
    assert result.guard is not None
    assert (result.failed, result.guard.text) == (0, "n // a")
    assert result.points == {}
    assert result.sites == {"f.m": 3, "f.a": 0}  # b is not reached

    late = run_program(division(), {"m": 64, "n": 9})
    assert late.failed == 1
    assert late.sites == {"f.m": 64, "f.a": 1, "f.b": 9}


def test_every_use_after_an_overwrite_sees_it() -> None:
    assert run_program(division(), {"m": 128, "n": 7}, {"f.a": 1}).points == {"result": 7}
    assert run_program(division(), {"m": 3, "n": 7}, {"f.m": 128}).points == {"result": 3}
    hidden = run_program(division(), {"m": 3, "n": 7}, {"f.b": 8})
    assert hidden.failed == 0  # the division still happens, and still fails
    assert run_program(division(), {"m": 64, "n": 9}, {"f.b": 8}).points == {"result": 8}
    with pytest.raises(KeyError):
        run_program(division(), {"m": 1, "n": 1}, {"f.c": 1})


def branches() -> Program:
    """`if big: x = m; assert m < 99` else `x = 1`; and x again at the join."""
    k = Maker()
    g = k.graph
    m = g.input("m", "runtime", Domain(0, 1000))
    big = k.define("f.big", g.add(Op.GT, m, g.const(9)))
    small = g.negate(big)
    first = k.define("f.x#1", m, big)
    k.guard("m < 99", g.add(Op.LT, m, g.const(99)), big)
    second = k.define("f.x#2", g.const(1), small)
    x = k.define("f.x", g.select(big, first, second))
    k.point("x", x, "f.x")
    return k.program


def test_only_what_is_reached_has_a_value() -> None:
    assert run_program(branches(), {"m": 5}).sites == {"f.big": False, "f.x#2": 1, "f.x": 1}
    assert run_program(branches(), {"m": 50}).sites == {"f.big": True, "f.x#1": 50, "f.x": 50}
    assert run_program(branches(), {"m": 500}).sites == {"f.big": True, "f.x#1": 500}


def test_a_guard_counts_only_on_its_path() -> None:
    assert run_program(branches(), {"m": 500}).failed == 0
    assert run_program(branches(), {"m": 500}, {"f.big": False}).points == {"x": 1}
    assert run_program(branches(), {"m": 5}, {"f.big": True}).points == {"x": 5}
    assert run_program(branches(), {"m": 5}, {"f.x#1": 7}).points == {"x": 1}


def test_the_last_mark_tells_the_value() -> None:
    k = Maker()
    g = k.graph
    m = g.input("m", "runtime", Domain(0, 9))
    k.define("f.x", g.const(1))
    last = k.define("f.x", m, g.add(Op.GT, m, g.const(4)))
    k.point("x", last)
    assert run_program(k.program, {"m": 2}).sites == {"f.x": 1}
    assert run_program(k.program, {"m": 6}).sites == {"f.x": 6}
    assert run_program(k.program, {"m": 6}, {"f.x": 0}).sites == {"f.x": 0}


def test_a_knob_takes_its_setting() -> None:
    k = Maker()
    k.point("stride", k.graph.input("stride", "knob", Domain(values=(0, 512))))
    k.program.settings["stride"] = 512
    assert run_program(k.program, {}).points == {"stride": 512}
    assert run_program(k.program, {"stride": 0}).points == {"stride": 0}


def test_what_is_too_wide_matters_only_where_it_is_used() -> None:
    g = Graph()
    m = g.input("m", "runtime", Domain(0, 1 << 20))
    wide = g.add(Op.LSHIFT, g.const(1), m)
    small = g.add(Op.LT, m, g.const(64))
    chosen = g.select(small, wide, g.const(0))
    assert run(g, [chosen], {"m": 3}) == [8]
    assert run(g, [chosen], {"m": 1 << 19}) == [0]
    with pytest.raises(TooWide):
        run(g, [g.add(Op.ADD, wide, m)], {"m": 1 << 19})


@pytest.mark.parametrize(
    ("op", "args", "value"),
    [
        (Op.FLOORDIV, (-7, 2), -4),
        (Op.MOD, (-7, 2), 1),
        (Op.TRUEDIV, (2**53 + 1, 1), float(2**53)),
        (Op.FLOORDIV, (1, 0), UNDEF),
        (Op.EQ, (1, True), True),
        (Op.EQ, (0.0, -0.0), True),
        (Op.IS, (1, True), False),
        (Op.MIN2, (1, 1.0), 1),
        (Op.MAX2, (1, 1.0), 1),
        (Op.LT, (2**53 + 1, float(2**53)), False),
        (Op.ROUND, (2.5,), 2),
        (Op.FLOAT32, (0.1,), 0.10000000149011612),
        (Op.INDEX, ((1, 2), -1), 2),
        (Op.INDEX, ((1, 2), 2), UNDEF),
        (Op.LSHIFT, (1, -1), UNDEF),
        (Op.SUM, ((0.1, 0.2, 0.3),), sum([0.1, 0.2, 0.3])),
    ],
)
def test_values(op: Op, args: tuple[Value, ...], value: Value) -> None:
    g = Graph()
    got = run(g, [g.add(op, *(g.const(a) for a in args))], {})[0]
    assert (type(got), got) == (type(value), value)
