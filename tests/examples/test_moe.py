"""examples/moe.py, run by CPython, against the engine's own functions and hand-derived values."""

from __future__ import annotations

import ast
import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from examples import moe
from selc.lang import AssumeError, RequireError

ROOT = Path(moe.__file__).parent
TABLES = json.loads((ROOT / "tables/vllm-0.21.0-moe.json").read_text())

H100 = moe.Device("NVIDIA H100 80GB HBM3", "cuda", 90, 232448)
H200 = moe.Device("NVIDIA H200", "cuda", 90, 232448)
MI300 = moe.Device("AMD Instinct MI300X", "rocm", 94, 1 << 30)
QWEN = moe.Model(128, 8, 2048, 768, 2, None, None)
MIXTRAL_FP8 = moe.Model(16, 2, 4096, 800, 2, "fp8_w8a8", None)
VLLM = moe.Engine("vllm", batch_invariant=False, max_num_batched_tokens=16384)


def choose(tokens: int, **changes: Any) -> moe.Launch:
    call = {
        "device": H100,
        "model": QWEN,
        "parallel": moe.Parallel(4, 1),
        "engine": VLLM,
        "tuned": TABLES,
    }
    return moe.moe(batch=moe.Batch(tokens), **{**call, **changes})


def tile(gemm: moe.Gemm) -> tuple[int, ...]:
    """What a row of a table says."""
    return (
        gemm.BLOCK_SIZE_M,
        gemm.BLOCK_SIZE_N,
        gemm.BLOCK_SIZE_K,
        gemm.GROUP_SIZE_M,
        gemm.SPLIT_K,
        gemm.num_warps,
        gemm.num_stages,
    )


def test_tuned_row() -> None:
    launch = choose(1)
    assert tile(launch.gate_up) == tile(launch.down) == (16, 64, 64, 1, 1, 4, 5)
    assert (launch.kernel, launch.expert_assignment) == ("triton", "naive")
    assert choose(5).expert_assignment == "sorted"
    assert tile(choose(16384).gate_up) == (128, 128, 64, 16, 1, 4, 3)


@pytest.mark.parametrize(("tokens", "step"), [(27, 64), (28, 64), (29, 128), (40, 128), (41, 64)])
def test_nearest_row_and_ties(tokens: int, step: int) -> None:
    gemm = choose(tokens).gate_up  # the rows are 24, 32 and 48
    assert gemm == dataclasses.replace(gemm, BLOCK_SIZE_K=step)


def test_first_row_of_the_file_wins_a_tie() -> None:
    wide = {"model": MIXTRAL_FP8, "parallel": moe.Parallel(1, 1)}
    assert choose(1920, **wide).gate_up.BLOCK_SIZE_M == 16  # 2048 stands before 1792
    assert choose(640, **wide).gate_up.GROUP_SIZE_M == 8  # 512 stands before 768


def test_h200_family() -> None:
    device = dataclasses.replace(H200, name="NVIDIA H200 NVL")
    assert choose(64, device=device) == choose(64, device=H200)


def test_defaults_without_a_table() -> None:
    launch = choose(64, tuned=None)
    assert tile(launch.gate_up) == (32, 64, 128, 1, 1, 4, 3)
    assert choose(65, tuned=None).gate_up.BLOCK_SIZE_K == 64


def test_batch_invariant_mode() -> None:
    engine = moe.Engine("vllm", batch_invariant=True, max_num_batched_tokens=16384)
    assert {tile(choose(m, engine=engine).gate_up) for m in (1, 100, 16384)} == {
        (64, 64, 32, 8, 1, 4, 3)
    }


def test_promises_and_needs() -> None:
    with pytest.raises(AssumeError, match="token budget"):
        choose(16385)
    with pytest.raises(AssumeError, match="empty batch"):
        choose(0)
    with pytest.raises(RequireError, match="shared memory"):
        choose(2048, device=moe.Device("NVIDIA H100 80GB HBM3", "cuda", 90, 100_000))


