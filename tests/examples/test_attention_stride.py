"""The policy with a fixed stride: a request's splits follow its own length, no batch its bits."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest

from selc.diag.diagnostic import Sink
from selc.driver.pipeline import Clock, Plan, decide
from selc.lang import RequireError, knobs
from tests.examples.fa3 import EXAMPLES, module, run
from tests.examples.test_attention import PATHS, deployment, some_batch

STRIDE = module("attention_stride")
NEUTRAL = {"num_splits", "kNWarps", "scheduler"}


@pytest.mark.parametrize("stride", STRIDE.STRIDES)
def test_splits_begin_at_multiples_of_the_stride(stride: int) -> None:
    rng = random.Random(stride)
    for length in (1, 255, 256, 257, 8192, *(rng.randint(1, 131072) for _ in range(50))):
        bounds = STRIDE.bounds_of(length, stride)
        assert len(bounds) == STRIDE.splits_of(length, stride)
        assert bounds[0][0] == 0
        assert bounds[-1][1] == length
        assert all(a[1] == b[0] for a, b in itertools.pairwise(bounds))
        assert not stride or all(start % stride == 0 and start < end for start, end in bounds)


@pytest.mark.parametrize("path", PATHS)
def test_no_batch_moves_a_protected_choice(path: str) -> None:
    rng = random.Random(path)
    for model in ("llama", "phi", "gemma", "window"):
        facts = deployment(model, path)
        for stride in (0, 1024, 4096):
            with knobs(split_stride=stride):
                seen = []
                for _ in range(40):
                    batch = some_batch(rng, path)
                    try:
                        seen.append((batch, run(facts, batch, "attention_stride")))
                    except RequireError:
                        assert stride % module_tile(facts) != 0, (facts, stride)
            first = {k: v for k, v in (seen[0][1] if seen else {}).items() if k not in NEUTRAL}
            for batch, got in seen:
                assert {k: v for k, v in got.items() if k not in NEUTRAL} == first
                keys = batch["max_seqlen_k"]
                if path.startswith("kv-cache, page"):
                    keys = -(-keys // 128) * 128
                if "fork" in path or "page" not in path:
                    assert got["num_splits"] == (-(-keys // stride) if stride else 1)
                assert got["num_splits"] <= got["combine_splits"]


def module_tile(facts: dict[str, dict[str, object]]) -> int:
    """The tile of keys of a deployment, as the policy without splits has it."""
    with knobs(split_stride=0):
        batch = {"batch_size": 1, "total_q": 1, "max_seqlen_q": 1, "max_seqlen_k": 1}
        return int(run(facts, batch, "attention_stride")["kBlockN"])


@pytest.mark.parametrize(
    ("layers", "legal"),
    [("h100 llama-3.1-70b vllm tp4", 10), ("h100 llama-3.1-8b sglang tp1", 10)],
)
def test_the_policy_has_no_pins(layers: str, legal: int) -> None:
    files = tuple(Path(EXAMPLES / "facts" / f"{name}.yaml") for name in layers.split())
    decided = decide(Plan(str(EXAMPLES / "attention_stride.py"), files, ()), None, Sink(), Clock())
    assert not decided.residual.pins
    assert (decided.legality.legal, decided.legality.assignments) == (legal, 14)
    assert decided.legality.evidence == "proved"
    moved = {n for n, d in decided.dependence.items() if d.batch_dependent}
    assert moved == {"num_splits"}
