# ruff: noqa: N803, SIM108  # constants are called what configurations call them
# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"
"""A layer of experts in Triton: sort, first product, activation, second product, sum."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

from selc.harness.kernels.launching import launch, positive
from selc.harness.kernels.moe_align import align
from selc.harness.protocol import Unsupported

WIDE: Final = 1024


@triton.jit(do_not_specialize=["pairs", "blocks"])
def grouped_kernel(
    x,
    w,
    out,
    share,
    order,
    owners,
    filled,
    pairs,
    blocks,
    columns,
    depth,
    PER_ROW: tl.constexpr,
    SHARED: tl.constexpr,
    NAIVE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    EVEN_K: tl.constexpr,
    SWAP: tl.constexpr,
):
    """A tile of one expert's product; `PER_ROW` pairs read the same row of `x`."""
    across = tl.cdiv(columns, BLOCK_N)
    program = tl.program_id(0)
    group = program // (GROUP_M * across)
    height = min(blocks - group * GROUP_M, GROUP_M)
    block = group * GROUP_M + program % (GROUP_M * across) % height
    left = program % (GROUP_M * across) // height * BLOCK_N
    at = tl.arange(0, BLOCK_M)
    if NAIVE:
        expert = tl.load(owners + block)
        pair = tl.where(at == 0, block, pairs)
    else:
        if block * BLOCK_M >= tl.load(filled):
            return
        expert = tl.load(owners + block)
        pair = tl.load(order + block * BLOCK_M + at)
    real = pair < pairs
    source = x + (pair // PER_ROW).to(tl.int64)[:, None] * depth

    inner = tl.arange(0, BLOCK_K)
    if SWAP:
        total = tl.zeros((BLOCK_N, BLOCK_M), dtype=tl.float32)
    else:
        total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, depth, BLOCK_K):
        if EVEN_K:
            a = tl.load(source + start + inner[None, :], mask=real[:, None], other=0.0)
        else:
            here = real[:, None] & (start + inner < depth)[None, :]
            a = tl.load(source + start + inner[None, :], mask=here, other=0.0)
        b = tl.reshape(w.load([expert, left, start]), (BLOCK_N, BLOCK_K))
        if SWAP:
            total = tl.dot(b, a.T, total)
        else:
            total = tl.dot(a, b.T, total)

    if SHARED:
        factor = tl.load(share + pair, mask=real, other=0.0)
        if SWAP:
            total = total * factor[None, :]
        else:
            total = total * factor[:, None]
    if SWAP:
        row = pair[None, :]
        column = left + tl.arange(0, BLOCK_N)[:, None]
        kept = real[None, :] & (column < columns)
    else:
        row = pair[:, None]
        column = left + tl.arange(0, BLOCK_N)[None, :]
        kept = real[:, None] & (column < columns)
    place = out + row.to(tl.int64) * columns + column
    tl.store(place, total.to(out.dtype.element_ty), mask=kept)


@triton.jit
def activate_kernel(both, out, width, BLOCK: tl.constexpr):
    """SiLU of the gate, times the other half."""
    pair = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < width
    gate = tl.load(both + pair * 2 * width + at, mask=inside, other=0.0).to(tl.float32)
    other = tl.load(both + (pair * 2 + 1) * width + at, mask=inside, other=0.0)
    active = (gate / (1.0 + tl.exp(-gate))).to(both.dtype.element_ty)
    tl.store(out + pair * width + at, active * other, mask=inside)


