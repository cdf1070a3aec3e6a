"""Fused mixture-of-experts launches, as vLLM 0.21.0 and SGLang choose them.

A layer is two grouped GEMMs and a sum over a token's experts. A table of tuned tiles, one row per
token count, is searched for the nearest count; SGLang may have a second table for the second GEMM.
Where there is no table, rules of thumb by token count apply, and quantised weights have rules of
their own. The token count is the batch's, so every one of these choices may move from batch to
batch.
"""

from __future__ import annotations

from collections.abc import Mapping

from selc.lang import Bits, Neutral, Runtime, assume, record, require, selection

TRITON_WARPS = 4
TRITON_STAGES = 3
CHUNK = 64 * 1024  # SGLang launches more tokens in parts of this size


@record
class Device:
    name: str
    vendor: str  # 'cuda' or 'rocm'
    capability: int  # ten times major plus minor
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
    name: str  # 'vllm' or 'sglang'
    batch_invariant: bool
    max_num_batched_tokens: int
    swap_ab: str | None = None  # for which weights operands may be swapped: 'fp8', 'all'


@record
class Batch:
    num_tokens: Runtime[int]


@record
class Gemm:
    """One launch.

    A row of the output is summed over K in steps of BLOCK_SIZE_K, SPLIT_K would cut the sum in
    parts, and with swapped operands the matrix unit groups it otherwise: these set its order. The
    others only say which rows and columns share a block (BLOCK_SIZE_M, BLOCK_SIZE_N), in which
    order blocks run (GROUP_SIZE_M), how many there are and how a block's work is spread over
    threads and time (num_warps, num_stages); rows are independent of each other, and no warp holds
    a partial sum of a row that another warp completes. That the compiled kernel keeps to this, also
    where the tile picks another matrix instruction, is the kernel's duty, which `selc bits`
    measures.
    """

    BLOCK_SIZE_M: Neutral[int]
    BLOCK_SIZE_N: Neutral[int]
    BLOCK_SIZE_K: Bits[int]
    GROUP_SIZE_M: Neutral[int]
    SPLIT_K: Bits[int]
    num_warps: Neutral[int]
    num_stages: Neutral[int]
    swap_ab: Bits[bool]
    blocks: Neutral[int]  # zero: the kernel's host code counts them


@record
class Launch:
    kernel: Bits[str]  # the kernels order their sums, and dequantise, differently
    gate_up: Gemm
    down: Gemm
    # 'sorted' packs the rows of an expert into shared blocks, 'naive' gives each row a block of its
    # own. The row is multiplied with the same weights in the same steps of K.
    expert_assignment: Neutral[str]
    padded_rows: Neutral[int]  # what is allocated for sorted rows
    sum_reduce: Bits[str]  # what adds a token's experts up


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
    assume(num_tokens <= CHUNK or engine.name == "vllm", "the batch is one chunk")

    experts = model.experts // parallel.expert
    shard = model.moe_intermediate // parallel.tensor
    grouped = is_grouped(model)
    group = model.quant_block[1] if grouped and model.quant_block is not None else 0

    pairs = num_tokens * model.topk
    kernel = "triton"
    if grouped:
        cuda = engine.name == "vllm" and wna16_on_cuda(device, model, group, experts, pairs)
        kernel = "wna16_cuda" if cuda else "wna16_triton"

    rows = table_rows(device, model, engine, tuned, experts, shard, "")
    if rows is not None:
        row = nearest(rows, num_tokens)
        tile = rows[row]
    elif engine.batch_invariant:
        tile = Tile(64, 64, 32, 8, TRITON_WARPS, TRITON_STAGES)
    elif engine.name == "sglang":
        tile = sglang_tile(device, model, experts, num_tokens)
    else:
        tile = vllm_tile(device, model, experts, kernel, num_tokens)

    down_rows = table_rows(device, model, engine, tuned, experts, shard, "_down")
    if down_rows is not None:
        down_row = nearest(down_rows, num_tokens)
        down_tile = down_rows[down_row]
        require(tile.block_m == down_tile.block_m, "rows are sorted once, into blocks of one size")
    else:
        down_tile = tile

    if grouped and engine.name == "vllm":
        gate_up_n, gate_up_k = wna16_block(
            tile, kernel, pairs, model.hidden, 2 * shard, group, model.topk
        )
        down_n, down_k = wna16_block(down_tile, kernel, pairs, shard, model.hidden, group, 1)
    else:
        gate_up_n, gate_up_k = tile.block_n, tile.block_k
        if engine.name == "vllm" and model.quant_block is not None:
            gate_up_k = min(gate_up_k, min(model.quant_block[0], model.quant_block[1]))
        down_n, down_k = gate_up_n, gate_up_k
        if down_rows is not None:
            down_n, down_k = down_tile.block_n, down_tile.block_k

    naive = (
        engine.name == "vllm"
        and parallel.expert == 1
        and 4 * num_tokens * model.topk <= model.experts
        and not grouped
    )
    block_m = tile.block_m
    padded = padded_rows(model, engine, experts, pairs, block_m)
    gate_up = Gemm(
        BLOCK_SIZE_M=block_m,
        BLOCK_SIZE_N=gate_up_n,
        BLOCK_SIZE_K=gate_up_k,
        GROUP_SIZE_M=tile.group_m,
        SPLIT_K=1,
        num_warps=tile.warps,
        num_stages=tile.stages,
        swap_ab=swaps(device, model, engine, block_m, gate_up_n),
        blocks=blocks(engine, kernel, naive, padded, num_tokens, pairs, block_m)
        * ceil_div(2 * shard, gate_up_n),
    )
    down = Gemm(
        BLOCK_SIZE_M=block_m,
        BLOCK_SIZE_N=down_n,
        BLOCK_SIZE_K=down_k,
        GROUP_SIZE_M=down_tile.group_m,
        SPLIT_K=1,
        num_warps=down_tile.warps,
        num_stages=down_tile.stages,
        swap_ab=swaps(device, model, engine, block_m, down_n),
        blocks=blocks(engine, kernel, naive, padded, pairs, pairs, block_m)
        * ceil_div(model.hidden, down_n),
    )
    reduction = sum_reduce(model, engine, num_tokens)
    check(device, model, kernel, group, gate_up, model.hidden)
    check(device, model, kernel, group, down, shard)
    return Launch(
        kernel=kernel,
        gate_up=gate_up,
        down=down,
        expert_assignment="naive" if naive else "sorted",
        padded_rows=0 if naive else padded,
        sum_reduce=reduction,
    )


