"""DeepGEMM's search and CUTLASS's ladders against vectors of the original code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from examples import cutlass_fp8, gemm
from selc.ir.interp import run_program
from tests.adapters import lower
from tests.examples.deployed import ROOT

# name -> (n, k, quantised, more facts, rows -> block_m, block_n, cluster_m, cluster_n, stages)
HOPPER: dict[str, tuple[int, int, bool, dict[str, Any], dict[int, tuple[int, ...]]]] = {
    "fp8": (
        4096,
        7168,
        True,
        {},
        {
            **dict.fromkeys((1, 16), (16, 32, 1, 1, 16)),
            **dict.fromkeys((17, 32), (32, 32, 1, 1, 16)),
            **dict.fromkeys((33, 64), (64, 32, 1, 1, 16)),
            **dict.fromkeys((65, 128), (64, 64, 1, 1, 13)),
            256: (64, 128, 1, 1, 8),
            512: (128, 128, 1, 1, 5),
            1024: (256, 128, 1, 1, 3),
            **dict.fromkeys((2048, 4096, 16384), (256, 128, 1, 2, 3)),
        },
    ),
    "narrow": (
        2112,
        7168,
        True,
        {},
        {
            1: (16, 16, 1, 1, 16),
            64: (64, 16, 1, 1, 16),
            128: (64, 32, 1, 1, 16),
            256: (64, 64, 1, 1, 13),
            512: (128, 64, 1, 1, 8),
            1024: (128, 144, 1, 1, 5),
            2048: (128, 144, 2, 1, 5),
            4096: (128, 192, 2, 1, 4),
            8192: (256, 112, 1, 2, 3),
        },
    ),
    "wide": (
        24576,
        1536,
        True,
        {},
        {
            16: (16, 96, 2, 1, 15),
            32: (32, 96, 2, 1, 13),
            64: (64, 96, 2, 1, 10),
            65: (128, 192, 1, 1, 4),
            128: (128, 192, 1, 1, 4),
            256: (128, 192, 2, 1, 4),
            512: (256, 128, 1, 2, 3),
            8192: (256, 128, 1, 2, 3),
        },
    ),
    "bf16": (
        8192,
        8192,
        False,
        {},
        {
            16: (16, 64, 1, 1, 16),
            32: (32, 64, 1, 1, 16),
            64: (64, 64, 1, 1, 13),
            128: (64, 128, 1, 1, 8),
            256: (128, 128, 1, 1, 6),
            512: (128, 256, 1, 1, 3),
            1024: (256, 128, 1, 2, 3),
            8192: (256, 128, 1, 2, 3),
        },
    ),
    "accumulated": (
        4096,
        7168,
        True,
        {"fp32_out": True, "accumulate": True},
        {
            1: (16, 40, 1, 1, 16),
            33: (64, 40, 1, 1, 16),
            128: (64, 72, 1, 1, 11),
            1024: (128, 136, 2, 1, 4),
            4096: (128, 152, 2, 1, 4),
        },
    ),
    "contiguous": (
        4096,
        7168,
        True,
        {"kind": "contiguous"},
        {512: (128, 128, 1, 1, 5), 1024: (128, 128, 1, 2, 5), 4096: (128, 192, 2, 1, 4)},
    ),
    "masked": (
        4096,
        7168,
        True,
        {"kind": "masked", "groups": 32},
        {1: (64, 128, 2, 1, 8), 64: (64, 128, 2, 1, 8), 128: (128, 192, 2, 1, 4)},
    ),
}
# rows -> swap_ab, then the same
BLACKWELL: dict[str, tuple[int, int, bool, dict[int, tuple[int, ...]]]] = {
    "fp8": (
        4096,
        7168,
        True,
        {
            **dict.fromkeys((1, 64), (1, 16, 128, 1, 2, 12)),
            **dict.fromkeys((65, 128), (1, 32, 128, 1, 2, 11)),
            256: (0, 128, 64, 2, 1, 9),
            **dict.fromkeys((512, 1024), (0, 128, 128, 2, 1, 7)),
            **dict.fromkeys((2048, 4096), (1, 240, 128, 1, 2, 6)),
            8192: (1, 224, 128, 1, 2, 6),
        },
    ),
    "bf16": (
        8192,
        8192,
        False,
        {
            32: (1, 16, 128, 1, 2, 12),
            **dict.fromkeys((33, 64), (1, 32, 128, 1, 2, 12)),
            65: (1, 48, 128, 1, 2, 11),
            128: (1, 64, 128, 1, 2, 10),
            256: (0, 128, 128, 2, 1, 8),
            **dict.fromkeys((512, 2048), (0, 128, 224, 2, 1, 7)),
            **dict.fromkeys((4096, 8192), (0, 128, 256, 2, 1, 6)),
        },
    ),
}
FIELDS = ("block_m", "block_n", "cluster_m", "cluster_n", "stages")


def model(n: int, k: int, fp8: bool) -> gemm.Model:
    """A model whose `o` projection has this shape."""
    assert k % 128 == 0
    return gemm.Model(n, k // 128, k // 128, 128, 2, quant="fp8_w8a8" if fp8 else None)


def launch(device: gemm.Device, shape: gemm.Model, rows: int, more: dict[str, Any]) -> gemm.Launch:
    engine = gemm.Engine(batch_invariant=False, max_num_batched_tokens=16384)
    batch = gemm.Batch(rows)
    return gemm.gemm(device, shape, gemm.Parallel(1), engine, batch, linear="o", **more)


@pytest.mark.parametrize("name", HOPPER)
def test_hopper(name: str) -> None:
    n, k, fp8, more, vectors = HOPPER[name]
    for rows, want in vectors.items():
        got = launch(gemm.Device(90, 132), model(n, k, fp8), rows, more)
        assert tuple(getattr(got, f) for f in FIELDS) == want, rows
        assert not got.swap_ab
        assert got.block_k == (128 if fp8 else 64)


@pytest.mark.parametrize("name", BLACKWELL)
def test_blackwell(name: str) -> None:
    n, k, fp8, vectors = BLACKWELL[name]
    for rows, want in vectors.items():
        got = launch(gemm.Device(100, 148), model(n, k, fp8), rows, {})
        assert (got.swap_ab, *(getattr(got, f) for f in FIELDS)) == want, rows


def facts_file(
    where: Path, capability: int, sms: int, n: int, k: int, fp8: bool, more: dict[str, Any]
) -> Path:
    lines = [
        f"facts: {{linear: o, device: {{capability: {capability}, num_sms: {sms}}},",
        f"  model: {{hidden: {n}, heads: {k // 128}, kv_heads: {k // 128}, head_dim: 128,",
        f"    element_size: 2, quant: {'fp8_w8a8' if fp8 else 'null'}}},",
        "  parallel: {tensor: 1},",
        "  engine: {batch_invariant: false, max_num_batched_tokens: 16384}",
        *(f"  , {key}: {str(value).lower()}" for key, value in more.items()),
        "}",
        "inputs: {num_tokens: {range: [1, 16384]}}",
    ]
    path = where / "facts.yaml"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.slow
@pytest.mark.parametrize("name", HOPPER)
def test_hopper_lowered(name: str, tmp_path: Path) -> None:
    n, k, fp8, more, vectors = HOPPER[name]
    program = lower(ROOT / "examples/gemm.py", [facts_file(tmp_path, 90, 132, n, k, fp8, more)])
    for rows, want in list(vectors.items())[::2]:
        got = run_program(program, {"num_tokens": rows, "gemm_padding": 1})
        assert got.returned
        assert tuple(got.points[f] for f in FIELDS) == want, rows


@pytest.mark.slow
@pytest.mark.parametrize("name", BLACKWELL)
def test_blackwell_lowered(name: str, tmp_path: Path) -> None:
    n, k, fp8, vectors = BLACKWELL[name]
    program = lower(ROOT / "examples/gemm.py", [facts_file(tmp_path, 100, 148, n, k, fp8, {})])
    for rows, want in list(vectors.items())[::2]:
        got = run_program(program, {"num_tokens": rows, "gemm_padding": 1})
        assert got.returned
        assert (got.points["swap_ab"], *(got.points[f] for f in FIELDS)) == want, rows


def test_padding() -> None:
    from selc.lang import knobs

    shape = model(4096, 7168, True)
    with knobs(gemm_padding=64):
        padded = launch(gemm.Device(90, 132), shape, 1, {})
    assert padded.padding == 64
    assert (padded.block_m, padded.block_n) == (64, 32)  # what 64 rows have


LLAMA = cutlass_fp8.Model(8192, 64, 8, 128, 28672)
SM = {90: (132, 232448), 100: (148, 232448), 120: (170, 101376), 89: (142, 101376)}


def tile(capability: int, rows: int, linear: str, tensor: int = 1, **changes: Any) -> Any:
    device = cutlass_fp8.Device(capability, *SM[capability])
    engine = cutlass_fp8.Engine(changes.pop("batch_invariant", False), 16384)
    shape = cutlass_fp8.Model(8192, 64, 8, 128, 28672, **changes)
    got = cutlass_fp8.cutlass_fp8(
        device, shape, cutlass_fp8.Parallel(tensor), engine, cutlass_fp8.Batch(rows), linear
    )
    return (got.tile_m, got.tile_n, got.tile_k), (got.cluster_m, got.cluster_n), got.swap_ab


def test_cutlass_hopper() -> None:
    # o: n 8192, k 8192; qkv over 8 ranks: n 1280
    assert tile(90, 16, "o") == ((64, 16, 256), (1, 1), True)
    assert tile(90, 16, "qkv", 8) == ((64, 16, 256), (1, 2), True)
    assert tile(90, 17, "o") == tile(90, 64, "o") == ((64, 64, 256), (1, 1), True)
    assert tile(90, 64, "qkv", 8) == ((64, 16, 256), (1, 4), True)
    assert tile(90, 65, "o") == tile(90, 128, "o") == ((64, 128, 128), (2, 1), False)
    assert tile(90, 129, "o") == tile(90, 8191, "o") == ((128, 128, 128), (2, 1), False)
    assert tile(90, 8192, "o") == ((256, 128, 128), (2, 1), False)
    assert tile(90, 8192, "o", 2) == ((128, 128, 128), (2, 1), False)  # k 4096
    assert tile(90, 9000, "o", batch_invariant=True) == ((64, 64, 256), (1, 1), True)


def test_cutlass_blackwell() -> None:
    assert tile(100, 16, "o") == ((128, 32, 128), (4, 1), True)
    assert tile(100, 63, "o", 4) == ((128, 64, 256), (4, 1), True)
    assert tile(100, 64, "o", 4) == ((64, 64, 128), (1, 1), False)  # k 2048
    assert tile(100, 64, "o") == ((128, 64, 256), (4, 1), True)
    assert tile(100, 256, "o") == ((128, 128, 128), (2, 1), False)
    assert tile(100, 257, "o") == ((256, 128, 128), (2, 2), False)
    assert [tile(120, m, "o")[0] for m in (16, 32, 256, 257)] == [
        (16, 64, 128),
        (32, 64, 128),
        (64, 64, 128),
        (128, 128, 128),
    ]


def test_cutlass_ada() -> None:
    got = [tile(89, m, "o")[0] for m in (16, 32, 64, 128, 256, 257)]
    assert got == [
        (16, 64, 128),
        (32, 64, 128),
        (64, 64, 128),
        (64, 128, 128),
        (128, 128, 64),
        (256, 128, 64),
    ]
    wide = [tile(89, m, "gate_up")[0] for m in (16, 32, 64, 128, 256, 257)]  # n 57344 -> 65536
    assert wide == [
        (32, 64, 128),
        (32, 64, 128),
        (64, 64, 128),
        (128, 64, 128),
        (128, 128, 64),
        (128, 128, 64),
    ]


def test_cutlass_blocks() -> None:
    blocks: dict[str, Any] = {"quant_block": (128, 128)}
    assert tile(90, 4, "o", **blocks) == ((128, 128, 128), (1, 2), False)
    assert tile(90, 5, "o", **blocks) == ((128, 16, 128), (1, 1), True)
    assert tile(100, 12, "o", **blocks)[2]
    assert tile(100, 16, "o", **blocks) == ((64, 128, 128), (1, 1), False)  # 64 columns of blocks
    assert tile(100, 256, "o", **blocks) == ((128, 128, 128), (1, 1), False)
    assert tile(100, 512, "o", **blocks) == ((256, 128, 128), (2, 1), False)
    assert tile(120, 64, "o", **blocks) == ((128, 32, 128), (1, 1), True)
    assert tile(120, 256, "o", **blocks)[0] == (64, 128, 128)
    assert tile(120, 260, "o", **blocks)[0] == (128, 128, 128)
