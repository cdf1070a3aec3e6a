"""Random graphs over every operation, with points that C supports."""

from __future__ import annotations

import random
from collections.abc import Callable

from selc.codegen.c import CBody
from selc.codegen.cvalue import ConstantTable, Unsupported
from selc.codegen.routine import Routine
from selc.codegen.slots import make_slot
from selc.ir.domain import Domain
from selc.ir.graph import Graph, Node
from selc.ir.op import Op, TooWide, evaluate
from selc.ir.value import UNDEF, Symbol, Value, value_key
from tests.unit.codegen.selectors import Leaves, Maker

INPUTS = {
    "m": Domain(1, 5000),
    "n": Domain(-40, 40, 4),
    "wide": Domain(-(1 << 40), 1 << 40),
    "flag": Domain(values=(False, True)),
    "name": Domain(values=("a", "bb", "")),
    "maybe": Domain(values=(None, 3, "a", 2.5, True)),
    "scale": Domain(values=(0.0, -0.0, 0.5, -2.25, 1e18, float("inf"))),
    "dtype": Domain(values=(Symbol("dtype", "torch.half", 2), Symbol("dtype", "torch.float", 4))),
    "shape": Domain(values=((1, 2), (3,), ())),
}
PINS: dict[str, tuple[Value, ...]] = {"tile.k": (16, 32, 48), "tile.w": (None, "a", 7)}
CONSTANTS: tuple[Value, ...] = (
    0, 1, -1, 2, 3, 7, 64, 128, True, False, None, "a", "bb", 0.5, -0.0, 3.0, 100.25,
    (1, 2, "a"), (4, 5, 6), (5, 6, 7, 8, 9, 10, 11, 12),
)  # fmt: skip
SAMPLES = 40
UNARY = (
    Op.NEG, Op.POS, Op.INVERT, Op.ABS, Op.NOT, Op.TRUTH, Op.INT, Op.FLOAT, Op.FLOAT32, Op.ROUND,
    Op.CEIL, Op.FLOOR, Op.TRUNC, Op.SQRT, Op.LOG2, Op.BIT_LENGTH, Op.LEN, Op.STR, Op.SUM, Op.MIN,
    Op.MAX, Op.ANY, Op.ALL, Op.SORTED,
)  # fmt: skip
BINARY = (
    Op.ADD, Op.SUB, Op.MUL, Op.FLOORDIV, Op.MOD, Op.TRUEDIV, Op.LSHIFT, Op.RSHIFT, Op.BITAND,
    Op.BITOR, Op.BITXOR, Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE, Op.IS, Op.IN, Op.MIN2, Op.MAX2,
    Op.INDEX, Op.POW, Op.TUPLE, Op.TUPLE,
)  # fmt: skip
MAPPINGS: tuple[tuple[tuple[Value, Value], ...], ...] = (
    tuple((k, k * 7 % 11) for k in range(1, 40)),
    ((1, "one"), (2, 2), (3, None), ("a", 4.5)),
    ((True, 1.0), (0, -0.0), (None, "none")),
    (((1, 2), "a"), ((3,), 7), ((16, False), None), ((32, 1), 1), ((48, True), 2.5)),
)


