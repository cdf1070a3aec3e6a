"""Graphs evaluated on products of axes, a whole column of values per node.

A node is computed on the product of those axes alone that it reads, and only then spread over what
it meets: a value of one input among several costs no more than that input. Nothing is compiled, so
that large graphs at few points are cheap too.
"""

from __future__ import annotations

import contextlib
import itertools
import operator
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, final

from selc.ir.absval import AbsVal, never_fails
from selc.ir.graph import Graph, Node
from selc.ir.op import FAULTS, MAX_BITS, TABLE, Op, TooWide, total
from selc.ir.value import UNDEF, Value

Row = tuple[Value, ...]


@final
class _Wide:
    """Stands where a value would be too wide; only where one is asked for that is an error."""


WIDE: Final = _Wide()


@dataclass(frozen=True, slots=True)
class Axis:
    """Nodes (inputs, or others that are taken as given) and the joint values they run through."""

    nodes: tuple[Node, ...]
    rows: Sequence[Row]


@dataclass(slots=True)
class Column:
    """Values over the product of the axes in `mask` (one bit each), the last moving fastest."""

    mask: int
    values: Sequence[Value]
    wide: bool = False


_FAST: Final[dict[Op, Callable[..., Value]]] = {
    Op.ADD: operator.add, Op.SUB: operator.sub, Op.MUL: operator.mul, Op.MOD: operator.mod,
    Op.FLOORDIV: operator.floordiv, Op.TRUEDIV: operator.truediv, Op.LSHIFT: operator.lshift,
    Op.RSHIFT: operator.rshift, Op.BITAND: operator.and_, Op.BITOR: operator.or_,
    Op.BITXOR: operator.xor,
}  # fmt: skip


