"""Whole products of domains, looked at column by column and piece by piece."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Final, TypeVar

from selc.ir.columns import Axis, Columns
from selc.ir.graph import Node
from selc.ir.op import Op, TooWide
from selc.ir.program import Mark
from selc.ir.value import UNDEF, Value, value_key
from selc.vra.enumerate import Row, axis
from selc.vra.observe import where_reached
from selc.vra.view import View

PIECE: Final = 1 << 16
"""Points of a product that are looked at together."""

KEPT: Final = 1 << 24
"""Values that a piece keeps which holds all of a product: it is looked at again."""

FIRST: Final = 1 << 9
"""Points of the first piece where little may be enough."""

T = TypeVar("T")

_SIMPLE: Final = frozenset({int, float, bool, str, type(None), type(UNDEF)})


class Piece:
    """Some consecutive points of the product of the domains of `names`."""

    def __init__(
        self,
        view: View,
        names: Sequence[str],
        ranges: Sequence[Sequence[Value]],
        keep: int = 0,
    ) -> None:
        leaves = {str(n.attr): n for n in view.graph.nodes if n.op is Op.INPUT}
        self.view = view
        self._ranges = ranges
        axes = [
            Axis((leaves[name],) if name in leaves else (), [(v,) for v in values])
            for name, values in zip(names, ranges, strict=True)
        ]
        self._work = Columns(view.graph, view.facts, axes, keep)
        self._whole = (1 << len(axes)) - 1
        self.size = math.prod(len(r) for r in ranges)

    def row(self, place: int) -> Row:
        """One of the points."""
        out: list[Value] = []
        for values in reversed(self._ranges):
            place, k = divmod(place, len(values))
            out.append(values[k])
        return tuple(reversed(out))

    def coordinate(self, k: int) -> Sequence[Value]:
        """The values of one input at all points."""
        inner = math.prod(len(r) for r in self._ranges[k + 1 :])
        outer = math.prod(len(r) for r in self._ranges[:k])
        return [v for v in self._ranges[k] for _ in range(inner)] * outer

    def columns(self, nodes: Sequence[Node]) -> list[Sequence[Value]]:
        """The values of some nodes at all points.

        Raises:
            TooWide: one of them cannot be computed at some point.
        """
        self.view.extend()
        found = self._work.run(nodes)
        if any(c.wide for c in found.values()):
            raise TooWide
        return [self._work.spread(found[n.id], self._whole) for n in nodes]

    def together(self, items: Sequence[T], reads: Callable[[T], Sequence[Node]]) -> Iterator[T]:
        """The items one by one, while what they read is computed for many of them at once."""
        size = max(1, KEPT // (16 * max(1, self.size)))
        for k in range(0, len(items), size):
            some = items[k : k + size]
            nodes = [n for item in some for n in reads(item)] if len(some) > 1 else []
            self.view.extend()
            held = self._work.hold(list(dict.fromkeys(nodes)))
            try:
                yield from some
            finally:
                self._work.let_go(held)

    def holds(self, nodes: Sequence[Node]) -> list[bool] | None:
        """At which points all of some nodes are True; None: at all of them."""
        if not nodes:
            return None
        found = self._work.run(nodes)
        if any(c.wide for c in found.values()):
            raise TooWide
        mask = 0
        for c in found.values():
            mask |= c.mask
        first, *others = (self._work.spread(found[n.id], mask) for n in nodes)
        flags = [v is True for v in first]
        for column in others:
            flags = [f and v is True for f, v in zip(flags, column, strict=True)]
        if all(flags):
            return None
        return [f is True for f in self._work.over_all(flags, mask, self._whole)]


def reached(piece: Piece, marks: Sequence[Mark], near: frozenset[int]) -> list[Value]:
    """The value of a site's last mark that is reached, at every point; else undefined.

    Of the guards before a mark, those in `near` (by node) are looked at.

    Raises:
        TooWide: it cannot be computed at some point.
    """
    out: list[Value] = [UNDEF] * piece.size
    live = [m for m in marks if not m.path.is_const or m.path.attr is True]
    tests = {}
    for mark in live:
        before = piece.view.holds[: mark.guards_before]
        tests[mark] = [n for n in before if n is not None and n.id in near]
        tests[mark] += [] if mark.path.is_const else [mark.path]
    for some in piece.together(live, lambda m: [where_reached(piece.view, m), *tests[m]]):
        (values,) = piece.columns([where_reached(piece.view, some)])
        flags = piece.holds(tests[some])
        if flags is None:
            out = list(values)
        else:
            out = [v if f else old for v, f, old in zip(values, flags, out, strict=True)]
    return out


class Places(Sequence[Row]):
    """Some points of a piece, made only where they are asked for."""

    def __init__(self, row: Callable[[int], Row], places: Sequence[int]) -> None:
        self._row = row
        self._places = places

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, k: Any) -> Any:
        return self._row(self._places[k])


def sweep(view: View, names: Sequence[str], gently: bool = False) -> Iterator[Piece]:
    """The product of the declared domains, in its order.

    `gently`: the first pieces are small, for whoever may have seen enough of one.
    """
    domains = [axis(view.graph.inputs[n].domain) for n in names]
    sizes = [len(d) for d in domains]
    k = 0
    while k < len(sizes) and math.prod(sizes[k + 1 :]) > PIECE:
        k += 1
    if k == len(sizes):
        yield Piece(view, names, domains)
        return
    if not gently and math.prod(sizes) <= PIECE:
        whole = view.pieces.get(tuple(names))
        if whole is None:
            whole = view.pieces[tuple(names)] = Piece(view, names, domains, KEPT)
        assert isinstance(whole, Piece)
        yield whole
        return
    inner = max(1, math.prod(sizes[k + 1 :]))
    most = max(1, PIECE // inner)
    step = min(most, max(2, FIRST // inner)) if gently else most
    for outer in itertools.product(*domains[:k]):
        start = 0
        while start < sizes[k]:
            piece = domains[k][start : start + step]
            yield Piece(view, names, [*((v,) for v in outer), piece, *domains[k + 1 :]])
            start += step
            step = min(most, 4 * step)


def exact_keys(values: Sequence[Value]) -> Sequence[Hashable]:
    """Keys that are equal exactly for values of equal type and bits; consistent over columns."""
    kinds = set(map(type, values))
    if kinds == {int}:
        return values
    if not kinds <= _SIMPLE or (float in kinds and _has_twins(values)):
        places = list(map(id, values))  # equal objects are often the same one
        known = {k: _key(v) for k, v in dict(zip(places, values, strict=True)).items()}
        return [known[k] for k in places]
    return [v if t is int else (t, v) for t, v in zip(map(type, values), values, strict=True)]


def _has_twins(values: Sequence[Value]) -> bool:
    """Whether there are floats whose equality does not tell their bits: zeros and NaN."""
    return not all(v == v and v for v in values if type(v) is float)


def _key(value: Value) -> Hashable:
    kind = type(value)
    if kind is int:
        return value
    if kind in _SIMPLE and (kind is not float or (value == value and value)):
        return (kind, value)
    return value_key(value)
