"""The facts files of the examples load, and their layers fit on each other."""

from __future__ import annotations

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
    assert set(facts.facts) == {"device", "model", "engine", "parallel", "comm"}
    assert (facts.inputs["num_tokens"].lo, facts.inputs["num_tokens"].hi) == (1, 16384)
    assert len(facts.tables["tuned"]) == 13  # type: ignore[arg-type]  # a mapping