class Generator:
    """Adds nodes to a graph, keeping for each a test that it is defined, and sampled values."""

    def __init__(self, graph: Graph, leaves: Leaves, seed: int) -> None:
        self.graph = graph
        self.rng = random.Random(seed)
        true = graph.const(True)
        self.pool = [*leaves.values(), *(graph.const(c) for c in CONSTANTS)]
        self.fine = {n.id: true for n in self.pool}
        self.samples: dict[int, list[Value]] = {}
        for node in self.pool:
            domain = graph.inputs[str(node.attr)].domain if node.op is Op.INPUT else None
            self.samples[node.id] = [
                node.attr if domain is None else domain[self.rng.randrange(len(domain))]
                for _ in range(SAMPLES)
            ]

    def grow(self) -> Node | None:
        """One more node, unless it is mostly undefined, or constant, or C cannot compute it."""
        graph, rng = self.graph, self.rng
        kind = rng.random()
        if kind < 0.2:
            return self._select()
        if kind < 0.3:
            table = rng.choice(MAPPINGS)
            if rng.random() < 0.5:
                return self._strict(Op.LOOKUP, (self._any(),), table)
            return self._strict(Op.HASKEY, (self._any(),), tuple(k for k, _ in table))
        if kind < 0.5:
            return self._strict(rng.choice(UNARY), (self._any(),))
        args = (self._any(), self._any())
        op = rng.choice(BINARY)
        if op in (Op.LSHIFT, Op.POW):
            args = (args[0], graph.const(rng.choice((0, 1, 2, 3, -1))))
        return self._strict(op, args)

    def _any(self) -> Node:
        """Later nodes more often than leaves."""
        pool = self.pool
        return self.rng.choice(pool[-40:] if self.rng.random() < 0.6 else pool)

    def _strict(self, op: Op, args: tuple[Node, ...], attr: Value = None) -> Node | None:
        graph = self.graph
        node = graph.add(op, *args, attr=attr)
        fine = graph.add(Op.OK, *args, attr=(op.value, attr))
        for a in args:
            fine = graph.select(self.fine[a.id], fine, graph.const(False))
        return self._keep(node, fine)

    def _select(self) -> Node | None:
        graph = self.graph
        source = self._any()
        cond = graph.add(Op.TRUTH, source)
        self.samples.setdefault(cond.id, self._sampled(cond))
        then, other = self._any(), self._any()
        node = graph.add(Op.SELECT, cond, then, other)
        arms = graph.select(cond, self.fine[then.id], self.fine[other.id])
        return self._keep(node, graph.select(self.fine[source.id], arms, graph.const(False)))

    def _sampled(self, node: Node) -> list[Value]:
        columns = zip(*(self.samples[a.id] for a in node.args), strict=True)
        return [evaluate(node.op, node.attr, values) for values in columns]

    def _keep(self, node: Node, fine: Node) -> Node | None:
        if node.id in self.samples:
            return None
        try:
            values = self._sampled(node)
        except TooWide:
            return None
        distinct = {value_key(v) for v in values if v is not UNDEF}
        if len(distinct) < 2 and self.rng.random() < 0.95:
            return None
        if sum(v is UNDEF for v in values) > 0.7 * SAMPLES and self.rng.random() < 0.9:
            return None
        self.fine[node.id] = fine
        self.samples[node.id] = values
        if not is_supported(self.graph, self.point(node)):
            return None
        self.pool.append(node)
        return node

    def point(self, node: Node) -> Node:
        """The node's value, or a word where it is undefined."""
        return self.graph.select(self.fine[node.id], node, self.graph.const("nothing"))


def is_supported(graph: Graph, node: Node) -> bool:
    """Whether C can compute a node."""
    slots = {
        n: make_slot(n, f"in{k}", "in", i.domain) for k, (n, i) in enumerate(graph.inputs.items())
    }
    try:
        CBody(
            Routine(graph, tuple(graph.inputs), (), (), (), (node,)), "x_", ConstantTable(), slots
        )
    except Unsupported:
        return False
    return True


def random_maker(seed: int, count: int = 30) -> Maker:
    """A selector with `count` supported points."""
    maker = Maker(INPUTS, PINS)
    graph = Graph()
    generator = Generator(graph, maker.leaves(graph), seed)
    chosen: list[Node] = []
    while len(chosen) < count:
        node = generator.grow()
        if node is not None:
            chosen.append(generator.point(node))
    for k, node in enumerate(chosen):
        maker.point(f"point{k}", _replay(graph, node))
    return maker


def _replay(graph: Graph, target: Node) -> Callable[[Graph, Leaves], Node]:
    def make(fresh: Graph, leaves: Leaves) -> Node:
        copied: dict[int, Node] = {}
        for n in graph.cone([target]):
            if n.op is Op.INPUT:
                copied[n.id] = leaves[str(n.attr)]
            else:
                copied[n.id] = fresh.add(n.op, *(copied[a.id] for a in n.args), attr=n.attr)
        return copied[target.id]

    return make
