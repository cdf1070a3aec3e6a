"""Compiling kernels ahead, in as many processes as there are cores.

Only what a compiler keeps on disk (Triton's cache) is used later; the processes are gone before
anything is timed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from selc.diag.diagnostic import Refused
from selc.harness.process import Start, Worker
from selc.harness.runner import choice_key

if TYPE_CHECKING:
    from selc.harness.executor import Job

MOST_WORKERS: Final = 12
MOST_CALLS: Final = 4
"""Calls that a choice is compiled for: a compiler may specialise on sizes."""
WORTH: Final = 8
"""Fewer choices than this are compiled when they are first launched."""


def compile_ahead(
    start: Start, timeout: float, jobs: Sequence[Job], done: Callable[[int, int], None]
) -> None:
    """Launch some jobs once in processes of their own, whatever comes of it."""
    shares = _shares(jobs, max(1, min(MOST_WORKERS, (os.cpu_count() or 1) - 2)))
    if not shares:
        return
    total, finished = sum(len(s) for s in shares), 0
    stop = threading.Event()
    workers = [Worker(start, timeout) for _ in shares]
    ticks: list[int] = []

    def run(worker: Worker, share: Sequence[Job]) -> None:
        try:
            for job in share:
                if stop.is_set():
                    return
                if not worker.ask("prepare", job).failure:
                    worker.ask("warm", 0)
                ticks.append(1)
        except Refused:
            pass
        finally:
            worker.close()

    with ThreadPoolExecutor(len(shares)) as pool:
        waiting = [pool.submit(run, w, s) for w, s in zip(workers, shares, strict=True)]
        try:
            while not all(f.done() for f in waiting):
                stop.wait(0.5)
                if len(ticks) != finished:
                    finished = len(ticks)
                    done(finished, total)
        except BaseException:
            stop.set()
            for worker in workers:
                worker.kill()
            raise
    for each in waiting:
        each.result()


def _shares(jobs: Sequence[Job], count: int) -> list[list[Job]]:
    """What each process compiles: whole choices, on a few calls from the smallest up."""
    calls: dict[tuple[str, str], list[Job]] = {}
    for job in jobs:
        calls.setdefault((job.family, choice_key(job.choice)), []).append(job)
    if len(calls) < WORTH:
        return []
    shares: list[list[Job]] = [[] for _ in range(min(count, len(calls)))]
    for place, mine in enumerate(calls.values()):
        mine.sort(key=lambda job: sum(r.context for r in job.call.requests))
        mine = mine[: max(1, 3 * len(mine) // 4)]
        step = max(1, len(mine) // MOST_CALLS)
        shares[place % len(shares)] += mine[::step][:MOST_CALLS]
    for share in shares:
        share.sort(key=lambda job: job.call.key)
    return shares
