"""Leaving passes out costs pins and proofs, never a right answer."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from selc.diag.diagnostic import Sink
from selc.driver import describe
from selc.driver.ablation import ABLATIONS, pass_values
from selc.driver.pipeline import Clock, Plan, decide
from selc.passes.names import DECISIONS, PASS_NAMES
from selc.passes.simplify import PASSES

SOURCE = """\
def plan(m):
    big = m > 64
    width = 128 if big else 16
    wide = (256 if big else 32) // 2
    if big:
        stages = 2 if m > 32 else 4
    else:
        stages = 3
    odd = 1 if m * m % 4 == 2 else 0
    deep = min(m, 600) // 601
    assert width * stages <= 256
    return {"width": width, "wide": wide, "stages": stages, "odd": odd, "deep": deep}
"""
FACTS = """\
selection: {function: plan, scope: launch}
inputs: {m: {kind: runtime, type: int, range: [1, 512]}}
"""


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    (tmp_path / "plan.py").write_text(SOURCE)
    (tmp_path / "facts.yaml").write_text(FACTS)
    return Plan(f"{tmp_path}/plan.py:plan", (tmp_path / "facts.yaml",), ())


def skipping(plan: Plan, skip: frozenset[str]) -> Plan:
    return Plan(plan.target, plan.facts, plan.roots, skip=skip)


def answer(plan: Plan) -> dict[str, Any]:
    return describe.answer(decide(plan, None, Sink(), Clock()))


def paid(found: dict[str, Any]) -> list[str]:
    return [p["name"] for p in found["pins"] if not p["free"]]


def source() -> Any:
    space: dict[str, Any] = {}
    exec(SOURCE, space)
    return space["plan"]


@pytest.mark.parametrize("name", ABLATIONS)
def test_every_ablation_is_right(plan: Plan, name: str) -> None:
    from selc.ir.interp import run_program
    from selc.ir.value import value_key

    decided = decide(skipping(plan, ABLATIONS[name]), None, Sink(), Clock())
    found = describe.answer(decided)
    run = source()
    moved = {p: len({run(m)[p] for m in range(1, 513)}) > 1 for p in run(1)}
    for point in found["points"]:
        if point.get("decided", True):
            assert point["batch_dependent"] is moved[point["name"]], (name, point)
        assert point["batch_dependent"] or not moved[point["name"]]
    pins = [p for p in decided.residual.pins if not p.free]
    free = {p.name: p.constant for p in decided.residual.pins if p.free}
    for row in itertools.product(*[p.candidates.values or () for p in pins]):
        chosen = {**free, **dict(zip([p.name for p in pins], row, strict=True))}
        runs = [run_program(decided.program, {"m": m}, chosen) for m in range(1, 513, 7)]
        seen = {tuple(value_key(v) for v in r.points.values()) for r in runs if r.returned}
        assert len(seen) <= 1, (name, chosen)


def test_what_an_ablation_costs(plan: Plan) -> None:
    counts = {n: len(paid(answer(skipping(plan, s)))) for n, s in ABLATIONS.items()}
    assert counts["everything"] == 1
    assert counts["no cut"] == 3
    assert all(c >= counts["everything"] for c in counts.values())
    undecided = {
        n: [p["name"] for p in answer(skipping(plan, s))["points"] if not p.get("decided", True)]
        for n, s in ABLATIONS.items()
    }
    assert undecided["everything"] == []
    assert {"odd"} <= set(undecided["no semantic check"])
    assert len(undecided["folding only"]) > len(undecided["no semantic check"])


def test_without_ranges_no_pass_uses_them(plan: Plan) -> None:
    skip = frozenset({"ranges", "enumerate", "semantic"})
    without = {p["name"]: p["depends_on"] for p in answer(skipping(plan, skip))["points"]}
    with_ = {
        p["name"]: p["depends_on"] for p in answer(skipping(plan, skip - {"ranges"}))["points"]
    }
    assert with_["deep"] == []
    assert without["deep"] == ["m"]
    assert without["stages"] == ["m"]


def test_values_before_and_after_each_pass(plan: Plan) -> None:
    rows = pass_values(plan, Sink())
    assert rows[0].name == "lowered"
    names = [s.name for s in PASSES]
    first = [r.name for r in rows[1 : len(names) - 1]]
    assert first == [n for n in names if n not in ("enumerate", "dce")]
    for before, after in itertools.pairwise(rows):
        assert before.after == after.before
        assert after.moving <= before.moving
    assert rows[0].moving == 5
    assert rows[-1].moving == 3
    assert rows[-1].after < rows[0].before


def test_names() -> None:
    assert all(s <= {*PASS_NAMES, *DECISIONS} for s in ABLATIONS.values())