class Dims:
    """Stands for a tensor of which only the size is asked."""

    def __init__(self, *dims: int) -> None:
        self.dims = dims

    def size(self, axis: int) -> int:
        return self.dims[axis]

    def view(self, *_: int) -> Dims:
        return self

    def numel(self) -> int:
        return 1

    dtype = device = None


@pytest.fixture(scope="module")
def engine_functions(corpus: Path) -> dict[str, Any]:
    """The engine's functions, executed from their own text over stubs."""
    source = corpus / "vllm/model_executor/layers/fused_moe/fused_moe.py"
    wanted = {
        "get_config_file_name",
        "_ensure_block_size_k_divisible",
        "get_moe_wna16_block_config",
        "should_moe_wna16_use_cuda",
        "get_default_config",
        "_prepare_expert_assignment",
    }
    tree = ast.parse(source.read_text(encoding="utf-8"))
    body = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name in wanted]
    assert {n.name for n in body} == wanted
    future = ast.parse("from __future__ import annotations").body
    platform = SimpleNamespace(vendor="cuda", name="")
    platform.is_cuda = lambda: platform.vendor == "cuda"
    platform.is_rocm = lambda: platform.vendor == "rocm"
    platform.get_device_name = lambda: platform.name
    names: dict[str, Any] = {
        "current_platform": platform,
        "envs": SimpleNamespace(VLLM_BATCH_INVARIANT=False),
        "torch": SimpleNamespace(full=lambda *_, **__: None, int32=None),
        "moe_align_block_size": lambda *_, **__: ("sorted", None, None),
    }
    exec(compile(ast.Module([*future, *body], []), "fused_moe.py", "exec"), names)
    return names


def expected(
    f: dict[str, Any], device: moe.Device, model: moe.Model, tokens: int
) -> dict[str, Any]:
    """What the engine's functions choose, put together as its driver does."""
    platform = f["current_platform"]
    platform.vendor, platform.name = device.vendor, device.name
    shape = list(model.quant_block) if model.quant_block is not None else None
    shard = model.moe_intermediate // 4
    name = f["get_config_file_name"](model.experts, shard, model.quant, shape)
    rows = TABLES.get(name.removesuffix(".json"))
    if rows is not None:
        rows = {int(k): v for k, v in rows.items()}
        config = rows[min(rows.keys(), key=lambda k: abs(k - tokens))]
    else:
        args = (tokens, model.experts, shard, model.hidden, model.topk, model.quant, shape)
        config = f["get_default_config"](*args)
    grouped = model.quant in ("int4_w4a16", "int8_w8a16") and shape is not None and shape[1] > 0
    pairs = tokens * model.topk
    kernel = "triton"
    down = dict(config)
    up = dict(config)
    if grouped:
        assert shape is not None
        bit = 4 if model.quant == "int4_w4a16" else 8
        cuda = f["should_moe_wna16_use_cuda"](pairs, shape[1], model.experts, bit)
        kernel = "wna16_cuda" if cuda else "wna16_triton"
        for gemm, k, n, topk in (
            (up, model.hidden, 2 * shard, model.topk),
            (down, shard, model.hidden, 1),
        ):
            fill = f["get_moe_wna16_block_config"]
            gemm |= fill(gemm, cuda, pairs, k, n, n, shape[1], topk, gemm["BLOCK_SIZE_M"])
    elif shape is not None:
        for gemm in (up, down):
            gemm["BLOCK_SIZE_K"] = min(gemm["BLOCK_SIZE_K"], min(shape))
    ids, _, _ = f["_prepare_expert_assignment"](
        Dims(1),
        config,
        tokens,
        model.topk,
        model.experts,
        None,
        use_int8_w8a16=model.quant == "int8_w8a16",
        use_int4_w4a16=model.quant == "int4_w4a16",
        block_shape=shape,
    )
    return {"kernel": kernel, "gate_up": up, "down": down, "naive": ids is None}


