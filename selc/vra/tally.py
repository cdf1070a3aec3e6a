"""Counting the distinct values of a column of evaluated points."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

from selc.ir.value import UNDEF, Value
from selc.vra.enumerate import Row
from selc.vra.sweep import exact_keys

_CLASHING = frozenset({"bool", "int", "float"})


def hashes_exactly(kinds: frozenset[str]) -> bool:
    """Whether values of these kinds are `==` in Python only if of equal type and bits."""
    return len(kinds & _CLASHING) <= 1 and not kinds & {"float", "tuple"}


class Tally:
    """Counts by value, with the first point at which each value occurs."""

    __slots__ = ("counts", "exact", "first", "values")

    def __init__(self, kinds: frozenset[str]) -> None:
        self.exact = hashes_exactly(kinds)
        self.counts: Counter[Hashable] = Counter()
        self.first: dict[Hashable, Row] = {}
        self.values: dict[Hashable, Value] = {}

    def key(self, value: Value) -> Hashable:
        """The key under which a value is counted."""
        return value if self.exact else exact_keys((value,))[0]

    def add(self, column: Sequence[Value], rows: Sequence[Row]) -> None:
        """Count a column; `rows` are the points, in the same order."""
        keys: Sequence[Hashable] = column if self.exact else exact_keys(column)
        counted = Counter(keys)
        new = counted.keys() - self.first.keys()
        if new:
            where = dict(zip(reversed(keys), range(len(keys) - 1, -1, -1), strict=True))
            for key in new:
                self.first[key] = rows[where[key]]
                if column[where[key]] is not UNDEF:
                    self.values[key] = column[where[key]]
        self.counts.update(counted)
