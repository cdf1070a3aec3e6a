"""The traps, built by hand, against brute force."""

from __future__ import annotations

import contextlib

import pytest

from selc.ir.value import value_key
from selc.vra.candidates import all_candidates
from selc.vra.default import default_tuple
from selc.vra.dependence import dependence
from selc.vra.legality import legality
from tests.unit.vra import brute
from tests.unit.vra.build import program, residual
from tests.unit.vra.cases import CASES, Case


def with_assume(case: Case):
    """Builders put assumes in themselves; M16-fast narrows m only in the test."""

    def body(b):
        case.body(b)
        if case.name == "M16-fast":
            b.assume(b.input("m") <= 512)

    return body


@pytest.fixture(params=CASES, ids=lambda c: c.name)
def case(request):
    return request.param


BUDGETS = [1 << 18, 300, 8]


@pytest.mark.parametrize("budget", BUDGETS)
def test_candidates(case: Case, budget: int) -> None:
    p = program(with_assume(case), case.spec)
    rows = brute.admitted(case.spec, case.assume)
    want = brute.taken(case.run, rows)
    got = all_candidates(p, list(p.sites.values()), budget=budget)
    for name, c in got.items():
        seen = want.get(name, {})
        if c.values is None:
            assert len(seen) > 1024 or budget < 1000
            assert c.span is None or all(
                v in range(c.span[0], c.span[1] + 1, c.span[2]) for v, _ in seen.values()
            )
            continue
        keys = [brute.key(v) for v in c.values]
        assert set(seen) <= set(keys)
        if c.exact:
            assert set(seen) == set(keys), name
        if budget > 1000:
            assert c.exact
            total = sum(n for _, n in seen.values())
            shares = [
                seen[k][1] * sum(c.counts) for k in keys
            ]  # inputs that are not read are left out
            assert shares == [n * total for n in c.counts]
        for i, point in c.witness.items():
            run = brute.Run()
            assert case.assume(**point)
            with contextlib.suppress(*brute.FAULTS):
                case.run(run, **point)
            assert brute.key(run.seen[name]) == keys[i]


@pytest.mark.parametrize("budget", BUDGETS)
def test_dependence(case: Case, budget: int) -> None:
    p = program(with_assume(case), case.spec)
    batch = [n for n, (kind, _) in case.spec.items() if kind == "runtime"]
    got = dependence(p, budget=budget)
    for point in p.points:
        moved, shifts = brute.depends(case.run, case.spec, case.assume, batch, point.name)
        d = got[point.name]
        assert moved <= set(d.depends_on)
        assert d.batch_dependent or not shifts
        if d.decided:
            assert set(d.depends_on) == moved
            assert d.batch_dependent == shifts
        if budget > 1000:
            assert d.decided


@pytest.mark.parametrize("budget", BUDGETS)
def test_legality(case: Case, budget: int) -> None:
    p = program(with_assume(case), case.spec)
    found = all_candidates(p, [p.sites[n] for n in case.pins])
    r = residual(with_assume(case), case.spec, found, offers=case.offers)
    knobs = [n for n, (kind, _) in case.spec.items() if kind == "knob"]
    axes = {n: [*(found[n].values or ()), *case.offers.get(n, ())] for n in case.pins}
    want = brute.legal(case.run, case.spec, case.assume, axes, case.named, knobs)
    got = legality(r, max_points=budget)
    assert got.relation is not None
    rows = {tuple(map(value_key, row)) for row in got.relation}
    expected = {tuple(map(value_key, row)) for row in want}
    sampled = any(v.evidence == "sampled" for v in got.guards)
    if not sampled:
        assert rows <= expected
    assert expected <= rows or any(v.unknown for v in got.guards)
    if budget > 1000:
        assert rows == expected
        assert got.legal == len(expected)
        assert got.evidence in ("proved", "exhaustive") or not expected
    for v in got.guards:
        c = v.counterexample
        if c is not None:
            assert case.assume(**{n: {**c.parameters, **c.inputs}.get(n) for n in case.spec})


def test_default(case: Case) -> None:
    p = program(with_assume(case), case.spec)
    found = all_candidates(p, [p.sites[n] for n in case.pins])
    r = residual(with_assume(case), case.spec, found)
    got = legality(r)
    d = default_tuple(p, r, got)
    if got.legal == 0:
        assert d is None
        return
    assert d is not None
    assert got.relation is not None
    row = tuple(value_key(d.values[n]) for n in got.parameters)
    assert row in {tuple(map(value_key, x)) for x in got.relation}