@triton.jit
def sum_kernel(parts, out, columns, TOPK: tl.constexpr, BLOCK: tl.constexpr):
    """Add a row's experts in their order."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < columns
    first = parts + row * TOPK * columns + at
    total = tl.load(first, mask=inside, other=0.0).to(tl.float32)
    for index in tl.static_range(1, TOPK):
        total += tl.load(first + index * columns, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + row * columns + at, total.to(out.dtype.element_ty), mask=inside)


@dataclass(frozen=True, slots=True)
class Sorted:
    """Rows in blocks of one expert; without an order each pair is a block."""

    order: Tensor | None
    owners: Tensor
    filled: Tensor | None
    blocks: int


def run(choice: Mapping[str, Any], inputs: Any) -> Tensor:
    """The layer's output under a choice."""
    x, ids = inputs.x, inputs.ids
    rows, topk = ids.shape
    pairs = rows * topk
    block_m = choice["gate_up.BLOCK_SIZE_M"]
    if choice["down.BLOCK_SIZE_M"] != block_m:
        raise Unsupported("rows are sorted once, into blocks of one size")
    if choice.get("gate_up.SPLIT_K", 1) != 1 or choice.get("down.SPLIT_K", 1) != 1:
        raise Unsupported("these kernels do not split a sum over K")
    positive(choice, "gate_up.BLOCK_SIZE_M")
    if choice.get("expert_assignment", "sorted") == "naive":
        blocks = Sorted(None, ids, None, pairs)
    else:
        order, owners, filled = align(ids, len(inputs.up), block_m)
        blocks = Sorted(order, owners, filled, len(owners))
    both, active, parts, out = _room(inputs, pairs)
    multiply(choice, "gate_up", inputs, x, inputs.up, both, blocks, topk)
    width = active.shape[1]
    block = min(WIDE, triton.next_power_of_2(width))
    grid = (pairs, -(-width // block))
    launch(activate_kernel, grid, both, active, width, BLOCK=block, num_warps=4)
    multiply(choice, "down", inputs, active, inputs.down, parts, blocks, 1)
    hidden = x.shape[1]
    block = min(WIDE, triton.next_power_of_2(hidden))
    grid = (rows, -(-hidden // block))
    launch(sum_kernel, grid, parts, out, hidden, TOPK=topk, BLOCK=block, num_warps=4)
    return out


def multiply(
    choice: Mapping[str, Any],
    gemm: str,
    inputs: Any,
    x: Tensor,
    weights: Tensor,
    out: Tensor,
    blocks: Sorted,
    per_row: int,
) -> None:
    """One of the two products; a row of `x` serves `per_row` pairs."""
    names = ("BLOCK_SIZE_M", "BLOCK_SIZE_N", "BLOCK_SIZE_K", "num_warps", "num_stages")
    block_m, block_n, block_k, warps, stages = positive(choice, *(f"{gemm}.{n}" for n in names))
    _, columns, depth = weights.shape
    key = (gemm, block_n, block_k)
    if key not in inputs.scratch:
        shape = [1, block_n, block_k]
        inputs.scratch[key] = TensorDescriptor.from_tensor(weights, shape)
    unused = blocks.owners
    launch(
        grouped_kernel,
        (blocks.blocks * -(-columns // block_n),),
        x,
        inputs.scratch[key],
        out,
        inputs.share,
        unused if blocks.order is None else blocks.order,
        blocks.owners,
        unused if blocks.filled is None else blocks.filled,
        inputs.ids.numel(),
        blocks.blocks,
        columns,
        depth,
        PER_ROW=per_row,
        SHARED=gemm == "down",
        NAIVE=blocks.order is None,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=block_k,
        GROUP_M=choice.get(f"{gemm}.GROUP_SIZE_M", 1),
        EVEN_K=depth % block_k == 0,
        SWAP=bool(choice.get(f"{gemm}.swap_ab", block_m < 64 <= block_n)),
        num_warps=warps,
        num_stages=stages,
    )


def _room(inputs: Any, pairs: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Between the steps the same tensors at each launch; the output is a new one."""
    x, width, hidden = inputs.x, inputs.down.shape[2], inputs.x.shape[1]
    if "room" not in inputs.scratch:
        inputs.scratch["room"] = tuple(x.new_empty((pairs, w)) for w in (2 * width, width, hidden))
    both, active, parts = inputs.scratch["room"]
    return both, active, parts, torch.empty_like(x)
