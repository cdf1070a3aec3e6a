#!/usr/bin/env python3
"""How near `selc tune` comes to the best of a grid, against exhaustive measurements.

    benchmarks/tuner.py judge [DATA]
    benchmarks/tuner.py models

`judge` replays searches on run 1 of the grids in benchmarks/data/tuner, which `tuner_grid.py`
measured, and prints the tables of benchmarks/tuner.md; `models` does so on cost models. Neither
needs a GPU.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import random
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from selc.diag.diagnostic import Diagnostic, Refused  # noqa: E402
from selc.harness.call import Call, Request  # noqa: E402
from selc.harness.protocol import OURS, load_kernels  # noqa: E402
from selc.harness.tune.ledger import Ledger, center  # noqa: E402
from selc.harness.tune.problem import Candidate, Pair, Problem, distinct, launches  # noqa: E402
from selc.harness.tune.search import Search, Settings  # noqa: E402

DATA = ROOT / "benchmarks" / "data" / "tuner"
RUNS = 2
NANO = 1e9


class Table:
    """A measured grid as a selector, and the times that its launches had."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.data, self.name = data, data["name"]
        self.parameters = {n: tuple(v) for n, v in data["parameters"]}
        self.runs = [{(c, k): t for c, k, t in run} for run in data["times"]]
        whole = self._whole()
        self.calls = tuple(self._call(c) for c in whole)
        self.weights = [data["calls"][c]["weight"] for c in whole]
        self._rows = {tuple(v): tuple(ch) for v, ch in data["candidates"]}
        self._choices = list(data["choices"])

    def _call(self, number: int) -> Call:
        """A call as it was measured; its number is an input of no account to the surrogate."""
        data = self.data["calls"][number]
        requests = tuple(Request(*r) for r in data.get("requests", ()))
        inputs = {**data["inputs"], "_": [number]}
        facts = self.data.get("facts", {})
        return Call(self.data["family"], inputs, facts, requests, data.get("extra", {}))

    def _whole(self) -> list[int]:
        rows = [choices for _, choices in self.data["candidates"]]
        out = []
        for call in range(len(self.data["calls"])):
            asked = {row[call] for row in [*rows, *filter(None, [self.data["stock"]])]}
            if all((call, k) in run for run in self.runs for k in asked):
                out.append(call)
        return out

    def legal(self, partial: Mapping[str, Any]) -> Mapping[str, tuple[Any, ...]]:
        names = list(self.parameters)
        fixed = [(names.index(n), self.parameters[n].index(v)) for n, v in partial.items()]
        fit = [r for r in self._rows if all(r[p] == i for p, i in fixed)]
        return {
            n: tuple(v for i, v in enumerate(vs) if any(r[p] == i for r in fit))
            for p, (n, vs) in enumerate(self.parameters.items())
        }

    def choice(self, commitment: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
        row = tuple(vs.index(commitment[n]) for n, vs in self.parameters.items())
        return dict(self._choices[self._rows[row][inputs["_"][0]]])

    def stock(
        self, inputs: Mapping[str, Any], commitment: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        if not self.data["stock"]:
            raise Refused(Diagnostic("SEL952", "the stock selection refuses a call"))
        return dict(self._choices[self.data["stock"][inputs["_"][0]]])

    def times(self, run: int, call: Call, choice: Mapping[str, Any]) -> Any:
        """The times of a launch in seconds, or why there are none."""
        found = self.runs[run][call.inputs["_"][0], self._choices.index(choice)]
        return found if isinstance(found, str) else [t / NANO for t in found]


class Judge:
    """A table with a problem over it, and the true cost of every candidate, as run 2 has it."""

    def __init__(self, table: Table, estimates: bool = True) -> None:
        self.table = table
        told = estimates and table.data["family"] in OURS
        kernels = load_kernels(table.data["family"]) if told else object()
        self.problem = Problem(table.name, table, kernels, table.calls)
        every = self.problem.every()
        assert every is not None
        self.every = distinct(every)
        self.legal = len(every)
        default = self.problem.candidate(tuple(table.data["default"]))
        assert default is not None
        self.default = default
        self.launches = launches(self.every)
        self.costs = [self._costs(run) for run in range(RUNS)]
        stock = self.problem.stock()
        self.stock = [self._cost(run, stock) if stock else math.nan for run in range(RUNS)]

    def _times(self, run: int, pair: Pair) -> Any:
        return self.table.times(run, self.problem.calls[pair[0]], self.problem.choices[pair[1]])

    def _cost(self, run: int, choices: Sequence[int]) -> float:
        total = 0.0
        for pair, weight in zip(enumerate(choices), self.table.weights, strict=True):
            times = self._times(run, pair)
            total += math.inf if isinstance(times, str) or not times else weight * center(times)
        return total

    def _costs(self, run: int) -> dict[tuple[int, ...], float]:
        return {c.choices: self._cost(run, c.choices) for c in self.every}

    def tuned(self, limit: int | None, seed: int) -> tuple[Candidate, int, int, int]:
        """The search's winner; launches measured, tuples touched, tuples measured whole."""
        ledger, source = Ledger(), random.Random(seed)

        def measure(pairs: Sequence[Pair], rounds: int, compare: int | None) -> None:
            for pair in pairs:
                times = self._times(0, pair)
                bad = isinstance(times, str)
                drawn = [] if bad else source.sample(times, min(rounds, len(times)))
                row = {"call": pair[0], "choice": pair[1], "compare": compare}
                ledger.add({**row, "seconds": drawn, "failure": times if bad else ""})

        search = Search(
            self.problem, self.table.weights, self.default, self.every, ledger, measure,
            Settings(limit=limit, seed=seed),
        )  # fmt: skip
        search.run(lambda: 1.0)
        finals = search.finalists()
        if not finals:
            return self.default, 0, 0, 0
        measure(sorted(launches(finals)), 100, 0)
        best = search.contenders(finals)[0]
        known = {p for p in self.launches if ledger.known(p)}
        whole = sum(all(p in known for p in enumerate(c.choices)) for c in search.touched.values())
        return best, len(known), len(search.touched), whole

    def random(self, limit: int, seed: int) -> Candidate:
        """The best of as many tuples, drawn at random, as have so many launches."""
        source = random.Random(seed)
        order = source.sample(self.every, len(self.every))
        return self._best(order, limit)

    def descent(self, limit: int, seed: int) -> Candidate:
        """From the default, each parameter's best value in turn, in a random order."""
        return self._best(self._walk(random.Random(seed)), limit)

    def _walk(self, source: random.Random) -> Iterator[Candidate]:
        at = self.default
        yield at
        names = list(self.table.parameters)
        while True:
            before = at
            for position in source.sample(range(len(names)), len(names)):
                line = [
                    c for c in self.every
                    if all(a == b for p, (a, b) in enumerate(zip(c.values, at.values, strict=True))
                           if p != position)
                ]  # fmt: skip
                yield from line
                at = min([at, *line], key=lambda c: (self.costs[0][c.choices], c.values))
            if at == before:
                at = source.choice(self.every)
                yield at

    def _best(self, order: Any, limit: int) -> Candidate:
        known: set[Pair] = set()
        tried = [self.default]
        known.update(enumerate(self.default.choices))
        for number, candidate in enumerate(order):
            more = set(enumerate(candidate.choices)) - known
            if len(known) + len(more) > limit or number > 20 * len(self.every):
                break
            known |= more
            tried.append(candidate)
        return min(tried, key=lambda c: (self.costs[0][c.choices], c.values))

    def regret(self, candidate: Candidate) -> float:
        return self.costs[1][candidate.choices] / min(self.costs[1].values()) - 1

    def noise(self) -> float:
        """The regret of the best of run 1: what even an exhaustive search has."""
        return self.regret(min(self.every, key=lambda c: (self.costs[0][c.choices], c.values)))


def recorded(folder: Path) -> Iterator[Table]:
    for path in sorted(folder.glob("*.json.gz")):
        yield Table(json.loads(gzip.decompress(path.read_bytes())))


def made_up(args: argparse.Namespace) -> Iterator[Table]:
    """Cost models that the search was not designed on, with noise of 2 % a round."""
    from tests.harness import synthetic
    from tests.harness.tuning import ModelSelector, calls_of, weights_of

    for model in synthetic.held_out():
        problem = Problem(model.name, ModelSelector(model), object(), calls_of(model))
        every = problem.every()
        assert every is not None
        stock = problem.stock()
        first = problem.choices[stock[0]]

        def unlike(candidate: Candidate) -> int:
            mine = problem.choices[candidate.choices[0]]  # noqa: B023
            return sum(mine[n] != v for n, v in first.items())  # noqa: B023

        source = random.Random(model.name)
        runs = []
        for _ in range(RUNS):
            run = []
            for c, k in sorted(launches(every) | set(enumerate(stock))):
                true = model.seconds(model.calls[c][0], problem.choices[k]) * NANO
                noise = [math.exp(source.gauss(0.0, 0.02)) for _ in range(args.rounds)]
                run.append([c, k, [round(true * n) for n in noise]])
            runs.append(run)
        yield Table({
            "name": model.name, "family": model.name,
            "parameters": [[n, list(v)] for n, v in problem.parameters.items()],
            "default": min(every, key=lambda c: (unlike(c), c.values)).values, "stock": stock,
            "calls": [{"inputs": dict(c.inputs), "weight": w}
                      for c, w in zip(problem.calls, weights_of(model), strict=True)],
            "choices": problem.choices, "candidates": [[c.values, c.choices] for c in every],
            "times": runs,
        })  # fmt: skip


def judge_stage(args: argparse.Namespace) -> None:
    rows, summary = [], []
    for table in made_up(args) if args.stage == "models" else recorded(args.data):
        if not table.calls:
            print(f"{table.name}: no call is whole in both runs", file=sys.stderr)
            continue
        judge = Judge(table, not args.plain)
        limit = max(1, int(args.share * len(judge.launches)))
        began = time.monotonic()
        found = [judge.tuned(limit, seed) for seed in range(args.seeds)]
        seconds = (time.monotonic() - began) / args.seeds
        noise = judge.noise()
        ours = [judge.regret(c) for c, *_ in found]
        excess = [max(0.0, r - noise) for r in ours]
        as_many = round(statistics.mean(n for _, n, _, _ in found))
        others = [
            statistics.mean(
                max(0.0, judge.regret(method(as_many, seed)) - noise) for seed in range(args.others)
            )
            for method in (judge.random, judge.descent)
        ]
        best = found[0][0]
        cost = judge.costs[1]
        gain = cost[judge.default.choices] / cost[best.choices]
        price = cost[best.choices] / judge.stock[1]
        whole = statistics.mean(n for _, _, _, n in found)
        touched = statistics.mean(n for _, _, n, _ in found)
        used = statistics.mean(n for _, n, _, _ in found)
        count = len(judge.every)
        timings = judge.legal * len(judge.problem.calls)
        rows.append(
            f"| {judge.table.name} | {judge.legal} | {count} | {len(judge.problem.calls)} | "
            f"{len(judge.launches)} | {used / timings:.1%} | {used / len(judge.launches):.1%} | "
            f"{touched / count:.1%} | "
            f"{whole / count:.1%} | {statistics.mean(ours):.2%} | {noise:.2%} | "
            f"{statistics.mean(excess):.2%} | {max(excess):.2%} | {others[0]:.2%} | "
            f"{others[1]:.2%} | {gain:.3f} | {price:.3f} | {seconds:.1f} s |"
        )
        shares = used / timings, used / len(judge.launches), touched / count
        summary.append((excess, others, gain, price, *shares))
        print(rows[-1], file=sys.stderr, flush=True)
    print(
        "| grid | legal | distinct | calls | launches | of all | of distinct | touched | whole | "
        "regret | noise | beyond, mean | worst | random | descent | gain | price | search |"
    )
    print("|---" * 18 + "|")
    print("\n".join(rows))
    if summary:
        flat = [e for each in summary for e in each[0]]
        geo = statistics.geometric_mean
        print(
            f"\n{len(summary)} grids: "
            f"{statistics.mean(s[4] for s in summary):.1%} of all, "
            f"{statistics.mean(s[5] for s in summary):.1%} of the distinct launches, "
            f"{statistics.mean(s[6] for s in summary):.1%} of the tuples touched; regret beyond "
            f"noise {statistics.mean(flat):.3%} mean, {max(flat):.2%} worst; random "
            f"{statistics.mean(s[1][0] for s in summary):.2%}, descent "
            f"{statistics.mean(s[1][1] for s in summary):.2%}; gain "
            f"{geo(s[2] for s in summary):.3f}, price "
            f"{geo([s[3] for s in summary if s[3] > 0] or [1.0]):.3f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stage", choices=["judge", "models"])
    parser.add_argument("data", nargs="?", type=Path, default=DATA)
    parser.add_argument("--rounds", type=int, default=5, help="of the models' times")
    parser.add_argument("--share", type=float, default=0.05, help="of the launches")
    parser.add_argument("--plain", action="store_true", help="without the kernels' estimates")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--others", type=int, default=100, help="seeds of the other searches")
    args = parser.parse_args()
    judge_stage(args)


if __name__ == "__main__":
    main()
