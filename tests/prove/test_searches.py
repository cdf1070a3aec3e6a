"""A search and the table that replaces it are equal, also where the table is read carelessly."""

from __future__ import annotations

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from selc.ir.domain import Domain
from selc.ir.evaluate import compile_nodes
from selc.ir.graph import Graph, Node
from selc.ir.op import Op
from selc.passes import searches as module
from selc.passes.searches import searches
from selc.passes.simplify import simplify
from tests.unit.passes.strategies import selections
from tests.unit.passes.test_simplify import check


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """What counts as large and small, so that random graphs have searches."""
    monkeypatch.setattr(module, "LARGE", 6)
    monkeypatch.setattr(module, "SMALL", 3)
    monkeypatch.setattr(module, "POINTS", 512)


@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(selections(size=40))
def test_random_graphs(tiny: None, drawn: tuple[Graph, list[Node]]) -> None:
    graph, roots = drawn
    made, images = searches(graph, roots, [])
    check(graph, roots, made, images)


@st.composite
def unrolled(draw: st.DrawFn) -> tuple[Graph, list[Node]]:
    """A random loop over two values, under random conditions, with random uses beside it."""
    g = Graph()
    m = g.input("m", "runtime", Domain(draw(st.integers(-3, 2)), 40))
    k = g.input("k", "runtime", Domain(1, 6))
    flag = g.input("flag", "request", Domain(values=(False, True)))
    scaled = g.add(Op.MUL, m, g.const(draw(st.integers(-3, 5))))
    value: Node = draw(st.sampled_from([g.const(-1), k, scaled]))
    for s in range(draw(st.integers(6, 20))):
        product = g.add(draw(st.sampled_from([Op.MUL, Op.ADD])), scaled, g.const(s + 1))
        share = g.add(Op.FLOAT32, g.add(Op.TRUEDIV, product, g.const(draw(st.integers(1, 9)))))
        found = g.add(
            draw(st.sampled_from([Op.LT, Op.GE])), share, g.const(draw(st.integers(0, 40)))
        )
        found = g.both(g.add(Op.LE, g.const(s % 6), k), found)
        if draw(st.booleans()):
            found = g.both(flag, found)
        value = g.select(found, g.const(draw(st.integers(0, 9))), value)
    uses = [value]
    for _ in range(draw(st.integers(0, 3))):
        x = draw(st.sampled_from([m, scaled, g.add(Op.FLOAT32, scaled), k]))
        cond = g.add(
            draw(st.sampled_from([Op.LT, Op.LE, Op.GT, Op.GE])),
            x,
            g.const(draw(st.sampled_from([-4, 0, 3, 7.5, 20]))),
        )
        cond = draw(st.sampled_from([cond, g.negate(cond), g.both(flag, cond)]))
        arms = (value, g.const(-7)) if draw(st.booleans()) else (g.const(-8), value)
        uses.append(value := g.select(cond, *arms))
    return g, draw(st.lists(st.sampled_from(uses), min_size=1, max_size=3))


MADE: list[bool] = []


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(unrolled())
def test_random_loops(tiny: None, drawn: tuple[Graph, list[Node]]) -> None:
    graph, roots = drawn
    made, images = searches(graph, roots, [])
    check(graph, roots, made, images)
    MADE.append(any(n.op is Op.LOOKUP for n in made.nodes))


def test_random_loops_became_tables() -> None:
    assert not MADE or sum(MADE) > len(MADE) // 2


