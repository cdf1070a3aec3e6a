"""Hypothesis strategies: constants, inputs with typed domains, and graphs over them."""

from __future__ import annotations

from hypothesis import strategies as st

from selc.diag.span import NOWHERE, Span
from selc.ir.domain import Domain
from selc.ir.graph import Graph, Node
from selc.ir.op import TABLE, Op
from selc.ir.value import Symbol, value_key

small_ints = st.integers(-9, 9)
wide_ints = st.sampled_from([2**31, -(2**63), 2**64 + 1])
ints = st.one_of(small_ints, st.integers(-300, 20000), wide_ints)
floats = st.one_of(
    st.sampled_from([0.0, -0.0, 0.5, -1.5, 2.0, 1e300, 3.0e38, 1e-40, float("inf"), float("-inf")]),
    st.floats(-1000, 1000, allow_nan=False),
)
texts = st.one_of(st.sampled_from(["", "a", "H200", "{}", "%d", "3"]), st.text(max_size=3))
symbols = st.sampled_from([Symbol("dtype", "torch.bfloat16", 2), Symbol("Mode", "Mode.FAST")])
scalars = st.one_of(st.none(), st.booleans(), ints, floats, texts, symbols)
constants = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=5
)
typed = st.sampled_from([st.booleans(), ints, small_ints, floats, texts, constants])

OTHERS = [Op.SELECT, Op.OK, Op.LOOKUP, Op.HASKEY, Op.METHOD, Op.MARK, Op.FAIL]
SIMPLE = [op for op in Op if op not in (Op.CONST, Op.INPUT, *OTHERS)]
METHODS = ["count", "endswith", "find", "index", "join", "lower", "replace", "split", "strip"]


@st.composite
def domains(draw: st.DrawFn) -> Domain:
    """An integer range, or a list of distinct values of mostly one type."""
    if draw(st.booleans()):
        low = draw(st.integers(-40, 40))
        step = draw(st.integers(1, 5))
        return Domain(low, low + step * draw(st.integers(0, 60)), step)
    element = draw(typed)
    values = draw(st.lists(element, min_size=1, max_size=6))
    return Domain(values=tuple({value_key(v): v for v in values}.values()))


@st.composite
def spans(draw: st.DrawFn) -> Span:
    """Sometimes no region at all."""
    if draw(st.booleans()):
        return NOWHERE
    path = draw(st.sampled_from(["tile.py", "a b/c:1.py", 'odd";[x]\n.py', '"q".py']))
    line, column = draw(st.integers(1, 99)), draw(st.integers(1, 80))
    return Span(path, line, column, line + draw(st.integers(0, 2)), draw(st.integers(1, 80)))


@st.composite
def operations(draw: st.DrawFn, graph: Graph, op: Op | None = None) -> Node:
    """One more node over those of a non-empty graph."""
    nodes = st.sampled_from(graph.nodes)
    op = op or draw(st.sampled_from([*SIMPLE, *OTHERS]))
    attr: object = None
    count = TABLE[op].arity
    site = draw(st.integers(0, 2))
    if op is Op.SELECT:
        cond = graph.add(Op.TRUTH, draw(nodes))
        return graph.add(op, cond, draw(nodes), draw(nodes), site=site, origin=draw(spans()))
    if op is Op.LOOKUP:
        attr = tuple(draw(st.lists(st.tuples(scalars, constants), max_size=4)))
    elif op is Op.HASKEY:
        attr = tuple(draw(st.lists(scalars, max_size=4)))
    elif op is Op.METHOD:
        attr = draw(st.sampled_from(METHODS))
        count = draw(st.integers(1, 3))
    elif op is Op.MARK:
        attr = draw(st.sampled_from(["f.x", "f.x#1"]))
    elif op is Op.OK:
        inner = draw(st.sampled_from(SIMPLE))
        attr = (inner.value, None)
        count = TABLE[inner].arity
    if count == -1:
        count = draw(st.integers(0, 3))
    args = [draw(nodes) for _ in range(count)]
    return graph.add(op, *args, attr=attr, site=site, origin=draw(spans()))


@st.composite
def graphs(draw: st.DrawFn, size: int = 12, last: Op | None = None) -> Graph:
    """A graph over up to three inputs and some constants; `last` is its last operation."""
    graph = Graph()
    for k in range(draw(st.integers(1, 3))):
        name = draw(st.sampled_from(["m", "max(lens)", "a b", "None"])) + str(k)
        graph.input(name, draw(st.sampled_from(["runtime", "request", "pin"])), draw(domains()))
    for value in draw(st.lists(constants, max_size=3)):
        graph.const(value)
    for _ in range(draw(st.integers(0, size))):
        draw(operations(graph))
    if last is not None:
        draw(operations(graph, last))
    return graph


@st.composite
def bindings(draw: st.DrawFn, graph: Graph) -> dict[str, object]:
    """A value for every input of the graph."""
    return {n: e.domain[draw(st.integers(0, len(e.domain) - 1))] for n, e in graph.inputs.items()}
