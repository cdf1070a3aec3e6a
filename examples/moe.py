"""Fused mixture-of-experts launches, as vLLM 0.21.0 chooses them: two grouped GEMMs per layer.

A table of tuned tiles, one row per token count, is searched for the nearest count; where there is
no table, rules of thumb by token count apply. Quantised weights have rules of their own. The token
count is the batch's, so every one of these choices may move from batch to batch.
"""

from __future__ import annotations

from collections.abc import Mapping

from selc.lang import Bits, Neutral, Runtime, assume, record, require, selection

TRITON_WARPS = 4
TRITON_STAGES = 3


@record
class Device:
    name: str
    vendor: str  # 'cuda' or 'rocm'
    shared_memory: int  # bytes that one block can have


@record
class Model:
    experts: int
    topk: int
    hidden: int
    moe_intermediate: int
    element_size: int  # bytes of an activation
    quant: str | None  # None, 'fp8_w8a8', 'int8_w8a16', 'int4_w4a16'
    quant_block: tuple[int, int] | None  # (n, k) of one scale; n is 0 for groups along k


@record
class Parallel:
    tensor: int
    expert: int


@record
class Engine:
    batch_invariant: bool
    max_num_batched_tokens: int


@record
class Batch:
    num_tokens: Runtime[int]


@record
class Gemm:
    """The constexprs of one launch.

    A row of the output is summed over K in steps of BLOCK_SIZE_K, and SPLIT_K would cut the sum in
    parts: these two set its order. The others only say which rows and columns share a block
    (BLOCK_SIZE_M, BLOCK_SIZE_N), in which order blocks run (GROUP_SIZE_M) and how a block's work is
    spread over threads and time (num_warps, num_stages); rows are independent of each other, and no
    warp holds a partial sum of a row that another warp completes. That the compiled kernel keeps to
    this, also where the tile picks another matrix instruction, is the kernel's duty, which
    `selc bits` measures.
    """

    BLOCK_SIZE_M: Neutral[int]
    BLOCK_SIZE_N: Neutral[int]
    BLOCK_SIZE_K: Bits[int]
    GROUP_SIZE_M: Neutral[int]
    SPLIT_K: Bits[int]
    num_warps: Neutral[int]
    num_stages: Neutral[int]


@record
class Launch:
    kernel: Bits[str]  # the kernels order their sums, and dequantise, differently
    gate_up: Gemm
    down: Gemm
    # 'sorted' packs the rows of an expert into shared blocks, 'naive' gives each row a block of its
    # own. The row is multiplied with the same weights in the same steps of K.
    expert_assignment: Neutral[str]


@record
class Tile:
    """A row of a table, or what the rules of thumb give; zeros are filled in per GEMM."""

    block_m: int
    block_n: int
    block_k: int
    group_m: int
    warps: int
    stages: int


@selection(family="moe", scope="launch")
def moe(
    device: Device,
    model: Model,
    parallel: Parallel,
    engine: Engine,
    batch: Batch,
    tuned: Mapping[str, Mapping[str, Mapping[str, int]]] | None = None,
) -> Launch:
    num_tokens = batch.num_tokens
    assume(num_tokens >= 1, "an empty batch is not launched")
    assume(num_tokens <= engine.max_num_batched_tokens, "the scheduler's token budget")

    experts = model.experts // parallel.expert
    shard = model.moe_intermediate // parallel.tensor
    grouped = is_grouped(model)
    group = model.quant_block[1] if grouped and model.quant_block is not None else 0

    pairs = num_tokens * model.topk
    kernel = wna16_kernel(device, model, group, experts, pairs) if grouped else "triton"

    rows = table_rows(device, model, engine, tuned, experts, shard)
    if rows is not None:
        tile = nearest_row(rows, num_tokens)
    elif engine.batch_invariant:
        tile = Tile(64, 64, 32, 8, TRITON_WARPS, TRITON_STAGES)
    else:
        tile = default_tile(device, model, experts, kernel, num_tokens)

    block_m, group_m = tile.block_m, tile.group_m
    warps, stages = tile.warps, tile.stages
    if grouped:
        gate_up_n, gate_up_k = wna16_block(
            tile, kernel, pairs, model.hidden, 2 * shard, group, model.topk
        )
        down_n, down_k = wna16_block(tile, kernel, pairs, shard, model.hidden, group, 1)
    else:
        gate_up_n, gate_up_k = tile.block_n, tile.block_k
        if model.quant_block is not None:
            gate_up_k = min(gate_up_k, min(model.quant_block[0], model.quant_block[1]))
        down_n, down_k = gate_up_n, gate_up_k

    naive = parallel.expert == 1 and 4 * num_tokens * model.topk <= model.experts and not grouped
    gate_up = Gemm(
        BLOCK_SIZE_M=block_m,
        BLOCK_SIZE_N=gate_up_n,
        BLOCK_SIZE_K=gate_up_k,
        GROUP_SIZE_M=group_m,
        SPLIT_K=1,
        num_warps=warps,
        num_stages=stages,
    )
    down = Gemm(
        BLOCK_SIZE_M=block_m,
        BLOCK_SIZE_N=down_n,
        BLOCK_SIZE_K=down_k,
        GROUP_SIZE_M=group_m,
        SPLIT_K=1,
        num_warps=warps,
        num_stages=stages,
    )
    check(device, model, kernel, group, gate_up, model.hidden)
    check(device, model, kernel, group, down, shard)
    expert_assignment = "naive" if naive else "sorted"
    return Launch(kernel=kernel, gate_up=gate_up, down=down, expert_assignment=expert_assignment)


