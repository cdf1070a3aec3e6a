"""Which assignments of pins and free knobs keep every guard true on every admitted input.

Each guard is judged over the parameters that it reads alone, in each of its readings, and the
results are joined. A projected assignment is settled by the cheapest means that can: ranges; points
that refute it; every distinct view that the guard has of D; the solver, with the parameters set;
points of a fixed sequence (`sampled`), where the solver has no answer at any price. What none of
them settles, for want of a budget too, is `unknown` and not legal.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from selc.ir.evaluate import compile_nodes
from selc.ir.graph import Node
from selc.ir.op import Op, TooWide
from selc.ir.residual import Residual, ResidualGuard
from selc.ir.value import Value, value_key
from selc.vra import interface
from selc.vra.budget import SOLVER_STEPS
from selc.vra.enumerate import MAX_POINTS, Row, chunks, filter_of, grid
from selc.vra.frontier import Faces, faces, frontier, reduced
from selc.vra.paramranges import MAX_ENTRIES, ParameterRanges
from selc.vra.relation import MAX_ROWS, Join, Table, TooMany, factors, merge, projection
from selc.vra.search import find, probes
from selc.vra.sweep import Piece, Places, sweep
from selc.vra.verdict import (
    Counterexample,
    Effort,
    Evidence,
    GuardVerdict,
    Legality,
    PinFreeFailure,
    weakest,
)
from selc.vra.view import View, of_residual

if TYPE_CHECKING:
    from selc.vra.smt import Session

CHEAP: Final = 1 << 17
"""Evaluations of one guard that are spent before the solver is asked."""

DEAR: Final = 1 << 22
"""Evaluations of one guard that are spent in all."""

SAMPLES: Final = 4096
"""Points tried where nothing else settles an assignment."""

CORNERS: Final = 48

FAILURES: Final = 8
"""Questions about one guard that the solver leaves open before it is asked no more of them."""


@dataclass(slots=True)
class _Reading:
    """One node that must be True, over the assignments of its own parameters."""

    node: Node
    names: tuple[str, ...]
    inputs: int  # what must be enumerated: its inputs, closed under the assumes
    status: list[Evidence | None]
    nodes: list[Node] = field(default_factory=list)
    seen: Faces | None = None
    failing: tuple[int, Mapping[str, Value]] | None = None  # assignment, point
    points: int = 0
    budget: str = ""
    spent: set[int] = field(default_factory=set)
    """Assignments that a larger budget of the solver might settle."""

    @property
    def open(self) -> list[int]:
        return [k for k, s in enumerate(self.status) if s is None]


def legality(
    residual: Residual,
    max_points: int = MAX_POINTS,
    rlimit: int = SOLVER_STEPS,
    samples: int = SAMPLES,
    max_rows: int = MAX_ROWS,
    view: View | None = None,
    effort: Effort | None = None,
) -> Legality:
    """Decide every guard and join the results.

    Args:
        residual: R; its graph declares every parameter and free knob as an input.
        max_points: the budget of an enumeration of D, in points.
        rlimit: the solver's budget for one assignment of one guard, in its own steps; where it is
            spent the assignment stays `unknown`.
        samples: points tried on assignments that nothing else can settle; with 0 they stay
            `unknown`.
        max_rows: above this the relation is given by its factors only.
        view: a prepared view of the residual.
        effort: counts by what means assignments were settled.
    """
    names = residual.parameters
    view = view or of_residual(residual)
    axes = {n: axis_of(residual, n) for n in names}
    work = _Work(view, axes, max_points, rlimit, samples, effort or Effort())
    readings: dict[int, _Reading] = {}
    for guard in residual.guards:
        for node in guard.readings:
            if node.id not in readings:
                readings[node.id] = work.reading(node)
    work.settle(list(readings.values()))
    return _joined(residual, work, readings, max_rows)


def axis_of(residual: Residual, name: str) -> tuple[Value, ...]:
    """The values of a parameter: its candidates, then what is offered."""
    declared = residual.graph.inputs.get(name)
    if declared is not None:
        return tuple(declared.domain)
    for pin in residual.pins:
        if pin.parameter == name:
            values = (*(pin.candidates.values or ()), *pin.offered)
            return tuple({value_key(v): v for v in values}.values())
    raise KeyError(name)


class _Work:
    def __init__(
        self,
        view: View,
        axes: Mapping[str, tuple[Value, ...]],
        max_points: int,
        rlimit: int,
        samples: int,
        effort: Effort,
    ) -> None:
        self.effort = effort
        self.view = view
        self.axes = axes
        self.parameters = view.mask_of(axes)
        self.ranges = ParameterRanges(view, axes)
        self.max_points = max_points
        self.rlimit = rlimit
        self.samples = samples
        self.rest: dict[int, Mapping[str, Value] | None] = {}
        self.premises = [n for n in view.admits if view.masks[n.id] & self.parameters]
        view.admits = tuple(n for n in view.admits if not view.masks[n.id] & self.parameters)
        self._solver: Session | None = None

    def reading(self, node: Node) -> _Reading:
        """A reading, with what ranges say of it."""
        view = self.view
        node = self.under_premises(node)
        names = self.ranges.reads(node)
        inputs = view.closure(view.masks[node.id] & ~self.parameters, view.admits)
        count = self.ranges.count(node)
        if count > MAX_ENTRIES:
            return _Reading(node, names, inputs, [], budget=f"{count} assignments")
        out = _Reading(node, names, inputs, [None] * count)
        table = self.ranges.table(node) if names else [view.facts[node.id]]
        for k, fact in enumerate(table or ()):
            if fact.single and fact.values == (True,):
                out.status[k] = "proved"
        self.effort.note("ranges", count - len(out.open))
        out.nodes = frontier(view, node, self.parameters)
        return out

    def under_premises(self, node: Node) -> Node:
        """The node, needed only where the assumes that read a knob hold."""
        view = self.view
        mask = view.closure(view.masks[node.id], [*self.premises, *view.admits])
        for premise in self.premises:
            if view.masks[premise.id] & mask:
                node = view.graph.fold(Op.SELECT, premise, node, view.graph.const(True))
        view.extend()
        return node

    def populated(self) -> list[_Reading]:
        """For the knobs that assumes read: which settings admit any input at all."""
        view = self.view
        out = []
        links = [*self.premises, *view.admits]
        done = 0
        for premise in self.premises:
            mask = view.closure(view.masks[premise.id], links)
            if mask & done:
                continue
            done |= mask
            names = view.inputs_of(mask & self.parameters)
            r = _Reading(premise, names, mask & ~self.parameters, [])
            conditions = [n for n in links if view.masks[n.id] & mask]
            rows = view.inputs_of(mask)
            points = grid(view, rows) if view.size(mask) <= self.max_points else probes(view, rows)
            keep = filter_of(view, conditions, rows)
            where = [rows.index(n) for n in names]
            seen = {
                value_key(tuple(row[w] for w in where)) for c in chunks(points) for row in keep(c)
            }
            for combo in itertools.product(*(self.axes[n] for n in names)):
                r.status.append("exhaustive" if value_key(combo) in seen else "unknown")
            out.append(r)
        return out

    def settle(self, readings: Sequence[_Reading]) -> None:
        """Decide what ranges left open, with one enumeration for all that read the same inputs."""
        groups: dict[int, list[_Reading]] = {}
        for r in readings:
            if r.open:
                groups.setdefault(r.inputs, []).append(r)
        for mask, group in sorted(groups.items()):
            complete = self.look(mask, group)
            for r in group:
                try:
                    self.decide(r, complete)
                except TooWide:
                    r.budget = "integers too wide"
                for k in r.open:
                    r.status[k] = "unknown"

    def look(self, mask: int, group: Sequence[_Reading]) -> bool:
        """Collect what guards see of D; whether all of it was seen."""
        view = self.view
        names = view.inputs_of(mask)
        admits = [n for n in view.admits if not view.masks[n.id] & ~mask]
        complete = view.size(mask) <= self.max_points
        wanted = {n.id: n for r in group for n in r.nodes}
        for r in group:
            r.seen = faces(view, r.nodes)
        try:
            if complete:
                for piece in sweep(view, names):
                    self.note(group, wanted, piece, admits)
                return True
            keep = filter_of(view, admits, names)
            show = compile_nodes(view.graph, list(wanted.values()), names, view.facts)
            for chunk in chunks(probes(view, names, self.samples)):
                kept = keep(chunk)
                if kept:
                    shown = list(zip(*itertools.starmap(show, kept), strict=True))
                    _note(group, wanted, shown, kept)
        except TooWide:
            for r in group:
                r.points = 0
        return False

    def note(
        self,
        group: Sequence[_Reading],
        wanted: Mapping[int, Node],
        piece: Piece,
        admits: Sequence[Node],
    ) -> None:
        """Collect what guards see at the admitted points of a piece of D."""
        flags = piece.holds(admits)
        shown = piece.columns(list(wanted.values()))
        places: Sequence[int] = range(piece.size)
        if flags is not None:
            places = list(itertools.compress(places, flags))
            shown = [list(itertools.compress(c, flags)) for c in shown]
        if places:
            _note(group, wanted, shown, Places(piece.row, places))

    def decide(self, r: _Reading, complete: bool) -> None:
        """Settle the open assignments of one reading."""
        assert r.seen is not None
        seen = r.seen.shown
        test = reduced(self.view, r.node, self.axes, r.names, r.nodes, [s for s, _ in seen])
        combos = list(itertools.product(*(self.axes[n] for n in r.names)))

        def step(means: str, run: Callable[[], None]) -> None:
            before = len(r.open)
            run()
            self.effort.note(means, before - len(r.open))

        def exhausted() -> bool:
            if not complete or len(seen) * len(r.open) > CHEAP:
                return False
            step("enumeration", lambda: self.exhaust(r, test, combos, seen))
            return True

        if exhausted():
            return
        step("corners", lambda: self.refute(r, test, combos, _corners(seen)))
        if not complete:
            step("interface", lambda: self.through_interface(r, combos))
        if exhausted():
            return
        step("solver", lambda: self.solve(r))
        left = len(seen) * len(r.open)
        if complete and left <= DEAR:
            step("enumeration", lambda: self.exhaust(r, test, combos, seen))
        elif complete:
            r.budget = f"{left} evaluations"
        else:
            if self.samples and left <= DEAR:
                step("samples", lambda: self.sample(r, test, combos, seen))
            if r.open:
                r.budget = f"{self.rlimit} solver steps per assignment"

    def sample(
        self,
        r: _Reading,
        test: Callable[..., Value],
        combos: Sequence[Row],
        seen: Sequence[tuple[Row, Row]],
    ) -> None:
        """Try what was seen of D, which is not all of it.

        That settles only what the solver cannot answer at all: where its budget was spent, more of
        it may bring a proof, and until then nothing is known.
        """
        self.refute(r, test, combos, seen)
        for k in r.open if r.points else ():
            if k not in r.spent:
                r.status[k] = "sampled"

    def exhaust(
        self,
        r: _Reading,
        test: Callable[..., Value],
        combos: Sequence[Row],
        seen: Sequence[tuple[Row, Row]],
    ) -> None:
        """Try every view of D."""
        self.refute(r, test, combos, seen)
        for k in r.open:
            r.status[k] = "exhaustive"

    def refute(
        self,
        r: _Reading,
        test: Callable[..., Value],
        combos: Sequence[Row],
        seen: Sequence[tuple[Row, Row]],
    ) -> None:
        """Look for a view on which an assignment fails."""
        for k in r.open:
            combo = combos[k]
            bad = next((point for shown, point in seen if test(*combo, *shown) is not True), None)
            if bad is not None:
                self.fail(r, k, dict(zip(self.view.inputs_of(r.inputs), bad, strict=True)))

    def fail(self, r: _Reading, k: int, point: Mapping[str, Value]) -> None:
        """Note that an assignment fails at a point."""
        r.status[k] = "refuted"
        if r.failing is None:
            r.failing = (k, point)

    def through_interface(self, r: _Reading, combos: Sequence[Row]) -> None:
        """Try a superset of what the guard can see, found through a small interface."""
        if not r.open:
            return
        joint = interface.joint(self.view, r.nodes, self.max_points)
        if joint is None or len(joint) * len(r.open) > DEAR:
            return
        test = reduced(self.view, r.node, self.axes, r.names, r.nodes, joint)
        for k in r.open:
            combo = combos[k]
            if all(test(*combo, *shown) is True for shown in joint):
                r.status[k] = "exhaustive"

    def solve(self, r: _Reading) -> None:
        """Ask the solver, with the parameters set."""
        from selc.vra import smt

        if not r.open:
            return
        if self._solver is None:
            self._solver = smt.lenient_session(self.view, self.rlimit)
        session = self._solver
        places = list(itertools.product(*(range(len(self.axes[n])) for n in r.names)))
        failures = 0
        for k in r.open:
            self.effort.solver_calls += 1
            facts = self.ranges.facts(r.node, places[k])
            point, decided = smt.falsify(session, r.node, facts, self.parameters)
            if decided and point is None:
                r.status[k] = "proved"
            elif point is not None and self.confirmed(r, places[k], point):
                self.fail(
                    r,
                    k,
                    {n: point.get(n, self.view.first(n)) for n in self.view.inputs_of(r.inputs)},
                )
            else:
                failures += 1
                if session.spent:
                    r.spent.add(k)
                if failures >= FAILURES:
                    r.spent.update(r.open if r.spent else ())
                    return

    def confirmed(self, r: _Reading, places: Sequence[int], point: Mapping[str, Value]) -> bool:
        """Whether an admitted point of the solver's makes the reading fail when computed."""
        view = self.view
        names = view.inputs_of(r.inputs)
        admits = [n for n in view.admits if view.masks[n.id] & r.inputs]
        row = [point.get(n, view.first(n)) for n in names]
        values = [self.axes[n][i] for n, i in zip(r.names, places, strict=True)]
        shown = compile_nodes(view.graph, [r.node, *admits], [*names, *r.names], view.facts)(
            *row, *values
        )
        return shown[0] is not True and all(a is True for a in shown[1:])

    def full(self, r: _Reading) -> Counterexample | None:
        """The counterexample of a reading, with values for the inputs that it does not read."""
        if r.failing is None:
            return None
        k, point = r.failing
        if r.inputs not in self.rest:
            others = ((1 << len(self.view.names)) - 1) & ~r.inputs & ~self.parameters
            wanted = [n for n in self.view.admits if not self.view.masks[n.id] & r.inputs]
            self.rest[r.inputs] = find(self.view, wanted, others, self.max_points).example
        rest = self.rest[r.inputs]
        if rest is None:
            return None
        parameters, left = {}, k
        for name in reversed(r.names):
            left, i = divmod(left, len(self.axes[name]))
            parameters[name] = self.axes[name][i]
        order = [n for n in self.view.names if n not in self.axes]
        inputs = {**rest, **point}
        return Counterexample(
            {n: parameters[n] for n in r.names},
            {n: inputs[n] for n in order if n in inputs},
            "pinned",
        )


