"""Compiling kernels ahead, in about as many processes as there are cores.

What they leave is in the compiler's cache on disk (Triton's). They launch nothing while anything is
timed, and hold no tensors then.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from selc.diag.diagnostic import Refused
from selc.harness.process import OutOfTime, Start, Worker
from selc.harness.runner import choice_key

if TYPE_CHECKING:
    from selc.harness.executor import Job

MOST_WORKERS: Final = 12
MOST_CALLS: Final = 4
"""Calls that a choice is compiled for: a compiler may specialise on sizes."""
WORTH: Final = 8
"""Fewer choices than this are compiled when they are first launched."""
TICK: Final = 0.25


class Compilers:
    """Worker processes that launch jobs once; they stay for the next time."""

    def __init__(self, start: Start, timeout: float) -> None:
        count = max(1, min(MOST_WORKERS, (os.cpu_count() or 1) - 2))
        self._workers = [Worker(start, timeout) for _ in range(count)]
        self._stop = threading.Event()
        self._compiled: set[tuple[str, str]] = set()

    def run(
        self, jobs: Sequence[Job], done: Callable[[int, int], None], until: float | None = None
    ) -> None:
        """Compile the choices that are new, whatever comes of it, but not beyond a moment."""
        shares = self._shares(jobs)
        total = sum(len(s) for s in shares)
        if not total:
            return
        finished: list[int] = []
        for worker in self._workers[: len(shares)]:
            worker.spawn()

        def compile_share(worker: Worker, share: Sequence[Job]) -> None:
            try:
                for job in share:
                    if self._stop.is_set():
                        return
                    worker.ask("warm", job, until=until)
                    finished.append(1)
                worker.ask("release", until=until)
            except (Refused, OutOfTime):
                pass  # whoever times says it again

        with ThreadPoolExecutor(len(shares)) as pool:
            waiting = [
                pool.submit(compile_share, w, s)
                for w, s in zip(self._workers, shares, strict=False)
            ]
            try:
                while not all(f.done() for f in waiting):
                    done(len(finished), total)
                    self._stop.wait(TICK)
            except BaseException:
                self._stop.set()
                for worker in self._workers:
                    worker.kill()
                raise
        for each in waiting:
            each.result()

    def close(self) -> None:
        """End the processes."""
        for worker in self._workers:
            worker.close()

    def _shares(self, jobs: Sequence[Job]) -> list[list[Job]]:
        """What each process compiles: whole choices, on a few calls from the smallest up."""
        calls: dict[tuple[str, str], list[Job]] = {}
        for job in jobs:
            choice = (job.family, choice_key(job.choice))
            if choice not in self._compiled:
                calls.setdefault(choice, []).append(job)
        if len(calls) < WORTH:
            return []
        self._compiled.update(calls)
        shares: list[list[Job]] = [[] for _ in self._workers[: len(calls)]]
        for place, mine in enumerate(calls.values()):
            mine.sort(key=lambda job: sum(r.context for r in job.call.requests))
            mine = mine[: max(1, 3 * len(mine) // 4)]
            step = max(1, len(mine) // MOST_CALLS)
            shares[place % len(shares)] += mine[::step][:MOST_CALLS]
        for share in shares:
            share.sort(key=lambda job: job.call.key)
        return shares
