# points are called what the kernels call them
"""Tiles of a layer of experts, each product from a tuned table of its own.

A table has a row for some token counts, and the nearest count's row is taken. Whether two rows give
equal bits is the kernel's business and measured (`selc bits --classes`); as long as nothing says
that they do, all of a row that the kernel is compiled from counts.
"""

from __future__ import annotations

from collections.abc import Mapping

from selc.lang import Bits, Neutral, Runtime, assume, knob, record, require, selection


@record
class Device:
    shared_memory: int  # bytes that one block can have


@record
class Model:
    experts: int
    topk: int
    hidden: int
    moe_intermediate: int
    element_size: int


@record
class Parallel:
    tensor: int


@record
class Engine:
    max_num_batched_tokens: int


@record
class Batch:
    num_tokens: Runtime[int]


@record
class Gemm:
    BLOCK_SIZE_M: Bits[int]
    BLOCK_SIZE_N: Bits[int]
    BLOCK_SIZE_K: Bits[int]
    GROUP_SIZE_M: Neutral[int]  # the order of blocks
    SPLIT_K: Bits[int]
    num_warps: Bits[int]
    num_stages: Bits[int]


@record
class Launch:
    gate_up: Gemm
    down: Gemm
    expert_assignment: Neutral[str]


@selection(family="moe", scope="launch")
def moe(
    device: Device,
    model: Model,
    parallel: Parallel,
    engine: Engine,
    batch: Batch,
    tuned: Mapping[str, Mapping[str, Mapping[str, int]]],
    gate_up_table: str,
    down_table: str,
) -> Launch:
    num_tokens = batch.num_tokens
    assume(num_tokens >= 1, "an empty batch is not launched")
    assume(num_tokens <= engine.max_num_batched_tokens, "the scheduler's token budget")

    naive = knob("naive", choices=(True, False), default=True)
    few = 4 * num_tokens * model.topk <= model.experts
    gate_up_row = nearest(tuned[gate_up_table], num_tokens)
    down_row = nearest(tuned[down_table], num_tokens)
    gate_up = gemm(tuned[gate_up_table][gate_up_row])
    down = gemm(tuned[down_table][down_row])

    require(
        gate_up.BLOCK_SIZE_M == down.BLOCK_SIZE_M, "rows are sorted once, into blocks of one size"
    )
    require(fits(device, model, gate_up), "the stages of the first product fit in shared memory")
    require(fits(device, model, down), "the stages of the second product fit in shared memory")
    return Launch(
        gate_up=gate_up,
        down=down,
        expert_assignment="naive" if naive and few else "sorted",
    )


def nearest(rows: Mapping[str, Mapping[str, int]], num_tokens: int) -> str:
    """The row of the nearest token count; the first in the table's order wins a tie."""
    return min(rows, key=lambda count: abs(int(count) - num_tokens))


def gemm(row: Mapping[str, int]) -> Gemm:
    return Gemm(
        BLOCK_SIZE_M=row["BLOCK_SIZE_M"],
        BLOCK_SIZE_N=row["BLOCK_SIZE_N"],
        BLOCK_SIZE_K=row["BLOCK_SIZE_K"],
        GROUP_SIZE_M=row["GROUP_SIZE_M"],
        SPLIT_K=1,
        num_warps=row["num_warps"],
        num_stages=row["num_stages"],
    )


def fits(device: Device, model: Model, tile: Gemm) -> bool:
    """Whether one copy of both tiles for each stage fits."""
    step = (tile.BLOCK_SIZE_M + tile.BLOCK_SIZE_N) * tile.BLOCK_SIZE_K * model.element_size
    return step * tile.num_stages <= device.shared_memory
