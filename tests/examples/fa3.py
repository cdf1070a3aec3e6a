"""The attention examples as CPython runs them, and a plan written a second time to compare with."""

from __future__ import annotations

import importlib
import math
import struct
import sys
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def module(name: str) -> Any:
    """A module of the examples folder."""
    sys.path.insert(0, str(EXAMPLES))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(EXAMPLES))


def run(
    facts: Mapping[str, Mapping[str, Any]], batch: Mapping[str, int], name: str = "attention_fa3"
) -> dict[str, Any]:
    """The plan of the example for a deployment and a batch, by point."""
    example, inputs = module(name), module("fa3_inputs")
    parts = {"device": "Device", "model": "Model", "parallel": "Parallel", "engine": "Engine"}
    parts |= {"call": "Call", "build": "Build"}
    made = []
    for part, cls in parts.items():
        record = getattr(inputs, cls)
        known = {f.name for f in fields(record)}
        stated = {k: v for k, v in facts.get(part, {}).items() if k in known}
        made.append(
            record(**{k: tuple(v) if isinstance(v, list) else v for k, v in stated.items()})
        )
    launch = example.attention(*made, inputs.Batch(**batch))
    return {f.name: getattr(launch, f.name) for f in fields(launch)}


def f32(x: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", x))[0])


def splits(total: int, sms: int, n: int, m: int, size: int, masked: bool, most: int = 128) -> int:
    """The split count by the definition: efficiencies in a list, then the first good one."""
    if f32(total) >= f32(f32(0.8) * sms):
        if size > 50 * 2**20 and m >= 2 * sms and not masked:
            return min(-(-size // (50 * 2**20)), most)
        return 1
    if n <= 4:
        return 1
    waves = [f32(f32(total * s) / sms) for s in range(1, min(most, sms, n) + 1)]
    eff = [f32(w / math.ceil(w)) for w in waves]
    return next((i + 1 for i, e in enumerate(eff) if e >= 0.85 * max(eff)), 1)


TILES_16 = {  # head dim -> conditions in order -> (M, N, RS, overlap); c causal, l local, p pages
    96: [("l|p", (192, 128, False, True)), ("", (192, 144, False, True))],
    128: [("c|l|p", (128, 128, True, True)), ("", (128, 176, True, True))],
    192: [("l|p", (128, 96, True, True)), ("", (128, 112, True, True))],
    256: [("l", (128, 64, True, True)), ("", (128, 80, True, True))],
}
FORK_16 = {
    128: [
        ("w&c|w&l|w&p", (64, 128, True, True)),
        ("w", (64, 176, True, True)),
        ("c|l|p", (128, 128, True, True)),
        ("", (128, 160, True, True)),
    ],
    192: [("l|p", (128, 96, True, True)), ("", (128, 96, True, True))],
}
SMALL = {
    "upstream": [("c|l|p", (192, 128, True, True)), ("", (192, 192, False, True))],
    "vllm": [
        ("w", (64, 192, True, True)),
        ("c", (192, 128, True, True)),
        ("l", (192, 160, True, False)),
        ("p", (192, 160, False, True)),
        ("", (192, 192, False, True)),
    ],
}


def tile(fork: bool, d: int, flags: set[str]) -> tuple[int, int, bool, bool]:
    """A row of the SM90 table for 16-bit elements and equal head dimensions."""
    if d <= 64:
        rows = SMALL["vllm" if fork else "upstream"]
    else:
        size = next(s for s in TILES_16 if d <= s)
        rows = FORK_16.get(size, TILES_16[size]) if fork else TILES_16[size]
    for condition, row in rows:
        if not condition or any(set(x.split("&")) <= flags for x in condition.split("|")):
            return row
    raise AssertionError


def plan(facts: Mapping[str, Mapping[str, Any]], batch: Mapping[str, int]) -> dict[str, Any]:
    """What follows the batch in the plan of an SM90 deployment with bf16 and equal dimensions."""
    model, engine, build = facts["model"], facts["engine"], facts.get("build", {})
    fork = engine["flash_attention"] == "vllm"
    path, page = engine["call"], engine.get("page_size")
    tp = facts["parallel"]["tensor"]
    h, hk, d = model["heads"] // tp, max(1, model["kv_heads"] // tp), model["head_dim"]
    g, sms = h // hk, facts["device"]["num_sms"] - engine.get("sm_margin", 0)
    b, total_q, sq, sk = (
        batch[k] for k in ("batch_size", "total_q", "max_seqlen_q", "max_seqlen_k")
    )
    if page and not fork:
        sk = -(-sk // page) * page
    window = model.get("sliding_window")
    left = -1 if window is None or window - 1 >= sk - 1 else window - 1
    decode = sq == 1 and left < 0 and (not 64 < d <= 128 or not page)
    causal = not decode and left < 0
    local = left >= 0
    flags = ({"c"} if causal else set()) | ({"l"} if local else set())
    if fork and d in (64, 128) and not local and sq * g <= 64:
        flags.add("w")
    m, n, _, _ = tile(fork, d, flags)
    tma = page is not None and page % n == 0 and sq * g > m and not (fork and local)
    if page and not tma:
        flags.add("p")
    m, n, rs, overlap = tile(fork, d, flags)
    right = 0 if not decode else sq - 1
    varlen = path != "fixed"
    count = engine.get("num_splits", 0)
    if engine.get("graph_splits") and total_q <= max(engine["capture_sizes"]):
        count = engine["graph_splits"]
    if count < 1:
        loaded = max(0, min(sk, left + right + 1 + m)) if local else sk
        rows = -(-sq * g // m)
        blocks = (1 if varlen else b) * hk * rows
        count = splits(blocks, sms, -(-loaded // n), rows, sk * 2 * d * 2, causal or local)
    pack = "p" in flags or count > 1 or fork or (path == "var-len" and g > 1)
    if not pack and g > 1:
        pack = f32(sq / (-(-sq // m) * m)) < 0.9 * f32(sq * g / (-(-sq * g // m) * m))
    if fork and not (build.get("packgqa_only") or "p" in flags or count > 1):
        raise NotImplementedError
    if fork and b > 992 and varlen:
        count = 1
    pack = pack or "p" in flags or count > 1
    pairs = -(-(sq * g if pack else sq) // m) % 2 == 0
    plain = not (causal or local or count > 1 or "p" in flags or varlen)
    clusters = d > 96 and plain and not build.get("disable_cluster") and "w" not in flags
    single = count > 1 and not varlen
    if single:
        scheduler = "SingleTile"
    elif varlen:
        scheduler = "VarlenDynamicPersistent"
    else:
        scheduler = "DynamicPersistent" if causal or local else "StaticPersistent"
    unit = 16 if d <= 64 else 8
    line = path == "var-len" and 2 * -(-total_q // unit) < b * -(-sq // unit)
    grid = "linearised" if line else "standard"
    return {
        "Is_causal": causal,
        "Is_local": local,
        "PagedKVNonTMA": "p" in flags,
        "PackGQA": pack,
        "Split": count > 1,
        "ClusterM": 2 if clusters and pairs else 1,
        "kBlockM": m,
        "kBlockN": n,
        "MmaPV_is_RS": rs,
        "IntraWGOverlap": overlap,
        "num_splits": count,
        "scheduler": scheduler,
        "combine": "none" if count == 1 else f"{unit}x{64 if d <= 64 else 128} {grid}",
    }
