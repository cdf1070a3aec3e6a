"""Random programs with random classes: R against the interpreter, and classes that are kept."""

from __future__ import annotations

import itertools
from pathlib import Path

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from selc.cut.place import choose_pins
from selc.diag.diagnostic import Refused
from selc.diag.span import NOWHERE
from selc.frontend.bitclasses import add_class
from selc.ir.bitclass import BitClass
from selc.ir.dump import dump_program
from selc.ir.evaluate import compile_nodes
from selc.ir.interp import run_program
from selc.ir.op import TooWide
from selc.ir.program import Program
from selc.ir.read_whole import read_program
from selc.ir.residual import Pin, Residual
from selc.ir.value import Value, same, value_key
from selc.passes.residual import residualize
from tests.adapters import lower
from tests.classes.cases import CASES
from tests.classes.test_classes import write
from tests.unit.cut.programs import admitted, candidates, programs, request_of

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]


@st.composite
def classed(draw: st.DrawFn) -> Program:
    """A program some of whose choices stand in a class."""
    program: Program = draw(programs())
    runs = [r for p in admitted(program) if (r := run_program(program, p)).returned]
    assume(runs)
    whole = [
        q.name
        for q in program.points
        if q.role != "aux" and all(type(r.points[q.name]) is int for r in runs)
    ]
    assume(whole)
    fields = draw(st.lists(st.sampled_from(whole), min_size=1, max_size=2, unique=True))
    taken = {tuple([r.points[f] for f in fields]) for r in runs}
    others = {tuple([v + d for v in t]) for t in list(taken)[:3] for d in (-1, 1)}  # type: ignore[operator]  # ints
    tuples = sorted(taken | others)[:12]
    names = draw(st.lists(st.sampled_from(["a", "b", ""]), min_size=len(tuples), max_size=12))
    members = [(n, t) for n, t in zip(names, tuples, strict=False) if n]
    free = [q.name for q in program.points if q.name not in fields and q.role == "bits"]
    given_: list[tuple[str, Value]] = []
    if free and draw(st.integers(0, 3)) == 0:
        value = runs[0].points[free[0]]
        given_ = [(free[0], value)]
    unnamed = tuple([f for f in fields if not program.point(f).sites])
    add_class(
        program, BitClass("class.c", tuple(fields), tuple(members), tuple(given_), unnamed), NOWHERE
    )
    return program


def evaluate(r: Residual, nodes, p: dict[str, Value]) -> tuple[Value, ...]:
    names = list(r.graph.inputs)
    first = {n: i.domain[0] for n, i in r.graph.inputs.items()}
    return compile_nodes(r.graph, nodes, names)(*[{**first, **p}[n] for n in names])


def agrees(program: Program, r: Residual, row: dict[str, Value], p: dict[str, Value]) -> None:
    """One assignment on one admitted input: R against the interpreter."""
    pinned = run_program(program, p, row)
    env = {**p, **row}
    held = evaluate(r, [g.pinned for g in r.guards], env)
    if pinned.guard is not None and pinned.guard.kind == "assume":
        return
    assert all(v is True for v in held) == pinned.returned, (row, p, pinned.guard)
    if not pinned.returned:
        return
    values = evaluate(r, [n for _, n in r.points], env)
    for (point, _), value in zip(r.points, values, strict=True):
        assert same(value, pinned.points[point.name]), (point.name, row, p)
    if "class.c" in row:
        assert same(pinned.points["class.c"], row["class.c"])
    choices = {
        s: pinned.points[q.name]
        for q in reversed(program.points)
        if q.role != "aux" and q.name != "class.c"
        for s in q.sites
    }
    chosen = run_program(program, p, choices)
    if chosen.guard is not None and chosen.guard.kind == "assume":
        return
    both = [g.adaptive or g.pinned for g in r.guards if g.guard.origin != "class"]
    assert all(v is True for v in evaluate(r, both, env)) == (
        chosen.guard is None or chosen.guard.origin == "class"
    ), (row, p)


@settings(max_examples=25, deadline=None, suppress_health_check=SLOW)
@given(classed(), st.data())
def test_r_is_the_overwritten_program(program: Program, data: st.DataObject) -> None:
    taken = candidates(program)
    own = [s for f in program.classes[0].fields for s in program.point(f).sites]
    others = [*own, *own, *sorted(n for n in program.sites if n != "class.c")]
    chosen = data.draw(st.lists(st.sampled_from(others), max_size=2, unique=True)) if others else []
    pins = {}
    for name in ("class.c", *chosen):
        found = taken(program.sites[name])
        if found.values:
            pins[name] = Pin(name, program.sites[name], found, parameter=name)
    try:
        r = residualize(program, pins)
        rows = list(itertools.product(*[p.candidates.values or () for p in pins.values()]))[:16]
        for values in rows:
            for p in admitted(program)[:60]:
                agrees(program, r, dict(zip(pins, values, strict=True)), p)
    except TooWide:
        assume(False)


@settings(max_examples=25, deadline=None, suppress_health_check=SLOW)
@given(classed())
def test_the_batch_moves_no_class(program: Program) -> None:
    try:
        r = choose_pins(program, candidates(program), lambda s: False)
    except (Refused, TooWide):
        return
    paid = [p for p in r.pins if not p.free]
    fixed = {p.name: p.constant for p in r.pins if p.free and p.at is None}
    for values in list(itertools.product(*[p.candidates.values or () for p in paid]))[:24]:
        seen: dict[object, object] = {}
        row = dict(zip([q.name for q in paid], values, strict=True))
        for p in admitted(program):
            run = run_program(program, p, {**fixed, **row})
            if run.returned:
                bits = tuple(
                    value_key(run.points[q.name]) for q in program.points if q.role == "bits"
                )
                assert seen.setdefault(request_of(program, p), bits) == bits, (values, p)


@settings(max_examples=15, deadline=None, suppress_health_check=SLOW)
@given(classed())
def test_classes_read_back(program: Program) -> None:
    again = read_program(dump_program(program))
    text = dump_program(again)  # numbered without gaps
    assert dump_program(read_program(text)) == text
    assert [(c.name, c.fields, c.members, c.given, c.unnamed) for c in again.classes] == [
        (c.name, c.fields, c.members, c.given, c.unnamed) for c in program.classes
    ]


def test_a_field_that_is_pinned_itself_keeps_its_pin(tmp_path: Path) -> None:
    case = CASES["two classes"]
    program = lower(f"{tmp_path / 'plan.py'}:moe", write(case, tmp_path))
    taken = candidates(program)
    names = ("class.gemm", "moe.bm")
    pins = {n: Pin(n, program.sites[n], taken(program.sites[n]), parameter=n) for n in names}
    r = residualize(program, pins)
    kept = set()
    for bm, wanted, p in itertools.product((16, 32, 64, 128), ("small", "large"), range(1, 97, 5)):
        row: dict[str, Value] = {"moe.bm": bm, "class.gemm": wanted}
        agrees(program, r, row, {"m": p})
        run = run_program(program, {"m": p}, row)
        if run.returned:
            assert run.points["bm"] == bm
            kept.add((bm, wanted))
    assert kept == {(16, "small"), (32, "small"), (64, "large"), (128, "large")}
