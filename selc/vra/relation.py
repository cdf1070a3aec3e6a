"""Joining what single guards allow into one relation over all parameters."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from selc.ir.value import Value, value_key
from selc.vra.verdict import Factor

MAX_ROWS: Final = 4096
MAX_STATES: Final = 1 << 20
"""Partial assignments that counting may keep apart."""

Cell = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Allowed positions on the axes of some parameters (indices into all parameters)."""

    columns: tuple[int, ...]
    cells: frozenset[Cell]


def merge(tables: Sequence[Table]) -> list[Table]:
    """One table for each set of columns."""
    out: dict[tuple[int, ...], frozenset[Cell]] = {}
    for t in tables:
        out[t.columns] = out[t.columns] & t.cells if t.columns in out else t.cells
    return [Table(c, cells) for c, cells in sorted(out.items())]


class TooMany(Exception):
    """Counting would need too many partial assignments."""


class Join:
    """The natural join of tables over all parameters, in order; those without a table are free."""

    def __init__(self, sizes: Sequence[int], tables: Sequence[Table]) -> None:
        self.sizes = sizes
        self.ending: list[list[Table]] = [[] for _ in sizes]
        self.empty = any(not t.cells for t in tables)
        last: dict[int, int] = {}
        for t in tables:
            if t.columns:
                self.ending[max(t.columns)].append(t)
                for c in t.columns:
                    last[c] = max(last.get(c, c), max(t.columns))
        # before column k, only these earlier columns still matter
        self.live = [
            tuple(c for c in range(k) if last.get(c, c) >= k) for k in range(len(sizes) + 1)
        ]
        self.memo: dict[tuple[int, Cell], int] = {}

    def _fits(self, k: int, chosen: Mapping[int, int]) -> bool:
        return all(tuple(chosen[c] for c in t.columns) in t.cells for t in self.ending[k])

    def count(self, k: int = 0, chosen: Mapping[int, int] | None = None) -> int:
        """How many ways there are to complete an assignment of the columns before `k`."""
        if self.empty:
            return 0
        if k == len(self.sizes):
            return 1
        chosen = chosen or {}
        key = (k, tuple(chosen[c] for c in self.live[k]))
        known = self.memo.get(key)
        if known is None:
            if len(self.memo) >= MAX_STATES:
                raise TooMany
            known = 0
            base = dict(zip(self.live[k], key[1], strict=True))
            if not self.ending[k] and k not in self.live[k + 1]:
                base[k] = 0
                known = self.sizes[k] * self.count(k + 1, base)
            else:
                for i in range(self.sizes[k]):
                    base[k] = i
                    if self._fits(k, base):
                        known += self.count(k + 1, base)
            self.memo[key] = known
        return known

    def rows(self, k: int = 0, chosen: Cell = ()) -> Iterator[Cell]:
        """All allowed assignments, in the order of the axes."""
        if self.count(k, dict(enumerate(chosen))) == 0:
            return
        if k == len(self.sizes):
            yield chosen
            return
        for i in range(self.sizes[k]):
            if self._fits(k, dict(enumerate((*chosen, i)))):
                yield from self.rows(k + 1, (*chosen, i))


def restricted(tables: Sequence[Table], column: int, cell: int) -> list[Table]:
    """The tables with one parameter set."""
    return merge([*tables, Table((column,), frozenset({(cell,)}))])


def satisfiable(sizes: Sequence[int], tables: Sequence[Table]) -> bool:
    """Whether any assignment is allowed."""
    return Join(sizes, tables).count() > 0


def projection(sizes: Sequence[int], tables: Sequence[Table], column: int) -> list[int]:
    """The positions of one parameter that occur in an allowed assignment."""
    return [i for i in range(sizes[column]) if satisfiable(sizes, restricted(tables, column, i))]


def factors(
    tables: Sequence[Table], names: Sequence[str], axes: Sequence[Sequence[Value]]
) -> tuple[Factor, ...]:
    """Tables as they are reported; those that allow everything are left out."""
    out = []
    for t in tables:
        if len(t.cells) == math.prod(len(axes[c]) for c in t.columns) and t.columns:
            continue
        rows = tuple(
            tuple(axes[c][i] for c, i in zip(t.columns, cell, strict=True))
            for cell in sorted(t.cells)
        )
        if t.columns or not t.cells:
            out.append(Factor(tuple(names[c] for c in t.columns), rows))
    return tuple(out)


def tables_of(
    factor_list: Sequence[Factor], names: Sequence[str], axes: Sequence[Sequence[Value]]
) -> list[Table]:
    """The inverse of `factors`."""
    place = {n: k for k, n in enumerate(names)}
    where = [{value_key(v): i for i, v in enumerate(axis)} for axis in axes]
    out = []
    for f in factor_list:
        columns = tuple(place[n] for n in f.parameters)
        cells = frozenset(
            tuple(where[c][value_key(v)] for c, v in zip(columns, row, strict=True))
            for row in f.rows
        )
        out.append(Table(columns, cells))
    return merge(out)
