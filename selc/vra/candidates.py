"""The values that a site takes over D in the unpinned program.

Exact by enumeration where the inputs that matter are few; `large` deals with the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from typing import Final

from selc.ir.graph import Node
from selc.ir.op import TooWide
from selc.ir.program import Program, Site
from selc.ir.residual import Candidates
from selc.ir.value import Value, sort_key
from selc.vra.enumerate import MAX_POINTS, Row
from selc.vra.large import Job, Large, spanning
from selc.vra.observe import needed, observer, prefix
from selc.vra.search import find
from selc.vra.sweep import Places, reached, sweep
from selc.vra.tally import Tally
from selc.vra.view import View, of_program

MAX_CANDIDATES: Final = 1024
NOTHING: Final = Candidates((), exact=True)


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
    groups: dict[int, list[Job]] = {}
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


class Finder:
    """Candidates of one site after the other, of one program."""

    def __init__(
        self,
        program: Program,
        view: View,
        max_candidates: int = MAX_CANDIDATES,
        budget: int = MAX_POINTS,
    ) -> None:
        self._work = _Work(program, view, max_candidates, budget)

    def of(self, site: Site) -> Candidates:
        """The values of a site."""
        if not site.marks:
            return NOTHING
        mask, job = self._work.plan(site)
        return self._work.enumerate(mask, [job])[site.name]


class _Work:
    def __init__(self, program: Program, view: View, limit: int, budget: int) -> None:
        self.program = program
        self.view = view
        self.limit = limit
        self.budget = budget
        self.completions: dict[
            tuple[int, tuple[int, ...]], tuple[Mapping[str, Value] | None, bool]
        ] = {}

    def plan(self, site: Site) -> tuple[int, Job]:
        """The inputs to enumerate for a site: closed under assumes and the guards before it."""
        view = self.view
        guards = prefix(view, self.program, site)
        start = needed(view, site)
        mask = view.closure(start, [*guards, *view.admits])
        kinds = frozenset[str]().union(*(view.facts[m.node.id].kinds for m in site.marks))
        job = Job(site, tuple(site.marks), kinds)
        for g in guards:
            (job.near if view.masks[g.id] & mask or not view.masks[g.id] else job.far).append(g)
        return mask, job

    def enumerate(self, mask: int, jobs: Sequence[Job]) -> dict[str, Candidates]:
        """The candidates of sites that share the inputs of `mask`."""
        view = self.view
        admits = [n for n in view.admits if view.masks[n.id] & mask or not view.masks[n.id]]
        try:
            if view.size(mask) > self.budget:
                return self.large(mask, jobs)
            tallies = self.swept(mask, jobs, admits)
        except TooWide:
            return self.large(mask, jobs)
        out = {}
        for job, tally in zip(jobs, tallies, strict=True):
            rest, decided = self.complete(mask, job)
            out[job.site.name] = (
                self.pack(tally, view.inputs_of(mask), rest, decided)
                if rest is not None or not decided
                else NOTHING
            )
        return out

    def tally(self, mask: int, jobs: Sequence[Job], enumerated: Iterable[list[Row]]) -> list[Tally]:
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

    def swept(self, mask: int, jobs: Sequence[Job], admits: Sequence[Node]) -> list[Tally]:
        """Count what each site takes over all of the product of some inputs."""
        tallies = [Tally(job.kinds) for job in jobs]
        for piece in sweep(self.view, self.view.inputs_of(mask)):
            kept = piece.holds(admits)
            places: Sequence[int] = range(piece.size)
            if kept is not None:
                places = list(compress(places, kept))
            if not places:
                continue
            rows = Places(piece.row, places)
            for job, tally in zip(jobs, tallies, strict=True):
                column = reached(piece, job.marks, frozenset(n.id for n in job.near))
                tally.add(column if kept is None else list(compress(column, kept)), rows)
        return tallies

    def complete(self, mask: int, job: Job) -> tuple[Mapping[str, Value] | None, bool]:
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
        if len(tally.values) > self.limit and all(type(v) is int for v in tally.values.values()):
            return spanning(sorted(tally.values.values()), exact and rest is not None)  # type: ignore[type-var]
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

    def large(self, mask: int, jobs: Sequence[Job]) -> dict[str, Candidates]:
        """The candidates of sites whose inputs are too many to enumerate."""
        found = Large(self.view, self.tally, self.limit, self.budget).bounds(mask, jobs)
        out = {}
        for job in jobs:
            bound = found[job.site.name]
            rest, _ = self.complete(mask, job)
            out[job.site.name] = bound.answer(self.view, mask, rest, self.limit)
        return out
