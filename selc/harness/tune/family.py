"""One family's part of a run: its searches, the comparison of the best, its records."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from selc.harness.executor import Executor
from selc.harness.journal import Journal
from selc.harness.progress import Progress
from selc.harness.setup import Family
from selc.harness.tune.calls import Stand
from selc.harness.tune.ledger import Ledger
from selc.harness.tune.problem import Candidate, Pair, Problem, launches
from selc.harness.tune.search import OutOfBudget, Search, Settings
from selc.harness.tune.tuplefile import jsonable

FOR_FINALS: Final = 0.2
"""The part of a family's time that is kept for comparing the best."""
AHEAD: Final = 8
"""New choices from which on several processes compile them."""
COMPARISONS: Final = 4


@dataclass(slots=True)
class Work:
    """A family with its calls, before anything is measured."""

    family: Family
    stands: list[Stand]
    distinct: int
    problem: Problem = field(init=False)

    def __post_init__(self) -> None:
        calls = tuple(s.call for s in self.stands)
        selector = self.family.selector
        self.problem = Problem(selector.family, selector, self.family.kernels, calls)


class Tuning:
    """One family."""

    def __init__(
        self,
        work: Work,
        executor: Executor,
        journal: Journal,
        progress: Progress,
        settings: Settings,
        profiles: tuple[str, ...],
    ) -> None:
        self._work = work
        self._executor = executor
        self._journal = journal
        self._progress = progress
        self._settings = settings
        self._profiles = profiles
        self._problem = work.problem
        self._ledger = Ledger()
        self._until = math.inf
        self._compiles = executor.describe().get("kind") == "cuda"
        self._written: set[int] = set()
        self._named: set[tuple[int, ...]] = set()
        self._compares = 0
        self._done = 0

    def run(self, now: float, until: float) -> None:
        """Search for every workload, then compare the best.

        Both times are on the monotonic clock.
        """
        self._until = until
        stop = until - FOR_FINALS * (until - now)
        problem, family = self._problem, self._problem.family
        for record in sorted(self._held("choice", family), key=lambda r: r["number"]):
            self._number(record)
        default = problem.candidate(problem.indices(self._work.family.selector.default or {}))
        assert default is not None  # every call was asked under the default tuple
        every = problem.every()
        self._begin(default, every)
        targets = self._targets()
        searches: list[Search] = []
        reason = "nothing more is to be gained"
        try:
            for number, weights in enumerate(targets):
                share = (stop - time.monotonic()) / (len(targets) - number)
                end = time.monotonic() + max(0.0, share)
                search = Search(
                    problem,
                    weights,
                    default,
                    every,
                    self._ledger,
                    self._measure,
                    self._settings,
                    self._touch,
                )
                searches.append(search)
                search.run(lambda end=end: end - time.monotonic())  # type: ignore[misc]
                if time.monotonic() >= end:
                    reason = "the time for searching is spent"
                elif search.room() <= 0:
                    reason = "the number of launches is reached"
            self._finals(searches, default, targets)
        except OutOfBudget:
            reason = "the budget is spent"
        self._write({"kind": "end", "family": family, "reason": reason})

    def _number(self, record: Mapping[str, Any]) -> None:
        """Give a choice of the journal the number that it has there."""
        self._problem.number(record["choice"])
        self._written.add(record["number"])

    def _begin(self, default: Candidate, every: list[Candidate] | None) -> None:
        """Take in what the journal holds of this family, or begin with it."""
        family = self._problem.family
        if not self._held("problem", family):
            self._write(self._statement(default, every))
            for number in sorted({*default.choices, *self._problem.stock()}):
                self._record_choice(number)
        for record in self._held("candidate", family):
            self._named.add(tuple(record["values"]))
        for record in self._held("sample", family):
            self._ledger.add(record)
        paired = [n for e in self._ledger.entries.values() for n in e.paired]
        self._compares = 1 + max(paired, default=-1)

    def _statement(self, default: Candidate, every: list[Candidate] | None) -> dict[str, Any]:
        """The record that says what is decided."""
        problem, work = self._problem, self._work
        stock = problem.stock()
        known = None if every is None else launches(every)
        estimated = problem.expected() is not None
        counted = work.family.selector.manifest.get("legal", {}).get("legal")
        profiles = self._profiles
        return {
            "kind": "problem",
            "family": problem.family,
            "selector": work.family.selector.hash,
            "parameters": [[n, list(v)] for n, v in problem.parameters.items()],
            "knobs": [k["name"] for k in work.family.selector.manifest.get("knobs", [])],
            "targets": ["all", *profiles] if len(profiles) > 1 else ["all"],
            "calls": [
                {
                    "inputs": dict(s.call.inputs),
                    "requests": len(s.call.requests),
                    "rows": s.call.rows,
                    "distinct": s.distinct,
                    "weights": self._weights(s),
                }
                for s in work.stands
            ],
            "distinct_calls": work.distinct,
            "default": {"values": default.values, "choices": default.choices},
            "stock": stock,
            "stock_tuple": problem.stock_tuple,
            "legal": counted if type(counted) is int else (len(every) if every else None),
            "candidates": None if every is None else len({c.choices for c in every}),
            "launches": None if known is None else len(known),
            "estimated": estimated,
            "unestimated": problem.unestimated or "",
            "only_stock": [p for p in enumerate(stock) if known is not None and p not in known],
        }

    def _weights(self, stand: Stand) -> list[float]:
        own = list(stand.weights)
        return [math.fsum(own), *own] if len(own) > 1 else own

    def _targets(self) -> list[list[float]]:
        rows = [self._weights(s) for s in self._work.stands]
        return [list(column) for column in zip(*rows, strict=True)]

    def _finals(
        self, searches: Sequence[Search], default: Candidate, targets: Sequence[Sequence[float]]
    ) -> None:
        """Measure the best of every workload, the default and the stock against each other."""
        several = len(targets) > 1
        finals = [search.finalists()[: 3 if several else None] for search in searches]
        best = {c.values: c for some in finals for c in some}
        for candidate in best.values():
            self._touch(candidate)
        rounds = self._settings.final_rounds
        stock = self._problem.stock()
        everyone = set(enumerate(stock)) | launches([*best.values(), default])
        self._compare(everyone, rounds)
        while time.monotonic() < self._until and self._compares < COMPARISONS:
            unsure = [s.contenders(f) for s, f in zip(searches, finals, strict=True)]
            again = {c.values: c for some in unsure if len(some) > 1 for c in some}
            if not again:
                return
            self._compare(launches(again.values()), 2 * rounds)

    def _compare(self, pairs: set[Pair], rounds: int) -> None:
        good = [p for p in sorted(pairs) if not self._failed(p)]
        number, self._compares = self._compares, self._compares + 1
        self._measure(good, rounds, number)

    def _failed(self, pair: Pair) -> bool:
        entry = self._ledger.entries.get(pair)
        return entry is not None and bool(entry.failure)

    def _touch(self, candidate: Candidate) -> None:
        """Write down that a tuple is being measured."""
        if candidate.values in self._named:
            return
        self._named.add(candidate.values)
        for number in candidate.choices:
            self._record_choice(number)
        record = {"kind": "candidate", "values": candidate.values, "choices": candidate.choices}
        self._write({**record, "family": self._problem.family})

    def _record_choice(self, number: int) -> None:
        if number in self._written:
            return
        self._written.add(number)
        choice = self._problem.choices[number]
        record = {"kind": "choice", "family": self._problem.family, "number": number}
        self._write({**record, "choice": dict(choice)})

    def _measure(self, pairs: Sequence[Pair], rounds: int, compare: int | None) -> None:
        if time.monotonic() >= self._until:
            raise OutOfBudget
        for _, choice in pairs:
            self._record_choice(choice)
        jobs = {self._problem.job(p).key: p for p in pairs}
        asked = [self._problem.job(p) for p in pairs]
        ahead = getattr(self._executor, "compile_ahead", None) if self._compiles else None
        fresh = {p[1] for p in pairs if not any(q[1] == p[1] for q in self._ledger.entries)}
        if ahead is not None and len(fresh) >= AHEAD:
            ahead(asked, lambda n, of: self._progress("compiling", n, of))
        got = 0
        what = "comparing the best" if compare is not None else "searching"
        for sample in self._executor.measure(asked, rounds):
            got += 1
            call, choice = jobs[sample.job.key]
            record = {
                "kind": "sample",
                "family": self._problem.family,
                "call": call,
                "choice": choice,
                "seconds": list(sample.seconds),
                "failure": sample.failure,
                "compare": compare,
            }
            self._ledger.add(record)
            self._write(record)
            self._done += 1
            self._progress(
                f"{self._problem.family}: {what}", self._done, self._done + len(asked) - got
            )
        if got < len(asked):
            raise OutOfBudget

    def _held(self, kind: str, family: str) -> list[dict[str, Any]]:
        return [r for r in self._journal.of_kind(kind) if r["family"] == family]

    def _write(self, record: Mapping[str, Any]) -> None:
        self._journal.write(json.loads(json.dumps(jsonable(record))))
