"""The executor, alone and with a worker process that every kind of kernel failure hits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from selc.diag.diagnostic import Refused
from selc.harness.call import Call, Request
from selc.harness.executor import Job, LocalExecutor, job_of
from selc.harness.stats import median
from tests.harness.fake_kernels import SUM, Sum

NAME = "tests.harness.fake_kernels:SUM"
CALL = Call("sum", {"m": 3}, {}, (Request(0, 2, 2), Request(1, 1, 1)))
OTHER = Call("sum", {"m": 4}, {}, (Request(0, 4, 4),))


def job(mode: str, call: Call = CALL, tile: int = 1) -> Job:
    return job_of(SUM, call, {"tile": tile, "mode": mode, "unread": 5})


@pytest.fixture(scope="module")
def isolated() -> Iterator[LocalExecutor]:
    executor = LocalExecutor({"sum": NAME}, "cpu", timeout=2.0)
    yield executor
    executor.close()


def test_the_same_launch_has_one_key() -> None:
    assert job("").key == job_of(SUM, CALL, {"mode": "", "tile": 1, "unread": 6}).key
    assert job("").key != job("", OTHER).key
    assert "unread" not in job("").choice


@pytest.mark.parametrize("isolate", [False, True])
def test_times_are_measured_round_by_round(isolate: bool) -> None:
    executor = LocalExecutor({"sum": SUM}, "cpu", isolate=isolate)
    try:
        jobs = [job("", tile=1), job("", tile=300), job("", OTHER)]
        samples = {s.job.key: s for s in executor.measure(jobs, 4)}
        described = executor.describe()
    finally:
        executor.close()
    assert [len(samples[j.key].seconds) for j in jobs] == [4, 4, 4]
    assert all(not s.failure and s.how.startswith("mean of") for s in samples.values())
    quick, slow = (median(samples[j.key].seconds) for j in jobs[:2])
    assert slow > 3e-3 > quick
    assert (described["kind"], described["threads"]) == ("cpu", 1)


def test_kernels_may_bring_a_timer_for_some_calls() -> None:
    """It is made after the check, and what it gives is what was measured."""

    class Several(Sum):
        def timer(
            self, choice: Mapping[str, Any], inputs: dict[str, Any]
        ) -> tuple[Callable[[], float], str] | None:
            if inputs["call"] is OTHER:
                return None
            return lambda: choice["tile"] * 2.0, "on two devices"

    kernels = Several()
    executor = LocalExecutor({"sum": kernels}, "cpu", isolate=False)
    found = list(executor.measure([job("", tile=3), job("wrong"), job("", OTHER)], 2))
    assert (found[0].seconds, found[0].how) == ((6.0, 6.0), "on two devices")
    assert found[1].failure.startswith("wrong result")
    assert found[2].how.startswith("mean of")


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("wrong", "wrong result: its relative error is"),
        ("nan", "wrong result: 1 of 3 values are NaN"),
        ("unwritten", "wrong result: 1 of 3 values are NaN, infinite or were never written"),
        ("memory", "out of memory"),
        ("unsupported", "not supported: needs a tile below 64"),
        ("error", "ValueError: first line"),
        ("leave", "SystemExit: 3"),
        ("interrupt", "KeyboardInterrupt"),
    ],
)
def test_failures_that_raise(isolated: LocalExecutor, mode: str, words: str) -> None:
    bad, good = isolated.measure([job(mode), job("")], 2)
    assert bad.failure.startswith(words)
    assert (bad.seconds, good.failure, len(good.seconds)) == ((), "", 2)


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("exit", "the worker process ended with status 7 (about to leave)"),
        ("segfault", "the worker process was ended by SIGSEGV"),
        ("orphan", "the worker process ended with status 8"),
        ("hang", "no answer within 2 s"),
    ],
)
def test_failures_that_end_the_process(isolated: LocalExecutor, mode: str, words: str) -> None:
    samples = {s.job.key: s for s in isolated.measure([job(mode), job(""), job("", OTHER)], 2)}
    assert samples[job(mode).key].failure == words
    assert len(samples[job("").key].seconds) == len(samples[job("", OTHER).key].seconds) == 2
    (again,) = isolated.measure([job(mode, OTHER)], 2)
    assert again.failure == f"not run: on another call {words}"


def test_a_kernel_that_dies_while_it_is_timed(isolated: LocalExecutor, tmp_path) -> None:
    fuse = job_of(SUM, CALL, {"tile": 2, "mode": f"fuse {tmp_path / 'fuse'}"})
    samples = {s.job.key: s for s in isolated.measure([fuse, job("", tile=3)], 5)}
    assert "status 9" in samples[fuse.key].failure
    assert len(samples[job("", tile=3).key].seconds) == 5


def test_a_call_that_cannot_be_prepared(isolated: LocalExecutor) -> None:
    broken = Call("sum", {"m": 1}, {}, (Request(0, 1, 1),), {"broken_prepare": True})
    bad, good = isolated.measure([job("", broken), job("")], 1)
    assert bad.failure == "preparing the call: RuntimeError: no such layout"
    assert not good.failure


def test_the_deadline_ends_a_step(isolated: LocalExecutor) -> None:
    isolated.deadline = time.monotonic() + 1.0
    try:
        samples = list(isolated.measure([job("", tile=1), job("hang", tile=77)], 1))
        assert list(isolated.measure([job("", tile=4)], 1)) == []
    finally:
        isolated.deadline = None
    assert all(not s.failure for s in samples)


def test_an_object_that_cannot_be_sent() -> None:
    class Local:
        pass

    with pytest.raises(Refused, match="cannot be sent to a worker process"):
        LocalExecutor({"sum": Local()}, "cpu")


def test_kernels_that_only_the_worker_fails_to_load() -> None:
    executor = LocalExecutor({"sum": "tests.harness.fake_kernels:NOPE"}, "cpu")
    with pytest.raises(Refused, match="has no `NOPE`"):
        list(executor.measure([job("")], 1))


def test_choices_are_compiled_ahead_once(tmp_path) -> None:
    path = tmp_path / "warmed"
    calls = [Call("sum", {"m": m}, {}, (Request(0, m, m),), {"warmed": str(path)}) for m in (1, 2)]
    jobs = [job_of(SUM, call, {"tile": t}) for t in (*range(8), 999) for call in calls]
    executor = LocalExecutor({"sum": NAME}, "cpu", timeout=20.0)
    ticks: list[tuple[int, int]] = []
    try:
        executor.compile_ahead(jobs[:14], lambda n, of: ticks.append((n, of)))
        assert not path.exists()  # not worth it
        executor.compile_ahead(jobs, lambda n, of: ticks.append((n, of)))
        assert sorted(path.read_text().split("\n"))[1:] == [f"{t} 1" for t in range(8)]
        executor.compile_ahead(jobs, lambda n, of: ticks.append((n, of)))
        assert len(path.read_text().split()) == 16
    finally:
        executor.close()
    assert {of for _, of in ticks} == {9}
