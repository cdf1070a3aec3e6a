#!/usr/bin/env python3
"""Exhaustive grids for benchmarks/tuner.py: every launch of every legal tuple, twice. Needs a GPU.

    benchmarks/tuner_grid.py [--set recorded|holdout] [--selectors .h200] [--out DIR] [--budget 540]

`h200_prepare.sh` makes the selectors and the workloads. Run 1 is what the search sees, run 2 what
its result is judged by; each has a process of its own, and they take turns call by call. Grids come
in the order of their importance and are written as soon as they are whole, so that what the budget
cuts is the end.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from selc.harness.call import Call  # noqa: E402
from selc.harness.executor import LocalExecutor  # noqa: E402
from selc.harness.protocol import digest_of, load_kernels  # noqa: E402
from selc.harness.selector import Selector  # noqa: E402
from selc.harness.setup import calls_of  # noqa: E402
from selc.harness.tune.calls import Stand, representatives  # noqa: E402
from selc.harness.tune.problem import Candidate, Pair, Problem, launches  # noqa: E402
from selc.harness.tune.tuplefile import jsonable  # noqa: E402
from selc.harness.workload import read  # noqa: E402

WORKLOADS = ("w-a", "w-b", "w-b-c")


class Source(NamedTuple):
    """A folder of a selector, the kernels that it chooses among, and what is measured of it."""

    folder: str
    kernels: str
    calls: int = 6  # of a workload
    longest: float = 1.2e-3  # seconds that a call takes at least; longer ones are left


SETS = {
    "recorded": (
        Source("attention", "attention"),
        Source("moe", "moe"),
        Source("gemm_qkv", "gemm"),
    ),
    "holdout": (
        Source("gemm_down_70b", "gemm", 4, 1.6e-3),
        Source("attention_70b", "attention", 3, 2.5e-4),
        Source("moe_tp2", "moe", 4),
    ),
}
RUNS = 2
NANO = 1e9


@dataclass
class Grid:
    """A selector on a workload, and what was measured of it."""

    name: str
    selector: Selector
    kernels: str
    stands: list[Stand]
    distinct_calls: int
    problem: Problem
    every: list[Candidate]
    times: list[dict[Pair, Any]] = field(default_factory=lambda: [{} for _ in range(RUNS)])

    def pairs(self, call: int | None = None) -> list[Pair]:
        """Every launch, call by call; or those of one call."""
        found = launches(self.every) | set(enumerate(self.problem.stock()))
        return sorted(p for p in found if call in (None, p[0]))


def open_grid(source: Source, workload: str, args: argparse.Namespace) -> Grid:
    folder = args.selectors / source.folder
    selector = Selector.load(folder)
    loaded = load_kernels(source.kernels)
    counted = calls_of(selector, read([folder.parent / f"{workload}.jsonl"]))
    stands = [Stand(call, (count,)) for call, count in counted]

    def least(call: Call) -> float:
        moved, operations = loaded.bytes_and_flops(call)
        return float(max(moved / 3e12, operations / 5e14, 1e-9))

    short = [s for s in stands if least(s.call) <= source.longest] or stands
    few = representatives(short, [least(s.call) for s in short], source.calls)
    few.sort(key=lambda s: (least(s.call), s.call.key))  # what the budget cuts is the longest
    problem = Problem(selector.family, selector, loaded, tuple(s.call for s in few))
    every = problem.every()
    assert every is not None, f"{folder} has too many tuples"
    head = selector.family if args.set == "recorded" else folder.name
    return Grid(f"{head}-{workload}", selector, source.kernels, few, len(stands), problem, every)


def measure(grid: Grid, executors: Sequence[LocalExecutor], args: argparse.Namespace) -> None:
    """Both runs of a grid."""
    began = time.monotonic()
    for call in range(len(grid.stands)):
        jobs = {grid.problem.job(p).key: p for p in grid.pairs(call)}
        asked = [grid.problem.job(p) for p in jobs.values()]
        for times, executor in zip(grid.times, executors, strict=True):
            for sample in executor.measure(asked, args.rounds):
                rounds = [round(s * NANO) for s in sample.seconds]
                times[jobs[sample.job.key]] = sample.failure or rounds
    tell(grid, time.monotonic() - began)
    if any(grid.times):
        save(grid, executors[0].describe(), args)


def compile_all(executor: LocalExecutor, grids: Sequence[Grid], until: float) -> None:
    began = time.monotonic()
    jobs = [grid.problem.job(p) for grid in grids for p in grid.pairs()]
    if executor.describe().get("kind") == "cuda":
        executor.deadline = until
        executor.compile_ahead(jobs, lambda done, total: None)
    print(f"compiled ahead: {time.monotonic() - began:.0f} s", flush=True)


def tell(grid: Grid, seconds: float) -> None:
    counts = [len(times) for times in grid.times]
    failed = sum(isinstance(t, str) for times in grid.times for t in times.values())
    whole = sum(
        all(p in times for times in grid.times for p in grid.pairs(call))
        for call in range(len(grid.stands))
    )
    print(
        f"{grid.name:22} {counts} of {len(grid.pairs())} launches, {failed} failed, "
        f"{whole} of {len(grid.stands)} calls whole, {len(grid.every)} tuples, {seconds:.0f} s",
        flush=True,
    )


def save(grid: Grid, device: Mapping[str, Any], args: argparse.Namespace) -> None:
    """Write what there is; calls that are not whole in both runs are left to the reader."""
    problem = grid.problem
    default = problem.candidate(problem.indices(grid.selector.default or {}))
    data = {
        "format": 1, "name": grid.name, "family": problem.family, "device": device,
        "selector": grid.selector.hash, "kernels": digest_of(problem.kernels),
        "facts": grid.selector.facts,
        "rounds": args.rounds, "distinct_calls": grid.distinct_calls,
        "parameters": [[n, list(v)] for n, v in problem.parameters.items()],
        "default": default and default.values,
        "stock": problem.stock(), "stock_tuple": problem.stock_tuple,
        "calls": [
            {"inputs": dict(s.call.inputs), "weight": s.weights[0], "distinct": s.distinct,
             "requests": [[r.seed, r.rows, r.context, r.cached] for r in s.call.requests],
             "extra": {k: v for k, v in s.call.extra.items() if k != "requests"}}
            for s in grid.stands
        ],
        "choices": problem.choices,
        "candidates": [[c.values, c.choices] for c in grid.every],
        "times": [[[c, k, t] for (c, k), t in sorted(run.items())] for run in grid.times],
    }  # fmt: skip
    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / f"{grid.name}.json.gz"
    text = json.dumps(jsonable(data), separators=(",", ":")).encode()
    path.write_bytes(gzip.compress(text, 9, mtime=0))


def run(args: argparse.Namespace) -> None:
    """Open all grids, compile what they need, then measure one after the other."""
    began = time.monotonic()
    until = began + args.budget
    grids = [
        open_grid(source, workload, args) for workload in WORKLOADS for source in SETS[args.set]
    ]
    if args.only:
        grids = [g for g in grids if g.name in args.only]
    print(f"{len(grids)} grids opened: {time.monotonic() - began:.0f} s", flush=True)
    for grid in grids:
        print(f"{grid.name:22} {len(grid.every)} tuples, {len(grid.pairs())} launches", flush=True)
    names = {g.selector.family: g.kernels for g in grids}
    executors = [LocalExecutor(names, args.device, timeout=60.0, seed=n) for n in range(RUNS)]
    try:
        compile_all(executors[0], grids, until)
        for executor in executors:
            executor.deadline = until
        for grid in grids:
            if time.monotonic() < until:
                measure(grid, executors, args)
    finally:
        for executor in executors:
            executor.close()
    print(f"left of the budget: {until - time.monotonic():.0f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", choices=sorted(SETS), default="recorded")
    parser.add_argument("--selectors", type=Path, default=ROOT / ".h200")
    parser.add_argument("--out", type=Path, default=Path("tuner"))
    parser.add_argument("--budget", type=float, default=540.0, help="seconds for everything")
    parser.add_argument("--device", default="auto", choices=["auto", "cpu", "cuda"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", action="append", help="a grid by name; may be repeated")
    run(parser.parse_args())


if __name__ == "__main__":
    main()
