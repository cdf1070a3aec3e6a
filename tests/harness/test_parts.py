"""The harness's smaller parts: results compared, tuples picked, progress told, totals made."""

from __future__ import annotations

import io
import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from selc.harness.call import Call, Request
from selc.harness.candidates import Candidate, spread_out
from selc.harness.executor import Job
from selc.harness.progress import Progress
from selc.harness.setup import settings_of
from selc.harness.summary import Plan, Times, ratio, summarize
from selc.harness.verify import difference, poisoned, size_of

GOOD = torch.randn(5000, 16, generator=torch.Generator().manual_seed(0))


def changed(place: tuple[int, ...], value: float) -> torch.Tensor:
    out = GOOD.clone()
    out[place] = value
    return out


@pytest.mark.parametrize(
    ("out", "words"),
    [
        (GOOD, ""),
        (GOOD.to(torch.bfloat16), ""),
        (GOOD * 1.01, ""),
        (GOOD * 1.03, "its relative error is 0.03, allowed is 0.02"),
        (torch.zeros_like(GOOD), "its relative error is 1,"),
        (changed((7, 3), math.nan), "1 of 80000 values are NaN"),
        (changed((7, 3), math.inf), "1 of 80000 values are NaN, infinite"),
        (changed((4321,), 0.0), "row 4321 of 5000 has a relative error of 1, allowed is 0.16"),
        (GOOD[:-1], "its shape is (4999, 16), the reference's (5000, 16)"),
        (None, "the kernel returned a NoneType, not a tensor"),
    ],
)
def test_results_are_compared_as_a_whole_and_by_row(out: Any, words: str) -> None:
    found = difference(out, GOOD.double())
    assert found.startswith(words)
    assert bool(found) == bool(words)


def test_a_reference_of_zeros() -> None:
    zeros = torch.zeros(4, 4, dtype=torch.float64)
    assert difference(torch.zeros(4, 4), zeros) == ""
    assert difference(torch.ones(4, 4), zeros)


def test_new_memory_is_poisoned_and_only_there() -> None:
    with poisoned():
        assert torch.empty(1000).isnan().all()
        assert torch.empty_like(GOOD).isnan().all()
    assert torch.get_deterministic_debug_mode() == 0
    with pytest.raises(RuntimeError, match="inside"), poisoned():
        raise RuntimeError("inside")
    assert torch.get_deterministic_debug_mode() == 0


def test_sizes() -> None:
    @dataclass
    class Inputs:
        x: torch.Tensor
        more: list[Any]

    x = torch.zeros(10, dtype=torch.float32)
    assert size_of(Inputs(x, [x, {"y": x}, 7, "text"])) == 120


def test_tuples_are_spread_out() -> None:
    every = [{"a": a, "b": b, "c": c} for a in range(2) for b in range(8) for c in range(64)]
    numbered = list(enumerate(every))
    picked = spread_out(numbered, 64)
    assert picked == spread_out(numbered, 64) == sorted(picked, key=lambda each: each[0])
    assert len({n for n, _ in picked}) == 64
    for name, size in (("a", 2), ("b", 8), ("c", 64)):
        counts = Counter(t[name] for _, t in picked)
        assert len(counts) == size
        assert max(counts.values()) - min(counts.values()) <= 2
    assert spread_out(numbered[:5], 64) == numbered[:5]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    progress = Progress(Terminal(), budget=60)
    for done in range(5):
        progress("measuring", done, 8)
        now[0] += 5
    shown = progress.stream.getvalue().split("\r")  # type: ignore[attr-defined]
    assert shown[-1].strip() == (
        "[############............] measuring: 4 of 8, 20 s of 60, about 20 s left"
    )
    progress.clear()
    assert progress.stream.getvalue().endswith(" \r")  # type: ignore[attr-defined]


def test_progress_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    stream = io.StringIO()
    progress = Progress(stream)
    for done in range(1, 31):
        progress("measuring", done, 30)
        now[0] += 1
    assert stream.getvalue().splitlines() == [
        "measuring: 11 of 30, 10 s, about 19 s left",
        "measuring: 21 of 30, 20 s, about 9 s left",
    ]
    stream.close()
    now[0] += 60
    progress("measuring", 30, 30)  # a stream that is gone ends nothing


def test_settings() -> None:
    assert settings_of(["a=1", "b=x=y", 'c="1"', "d=[1, 2]", "e="]) == {
        "a": 1, "b": "x=y", "c": "1", "d": [1, 2], "e": "",
    }  # fmt: skip


def test_totals_are_of_calls_that_all_were_measured_on() -> None:
    calls = tuple(
        (Call("f", {"m": m}, {}, (Request(0, m, m),)), n) for m, n in ((1, 10.0), (2, 4.0))
    )
    names = ("stock", "default", "#1", "#2")
    jobs = tuple(tuple(Job("f", call, {"name": name}) for call, _ in calls) for name in names[1:])
    candidates = tuple(Candidate(n, None if n == "stock" else {"n": n}) for n in names)
    plan = Plan("f", calls, ((100, 1), (200, 1)), candidates, 3, ((), *jobs), {"stock": "no"})
    times = {
        jobs[0][0].key: Times([1.0, 2.0, 3.0]),
        jobs[1][0].key: Times([0.5, 1.0, 9.0]),
        jobs[2][0].key: Times(failure="out of memory"),
        jobs[0][1].key: Times([5.0]),
    }
    summary = summarize(plan, times)
    assert summary.measured == (0,)
    assert summary.share == 10 / 14
    totals = {line.candidate.name: (line.total, line.failure) for line in summary.lines}
    assert totals == {
        "#1": (10.0, ""),
        "default": (20.0, ""),
        "#2": (None, "out of memory"),
        "stock": (None, "no"),
    }
    first = summary.lines[0]
    assert first.candidate.name == "#1"
    assert ratio(first, summary.named("default")) == 0.5
    assert ratio(first, summary.named("stock")) is None
    assert first.bandwidth == 100.0
    times[jobs[1][1].key] = Times([2.0])
    times[jobs[2][1].key] = Times([2.0])
    assert summarize(plan, times).measured == (0, 1)
    assert summarize(plan, times).lines[0].total == 10.0 + 8.0
    assert len(plan.distinct()) == 6
