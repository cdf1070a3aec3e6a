"""Which batch inputs move a selection point, and whether the batch moves it at all."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from selc.ir.graph import Node
from selc.ir.op import TooWide
from selc.ir.program import Point, Program
from selc.ir.value import UNDEF, Value, value_key
from selc.vra.enumerate import MAX_POINTS, Row, axis, chunks, filter_of, grid, points
from selc.vra.observe import Observer, observer
from selc.vra.search import PROBES, find, probes
from selc.vra.sweep import exact_keys, sweep
from selc.vra.tally import hashes_exactly
from selc.vra.verdict import PointDependence
from selc.vra.view import View, of_program

MAX_LINES: Final = 256
"""Base points from which one input is varied, in a domain too large to enumerate."""

MAX_STEPS: Final = 48
"""Values of the varied input per base point."""

ConeInputs = Callable[[Point], Collection[str]]

MAX_COLUMNS: Final = 16
"""Points of the selection that are looked at in one enumeration."""

MAX_GLIMPSES: Final = 48
"""Base points from which a look at a few lines of the domain is taken first."""

_SILENT: Final = object()  # the call does not return


@dataclass(frozen=True, slots=True)
class _Seen:
    names: tuple[str, ...]
    columns: list[list[Hashable]]
    admitted: list[bool] | None  # by point; None if assumes read further inputs


def dependence(
    program: Program,
    budget: int = MAX_POINTS,
    cone_inputs: ConeInputs | None = None,
    view: View | None = None,
) -> dict[str, PointDependence]:
    """What moves each point.

    Args:
        program: the unpinned program.
        budget: how many points an enumeration may visit.
        cone_inputs: the inputs a point reads after simplification. They must be right for every
            input of the product domain on which the call returns, assumes not applied.
        view: a prepared view of the program.
    """
    work = _Work(program, view or of_program(program), budget)
    jobs: list[tuple[Node, tuple[str, ...]]] = []
    for point in program.points:
        cone = set(work.view.inputs_of(work.view.masks[point.node.id]))
        if cone_inputs is not None:
            cone &= set(cone_inputs(point))
        jobs.append((point.node, tuple(n for n in work.batch if n in cone)))
    found = work.all(list(dict.fromkeys(jobs)))
    return {point.name: found[job] for point, job in zip(program.points, jobs, strict=True)}


_Job = tuple[Node, tuple[str, ...]]


class _Work:
    def __init__(self, program: Program, view: View, budget: int) -> None:
        self.view = view
        self.budget = budget
        self.guards = [n for n in view.holds if n is not None]
        inputs = view.graph.inputs
        self.batch = [n for n in view.names if inputs[n].is_batch(program.scope)]
        self.returning: dict[tuple[int, bool], bool | None] = {}

    def all(self, jobs: Sequence[_Job]) -> dict[_Job, PointDependence]:
        """The dependence of nodes, each on the inputs it is suspected to read."""
        out = {job: PointDependence((), batch_dependent=False) for job in jobs}
        groups: dict[int, list[_Job]] = {}
        for job in jobs:
            if job[1]:
                mask = self.view.closure(self.view.masks[job[0].id], self.guards)
                groups.setdefault(mask, []).append(job)
        for mask, group in sorted(groups.items()):
            clear = self.glimpse(mask, group)
            out.update(clear)
            group = [job for job in group if job not in clear]
            for k in range(0, len(group), MAX_COLUMNS):
                part = group[k : k + MAX_COLUMNS]
                seen = self.whole(mask, [node for node, _ in part])
                for j, job in enumerate(part):
                    moved, sure = self.product(
                        *job, mask, None if seen is None else seen.columns[j]
                    )
                    shifts, certain = self.admitted(*job, mask, seen, j)
                    out[job] = PointDependence(tuple(moved), shifts, sure and certain)
        return out

    def glimpse(self, mask: int, jobs: Sequence[_Job]) -> dict[_Job, PointDependence]:
        """The jobs whose every suspect is seen to move them on a few lines of the domain.

        What is seen is certain, and most points that the batch moves show it at once; only the
        others are worth a look at the whole domain.
        """
        view = self.view
        if view.size(mask) <= MAX_GLIMPSES or not self.possible(mask, admitted=False):
            return {}
        names = view.inputs_of(mask)
        admits = [n for n in view.admits if view.masks[n.id] & mask]
        if view.closure(mask, view.admits) != mask or not self.possible(mask, admitted=True):
            return {}
        nodes = list(dict.fromkeys(node for node, _ in jobs))
        near = [g for g in self.guards if view.masks[g.id] & mask]
        see = observer(view, (), [*nodes, *admits], names, near)
        moved: dict[_Job, set[str]] = {job: set() for job in jobs}
        shifted: set[_Job] = set()
        bases = list(itertools.islice(probes(view, names, MAX_GLIMPSES), MAX_GLIMPSES))
        for base, name in itertools.product(bases, dict.fromkeys(n for _, s in jobs for n in s)):
            try:
                shown = see(self.line(names, base, name))
            except TooWide:
                continue
            returns = [row for row in shown if row[-1] is True]
            valid = [row for row in returns if all(t is True for t in row[len(nodes) : -1])]
            for job in jobs:
                column = nodes.index(job[0])
                if name in job[1] and _differ(returns, column):
                    moved[job].add(name)
                    if _differ(valid, column):
                        shifted.add(job)
            if all(moved[job] == set(job[1]) and job in shifted for job in jobs):
                break
        return {
            job: PointDependence(tuple(n for n in self.batch if n in moved[job]), True, True)
            for job in jobs
            if moved[job] == set(job[1]) and job in shifted
        }

    def line(self, names: Sequence[str], base: Row, name: str) -> list[Row]:
        """Points that differ from a base in one input alone."""
        k = names.index(name)
        domain = axis(self.view.graph.inputs[name].domain)
        values = (v for (v,) in probes(self.view, [name], 4 * MAX_STEPS))
        steps = domain if len(domain) <= MAX_STEPS else list(dict.fromkeys(values))[:MAX_STEPS]
        return [(*base[:k], v, *base[k + 1 :]) for v in steps]

    def whole(self, mask: int, nodes: Sequence[Node]) -> _Seen | None:
        """What nodes show at every point of the product domain; None if there are too many."""
        view = self.view
        if view.size(mask) > self.budget:
            return None
        names = view.inputs_of(mask)
        wide = view.closure(mask, view.admits)
        admits = [n for n in view.admits if view.masks[n.id] & mask] if wide == mask else []
        near = [g for g in self.guards if view.masks[g.id] & mask]
        columns: list[list[Hashable]] = [[] for _ in nodes]
        admitted: list[bool] = []
        try:
            for piece in sweep(view, names):
                returns = piece.holds(near)
                for column, values in zip(columns, piece.columns(nodes), strict=True):
                    column += _shown(values, returns)
                kept = piece.holds(admits)
                admitted += [True] * piece.size if kept is None else kept
        except TooWide:
            return None
        return _Seen(names, columns, admitted if wide == mask else None)

    def possible(self, mask: int, admitted: bool) -> bool | None:
        """Whether the guards outside `mask` can hold at all (None: not known)."""
        view = self.view
        if (mask, admitted) not in self.returning:
            rest = ((1 << len(view.names)) - 1) & ~mask
            wanted = [n for n in self.guards if not view.masks[n.id] & mask]
            if admitted:
                wanted += [n for n in view.admits if not view.masks[n.id] & mask]
            found = find(view, wanted, rest, self.budget)
            self.returning[mask, admitted] = (
                True if found.example is not None else False if found.decided else None
            )
        return self.returning[mask, admitted]

    def see(self, node: Node, names: Sequence[str], mask: int) -> Observer:
        """An observer of one node and of whether the call returns, as far as `mask` decides."""
        near = [g for g in self.guards if self.view.masks[g.id] & mask]
        return observer(self.view, (), [node], names, near)

    def keys(self, node: Node, chunk: list[Row], see: Observer) -> list[Hashable]:
        """Type-exact keys of the node's value at each point; `_SILENT` where there is none."""
        values, returns = zip(*see(chunk), strict=True)
        return _keys(values, returns, hashes_exactly(self.view.facts[node.id].kinds))

    def product(
        self, node: Node, suspects: Sequence[str], mask: int, seen: Sequence[Hashable] | None
    ) -> tuple[list[str], bool]:
        """The inputs that move a node over the product domain, and whether that is certain."""
        view = self.view
        possible = self.possible(mask, admitted=False)
        if possible is False:
            return [], True
        names = view.inputs_of(mask)
        if seen is not None:
            sizes = [len(view.graph.inputs[n].domain) for n in names]
            moved = [n for n in suspects if _varies(seen, sizes, names.index(n))]
            return moved, possible is True or not moved
        try:
            moved = [n for n in suspects if self.witness(node, names, mask, n)]
        except TooWide:
            moved = []
        unsure = [
            n
            for n in suspects
            if n not in moved and not self.refuted(node, mask, [n], admitted=False)
        ]
        return [n for n in suspects if n in moved or n in unsure], possible is True and not unsure

    def admitted(
        self, node: Node, suspects: Sequence[str], mask: int, whole: _Seen | None, column: int
    ) -> tuple[bool, bool]:
        """Whether the batch moves a node over D, and whether that is certain."""
        view = self.view
        mask = view.closure(mask, [*self.guards, *view.admits])
        possible = self.possible(mask, admitted=True)
        if possible is False:
            return False, True
        names = view.inputs_of(mask)
        fixed = [k for k, n in enumerate(names) if n not in self.batch]
        if whole is not None and whole.admitted is not None:
            kept = (
                zip(grid(view, names), whole.columns[column], strict=True)
                if fixed
                else zip(itertools.repeat(()), whole.columns[column])
            )
            shown = itertools.compress(kept, whole.admitted)
            return (True, possible is True) if _conflict(shown, fixed) else (False, True)
        admits = [n for n in view.admits if view.masks[n.id] & mask]
        see = self.see(node, names, mask)
        try:
            rows = points(view, mask, admits, self.budget)
            complete = rows is not None
            if rows is None:
                keep = filter_of(view, admits, names)
                rows = (keep(c) for c in chunks(self.clustered(names)))
            pairs = (
                (r, k) for c in rows if c for r, k in zip(c, self.keys(node, c, see), strict=True)
            )
            if _conflict(pairs, fixed):
                return True, possible is True
        except TooWide:
            complete = False
        if complete or self.refuted(node, mask, suspects, admitted=True):
            return False, True
        return True, False

    def clustered(self, names: Sequence[str]) -> Iterator[Row]:
        """Probes, each with a few others that share its request and knobs."""
        view = self.view
        bases = list(probes(view, names, PROBES // 8))
        free = [k for k, n in enumerate(names) if n in self.batch]
        for k, base in enumerate(bases):
            yield base
            for j in range(1, 12):
                other = bases[(k * 31 + j * j) % len(bases)]
                mixed = list(base)
                for f in free:
                    mixed[f] = other[f]
                yield tuple(mixed)

    def witness(self, node: Node, names: tuple[str, ...], mask: int, name: str) -> bool:
        """Whether two probes that differ in one input alone are seen to differ in the node."""
        view = self.view
        k = names.index(name)
        alone = list(probes(view, [name], 4 * MAX_STEPS))
        small = axis(view.graph.inputs[name].domain)
        if len(small) <= MAX_STEPS:
            alone = [(v,) for v in small]
        steps = list(dict.fromkeys(v for (v,) in alone))[:MAX_STEPS]
        see = self.see(node, names, mask)
        for count, base in enumerate(probes(view, names, MAX_LINES)):
            if count >= 2 * MAX_LINES:
                break
            rows = [(*base[:k], v, *base[k + 1 :]) for v in steps]
            shown = set(self.keys(node, rows, see)) - {_SILENT}
            if len(shown) > 1:
                return True
        return False

    def refuted(self, node: Node, mask: int, moving: Sequence[str], admitted: bool) -> bool:
        """Whether the solver proves that no two such points differ."""
        from selc.vra import smt

        guards = [g for g in self.guards if self.view.masks[g.id] & mask]
        admits = [n for n in self.view.admits if self.view.masks[n.id] & mask] if admitted else []
        batch = self.batch if admitted else moving
        return smt.independent(self.view, node, [*guards, *admits], batch)


def _differ(rows: Sequence[Row], column: int) -> bool:
    return len({value_key(row[column]) for row in rows if row[column] is not UNDEF}) > 1


def _keys(values: Sequence[Value], returns: Sequence[Value], exact: bool) -> list[Hashable]:
    return [
        _SILENT if ok is not True or v is UNDEF else v if exact else value_key(v)
        for v, ok in zip(values, returns, strict=True)
    ]


def _shown(values: Sequence[Value], returns: Sequence[bool] | None) -> list[Hashable]:
    keys = list(exact_keys(values))
    if returns is None and not any(v is UNDEF for v in values):
        return keys
    if returns is None:
        return [_SILENT if v is UNDEF else k for k, v in zip(keys, values, strict=True)]
    return [
        k if ok and v is not UNDEF else _SILENT
        for k, v, ok in zip(keys, values, returns, strict=True)
    ]


def _conflict(shown: Iterable[tuple[Row, Hashable]], fixed: Sequence[int]) -> bool:
    """Whether two points that agree on the `fixed` coordinates show different values."""
    first: dict[Hashable, Hashable] = {}
    for row, key in shown:
        if key is not _SILENT:
            request = tuple(value_key(row[k]) for k in fixed)
            if first.setdefault(request, key) != key:
                return True
    return False


def _varies(seen: Sequence[Hashable], sizes: Sequence[int], k: int) -> bool:
    """Whether some line of the grid along coordinate `k` shows two values."""
    stride = 1
    for size in sizes[k + 1 :]:
        stride *= size
    length = sizes[k]
    block = stride * length
    whole = not any(key is _SILENT for key in seen)
    for start in range(0, len(seen), block):
        lines = [seen[start + j * stride : start + (j + 1) * stride] for j in range(length)]
        if whole:
            if any(line != lines[0] for line in lines):
                return True
            continue
        for line in zip(*lines, strict=True):
            shown = set(line)
            if len(shown) > 2 or len(shown - {_SILENT}) > 1:
                return True
    return False
