"""The all-reduce of a sharded layer, among the bundled kernels.

As engines do it: one shot for small messages, two for medium ones, NCCL for what is larger. The
message's bytes are the batch's tokens times constants, so that all of it moves with the batch.

The first two add in the order of the ranks and round once; what they need is room in their buffers.
NCCL's order of addition is fixed only between two ranks, where there is one order, and where it is
held to its tree (`NCCL_ALGO=Tree`).
"""

from __future__ import annotations

from selc.lang import Bits, Neutral, Runtime, knob, record, require, selection


@record
class Model:
    hidden: int
    element_size: int


@record
class Parallel:
    tensor: int


@record
class Comm:
    one_shot_bytes: int  # the largest message that gets one shot
    two_shot_bytes: int
    buffer_bytes: int  # allocated, per message
    block_bytes: int  # as much as is worth a block
    nccl_algo: str | None  # what NCCL is held to


@record
class Batch:
    num_tokens: Runtime[int]


@record
class Launch:
    algorithm: Bits[str]
    blocks: Neutral[int]
    num_warps: Neutral[int]


@selection(family="all_reduce", scope="launch")
def all_reduce(model: Model, parallel: Parallel, comm: Comm, batch: Batch) -> Launch:
    ranks = parallel.tensor
    size = batch.num_tokens * model.hidden * model.element_size
    most = knob("blocks", choices=(8, 16, 32, 64), default=32)
    warps = knob("num_warps", choices=(4, 8, 16), default=8)
    if ranks == 1:
        return Launch("none", 0, 0)
    algorithm = choose(comm, size)
    if algorithm == "nccl":
        require(ranks == 2 or comm.nccl_algo == "tree", "NCCL adds in one order")
        return Launch(algorithm, 0, 0)
    require(size <= comm.buffer_bytes, "the message fits in the buffer")
    require(size % 16 == 0, "16 bytes are moved at a time")
    blocks = min(most, (size + comm.block_bytes - 1) // comm.block_bytes)
    return Launch(algorithm, blocks, warps)


def choose(comm: Comm, size: int) -> str:
    if size <= comm.one_shot_bytes:
        return "one_shot"
    if size <= comm.two_shot_bytes:
        return "two_shot"
    return "nccl"
