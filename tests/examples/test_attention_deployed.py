"""FlashAttention-3's plan at deployments: pins as written down, and agreement with CPython."""

from __future__ import annotations

import random
import sys
from typing import Any, NamedTuple

import pytest

from selc.ir.interp import run_program
from tests.examples.deployed import FAMILIES, Deployed, residual_points
from tests.examples.fa3 import EXAMPLES, run
from tests.examples.test_attention import KEYS, LLAMA, some_batch
from tests.examples.test_deployments import axes, same_points, sites


class Expected(NamedTuple):
    """What is found at a deployment: pins with the number of candidates, legal of all."""

    layers: str
    pins: dict[str, int]
    legal: int
    total: int


SGLANG = {"attention.PackGQA": 2, "attention.PagedKVNonTMA": 2}
EXPECTED = (
    Expected("h100 llama-3.1-70b sglang tp4", {**SGLANG, "attention.num_splits": 57}, 115, 228),
    Expected(
        "tp4 vllm llama-3.1-70b h100",
        {"attention.kBlockM": 2, "attention.num_splits": 57},
        114,
        114,
    ),
)
PATHS = {"sglang": "kv-cache, page 128", "vllm": "fork, page 16"}


@pytest.fixture(autouse=True)
def examples_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setitem(FAMILIES, "attention_fa3", "attention")


@pytest.mark.slow
@pytest.mark.parametrize("expected", EXPECTED, ids=lambda e: e.layers.replace(" ", "-"))
def test_deployment(expected: Expected) -> None:
    layers = expected.layers.split()
    deployed = Deployed("attention_fa3", tuple(layers))
    decided = deployed.decide()
    pins = [p for p in decided.residual.pins if not p.free]
    assert {p.name: len(p.candidates.values or ()) for p in pins} == expected.pins
    assert all(p.candidates.exact for p in pins if len(p.candidates.values or ()) > 2)
    found = decided.legality
    assert (found.legal, found.assignments) == (expected.legal, expected.total)
    assert found.evidence == "proved"
    assert len(decided.program.points) == 26

    rng = random.Random(expected.layers)
    path = next(p for name, p in PATHS.items() if name in layers)
    rows = [some_batch(rng, path) for _ in range(60)]
    if "vllm" in layers:
        rows += [r for r in golden() if r["total_q"] > 512]
    facts: dict[str, Any] = deployed.facts.facts
    for row in rows:
        want, got = run(facts, row), run_program(decided.program, row)
        assert got.returned, row
        assert same_points(dict(got.points), want), row

    legal = {tuple(row) for row in decided.legality.relation or ()}
    for values in [*rng.sample(sorted(legal), 4), tuple(a[0] for a in axes(decided))]:
        setting = dict(zip(decided.residual.parameters, values, strict=True))
        overwritten = sites(decided, setting)
        pinned = deployed.cpython(decided, overwritten)
        for row in rows[:25]:
            want_pinned, got_pinned = pinned(row), residual_points(decided, {**row, **setting})
            if values in legal:
                assert want_pinned is not None, (setting, row)
                assert got_pinned is not None, (setting, row)
                assert same_points(got_pinned, want_pinned), (setting, row)
                assert all(got_pinned[p] == v for p, v in bits(setting).items() if p in got_pinned)
    sys.modules.pop("overwritten_attention", None)


def bits(setting: dict[str, Any]) -> dict[str, Any]:
    """Points that a pin of the same name fixes."""
    return {name.rpartition(".")[2]: value for name, value in setting.items()}


def golden() -> list[dict[str, int]]:
    """Batches of the golden vectors."""
    return [
        {"batch_size": 1, "total_q": sq, "max_seqlen_q": sq, "max_seqlen_k": sk}
        for _, queries in LLAMA
        for sq in queries
        for sk in KEYS
    ]


@pytest.mark.slow
@pytest.mark.parametrize("kv_heads", [8, 4, 2, 1])
def test_golden_vectors_of_the_graph(kv_heads: int, tmp_path: Any) -> None:
    """The split counts of the original, from G0 as the front end makes it."""
    more = tmp_path / "upstream.yaml"
    more.write_text(
        "layer: upstream\nfacts: {engine: {flash_attention: upstream, graph_splits: null}}\n"
    )
    deployed = Deployed(
        "attention_fa3", ("h100", "llama-3.1-70b", "vllm", f"tp{8 // kv_heads}"), more
    )
    from selc.diag.diagnostic import Sink
    from selc.driver.pipeline import Plan, load

    _, program = load(Plan(str(deployed.path), deployed.files, ()), Sink())
    for (heads, queries), want in LLAMA.items():
        if heads != kv_heads:
            continue
        for sq in queries:
            batch = {"batch_size": 1, "total_q": sq, "max_seqlen_q": sq}
            got = [run_program(program, {**batch, "max_seqlen_k": sk}) for sk in KEYS]
            assert tuple(g.points["num_splits"] for g in got) == want


MODELS = ("llama-3.1-70b", "llama-3.1-8b", "phi-3.5-mini", "gemma-7b-it", "qwen3-30b-a3b")


@pytest.mark.parametrize("engine", ["vllm", "vllm-batch-invariant", "sglang"])
@pytest.mark.parametrize("model", MODELS)
def test_every_model_is_lifted_for_every_engine(model: str, engine: str) -> None:
    from selc.diag.diagnostic import Sink
    from selc.driver.pipeline import Plan, load

    device, ranks = ("b200", "tp8") if engine == "sglang" else ("h200", "tp2")
    deployed = Deployed("attention_fa3", (ranks, engine, model, device))
    _, program = load(Plan(str(deployed.path), deployed.files, ()), Sink())
    rng = random.Random(model)
    path = "kv-cache, page 128" if engine == "sglang" else "fork, page 16"
    for _ in range(8):
        row = some_batch(rng, path)
        want, got = run(deployed.facts.facts, row), run_program(program, row)  # type: ignore[arg-type]  # mappings
        assert same_points(dict(got.points), want), row


@pytest.mark.slow
def test_the_longest_path_takes_three_pins(tmp_path: Any) -> None:
    """Sequences of one length, without pages: what moves ClusterM is proved away, but for R."""
    more = tmp_path / "path.yaml"
    more.write_text("facts: {engine: {call: fixed, page_size: null}}\n")
    decided = Deployed("attention_fa3", ("h100", "llama-3.1-70b", "sglang", "tp4"), more).decide()
    pins = {p.name: p for p in decided.residual.pins}
    paid = {n: len(p.candidates.values or ()) for n, p in pins.items() if not p.free}
    assert paid == {
        "attention.Is_causal": 2,
        "attention.PackGQA": 2,
        "attention.num_splits": 57,
    }
    assert pins["attention.ClusterM"].free
    assert pins["attention.ClusterM"].constant == 1
    assert decided.legality.evidence == "proved"