class Columns:
    """Evaluates nodes of one graph on the product of some axes.

    Every input that the nodes read must be on an axis. `facts` are the abstract values of the
    graph's nodes; they must hold at every point of the product. Columns of up to `keep` values in
    all are kept for later calls.
    """

    def __init__(
        self, graph: Graph, facts: Sequence[AbsVal], axes: Sequence[Axis], keep: int = 0
    ) -> None:
        self.graph = graph
        self.facts = facts
        self.axes = tuple(axes)
        self.sizes = [len(a.rows) for a in axes]
        self._given: dict[int, tuple[int, int]] = {
            node.id: (k, j) for k, axis in enumerate(axes) for j, node in enumerate(axis.nodes)
        }
        self._pickers: dict[tuple[int, int], Callable[[Sequence[Value]], Sequence[Value]]] = {}
        self._tables: dict[int, Mapping[Value, Value]] = {}
        self._kept: dict[int, Column] = {}
        self._room = keep

    def size(self, mask: int) -> int:
        """The number of points of the axes in a mask."""
        out = 1
        for k, size in enumerate(self.sizes):
            if mask >> k & 1:
                out *= size
        return out

    def mask_of(self, nodes: Sequence[Node]) -> int:
        """The axes on which some nodes stand."""
        out = 0
        for node in nodes:
            out |= 1 << self._given[node.id][0]
        return out

    def run(self, roots: Sequence[Node]) -> dict[int, Column]:
        """The columns of some nodes, by id."""
        wanted = {r.id for r in roots}
        return {n.id: c for n, c in self.stream(roots) if n.id in wanted}

    def hold(self, roots: Sequence[Node]) -> list[int]:
        """Compute some nodes together, and keep their columns until they are let go."""
        wanted = {r.id for r in roots if r.id not in self._kept}
        found = {n.id: c for n, c in self.stream(roots) if n.id in wanted}
        held = [k for k in found if k not in self._kept]
        self._kept.update(found)
        return held

    def let_go(self, held: Sequence[int]) -> None:
        """Forget columns that were held."""
        for k in held:
            del self._kept[k]

    def stream(self, roots: Sequence[Node]) -> Iterator[tuple[Node, Column]]:
        """Every node below some roots with its column, arguments first; few are kept at a time."""
        cone = self._cone(roots)
        uses: dict[int, int] = {}
        done = {n.id for n in cone if n.id in self._given or n.id in self._kept}
        for node in cone:
            if node.id not in done:
                for a in node.args:
                    uses[a.id] = uses.get(a.id, 0) + 1
        live: dict[int, _Live] = {}
        for node in cone:
            known = self._kept.get(node.id)
            column = self._column(node, live) if known is None else known
            if known is None and len(column.values) <= self._room:
                self._kept[node.id] = column
                self._room -= len(column.values)
            if uses.get(node.id):
                live[node.id] = _Live(column)
            if node.id not in done:
                for a in node.args:
                    uses[a.id] -= 1
                    if not uses[a.id]:
                        del live[a.id]
            yield node, column

    def _cone(self, roots: Sequence[Node]) -> list[Node]:
        seen: dict[int, Node] = {}
        todo = list(roots)
        while todo:
            node = todo.pop()
            if node.id not in seen:
                seen[node.id] = node
                if node.id not in self._given and node.id not in self._kept:
                    todo.extend(node.args)
        return [seen[k] for k in sorted(seen)]

    def spread(self, column: Column, mask: int) -> Sequence[Value]:
        """A column's values at every point of the axes in `mask`, which holds its own."""
        if column.mask == mask:
            return column.values
        count = self.size(mask)
        if len(column.values) == 1 and count:
            return [column.values[0]] * count
        return self._picker(column.mask, mask)(column.values)

    def over_all(self, values: Sequence[Value], own: int, mask: int) -> Sequence[Value]:
        """Values over the axes `own`, at every point of those in `mask`."""
        return self.spread(Column(own, values), mask)

    def _picker(self, own: int, mask: int) -> Callable[[Sequence[Value]], Sequence[Value]]:
        known = self._pickers.get((own, mask))
        if known is None:
            strides: dict[int, int] = {}
            step = 1
            for k in range(len(self.sizes) - 1, -1, -1):
                if own >> k & 1:
                    strides[k] = step
                    step *= self.sizes[k]
            places = [0]
            for k, size in enumerate(self.sizes):
                if mask >> k & 1:
                    moves = [i * strides.get(k, 0) for i in range(size)]
                    places = [p + m for p in places for m in moves]
            known = operator.itemgetter(*places) if len(places) > 1 else _one(places)
            self._pickers[own, mask] = known
        return known

    def _column(self, node: Node, live: Mapping[int, _Live]) -> Column:
        given = self._given.get(node.id)
        if given is not None:
            k, j = given
            return Column(1 << k, [row[j] for row in self.axes[k].rows])
        op = node.op
        if op is Op.CONST:
            return Column(0, (node.attr,))
        if op is Op.FAIL:
            return Column(0, (UNDEF,))
        if op is Op.MARK:
            return live[node.args[0].id].column
        assert op is not Op.INPUT, node.attr
        columns = [live[a.id] for a in node.args]
        mask = 0
        wide = False
        for c in columns:
            mask |= c.column.mask
            wide = wide or c.column.wide
        full = [c.over(self, mask) for c in columns]
        if wide:
            return _careful(node, mask, full)
        values = self._plain(node, full, self.size(mask))
        if values is None:
            values = _bulk(node, full)
        return Column(mask, values) if values is not None else _careful(node, mask, full)

    def _plain(self, node: Node, full: list[Sequence[Value]], count: int) -> Sequence[Value] | None:
        """The values where nothing can fail; None if something may."""
        op = node.op
        facts = [self.facts[a.id] for a in node.args]
        if op is Op.SELECT:
            test, then, other = full
            if facts[0].defined:
                return [a if t else b for t, a, b in zip(test, then, other, strict=True)]
            return [
                t if t is UNDEF else a if t else b
                for t, a, b in zip(test, then, other, strict=True)
            ]
        if op is Op.LOOKUP:
            table = self._table(node)
            return [table.get(x, UNDEF) for x in full[0]]
        if not all(f.defined for f in facts) or not never_fails(op, node.attr, facts):
            return None
        if op is Op.HASKEY:
            keys = self._table(node)
            return [x in keys for x in full[0]]
        if op is Op.OK:
            return None
        if op is Op.MIN2:
            return [b if b < a else a for a, b in zip(*full, strict=True)]
        if op is Op.MAX2:
            return [b if b > a else a for a, b in zip(*full, strict=True)]
        if op is Op.FLOAT32:
            return array("f", full[0]).tolist()  # type: ignore[type-var]
        if op is Op.TUPLE:
            return list(zip(*full, strict=True)) if full else [()] * count
        function = _FAST.get(op) or TABLE[op].python
        if function is None or op is Op.POW:
            return None
        return list(map(function, *full))

    def _table(self, node: Node) -> Mapping[Value, Value]:
        known = self._tables.get(node.id)
        if known is None:
            pairs = node.attr
            known = dict(pairs) if node.op is Op.LOOKUP else dict.fromkeys(pairs)  # type: ignore[call-overload]
            self._tables[node.id] = known
        return known


