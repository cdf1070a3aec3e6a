"""The pipeline: from a target and its facts to a decided selection, stage by stage.

This is the only place that knows every layer. What a stage needs from above (candidates for the
cut, what G1 reads for the dependence) is passed in as a function.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from selc.diag.diagnostic import Refused, Sink
from selc.driver import findings, rows
from selc.ir.residual import Candidates
from selc.ir.value import Value
from selc.vra.budget import SOLVER_STEPS

if TYPE_CHECKING:
    from pathlib import Path

    from selc.frontend.facts import Facts
    from selc.ir.program import Program, Site
    from selc.ir.residual import Residual
    from selc.vra.verdict import DefaultTuple, Legality, PointDependence
    from selc.vra.view import View

SELDOM: Final = 500_000
"""Objects made between two looks for garbage in cycles."""

STAGES = ("frontend", "passes", "cut", "vra", "codegen")


@dataclass(slots=True)
class Clock:
    """Wall time per stage, in milliseconds."""

    spent: dict[str, float] = field(default_factory=dict)
    started: float = field(default_factory=time.perf_counter)
    inner: list[float] = field(default_factory=list)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count the time inside as the stage's, but for that of stages inside it."""
        begin = time.perf_counter()
        self.inner.append(0.0)
        try:
            yield
        finally:
            took = (time.perf_counter() - begin) * 1000
            self.spent[name] = self.spent.get(name, 0.0) + took - self.inner.pop()
            if self.inner:
                self.inner[-1] += took

    def milliseconds(self) -> dict[str, float]:
        """Every stage and the total, in tenths."""
        out = {name: round(self.spent.get(name, 0.0), 1) for name in STAGES}
        out["total"] = round((time.perf_counter() - self.started) * 1000, 1)
        return out


@dataclass(slots=True)
class Decided:
    """Everything that the compiler found out about a selection."""

    program: Program
    residual: Residual
    dependence: Mapping[str, PointDependence]
    legality: Legality
    default: DefaultTuple | None
    example: Mapping[str, Value]
    view: View
    facts: Facts
    chosen: Mapping[str, Value] | None = None  # by a tuple file

    @property
    def committed(self) -> Mapping[str, Value] | None:
        """The assignment of the parameters of R that is in force."""
        if self.chosen is not None:
            return self.chosen
        return self.default.values if self.default is not None else None


@dataclass(frozen=True, slots=True)
class Plan:
    """What to build, apart from where it goes."""

    target: str
    facts: tuple[Path, ...]
    roots: tuple[Path, ...]
    max_candidates: int = 1024
    whole_rows: bool = False
    skip: frozenset[str] = frozenset()
    solver_budget: int = SOLVER_STEPS


def load(plan: Plan, sink: Sink) -> tuple[Facts, Program]:
    """The facts and G0.

    Raises:
        Refused: the source or the facts are wrong or not supported.
    """
    from selc.frontend.facts import load_facts
    from selc.frontend.lower import lower

    facts = load_facts(plan.facts, sink)
    if sink.has_errors:
        raise Refused(*sink)
    return facts, lower(plan.target, facts, plan.roots, sink)


