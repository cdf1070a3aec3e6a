"""`selc explain TARGET --value NAME`: how the batch gets to a value, and what cuts it off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from selc.diag.diagnostic import Diagnostic, Refused, Sink
from selc.diag.outcome import Outcome
from selc.diag.span import NOWHERE, Span
from selc.diag.suggest import did_you_mean
from selc.driver.pipeline import Plan, load
from selc.ir.value import to_json

if TYPE_CHECKING:
    from selc.cut.alternatives import Alternative
    from selc.cut.network import Network
    from selc.cut.price import Market
    from selc.ir.graph import Node
    from selc.ir.program import Mark, Program
    from selc.ir.residual import Pin, Residual
    from selc.vra.pair import Pair
    from selc.vra.view import View

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Step:
    """One value on the way from the batch."""

    name: str
    kind: str
    span: Span


@dataclass(frozen=True, slots=True)
class Asked:
    """The value that is asked about: where it comes to be."""

    name: str
    kind: str  # 'bits' | 'neutral' | 'aux' for a point, else the kind of the site
    marks: tuple[Mark, ...]
    is_point: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Why:
    """Everything there is to say of a value."""

    program: Program
    asked: Asked
    moved: bool | None  # None: not decided
    because: str
    path: tuple[Step, ...]
    pair: Pair | None
    pins: tuple[Pin, ...]
    cuts: tuple[Alternative, ...]
    no_cut: str
    chosen: tuple[Pin, ...]


def run(plan: Plan, name: str) -> Outcome:
    """Explain one value of a selection."""
    from selc.driver.why_text import as_json, as_text

    sink = Sink()
    try:
        found = explained(plan, name, sink)
    except Refused as refused:
        items = [*sink, *(d for d in refused.diagnostics if d not in sink.items)]
        return Outcome(2, diagnostics=items)
    return Outcome(0, as_text(found), as_json(found), list(sink))


def explained(plan: Plan, name: str, sink: Sink) -> Why:
    """Look at one value.

    Raises:
        Refused: the input is wrong or not supported, or there is no such value.
    """
    from selc.driver import findings
    from selc.vra.search import admitted_example
    from selc.vra.view import of_program

    _, program = load(plan, sink)
    asked = _asked(program, name)
    view = of_program(program)
    admitted = admitted_example(view)
    if admitted.example is None and admitted.decided:
        raise Refused(findings.empty_domain(program))
    moved, because, pair = _moved(program, view, asked, plan)
    net = _network(program, [m.node for m in asked.marks], plan)
    path = _path(program, net, asked) if moved is not False else ()
    market = _market(program, view, plan)
    residual, no_cut = _residual(program, market, plan)
    pins: tuple[Pin, ...] = ()
    cuts: tuple[Alternative, ...] = ()
    chosen: tuple[Pin, ...] = ()
    if residual is not None:
        from selc.cut.alternatives import alternatives

        pins = _pins_on(program, residual, asked)
        cuts = tuple(alternatives(program, market, residual, plan.skip))
        chosen = tuple([p for p in residual.pins if not p.free])
    return Why(program, asked, moved, because, path, pair, pins, cuts, no_cut, chosen)


def _asked(program: Program, name: str) -> Asked:
    from selc.ir.program import Mark

    graph = program.graph
    for point in program.points:
        if point.name == name:
            span = next((program.sites[s].span for s in point.sites), NOWHERE)
            span = span if span != NOWHERE else graph.origin.get(point.node.id, NOWHERE)
            mark = Mark(point.node, graph.const(True), len(program.guards))
            return Asked(name, point.role, (mark,), is_point=True, span=span)
    site = program.sites.get(name)
    if site is None:
        known = [*(p.name for p in program.points), *program.sites]
        hint = did_you_mean(name, known) or f"the points are: {', '.join(known[:8])}"
        raise Refused(Diagnostic("SEL909", f"there is no value `{name}`", help=hint))
    return Asked(name, site.kind, tuple(site.marks), is_point=False, span=site.span)


def _moved(
    program: Program, view: View, asked: Asked, plan: Plan
) -> tuple[bool | None, str, Pair | None]:
    """Whether two admitted batches can differ there, why (not), and two that do."""
    from selc.ir.interp import run_program
    from selc.ir.program import Site
    from selc.ir.value import same
    from selc.passes.readings import site_value
    from selc.vra import smt
    from selc.vra.pair import differing

    batch = [n for n, i in program.graph.inputs.items() if i.is_batch(program.scope)]
    stand_in = Site(asked.name, asked.kind, asked.span, list(asked.marks))
    nodes, paths = [m.node for m in asked.marks], [m.path for m in asked.marks]
    value = site_value(view.graph, stand_in, nodes, paths)
    view.extend()
    if value.is_const:
        return False, f"it is always {value.attr!r}", None
    if not view.masks[value.id] & view.mask_of(batch):
        return False, "it reads no batch input", None
    if "semantic" in plan.skip:
        return None, "it reads batch inputs; whether they move it was not asked", None
    found = differing(program, view, asked.marks, asked.is_point, batch)
    if found.pair is not None:
        pair = found.pair
        for env, shown in zip((pair.first, pair.second), pair.values, strict=True):
            seen = run_program(program, env)
            values = seen.points if asked.is_point else seen.sites
            assert same(values[asked.name], shown), "the pair does not show what it should"
        return True, "two admitted batches with the same request differ there", pair
    if found.complete:
        return False, "every admitted batch was tried: none differ there", None
    last = max(m.guards_before for m in asked.marks)
    guards = [n for n in view.holds[:last] if n is not None]
    if smt.independent(view, value, [*guards, *view.admits], batch):
        return False, "proved: no two admitted batches differ there", None
    return None, "it was not decided whether two batches can differ there", None


def _network(program: Program, nodes: Sequence[Node], plan: Plan) -> Network:
    from selc.cut.network import network, proved
    from selc.passes.simplify import simplify

    graph, images = simplify(program.graph, nodes, plan.skip)
    return network(program, nodes, proved(graph, images, program.scope), frozenset())


def _path(program: Program, net: Network, asked: Asked) -> tuple[Step, ...]:
    """The shortest way from a batch input, as far as the source shows it."""
    graph = program.graph
    out: list[Step] = []
    for v in net.path(set()):
        node = graph.nodes[v]
        here = [s for s in program.sites.values() if any(m.node.id == v for m in s.marks)]
        here.sort(key=lambda s: (not s.named, s.name))
        if node.op.value == "input":
            entry = graph.inputs[str(node.attr)]
            out.append(Step(entry.name, entry.kind, NOWHERE))
        elif here:
            site = here[0]
            out.append(Step(site.name, site.kind, site.span))
        elif (span := graph.origin.get(v, NOWHERE)) != NOWHERE and span.path:
            out.append(Step("", "expression", span))
    distinct: list[Step] = []
    for step in out:
        if not distinct or step.span == NOWHERE or step.span != distinct[-1].span:
            distinct.append(step)
        elif step.name and not distinct[-1].name:
            distinct[-1] = step
    if asked.is_point and (not distinct or distinct[-1].span != asked.span):
        distinct.append(Step(asked.name, f"point, {asked.kind}", asked.span))
    return tuple(distinct)


def _market(program: Program, view: View, plan: Plan) -> Market:
    from selc.cut.price import Market
    from selc.driver.pipeline import _batch_point
    from selc.vra.candidates import all_candidates
    from selc.vra.injective import all_injective

    sites = list(program.sites.values())
    taken = all_candidates(program, sites, plan.max_candidates, view=view)
    determined = all_injective(program, sites, view=view)
    return Market(
        program,
        lambda site: taken[site.name],
        lambda site: bool(determined[site.name]),
        lambda: _batch_point(program, view),
        plan.max_candidates,
    )


def _residual(program: Program, market: Market, plan: Plan) -> tuple[Residual | None, str]:
    from selc.cut.place import choose_pins

    try:
        made = choose_pins(
            program, market.candidates, market.is_injective, market.batch_point,
            plan.max_candidates, plan.skip,
        )  # fmt: skip
    except Refused as refused:
        return None, refused.diagnostics[0].message
    return made, ""


def _pins_on(program: Program, residual: Residual, asked: Asked) -> tuple[Pin, ...]:
    """The pins that the value reads, or is."""
    inside = {n.id for n in program.graph.cone([m.node for m in asked.marks])}
    out = [
        p for p in residual.pins if p.name == asked.name
        or any(m.node.id in inside for m in p.site.marks)
    ]  # fmt: skip
    for cls in program.classes:
        if asked.name in cls.fields:
            out += [p for p in residual.pins if p.name == cls.name and p not in out]
    return tuple(out)


def grid_of(pins: Sequence[Pin]) -> int:
    """How many assignments some pins have."""
    out = 1
    for pin in pins:
        out *= count_of(pin)
    return out


def count_of(pin: Pin) -> int:
    """How many values a pin ranges over."""
    found = pin.candidates
    if found.values is not None:
        return len(found.values) + len(pin.offered)
    if found.span is None:
        return 0
    low, high, step = found.span
    return (high - low) // step + 1 + len(pin.offered)


def call_of(program: Program, env: Mapping[str, Any]) -> dict[str, Any]:
    """An input as the arguments of a call."""
    from selc.driver.arguments import arguments, sequence_of
    from selc.ir.domain import Input

    out: dict[str, Any] = {}
    for each in arguments(program):
        if isinstance(each, Input):
            out[each.name] = to_json(env[each.name])
        else:
            out[each.name] = sequence_of(each, {h: env[n] for h, n in each.aggregates.items()})
    return out
