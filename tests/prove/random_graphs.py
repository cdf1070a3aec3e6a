"""Random graphs over a few small inputs."""

from __future__ import annotations

import math

from hypothesis import strategies as st

from selc.ir.domain import Domain
from selc.ir.graph import Graph, Node
from selc.ir.op import Op
from selc.ir.value import Symbol
from selc.vra.view import View

X = Domain(-7, 9)
Y = Domain(values=(0, 1, 3, -2))
F = Domain(values=(True, False))
Z = Domain(values=(None, 2, "a", Symbol("dtype", "half"), True, 1.0))
INPUTS = {"x": X, "y": Y, "f": F, "z": Z, "p": Domain(-4, 12, 4)}

BINARY = [
    Op.ADD, Op.SUB, Op.MUL, Op.FLOORDIV, Op.MOD, Op.TRUEDIV, Op.LSHIFT, Op.RSHIFT, Op.BITAND,
    Op.BITOR, Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE, Op.IS, Op.MIN2, Op.MAX2, Op.POW, Op.BITXOR,
]  # fmt: skip
UNARY = [
    Op.NEG, Op.POS, Op.INVERT, Op.ABS, Op.NOT, Op.TRUTH, Op.INT, Op.CEIL, Op.FLOOR, Op.TRUNC,
    Op.ROUND, Op.BIT_LENGTH, Op.FLOAT, Op.MARK, Op.STR, Op.IS_INTEGER,
]  # fmt: skip


TABLES = [
    ((1, 5), (3, 7), (None, 2), (6, 0)),
    ((math.inf, 1), (1.0, 5), (2.5, 3), (-math.inf, 4), (math.nan, 6), (4, 2)),
]
HELD = [(1, 4, 6), (math.inf, 1, 4.0, math.nan, "a", True)]


@st.composite
def graphs(draw) -> tuple[Graph, list[Node]]:
    """A graph, and its nodes that are no constants, inputs first."""
    g = Graph()
    pool = [g.input(n, "runtime", d) for n, d in INPUTS.items()]
    pool += [g.const(v) for v in (0, 1, 2, -3, True, None, "a", 2.5, (1, 4, 6))]
    for _ in range(draw(st.integers(1, 7))):
        kind = draw(st.integers(0, 9))
        a, b = draw(st.sampled_from(pool)), draw(st.sampled_from(pool))
        if kind < 5:
            node = g.add(draw(st.sampled_from(BINARY)), a, b)
        elif kind == 5:
            op = draw(st.sampled_from(UNARY))
            node = g.add(op, a, attr="m" if op is Op.MARK else None)
        elif kind == 6:
            node = g.add(Op.SELECT, g.add(Op.TRUTH, a), b, draw(st.sampled_from(pool)))
        elif kind == 7:
            node = g.add(Op.OK, a, b, attr=(draw(st.sampled_from(BINARY)).value, None))
        elif kind == 8:
            node = g.add(Op.LOOKUP, a, attr=draw(st.sampled_from(TABLES)))
        else:
            held = g.const(draw(st.sampled_from(HELD)))
            op = draw(st.sampled_from([Op.INDEX, Op.IN]))
            args = (held, a) if op is Op.INDEX else (a, held)
            asked = draw(st.booleans())
            node = g.add(Op.OK, *args, attr=(op.value, None)) if asked else g.add(op, *args)
        pool.append(node)
    return g, [n for n in pool if not n.is_const]


def as_view(g: Graph) -> View:
    view = View(g, "request", tuple(g.inputs), [], [])
    view.extend()
    return view
