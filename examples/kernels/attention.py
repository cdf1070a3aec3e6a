# ruff: noqa: N806  # points are called what the kernels call them
"""The selection for the attention kernels that come with selc: keys are split at a fixed stride.

The tile of query rows follows the longest chunk of the batch, and the stride how many pieces of
work there are: keys are split as little as fills the device. Both move a request's bits, as do the
width of a tile of keys and the warps, which a deployment sets.
"""

from __future__ import annotations

from selc.lang import (
    Bits,
    Neutral,
    Runtime,
    Unpinnable,
    assume,
    knob,
    record,
    require,
    selection,
)

STRIDES = (0, 8192, 4096, 2048, 1024, 512, 256)  # keys; 0 does not split


@record
class Device:
    num_sms: int
    shared_memory: int


@record
class Model:
    heads: int
    kv_heads: int
    head_dim: int
    element_size: int


@record
class Parallel:
    tensor: int


@record
class Engine:
    max_num_batched_tokens: int
    max_num_seqs: int
    max_model_len: int


@record
class Batch:
    batch_size: Runtime[int]
    total_q: Runtime[int]
    max_seqlen_q: Runtime[int]
    max_seqlen_k: Unpinnable[int]


@record
class Launch:
    split_stride: Bits[int]
    BLOCK_M: Bits[int]
    BLOCK_N: Bits[int]
    num_warps: Bits[int]
    num_stages: Neutral[int]


@selection(family="attention", scope="launch")
def attention(
    device: Device,
    model: Model,
    parallel: Parallel,
    engine: Engine,
    batch: Batch,
    strides: tuple[int, ...] = STRIDES,
    widths: tuple[int, ...] = (32, 64, 128),
    warps: tuple[int, ...] = (2, 4, 8),
    stages: tuple[int, ...] = (2, 3, 4),
) -> Launch:
    assume(batch.batch_size <= engine.max_num_seqs, "the scheduler's limit of requests")
    assume(batch.total_q <= engine.max_num_batched_tokens, "the scheduler's token budget")
    assume(batch.total_q >= batch.batch_size, "every request has a row")
    assume(batch.total_q >= batch.max_seqlen_q, "rows are those of all requests")
    most = batch.batch_size * batch.max_seqlen_q
    assume(batch.total_q <= most, "no request has more rows than the longest chunk")
    assume(batch.max_seqlen_q <= batch.max_seqlen_k, "a row is a token of its request")
    assume(batch.max_seqlen_k <= engine.max_model_len, "the longest context that is served")
    kv_heads = max(1, model.kv_heads // parallel.tensor)
    group = model.heads // parallel.tensor // kv_heads
    width = 1 << (model.head_dim - 1).bit_length()

    rows = batch.max_seqlen_q * group
    BLOCK_M = 16 if rows <= 16 else 64 if rows <= 128 else 128
    blocks = batch.batch_size * ceil_div(rows, BLOCK_M) * kv_heads
    split_stride = stride_for(strides, blocks, batch.max_seqlen_k, device.num_sms)

    BLOCK_N = knob("BLOCK_N", choices=widths, default=64)
    num_warps = knob("num_warps", choices=warps, default=4)
    num_stages = knob("num_stages", choices=stages, default=3)

    row = width * model.element_size
    used = BLOCK_M * row + num_stages * 2 * BLOCK_N * row
    require(used <= device.shared_memory, "queries and the tiles in flight fit in shared memory")
    require(split_stride % BLOCK_N == 0, "a split ends where a tile of keys does")
    held = 2 * BLOCK_M * width + BLOCK_M * BLOCK_N
    require(held <= 184 * 32 * num_warps, "what a thread holds fits in its registers")
    require(num_warps <= 4 or BLOCK_N >= 64, "every warp has columns of a tile of keys")
    return Launch(
        split_stride=split_stride,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        num_warps=num_warps,
        num_stages=num_stages,
    )


def stride_for(strides: tuple[int, ...], blocks: int, longest: int, num_sms: int) -> int:
    """The largest stride that gives four of five multiprocessors work, else the smallest."""
    for stride in strides:
        splits = ceil_div(longest, stride) if stride > 0 else 1
        if blocks * splits * 5 >= num_sms * 4:
            return stride
    return strides[-1]


def ceil_div(a: int, b: int) -> int:
    return (a + b - 1) // b
