# ruff: noqa: N806  # points are called what the kernels call them
"""Tiles of a dense product, as an engine would adapt them to the tokens of a batch.

Few tokens leave most of a GPU idle, so the sum over K is cut in as many parts as there is room
for, and long steps along K hide the latency of memory; many tokens want wide tiles. The step and
the number of parts order the sum of an output. The rest says which rows and columns share a block,
and how its work is spread over threads and time.
"""

from __future__ import annotations

from selc.lang import Bits, Neutral, Runtime, assume, knob, record, require, selection


@record
class Device:
    num_sms: int
    shared_memory: int  # bytes that one block can have


@record
class Model:
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    element_size: int


@record
class Parallel:
    tensor: int


@record
class Engine:
    max_num_batched_tokens: int
    workspace: int  # bytes, for the parts of split sums


@record
class Batch:
    num_tokens: Runtime[int]


@record
class Launch:
    BLOCK_K: Bits[int]
    SPLIT_K: Bits[int]
    padding: Bits[int]
    BLOCK_M: Neutral[int]
    BLOCK_N: Neutral[int]
    GROUP_M: Neutral[int]
    num_warps: Neutral[int]
    num_stages: Neutral[int]


@selection(family="gemm", scope="launch")
def gemm(
    device: Device,
    model: Model,
    parallel: Parallel,
    engine: Engine,
    batch: Batch,
    linear: str = "qkv",
) -> Launch:
    num_tokens = batch.num_tokens
    assume(num_tokens >= 1, "an empty batch is not launched")
    assume(num_tokens <= engine.max_num_batched_tokens, "the scheduler's token budget")
    n, k = sizes(model, parallel, linear)

    narrow = knob("narrow", choices=(32, 64, 128), default=64)  # columns of a tile of few rows
    wide = knob("wide", choices=(128, 256), default=256)
    stages = knob("stages", choices=(3, 4, 5), default=4)
    GROUP_M = knob("group_m", choices=(1, 8), default=8)
    padding = knob("padding", choices=(1, 16, 64), default=1)

    if num_tokens <= 16:
        BLOCK_M = 16
    elif num_tokens <= 32:
        BLOCK_M = 32
    elif num_tokens <= 64:
        BLOCK_M = 64
    else:
        BLOCK_M = 128
    if num_tokens <= 64:
        BLOCK_N = narrow
    elif num_tokens <= 256:
        BLOCK_N = 128
    else:
        BLOCK_N = wide
    if num_tokens <= 16:
        BLOCK_K = 256
    elif num_tokens <= 64:
        BLOCK_K = 128
    else:
        BLOCK_K = 64

    blocks = ceil_div(num_tokens, BLOCK_M) * ceil_div(n, BLOCK_N)
    room = 2 * device.num_sms
    if blocks * 8 <= room:
        SPLIT_K = 8
    elif blocks * 4 <= room:
        SPLIT_K = 4
    elif blocks * 2 <= room:
        SPLIT_K = 2
    else:
        SPLIT_K = 1

    # One copy of both tiles for each step that is in flight, and half a tile on its way out.
    step = (BLOCK_M + BLOCK_N) * BLOCK_K * model.element_size
    out = BLOCK_M * BLOCK_N * model.element_size // 2
    fitting = (device.shared_memory - out - 1024) // step
    require(fitting >= 2, "two steps along K fit in shared memory")
    require(ceil_div(k, BLOCK_K) >= SPLIT_K, "every part of a sum has a step")
    require(
        SPLIT_K == 1 or SPLIT_K * num_tokens * n * 4 <= engine.workspace,
        "the parts of the sums fit in the workspace",
    )
    return Launch(
        BLOCK_K=BLOCK_K,
        SPLIT_K=SPLIT_K,
        padding=padding,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        GROUP_M=GROUP_M,
        num_warps=8 if BLOCK_M >= 128 else 4,
        num_stages=min(stages, fitting),
    )


def ceil_div(a: int, b: int) -> int:
    return (a + b - 1) // b


def sizes(model: Model, parallel: Parallel, linear: str) -> tuple[int, int]:
    """Columns and depth of a layer's product on one rank."""
    ranks = parallel.tensor
    if linear == "qkv":
        heads = model.heads // ranks + 2 * max(model.kv_heads // ranks, 1)
        return heads * model.head_dim, model.hidden
    if linear == "o":
        return model.hidden, model.heads * model.head_dim // ranks
    if linear == "gate_up":
        return 2 * model.intermediate // ranks, model.hidden
    return model.hidden, model.intermediate // ranks