def _note(
    group: Sequence[_Reading],
    wanted: Mapping[int, Node],
    shown: Sequence[Sequence[Value]],
    rows: Sequence[Row],
) -> None:
    columns = dict(zip(wanted, shown, strict=True))
    for r in group:
        assert r.seen is not None
        r.seen.add([columns[n.id] for n in r.nodes], rows)
        r.points += len(rows)


def _corners(seen: Sequence[tuple[Row, Row]]) -> list[tuple[Row, Row]]:
    """A few views: the ends of every coordinate, and some in between."""
    picked: dict[int, None] = {}
    if not seen:
        return []
    for c in range(len(seen[0][0])):
        numbers = [(row[c], k) for k, (row, _) in enumerate(seen) if type(row[c]) is int]
        if numbers:
            low, high = min(numbers), max(numbers)
            picked |= {low[1]: None, high[1]: None}
    step = max(1, len(seen) // CORNERS)
    picked |= dict.fromkeys(range(0, len(seen), step))
    picked[len(seen) - 1] = None
    return [seen[k] for k in picked]


def _joined(
    residual: Residual, work: _Work, readings: Mapping[int, _Reading], max_rows: int
) -> Legality:
    names = residual.parameters
    axes = [tuple(work.axes[n]) for n in names]
    sizes = [len(a) for a in axes]
    place = {n: k for k, n in enumerate(names)}
    tables = merge([_table(r, place, sizes) for r in [*readings.values(), *work.populated()]])
    evidence: Evidence = "proved"
    join = Join(sizes, tables)
    try:
        legal = join.count()
    except TooMany:  # too entangled to count: nothing is known to be legal
        tables, evidence, legal = [Table((), frozenset())], "unknown", 0
        join = Join(sizes, tables)
    cells = list(join.rows()) if legal <= max_rows else None
    relation = None
    if cells is not None:
        relation = tuple(tuple(axes[c][i] for c, i in enumerate(cell)) for cell in cells)
        used = [sorted({cell[c] for cell in cells}) for c in range(len(sizes))]
    else:
        used = [projection(sizes, tables, c) for c in range(len(sizes))]
    verdicts, failures = [], []
    for index, guard in enumerate(residual.guards):
        verdict, failure = _verdict(index, guard, work, readings, place, cells)
        verdicts.append(verdict)
        if failure is not None:
            failures.append(failure)
    for v in verdicts:
        evidence = weakest(evidence, v.evidence)
    total = 1
    for s in sizes:
        total *= s
    return Legality(
        tuple(names), tuple(axes), total, legal, evidence, relation, factors(tables, names, axes),
        tuple(verdicts), tuple(failures),
        tuple(tuple(axes[c][i] for i in some) for c, some in enumerate(used)), work.rlimit,
    )  # fmt: skip


def _table(r: _Reading, place: Mapping[str, int], sizes: Sequence[int]) -> Table:
    columns = tuple(place[n] for n in r.names)
    ordered = tuple(sorted(columns))
    good = {"proved", "exhaustive", "sampled"}
    cells = []
    positions = itertools.product(*(range(sizes[c]) for c in columns))
    for cell, status in zip(positions, r.status, strict=False):
        if status in good:
            by = dict(zip(columns, cell, strict=True))
            cells.append(tuple(by[c] for c in ordered))
    return Table(ordered, frozenset(cells))


def _verdict(
    index: int,
    guard: ResidualGuard,
    work: _Work,
    readings: Mapping[int, _Reading],
    place: Mapping[str, int],
    cells: Sequence[tuple[int, ...]] | None,
) -> tuple[GuardVerdict, PinFreeFailure | None]:
    labelled = [
        (label, readings[node.id])
        for label, node in (
            ("pinned", guard.pinned),
            ("adaptive", guard.adaptive),
            ("mixed", guard.mixed),
        )
        if node is not None
    ]
    evidence: Evidence = "proved"
    counterexample = None
    refuted = unknown = points = 0
    budget = ""
    for label, r in labelled:
        refuted += r.status.count("refuted")
        unknown += r.status.count("unknown") or (not r.status)
        evidence = weakest(evidence, _method(r, place, work, cells))
        budget = budget or r.budget
        if "sampled" in r.status:
            points = max(points, r.points)
        found = work.full(r) if counterexample is None else None
        if found is not None:
            counterexample = Counterexample(found.parameters, found.inputs, label)
    pinned = labelled[0][1]
    failure = None
    if not pinned.names and counterexample is not None and counterexample.reading == "pinned":
        failure = PinFreeFailure(index, counterexample.inputs)
    parameters = tuple(sorted({n for _, r in labelled for n in r.names}, key=lambda n: place[n]))
    verdict = GuardVerdict(
        index, evidence, parameters, refuted, unknown, points, budget, counterexample
    )
    return verdict, failure


def _method(
    r: _Reading, place: Mapping[str, int], work: _Work, cells: Sequence[tuple[int, ...]] | None
) -> Evidence:
    """The weakest method among the assignments that stay legal; of a reading without any, why."""
    kept: list[Evidence] = []
    if cells:
        columns = [place[n] for n in r.names]
        used = {tuple(cell[c] for c in columns) for cell in cells}
        for position, status in zip(
            itertools.product(*(range(len(work.axes[n])) for n in r.names)), r.status, strict=False
        ):
            if position in used and status is not None:
                kept.append(status)
    else:
        kept = [s for s in r.status if s in ("proved", "exhaustive", "sampled")]
    if not kept:
        return "unknown" if "unknown" in r.status or not r.status else "refuted"
    out: Evidence = "proved"
    for s in kept:
        out = weakest(out, s)
    return out
