"""The tuple a selector starts with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Final

from selc.ir.op import TooWide
from selc.ir.program import Program
from selc.ir.residual import Pin, Residual
from selc.ir.value import UNDEF, Value, sort_key, value_key
from selc.vra.enumerate import Row, chunks, filter_of, grid
from selc.vra.observe import needed, observer
from selc.vra.relation import Table, restricted, satisfiable, tables_of
from selc.vra.search import lattice
from selc.vra.verdict import DefaultTuple, Legality
from selc.vra.view import View, of_program

MAX_TUPLE_POINTS: Final = 65_536
"""D is looked at whole up to this many points, else along that many of `search.lattice`."""

Profile = Sequence[tuple[Mapping[str, Value], int]]


def default_tuple(
    program: Program,
    residual: Residual,
    legality: Legality,
    profile: Profile | None = None,
    points: int = MAX_TUPLE_POINTS,
    view: View | None = None,
) -> DefaultTuple | None:
    """The legal tuple that the unpinned program takes jointly most often.

    Args:
        program: the unpinned program, whose sites tell what it would have chosen.
        residual: names the pins and knobs.
        legality: the relation to stay within.
        profile: calls (inputs, how often) to count over; D if there is none.
        points: how many points of D to look at.
        view: a prepared view of the program.

    Returns:
        The tuple, or None where nothing is legal with the knobs at their initial settings.
    """
    work = _Work(program, residual, legality, view or of_program(program))
    tables = work.knobs()
    if tables is None:
        return None
    pins = [p for p in residual.pins if p.parameter is not None]
    if not pins:
        return DefaultTuple(work.settings, witnessed=True, source="domain")
    sources: list[tuple[str, Iterator[tuple[list[Row], list[int] | None]]]] = []
    if profile:
        sources.append(("profile", work.profile(profile)))
    sources.append(work.domain(points))
    counts: list[Counter[int]] = []
    for source, rows in sources:
        joint, counts = work.count(pins, rows)
        best = work.best(joint, tables)
        if best is not None:
            return DefaultTuple(work.named(best), witnessed=True, source=source, count=joint[best])
        if profile and any(counts):
            break
    chosen = work.marginal(pins, counts, tables)
    return DefaultTuple(work.named(chosen), witnessed=False, source="marginal")


class _Work:
    def __init__(
        self, program: Program, residual: Residual, legality: Legality, view: View
    ) -> None:
        self.program = program
        self.residual = residual
        self.names = legality.parameters
        self.axes = legality.axes
        self.sizes = [len(a) for a in legality.axes]
        self.where = [{value_key(v): i for i, v in enumerate(axis)} for axis in legality.axes]
        self.tables = tables_of(legality.factors, self.names, self.axes)
        if legality.legal == 0:
            self.tables.append(Table((), frozenset()))
        self.view = view
        self.columns: list[int] = []
        self.settings: dict[str, Value] = {}

    def knobs(self) -> list[Table] | None:
        """Set every free knob; the tables left, or None if no assignment remains."""
        tables = self.tables
        if not satisfiable(self.sizes, tables):
            return None
        for name in sorted(self.residual.knobs):
            column = self.names.index(name)
            if name in self.program.settings:
                initial = self.where[column].get(value_key(self.program.settings[name]))
                choices = [] if initial is None else [initial]
            else:
                choices = list(range(self.sizes[column]))
            for i in choices:
                narrowed = restricted(tables, column, i)
                if satisfiable(self.sizes, narrowed):
                    tables = narrowed
                    self.settings[name] = self.axes[column][i]
                    break
            else:
                return None
        return tables

    def profile(self, profile: Profile) -> Iterator[tuple[list[Row], list[int] | None]]:
        """The calls of a profile, with counts; what is not stated is the first of its domain."""
        rows = []
        for given, _ in profile:
            row = [self.settings.get(n, given.get(n, self.view.first(n))) for n in self.view.names]
            rows.append(tuple(row))
        counts = [count for _, count in profile]
        for k in range(0, len(rows), 4096):
            yield rows[k : k + 4096], counts[k : k + 4096]

    def domain(self, points: int) -> tuple[str, Iterator[tuple[list[Row], list[int] | None]]]:
        """Points of D with the knobs set, over the inputs that matter for the pins."""
        view = self.view
        sites = [p.site for p in self.residual.pins if p.parameter is not None]
        guards = [n for n in view.holds if n is not None]
        mask = 0
        for site in sites:
            mask |= needed(view, site)
        mask = view.closure(mask, [*guards, *view.admits])
        moving = [n for n in view.inputs_of(mask) if n not in self.settings]
        size = 1
        for n in moving:
            size *= len(view.graph.inputs[n].domain)
        whole = size <= points
        rows = grid(view, moving) if whole else lattice(view, moving, points)
        admits = [n for n in view.admits if view.masks[n.id] & mask]
        keep = filter_of(view, admits, view.names)
        fill = [
            (self.settings.get(n, view.first(n)), moving.index(n) if n in moving else None)
            for n in view.names
        ]

        def full(row: Row) -> Row:
            return tuple(value if k is None else row[k] for value, k in fill)

        if len(moving) == len(view.names):
            return ("domain" if whole else "lattice"), ((keep(c), None) for c in chunks(rows))
        return ("domain" if whole else "lattice"), (
            (keep([full(r) for r in c]), None) for c in chunks(rows)
        )

    def count(
        self, pins: Sequence[Pin], rows: Iterator[tuple[list[Row], list[int] | None]]
    ) -> tuple[Counter[tuple[int, ...]], list[Counter[int]]]:
        """How often the pins' values occur jointly and alone, as positions on their axes."""
        mask = 0
        for pin in pins:
            mask |= needed(self.view, pin.site)
        near = self.view.closure(mask, [n for n in self.view.holds if n is not None])
        guards = [
            n if n is not None and self.view.masks[n.id] & near else None for n in self.view.holds
        ]
        see = observer(self.view, [p.site.marks for p in pins], (), self.view.names, guards)
        columns = [self.names.index(p.parameter or "") for p in pins]
        seen: Counter[tuple[Hashable, ...]] = Counter()
        for chunk, weights in rows:
            try:
                shown = [r[:-1] for r in see(chunk)]
            except TooWide:
                continue
            keys = [tuple(value_key(v) for v in r) for r in shown]
            if weights is None:
                seen.update(keys)
            else:
                for key, weight in zip(keys, weights, strict=True):
                    seen[key] += weight
        joint: Counter[tuple[int, ...]] = Counter()
        alone: list[Counter[int]] = [Counter() for _ in pins]
        nothing = value_key(UNDEF)
        for key, count in seen.items():
            cell = [self.where[c].get(k) for c, k in zip(columns, key, strict=True) if k != nothing]
            for k, (c, part) in enumerate(zip(columns, key, strict=True)):
                place = self.where[c].get(part)
                if place is not None:
                    alone[k][place] += count
            if len(cell) == len(pins) and None not in cell:
                joint[tuple(i for i in cell if i is not None)] += count
        self.columns = columns
        return joint, alone

    def best(
        self, joint: Mapping[tuple[int, ...], int], tables: Sequence[Table]
    ) -> tuple[int, ...] | None:
        """The most frequent legal cell over the pins; the smallest of equals."""
        order = sorted(
            joint,
            key=lambda cell: (
                -joint[cell],
                [sort_key(self.axes[c][i]) for c, i in zip(self.columns, cell, strict=True)],
            ),
        )
        for cell in order:
            chosen = dict(zip(self.columns, cell, strict=True))
            chosen |= {
                self.names.index(n): self.where[self.names.index(n)][value_key(v)]
                for n, v in self.settings.items()
            }
            if all(tuple(chosen[c] for c in t.columns) in t.cells for t in tables):
                return cell
        return None

    def marginal(
        self, pins: Sequence[Pin], counts: Sequence[Counter[int]], tables: Sequence[Table]
    ) -> tuple[int, ...]:
        """Pin by pin in name order, the most frequent value that leaves the rest satisfiable."""
        chosen = {}
        for k in sorted(range(len(pins)), key=lambda k: pins[k].name):
            c = self.columns[k]
            order = sorted(
                range(self.sizes[c]), key=lambda i: (-counts[k][i], sort_key(self.axes[c][i]))
            )
            for i in order:
                narrowed = restricted(tables, c, i)
                if satisfiable(self.sizes, narrowed):
                    tables, chosen[k] = narrowed, i
                    break
        return tuple(chosen[k] for k in range(len(pins)))

    def named(self, cell: Sequence[int]) -> dict[str, Value]:
        """An assignment by parameter, in the order of the relation."""
        values = {self.names[c]: self.axes[c][i] for c, i in zip(self.columns, cell, strict=True)}
        values.update(self.settings)
        return {n: values[n] for n in self.names}
