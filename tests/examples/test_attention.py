"""FlashAttention-3's plan: golden vectors of the original, and a plan written a second time."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.examples.fa3 import module, plan, run

FA3 = module("attention_fa3")
N_BLOCKS = (4, 5, 8, 16, 32, 64, 128, 256)
GOLDEN = {  # blocks without splits: split count by N_BLOCKS; 132 SMs, causal, little to cache
    (1,): (1, 5, 7, 14, 28, 55, 109, 109),
    (2,): (1, 5, 7, 14, 28, 55, 57, 57),
    (4,): (1, 5, 7, 14, 28, 29, 29, 29),
    (8,): (1, 5, 7, 14, 14, 15, 15, 15),
    (16,): (1, 5, 7, 7, 7, 8, 8, 8),
    (20,): (1, 5, 6, 6, 6, 6, 6, 6),
    (32,): (1, 4, 4, 4, 4, 4, 4, 4),
    (48,): (1, 5, 5, 5, 5, 5, 5, 5),
    (64, 66): (1, 2, 2, 2, 2, 2, 2, 2),
    (100, 105): (1, 5, 5, 5, 5, 5, 5, 5),
    (106, 132, 264): (1,) * 8,
}
KEYS = (128, 512, 513, 640, 1024, 4096, 8192, 32768, 131072)
LLAMA = {  # (KV heads of a rank, query lengths): split count by KEYS
    (8, (1, 2, 16)): (1, 1, 5, 5, 7, 14, 15, 15, 15),
    (8, (128,)): (1, 1, 2, 2, 2, 2, 2, 2, 2),
    (8, (1024,)): (1,) * 9,
    (4, (1, 16)): (1, 1, 5, 5, 7, 28, 29, 29, 29),
    (4, (128,)): (1, 1, 4, 4, 4, 4, 4, 4, 4),
    (4, (1024,)): (1,) * 9,
    (2, (1, 16)): (1, 1, 5, 5, 7, 28, 55, 57, 57),
    (2, (128,)): (1, 1, 5, 5, 7, 7, 8, 8, 8),
    (2, (1024,)): (1,) * 9,
    (1, (1, 16)): (1, 1, 5, 5, 7, 28, 55, 109, 109),
    (1, (128,)): (1, 1, 5, 5, 7, 14, 15, 15, 15),
    (1, (1024,)): (1, 1, 2, 2, 2, 2, 2, 2, 2),
}
FIXED = {1: 55, 2: 55, 4: 29, 8: 15, 16: 8, 32: 4, 64: 2, 128: 1}  # by batch, TP 8, 8192 keys
PACKED = dict.fromkeys((1, 8, 16, 17, 64, 100, 129, 200, 300), True)
PACKED |= dict.fromkeys((115, 116, 120, 128, 256, 1000, 1024, 1100), False)


@pytest.mark.parametrize("totals", GOLDEN, ids=str)
def test_split_counts(totals: tuple[int, ...]) -> None:
    for total in totals:
        got = [FA3.num_splits_heuristic(total, 132, n, 1, 1024, True, 128) for n in N_BLOCKS]
        assert tuple(got) == GOLDEN[totals], total


def test_boundaries_of_the_split_count() -> None:
    def split(total: int, sms: int) -> bool:
        return bool(FA3.num_splits_heuristic(total, sms, 32, 1, 1024, True, 128) > 1)

    assert split(105, 132)
    assert not split(106, 132)
    assert not split(88, 110)
    assert not split(92, 115)
    assert split(62, 78)
    big = 60 * 2**20
    assert FA3.num_splits_heuristic(400, 132, 1000, 264, big, False, 128) == 2
    assert FA3.num_splits_heuristic(400, 132, 1000, 263, big, False, 128) == 1
    assert FA3.num_splits_heuristic(400, 132, 1000, 264, big, True, 128) == 1


def test_packing() -> None:
    assert {sq: FA3.should_pack_gqa(False, sq, 8, 128) for sq in PACKED} == PACKED
    assert FA3.should_pack_gqa(True, 128, 8, 128)


MODELS: dict[str, dict[str, Any]] = {
    "llama": {"heads": 64, "kv_heads": 8, "head_dim": 128},
    "small": {"heads": 32, "kv_heads": 8, "head_dim": 64},
    "phi": {"heads": 32, "kv_heads": 32, "head_dim": 96},
    "gemma": {"heads": 16, "kv_heads": 16, "head_dim": 256},
    "window": {"heads": 32, "kv_heads": 8, "head_dim": 128, "sliding_window": 4096},
    "small window": {"heads": 64, "kv_heads": 8, "head_dim": 64, "sliding_window": 2048},
}
FORK = {"packgqa_only": True, "varlen_only": True, "disable_cluster": True, "disable_sm8x": True}
PATHS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "kv-cache, page 128": ({"call": "kv-cache", "page_size": 128}, {}),
    "kv-cache": ({"call": "kv-cache", "page_size": None}, {}),
    "fixed": ({"call": "fixed", "page_size": None}, {}),
    "var-len, page 16": ({"call": "var-len", "page_size": 16}, {}),
    "var-len, page 128": ({"call": "var-len", "page_size": 128}, {}),
    "fork, page 16": (
        {"call": "var-len", "page_size": 16, "graph_splits": 32, "capture_sizes": [1, 8, 512]},
        FORK,
    ),
    "fork, page 384": ({"call": "var-len", "page_size": 384}, FORK),
}


def deployment(model: str, path: str, tensor: int = 1, sms: int = 132) -> dict[str, Any]:
    engine, build = PATHS[path]
    fork = "vllm" if build else "upstream"
    return {
        "device": {"capability": 90, "num_sms": sms},
        "model": MODELS[model],
        "parallel": {"tensor": tensor},
        "engine": {
            "flash_attention": fork,
            "max_num_batched_tokens": 16384,
            "max_model_len": 131072,
            **engine,
        },
        "build": build,
    }


def some_batch(rng: random.Random, path: str) -> dict[str, int]:
    """A batch of a scheduler, often at the ends of what the plan compares."""
    most = 16384
    b = rng.choice([1, 2, 7, 8, 64, 992, 993, 1024, rng.randint(1, 1024)])
    sq = rng.choice([1, 1, 2, 8, 16, 17, 64, 128, 129, 300, 1024, rng.randint(1, 16384)])
    b = max(1, min(b, most // sq)) if path[:4] != "var-" else max(1, min(b, most + 1 - sq))
    total = b * sq
    if path[:4] in ("var-", "fork"):
        b = max(1, min(b, most + 1 - sq))
        total = rng.randint(sq + b - 1, max(sq + b - 1, min(most, b * sq)))
    sk = rng.choice([1, 64, 127, 128, 129, 512, 513, 640, 4095, 4096, 4097, rng.randint(1, 131072)])
    return {"batch_size": b, "total_q": total, "max_seqlen_q": sq, "max_seqlen_k": sk}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("model", MODELS)
def test_the_plan_is_the_one_written_a_second_time(model: str, path: str) -> None:
    rng = random.Random(f"{model} {path}")
    seen = set()
    got: dict[str, Any] = {}
    for _ in range(300):
        facts = deployment(model, path, rng.choice([1, 2, 4, 8]), rng.choice([78, 132, 148]))
        batch = some_batch(rng, path)
        got, want = run(facts, batch), plan(facts, batch)
        assert {k: got[k] for k in want} == want, (facts, batch)
        seen.add(got["num_splits"])
    assert len(seen) > 1
    assert len(got) == 26


@pytest.mark.parametrize("case", LLAMA, ids=str)
def test_split_counts_of_llama(case: tuple[int, tuple[int, ...]]) -> None:
    kv_heads, queries = case
    facts = deployment("llama", "var-len, page 16", 8 // kv_heads)
    for sq in queries:
        batch = {"batch_size": 1, "total_q": sq, "max_seqlen_q": sq}
        got = [run(facts, {**batch, "max_seqlen_k": sk})["num_splits"] for sk in KEYS]
        assert tuple(got) == LLAMA[case], sq


def test_split_counts_by_batch() -> None:
    facts = deployment("llama", "fixed", 8)
    facts["engine"]["page_size"] = 16
    batch = {"max_seqlen_q": 1, "max_seqlen_k": 8192}
    got = {b: run(facts, {"batch_size": b, "total_q": b, **batch})["num_splits"] for b in FIXED}
    assert got == FIXED


def test_what_no_kernel_can_do_is_refused() -> None:
    lang = module("selc.lang")
    facts = deployment("llama", "var-len, page 16")
    batch = {"batch_size": 2, "total_q": 2, "max_seqlen_q": 1, "max_seqlen_k": 4096}
    run(facts, batch)
    with pytest.raises(lang.AssumeError):
        run(facts, {**batch, "total_q": 3})
    changes: list[tuple[str, dict[str, Any]]] = [
        ("model", {"dtype": "fp32"}),
        ("model", {"head_dim": 132}),
        ("model", {"head_dim": 512}),
        ("model", {"head_dim_v": 64}),
        ("device", {"capability": 75}),
        ("call", {"v_dim_stride": 2}),
        ("call", {"rotary_dim": 64}),
        ("call", {"cu_seqlens_k": True}),
        ("call", {"metadata_size": 3}),
        ("engine", {"num_splits": 257}),
        ("build", {"disable_hdim128": True}),
        ("build", {"disable_pagedkv": True}),
    ]
    for part, change in changes:
        with pytest.raises(lang.RequireError):
            run({**facts, part: {**facts.get(part, {}), **change}}, batch)
    assert run({**facts, "call": {"metadata_size": 4 * 4 + 1}}, batch)["num_splits"] == 14
