"""Which launches to measure next, until the fastest tuple is known well enough.

A surrogate says what every tuple is expected to cost and how sure that is. The tuple that promises
the greatest improvement is measured on the one call that tells most about it; a tuple that turns
out slow is left after one or two calls, and whatever was measured is known for all tuples that
make the same choice. In the end the best are measured against each other in the same rounds.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from selc.harness.tune.decide import ratio
from selc.harness.tune.ledger import Ledger
from selc.harness.tune.problem import Candidate, Pair, Problem, distinct
from selc.harness.tune.surrogate import Encoder, Surrogate

ENOUGH: Final = 1e-6
"""An expected improvement below this part of the cost is none."""
POOL: Final = 1024
"""Candidates that the surrogate is asked about at a time."""
LARGEST: Final = 500
"""Launches that the surrogate is fitted to."""
FINALISTS: Final = 5
Measure = Callable[[Sequence[Pair], int, "int | None"], None]
"""Measures launches for some rounds; the number says which comparison they belong to."""


class OutOfBudget(Exception):
    """The time is spent."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How much is measured."""

    rounds: int = 3
    final_rounds: int = 10
    batch: int = 2
    limit: int | None = None
    """Distinct launches of candidates that may be measured; None: no limit but time."""
    seed: int = 0


class Search:
    """The search for one workload, over the measurements that all searches of a family share."""

    def __init__(
        self,
        problem: Problem,
        weights: Sequence[float],
        default: Candidate,
        every: list[Candidate] | None,
        ledger: Ledger,
        measure: Measure,
        settings: Settings,
        watch: Callable[[Candidate], None] = lambda candidate: None,
    ) -> None:
        """`watch` is told of every candidate before anything is measured for it."""
        self._problem = problem
        self._watch = watch
        self._weights = list(weights)
        self._default = default
        self._every = None if every is None else distinct(every)
        self._ledger = ledger
        self._measure = measure
        self._settings = settings
        self._random = random.Random(settings.seed)  # noqa: S311
        self._live = [c for c, w in enumerate(weights) if w > 0]
        self._spent: set[Pair] = set()
        self._fitted = 0
        self._surrogate: Surrogate | None = None
        self._encoded = 0
        self._guess: tuple[Candidate, list[Pair]] | None = None
        self.touched: dict[tuple[int, ...], Candidate] = {}
        """Candidates that something was measured for, in that order."""

    def run(self, left: Callable[[], float]) -> None:
        """Search until nothing is to be gained or `left` says that no time is left."""
        stock = self._problem.stock()
        everywhere = [(c, self._default.choices[c]) for c in self._live]
        self._take(self._default, everywhere)
        if stock:
            self._need([(c, stock[c]) for c in self._live])
        began, before = left(), len(self._ledger.entries)
        self._starts(stock or self._default.choices)
        idle = 0
        while left() > 0 and self.room() > 0:
            gains = self._gains()
            pace = (began - left()) / max(1, len(self._ledger.entries) - before)
            if self._guess is not None and self._closes(left(), pace):
                self._take(*self._guess)
                continue
            if not gains or gains[0][0] < ENOUGH:
                idle += 1
                if idle > 1 or not gains:
                    return
            else:
                idle = 0
            for gain, candidate, call in gains[: min(self._settings.batch, self.room())]:
                if gain > 0:
                    self._mark(candidate, [(call, candidate.choices[call])])
            self._flush()

    def _closes(self, left: float, pace: float) -> bool:
        """Whether a step more would leave too little to measure the best guess on every call.

        Only a tuple that was measured on all of them can win.
        """
        assert self._guess is not None
        need = len(self._guess[1]) + self._settings.batch
        return self.room() < need or left < need * pace

    def finalists(self) -> list[Candidate]:
        """The best candidates of those measured on every call, best first."""
        ranked = self._ranked(self.touched.values())
        if not ranked:
            return []
        noise = self._ledger.spread() / math.sqrt(max(1, self._settings.rounds))
        near = 1 + 3 * noise / math.sqrt(len(self._live)) + 2e-3
        return [c for cost, c in ranked if cost <= ranked[0][0] * near][:FINALISTS]

    def contenders(self, among: Sequence[Candidate]) -> list[Candidate]:
        """The best of some candidates, and those that it may be ahead of by chance."""
        ranked = [c for _, c in self._ranked(among)]
        best = ranked[0].choices if ranked else ()

        def close(row: Sequence[int]) -> bool:
            return ratio(self._ledger, self._weights, row, best).low <= 1.0

        return ranked[:1] + [c for c in ranked[1:] if close(c.choices)]

    def _ranked(self, among: Iterable[Candidate]) -> list[tuple[float, Candidate]]:
        costs = [(self._ledger.cost(c.choices, self._weights), c) for c in among]
        known = [(cost, c) for cost, c in costs if cost is not None]
        return sorted(known, key=lambda row: (row[0], row[1].values))

    def _starts(self, stock: Sequence[int]) -> None:
        """Tuples that choose on the heaviest calls what the stock selection does."""
        pool = self._pool()
        encode = Encoder(self._problem.choices)
        points = [encode(c) for c in self._problem.choices]
        seconds = {c: self._ledger.seconds((c, stock[c])) or 0.0 for c in self._live}
        heavy = sorted(self._live, key=lambda c: (-self._weights[c] * seconds[c], c))

        def away(candidate: Candidate, call: int) -> float:
            here, there = points[candidate.choices[call]], points[stock[call]]
            return sum((a - b) ** 2 for a, b in zip(here, there, strict=True))

        for call in heavy[:3]:
            best = min(pool, key=lambda c: (away(c, call), c.values))
            pairs = [(c, best.choices[c]) for c in heavy[:2]]
            self._mark(best, pairs[: max(0, self.room())])
        self._flush()

    def _pool(self) -> list[Candidate]:
        """The candidates that are considered now."""
        if self._every is not None and len(self._every) <= POOL:
            return self._every
        some = self.finalists()[:3] or [self._default]
        near = [n for at in some for n in self._problem.neighbours(at)]
        if self._every is not None:
            drawn = self._random.sample(self._every, POOL // 2)
        else:
            drawn = self._problem.sample(POOL // 8, self._random)
        return distinct([*self.touched.values(), *near, *drawn])[: 2 * POOL]

    def _gains(self) -> list[tuple[float, Candidate, int]]:
        """Candidates by how much they promise, each with the call that tells most of it."""
        import numpy as np

        pool = [c for c in self._pool() if not self._ledger.failed(c.choices)]
        if not pool:
            return []
        if not self._fit():
            return self._elsewhere(pool)
        assert self._surrogate is not None
        weights = np.asarray(self._weights)
        which = np.array([c.choices for c in pool])
        mean, covariance = self._surrogate.predict(which)
        parts = weights * np.exp(mean)
        total = parts.sum(1)
        share = parts / total[:, None]
        toward = np.einsum("tcd,td->tc", covariance, share)
        deviation = np.sqrt(np.maximum((toward * share).sum(1), 1e-12))
        known = np.array([[self._ledger.known(p) for p in enumerate(c.choices)] for c in pool])
        known |= weights == 0
        full = np.asarray(known.all(1))
        level = np.log(total)
        best = level[full].min() if full.any() else level.min()
        z = (best - level) / deviation
        normal = np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
        below = np.array([0.5 * math.erfc(-v / math.sqrt(2)) for v in z])
        gain = np.where(full, 0.0, deviation * (z * below + normal))
        self._guess = None
        open_, room = (~known).sum(1), self.room()
        for at in np.argsort(level, kind="stable").tolist():
            if level[at] >= best or full[at]:
                break
            if open_[at] <= room:
                row = enumerate(pool[at].choices)
                self._guess = pool[at], [p for p in row if not known[at][p[0]]]
                break
        told = toward**2 / np.maximum(np.einsum("tcc->tc", covariance), 1e-12)
        told[known] = -1.0
        rows = zip(gain.tolist(), pool, told.argmax(1).tolist(), full.tolist(), strict=True)
        found = [(g, c, call) for g, c, call, whole in rows if not whole]
        return sorted(found, key=lambda row: (-row[0], row[1].values))

    def _elsewhere(self, pool: Sequence[Candidate]) -> list[tuple[float, Candidate, int]]:
        """While all has failed: candidates that choose most unlike what failed."""
        encode = Encoder(self._problem.choices)
        bad = [encode(self._problem.choices[k]) for _, k in self._ledger.entries]

        def apart(candidate: Candidate) -> float:
            point = encode(self._problem.choices[candidate.choices[self._live[0]]])
            return min((math.dist(point, other) for other in bad), default=0.0)

        ordered = sorted(pool, key=lambda c: (-apart(c), c.values))
        return [(1.0, c, self._live[0]) for c in ordered]

    def _fit(self) -> bool:
        problem, ledger = self._problem, self._ledger
        times = {p: s for p in ledger.entries if (s := ledger.seconds(p)) is not None}
        if not times:
            return False
        if self._surrogate is None or self._encoded < len(problem.choices):
            encode = Encoder(problem.choices)
            where = Encoder([_numbers(c.inputs) for c in problem.calls])
            self._surrogate = Surrogate(
                [encode(c) for c in problem.choices],
                [where(_numbers(c.inputs)) for c in problem.calls],
                encode.groups,
            )
            self._encoded, self._fitted = len(problem.choices), 0
        fastest: dict[int, float] = {}
        for (call, _), seconds in times.items():
            fastest[call] = min(seconds, fastest.get(call, seconds))
        pairs = sorted(times, key=lambda p: (times[p] / fastest[p[0]], p))[:LARGEST]
        sweeps = 1 if len(pairs) >= 1.15 * self._fitted else 0
        if sweeps:
            self._fitted = len(pairs)
        noise = 1.2 * ledger.spread() / math.sqrt(self._settings.rounds)
        self._surrogate.fit(
            [p[1] for p in pairs],
            [p[0] for p in pairs],
            [math.log(times[p]) for p in pairs],
            noise,
            sweeps,
        )
        return True

    def room(self) -> int:
        """How many launches may still be measured."""
        limit = self._settings.limit
        known = sum(len(e.every) > 0 for e in self._ledger.entries.values())
        return 1 << 30 if limit is None else limit - known - len(self._spent)

    def _take(self, candidate: Candidate, pairs: Sequence[Pair]) -> None:
        self._mark(candidate, pairs)
        self._flush()

    def _mark(self, candidate: Candidate, pairs: Sequence[Pair]) -> None:
        if candidate.values not in self.touched:
            self.touched[candidate.values] = candidate
            self._watch(candidate)
        self._spent.update(p for p in pairs if not self._ledger.known(p))

    def _flush(self) -> None:
        self._need(sorted(self._spent))
        self._spent.clear()

    def _need(self, pairs: Sequence[Pair]) -> None:
        missing = [p for p in dict.fromkeys(pairs) if not self._ledger.known(p)]
        if missing:
            self._measure(missing, self._settings.rounds, None)


def _numbers(inputs: Any) -> dict[str, Any]:
    """The inputs that can be told apart as points."""
    return {k: v for k, v in inputs.items() if isinstance(v, bool | int | float | str)}
