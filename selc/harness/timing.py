"""How one launch is timed.

On a GPU: CUDA events around the replay of a graph, after a write of twice the L2 cache. Launches
that are short stand in the graph several times, each on tensors of its own, so that the events are
apart by more than they are coarse and no launch finds its data in the cache. Kernels that cannot be
captured are launched plainly, behind a wait on the device that hides what launching costs. Kernels
that need several processes bring a timer of their own (`protocol.Kernels`).

On a CPU: a wall clock around enough repetitions, the collector of garbage off. Caches stay warm.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from selc.harness.device import Device

CPU_SECONDS: Final = 2e-3
CUDA_SECONDS: Final = 60e-6
MOST_REPEATS: Final = 1000
MOST_SETS: Final = 16
HIDE_CYCLES: Final = 300_000
COPY_BYTES: Final = {"cuda": 1 << 30, "cpu": 64 << 20}
MATRIX: Final = {"cuda": 8192, "cpu": 512}


@dataclass(frozen=True, slots=True)
class Timer:
    """Times one launch; `how` says in which way."""

    run: Callable[[], float]
    how: str


@dataclass(slots=True)
class Clock:
    """Makes timers for a device."""

    device: Device
    _flush: Any = None
    _pool: Any = None
    _stream: Any = None

    def timer(self, launches: Callable[[int], Sequence[Callable[[], Any]]], graph: bool) -> Timer:
        """A timer of one launch.

        `launches(n)` gives up to `n` launches of the same work on tensors of their own, at least
        one; the first has run before.
        """
        if self.device.kind == "cpu":
            return _cpu(launches(1)[0])
        return self._cuda(launches, graph)

    def _cuda(self, launches: Callable[[int], Sequence[Callable[[], Any]]], graph: bool) -> Timer:
        first = launches(1)
        plain = min(self._events(lambda: first[0]()) for _ in range(3))
        if not graph:
            return Timer(lambda: self._events(first[0]), "launched")
        single = None if _waits(first[0]) else self._captured(first)
        if single is None:
            return Timer(lambda: self._events(first[0]), "launched")
        once = min(plain, *(self._events(single, hide=False) for _ in range(3)))
        several = launches(min(MOST_SETS, math.ceil(CUDA_SECONDS / once)))
        if len(several) == 1:
            return Timer(lambda: self._events(single, hide=False), "graph of 1")
        for launch in several[1:]:
            launch()
        replay = self._captured(several)
        if replay is None:
            return Timer(lambda: self._events(single, hide=False), "graph of 1")
        count = len(several)
        return Timer(lambda: self._events(replay, hide=False) / count, f"graph of {count}")

    def _captured(self, launches: Sequence[Callable[[], Any]]) -> Callable[[], Any] | None:
        """A graph of some launches, or None where they cannot be captured."""
        import torch

        if self._pool is None:
            self._pool = torch.cuda.graph_pool_handle()
            self._stream = torch.cuda.Stream()
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        try:
            with torch.cuda.stream(self._stream):
                graph.capture_begin(pool=self._pool)
                try:
                    for launch in launches:
                        launch()
                finally:
                    graph.capture_end()
            graph.replay()
        except torch.cuda.OutOfMemoryError:
            raise
        except Exception:  # noqa: BLE001  what cannot be captured raises anything
            torch.cuda.synchronize()
            self._pool = None  # it is recorded to for good
            return None
        torch.cuda.synchronize()
        return graph.replay  # type: ignore[no-any-return]

    def _events(self, work: Callable[[], Any], hide: bool = True) -> float:
        """Seconds between two events around some work, the L2 cache flushed before."""
        import torch

        if self._flush is None:
            size = max(1, 2 * self.device.cache_bytes)
            self._flush = torch.empty(size, dtype=torch.uint8, device="cuda")
        before = torch.cuda.Event(enable_timing=True)
        after = torch.cuda.Event(enable_timing=True)
        self._flush.zero_()
        if hide and hasattr(torch.cuda, "_sleep"):
            torch.cuda._sleep(HIDE_CYCLES)
        before.record()
        work()
        after.record()
        after.synchronize()
        return float(before.elapsed_time(after)) * 1e-3


def _waits(launch: Callable[[], Any]) -> bool:
    """Whether a launch waits for the device: a capture that fails leaves a process half broken."""
    import torch

    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        launch()
    except RuntimeError:
        return True
    finally:
        torch.cuda.set_sync_debug_mode(before)
    return False


def ceilings(device: Device) -> dict[str, float]:
    """What the device reaches: bytes a second of a large copy, operations of a large product."""
    import torch

    source = torch.empty(COPY_BYTES[device.kind], dtype=torch.uint8, device=device.kind)
    source.random_(0, 255)
    target = torch.empty_like(source)
    copy = _best(lambda: target.copy_(source), device)
    size = MATRIX[device.kind]
    dtype = torch.bfloat16 if device.kind == "cuda" else torch.float32
    left = torch.randn(size, size, device=device.kind).to(dtype)
    product = _best(lambda: left @ left, device)
    return {"copy": 2 * source.numel() / copy, "matmul": 2 * size**3 / product}


def _best(work: Callable[[], Any], device: Device, repeats: int = 10) -> float:
    """The median of some runs in seconds, after three to warm up."""
    from selc.harness.stats import median

    for _ in range(3):
        work()
    clock = Clock(device)
    if device.kind == "cuda":
        return median([clock._events(work) for _ in range(repeats)])
    return median([_wall(work, 1) for _ in range(repeats)])


def _cpu(launch: Callable[[], Any]) -> Timer:
    once = min(_wall(launch, 1) for _ in range(2))
    repeats = max(1, min(MOST_REPEATS, math.ceil(CPU_SECONDS / max(once, 1e-9))))
    return Timer(lambda: _wall(launch, repeats), f"mean of {repeats}")


def _wall(work: Callable[[], Any], repeats: int) -> float:
    collecting = gc.isenabled()
    gc.disable()
    try:
        start = time.perf_counter()
        for _ in range(repeats):
            work()
        return (time.perf_counter() - start) / repeats
    finally:
        if collecting:
            gc.enable()
