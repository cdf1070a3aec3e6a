"""How launches are timed, on a real GPU and on a stand-in that keeps a clock of its own."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from selc.harness.device import Device
from selc.harness.executor import LocalExecutor, job_of
from selc.harness.stats import median, quantile, spread
from selc.harness.timing import MOST_SETS, Clock, ceilings

LAUNCH = 5e-6


class Gpu:
    """A stream that runs what it is given at once; what was done stands in `log`."""

    def __init__(self) -> None:
        self.now = 0.0
        self.log: list[str] = []
        self.capturing: list[float] | None = None
        self.capturable = True
        self.waits = False
        self.forbidden: int | str = 0

    def forbid(self, mode: int | str) -> None:
        self.forbidden = mode

    def work(self, name: str, seconds: float) -> None:
        if self.capturing is not None:
            if not self.capturable:
                raise RuntimeError("operation not permitted when stream is capturing")
            self.capturing.append(seconds)
            return
        if self.waits and self.forbidden:
            raise RuntimeError("called a synchronizing CUDA operation")
        self.now += seconds
        self.log.append(name)

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        gpu = self

        class Event:
            def __init__(self, enable_timing: bool) -> None:
                self.at = 0.0

            def record(self) -> None:
                self.at = gpu.now
                gpu.log.append("event")

            def synchronize(self) -> None: ...

            def elapsed_time(self, other: Event) -> float:
                return (other.at - self.at) * 1e3

        class Graph:
            def capture_begin(self, pool: Any) -> None:
                gpu.capturing = []

            def capture_end(self) -> None:
                self.work, gpu.capturing = gpu.capturing, None

            def replay(self) -> None:
                assert self.work is not None
                gpu.work(f"graph of {len(self.work)}", sum(self.work))

        flush = SimpleNamespace(zero_=lambda: gpu.work("flush", 30e-6))
        for name, value in {
            "Event": Event,
            "CUDAGraph": Graph,
            "Stream": lambda: None,
            "stream": lambda s: __import__("contextlib").nullcontext(),
            "graph_pool_handle": lambda: 1,
            "synchronize": lambda: None,
            "get_sync_debug_mode": lambda: 0,
            "set_sync_debug_mode": self.forbid,
            "_sleep": lambda cycles: gpu.work("wait", 100e-6),
        }.items():
            monkeypatch.setattr(torch.cuda, name, value, raising=False)
        monkeypatch.setattr(torch, "empty", lambda *a, **k: flush)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Gpu:
    stand_in = Gpu()
    stand_in.install(monkeypatch)
    return stand_in


def launches(gpu: Gpu, seconds: float, most: int = 99) -> Callable[[int], list[Callable[[], Any]]]:
    return lambda n: [lambda: gpu.work("launch", seconds) for _ in range(min(n, most))]


@pytest.mark.parametrize(
    ("seconds", "most", "how"),
    [
        (200e-6, 99, "graph of 1"),
        (25e-6, 99, "graph of 3"),
        (1e-6, 99, f"graph of {MOST_SETS}"),
        (1e-6, 4, "graph of 4"),
        (1e-6, 1, "graph of 1"),
    ],
)
def test_short_kernels_stand_in_a_graph_several_times(
    gpu: Gpu, seconds: float, most: int, how: str
) -> None:
    timer = Clock(Device("cuda", "x", 1000)).timer(launches(gpu, seconds, most), graph=True)
    gpu.log.clear()
    assert timer.run() == pytest.approx(seconds)
    assert timer.how == how
    assert gpu.log == ["flush", "event", how, "event"]


@pytest.mark.parametrize("reason", ["not wanted", "impossible", "waits"])
def test_kernels_that_cannot_be_captured_are_launched(gpu: Gpu, reason: str) -> None:
    gpu.capturable, gpu.waits = reason == "not wanted", reason == "waits"
    clock = Clock(Device("cuda", "x", 1000))
    timer = clock.timer(launches(gpu, LAUNCH), graph=reason != "not wanted")
    gpu.log.clear()
    assert timer.run() == pytest.approx(LAUNCH)
    assert timer.how == "launched"
    assert gpu.log == ["flush", "wait", "event", "launch", "event"]


def test_the_median_of_resamples() -> None:
    values = [1.0, 2.0, 3.0, 4.0, 10.0, 11.0, 12.0, 20.0, 21.0]
    found = spread(values)
    source = random.Random(5)
    drawn = [statistics.median_high(source.choices(values, k=len(values))) for _ in range(20_000)]
    assert found.median == median(values) == 10.0
    assert found.mad == 7.0
    assert found.variance == pytest.approx(statistics.pvariance(drawn), rel=0.05)
    assert (found.low, found.high) == (quantile(drawn, 0.025), quantile(drawn, 0.975))
    assert spread([3.0]) == (3.0, 3.0, 3.0, 0.0, 0.0)
    assert median([4.0, 1.0]) == 2.5


def test_ceilings_of_the_cpu() -> None:
    found = ceilings(Device.open("cpu"))
    assert 1e8 < found["copy"] < 1e12
    assert 1e8 < found["matmul"] < 1e13


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
class TestGpu:
    def test_times_are_those_of_memory(self) -> None:
        """Reading a buffer that fits in the cache takes as long as reading memory."""
        device = Device.open("cuda")
        clock, rates = Clock(device), ceilings(device)
        small = [torch.rand(8 << 18, device="cuda") for _ in range(MOST_SETS)]  # 8 MiB each
        timer = clock.timer(lambda n: [x.sum for x in small[:n]], graph=True)
        assert timer.how.startswith("graph of ")
        rate = small[0].nbytes / median([timer.run() for _ in range(20)])
        assert rate < 1.15 * rates["copy"]
        large = torch.rand(1 << 28, device="cuda")
        timer = clock.timer(lambda n: [lambda: large.sum()], graph=True)
        rate = large.nbytes / median([timer.run() for _ in range(20)])
        assert 0.5 * rates["copy"] < rate < 1.3 * rates["copy"]

    def test_a_launch_that_synchronizes_is_not_captured(self) -> None:
        clock = Clock(Device.open("cuda"))
        x = torch.rand(1 << 20, device="cuda")
        timer = clock.timer(lambda n: [lambda: float(x.sum())], graph=True)
        assert timer.how == "launched"
        assert 0 < timer.run() < 1e-2
        again = clock.timer(lambda n: [lambda: x.sum()], graph=True)
        assert again.how.startswith("graph of ")

    def test_a_worker_on_the_gpu(self) -> None:
        from selc.harness.call import Call, Request

        name = "tests.harness.fake_kernels:PRODUCT"
        from tests.harness.fake_kernels import PRODUCT

        executor = LocalExecutor({"product": name}, "cuda")
        call = Call("product", {"m": 64}, {}, (Request(0, 64, 64),))
        modes = ("", "wrong", "unwritten", "fault")
        jobs = [job_of(PRODUCT, call, {"mode": mode}) for mode in modes]
        try:
            samples = {s.job.choice["mode"]: s for s in executor.measure(jobs, 5)}
        finally:
            executor.close()
        assert len(samples[""].seconds) == 5
        assert samples[""].how.startswith("graph of ")
        assert samples["wrong"].failure.startswith("wrong result")
        assert "never written" in samples["unwritten"].failure
        assert "CUDA error" in samples["fault"].failure
