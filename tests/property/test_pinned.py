"""Random selections, pinned: R does what the overwritten program does, and bits do not move.

For every legal tuple and many batches: the points of R are those of the interpreter on G0 with the
pins' sites overwritten (and those of CPython, where it can overwrite them); if the guards of R hold
then the program returns; and whatever the batch, the `bits` points are the same.
"""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from selc.diag.diagnostic import Refused, Sink
from selc.driver.pipeline import Clock, Decided, Plan, decide
from selc.ir import interp
from selc.ir.dump import dump_program, dump_residual
from selc.ir.evaluate import compile_nodes
from selc.ir.op import TooWide
from selc.ir.value import same, value_key
from selc.ir.verify import verify_residual
from tests.property.sources import Source, source
from tests.property.test_sources import FACTS, INPUTS, Observer

MAX_TUPLES = 6


DOMAIN = [(m, n) for m in range(-3, 13) for n in range(71)]
MAX_ASSIGNMENTS = 200


def check_candidates(made: Source, decided: Decided) -> None:
    """Candidates are the values that CPython sees, an input on which it raises counting too."""
    pins = {p.name: p for p in decided.residual.pins if p.name in made.sites and not p.free}
    seen: dict[str, dict[object, object]] = {name: {} for name in pins}
    observer = Observer(made.observed)
    for m, n in DOMAIN:
        observer.run(m, n, {})
        for name in pins:
            if name in observer.seen:
                value = observer.seen[name]
                seen[name][value_key(value)] = value
    for name, pin in pins.items():
        if pin.candidates.exact:
            assert pin.candidates.values is not None
            assert {value_key(v) for v in pin.candidates.values} == set(seen[name]), name


def check_legality(decided: Decided) -> None:
    """An assignment is legal iff every guard holds in every reading on every batch."""
    residual, found = decided.residual, decided.legality
    if found.relation is None or not 0 < found.assignments <= MAX_ASSIGNMENTS:
        return
    nodes = [r for g in residual.guards for r in g.readings]
    assumed = [node for _, node in residual.assumes]
    inputs = [k for k in residual.graph.inputs if k not in residual.parameters]
    names = [*inputs, *found.parameters]
    run = compile_nodes(residual.graph, [*nodes, *assumed], names)
    legal = {value_key(tuple(row)) for row in found.relation}
    for row in itertools.product(*found.axes):
        holds = True
        for m, n in DOMAIN:
            here = {"m": m, "n": n}
            values = run(*[here[k] for k in inputs], *row)
            admitted = all(v is True for v in values[len(nodes) :])
            if admitted and any(v is not True for v in values[: len(nodes)]):
                holds = False
                break
        assert holds == (value_key(tuple(row)) in legal), row


def check(made: Source, decided: Decided, rng: random.Random) -> None:
    """Some legal tuples on all batches."""
    residual, program, relation = decided.residual, decided.program, decided.legality.relation
    verify_residual(residual)
    check_candidates(made, decided)
    check_legality(decided)
    observer = Observer(made.observed)
    rows = rng.sample(relation, min(MAX_TUPLES, len(relation))) if relation else []
    for row in rows:
        tuple_ = dict(zip(decided.legality.parameters, row, strict=True))
        overwrites = {p.name: tuple_[p.parameter] for p in residual.pins if p.parameter is not None}
        free = {p.name: p.constant for p in residual.pins if p.free and p.at is None}
        bits: dict[str, object] = {}
        for m, n in INPUTS:
            here = {"m": m, "n": n}
            inputs = {k: v for k, v in here.items() if k in program.graph.inputs}
            want = interp.run_program(program, inputs, {**overwrites, **free})
            nodes = [node for _, node in residual.points]
            nodes += [r for g in residual.guards for r in g.readings]
            nodes += [node for _, node in residual.assumes]
            values = interp.run(residual.graph, nodes, {**inputs, **tuple_})
            points, guards = values[: len(residual.points)], values[len(residual.points) :]
            if any(g is not True for g in guards):
                continue
            note(f"f({m}, {n}) with {overwrites}")
            assert want.returned, (row, m, n, want.guard)
            for (point, _), value in zip(residual.points, points, strict=True):
                assert same(value, want.points[point.name]), (point.name, m, n, value, want.points)
                if point.role == "bits":
                    assert same(bits.setdefault(point.name, value), value), (point.name, m, n)
            if set(overwrites) | set(free) <= set(made.sites):
                seen = observer.run(m, n, {**overwrites, **free})
                assert seen is not None, (m, n)
                assert all(same(seen[k], want.points[k]) for k in seen), (m, n, seen)


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32))
def test_pinned(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    rng = random.Random(seed)
    made = source(rng, narrow=True)
    folder: Path = tmp_path_factory.mktemp("pinned")
    path, facts = folder / "case.py", folder / "facts.yaml"
    path.write_text(made.plain, encoding="utf-8")
    facts.write_text(FACTS, encoding="utf-8")
    note(made.plain)
    try:
        decided = decide(Plan(str(path), (facts,), ()), None, Sink(), Clock())
        note(dump_program(decided.program))
        note(dump_residual(decided.residual))
        check(made, decided, rng)
    except (Refused, TooWide):
        return