def is_grouped(model: Model) -> bool:
    """Whether the weights are integers with one scale per group along K."""
    if model.quant not in ("int4_w4a16", "int8_w8a16") or model.quant_block is None:
        return False
    return model.quant_block[1] > 0


def table_rows(
    device: Device,
    model: Model,
    engine: Engine,
    tuned: Mapping[str, Mapping[str, Mapping[str, int]]] | None,
    experts: int,
    shard: int,
) -> Mapping[str, Mapping[str, int]] | None:
    """The tuned rows for this shape on this device, in the order of their file."""
    if tuned is None or engine.batch_invariant:
        return None
    device_name = device.name.replace(" ", "_")
    if "H200" in device_name.split("_"):
        device_name = "NVIDIA_H200"
    name = f"E={experts},N={shard},device_name={device_name}"
    if model.quant is not None:
        name += f",dtype={model.quant}"
    if model.quant_block is not None and model.quant_block[0] and model.quant_block[1]:
        name += f",block_shape=[{model.quant_block[0]},{model.quant_block[1]}]"
    return tuned.get(name)


def nearest_row(rows: Mapping[str, Mapping[str, int]], num_tokens: int) -> Tile:
    """The row of the nearest token count; the first in the table's order wins a tie."""
    tiles = {
        int(count): Tile(
            block_m=row["BLOCK_SIZE_M"],
            block_n=row["BLOCK_SIZE_N"],
            block_k=row["BLOCK_SIZE_K"],
            group_m=row["GROUP_SIZE_M"],
            warps=row["num_warps"],
            stages=row["num_stages"],
        )
        for count, row in rows.items()
    }
    return tiles[min(tiles, key=lambda count: abs(count - num_tokens))]


def default_tile(device: Device, model: Model, experts: int, kernel: str, num_tokens: int) -> Tile:
    """What is used where nobody has tuned."""
    if model.quant == "fp8_w8a8" and model.quant_block is not None:
        return Tile(
            block_m=16 if num_tokens <= 64 else 64,
            block_n=model.quant_block[0],
            block_k=model.quant_block[1],
            group_m=1 if num_tokens <= 16 else 32,
            warps=4,
            stages=2 if device.vendor == "rocm" else 3,
        )
    if model.quant in ("int4_w4a16", "int8_w8a16") and model.quant_block is not None:
        if kernel == "wna16_cuda":
            block_m = min(16, num_tokens)
        elif num_tokens <= 20:
            block_m = 16
        else:
            block_m = 32 if num_tokens <= 40 else 64
        return Tile(block_m, 0, 0, 1, TRITON_WARPS, TRITON_STAGES)

    if num_tokens <= 32:
        block_m = 16
    elif num_tokens <= 96:
        block_m = 32
    elif num_tokens <= 512:
        block_m = 64
    else:
        block_m = 128
    stages = 4 if num_tokens <= 32 else 3
    return Tile(
        block_m=block_m,
        block_n=64 if num_tokens <= 64 else 128,
        block_k=128 if model.quant == "fp8_w8a8" or num_tokens <= 64 else 64,
        group_m=16 if num_tokens // max(experts, 1) > 128 else 1,
        warps=4 if num_tokens <= 128 else 8,
        stages=2 if device.vendor == "rocm" else stages,
    )


