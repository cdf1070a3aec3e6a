"""Cost models of kernels on a made-up device, for tests and benchmarks of the tuner.

Roofline-like: blocks, waves, occupancy, pipelining, register spills. On top, every choice has a
quirk of its own, as real kernels do. Times are seconds; noise is drawn by whoever measures.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

SMS = 132
SHARED = 228 * 1024
BANDWIDTH = 4.0e12
FLOPS = 8.0e14


@dataclass(frozen=True, slots=True)
class Model:
    """A family: what can be chosen, the calls with counts, and the true time of each pair."""

    name: str
    grid: Mapping[str, tuple[Any, ...]]
    legal: Callable[[Mapping[str, Any]], bool]
    calls: tuple[tuple[Mapping[str, Any], int], ...]
    seconds: Callable[[Mapping[str, Any], Mapping[str, Any]], float]
    stock: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    points: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict
    """The choice that a tuple gives every call."""

    def tuples(self) -> list[dict[str, Any]]:
        """The legal tuples, in order."""
        every = itertools.product(*self.grid.values())
        out = [dict(zip(self.grid, values, strict=True)) for values in every]
        return [t for t in out if self.legal(t)]


def ceil(a: float, b: float) -> int:
    return math.ceil(a / b)


def quirk(scale: float, *key: Any) -> float:
    """A factor around one that belongs to its key."""
    seed = int.from_bytes(hashlib.blake2b(repr(key).encode(), digest_size=8).digest(), "big")
    return math.exp(random.Random(seed).gauss(0.0, scale))


def matrix(
    m: int, n: int, k: int, c: Mapping[str, Any], pad: int = 1, warps: str = "num_warps"
) -> float:
    """A tiled product of m x k and k x n, `pad` of them side by side."""
    bm, bn, bk, w, stages = (c["BLOCK_M"], c["BLOCK_N"], c["BLOCK_K"], c[warps], c["num_stages"])
    smem = stages * (bm + bn) * bk * 2
    fit = max(1, min(SHARED // smem, 64 // w, 8))
    blocks = pad * ceil(m, bm) * ceil(n, bn)
    waves = blocks / (SMS * fit)
    whole = math.ceil(waves) if waves < 4 else waves + 0.5
    resident = min(fit, max(1.0, blocks / SMS))
    spill = max(0.0, bm * bn / (w * 32) - 128) / 64
    issue = min(1.0, 0.25 + 0.75 * min(1.0, bm * bn / (64 * 128)) ** 0.5)
    issue *= 1.0 if w == 4 or bm * bn >= 128 * 128 else 0.85
    compute = 2 * bm * bn * k / (FLOPS / SMS * issue) * (1 + spill)
    flight = min(1.0, (stages - 1) * bk * (bm + bn) * 2 * resident / 65536) ** 0.6
    move = (bm + bn) * k * 2 / (BANDWIDTH * 1.6 / SMS * flight)
    step = k / bk * 60e-9 / min(2.0, resident)
    overlap = max(compute * resident, move * resident) + 0.3 * min(compute, move)
    return float(whole * (overlap + step) + 4e-6)


def gemm(name: str, n: int, k: int, counts: Mapping[int, int]) -> Model:
    grid = {
        "BLOCK_M": (16, 32, 64, 128), "BLOCK_N": (32, 64, 128, 256), "BLOCK_K": (32, 64, 128),
        "num_warps": (4, 8), "num_stages": (2, 3, 4),
    }  # fmt: skip

    def legal(t: Mapping[str, Any]) -> bool:
        area = t["BLOCK_M"] * t["BLOCK_N"]
        smem = t["num_stages"] * (t["BLOCK_M"] + t["BLOCK_N"]) * t["BLOCK_K"] * 2
        return bool(smem <= SHARED and (t["num_warps"] == 4 or area >= 4096) and area <= 128 * 256)

    def seconds(call: Mapping[str, Any], c: Mapping[str, Any]) -> float:
        own = quirk(0.03, name, *sorted(c.items())) * quirk(0.01, name, call, *sorted(c.items()))
        return matrix(call["m"], n, k, c) * own

    def stock(call: Mapping[str, Any]) -> Mapping[str, Any]:
        bm = 16 if call["m"] <= 16 else 64 if call["m"] <= 512 else 128
        return {"BLOCK_M": bm, "BLOCK_N": 128 if bm > 16 else 64, "BLOCK_K": 64,
                "num_warps": 4 if bm < 128 else 8, "num_stages": 3}  # fmt: skip

    return Model(name, grid, legal, tuple(({"m": m}, c) for m, c in counts.items()), seconds, stock)


def attention(name: str, heads: int, batches: Mapping[tuple[int, int, int], int]) -> Model:
    """Split-KV attention; a batch is (requests, query rows of each, keys of each)."""
    grid = {
        "split_stride": (0, 256, 512, 1024, 2048, 4096), "BLOCK_M": (16, 64, 128),
        "BLOCK_N": (32, 64, 128), "num_warps": (4, 8), "num_stages": (1, 2, 3),
    }  # fmt: skip

    def legal(t: Mapping[str, Any]) -> bool:
        smem = (t["BLOCK_M"] + 2 * t["num_stages"] * t["BLOCK_N"]) * 128 * 2
        return bool(smem <= SHARED and (t["num_warps"] == 4 or t["BLOCK_M"] >= 64))

    def seconds(call: Mapping[str, Any], c: Mapping[str, Any]) -> float:
        b, q, s = call["b"], call["q"], call["s"]
        bm, bn, w, stages = c["BLOCK_M"], c["BLOCK_N"], c["num_warps"], c["num_stages"]
        stride = c["split_stride"] or s
        splits, rows = ceil(s, stride), q * 4
        tiles = ceil(rows, bm)
        blocks = b * heads * tiles * splits
        keys = min(stride, s) * (0.55 if q == s else 1.0)
        fit = max(1, min(SHARED // ((bm + 2 * stages * bn) * 256), 64 // w // 2, 4))
        waves = blocks / (SMS * fit)
        whole = math.ceil(waves) if waves < 5 else waves + 0.5
        resident = min(fit, max(1.0, blocks / SMS))
        issue = 0.65 * min(1.0, 0.3 + bm * bn / (128 * 128)) * (1.0 if w == 8 or bm < 128 else 0.7)
        compute = 4 * bm * keys * 128 / (FLOPS / SMS * issue)
        flight = min(1.0, stages * bn * resident / 384) ** 0.5
        move = 2 * keys * 256 / (BANDWIDTH / SMS * flight)
        step = keys / bn * 150e-9 / min(2.0, resident)
        one = max(compute * resident, move * resident) + 0.25 * min(compute, move) + step
        combine = 0.0 if splits == 1 else 3e-6 + b * heads * rows * splits * 520 / BANDWIDTH * 3
        own = quirk(0.025, name, *sorted(c.items())) * quirk(0.01, name, call, *sorted(c.items()))
        return float((whole * one + combine + 4e-6) * own)

    def stock(call: Mapping[str, Any]) -> Mapping[str, Any]:
        few = call["b"] * heads * ceil(call["q"] * 4, 64) < SMS
        return {"split_stride": 512 if few and call["s"] > 1024 else 0,
                "BLOCK_M": 16 if call["q"] == 1 else 128, "BLOCK_N": 64,
                "num_warps": 4 if call["q"] == 1 else 8, "num_stages": 2}  # fmt: skip

    calls = tuple(({"b": b, "q": q, "s": s}, n) for (b, q, s), n in batches.items())
    return Model(name, grid, legal, calls, seconds, stock)


def moe(
    name: str, experts: int, topk: int, hidden: int, ffn: int, counts: Mapping[int, int]
) -> Model:
    grid = {
        "BLOCK_M": (16, 32, 64, 128), "BLOCK_N": (32, 64, 128), "BLOCK_K": (64, 128),
        "GROUP_M": (1, 8), "num_warps": (4, 8), "num_stages": (2, 3, 4),
    }  # fmt: skip

    def legal(t: Mapping[str, Any]) -> bool:
        smem = t["num_stages"] * (t["BLOCK_M"] + t["BLOCK_N"]) * t["BLOCK_K"] * 2
        return bool(smem <= SHARED and (t["num_warps"] == 4 or t["BLOCK_M"] * t["BLOCK_N"] >= 2048))

    def seconds(call: Mapping[str, Any], c: Mapping[str, Any]) -> float:
        pairs = call["m"] * topk
        used = experts * (1 - (1 - 1 / experts) ** pairs)
        each = pairs / used
        padded = int(used * ceil(each + 0.5 * each**0.5, c["BLOCK_M"]) * c["BLOCK_M"])
        reuse = 0.06 * math.log2(max(1.0, padded / 2048)) * (1 if c["GROUP_M"] == 1 else 0.3)
        up = matrix(padded, 2 * ffn, hidden, c)
        down = matrix(padded, hidden, ffn, c)
        own = quirk(0.03, name, *sorted(c.items())) * quirk(0.01, name, call, *sorted(c.items()))
        return float((up + down) * (1 + reuse + (0.01 if c["GROUP_M"] > 1 else 0.0)) * own)

    def stock(call: Mapping[str, Any]) -> Mapping[str, Any]:
        m = call["m"]
        bm = 16 if m <= 32 else 32 if m <= 96 else 64 if m <= 512 else 128
        return {"BLOCK_M": bm, "BLOCK_N": 64 if m <= 64 else 128, "BLOCK_K": 128 if m <= 64 else 64,
                "GROUP_M": 1, "num_warps": 4 if m <= 128 else 8,
                "num_stages": 4 if m <= 32 else 3}  # fmt: skip

    return Model(name, grid, legal, tuple(({"m": m}, c) for m, c in counts.items()), seconds, stock)


def rows(name: str, seed: int, count: int, counts: Mapping[int, int]) -> Model:
    """Experts whose two products take their tiles from rows of a table each."""
    source = random.Random(seed)
    table = {
        str(2 ** (r // 2) * (2 + r % 2)): {
            "BLOCK_M": (16, 64, 128)[3 * r // count], "BLOCK_N": source.choice((32, 64, 128)),
            "BLOCK_K": source.choice((64, 128)), "GROUP_M": source.choice((1, 16, 32)),
            "num_warps": source.choice((4, 8)), "num_stages": source.choice((2, 3, 4)),
        }
        for r in range(count)
    }  # fmt: skip

    def points(t: Mapping[str, Any]) -> Mapping[str, Any]:
        parts = (("gate_up", table[t["gate_up_row"]]), ("down", table[t["down_row"]]))
        return {f"{part}.{n}": v for part, row in parts for n, v in row.items()}

    def legal(t: Mapping[str, Any]) -> bool:
        return bool(table[t["gate_up_row"]]["BLOCK_M"] == table[t["down_row"]]["BLOCK_M"])

    def seconds(call: Mapping[str, Any], c: Mapping[str, Any]) -> float:
        pairs = call["m"] * 8
        used = 128 * (1 - (1 - 1 / 128) ** pairs)
        total = 0.0
        for part, n, k in (("gate_up", 1536, 2048), ("down", 2048, 768)):
            tile = {key.split(".")[1]: v for key, v in c.items() if key.startswith(part)}
            padded = int(used * ceil(pairs / used, tile["BLOCK_M"]) * tile["BLOCK_M"])
            own = quirk(0.02, name, part, *sorted(tile.items()))
            total += matrix(padded, n, k, tile) * own
        return total * quirk(0.005, name, call, *sorted(c.items()))

    def stock(call: Mapping[str, Any]) -> Mapping[str, Any]:
        row = min(table, key=lambda r: abs(int(r) - call["m"]))
        return points({"gate_up_row": row, "down_row": row})

    grid = {"gate_up_row": tuple(table), "down_row": tuple(table)}
    calls = tuple(({"m": m}, c) for m, c in counts.items())
    return Model(name, grid, legal, calls, seconds, stock, points)


def design() -> list[Model]:
    """The models that the search was designed on."""
    decode = {
        (b, 1, s): n
        for b, s, n in [
            (1, 1024, 900),
            (4, 2048, 500),
            (8, 4096, 700),
            (16, 1024, 800),
            (32, 2048, 500),
            (64, 2048, 300),
            (64, 512, 400),
            (8, 8192, 150),
        ]
    }
    mixed = {(1, 1, 8192): 600, (2, 1, 16384): 300, (8, 1, 8192): 400, (1, 2048, 2048): 40,
             (1, 4096, 8192): 30, (4, 512, 1024): 60, (32, 1, 8192): 60}  # fmt: skip
    return [
        gemm("gemm decode", 4096, 4096, {1: 500, 8: 900, 16: 700, 32: 500, 64: 200, 512: 30}),
        gemm("gemm mixed", 14336, 4096, {4: 300, 32: 400, 128: 200, 256: 100, 2048: 40, 8192: 8}),
        attention("attention decode", 8, decode),
        attention("attention mixed", 8, mixed),
        moe("moe decode", 128, 8, 2048, 768, {1: 500, 8: 600, 16: 400, 64: 300, 128: 100}),
        moe(
            "moe mixed", 64, 6, 2048, 1408, {4: 400, 32: 500, 256: 150, 1024: 60, 4096: 25, 8192: 8}
        ),
        rows("moe rows", 3, 24, {1: 400, 4: 500, 16: 500, 64: 300, 256: 100, 2048: 30}),
    ]


def held_out() -> list[Model]:
    """Models that nothing was designed on: other shapes, batches, tables."""
    chat = {
        (b, 1, s): n
        for b, s, n in [
            (2, 700, 400),
            (6, 1500, 600),
            (12, 900, 800),
            (24, 1200, 500),
            (48, 1800, 200),
            (96, 600, 100),
        ]
    }
    documents = {(1, 1, 8700): 900, (3, 1, 9000): 500, (1, 4096, 4096): 60,
                 (1, 4096, 8192): 60, (10, 1, 8800): 200}  # fmt: skip
    return [
        gemm("gemm wide", 28672, 4096, {1: 600, 2: 300, 24: 400, 48: 300, 192: 80, 4096: 6}),
        gemm("gemm deep", 4096, 14336, {1: 400, 12: 500, 40: 300, 100: 100, 1500: 20}),
        attention("attention chat", 4, chat),
        attention("attention documents", 2, documents),
        moe("moe few large", 8, 2, 4096, 14336, {2: 500, 10: 300, 40: 200, 300: 40, 3000: 5}),
        moe("moe many small", 256, 8, 7168, 256, {1: 300, 6: 500, 30: 300, 120: 100, 900: 20}),
        rows("rows chat", 11, 24, {2: 500, 8: 500, 24: 300, 48: 200, 512: 30}),
        rows("rows documents", 12, 21, {1: 900, 3: 500, 12: 200, 4096: 40}),
    ]
