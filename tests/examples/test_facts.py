"""The facts files of the examples load, and their layers fit on each other."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from selc.diag.diagnostic import Sink
from selc.frontend.facts import load_facts

FACTS = Path(__file__).resolve().parents[2] / "examples" / "facts"
LAYERS = ["h100", "qwen3-30b-a3b", "vllm", "tp4"]


@pytest.mark.parametrize("path", sorted(FACTS.glob("*.yaml")), ids=lambda p: p.stem)
def test_each_file(path: Path) -> None:
    sink = Sink()
    facts = load_facts([path], sink)
    assert not sink.items
    assert len(facts.layers) == 1


def test_layers_together() -> None:
    sink = Sink()
    facts = load_facts([FACTS / f"{name}.yaml" for name in LAYERS], sink)
    assert not sink.items
    assert set(facts.facts) == {"device", "model", "engine", "parallel", "comm", "build"}
    assert (facts.inputs["num_tokens"].lo, facts.inputs["num_tokens"].hi) == (1, 16384)
    assert len(facts.tables["tuned"]) == 13  # type: ignore[arg-type]  # a mapping


def test_layers_that_describe_the_same_can_be_chosen_between() -> None:
    """No two layers of one deployment state the same key: they combine in any order."""
    kinds = [
        ["h100", "h200", "b200"],
        ["llama-3.1-70b", "llama-3.1-8b", "phi-3.5-mini", "gemma-7b-it", "qwen3-30b-a3b"],
        ["vllm", "sglang"],
        ["tp1", "tp2", "tp4", "tp8"],
    ]
    stated = [{key for name in kind for key in _keys(name)} for kind in kinds]
    for a, b in itertools.combinations(stated, 2):
        assert not a & b


def _keys(name: str) -> set[str]:
    facts = load_facts([FACTS / f"{name}.yaml"], Sink())
    out = {f"facts.{k}.{x}" for k, v in facts.facts.items() if isinstance(v, dict) for x in v}
    out |= {f"facts.{k}" for k, v in facts.facts.items() if not isinstance(v, dict)}
    return out | {f"inputs.{k}" for k in facts.inputs} | {f"tables.{k}" for k in facts.tables}
