"""Two admitted batches with one request that give a value of the program different values."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from selc.ir.op import TooWide
from selc.ir.program import Mark, Program
from selc.ir.value import UNDEF, Value, value_key
from selc.vra.enumerate import MAX_POINTS, Row, chunks, filter_of, points
from selc.vra.observe import observer
from selc.vra.search import PROBES, find, probes
from selc.vra.view import View

STEPS: Final = 64
"""How often a pair is brought closer together along one input."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two inputs that differ in batch inputs alone, with what they give."""

    first: Mapping[str, Value]
    second: Mapping[str, Value]
    values: tuple[Value, Value]


@dataclass(frozen=True, slots=True)
class Searched:
    """A pair, or none; `complete` tells that there is none from not having found one."""

    pair: Pair | None
    complete: bool


def differing(
    program: Program,
    view: View,
    marks: Sequence[Mark],
    returns: bool,
    batch: Sequence[str],
    budget: int = MAX_POINTS,
) -> Searched:
    """Look for a pair at a value that comes to be at some marks.

    Both calls reach the value (a guard that stops them before counts as not reaching it), and
    return if `returns`. The two inputs are brought together: as few inputs differ as were found to
    do, and an integer no more than it has to.
    """
    last = len(view.holds) if returns else max((m.guards_before for m in marks), default=0)
    guards = [n for n in view.holds[:last] if n is not None]
    start = view.mask([n for m in marks for n in (m.node, m.path)])
    mask = view.closure(start, [*guards, *view.admits])
    names = view.inputs_of(mask)
    see = observer(view, [marks], (), names, list(view.holds[:last]))
    admits = [n for n in view.admits if view.masks[n.id] & mask]
    keep = filter_of(view, admits, names)
    rest_mask = ((1 << len(view.names)) - 1) & ~mask
    others = [
        n for n in (*view.holds, *view.admits) if n is not None and not view.masks[n.id] & mask
    ]
    rest = find(view, others if returns else [*view.admits], rest_mask).example
    if rest is None:
        return Searched(None, complete=False)

    def shown(rows: list[Row]) -> list[Value]:
        seen = see(keep(rows)) if rows else []
        return [row[0] if not returns or row[-1] is True else UNDEF for row in seen]

    moving = [k for k, n in enumerate(names) if n in batch]
    try:
        enumerated = points(view, mask, admits, budget)
        complete = enumerated is not None
        rows = enumerated if enumerated is not None else _drawn(view, names, moving, keep)
        found = _conflict(rows, shown, [k for k in range(len(names)) if k not in moving])
        if found is None:
            return Searched(None, complete)
        a, b = _closer(view, names, moving, shown, *found)
        values = shown([a]) + shown([b])
    except TooWide:
        return Searched(None, complete=False)
    both = [{**rest, **dict(zip(names, row, strict=True))} for row in (a, b)]
    order = [n for n in view.names if n in both[0]]
    first, second = ({n: env[n] for n in order} for env in both)
    return Searched(Pair(first, second, (values[0], values[1])), complete=True)


def _drawn(
    view: View, names: Sequence[str], moving: Sequence[int], keep: Callable[[list[Row]], list[Row]]
) -> Iterator[list[Row]]:
    """Probes, each followed by others that share what the batch does not determine."""
    bases = list(probes(view, names, PROBES))

    def near() -> Iterator[Row]:
        for k, base in enumerate(bases):
            yield base
            for j in range(1, 12):
                other = bases[(k * 31 + j * j) % len(bases)]
                mixed = list(base)
                for f in moving:
                    mixed[f] = other[f]
                yield tuple(mixed)

    return (keep(chunk) for chunk in chunks(near()))


def _conflict(
    rows: Iterable[list[Row]], shown: Callable[[list[Row]], list[Value]], fixed: Sequence[int]
) -> tuple[Row, Row] | None:
    """Two points that agree on the `fixed` coordinates and show different values."""
    first: dict[Hashable, tuple[Hashable, Row]] = {}
    for chunk in rows:
        for row, value in zip(chunk, shown(chunk), strict=True):
            if value is UNDEF:
                continue
            request = tuple(value_key(row[k]) for k in fixed)
            known = first.setdefault(request, (value_key(value), row))
            if known[0] != value_key(value):
                return known[1], row
    return None


def _closer(
    view: View,
    names: Sequence[str],
    moving: Sequence[int],
    shown: Callable[[list[Row]], list[Value]],
    a: Row,
    b: Row,
) -> tuple[Row, Row]:
    """A pair that differs in less: one input after the other is made equal, or brought nearer."""

    def value(row: Row) -> Value:
        seen = shown([row])
        return seen[0] if seen else UNDEF

    def differ(x: Row, y: Row) -> bool:
        u, v = value(x), value(y)
        return u is not UNDEF and v is not UNDEF and value_key(u) != value_key(v)

    for k in moving:
        same = (*b[:k], a[k], *b[k + 1 :])
        if value_key(a[k]) != value_key(b[k]) and differ(a, same):
            b = same
    for k in moving:
        domain = view.graph.inputs[names[k]].domain
        if domain.values is not None or value_key(a[k]) == value_key(b[k]):
            continue
        for _ in range(STEPS):
            low, high = a[k], b[k]
            assert isinstance(low, int)
            assert isinstance(high, int)
            half = (high - low) // domain.step // 2 * domain.step
            middle = low + half
            if middle in (low, high):
                break
            between = (*a[:k], middle, *a[k + 1 :])
            if differ(between, b):
                a = between
            elif differ(a, (*b[:k], middle, *b[k + 1 :])):
                b = (*b[:k], middle, *b[k + 1 :])
            else:
                break
    return a, b