@contextmanager
def few_collections() -> Iterator[None]:
    """Look for garbage seldom: graphs are large, live to the end and hold hardly any cycles."""
    before = gc.get_threshold()
    gc.set_threshold(SELDOM, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def decide(plan: Plan, profile: Path | None, sink: Sink, clock: Clock) -> Decided:
    """Run every analysis; a profile decides on the default tuple.

    Raises:
        Refused: the input is wrong or not supported, or the batch cannot be cut off.
    """
    with few_collections():
        return _decide(plan, profile, sink, clock)


def _decide(plan: Plan, profile: Path | None, sink: Sink, clock: Clock) -> Decided:
    with clock.stage("frontend"):
        facts, program = load(plan, sink)
        calls = None
        if profile is not None:
            from selc.driver.profiles import read_profile

            calls = read_profile(profile, program, sink)
    from selc.driver.lean import lean
    from selc.vra.search import admitted_example
    from selc.vra.view import of_program

    with clock.stage("passes"):
        thin = lean(program, plan.skip)
    with clock.stage("vra"):
        view = of_program(program)
        thin_view = view if thin is program else of_program(thin)
        admitted = admitted_example(thin_view)
    if admitted.example is None and admitted.decided:
        raise Refused(findings.empty_domain(program))
    residual = _pins(program, thin, plan, view, thin_view, clock)
    with clock.stage("vra"):
        from selc.vra.default import default_tuple
        from selc.vra.legality import legality

        try:
            found = legality(residual, rlimit=plan.solver_budget)
        except NotImplementedError:
            raise Refused(findings.too_large(program)) from None
        findings.pin_free(program, residual, found)
        if all(p.name in thin.sites for p in residual.pins):
            here = [replace(p, site=thin.sites[p.name]) for p in residual.pins]
            there = replace(residual, pins=here)
            default = default_tuple(thin, there, found, calls, view=thin_view)
        else:
            default = default_tuple(program, residual, found, calls, view=view)
    dependence = _dependence(thin, plan, thin_view, clock)
    decided = Decided(
        program, residual, dependence, found, default, admitted.example or {}, view, facts
    )
    findings.warn(decided, plan.whole_rows, sink)
    return decided


def _pins(
    program: Program, thin: Program, plan: Plan, view: View, thin_view: View, clock: Clock
) -> Residual:
    from selc.cut.place import choose_pins
    from selc.cut.price import Least
    from selc.vra.candidates import Finder
    from selc.vra.glimpse import Look
    from selc.vra.injective import injective

    with clock.stage("vra"):
        look = Look(program, view)
        seen = {site.name: look.at(site) for site in _cuttable(program)}
        finder = Finder(program, view, plan.max_candidates)
        thin_finder = Finder(thin, thin_view, plan.max_candidates)
    barred = rows.below_columns(program) if plan.whole_rows else frozenset()

    def candidates(site: Site) -> Candidates:
        if site.name in barred:
            return Candidates(None, None, False)
        with clock.stage("vra"):
            here = thin.sites.get(site.name)
            return finder.of(site) if here is None else thin_finder.of(here)

    def is_injective(site: Site) -> bool:
        with clock.stage("vra"):
            here = thin.sites.get(site.name)
            if here is None:
                return bool(injective(program, site, view=view))
            return bool(injective(thin, here, view=thin_view))

    def least(site: Site) -> Least:
        found = seen.get(site.name)
        return Least() if found is None else Least(found.values, found.moved)

    with clock.stage("cut"):
        return choose_pins(
            program, candidates, is_injective, lambda: _batch_point(thin, thin_view),
            plan.max_candidates, plan.skip, least, look.leaks,
        )  # fmt: skip


def _cuttable(program: Program) -> list[Site]:
    """The sites that lie below a batch input and above a protected point: no other is ever cut."""
    from selc.passes.depend import batch_mask, masks

    _, reads = masks(program.graph)
    batch = batch_mask(program.graph, program.scope)
    above = {n.id for n in program.graph.cone([p.node for p in program.points if p.role == "bits"])}
    return [
        s
        for s in program.sites.values()
        if any(m.node.id in above and reads[m.node.id] & batch for m in s.marks)
    ]


def _batch_point(program: Program, view: View) -> Mapping[str, Value] | None:
    """Values of the batch inputs that are admitted with every request: an end of their ranges."""
    from selc.ir.op import Op
    from selc.vra.smt import find

    inputs = program.graph.inputs
    batch = [n for n, i in inputs.items() if i.is_batch(program.scope)]
    graph = view.graph
    leaves = {n.attr: n for n in graph.nodes if n.op is Op.INPUT}
    outside = graph.const(False)
    for node in view.admits:
        outside = graph.either(outside, graph.negate(node))
    for last in (False, True):
        point = {n: inputs[n].domain[len(inputs[n].domain) - 1 if last else 0] for n in batch}
        if not view.admits:
            return point
        fixed = [
            graph.fold(Op.EQ, leaves[n], graph.const(v)) for n, v in point.items() if n in leaves
        ]
        view.extend()
        example, decided = find(view, [*fixed, outside], view.names)
        if example is None and decided:
            return point
    return None


def _structural(program: Program, inputs: frozenset[str]) -> PointDependence:
    """What a point reads, without asking whether that moves it."""
    from selc.vra.verdict import PointDependence

    known = program.graph.inputs
    batch = tuple([n for n, i in known.items() if n in inputs and i.is_batch(program.scope)])
    return PointDependence(batch, bool(batch), decided=not batch)


def _dependence(
    program: Program, plan: Plan, view: View, clock: Clock
) -> Mapping[str, PointDependence]:
    from selc.passes.depend import reads
    from selc.passes.simplify import simplify
    from selc.vra.dependence import dependence

    with clock.stage("passes"):
        every = [p.node for p in program.points]
        graph, images = simplify(program.graph, every, plan.skip)
        read = reads(graph, [images[n] for n in every])
        cones = dict(zip([p.name for p in program.points], read, strict=True))
    if "semantic" in plan.skip:
        return {name: _structural(program, inputs) for name, inputs in cones.items()}
    with clock.stage("vra"):
        return dependence(program, cone_inputs=lambda point: cones[point.name], view=view)
