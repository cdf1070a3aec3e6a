"""Sites whose inputs are too many to enumerate: a superset, and evidence for its members.

The superset comes from an enumeration that leaves out guards and far inputs, from ranges, or from
an interface. Its members are confirmed by points that take them (of a fixed sequence, lifted from
the partial enumeration, or the solver's), and dropped where an interface or the solver excludes
them. What is left of it unconfirmed makes the answer inexact.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from selc.ir.absval import AbsVal, join
from selc.ir.graph import Node
from selc.ir.op import Op, TooWide
from selc.ir.program import Mark, Site
from selc.ir.residual import Candidates
from selc.ir.value import UNDEF, Value, sort_key, value_key
from selc.vra import interface
from selc.vra.conditions import bare
from selc.vra.enumerate import Row, chunks, filter_of, points
from selc.vra.observe import own
from selc.vra.search import PROBES, probes
from selc.vra.tally import Tally
from selc.vra.view import View

EFFORT: Final = 1 << 21
"""Nodes that are computed to see values of many sites at the points of a fixed sequence."""

MAX_LIFTS: Final = 4
"""Completions tried for a point of a partial enumeration."""

MAX_SOLVED: Final = 256
"""Values that the solver is asked about, over all sites of a group."""

MAX_INTERFACES: Final = 12
"""Marks of a group for which an interface is looked for."""


@dataclass(slots=True)
class Job:
    """A site to look at. Guards before it are `near` if they share inputs with it, else `far`."""

    site: Site
    marks: tuple[Mark, ...]
    kinds: frozenset[str]
    far: list[Node] = field(default_factory=list)
    near: list[Node] = field(default_factory=list)


@dataclass(slots=True)
class Bound:
    """What is known of a site: every value it may take, and points (over a mask) that show some."""

    values: dict[Hashable, Value] | None  # None: too many to list, or not finite
    span: range | None = None
    shown: dict[Hashable, Row] = field(default_factory=dict)
    partial: dict[Hashable, Row] = field(default_factory=dict)  # over the site's own inputs

    @property
    def open(self) -> list[Hashable]:
        """Values that are neither shown nor dropped, smallest first."""
        some = self.values or {}
        return sorted((k for k in some if k not in self.shown), key=lambda k: sort_key(some[k]))

    def answer(
        self, view: View, mask: int, rest: Mapping[str, Value] | None, limit: int
    ) -> Candidates:
        """The candidates, with values of all other inputs for the points."""
        if self.values is None or len(self.values) > limit:
            listed = None if self.values is None else sorted(self.values.values(), key=sort_key)
            return spanning(self.span if listed is None else listed, exact=False)
        names = view.inputs_of(mask)
        keys = sorted(self.values, key=lambda k: sort_key((self.values or {})[k]))
        witness = {
            i: {**rest, **dict(zip(names, self.shown[k], strict=True))}
            for i, k in enumerate(keys)
            if k in self.shown and rest is not None
        }
        exact = len(witness) == len(keys)
        return Candidates(tuple(self.values[k] for k in keys), None, exact, witness)


Count = Callable[[int, Sequence[Job], Iterable[list[Row]]], list[Tally]]


class Large:
    """The work on one group of sites with the same (closed) set of inputs."""

    def __init__(self, view: View, tally: Count, limit: int, budget: int) -> None:
        self.view = view
        self.tally = tally
        self.limit = limit
        self.budget = budget
        self.cases: dict[tuple[int, int], list[interface.Case] | None] = {}

    def bounds(self, mask: int, jobs: Sequence[Job]) -> dict[str, Bound]:
        """What can be found out about each site."""
        out = self.supersets(jobs)
        listed = [j for j in jobs if out[j.site.name].values is not None]
        self.probe(mask, listed, out)
        self.lift(mask, [j for j in listed if out[j.site.name].open], out)
        self.interfaces(mask, jobs, out)
        self.solve(mask, [j for j in listed if out[j.site.name].open], out)
        return out

    def supersets(self, jobs: Sequence[Job]) -> dict[str, Bound]:
        """A bound for every site, by partial enumeration or ranges."""
        view = self.view
        out: dict[str, Bound] = {}
        groups: dict[int, list[Job]] = {}
        for job in jobs:
            out[job.site.name] = _ranged(bound_of(view, job.marks), self.limit)
            if view.size(own(view, job.site)) <= self.budget:
                groups.setdefault(own(view, job.site), []).append(job)
        for mask, group in groups.items():
            admits = [n for n in view.admits if not view.masks[n.id] & ~mask]
            # mark by mark: a later mark must not hide an earlier one where a guard was left out
            alone = [
                Job(j.site, (m,), j.kinds, [], [g for g in j.near if not view.masks[g.id] & ~mask])
                for j in group
                for m in j.marks
            ]
            enumerated = points(view, mask, admits, self.budget)
            if enumerated is None:
                continue
            try:
                tallies = self.tally(mask, alone, enumerated)
            except TooWide:
                continue
            for job in group:
                out[job.site.name] = Bound({})
            for job, tally in zip(alone, tallies, strict=True):
                bound = out[job.site.name]
                assert bound.values is not None
                for key, value in tally.values.items():
                    exact = value_key(value)
                    bound.values[exact] = value
                    bound.partial.setdefault(exact, tally.first[key])
        return out

    def see(
        self, mask: int, jobs: Sequence[Job], rows: Iterable[list[Row]], out: Mapping[str, Bound]
    ) -> None:
        """Note the values that sites show at points over the inputs of `mask`."""
        rows = [chunk for chunk in rows if chunk]
        if not rows:
            return
        try:
            tallies = self.tally(mask, jobs, rows)
        except TooWide:
            return
        for job, tally in zip(jobs, tallies, strict=True):
            bound = out[job.site.name]
            for key, value in tally.values.items():
                if bound.values is not None:
                    bound.shown.setdefault(value_key(value), tally.first[key])

    def keep(self, mask: int) -> Callable[[list[Row]], list[Row]]:
        """A filter of admitted points over the inputs of `mask`."""
        view = self.view
        return filter_of(
            view, [n for n in view.admits if view.masks[n.id] & mask], view.inputs_of(mask)
        )

    def probe(self, mask: int, jobs: Sequence[Job], out: Mapping[str, Bound]) -> None:
        """Look at the points of a fixed sequence."""
        view = self.view
        cost = len(view.graph.cone([n for j in jobs for m in j.marks for n in (m.node, m.path)]))
        count = max(128, min(PROBES, EFFORT // (cost + 1)))
        keep = self.keep(mask)
        rows = probes(view, view.inputs_of(mask), count)
        self.see(mask, jobs, (keep(c) for c in chunks(rows)), out)

    def lift(self, mask: int, jobs: Sequence[Job], out: Mapping[str, Bound]) -> None:
        """Complete the points of partial enumerations with ends of the other inputs."""
        view = self.view
        names = view.inputs_of(mask)
        keep = self.keep(mask)
        ends = [view.graph.inputs[n].domain for n in names]
        base: list[Row] = [tuple(d[0] for d in ends), tuple(d[len(d) - 1] for d in ends)]
        base += keep(list(itertools.islice(probes(view, names, 64), 320)))[: MAX_LIFTS - 2]
        groups: dict[int, list[Job]] = {}
        for job in jobs:
            groups.setdefault(own(view, job.site), []).append(job)
        for inner, group in groups.items():
            where = [names.index(n) for n in view.inputs_of(inner)]
            for filler in base:
                left = [j for j in group if out[j.site.name].open]
                rows: dict[Row, None] = {}
                for job in left:
                    bound = out[job.site.name]
                    for key in bound.open:
                        if key in bound.partial:
                            row = list(filler)
                            for w, value in zip(where, bound.partial[key], strict=True):
                                row[w] = value
                            rows[tuple(row)] = None
                if rows:
                    self.see(mask, left, (keep(c) for c in chunks(iter(rows))), out)

    def interfaces(self, mask: int, jobs: Sequence[Job], out: dict[str, Bound]) -> None:
        """Drop values that no joint value of an interface gives, and find points for the others."""
        unsure = [j for j in jobs if out[j.site.name].open and j.kinds != {"bool"}]
        unknown = [
            j
            for j in jobs
            if out[j.site.name].values is None
            and j.kinds == {"int"}
            and not _RANK.get(j.site.kind, 1)
        ]
        unsure.sort(key=lambda j: _RANK.get(j.site.kind, 1))
        left = MAX_INTERFACES
        for job in [*unsure, *unknown]:
            new = [m for m in job.marks if _key(m) not in self.cases]
            if len(new) > left:
                continue
            left -= len(new)
            bound = out[job.site.name]
            found = [self.through(m) for m in job.marks]
            if any(cases is None for cases in found):
                continue
            cases = [c for some in found if some is not None for c in some]
            values = {k: v for c in cases for k, v in c.values.items()}
            if bound.values is None:
                if len(values) > self.limit:
                    continue
                out[job.site.name] = bound = Bound(values, None)
            else:
                bound.values = {
                    k: v for k, v in bound.values.items() if k in values or k in bound.shown
                }
            self.witness(mask, job, cases, out)

    def through(self, mark: Mark) -> list[interface.Case] | None:
        """The cases of a mark, found once for equal marks."""
        key = _key(mark)
        if key not in self.cases:
            self.cases[key] = interface.cases(self.view, mark.node, mark.path)
        return self.cases[key]

    def witness(
        self, mask: int, job: Job, cases: Sequence[interface.Case], out: Mapping[str, Bound]
    ) -> None:
        """Ask the solver for inputs that give an interface the joint values seen."""
        from selc.vra import smt

        view = self.view
        names = view.inputs_of(mask)
        bound = out[job.site.name]
        session = smt.lenient_session(view)
        tries = {
            key: iter([(c, row) for c in cases for row in c.found.get(key, ())])
            for key in bound.open
        }
        asked = 0
        while tries and asked < MAX_SOLVED:
            made = []
            for key in list(tries):
                if asked >= MAX_SOLVED:
                    break
                asked += 1
                case, row = next(tries[key], (None, ()))
                if case is None:
                    del tries[key]
                    continue
                goals = [
                    view.graph.fold(Op.EQ, n, view.graph.const(v))
                    for n, v in zip(case.nodes, row, strict=True)
                    if v is not UNDEF
                ]
                point = smt.point_of(session, [*goals, *_plain(view, case)])
                if point is not None:
                    made.append(tuple(point.get(n, view.first(n)) for n in names))
            self.see(mask, [job], [self.keep(mask)(made)], out)
            tries = {key: left for key, left in tries.items() if key not in bound.shown}

    def solve(self, mask: int, jobs: Sequence[Job], out: Mapping[str, Bound]) -> None:
        """Ask the solver about each value that is left, with what it cannot encode left open."""
        from selc.vra import smt

        view = self.view
        names = view.inputs_of(mask)
        sessions = [smt.session_over(view, names, loose=loose) for loose in (False, True)]
        asked = 0
        for job in sorted(jobs, key=lambda j: _RANK.get(j.site.kind, 1)):
            bound = out[job.site.name]
            made = []
            guards = [n if n is not None and n in job.near else None for n in view.holds]
            for key in bound.open:
                if asked >= MAX_SOLVED or bound.values is None:
                    break
                point, decided = None, False
                for session in sessions:
                    if session is not None and point is None and not decided:
                        value = bound.values[key]
                        point, decided = smt.find_mark(session, job.marks, guards, value)
                if point is None and not decided:
                    break
                asked += 1
                if point is None:
                    del bound.values[key]
                    continue
                made.append(tuple(point.get(n, view.first(n)) for n in names))
            self.see(mask, [job], [self.keep(mask)(made)], out)


_RANK: Final = {"variable": 0, "return": 0, "field": 0, "definition": 2, "expression": 3}


def _key(mark: Mark) -> tuple[int, int]:
    return bare(mark.node).id, mark.path.id


def _plain(view: View, case: interface.Case) -> list[Node]:
    """The conditions of a case that can be told to the solver, as nodes that are to be True."""
    out = []
    for node, holds in case.given:
        out.append(node if holds else view.graph.negate(node))
    view.extend()
    return out


def _ranged(fact: AbsVal, limit: int) -> Bound:
    if fact.values is not None:
        return Bound({value_key(v): v for v in fact.values})
    if fact.kinds == {"int"} and fact.lo is not None and fact.hi is not None:
        span = range(fact.lo, fact.hi + 1)
        if len(span) <= limit:
            return Bound({value_key(v): v for v in span})
        return Bound(None, span)
    return Bound(None)


def bound_of(view: View, marks: Sequence[Mark]) -> AbsVal:
    """The join of the abstract values of a site's marks."""
    out = view.facts[marks[0].node.id]
    for m in marks[1:]:
        out = join(out, view.facts[m.node.id])
    return out


def spanning(values: Sequence[Value] | None, exact: bool) -> Candidates:
    """A range that covers sorted integers; `exact` only if they are all of it."""
    if values is None:
        return Candidates(None, None, exact=False)
    if isinstance(values, range):
        return Candidates(None, (values[0], values[-1], values.step), exact)
    ints = [v for v in values if type(v) is int]
    if len(ints) != len(values) or not ints:
        return Candidates(None, None, exact=False)
    step = math.gcd(*(b - a for a, b in itertools.pairwise(ints))) or 1
    full = (ints[-1] - ints[0]) // step + 1 == len(ints)
    return Candidates(None, (ints[0], ints[-1], step), exact and full)
