# ruff: noqa: N806  # points are called what the kernels call them
"""In what blocks the rows of an RMS norm are summed.

A few rows are summed in wide blocks by many warps, since each row has a part of the GPU to itself;
many rows in narrow ones. Both order a row's sum.
"""

from __future__ import annotations

from selc.lang import Bits, Runtime, assume, record, require, selection


@record
class Model:
    hidden: int
    element_size: int


@record
class Engine:
    max_num_batched_tokens: int


@record
class Batch:
    num_tokens: Runtime[int]


@record
class Launch:
    BLOCK_SIZE: Bits[int]
    num_warps: Bits[int]


@selection(family="rms_norm", scope="launch")
def rms_norm(model: Model, engine: Engine, batch: Batch) -> Launch:
    num_tokens = batch.num_tokens
    assume(num_tokens >= 1, "an empty batch is not launched")
    assume(num_tokens <= engine.max_num_batched_tokens, "the scheduler's token budget")
    require(model.hidden * model.element_size % 16 == 0, "rows start at whole vectors")
    whole = 1 << (model.hidden - 1).bit_length()

    if num_tokens <= 32:
        BLOCK_SIZE = whole
    elif num_tokens <= 256:
        BLOCK_SIZE = whole // 2
    elif num_tokens <= 2048:
        BLOCK_SIZE = whole // 4
    else:
        BLOCK_SIZE = whole // 8
    if num_tokens <= 16:
        num_warps = 16
    elif num_tokens <= 128:
        num_warps = 8
    elif num_tokens <= 1024:
        num_warps = 4
    else:
        num_warps = 2
    require(32 * num_warps <= BLOCK_SIZE, "every thread has an element of a block")
    return Launch(BLOCK_SIZE=BLOCK_SIZE, num_warps=num_warps)
