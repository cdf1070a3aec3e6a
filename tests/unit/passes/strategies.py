"""Graphs like those of selections, and a reference that knows where a value does not matter."""

from __future__ import annotations

import itertools

from hypothesis import strategies as st

from selc.ir.domain import Domain
from selc.ir.graph import Graph, Node
from selc.ir.op import Op, TooWide, evaluate
from selc.ir.value import UNDEF, Value

ARITHMETIC = [Op.ADD, Op.SUB, Op.MUL, Op.FLOORDIV, Op.MOD, Op.MIN2, Op.MAX2]
COMPARISONS = [Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE]
WORDS = ["dot", "gemm", "split"]


@st.composite
def selections(draw: st.DrawFn, size: int = 24) -> tuple[Graph, list[Node]]:
    """A graph over small integers, bools and words, and some of its nodes as roots."""
    g = Graph()
    ints: list[Node] = []
    for k in range(draw(st.integers(1, 3))):
        low, step = draw(st.integers(-4, 6)), draw(st.sampled_from([1, 1, 2, 8]))
        kind = draw(st.sampled_from(["runtime", "request", "pin"]))
        ints.append(g.input(f"i{k}", kind, Domain(low, low + step * draw(st.integers(0, 9)), step)))
    bools = [g.input("flag", "runtime", Domain(values=(False, True)))]
    ints += [g.const(v) for v in draw(st.lists(st.integers(-3, 70), min_size=2, max_size=4))]
    words = [g.const(w) for w in WORDS]
    made: list[Node] = []
    for _ in range(draw(st.integers(1, size))):
        shape = draw(st.integers(0, 11))
        a, b = draw(st.sampled_from(ints)), draw(st.sampled_from(ints))
        c, d = draw(st.sampled_from(bools)), draw(st.sampled_from(bools))
        v, w = draw(st.sampled_from(words)), draw(st.sampled_from(words))
        site = draw(st.integers(0, 2))
        if shape <= 1:
            node = g.add(draw(st.sampled_from(ARITHMETIC)), a, b, site=site)
            ints.append(node)
        elif shape <= 3:
            bools.append(node := g.add(draw(st.sampled_from(COMPARISONS)), a, b, site=site))
        elif shape == 4:
            ints.append(node := g.add(Op.SELECT, c, a, b))
        elif shape == 5:
            bools.append(node := g.add(Op.NOT, c))
        elif shape == 6:
            words.append(node := g.add(Op.SELECT, c, v, w))
        elif shape == 7:
            bools.append(node := g.add(Op.EQ, v, w))
        elif shape == 8:
            bools.append(node := g.add(Op.SELECT, c, d, g.const(draw(st.booleans()))))
        elif shape == 9:
            rows = tuple(
                (k, draw(st.integers(0, 4))) for k in draw(st.lists(st.integers(-2, 9), max_size=4))
            )
            ints.append(node := g.add(Op.LOOKUP, a, attr=rows))
        elif shape == 10:
            op = draw(st.sampled_from([Op.FLOORDIV, Op.MOD]))
            bools.append(node := g.add(Op.OK, a, b, attr=(op.value, None)))
        else:
            node = g.add(Op.MARK, draw(st.sampled_from([a, c, v])), attr=len(g.nodes))
            (ints if node.args[0] is a else bools if node.args[0] is c else words).append(node)
        made.append(node)
    roots = draw(st.lists(st.sampled_from(made), min_size=1, max_size=4))
    return g, roots


def points(graph: Graph) -> list[dict[str, Value]]:
    """Every valuation of the inputs."""
    names = list(graph.inputs)
    return [
        dict(zip(names, p, strict=True))
        for p in itertools.product(*[graph.inputs[n].domain for n in names])
    ]


def values(graph: Graph, roots: list[Node], inputs: dict[str, Value]) -> list[Value]:
    """The values of the roots; `UNDEF` also where a value is free because what it reads failed."""
    out: dict[int, Value] = {}
    for n in graph.cone(roots):
        args = tuple([out[a.id] for a in n.args])
        if n.op is Op.INPUT:
            out[n.id] = inputs[str(n.attr)]
        elif n.op is Op.CONST:
            out[n.id] = n.attr
        elif n.op is Op.OK and any(a is UNDEF for a in args):
            out[n.id] = UNDEF
        else:
            try:
                out[n.id] = evaluate(n.op, n.attr, args)
            except TooWide:
                out[n.id] = UNDEF
    return [out[r.id] for r in roots]
