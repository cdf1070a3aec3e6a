"""The values that a site takes over D in the unpinned program.

Exact by enumeration where the inputs that matter are few. Otherwise a superset (an enumeration that
leaves out guards and far inputs, an interface, or ranges) whose members are confirmed one by one:
by points that take them, and by the solver, which also drops those that are impossible.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from selc.ir.absval import AbsVal, join
from selc.ir.graph import Node
from selc.ir.op import TooWide
from selc.ir.program import Mark, Program, Site
from selc.ir.residual import Candidates
from selc.ir.value import Value, sort_key, value_key
from selc.vra import interface
from selc.vra.enumerate import MAX_POINTS, Row, chunks, filter_of, points
from selc.vra.observe import needed, observer, own, prefix
from selc.vra.search import find, probes
from selc.vra.tally import Tally
from selc.vra.view import View, of_program

MAX_CANDIDATES: Final = 1024
MAX_SOLVED: Final = 256
"""How many values of one site the solver is asked about."""

NOTHING: Final = Candidates((), exact=True)


@dataclass(slots=True)
class _Job:
    site: Site
    marks: tuple[Mark, ...]
    kinds: frozenset[str]
    far: list[Node] = field(default_factory=list)  # guards before it that share no input with it
    near: list[Node] = field(default_factory=list)


def candidates(
    program: Program,
    site: Site,
    max_candidates: int = MAX_CANDIDATES,
    budget: int = MAX_POINTS,
    view: View | None = None,
) -> Candidates:
    """The values of one site; see `all_candidates`."""
    return all_candidates(program, [site], max_candidates, budget, view)[site.name]


def all_candidates(
    program: Program,
    sites: Sequence[Site],
    max_candidates: int = MAX_CANDIDATES,
    budget: int = MAX_POINTS,
    view: View | None = None,
) -> dict[str, Candidates]:
    """The values of many sites, with one enumeration for all that read the same inputs."""
    work = _Work(program, view or of_program(program), max_candidates, budget)
    groups: dict[int, list[_Job]] = {}
    found: dict[str, Candidates] = {}
    for site in sites:
        if not site.marks:
            found[site.name] = NOTHING
            continue
        mask, job = work.plan(site)
        groups.setdefault(mask, []).append(job)
    for mask in sorted(groups, key=lambda m: (m.bit_count(), m)):
        found.update(work.enumerate(mask, groups[mask]))
    return {site.name: found[site.name] for site in sites}


class _Work:
    def __init__(self, program: Program, view: View, limit: int, budget: int) -> None:
        self.program = program
        self.view = view
        self.limit = limit
        self.budget = budget
        self.completions: dict[
            tuple[int, tuple[int, ...]], tuple[Mapping[str, Value] | None, bool]
        ] = {}

    def plan(self, site: Site) -> tuple[int, _Job]:
        """The inputs to enumerate for a site: closed under assumes and the guards before it."""
        view = self.view
        guards = prefix(view, self.program, site)
        start = needed(view, site)
        mask = view.closure(start, [*guards, *view.admits])
        kinds = frozenset[str]().union(*(view.facts[m.node.id].kinds for m in site.marks))
        job = _Job(site, tuple(site.marks), kinds)
        for g in guards:
            (job.near if view.masks[g.id] & mask or not view.masks[g.id] else job.far).append(g)
        return mask, job

    def enumerate(self, mask: int, jobs: Sequence[_Job]) -> dict[str, Candidates]:
        """The candidates of sites that share the inputs of `mask`."""
        view = self.view
        admits = [n for n in view.admits if view.masks[n.id] & mask or not view.masks[n.id]]
        try:
            enumerated = points(view, mask, admits, self.budget)
            if enumerated is None:
                return {job.site.name: self.large(mask, job) for job in jobs}
            tallies = self.tally(mask, jobs, enumerated)
        except TooWide:
            return {job.site.name: self.large(mask, job) for job in jobs}
        out = {}
        for job, tally in zip(jobs, tallies, strict=True):
            rest, decided = self.complete(mask, job)
            out[job.site.name] = (
                self.pack(tally, view.inputs_of(mask), rest, decided)
                if rest is not None or not decided
                else NOTHING
            )
        return out

    def tally(
        self, mask: int, jobs: Sequence[_Job], enumerated: Iterable[list[Row]]
    ) -> list[Tally]:
        """Count what each site takes over some chunks of points."""
        near = {n.id for job in jobs for n in job.near}
        guards = [n if n is not None and n.id in near else None for n in self.view.holds]
        distinct: dict[tuple[tuple[int, int, int], ...], int] = {}
        columns = []
        for job in jobs:
            key = tuple((m.node.id, m.path.id, m.guards_before) for m in job.marks)
            columns.append(distinct.setdefault(key, len(distinct)))
        first = dict(zip(columns, jobs, strict=True))
        observe = observer(
            self.view,
            [first[c].marks for c in range(len(distinct))],
            (),
            self.view.inputs_of(mask),
            guards,
        )
        tallies = [Tally(first[c].kinds) for c in range(len(distinct))]
        for rows in enumerated:
            for tally, column in zip(tallies, zip(*observe(rows), strict=True), strict=False):
                tally.add(column, rows)
        return [tallies[c] for c in columns]

    def complete(self, mask: int, job: _Job) -> tuple[Mapping[str, Value] | None, bool]:
        """Values for all other inputs, under which the far guards hold."""
        view = self.view
        key = (mask, tuple(n.id for n in job.far))
        if key not in self.completions:
            rest = ((1 << len(view.names)) - 1) & ~mask
            conditions = [*job.far, *(n for n in view.admits if not view.masks[n.id] & mask)]
            found = find(view, conditions, rest, self.budget)
            self.completions[key] = (found.example, found.decided)
        return self.completions[key]

    def pack(
        self, tally: Tally, names: Sequence[str], rest: Mapping[str, Value] | None, exact: bool
    ) -> Candidates:
        """The result of an exhaustive count."""
        keys = sorted(tally.values, key=lambda k: sort_key(tally.values[k]))
        values = tuple(tally.values[k] for k in keys)
        exact = exact and (rest is not None or not values)
        if len(values) > self.limit:
            return spanning(values, exact)
        witness = {
            i: {**(rest or {}), **dict(zip(names, tally.first[k], strict=True))}
            for i, k in enumerate(keys)
        }
        return Candidates(
            values, None, exact, witness if exact else {}, tuple(tally.counts[k] for k in keys)
        )

    def large(self, mask: int, job: _Job) -> Candidates:
        """The candidates of a site whose inputs are too many to enumerate."""
        view = self.view
        bound = self.superset(job)
        names = view.inputs_of(mask)
        seen = self.sampled(mask, job)
        rest, _ = self.complete(mask, job)
        if bound is None or len(bound) > self.limit:
            return self.wide(job, bound)
        witness: dict[int, Mapping[str, Value]] = {}
        kept: list[Value] = []
        exact = True
        asked = 0
        for value in sorted(bound, key=sort_key):
            row = seen.first.get(seen.key(value))
            possible: bool | None = None if row is None else True
            if row is None and asked < MAX_SOLVED:
                asked += 1
                row, possible = self.solve(names, job, value)
            if possible is False:
                continue
            if row is None or rest is None:
                exact = False
            else:
                witness[len(kept)] = {**rest, **dict(zip(names, row, strict=True))}
            kept.append(value)
        return Candidates(tuple(kept), None, exact, witness)

    def sampled(self, mask: int, job: _Job) -> Tally:
        """Values that are seen at the points of a fixed sequence."""
        view = self.view
        names = view.inputs_of(mask)
        admits = [n for n in view.admits if view.masks[n.id] & mask]
        keep = filter_of(view, admits, names)
        try:
            return self.tally(mask, [job], (keep(c) for c in chunks(probes(view, names))))[0]
        except TooWide:
            return Tally(job.kinds)

    def superset(self, job: _Job) -> Sequence[Value] | None:
        """A finite set that holds all values of the site."""
        view = self.view
        mask = own(view, job.site)
        admits = [n for n in view.admits if not view.masks[n.id] & ~mask]
        try:
            enumerated = points(view, mask, admits, self.budget)
            if enumerated is not None:
                near = [g for g in job.near if not view.masks[g.id] & ~mask]
                # one by one: a later mark must not hide an earlier one where a guard was left out
                alone = [_Job(job.site, (m,), job.kinds, [], near) for m in job.marks]
                found: dict[object, Value] = {}
                for tally in self.tally(mask, alone, enumerated):
                    found |= {value_key(v): v for v in tally.values.values()}
                return list(found.values())
        except TooWide:
            pass
        image = interface.values_of(view, [m.node for m in job.marks], self.budget)
        if image is not None:
            return image
        fact = bound_of(view, job.marks)
        if fact.values is not None:
            return fact.values
        if fact.kinds == {"int"} and fact.lo is not None and fact.hi is not None:
            return range(fact.lo, fact.hi + 1)
        return None

    def wide(self, job: _Job, bound: Sequence[Value] | None) -> Candidates:
        """The answer for a site with too many values to list."""
        fact = bound_of(self.view, job.marks)
        if bound and (isinstance(bound, range) or all(type(v) is int for v in bound)):
            listed = bound if isinstance(bound, range) else sorted(bound, key=sort_key)
            return spanning(listed, exact=False)
        if fact.kinds == {"int"} and fact.lo is not None and fact.hi is not None:
            return Candidates(None, (fact.lo, fact.hi, 1), exact=False)
        return Candidates(None, None, exact=False)

    def solve(
        self, names: Sequence[str], job: _Job, value: Value
    ) -> tuple[Row | None, bool | None]:
        """Ask the solver for an input on which the site takes a value; False: there is none."""
        from selc.vra import smt

        view = self.view
        guards = [n if n is not None and n in job.near else None for n in view.holds]
        row, decided = smt.find_mark(view, job.marks, guards, value, names)
        if row is None:
            return None, (False if decided else None)
        wanted = value_key(value)
        admitted = [n for n in view.admits if view.masks[n.id] & view.mask_of(names)]
        seen = observer(view, [job.marks], admitted, names, guards)([row])[0]
        confirmed = value_key(seen[0]) == wanted and all(
            a is True for a in seen[1 : 1 + len(admitted)]
        )
        return (row, True) if confirmed else (None, None)


def bound_of(view: View, marks: Sequence[Mark]) -> AbsVal:
    """The join of the abstract values of a site's marks."""
    out = view.facts[marks[0].node.id]
    for m in marks[1:]:
        out = join(out, view.facts[m.node.id])
    return out


def spanning(values: Sequence[Value], exact: bool) -> Candidates:
    """A range that covers sorted integers; `exact` only if they are all of it."""
    if isinstance(values, range) and len(values):
        return Candidates(None, (values[0], values[-1], values.step), exact)
    ints = [v for v in values if type(v) is int]
    if len(ints) != len(values) or not ints:
        return Candidates(None, None, exact=False)
    step = math.gcd(*(b - a for a, b in itertools.pairwise(ints))) or 1
    full = (ints[-1] - ints[0]) // step + 1 == len(ints)
    return Candidates(None, (ints[0], ints[-1], step), exact and full)