@dataclass(slots=True)
class _Live:
    """A column that is still to be read, with what it was spread over."""

    column: Column
    spread: dict[int, Sequence[Value]] = field(default_factory=dict)

    def over(self, columns: Columns, mask: int) -> Sequence[Value]:
        if self.column.mask == mask:
            return self.column.values
        known = self.spread.get(mask)
        if known is None:
            known = self.spread[mask] = columns.spread(self.column, mask)
        return known


def _one(places: Sequence[int]) -> Callable[[Sequence[Value]], Sequence[Value]]:
    return lambda values: [values[i] for i in places]


def _bulk(node: Node, full: Sequence[Sequence[Value]]) -> list[Value] | None:
    """Values of an operation that happens not to fail at any point where it is reached."""
    op = Op(node.attr[0]) if node.op is Op.OK and isinstance(node.attr, tuple) else node.op
    function = TABLE[op].python
    if function is None or not full:
        return None
    there = [UNDEF not in args for args in zip(*full, strict=True)]
    some = full if all(there) else [list(itertools.compress(c, there)) for c in full]
    try:
        found = list(map(function, *some))
    except (*FAULTS, TooWide):
        return None
    if any(v.bit_length() > MAX_BITS for v in found if type(v) is int):
        return None
    if node.op is Op.OK:
        return [True] * len(there)
    if some is full:
        return found
    rest = iter(found)
    return [next(rest) if t else UNDEF for t in there]


def _careful(node: Node, mask: int, full: Sequence[Sequence[Value]]) -> Column:
    """A column point by point, where operations may fail or be too wide."""
    op = node.op
    function = total(op, node.attr)
    if full and not any(v is WIDE for c in full for v in c):
        with contextlib.suppress(TooWide):
            return Column(mask, list(map(function, *full)))
    out: list[Value] = []
    wide = False
    rows = zip(*full, strict=True) if full else iter([()])
    for args in rows:
        if any(a is WIDE for a in args):
            value = args[0] if op is not Op.SELECT else _chosen(*args)
            if op is not Op.SELECT:
                value = WIDE
        else:
            try:
                value = function(*args)
            except TooWide:
                value = WIDE
        wide = wide or value is WIDE
        out.append(value)
    return Column(mask, out, wide)


def _chosen(test: Value, then: Value, other: Value) -> Value:
    if test is UNDEF or test is WIDE:
        return test
    return then if test else other


def points(axes: Sequence[Axis], mask: int) -> Iterator[tuple[int, ...]]:
    """Positions on the axes in a mask, in the order of columns over it."""
    return itertools.product(*(range(len(a.rows)) for k, a in enumerate(axes) if mask >> k & 1))
