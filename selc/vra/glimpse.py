"""What some points of D show of many sites: bounds from below, without any enumeration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from selc.ir.columns import WIDE, Axis, Columns
from selc.ir.graph import Node
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


class Look:
    """A look at a program at some admitted points.

    The points come twice: as they are, and with everything that is not batch set to what it is at
    the first of them.
    """

    def __init__(self, program: Program, view: View) -> None:
        self.program = program
        names = view.names
        rows = walks(view, names, POINTS)
        inputs = view.graph.inputs
        own = [k for k, n in enumerate(names) if not inputs[n].is_batch(program.scope)]
        keep = filter_of(view, view.admits, names)
        fixed = keep(list(dict.fromkeys(_with(row, own, rows[0]) for row in rows))) if own else rows
        every = [*rows, *fixed] if own else rows
        self.last = len(every) - len(fixed)
        self.shown = _Shown(program, view, every) if every else None

    def at(self, site: Site) -> Glimpse:
        """What is seen of a site."""
        if self.shown is None:
            return Glimpse()
        column = self.shown.of(site)
        values = {value_key(v) for v in column if v is not UNDEF}
        some = {value_key(v) for v in column[self.last :] if v is not UNDEF}
        return Glimpse(len(values), len(some) > 1)

    def leaks(self, sites: Sequence[Site]) -> bool:
        """Whether the batch is seen to move a `bits` point while these sites keep their values.

        Pinned to what they are at two such points, they change nothing there.
        """
        shown = self.shown
        if shown is None:
            return False
        columns = [shown.of(site) for site in sites]
        steady = [True] * shown.count
        for site in sites:
            shown.disagreeing(site, steady)
        for k, returns in enumerate(shown.reached(len(shown.guards))):
            steady[k] = steady[k] and returns
        bits = [p.node for p in self.program.points if p.role == "bits"]
        results = list(zip(*[shown.values(n) for n in bits], strict=True))
        first: dict[object, object] = {}
        for k in range(self.last, shown.count):
            if steady[k]:
                key = tuple([value_key(c[k]) for c in columns])
                found = tuple([value_key(v) for v in results[k]])
                if first.setdefault(key, found) != found:
                    return True
        return False


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
        roots += [p.node for p in program.points if p.role == "bits"]
        self.columns = self.work.run([*roots, *(g for g in self.guards if g is not None)])
        self.count = len(rows)
        self.alive: list[list[bool]] = [[True] * self.count]

    def of(self, site: Site) -> list[Value]:
        """The site's value at each point; `UNDEF` where it is not reached."""
        out: list[Value] = [UNDEF] * self.count
        for mark in site.marks:
            values, path = self.values(mark.node), self.values(mark.path)
            alive = self.reached(mark.guards_before)
            here = [p is True and a for p, a in zip(path, alive, strict=True)]
            for k, value in enumerate(values):
                if here[k] and value is not WIDE:
                    out[k] = value
        return out

    def values(self, node: Node) -> Sequence[Value]:
        """A node's value at each point."""
        return self.work.spread(self.columns[node.id], 1)

    def disagreeing(self, site: Site, steady: list[bool]) -> None:
        """Strike out the points at which marks of a site that are reached differ."""
        seen: list[object] = [None] * self.count
        for mark in site.marks:
            values, path = self.values(mark.node), self.values(mark.path)
            alive = self.reached(mark.guards_before)
            for k in range(self.count):
                if alive[k] and path[k] is True:
                    key = value_key(values[k])
                    steady[k] = steady[k] and seen[k] in (None, key)
                    seen[k] = key

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
