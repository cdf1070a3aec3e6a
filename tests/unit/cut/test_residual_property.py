"""R is the program with its sites overwritten, and the pins keep the batch out of the choices."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from selc.cut.place import choose_pins
from selc.diag.diagnostic import Refused
from selc.ir.evaluate import compile_nodes
from selc.ir.interp import run_program
from selc.ir.op import TooWide
from selc.ir.program import Program
from selc.ir.residual import Pin, Residual
from selc.ir.value import UNDEF, Value, same, value_key
from selc.passes.depend import reads
from selc.passes.residual import residualize
from tests.unit.cut.programs import admitted, candidates, programs, request_of

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]


def evaluate(r: Residual, nodes, p: dict[str, Value]) -> tuple[Value, ...]:
    names = list(r.graph.inputs)
    first = {n: i.domain[0] for n, i in r.graph.inputs.items()}
    return compile_nodes(r.graph, nodes, names)(*[{**first, **p}[n] for n in names])


def agrees(program: Program, r: Residual, row: dict[str, Value], p: dict[str, Value]) -> None:
    """One assignment on one input: R against the interpreter with overwrites."""
    pinned = run_program(program, p, row)
    held = evaluate(r, [g.pinned for g in r.guards], {**p, **row})
    requires = [g for g in program.guards if g.kind == "require"]
    assumes_hold = all(
        run_program(program, p, row).failed != k
        for k, g in enumerate(program.guards)
        if g.kind == "assume"
    )
    if not assumes_hold:
        return
    assert (all(v is True for v in held)) == pinned.returned, (row, p)
    assert len(held) == len(requires)
    if not pinned.returned:
        return
    for (point, _), value in zip(
        r.points, evaluate(r, [n for _, n in r.points], {**p, **row}), strict=True
    ):
        assert same(value, pinned.points[point.name]), (point.name, row, p)
    choices = {
        s: pinned.points[q.name]
        for q in reversed(program.points)
        if q.role != "aux"
        for s in q.sites
    }
    chosen = run_program(program, p, choices)
    if chosen.guard is not None and chosen.guard.kind == "assume":
        return
    both = [g.adaptive or g.pinned for g in r.guards]
    assert all(v is True for v in evaluate(r, both, {**p, **row})) == chosen.returned, (row, p)


@settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
@given(programs(), st.data())
def test_r_is_the_overwritten_program(program, data) -> None:
    names = sorted(program.sites)
    taken = candidates(program)
    assume(names)
    pins = {}
    for name in data.draw(st.lists(st.sampled_from(names), max_size=2, unique=True)):
        found = taken(program.sites[name])
        if found.values:
            pins[name] = Pin(name, program.sites[name], found, parameter=name)
    try:
        r = residualize(program, pins)
        rows = list(itertools.product(*[p.candidates.values or () for p in pins.values()]))[:12]
        for values in rows:
            for p in admitted(program)[:60]:
                agrees(program, r, dict(zip(pins, values, strict=True)), p)
    except TooWide:
        assume(False)


@settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
@given(programs())
def test_the_batch_moves_no_choice(program) -> None:
    try:
        r = choose_pins(program, candidates(program), lambda s: False)
    except (Refused, TooWide):
        return
    paid = [p for p in r.pins if not p.free]
    fixed = {p.name: p.constant for p in r.pins if p.free}
    for values in list(itertools.product(*[p.candidates.values or () for p in paid]))[:24]:
        seen: dict[object, object] = {}
        for p in admitted(program):
            run = run_program(
                program, p, {**fixed, **dict(zip([q.name for q in paid], values, strict=True))}
            )
            if run.returned:
                bits = tuple(
                    value_key(run.points[q.name]) for q in program.points if q.role == "bits"
                )
                assert seen.setdefault(request_of(program, p), bits) == bits, (values, p)


@settings(max_examples=80, deadline=None, suppress_health_check=SLOW)
@given(programs())
def test_not_more_pins_than_the_best(program) -> None:
    """No single site does where the cut takes several (asserts aside: they hide what differs)."""
    program.guards = [g for g in program.guards if g.origin == "partial"]
    try:
        if not all(run_program(program, p).returned for p in admitted(program)):
            return
        r = choose_pins(program, candidates(program), lambda s: False)
    except (Refused, TooWide):
        return
    paid = [p for p in r.pins if not p.free]
    if len(paid) < 2:
        return
    taken = candidates(program)
    own = {n for n, i in program.graph.inputs.items() if i.kind == "request"}
    for site in program.sites.values():
        if program.scope == "request" and reads(program.graph, [site.marks[0].node])[0] & own:
            continue  # not pinned where another cut exists
        found = taken(site)
        for value in found.values or (UNDEF,):
            if value is UNDEF:
                break
            seen: dict[object, object] = {}
            if not all(
                seen.setdefault(request_of(program, p), bits) == bits
                for p in admitted(program)
                if (run := run_program(program, p, {site.name: value})).returned
                for bits in [
                    tuple(value_key(run.points[q.name]) for q in program.points if q.role == "bits")
                ]
            ):
                break
        else:
            pytest.fail(f"{site.name} alone is enough, not {[p.name for p in paid]}")
