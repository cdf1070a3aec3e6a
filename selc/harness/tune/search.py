"""Which launches to measure next, until the fastest tuple is known well enough.

A surrogate says what every tuple is expected to cost and how sure that is. Where kernels estimate
what a launch takes, the launch is measured next that is worth most to know, whichever tuples make
it. Without estimates it is the one that tells most about the tuple that promises the greatest
improvement. A tuple that turns out slow is left after a call or two, and whatever was measured is
known for all tuples that make the same choice. In the end the best are measured against each other
in the same rounds.
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
WORTH: Final = 1e-5
"""The same of a single launch, where kernels estimate what they take."""
RIVALS: Final = 400
"""Launches, about, of the candidates that are looked at closely."""
STEPS: Final = tuple(k / 4 for k in range(-14, 15))
"""Deviations at which the outcome of a measurement is looked at."""
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
    """Launches that are measured at a time where kernels estimate nothing."""
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
        self._told = problem.expected() is not None
        self._random = random.Random(settings.seed)  # noqa: S311
        self._live = [c for c, w in enumerate(weights) if w > 0]
        self._spent: set[Pair] = set()
        self._fitted = 0
        self._surrogate: Surrogate | None = None
        self._encoded = 0
        self._rivals: list[tuple[float, Candidate]] = []
        """Candidates that are not measured on every call, the most promising first, with
        what they cost if they are a deviation faster than they are expected to be."""
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
        if not self._told:
            self._starts(stock or self._default.choices)
        idle, batch, enough = 0, self._settings.batch, ENOUGH
        if self._told:
            batch, enough = 1, WORTH
        while left() > 0 and self.room() > 0:
            gains = self._gains()
            pace = (began - left()) / max(1, len(self._ledger.entries) - before)
            idle = 0 if gains and gains[0][0] >= enough else idle + 1
            closes = (idle and self._told) or self._closes(left(), pace)
            if self._guess and self._guess[1] and closes:
                self._take(self._guess[0], self._guess[1][: 1 if self._told else None])
                continue
            if not gains or idle > (0 if self._told else 1):
                self._complete(left)
                return
            for gain, pair, candidate in gains[: min(batch, self.room())]:
                if gain > 0:
                    self._mark(candidate, [pair])
            if not self._spent:
                return
            self._flush()

    def _closes(self, left: float, pace: float) -> bool:
        """Whether a step more would leave too little to measure the best guess on every call.

        Only a tuple that was measured on all of them can win.
        """
        if self._guess is None:
            return False
        need = len(self._guess[1]) + self._settings.batch
        return self.room() < need or left < need * pace

    def _complete(self, left: Callable[[], float]) -> None:
        """Measure on every call what may be ahead of the best by chance: it belongs to the finals.

        What a launch is worth to know says nothing of that: its noise is the same once it is known.
        """
        ranked = self._ranked(self.touched.values())
        limit = math.log(ranked[0][0] * self._near()) if ranked else -math.inf
        for level, candidate in self._rivals[:FINALISTS]:
            pairs = [(c, candidate.choices[c]) for c in self._live]
            missing = [p for p in pairs if not self._ledger.known(p)]
            if left() <= 0 or len(missing) > self.room():
                return
            if level <= limit:
                self._take(candidate, missing)

    def finalists(self) -> list[Candidate]:
        """The best candidates of those measured on every call, best first."""
        ranked = self._ranked(self.touched.values())
        if not ranked:
            return []
        near = self._near()
        return [c for cost, c in ranked if cost <= ranked[0][0] * near][:FINALISTS]

    def _near(self) -> float:
        """How much more a candidate may seem to cost, by chance, than one that is no faster."""
        noise = self._ledger.spread() / math.sqrt(max(1, self._settings.rounds))
        return 1 + 3 * noise / math.sqrt(len(self._live)) + 2e-3

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

    def _gains(self) -> list[tuple[float, Pair, Candidate]]:
        """What to measure next, and whose it is, by how much it promises."""
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
        known = np.array([[self._ledger.known(p) for p in enumerate(c.choices)] for c in pool])
        known |= weights == 0
        level, share = np.log(parts.sum(1)), parts / parts.sum(1)[:, None]
        toward = np.einsum("tcd,td->tc", covariance, share)
        spread = np.sqrt(np.maximum((toward * share).sum(1), 1e-12))
        if not self._told:
            told = toward**2 / np.maximum(np.einsum("tcc->tc", covariance), 1e-12)
            return self._promising(pool, level, spread, known, told)
        lead = self._leader(pool, level, known, share)
        rivals = np.argsort(level - spread, kind="stable")[: max(8, RIVALS // len(weights))]
        rivals = np.concatenate([[lead], rivals[rivals != lead]])
        order = level.argsort(kind="stable")[: 2 * FINALISTS].tolist()
        self._rivals = [
            (float(level[at] - spread[at]), pool[at]) for at in order if not known[at].all()
        ]
        return self._worth([pool[at] for at in rivals], level[rivals], share[rivals])

    def _promising(
        self, pool: Sequence[Candidate], level: Any, spread: Any, known: Any, told: Any
    ) -> list[tuple[float, Pair, Candidate]]:
        """By how much each candidate may better the best that was measured on every call."""
        import numpy as np

        full = np.asarray(known.all(1))
        best = level[full].min() if full.any() else level.min()
        z = (best - level) / spread
        normal = np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
        below = np.array([0.5 * math.erfc(-v / math.sqrt(2)) for v in z])
        gain = spread * (z * below + normal)
        self._guess = None
        open_, room = (~known).sum(1), self.room()
        for at in np.argsort(level, kind="stable").tolist():
            if level[at] >= best or full[at]:
                break
            if open_[at] <= room:
                row = enumerate(pool[at].choices)
                self._guess = pool[at], [p for p in row if not known[at][p[0]]]
                break
        told[known] = -1.0
        calls = told.argmax(1).tolist()
        order = sorted(np.flatnonzero(~full), key=lambda at: (-gain[at], pool[at].values))
        return [
            (float(gain[at]), (calls[at], pool[at].choices[calls[at]]), pool[at]) for at in order
        ]

    def _worth(
        self, rivals: Sequence[Candidate], level: Any, share: Any
    ) -> list[tuple[float, Pair, Candidate]]:
        """The launches of some candidates that are not known, by what it is worth to know them.

        A launch tells of all candidates that are like it. What they are expected to cost moves with
        what it turns out to take, and with that which of them is expected to cost least.
        """
        import numpy as np

        assert self._surrogate is not None
        owner: dict[Pair, int] = {}
        for at, candidate in enumerate(rivals):
            for call in self._live:
                owner.setdefault((call, candidate.choices[call]), at)
        pairs = list(owner)
        place = {pair: at for at, pair in enumerate(pairs)}
        part = np.zeros((len(rivals), len(pairs)))
        for at, candidate in enumerate(rivals):
            for call in self._live:
                part[at, place[call, candidate.choices[call]]] = share[at, call]
        _, covariance = self._surrogate.joint(
            np.array([k for _, k in pairs]), np.array([c for c, _ in pairs])
        )
        noise = math.exp(self._surrogate.scales.noise)
        told = part @ covariance / np.sqrt(np.maximum(np.diag(covariance), 0) + noise)
        worth = np.zeros(len(pairs))
        for step, chance in zip(STEPS, _normal(STEPS), strict=True):
            worth += chance * (level.min() - (level[:, None] + step * told).min(0))
        order = np.argsort(-worth, kind="stable").tolist()
        open_ = [at for at in order if not self._ledger.known(pairs[at])]
        return [(float(worth[at]), pairs[at], rivals[owner[pairs[at]]]) for at in open_]

    def _leader(self, pool: Sequence[Candidate], level: Any, known: Any, share: Any) -> int:
        """The candidate that is expected to cost least, of those that can still be measured."""
        open_, room = (~known).sum(1), self.room()
        order = level.argsort(kind="stable").tolist()
        lead = next((at for at in order if open_[at] <= room), order[0])
        row = [p for p in enumerate(pool[lead].choices) if not known[lead][p[0]]]
        self._guess = pool[lead], sorted(row, key=lambda p: (-share[lead][p[0]], p))
        return int(lead)

    def _elsewhere(self, pool: Sequence[Candidate]) -> list[tuple[float, Pair, Candidate]]:
        """While all has failed: candidates that choose most unlike what failed."""
        encode = Encoder(self._problem.choices)
        bad = [encode(self._problem.choices[k]) for _, k in self._ledger.entries]

        def apart(candidate: Candidate) -> float:
            point = encode(self._problem.choices[candidate.choices[self._live[0]]])
            return min((math.dist(point, other) for other in bad), default=0.0)

        ordered = sorted(pool, key=lambda c: (-apart(c), c.values))
        call = self._live[0]
        return [(1.0, (call, c.choices[call]), c) for c in ordered]

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
                self._problem.expected(),
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


def _normal(steps: Sequence[float]) -> list[float]:
    """The chance of each of some equally spaced deviations."""
    heights = [math.exp(-s * s / 2) for s in steps]
    return [h / math.fsum(heights) for h in heights]


def _numbers(inputs: Any) -> dict[str, Any]:
    """The inputs that can be told apart as points."""
    return {k: v for k, v in inputs.items() if isinstance(v, bool | int | float | str)}