TOKENS = sorted(
    {1, 2, 3, 5, 15, 16, 17, 20, 21, 28, 33, 40, 41, 64, 65, 80, 96, 97, 128, 129, 384, 512, 513}
    | {*range(1, 130, 7), 1024, 2047, 4096, 8191, 16384}
)
MODELS = {
    "bf16": QWEN,
    "wide": dataclasses.replace(QWEN, experts=2, topk=1),
    "fp8": dataclasses.replace(QWEN, quant="fp8_w8a8"),
    "fp8 blocks": dataclasses.replace(QWEN, quant="fp8_w8a8", quant_block=(128, 128)),
    "int4": dataclasses.replace(QWEN, quant="int4_w4a16", quant_block=(0, 64)),
    "int4 wide": dataclasses.replace(
        QWEN, quant="int4_w4a16", quant_block=(0, 128), hidden=4096, moe_intermediate=4096
    ),
    "int4 few": dataclasses.replace(
        QWEN, quant="int4_w4a16", quant_block=(0, 32), experts=8, topk=2
    ),
    "int8": dataclasses.replace(QWEN, quant="int8_w8a16", quant_block=(0, 64)),
}


@pytest.mark.corpus
@pytest.mark.parametrize("device", [H100, H200, MI300], ids=["h100", "h200", "mi300"])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_engine_agrees(
    engine_functions: dict[str, Any], device: moe.Device, model: moe.Model
) -> None:
    for tokens in TOKENS:
        want = expected(engine_functions, device, model, tokens)
        got = choose(tokens, device=device, model=model)
        assert got.kernel == want["kernel"], tokens
        assert (got.expert_assignment == "naive") == want["naive"], tokens
        for gemm, config in ((got.gate_up, want["gate_up"]), (got.down, want["down"])):
            defaults = {"GROUP_SIZE_M": 1, "SPLIT_K": 1, "num_warps": 4, "num_stages": 3}
            chosen = {
                k: v for k, v in dataclasses.asdict(gemm).items() if k.isupper() or "num" in k
            }
            assert chosen == {**defaults, **config}, tokens
            assert not gemm.swap_ab


