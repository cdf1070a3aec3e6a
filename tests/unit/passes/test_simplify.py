"""Every pass keeps the value of every root on every point of the domains."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from selc.ir.domain import Domain
from selc.ir.graph import Graph, Node
from selc.ir.op import Op
from selc.ir.value import UNDEF, same
from selc.passes.context import conditions
from selc.passes.simplify import PASSES, Pass, simplify
from tests.unit.ir.strategies import graphs
from tests.unit.passes.strategies import points, selections, values

STEPS = (*PASSES, Pass("context without ranges", conditions))


def check(
    graph: Graph, roots: list[Node], made: Graph, images: dict[Node, Node], premises=()
) -> None:
    for p in points(graph)[:400]:
        if premises and values(graph, list(premises), p) != [True] * len(premises):
            continue
        before = values(graph, roots, p)
        after = values(made, [images[r] for r in roots], p)
        for r, old, new in zip(roots, before, after, strict=True):
            assert old is UNDEF or same(old, new), (r, images[r], p, old, new)


@pytest.mark.parametrize("step", STEPS, ids=lambda s: s.name)
@settings(max_examples=80, deadline=None)
@given(selections())
def test_each_pass(step, drawn) -> None:
    graph, roots = drawn
    made, images = step.run(graph, roots, [])
    check(graph, roots, made, images)


@pytest.mark.parametrize("step", STEPS, ids=lambda s: s.name)
@settings(max_examples=40, deadline=None)
@given(graphs())
def test_each_pass_on_any_operation(step, graph) -> None:
    roots = graph.nodes[-3:]
    made, images = step.run(graph, roots, [])
    check(graph, roots, made, images)


@settings(max_examples=120, deadline=None)
@given(selections(), st.data())
def test_all_of_them(drawn, data) -> None:
    graph, roots = drawn
    names = [s.name for s in PASSES]
    skip = frozenset(data.draw(st.lists(st.sampled_from(names), max_size=3)))
    made, images = simplify(graph, roots, skip)
    check(graph, roots, made, images)


@settings(max_examples=120, deadline=None)
@given(selections())
def test_with_a_premise(drawn) -> None:
    graph, roots = drawn
    bools = [n for n in graph.nodes if n.op in (Op.LE, Op.EQ, Op.LT, Op.NOT)]
    premises = bools[:2]
    made, images = simplify(graph, roots, given=premises)
    check(graph, roots, made, images, premises)


def image(g: Graph, root: Node, **options) -> tuple[Graph, Node]:
    made, images = simplify(g, [root], **options)
    return made, images[root]


def test_a_value_that_never_varies_is_a_constant() -> None:
    g = Graph()
    m = g.input("m", "runtime", Domain(1, 1024))
    more = g.add(Op.GT, g.add(Op.FLOORDIV, m, g.const(128)), g.add(Op.FLOORDIV, m, g.const(64)))
    assert image(g, g.select(more, g.const(1), g.const(2)))[1].attr == 2
    unproved = image(g, more, skip=frozenset({"enumerate", "ranges", "context"}))[1]
    assert not unproved.is_const


def test_a_product_is_divisible() -> None:
    g = Graph()
    rows = g.input("rows", "runtime", Domain(1, 1 << 20))
    packed = g.add(Op.MUL, rows, g.const(64))
    pack = g.either(
        g.add(Op.EQ, g.add(Op.MOD, packed, g.const(64)), g.const(0)), g.add(Op.EQ, rows, g.const(1))
    )
    assert image(g, pack)[1].attr is True


@pytest.mark.parametrize("by", [1, -1, 2])
@pytest.mark.parametrize("step", STEPS, ids=lambda s: s.name)
def test_what_is_no_integer_has_a_remainder(by: int, step: Pass) -> None:
    g = Graph()
    m = g.input("m", "runtime", Domain(-9, 30))
    part = g.add(Op.TRUEDIV, m, g.const(7))
    either = g.select(g.add(Op.LE, m, g.const(4)), part, m)
    text = g.select(g.add(Op.LE, m, g.const(4)), g.const("a%d"), g.const("b%d"))
    roots = [g.add(Op.MOD, left, g.const(by)) for left in (part, either, text, m)]
    check(g, roots, *step.run(g, roots, []))


def test_an_idle_input_is_dropped() -> None:
    g = Graph()
    m = g.input("m", "runtime", Domain(1, 300))
    q = g.input("q", "request", Domain(1, 100))
    noise = g.add(Op.MOD, g.add(Op.MUL, m, g.add(Op.SUB, m, g.const(1))), g.const(2))
    made, root = image(g, g.add(Op.ADD, q, g.add(Op.MUL, noise, q)))
    assert root.op is Op.INPUT
    assert made.nodes


def test_a_tile_of_one_row_is_known_where_there_is_one_row() -> None:
    g = Graph()
    sq = g.input("sq", "runtime", Domain(1, 32768))
    b = g.input("b", "runtime", Domain(1, 1024))
    blocks = g.add(Op.FLOORDIV, g.add(Op.ADD, sq, g.const(127)), g.const(128))
    even = g.add(Op.EQ, g.add(Op.MOD, blocks, g.const(2)), g.const(0))
    causal = g.add(Op.NE, sq, g.const(1))
    cluster = g.select(
        g.both(g.negate(causal), g.both(even, g.add(Op.GT, b, g.const(3)))), g.const(2), g.const(1)
    )
    assert image(g, cluster)[1].attr == 1


def test_rows_of_a_table() -> None:
    g = Graph()
    m = g.input("m", "runtime", Domain(1, 1 << 20))
    key = g.select(g.add(Op.LE, m, g.const(32)), g.const(1), g.const(32))
    row = g.add(Op.LOOKUP, key, attr=((1, (16, 64)), (32, (32, 64))))
    assert image(g, g.add(Op.INDEX, row, g.const(1)))[1].attr == 64
    narrow = image(g, g.add(Op.EQ, g.add(Op.INDEX, row, g.const(0)), g.const(16)))[1]
    assert narrow.op is Op.LE


def test_equal_thresholds_become_one_node() -> None:
    g = Graph()
    m = g.input("m", "runtime", Domain(1, 1 << 20))
    pages = g.add(
        Op.NEG, g.add(Op.FLOORDIV, g.add(Op.MUL, g.add(Op.NEG, m), g.const(8192)), g.const(65536))
    )
    small = g.add(Op.LE, pages, g.const(4))
    same_again = g.add(Op.LT, g.add(Op.MUL, m, g.const(2)), g.const(65))
    _, images = simplify(g, [small, same_again])
    assert images[small] is images[same_again]


def test_a_premise_does_not_simplify_itself() -> None:
    g = Graph()
    n = g.input("n", "runtime", Domain(1, 100_000))
    promise = g.add(Op.LE, n, g.const(200))
    kind = g.select(g.add(Op.LE, n, g.const(300)), g.const("small"), g.const("large"))
    _, images = simplify(g, [kind], given=[promise])
    assert images[kind].attr == "small"
    assert images[promise].op is Op.LE


def test_long_chains_need_no_recursion() -> None:
    g = Graph()
    m = g.input("m", "runtime", Domain(1, 1 << 20))
    out = g.const(0)
    for k in range(2500):
        out = g.select(g.add(Op.LE, m, g.const(k * 7)), g.const(k), out)
    assert image(g, out, skip=frozenset({"enumerate"}))[1].op is Op.SELECT