def split_count(g: Graph, total: Node, n_blocks: Node, sms: int, most: int) -> Node:
    """FlashAttention-3's split count, unrolled."""
    threshold = g.const(float(Op32(Op32(0.8) * sms)))
    busy = g.add(Op.GE, g.add(Op.FLOAT32, total), threshold)
    limit = g.add(Op.MIN2, g.const(most), n_blocks)
    efficiency = []
    for s in range(1, most + 1):
        blocks = g.add(Op.FLOAT32, g.add(Op.MUL, total, g.const(s)))
        waves = g.add(Op.FLOAT32, g.add(Op.TRUEDIV, blocks, g.const(sms)))
        whole = g.add(Op.TRUEDIV, waves, g.add(Op.CEIL, waves))
        efficiency.append(g.add(Op.FLOAT32, whole))
    best: Node = g.const(0.0)
    for s, e in enumerate(efficiency):
        there = g.add(Op.LT, g.const(s), limit)
        best = g.select(there, g.add(Op.MAX2, best, e), best)
    enough = g.add(Op.MUL, g.const(0.85), best)
    out: Node = g.const(1)
    for s, e in reversed(list(enumerate(efficiency))):
        found = g.both(g.add(Op.LT, g.const(s), limit), g.add(Op.GE, e, enough))
        out = g.select(found, g.const(s + 1), out)
    few = g.add(Op.LE, n_blocks, g.const(4))
    return g.select(busy, g.const(1), g.select(few, g.const(1), out))


def Op32(x: float) -> float:  # noqa: N802  # the operation
    import struct

    return float(struct.unpack("<f", struct.pack("<f", x))[0])


@pytest.mark.parametrize(("kv_heads", "sms"), [(2, 132), (1, 132), (8, 78), (5, 148)])
def test_the_split_count_is_a_table(kv_heads: int, sms: int) -> None:
    g = Graph()
    rows = g.input("rows", "unpinnable", Domain(1, 262144))
    keys = g.input("keys", "unpinnable", Domain(1, 131072))
    m_blocks = g.add(Op.FLOORDIV, g.add(Op.ADD, rows, g.const(127)), g.const(128))
    n_blocks = g.add(Op.FLOORDIV, g.add(Op.ADD, keys, g.const(127)), g.const(128))
    total = g.add(Op.MUL, g.const(kv_heads), m_blocks)
    root = split_count(g, total, n_blocks, sms, 48)
    made, images = simplify(g, [root])
    tables = [n for n in made.cone([images[root]]) if n.op is Op.LOOKUP]
    assert len(made.nodes) < 60
    assert len(tables) == 1
    assert len(tables[0].attr) == 48 * len(  # type: ignore[arg-type]  # rows
        [m for m in range(1, 300) if Op32(kv_heads * m) < Op32(Op32(0.8) * sms)]
    )
    old = compile_nodes(g, [root], ["rows", "keys"])
    new = compile_nodes(made, [images[root]], ["rows", "keys"])
    for m in [*range(1, 120), 1000, 2048]:
        for n in [*range(1, 60), 500, 1024]:
            for point in ((m * 128, n * 128), (m * 128 - 127, n * 128 - 127)):
                assert old(*point) == new(*point), point


def test_a_table_that_would_be_too_large_is_not_made() -> None:
    g = Graph()
    rows = g.input("rows", "unpinnable", Domain(1, 1 << 20))
    keys = g.input("keys", "unpinnable", Domain(1, 1 << 20))
    root = split_count(g, rows, keys, 1 << 16, 40)
    made, images = searches(g, [root])
    assert not [n for n in made.nodes if n.op is Op.LOOKUP]
    assert math.isclose(len(made.cone([images[root]])), len(g.cone([root])))


def test_what_the_arm_does_not_see_stays_as_it_is() -> None:
    """The same search under a condition and without one: only the first is a table."""
    g = Graph()
    m = g.input("m", "runtime", Domain(1, 1 << 18))
    value: Node = m
    for k in range(module.LARGE + 10):
        value = g.select(g.add(Op.LT, m, g.const(3 * k)), g.const(k), value)
    inner = g.select(g.add(Op.LE, m, g.const(100)), value, g.const(-1))
    made, images = searches(g, [inner, value])
    check_at = [1, 2, 50, 99, 100, 101, 400, 700, 1 << 18]
    old = compile_nodes(g, [inner, value], ["m"])
    new = compile_nodes(made, [images[inner], images[value]], ["m"])
    assert [old(p) for p in check_at] == [new(p) for p in check_at]
    assert [n for n in made.cone([images[inner]]) if n.op is Op.LOOKUP]
