# ruff: noqa: N803  # kernels' constants are called what configurations call them
# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"
"""Sorting rows by expert on the device, into blocks of rows of one expert.

A program for each expert finds where its blocks start from the counts of all, and writes its pairs
of token and expert there in their order: nothing depends on which program is faster.
"""

from __future__ import annotations

from typing import Final

import torch
import triton
import triton.language as tl
from torch import Tensor

from selc.harness.kernels.launching import launch

AT_ONCE: Final = 4096
"""Pairs that a program looks at in one step."""


@triton.jit(do_not_specialize=["pairs"])
def count_kernel(ids, counts, pairs, CHUNK: tl.constexpr):
    """How many pairs an expert has."""
    expert = tl.program_id(0)
    total = 0
    for start in range(0, pairs, CHUNK):
        at = start + tl.arange(0, CHUNK)
        found = tl.load(ids + at, mask=at < pairs, other=-1) == expert
        total += tl.sum(found.to(tl.int32), axis=0)
    tl.store(counts + expert, total)


@triton.jit(do_not_specialize=["pairs"])
def place_kernel(
    ids,
    counts,
    order,
    owners,
    filled,
    pairs,
    experts,
    BLOCK_M: tl.constexpr,
    EXPERTS: tl.constexpr,
    CHUNK: tl.constexpr,
    COUNTED: tl.constexpr,
):
    """Write an expert's pairs into its blocks, and the expert beside each block."""
    expert = tl.program_id(0)
    number = tl.arange(0, EXPERTS)
    at = tl.arange(0, CHUNK)
    if COUNTED:
        count = tl.load(counts + number, mask=number < experts, other=0)
    else:
        all_ids = tl.load(ids + at, mask=at < pairs, other=0)
        count = tl.histogram(all_ids, EXPERTS, mask=at < pairs)
    size = tl.cdiv(count, BLOCK_M) * BLOCK_M
    begin = tl.sum(tl.where(number < expert, size, 0), axis=0)
    end = begin + tl.sum(tl.where(number == expert, size, 0), axis=0)
    if expert == 0:
        tl.store(filled, tl.sum(size, axis=0))
    next_place = begin
    for start in range(0, pairs, CHUNK):
        pair = start + at
        found = tl.load(ids + pair, mask=pair < pairs, other=-1) == expert
        rank = tl.cumsum(found.to(tl.int32), axis=0)
        tl.store(order + next_place + rank - 1, pair, mask=found)
        next_place += tl.sum(found.to(tl.int32), axis=0)
    hole = next_place + tl.arange(0, BLOCK_M)
    tl.store(order + hole, tl.zeros_like(hole) + pairs, mask=hole < end)
    for place in range(begin, end, BLOCK_M):
        tl.store(owners + place // BLOCK_M, expert)


def most_rows(pairs: int, experts: int, block_m: int) -> int:
    """Rows that sorting may need, whatever the routing: whole blocks for each expert."""
    fewest = min(pairs, experts)
    rows = pairs + fewest * (block_m - 1)
    return -(-min(rows, pairs * block_m) // block_m) * block_m


def align(ids: Tensor, experts: int, block_m: int) -> tuple[Tensor, Tensor, Tensor]:
    """Pairs in blocks (`pairs` marks a hole), the expert of each block, and the rows in use."""
    pairs = ids.numel()
    rows = most_rows(pairs, experts, block_m)
    order = torch.empty(rows, dtype=torch.int32, device=ids.device)
    owners = torch.empty(rows // block_m, dtype=torch.int32, device=ids.device)
    filled = torch.empty(1, dtype=torch.int32, device=ids.device)
    counts = torch.empty(experts, dtype=torch.int32, device=ids.device)
    chunk = min(AT_ONCE, max(32, triton.next_power_of_2(pairs)))
    counted = pairs > AT_ONCE
    if counted:
        launch(count_kernel, (experts,), ids, counts, pairs, CHUNK=chunk, num_warps=8)
    launch(
        place_kernel,
        (experts,),
        ids,
        counts,
        order,
        owners,
        filled,
        pairs,
        experts,
        BLOCK_M=block_m,
        EXPERTS=max(32, triton.next_power_of_2(experts)),
        CHUNK=chunk,
        COUNTED=counted,
        num_warps=8 if chunk >= 1024 else 4,
    )
    return order, owners, filled
