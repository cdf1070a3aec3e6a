"""The tuner's search on cost models: how near it comes, what it measures, and what disturbs it."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from selc.diag.diagnostic import Diagnostic, Refused
from selc.harness.call import Call
from selc.harness.tune.calls import Stand, representatives
from selc.harness.tune.decide import ratio
from selc.harness.tune.ledger import Ledger, center
from selc.harness.tune.problem import Candidate, Pair, Problem, distinct, launches
from selc.harness.tune.search import Search, Settings
from tests.harness import synthetic
from tests.harness.synthetic import Model
from tests.harness.tuning import ModelSelector, Noise, calls_of, weights_of


class Trial:
    """A search on a model, and what its results are worth."""

    def __init__(
        self, model: Model, noise: Noise, limit: int | None, failing: Any = None, seed: int = 0
    ) -> None:
        self.model, self.noise, self.failing = model, noise, failing
        self.problem = Problem(model.name, ModelSelector(model), object(), calls_of(model))
        every = self.problem.every()
        assert every is not None
        self.every, self.ledger, self.weights = every, Ledger(), weights_of(model)
        self.asked: list[Pair] = []
        start = self.problem.indices(self.near(model.stock(model.calls[0][0])))
        default = self.problem.candidate(start)
        assert default is not None
        self.default = default
        self.search = Search(
            self.problem, self.weights, self.default, every, self.ledger, self.measure,
            Settings(limit=limit, seed=seed),
        )  # fmt: skip

    def near(self, wanted: Mapping[str, Any]) -> Mapping[str, Any]:
        return min(self.model.tuples(), key=lambda t: sum(t[n] != v for n, v in wanted.items()))

    def measure(self, pairs: Sequence[Pair], rounds: int, compare: int | None) -> None:
        for pair in pairs:
            self.asked.append(pair)
            job = self.problem.job(pair)
            failure = self.failing(job.choice) if self.failing else ""
            true = self.model.seconds(job.call.inputs, job.choice)
            times = [] if failure else [self.noise(true) for _ in range(rounds)]
            row = {"call": pair[0], "choice": pair[1], "compare": compare}
            self.ledger.add({**row, "seconds": times, "failure": failure})

    def true(self, candidate: Candidate) -> float:
        pairs = enumerate(candidate.choices)
        return sum(
            w * self.model.seconds(self.problem.calls[c].inputs, self.problem.choices[k])
            for w, (c, k) in zip(self.weights, pairs, strict=True)
        )

    def result(self) -> Candidate:
        self.search.run(lambda: 1.0)
        best = self.search.finalists()
        self.measure(sorted(launches(best)), 10, 0)
        return self.search.contenders(best)[0]

    def regret(self) -> float:
        works = [c for c in self.every if not self.failing or not self.failing_of(c)]
        return self.true(self.result()) / min(map(self.true, works)) - 1

    def failing_of(self, candidate: Candidate) -> str:
        return next(
            (w for k in candidate.choices if (w := self.failing(self.problem.choices[k]))), ""
        )


def small(model: Model, share: float) -> int:
    return int(share * len(model.tuples()) * len(model.calls))


@pytest.mark.parametrize("model", synthetic.design()[2:5], ids=lambda m: m.name)
def test_finds_a_fast_tuple_with_few_launches(model: Model) -> None:
    trial = Trial(model, Noise(0.02), limit := small(model, 0.08))
    assert trial.regret() < 0.03
    searched = {p for p, e in trial.ledger.entries.items() if e.search}
    assert len(searched) <= limit
    ordered = sorted(map(trial.true, trial.every))
    assert ordered[len(ordered) // 2] / ordered[0] > 1.3  # it would be easy otherwise


@pytest.mark.parametrize("by_time", [False, True])
@pytest.mark.parametrize("model", synthetic.design()[2:5], ids=lambda m: m.name)
def test_what_is_left_goes_into_the_best_guess(model: Model, by_time: bool) -> None:
    """Only what was measured on every call can win, so a search that ends early must have some."""
    enough = 4 * len(model.calls)
    trial = Trial(model, Noise(0.02), None if by_time else enough)
    trial.search.run(lambda: float(enough - len(set(trial.asked))) if by_time else 1.0)
    cost = trial.ledger.cost
    whole = [c for c in trial.search.touched.values() if cost(c.choices, trial.weights)]
    assert {c.choices for c in whole} > {trial.default.choices}
    assert len(set(trial.asked)) <= enough + (len(model.calls) if by_time else 0)
    assert trial.true(trial.search.finalists()[0]) < trial.true(trial.default)


def test_jitter_and_outliers_cost_little() -> None:
    model = synthetic.design()[3]
    quiet = sorted(map(Trial(model, Noise(0.0), 1).true, Trial(model, Noise(0.0), 1).every))
    trial = Trial(model, Noise(0.2, outliers=0.05), small(model, 0.2))
    assert trial.true(trial.result()) <= quiet[len(quiet) // 20] * 1.05
    assert 0.1 < trial.ledger.spread() < 0.4


def test_what_fails_never_wins_and_is_not_asked_again() -> None:
    model = synthetic.design()[5]

    def failing(choice: Mapping[str, Any]) -> str:
        return "out of resource" if choice["num_stages"] >= 3 else ""

    trial = Trial(model, Noise(0.02), None, failing)
    winner = trial.result()
    assert not trial.failing_of(winner)
    failed = [p for p in trial.asked if failing(trial.problem.choices[p[1]])]
    assert len(failed) == len(set(failed))
    assert trial.regret() < 0.05


def test_equal_choices_are_one_launch() -> None:
    model = synthetic.design()[0]
    half: Model = Model(
        model.name, {**model.grid, "spare": (0, 1)}, model.legal, model.calls, model.seconds,
        model.stock,
    )  # fmt: skip

    class Kernels:
        parameters = tuple(model.grid)

    problem = Problem("x", ModelSelector(half), Kernels(), calls_of(half))
    every = problem.every()
    assert every is not None
    assert len(every) == 2 * len(distinct(every)) == 2 * len(model.tuples())
    assert len(launches(every)) == len(model.tuples()) * len(model.calls)
    first = next(c for c in every if c.choices == every[-1].choices)
    assert first in distinct(every)
    assert first.values < every[-1].values


class Huge:
    """10^12 legal tuples of which none may be listed."""

    parameters: Mapping[str, tuple[Any, ...]] = {
        f"p{i}": tuple(2**k for k in range(10)) for i in range(12)
    }

    def legal(self, partial: Mapping[str, Any]) -> Mapping[str, tuple[Any, ...]]:
        return {n: ((partial[n],) if n in partial else v) for n, v in self.parameters.items()}

    def choice(self, commitment: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
        return dict(commitment)

    def stock(
        self, inputs: Mapping[str, Any], commitment: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        return dict.fromkeys(self.parameters, 1)


def test_a_grid_that_cannot_be_listed() -> None:
    calls = (Call("huge", {"m": 1}), Call("huge", {"m": 64}))
    problem = Problem("huge", Huge(), object(), calls)
    assert problem.every() is None
    default = problem.candidate((0,) * 12)
    assert default is not None
    ledger = Ledger()

    def seconds(choice: Mapping[str, Any]) -> float:
        away = sum((math.log2(v) - 6) ** 2 for v in choice.values())
        return 1e-4 * (1 + 0.02 * away)

    def measure(pairs: Sequence[Pair], rounds: int, compare: int | None) -> None:
        for call, choice in pairs:
            times = [seconds(problem.choices[choice])] * rounds
            row = {"call": call, "choice": choice, "compare": compare}
            ledger.add({**row, "seconds": times, "failure": ""})

    search = Search(problem, [1.0, 1.0], default, None, ledger, measure, Settings(limit=60))
    search.run(lambda: 1.0)
    best = search.finalists()[0]
    start, end = ledger.cost(default.choices, [1, 1]), ledger.cost(best.choices, [1, 1])
    assert start is not None
    assert end is not None
    assert end < 0.6 * start


def test_a_tuple_that_refuses_a_call_is_no_candidate() -> None:
    model = synthetic.design()[0]

    class Refusing(ModelSelector):
        def choice(
            self, commitment: Mapping[str, Any], inputs: Mapping[str, Any]
        ) -> dict[str, Any]:
            if commitment["BLOCK_M"] == 16 and inputs["m"] == 512:
                raise Refused(Diagnostic("SEL952", "too many rows"))
            return super().choice(commitment, inputs)

    problem = Problem("x", Refusing(model), object(), calls_of(model))
    every = problem.every()
    assert every is not None
    assert all(problem.assignment(c.values)["BLOCK_M"] != 16 for c in every)
    assert set(problem.refused.values()) == {"too many rows"}


def test_intervals_hold_the_true_ratio() -> None:
    inside = 0
    for seed in range(40):
        source = random.Random(seed)
        ledger = Ledger()
        for call in range(3):
            for choice, true in ((0, 1.0), (1, 1.02)):
                times = [true * math.exp(source.gauss(0, 0.02)) for _ in range(10)]
                row = {"call": call, "choice": choice, "compare": 0, "failure": ""}
                ledger.add({**row, "seconds": times})
        found = ratio(ledger, [1.0, 2.0, 3.0], (1, 1, 1), (0, 0, 0))
        assert found.low <= found.value <= found.high
        inside += found.low <= 1.02 <= found.high
    assert inside >= 32


def test_what_disturbs_a_round_cancels_out() -> None:
    ledger = Ledger()
    drift = [1.0, 3.0, 1.5, 2.0, 1.0, 4.0]
    for choice, true in ((0, 1.0), (1, 1.1)):
        row = {"call": 0, "choice": choice, "compare": 0, "failure": ""}
        ledger.add({**row, "seconds": [true * d for d in drift]})
    found = ratio(ledger, [1.0], (1,), (0,))
    assert (found.low, found.high) == pytest.approx((1.1, 1.1))
    same = ratio(ledger, [1.0], (1,), (1,))
    assert (same.low, same.value, same.high) == (1.0, 1.0, 1.0)


def test_center_is_not_moved_by_outliers() -> None:
    assert center([1.0]) == 1.0
    assert center([1.0, 3.0]) == 2.0
    assert center([1.0, 2.0, 90.0]) == 2.0
    assert center([1.0, 1.0, 1.2, 50.0]) == pytest.approx(1.1)


def test_a_few_calls_stand_for_many() -> None:
    stands = [Stand(Call("f", {"m": m}), (float(m % 5 + 1), 1.0)) for m in range(1, 301)]
    works = [float(s.call.inputs["m"]) for s in stands]
    few = representatives(stands, works, 8)
    assert len(few) == 8
    assert sum(s.distinct for s in few) == 300
    for target in (0, 1):
        whole = sum(s.weights[target] * w for s, w in zip(stands, works, strict=True))
        kept = sum(s.weights[target] * s.call.inputs["m"] for s in few)
        assert kept == pytest.approx(whole)
    assert representatives(stands[:5], works[:5], 8) == stands[:5]


def test_the_stock_selection_takes_knobs_under_which_it_works() -> None:
    model = synthetic.design()[0]

    class Refusing(ModelSelector):
        default = model.tuples()[0]

        def stock(
            self, inputs: Mapping[str, Any], commitment: Mapping[str, Any] | None = None
        ) -> dict[str, Any]:
            if (commitment or self.default)["num_warps"] == 4 and inputs["m"] == 512:
                raise Refused(Diagnostic("SEL952", "more than a thread holds"))
            return super().stock(inputs, commitment)

    selector = Refusing(model)
    problem = Problem("x", selector, object(), calls_of(model))
    assert len(problem.stock()) == len(model.calls)
    assert problem.stock_tuple is not None
    assert problem.stock_tuple["num_warps"] == 8
    changed = [n for n, v in problem.stock_tuple.items() if selector.default[n] != v]
    assert len(changed) == min(
        sum(t[n] != selector.default[n] for n in t) for t in model.tuples() if t["num_warps"] == 8
    )
