"""What kernels estimate of a launch, against what was measured and against what it really does."""

from __future__ import annotations

import gzip
import importlib.util
import json
import math
import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from selc.harness.call import Call, Request
from selc.harness.kernels import attention_estimate, moe_estimate
from selc.harness.kernels.attention_work import work_of
from selc.harness.kernels.splits import Config
from selc.harness.protocol import load_kernels
from selc.harness.tune.ledger import Ledger, center
from selc.harness.tune.problem import Pair, Problem
from selc.harness.tune.search import Search, Settings
from tests.harness import synthetic
from tests.harness.synthetic import Model
from tests.harness.tuning import ModelSelector, calls_of, weights_of

ROOT = Path(__file__).resolve().parents[2]
GRIDS = ROOT / "benchmarks" / "data" / "tuner"


@pytest.mark.parametrize("name", ["gemm-w-b", "moe-w-b", "attention-w-b"])
def test_the_fastest_measured_choices_are_among_the_first_estimated(name: str) -> None:
    pytest.importorskip("torch")
    grid = json.loads(gzip.decompress((GRIDS / f"{name}.json.gz").read_bytes()))
    kernels = load_kernels(grid["family"])
    rows = [{(c, k): t for c, k, t in run} for run in grid["times"]]
    for number, each in enumerate(grid["calls"]):
        choices = sorted({row[number] for _, row in grid["candidates"]})
        if not all((number, k) in run for run in rows for k in choices):
            continue
        requests = tuple(Request(*r) for r in each["requests"])
        call = Call(grid["family"], each["inputs"], grid["facts"], requests, each["extra"])
        measured = {k: center(rows[0][number, k]) for k in choices}
        estimated = sorted(choices, key=lambda k: kernels.estimate(call, grid["choices"][k]))
        first = min(measured[k] for k in estimated[: len(estimated) // 8])
        assert first <= 1.05 * min(measured.values())
        ordered = sorted(measured.values())
        assert ordered[len(ordered) // 2] > 1.01 * ordered[0]


def test_the_work_of_an_attention_launch_is_that_of_its_kernels() -> None:
    source = random.Random(0)
    for _ in range(60):
        requests = []
        for seed in range(source.randint(1, 6)):
            rows = source.choice((1, 1, 7, 300))
            requests.append(Request(seed, rows, rows + source.randint(0, 3000)))
        group, heads = source.choice((1, 4, 8)), source.choice((1, 2, 8))
        config = Config(source.choice((0, 256, 1024)), 1, source.choice((16, 64)), 64, 4, 3)
        work = work_of(tuple(requests), group, heads, config, 132)
        strides = config.split_stride, config.num_splits, config.block_n
        load = attention_estimate._load(tuple(requests), group, heads, config.block_m, strides, 132)
        assert load.items == len(work.items)
        assert load.partial_rows == work.partial_rows
        assert load.longest == max(item[6] - item[5] for item in work.items)
        assert (load.most_splits > 0) == bool(work.folds)


@pytest.mark.parametrize(("rows", "experts", "topk"), [(1, 128, 8), (40, 16, 2), (500, 8, 2)])
def test_blocks_of_experts_are_what_even_routing_gives_on_average(
    rows: int, experts: int, topk: int
) -> None:
    source, block, draws = random.Random(0), 16, 300
    blocks = used = 0
    for _ in range(draws):
        counts = [0] * experts
        for _ in range(rows):
            for expert in source.sample(range(experts), topk):
                counts[expert] += 1
        blocks += sum(math.ceil(c / block) for c in counts)
        used += sum(c > 0 for c in counts)
    found = moe_estimate.blocks_of(rows, experts, topk, block)
    assert found == pytest.approx((blocks / draws, used / draws), rel=0.02)


class Told:
    """Kernels that estimate a model's times, quirks left out."""

    def __init__(self, model: Model, power: float = 1.0) -> None:
        self.model, self.power = model, power

    def estimate(self, call: Call, choice: Mapping[str, Any]) -> float:
        return float(self.model.seconds(call.inputs, choice) ** self.power)


class Broken(Told):
    """Kernels whose estimates are no numbers of seconds; None: they raise."""

    def __init__(self, model: Model, says: float | None) -> None:
        super().__init__(model)
        self.says = says

    def estimate(self, call: Call, choice: Mapping[str, Any]) -> float:
        if self.says is None:
            raise KeyError("a point that is not there")
        return self.says


def searched(model: Model, kernels: Any, limit: int) -> tuple[list[Pair], float]:
    """The launches that a search measured, and how far its best tuple is from the best."""
    problem = Problem(model.name, ModelSelector(model), kernels, calls_of(model))
    every, ledger, asked = problem.every(), Ledger(), []
    assert every is not None
    weights, source = weights_of(model), random.Random(1)

    def seconds(pair: Pair) -> float:
        return model.seconds(problem.calls[pair[0]].inputs, problem.choices[pair[1]])

    def measure(pairs: Sequence[Pair], rounds: int, compare: int | None) -> None:
        for pair in pairs:
            asked.append(pair)
            times = [seconds(pair) * math.exp(source.gauss(0, 0.01)) for _ in range(rounds)]
            row = {"call": pair[0], "choice": pair[1], "compare": compare}
            ledger.add({**row, "seconds": times, "failure": ""})

    search = Search(
        problem, weights, every[-1], every, ledger, measure, Settings(limit=limit, seed=0)
    )
    search.run(lambda: 1.0)

    def cost(choices: Sequence[int]) -> float:
        return sum(w * seconds(p) for w, p in zip(weights, enumerate(choices), strict=True))

    best = search.finalists()[0]
    return asked, cost(best.choices) / min(cost(c.choices) for c in every) - 1


def test_a_good_estimate_saves_launches() -> None:
    model = synthetic.design()[5]
    limit = 4 * len(model.calls)
    asked, regret = searched(model, Told(model), limit)
    assert len(set(asked)) <= limit
    assert regret < 0.01
    _, without = searched(model, object(), limit)
    assert without > 0.02


def test_an_estimate_that_misleads_is_not_believed_for_long() -> None:
    model = synthetic.design()[0]
    limit = len(model.tuples()) * len(model.calls) // 5
    _, regret = searched(model, Told(model, power=-0.5), limit)
    assert regret < 0.05


@pytest.mark.parametrize("says", [None, math.nan, math.inf, 0.0, -1.0])
def test_an_estimate_that_fails_is_none(says: float | None) -> None:
    model = synthetic.design()[0]
    limit = 5 * len(model.calls)
    assert searched(model, Broken(model, says), limit) == searched(model, object(), limit)


def test_what_is_within_the_noise_of_the_best_gets_to_the_finals() -> None:
    """A recorded grid, where a launch that its fastest tuple lacked was worth little to know."""
    pytest.importorskip("torch")
    spec = importlib.util.spec_from_file_location("tuner", ROOT / "benchmarks" / "tuner.py")
    assert spec is not None
    assert spec.loader is not None
    tuner = sys.modules["tuner"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tuner)
    grid = GRIDS.parent / "holdout" / "gemm_down_70b-w-b-c.json.gz"
    judge = tuner.Judge(tuner.Table(json.loads(gzip.decompress(grid.read_bytes()))))
    best, *_ = judge.tuned(None, 4)
    assert judge.regret(best) == 0