def ceil_div(a: int, b: int) -> int:
    return (a + b - 1) // b


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
    suffix: str,
) -> Mapping[int, Tile] | None:
    """The tuned rows for this shape on this device, in the order of their file."""
    if tuned is None or engine.batch_invariant or (suffix and engine.name == "vllm"):
        return None
    device_name = device.name.replace(" ", "_")
    if engine.name == "vllm" and "H200" in device_name.split("_"):
        device_name = "NVIDIA_H200"
    name = f"E={experts},N={shard},device_name={device_name}"
    if model.quant is not None:
        name += f",dtype={model.quant}"
    if model.quant_block is not None and model.quant_block[0] and model.quant_block[1]:
        between = "," if engine.name == "vllm" else ", "
        name += f",block_shape=[{model.quant_block[0]}{between}{model.quant_block[1]}]"
    rows = tuned.get(name + suffix)
    if rows is None:
        return None
    return {
        int(count): Tile(
            block_m=row["BLOCK_SIZE_M"],
            block_n=row["BLOCK_SIZE_N"],
            block_k=row["BLOCK_SIZE_K"],
            group_m=row["GROUP_SIZE_M"],
            warps=row.get("num_warps", TRITON_WARPS),
            stages=row.get("num_stages", TRITON_STAGES),
        )
        for count, row in rows.items()
    }


def nearest(rows: Mapping[int, Tile], num_tokens: int) -> int:
    """The nearest token count; the first in the table's order wins a tie."""
    return min(rows, key=lambda count: abs(count - num_tokens))


def vllm_tile(device: Device, model: Model, experts: int, kernel: str, num_tokens: int) -> Tile:
    """What vLLM uses where nobody has tuned."""
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


def sglang_tile(device: Device, model: Model, experts: int, num_tokens: int) -> Tile:
    """What SGLang uses where nobody has tuned."""
    stages = 2 if device.vendor == "rocm" else 4
    if model.quant == "fp8_w8a8" and model.quant_block is not None:
        stages = 2 if device.vendor == "rocm" else 3
        return Tile(64, model.quant_block[0], model.quant_block[1], 32, 4, stages)
    if model.quant == "fp8_w8a8":
        if num_tokens <= experts:
            return Tile(64, 128, 128, 1, 4, stages)
        return Tile(128, 256, 128, 32, 8, stages)
    if num_tokens <= experts:
        return Tile(16, 32, 64, 1, TRITON_WARPS, TRITON_STAGES)
    return Tile(64, 64, 32, 8, TRITON_WARPS, TRITON_STAGES)


def swaps(device: Device, model: Model, engine: Engine, block_m: int, block_n: int) -> bool:
    """Whether the weights go where the wider operand is fed: for few rows on Hopper."""
    if engine.batch_invariant or device.vendor != "cuda" or device.capability // 10 != 9:
        return False
    if engine.swap_ab != "all" and not (engine.swap_ab == "fp8" and model.quant == "fp8_w8a8"):
        return False
    return block_m < 64 and block_n >= 64


def sum_reduce(model: Model, engine: Engine, num_tokens: int) -> str:
    if engine.name == "vllm":
        return "moe_sum"
    if model.topk == 1:
        return "none"
    if model.topk == 2:
        return "add"
    return "torch_compile" if num_tokens <= 32 and not engine.batch_invariant else "kernel"


def padded_rows(model: Model, engine: Engine, experts: int, pairs: int, block_m: int) -> int:
    """Rows that the sorting may need: an expert's rows fill whole blocks."""
    if engine.name == "sglang":
        # One more expert takes the pairs that other ranks multiply.
        if pairs < experts + 1:
            return pairs * block_m
        return pairs + (experts + 1) * (block_m - 1)
    padded = pairs + model.experts * (block_m - 1)
    return min(pairs * block_m, padded) if pairs < model.experts else padded


def blocks(
    engine: Engine, kernel: str, naive: bool, padded: int, sources: int, pairs: int, block_m: int
) -> int:
    """Blocks along the rows; `sources` are the rows that the GEMM reads."""
    if kernel == "wna16_cuda":
        return 0
    if naive:
        return pairs
    if engine.name == "vllm" and sources < block_m:
        padded = min(padded, pairs * block_m)
    return ceil_div(padded, block_m)


def wna16_on_cuda(device: Device, model: Model, group: int, experts: int, pairs: int) -> bool:
    """Which of the two kernels for integer weights; `pairs` counts (token, expert) pairs."""
    if device.vendor != "cuda" or model.quant != "int4_w4a16" or group not in (32, 64, 128):
        return False
    return pairs / experts <= 6


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
