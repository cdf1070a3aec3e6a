"""The solver, ranges and enumeration never contradict each other on random graphs."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import HealthCheck, given, settings

from selc.ir.absval import check_sound
from selc.ir.domain import Domain
from selc.ir.evaluate import compile_nodes
from selc.ir.graph import Graph, Node
from selc.ir.op import Op, TooWide
from selc.ir.value import UNDEF, kind_of, value_key
from selc.vra import smt
from selc.vra.encoding import Unsupported
from tests.prove.random_graphs import INPUTS, as_view, graphs


def values(g: Graph, node: Node) -> dict:
    names = list(INPUTS)
    f = compile_nodes(g, [node], names)
    return {value_key(row): f(*row)[0] for row in itertools.product(*INPUTS.values())}


@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
@given(graphs())
def test_values_agree(made: tuple[Graph, list[Node]]) -> None:
    g, nodes = made
    root = nodes[-1]
    view = as_view(g)
    try:
        shown = values(g, root)
    except (TooWide, MemoryError):
        return
    fact = view.facts[root.id]
    assert all(
        check_sound(root, v, fact) or (v is UNDEF and not fact.defined) for v in shown.values()
    )
    keys = {value_key(v): v for v in shown.values()}
    session = smt.Session(view)
    e = session.encoder
    try:
        (term,) = e.encode([root], view.facts)
    except Unsupported:
        return
    undefined = e.truth(False) if term.defined is None else e.z3.Not(term.defined)
    point, decided = session.solve([undefined])
    if decided:
        assert (point is not None) == (value_key(UNDEF) in keys)
    known = e.truth(True) if term.defined is None else term.defined
    for v in [*keys.values(), 0, 1, 77, True, "a"]:
        if v is UNDEF or (term.kind == "int" and kind_of(v) != "int"):
            continue
        point, decided = session.solve([known, e.equals(term, v)])
        if not decided:
            continue
        assert (point is not None) == (value_key(v) in keys), v
        if point is not None:
            row = tuple(point.get(n, d[0]) for n, d in INPUTS.items())
            assert value_key(shown[value_key(row)]) == value_key(v)


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(graphs())
def test_independence_agrees(made: tuple[Graph, list[Node]]) -> None:
    g, nodes = made
    root = nodes[-1]
    view = as_view(g)
    try:
        shown = values(g, root)
    except (TooWide, MemoryError):
        return
    for k, name in enumerate(INPUTS):
        if smt.independent(view, root, [], [name]):
            lines: dict = {}
            for row, v in shown.items():
                if v is not UNDEF:
                    lines.setdefault((*row[1 : k + 1], *row[k + 2 :]), set()).add(value_key(v))
            assert all(len(s) == 1 for s in lines.values())


@pytest.mark.parametrize("divisor", [1, 3, 7, -5, 2**20 + 7])
@pytest.mark.parametrize("op", [Op.FLOOR, Op.CEIL, Op.INT, Op.TRUNC])
def test_rounded_quotients(op: Op, divisor: int) -> None:
    g = Graph()
    x = g.input("x", "runtime", Domain(-(2**52) + 3, 2**52 - 3 - abs(divisor)))
    root = g.add(op, g.add(Op.TRUEDIV, x, g.const(divisor)))
    view = as_view(g)
    session = smt.Session(view)
    (term,) = session.encoder.encode([root], view.facts)
    f = compile_nodes(g, [root], ["x"])
    leaf = session.encoder.leaves["x"].expr
    for base in (
        0,
        divisor * 9,
        2**51,
        -(2**51),
        2**52 - 4 - abs(divisor),
        2**40 // divisor * divisor,
    ):
        for v in (base - 1, base, base + 1):
            (value,) = f(v)
            point, decided = session.solve([leaf == v, term.expr != value])
            assert decided
            assert point is None, (v, value)


def test_wide_quotients_are_refused() -> None:
    g = Graph()
    x = g.input("x", "runtime", Domain(0, 2**53))
    root = g.add(Op.FLOOR, g.add(Op.TRUEDIV, x, g.const(3)))
    with pytest.raises(Unsupported):
        smt.Session(as_view(g)).encoder.encode([root], as_view(g).facts)
