# ruff: noqa: N806, N815  # points are called what the kernels call them
"""A policy for FlashAttention-3 in which no batch moves the bits of a request.

A request's keys are split at multiples of a fixed stride, so that its splits follow its own length
alone: a kernel that is built for it takes the stride, and stops each request at its own last split.
All that a batch decides is how far the grid reaches. The mask, the way keys are loaded and the
packing of query heads are those of the deployment, also for a batch of single queries.

The stride and the packing are knobs: which is fastest depends on the workload; any is invariant.
"""

from __future__ import annotations

from attention_fa3 import ceil_div, check_mask, keys, scheduler_class
from fa3_inputs import (
    Batch,
    Build,
    Call,
    Device,
    Engine,
    Model,
    Parallel,
    check_batch,
    check_call,
    check_keys,
)
from fa3_tiles import mma_warpgroups, shape_of, sm90_tile, template_of

from selc.lang import Bits, Neutral, knob, record, require, selection

STRIDES = (0, 256, 512, 1024, 2048, 4096, 8192)  # keys; 0 does not split


@record
class Plan:
    """What is launched, and how a request is split.

    `num_splits` only bounds the grid: the kernel stops a request at its own last split. The combine
    kernel is instantiated for a greatest number of splits, and spreads a row's splits over threads
    accordingly; `combine_splits` is therefore that of the longest context that is served.
    """

    split_stride: Bits[int]  # keys of a split; 0: one split
    combine_splits: Bits[int]
    num_splits: Neutral[int]
    Is_causal: Bits[bool]
    Is_local: Bits[bool]
    Has_softcap: Bits[bool]
    PagedKVNonTMA: Bits[bool]
    PackGQA: Bits[bool]
    Split: Bits[bool]
    kHeadDim: Bits[int]
    kHeadDimV: Bits[int]
    kBlockM: Bits[int]
    kBlockN: Bits[int]
    MmaPV_is_RS: Bits[bool]
    IntraWGOverlap: Bits[bool]
    kNWarps: Neutral[int]
    scheduler: Neutral[str]


@selection(family="attention", scope="launch")
def attention(
    device: Device,
    model: Model,
    parallel: Parallel,
    engine: Engine,
    call: Call,
    build: Build,
    batch: Batch,
) -> Plan:
    heads = model.heads // parallel.tensor
    kv_heads = max(1, model.kv_heads // parallel.tensor)
    shape = shape_of(device, model, build, engine.flash_attention == "vllm")
    template = template_of(shape, build)
    check_call(device, model, engine, call, build, heads, kv_heads)
    require(template.arch >= 90 and not call.k_new, "the kernel with a stride is built for SM90")
    check_batch(engine, batch)
    sk = keys(engine, batch.max_seqlen_k)
    check_keys(call, batch.max_seqlen_q, sk, (shape.asked_d + shape.asked_dv) * shape.bytes)

    stride = knob("split_stride", choices=STRIDES, default=1024)
    packed = knob("pack_gqa", choices=(True, False), default=True)

    # A window is one as soon as the longest context that is served is longer.
    window = model.sliding_window
    Is_local = window is not None and window < engine.max_model_len
    Is_causal = model.causal and not Is_local
    asked_left = -1 if window is None else window - 1

    tma_tile = sm90_tile(template, Is_causal, Is_local, False, False, False)
    PagedKVNonTMA = engine.page_size is not None and engine.page_size % tma_tile.n != 0
    tile = sm90_tile(template, Is_causal, Is_local, PagedKVNonTMA, False, False)
    kBlockM, kBlockN = tile.m, tile.n

    Split = stride > 0
    longest = splits_of(engine.max_model_len, stride)
    combine_splits = 1 if longest == 1 else max(16, 1 << (longest - 1).bit_length())
    num_splits = splits_of(sk, stride)
    PackGQA = packed or PagedKVNonTMA or Split
    varlen = engine.call != "fixed" or call.leftpad_k

    check_mask(model, Is_causal, Is_local, asked_left, batch.max_seqlen_q, sk)
    require(stride % kBlockN == 0, "a split ends where a tile of keys does")
    require(
        PagedKVNonTMA or engine.page_size is None or engine.page_size % kBlockN == 0,
        "a TMA load of keys stays inside a page",
    )
    require(longest <= 256, "the library takes at most 256 splits")
    require(num_splits <= combine_splits, "the combine kernel holds every split of a request")
    require(not (Split and varlen and longest > 255), "a scheduler packs a count into 8 bits")
    return Plan(
        split_stride=stride,
        combine_splits=combine_splits,
        num_splits=num_splits,
        Is_causal=Is_causal,
        Is_local=Is_local,
        Has_softcap=shape.softcap,
        PagedKVNonTMA=PagedKVNonTMA,
        PackGQA=PackGQA,
        Split=Split,
        kHeadDim=template.d,
        kHeadDimV=template.dv,
        kBlockM=kBlockM,
        kBlockN=kBlockN,
        MmaPV_is_RS=tile.rs,
        IntraWGOverlap=tile.overlap,
        kNWarps=4 * (mma_warpgroups(kBlockM, template.dv) + 1),
        scheduler=scheduler_class(90, Is_causal, Is_local, Split, varlen),
    )


def splits_of(length: int, stride: int) -> int:
    """How many splits so many keys have."""
    return ceil_div(length, stride) if stride > 0 else 1


def bounds_of(length: int, stride: int) -> list[tuple[int, int]]:
    """The first key of each split of a request, and the one after its last."""
    step = stride if stride > 0 else length
    return [(start, min(start + step, length)) for start in range(0, length, step)]