def wna16_kernel(device: Device, model: Model, group: int, experts: int, pairs: int) -> str:
    """Which of the two kernels for integer weights; `pairs` counts (token, expert) pairs."""
    four_bits = model.quant == "int4_w4a16"
    if device.vendor == "cuda" and four_bits and group in (32, 64, 128) and pairs / experts <= 6:
        return "wna16_cuda"
    return "wna16_triton"


def wna16_block(
    tile: Tile, kernel: str, pairs: int, size_k: int, size_n: int, group: int, topk: int
) -> tuple[int, int]:
    """BLOCK_SIZE_N and BLOCK_SIZE_K of a GEMM with integer weights, unless the tile has them."""
    if tile.block_n != 0 and tile.block_k != 0:
        return tile.block_n, tile.block_k
    if kernel == "wna16_triton":
        return (32, 64) if pairs // topk == 1 else (64, 32)

    # The engine counts blocks along K under the name of N and the other way round, adds the output
    # width where the number of experts was meant, and divides by 256 // 256 where it was meant to
    # halve. Its choices are what is deployed, so they are kept.
    block_n = 128
    block_k = max(128, group)
    blocks_m = (pairs + tile.block_m - 1) / tile.block_m + size_n
    if pairs // topk <= tile.block_m:
        blocks_m = min(blocks_m, pairs)
    blocks = blocks_m * (size_k // block_k) * (size_n // block_k)
    if size_k % 256 == 0 and blocks >= 256 and block_k < 256:
        block_k = 256
        blocks = blocks // 1
    if blocks_m <= 16 and size_k % (block_k * 2) == 0 and block_k <= 512 and blocks >= 512:
        block_k = block_k * 2
        blocks = blocks // 2
    if blocks > 1024:
        block_n = 256
        blocks = blocks // 2
    if size_n <= 1024 and blocks >= 1024:
        block_n = 1024
    return block_n, fitting_block_k(size_k, block_k, group)


def fitting_block_k(size_k: int, block_k: int, group: int) -> int:
    """The largest multiple of `group` up to `block_k` that divides `size_k`."""
    fitting = size_k
    for step in [c for c in range(group, min(size_k, 1024) + 1, group) if size_k % c == 0]:
        if step <= block_k:
            fitting = step
    return fitting


def check(device: Device, model: Model, kernel: str, group: int, gemm: Gemm, size_k: int) -> None:
    """What the chosen kernel needs of its constexprs."""
    if kernel == "wna16_cuda":
        require(size_k % gemm.BLOCK_SIZE_K == 0, "the CUDA kernel has no remainder along K")
        require(gemm.BLOCK_SIZE_K % group == 0, "a step of the CUDA kernel covers whole groups")
        return
    sizes = (gemm.BLOCK_SIZE_M, gemm.BLOCK_SIZE_N, gemm.BLOCK_SIZE_K)
    require(
        all(size >= 16 and size & (size - 1) == 0 for size in sizes),
        "Triton's tiles are powers of two",
    )
    activation, weight = operand_bytes(model)
    # One copy of both tiles per pipeline stage.
    stage = (
        gemm.BLOCK_SIZE_M * gemm.BLOCK_SIZE_K * activation
        + gemm.BLOCK_SIZE_K * gemm.BLOCK_SIZE_N * weight
    )
    require(stage * gemm.num_stages <= device.shared_memory, "the stages fit in shared memory")
    if kernel == "triton" and model.quant_block is not None:
        require(model.quant_block[1] % gemm.BLOCK_SIZE_K == 0, "a step along K reads one scale")


def operand_bytes(model: Model) -> tuple[int, int]:
    """Bytes of an activation and of a weight as the kernel loads them."""
    if model.quant == "fp8_w8a8":
        return 1, 1
    if model.quant in ("int8_w8a16", "int4_w4a16"):
        return model.element_size, 1
    return model.element_size, model.element_size
