"""What some points of D show of many sites: bounds from below, without any enumeration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from selc.ir.columns import WIDE, Axis, Columns
from selc.ir.op import Op
from selc.ir.program import Program, Site
from selc.ir.value import UNDEF, Value, value_key
from selc.vra.enumerate import Row, filter_of
from selc.vra.search import walks
from selc.vra.view import View

POINTS: Final = 384
"""Admitted points that are looked at."""


@dataclass(frozen=True, slots=True)
class Glimpse:
    """What was seen of a site: so many values; `moved`: two that differ by the batch alone."""

    values: int = 0
    moved: bool = False


def glimpses(program: Program, sites: Sequence[Site], view: View) -> dict[str, Glimpse]:
    """A look at all sites at some admitted points.

    The points come twice: as they are, and with everything that is not batch set to what it is at
    the first of them.
    """
    names = view.names
    rows = walks(view, names, POINTS)
    keep = filter_of(view, view.admits, names)
    if not rows:
        return {site.name: Glimpse() for site in sites}
    inputs = view.graph.inputs
    own = [k for k, n in enumerate(names) if not inputs[n].is_batch(program.scope)]
    fixed = keep(list(dict.fromkeys(_with(row, own, rows[0]) for row in rows))) if own else rows
    every = [*rows, *fixed] if own else rows
    last = len(every) - len(fixed)
    shown = _Shown(program, view, every)
    out = {}
    for site in sites:
        column = shown.of(site)
        values = {value_key(v) for v in column if v is not UNDEF}
        some = {value_key(v) for v in column[last:] if v is not UNDEF}
        out[site.name] = Glimpse(len(values), len(some) > 1)
    return out


def _with(row: Row, places: Sequence[int], other: Row) -> Row:
    out = list(row)
    for k in places:
        out[k] = other[k]
    return tuple(out)


class _Shown:
    """The columns of all sites over some points."""

    def __init__(self, program: Program, view: View, rows: Sequence[Row]) -> None:
        leaves = {str(n.attr): n for n in view.graph.nodes if n.op is Op.INPUT}
        present = [k for k, name in enumerate(view.names) if name in leaves]
        axis = Axis(
            tuple([leaves[view.names[k]] for k in present]),
            [tuple([row[k] for k in present]) for row in rows],
        )
        self.work = Columns(view.graph, view.facts, [axis])
        self.guards = view.holds
        marks = [m for s in program.sites.values() for m in s.marks]
        roots = [n for m in marks for n in (m.node, m.path)]
        self.columns = self.work.run([*roots, *(g for g in self.guards if g is not None)])
        self.count = len(rows)
        self.alive: list[list[bool]] = [[True] * self.count]

    def of(self, site: Site) -> list[Value]:
        """The site's value at each point; `UNDEF` where it is not reached."""
        out: list[Value] = [UNDEF] * self.count
        for mark in site.marks:
            values = self.work.spread(self.columns[mark.node.id], 1)
            path = self.work.spread(self.columns[mark.path.id], 1)
            alive = self.reached(mark.guards_before)
            here = [p is True and a for p, a in zip(path, alive, strict=True)]
            for k, value in enumerate(values):
                if here[k] and value is not WIDE:
                    out[k] = value
        return out

    def reached(self, count: int) -> list[bool]:
        """At which points the first `count` guards hold."""
        while len(self.alive) <= count:
            node = self.guards[len(self.alive) - 1]
            before = self.alive[-1]
            if node is not None:
                held = self.work.spread(self.columns[node.id], 1)
                before = [a and h is True for a, h in zip(before, held, strict=True)]
            self.alive.append(before)
        return self.alive[count]
