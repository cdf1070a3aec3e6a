"""An engine, step by step: continuous batching with chunked prefill.

Requests that decode come first, each with one token; prompts take what is left of the budget in
the order in which they were admitted; then new requests are admitted as long as tokens, places and
memory are left.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from selc.harness.call import Request
from selc.harness.synth.arrivals import Job
from selc.harness.synth.description import Cost, Engine


@dataclass(slots=True)
class _Live:
    """A request that runs: `done` tokens have their keys, up to `known` can be computed."""

    number: int
    job: Job
    done: int
    known: int
    left: int
    """Tokens still to be put out."""


@dataclass(frozen=True, slots=True)
class Step:
    """One launch of every kernel."""

    start: float
    seconds: float
    requests: tuple[Request, ...]

    @property
    def rows(self) -> int:
        """Tokens that are computed."""
        return sum(r.rows for r in self.requests)

    @property
    def keys(self) -> int:
        """Keys that are read, those just computed included."""
        return sum(r.context for r in self.requests)


def simulate(
    jobs: Sequence[Job], engine: Engine, cost: Cost, until: float = math.inf
) -> Iterator[Step]:
    """The steps that start before `until`."""
    waiting = [(job.arrival, n) for n, job in enumerate(jobs) if job.after is None]
    heapq.heapify(waiting)
    followers: dict[int, list[int]] = {}
    for n, job in enumerate(jobs):
        if job.after is not None:
            followers.setdefault(job.after, []).append(n)
    running: list[_Live] = []
    now, memory = 0.0, engine.kv_tokens
    while running or waiting:
        if not running:
            now = max(now, waiting[0][0])
        if now >= until:
            return
        batch, budget = _scheduled(running, engine.chunk_budget)
        while waiting and waiting[0][0] <= now and budget and len(running) < engine.max_requests:
            job = jobs[waiting[0][1]]
            if job.prompt + job.output - 1 > memory:
                break
            live = _Live(heapq.heappop(waiting)[1], job, job.cached, job.prompt, job.output)
            memory -= job.prompt + job.output - 1
            running.append(live)
            rows = min(live.known - live.done, budget)
            budget -= rows
            batch.append((live, rows))
        requests = tuple(
            Request(live.job.seed, rows, live.done + rows, live.job.cached) for live, rows in batch
        )
        keys = sum(r.context for r in requests)
        pairs = sum(r.rows * (r.context - (r.rows - 1) / 2) for r in requests)
        seconds = cost.seconds(engine.chunk_budget - budget, keys, pairs)
        yield Step(now, seconds, requests)
        now += seconds
        for live, rows in batch:
            live.done += rows
            if live.done < live.known:
                continue
            live.left -= 1
            live.known += 1
            if live.left == 0:
                running.remove(live)
                memory += live.job.prompt + live.job.output - 1
                for n in followers.get(live.number, ()):
                    heapq.heappush(waiting, (max(jobs[n].arrival, now), n))


def throughput(jobs: Sequence[Job], engine: Engine, cost: Cost) -> float:
    """Requests a second if all of them are there at once."""
    end = 0.0
    for step in simulate(jobs, engine, cost):
        end = step.start + step.seconds
    return len(jobs) / end


def _scheduled(running: Sequence[_Live], budget: int) -> tuple[list[tuple[_Live, int]], int]:
    """What runs on, and what is left of the budget."""
    batch = []
    decoding = [live for live in running if live.known > live.job.prompt]
    filling = [live for live in running if live.known <= live.job.prompt]
    for live in (*decoding, *filling):
        rows = min(live.known - live.done, budget)
        if rows:
            batch.append((live, rows))
            budget -= rows
    return batch, budget
