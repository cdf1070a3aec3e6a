# ruff: noqa: N803  # constants of a kernel are written large
# mypy: disable-error-code="no-untyped-def,untyped-decorator"
"""Attention over pages in Triton: one kernel for chunks, decode and both, and one that folds.

Nothing here depends on what else is in the launch: a program works on rows of one request and one
head of keys, tile by tile of keys from the start of a split, and the splits are folded from the
first. Contraction of products and sums is off and written out where it is wanted, so that an
expression rounds alike wherever it stands.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl

from selc.harness.kernels import launching
from selc.harness.kernels.attention_work import FOLD, ITEM, work_of
from selc.harness.kernels.paging import Inputs, Shape
from selc.harness.kernels.splits import LARGEST, Config

LOG2E = 1.4426950408889634
PDL = False
"""Whether the second kernel is started while the first one ends."""
UNROLLS = (4, 8, 16, 32)
"""Splits whose partial results are asked for together."""


@triton.jit
def _page(table_ptr, start, end, BITS: tl.constexpr, ONE: tl.constexpr, BLOCK_N: tl.constexpr):
    """The pages of a tile of keys, or the one page that it lies in."""
    columns = start if ONE else start + tl.arange(0, BLOCK_N)
    return tl.load(table_ptr + (columns >> BITS), mask=columns < end, other=0)


@triton.jit
def _tile(
    page,
    q,
    top,
    weight,
    acc,
    k_ptr,
    v_ptr,
    table_ptr,
    start,
    stop,
    end,
    place,
    scale,
    D: tl.constexpr,
    WIDTH: tl.constexpr,
    PAGE: tl.constexpr,
    BITS: tl.constexpr,
    PAGE_STEP: tl.constexpr,
    TOKEN_STEP: tl.constexpr,
    ONE_PAGE: tl.constexpr,
    BLOCK_N: tl.constexpr,
    WHOLE: tl.constexpr,
):
    """A tile of keys more; with WHOLE every row sees all of it."""
    lane = tl.arange(0, BLOCK_N)
    d = tl.arange(0, WIDTH)
    columns = start + lane
    if ONE_PAGE:
        inside = (start & (PAGE - 1)) * TOKEN_STEP
        k_ptr += page.to(tl.int64) * PAGE_STEP + inside
        v_ptr += page.to(tl.int64) * PAGE_STEP + inside
        offset = lane[:, None] * TOKEN_STEP + d[None, :]
    else:
        inside = (columns & (PAGE - 1)) * TOKEN_STEP
        offset = (page.to(tl.int64) * PAGE_STEP + inside)[:, None] + d[None, :]
    page = _page(table_ptr, start + BLOCK_N, end, BITS, ONE_PAGE, BLOCK_N)
    if WHOLE:
        if WIDTH == D:
            k = tl.load(k_ptr + offset)
            v = tl.load(v_ptr + offset)
        else:
            k = tl.load(k_ptr + offset, mask=d[None, :] < D, other=0.0)
            v = tl.load(v_ptr + offset, mask=d[None, :] < D, other=0.0)
    else:
        there = (columns < stop)[:, None] & (d[None, :] < D)
        k = tl.load(k_ptr + offset, mask=there, other=0.0)
        v = tl.load(v_ptr + offset, mask=there, other=0.0)
    scores = tl.dot(q, tl.trans(k), input_precision="ieee")
    if not WHOLE:
        seen = (columns[None, :] <= place[:, None]) & (columns < stop)[None, :]
        scores = tl.where(seen, scores, float("-inf"))
    new = tl.maximum(top, tl.max(scores, 1))
    safe = new if WHOLE else tl.where(new == float("-inf"), 0.0, new)
    p = tl.exp2(tl.fma(scores, scale, (-safe * scale)[:, None]))
    old = tl.exp2((top - safe) * scale)
    sums = tl.sum(p, 1)
    if WHOLE:
        weight = weight * old + sums
        acc = tl.dot(p.to(v.dtype), v, acc * old[:, None], input_precision="ieee")
    else:
        some = place >= start
        weight = tl.where(some, weight * old + sums, weight)
        more = tl.dot(p.to(v.dtype), v, acc * old[:, None], input_precision="ieee")
        acc = tl.where(some[:, None], more, acc)
    return page, new, weight, acc


@triton.jit
def _fold(total_top, top, scale):
    """The factors by which a fold so far and a split more are multiplied."""
    new = tl.maximum(total_top, top)
    safe = tl.where(new == float("-inf"), 0.0, new)
    before = tl.exp2((total_top - safe) * scale)
    after = tl.exp2((top - safe) * scale)
    return new, before, after


@triton.jit(do_not_specialize=["table_width"])
def _attend(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    acc_ptr,
    top_ptr,
    weight_ptr,
    table_ptr,
    work_ptr,
    table_width,
    scale,
    KV_HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    D: tl.constexpr,
    WIDTH: tl.constexpr,
    PAGE: tl.constexpr,
    BITS: tl.constexpr,
    PAGE_STEP: tl.constexpr,
    TOKEN_STEP: tl.constexpr,
    HEAD_STEP: tl.constexpr,
    ONE_PAGE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    PDL: tl.constexpr,
    ITEM: tl.constexpr,
):
    head = tl.program_id(0) % KV_HEADS
    item = work_ptr + tl.program_id(0) // KV_HEADS * ITEM
    row = tl.load(item)
    request = tl.load(item + 1)
    position = tl.load(item + 2)
    first = tl.load(item + 3)
    rows = tl.load(item + 4)
    start = tl.load(item + 5)
    stop = tl.load(item + 6)
    stride = tl.load(item + 7)
    partial = tl.load(item + 8)

    m = tl.arange(0, BLOCK_M)
    d = tl.arange(0, WIDTH)
    token = (first + m) // GROUP
    member = (first + m) % GROUP
    place = position + token
    there = (m < rows)[:, None] & (d[None, :] < D)
    line = ((row + token) * (KV_HEADS * GROUP) + head * GROUP + member).to(tl.int64)
    q = tl.load(q_ptr + line[:, None] * D + d[None, :], mask=there, other=0.0)
    k_ptr += head * HEAD_STEP
    v_ptr += head * HEAD_STEP
    table_ptr += request.to(tl.int64) * table_width
    all_see = position + first // GROUP + 1

    total_top = tl.full([BLOCK_M], float("-inf"), tl.float32)
    total_weight = tl.zeros([BLOCK_M], tl.float32)
    total = tl.zeros([BLOCK_M, WIDTH], tl.float32)
    for low in tl.range(start, stop, stride, num_stages=1):
        high = tl.minimum(low + stride, stop)
        whole = tl.maximum(tl.minimum(high, all_see) - low, 0) // BLOCK_N
        middle = low + whole * BLOCK_N
        top = tl.full([BLOCK_M], float("-inf"), tl.float32)
        weight = tl.zeros([BLOCK_M], tl.float32)
        acc = tl.zeros([BLOCK_M, WIDTH], tl.float32)
        page = _page(table_ptr, low, stop, BITS, ONE_PAGE, BLOCK_N)
        for at in range(low, middle, BLOCK_N):
            page, top, weight, acc = _tile(
                page, q, top, weight, acc, k_ptr, v_ptr, table_ptr, at, high, stop, place, scale,
                D, WIDTH, PAGE, BITS, PAGE_STEP, TOKEN_STEP, ONE_PAGE, BLOCK_N, True,
            )  # fmt: skip
        for at in range(middle, high, BLOCK_N):
            page, top, weight, acc = _tile(
                page, q, top, weight, acc, k_ptr, v_ptr, table_ptr, at, high, stop, place, scale,
                D, WIDTH, PAGE, BITS, PAGE_STEP, TOKEN_STEP, ONE_PAGE, BLOCK_N, False,
            )  # fmt: skip
        new, before, after = _fold(total_top, top, scale)
        some = top > float("-inf")
        total_weight = tl.where(some, total_weight * before + weight * after, total_weight)
        total = tl.where(some[:, None], total * before[:, None] + acc * after[:, None], total)
        total_top = new

    if PDL:
        tl.extra.cuda.gdc_launch_dependents()
    if partial >= 0:
        part = (partial + m).to(tl.int64) * KV_HEADS + head
        tl.store(acc_ptr + part[:, None] * D + d[None, :], total, mask=there)
        tl.store(top_ptr + part, total_top, mask=m < rows)
        tl.store(weight_ptr + part, total_weight, mask=m < rows)
    else:
        done = total / total_weight[:, None]
        tl.store(out_ptr + line[:, None] * D + d[None, :], done.to(q.dtype), mask=there)


@triton.jit
def _combine(
    out_ptr,
    acc_ptr,
    top_ptr,
    weight_ptr,
    folds_ptr,
    scale,
    KV_HEADS: tl.constexpr,
    GROUP: tl.constexpr,
    D: tl.constexpr,
    WIDTH: tl.constexpr,
    UNROLL: tl.constexpr,
    PDL: tl.constexpr,
    FOLD: tl.constexpr,
):
    head = tl.program_id(0) % KV_HEADS
    fold = folds_ptr + tl.program_id(0) // KV_HEADS * FOLD
    part = tl.load(fold).to(tl.int64)
    step = tl.load(fold + 1)
    splits = tl.load(fold + 2)
    row = tl.load(fold + 3)
    d = tl.arange(0, WIDTH)
    there = d < D
    if PDL:
        tl.extra.cuda.gdc_wait()
    total_top = tl.full([], float("-inf"), tl.float32)
    total_weight = tl.full([], 0.0, tl.float32)
    total = tl.zeros([WIDTH], tl.float32)
    for low in range(0, splits, UNROLL):
        for i in tl.static_range(UNROLL):
            here = low + i < splits
            at = (part + (low + i) * step) * KV_HEADS + head
            top = tl.load(top_ptr + at, mask=here, other=float("-inf"))
            weight = tl.load(weight_ptr + at, mask=here, other=0.0)
            acc = tl.load(acc_ptr + at * D + d, mask=there & here, other=0.0)
            new, before, after = _fold(total_top, top, scale)
            some = top > float("-inf")
            total_weight = tl.where(some, total_weight * before + weight * after, total_weight)
            total = tl.where(some, total * before + acc * after, total)
            total_top = new
    line = ((row // GROUP).to(tl.int64) * KV_HEADS + head) * GROUP + row % GROUP
    done = total / total_weight
    tl.store(out_ptr + line * D + d, done.to(out_ptr.dtype.element_ty), mask=there)


@dataclass(frozen=True, slots=True)
class Plan:
    """Work on the device, and room for partial results."""

    items: Any
    folds: Any
    partials: tuple[Any, Any, Any]
    unroll: int


def launch(config: Config, inputs: Inputs) -> Any:
    """The output of all rows.

    Raises:
        Unsupported: the configuration does not fit the device.
    """
    plan = _planned(config, inputs)
    shape, out = inputs.shape, torch.empty_like(inputs.q)
    scale = shape.scale * LOG2E
    launching.launch(
        _attend,
        (shape.kv_heads * len(plan.items),),
        inputs.q,
        inputs.keys,
        inputs.values,
        out,
        *plan.partials,
        inputs.table,
        plan.items,
        inputs.table.shape[1],
        scale,
        **attend_constants(config, shape),
    )
    if len(plan.folds):
        _combine[(shape.kv_heads * len(plan.folds),)](
            out, *plan.partials, plan.folds, scale, **combine_constants(shape, plan.unroll)
        )
    return out


def attend_constants(config: Config, shape: Shape) -> dict[str, Any]:
    """What the attention kernel is compiled for."""
    stride = config.split_stride or LARGEST
    first = shape.layout == "HND"
    token = shape.head_dim if first else shape.kv_heads * shape.head_dim
    return {
        "KV_HEADS": shape.kv_heads,
        "GROUP": shape.group,
        "D": shape.head_dim,
        "WIDTH": width_of(shape),
        "PAGE": shape.page_size,
        "BITS": shape.page_size.bit_length() - 1,
        "PAGE_STEP": shape.page_size * shape.kv_heads * shape.head_dim,
        "TOKEN_STEP": token,
        "HEAD_STEP": shape.page_size * shape.head_dim if first else shape.head_dim,
        "ONE_PAGE": shape.page_size % config.block_n == 0 and stride % config.block_n == 0,
        "BLOCK_M": config.block_m,
        "BLOCK_N": config.block_n,
        "PDL": PDL,
        "ITEM": ITEM,
        "num_warps": config.num_warps,
        "num_stages": config.num_stages,
        "enable_fp_fusion": False,
    }


def combine_constants(shape: Shape, unroll: int) -> dict[str, Any]:
    """What the kernel that folds partial results is compiled for."""
    return {
        "KV_HEADS": shape.kv_heads,
        "GROUP": shape.group,
        "D": shape.head_dim,
        "WIDTH": width_of(shape),
        "UNROLL": unroll,
        "PDL": PDL,
        "FOLD": FOLD,
        "num_warps": 1,
        "maxnreg": 128,  # else loads wait for each other, so that more programs fit
        "launch_pdl": PDL,
        "enable_fp_fusion": False,
    }


def width_of(shape: Shape) -> int:
    """The head dimension as a block has it."""
    return max(16, 1 << (shape.head_dim - 1).bit_length())


def precompile(config: Config, shape: Shape) -> None:
    """Compile both kernels, launching nothing."""
    kind, real, whole = getattr(torch, shape.dtype), torch.float32, torch.int32
    _attend.warmup(
        *(kind,) * 4, *(real,) * 3, whole, whole, 1, 1.0, grid=(1,),
        **attend_constants(config, shape),
    )  # fmt: skip
    for unroll in UNROLLS:
        constants = combine_constants(shape, unroll)
        _combine.warmup(kind, *(real,) * 3, whole, 1.0, grid=(1,), **constants)


def _planned(config: Config, inputs: Inputs) -> Plan:
    """The plan of a configuration, made at its first launch, before any capture."""
    key = (config.split_stride, config.num_splits, config.block_m, config.block_n)
    key = key if not config.split_stride else (config.split_stride, 0, config.block_m, 0)
    found: Plan | None = inputs.plans.get(key)
    if found is None:
        found = inputs.plans[key] = _plan(config, inputs)
    return found


def _plan(config: Config, inputs: Inputs) -> Plan:
    shape, device = inputs.shape, inputs.q.device
    work = work_of(inputs.requests, shape.group, shape.kv_heads, config, _processors(device))
    items = torch.tensor(work.items, dtype=torch.int32, device=device)
    folds = torch.tensor(work.folds, dtype=torch.int32, device=device)
    lines = max(1, work.partial_rows) * shape.kv_heads
    room = inputs.plans.get("room")
    if room is None or len(room[1]) < lines:
        sizes = ((lines, shape.head_dim), (lines,), (lines,))
        room = tuple(torch.empty(s, dtype=torch.float32, device=device) for s in sizes)
        inputs.plans["room"] = room
    unroll = next((u for u in UNROLLS if work.most_splits <= u), UNROLLS[-1])
    return Plan(items, folds, room, unroll)


def _processors(device: Any) -> int:
    if device.type != "cuda":
        return 8
    return int(torch.cuda.get_device_properties(device).multi_processor_count)