def test_blocks_and_rows() -> None:
    # 3 tokens to 8 experts each: 4 * 24 <= 128, so each pair has a block of its own
    few = choose(3)
    assert (few.expert_assignment, few.padded_rows) == ("naive", 0)
    assert few.gate_up.blocks == 24 * (2 * 192 // few.gate_up.BLOCK_SIZE_N)
    # 5 tokens, 40 pairs < 128 experts: at most a block per pair; fewer tokens than a block has rows
    some = choose(5)
    assert some.padded_rows == min(40 * 16, 40 + 128 * 15) == 640
    assert some.gate_up.blocks == 40 * (2 * 192 // some.gate_up.BLOCK_SIZE_N)
    assert some.down.blocks == 40 * (2048 // some.down.BLOCK_SIZE_N)
    many = choose(4096)
    assert many.padded_rows == 4096 * 8 + 128 * (many.gate_up.BLOCK_SIZE_M - 1)
    assert many.gate_up.blocks == -(-many.padded_rows // 128) * (2 * 192 // 128)


SGLANG = moe.Engine("sglang", False, 16384, swap_ab="all")
SGLANG_TABLES = json.loads((ROOT / "tables/sglang-0.5.10-moe.json").read_text())


def choose_sglang(tokens: int, **changes: Any) -> moe.Launch:
    return choose(tokens, **{"engine": SGLANG, "tuned": SGLANG_TABLES, **changes})


def test_sum_reduce() -> None:
    assert [choose_sglang(m).sum_reduce for m in (1, 32, 33, 4096)] == [
        "torch_compile",
        "torch_compile",
        "kernel",
        "kernel",
    ]
    two = dataclasses.replace(QWEN, topk=2)
    assert choose_sglang(1, model=two, tuned=None).sum_reduce == "add"
    one = dataclasses.replace(QWEN, topk=1)
    assert choose_sglang(1, model=one, tuned=None).sum_reduce == "none"
    assert choose(1).sum_reduce == "moe_sum"


def test_a_table_of_its_own_for_the_second_gemm() -> None:
    name = "E=128,N=192,device_name=NVIDIA_H100_80GB_HBM3"
    row = {"BLOCK_SIZE_M": 16, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 128, "GROUP_SIZE_M": 8}
    tables = {**SGLANG_TABLES, f"{name}_down": {"1": row, "4096": {**row, "BLOCK_SIZE_M": 64}}}
    launch = choose_sglang(8, tuned=tables)
    assert tile(launch.gate_up) == (16, 128, 64, 16, 1, 4, 5)
    assert tile(launch.down) == (16, 128, 128, 8, 1, 4, 3)
    with pytest.raises(RequireError, match="one size"):
        choose_sglang(4096, tuned=tables)


@pytest.fixture(scope="module")
def sglang_functions(corpus: Path) -> dict[str, Any]:
    """SGLang's functions, executed from their own text over stubs."""
    folder = corpus / "sglang/srt/layers/moe/fused_moe_triton"
    names: dict[str, Any] = {
        "_is_hip": False,
        "_is_cuda": True,
        "functools": __import__("functools"),
        "get_global_server_args": lambda: SimpleNamespace(enable_deterministic_inference=False),
        "get_device_name": lambda: names["device"],
        "is_batch_invariant_mode_enabled": lambda: False,
        "is_sm90_supported": lambda: True,
        "device": "",
    }
    future = ast.parse("from __future__ import annotations").body
    for file, wanted in (
        ("fused_moe_triton_config.py", {"get_default_config", "get_config_file_name"}),
        ("fused_moe_triton_kernels.py", {"should_enable_swap_ab"}),
    ):
        tree = ast.parse((folder / file).read_text(encoding="utf-8"))
        body = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name in wanted]
        assert {n.name for n in body} == wanted
        exec(compile(ast.Module([*future, *body], []), file, "exec"), names)
    return names


@pytest.mark.corpus
@pytest.mark.parametrize("device", [H100, H200], ids=["h100", "h200"])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("tensor", [1, 2, 4, 8])
def test_sglang_agrees(
    sglang_functions: dict[str, Any], device: moe.Device, model: moe.Model, tensor: int
) -> None:
    f = sglang_functions
    f["device"] = device.name
    shape = list(model.quant_block) if model.quant_block is not None else None
    shard = model.moe_intermediate // tensor
    name = f["get_config_file_name"](model.experts, shard, model.quant, shape)
    rows = SGLANG_TABLES.get(name.removesuffix(".json"))
    for tokens in TOKENS:
        if rows is not None:
            found = {int(k): v for k, v in rows.items()}
            config = found[min(found.keys(), key=lambda k: abs(k - tokens))]
        else:
            args = (tokens, model.experts, shard, model.hidden, model.topk, model.quant, False)
            config = f["get_default_config"](*args, shape)
        try:
            got = choose_sglang(
                tokens, device=device, model=model, parallel=moe.Parallel(tensor, 1)
            )
        except RequireError:
            assert rows is None  # a default that does not fit or reads over a scale
            continue
        defaults = {"GROUP_SIZE_M": 1, "SPLIT_K": 1, "num_warps": 4, "num_stages": 3}
        for gemm in (got.gate_up, got.down):
            chosen = {
                k: v for k, v in dataclasses.asdict(gemm).items() if k.isupper() or "num" in k
            }
            assert chosen == {**defaults, **config}, tokens
            assert gemm.swap_ab == f["should_enable_swap_ab"](gemm.BLOCK_SIZE_M, gemm.BLOCK_SIZE_N)
