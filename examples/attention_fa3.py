# ruff: noqa: N806, N815  # points are called what the kernels call them
"""FlashAttention-3's host-side plan: what it launches for a batch, upstream and in vLLM's fork.

The steps come in the order of the host code, since later ones read what earlier ones decided: the
mask is canonicalised, then come paged TMA, the split count, packed GQA, the template arguments,
the scheduler and the combine kernel. Several read the longest query or context of the batch.

A split count above 1 orders the sums over the keys. With varying lengths the device divides each
sequence again, by the work of the whole batch and up to that count, unless the count is 1: a legal
count above 1 is batch-invariant only with a kernel that takes it as it is (`attention_stride.py`).
"""

from __future__ import annotations

from math import ceil

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
from fa3_tiles import (
    Shape,
    heuristic_tile,
    mma_warpgroups,
    shape_of,
    sm8x_tile,
    sm90_tile,
    template_of,
)

from selc.lang import Bits, Neutral, float32, record, require, selection

MIB = 1024 * 1024
L2_BUDGET = 50 * MIB  # the heuristic's own constant, whatever the device has
MAX_SPLITS = 128
DYNAMIC_BATCH = 992  # sequences up to which the fork's schedule is made on the device


@record
class Launch:
    """The template arguments of the kernels and what else is chosen at the launch.

    A row's sum over the keys is ordered by kBlockN, MmaPV_is_RS, IntraWGOverlap and the splits;
    kHeadDim and kHeadDimV fix how a tile is multiplied. Is_causal, Is_local and Has_softcap change
    the code of the mask, and PagedKVNonTMA, PackGQA, ClusterM and kBlockM the instance that a row
    goes through: that two instances agree bit for bit is to be measured, so these are protected.

    Neutral are Arch, Element and ElementOut, which no batch moves; kNWarps, kStages and Q_in_regs,
    which spread a tile's rows over warps and its loads over time (on SM90 they follow the tile, and
    on SM8x no two warps share a row's sum either); the scheduler, which orders whole tiles; and the
    combine kernel's tile and grid: it adds a row's splits in their order, whichever block does.
    """

    Arch: Neutral[int]
    Element: Neutral[str]
    ElementOut: Neutral[str]
    kHeadDim: Bits[int]
    kHeadDimV: Bits[int]
    Is_causal: Bits[bool]
    Is_local: Bits[bool]
    Has_softcap: Bits[bool]
    Varlen: Bits[bool]
    PagedKVNonTMA: Bits[bool]
    AppendKV: Bits[bool]
    HasQv: Bits[bool]
    PackGQA: Bits[bool]
    Split: Bits[bool]
    V_colmajor: Bits[bool]
    ClusterM: Bits[int]
    kBlockM: Bits[int]
    kBlockN: Bits[int]
    MmaPV_is_RS: Bits[bool]
    IntraWGOverlap: Bits[bool]
    kNWarps: Neutral[int]
    kStages: Neutral[int]
    Q_in_regs: Neutral[bool]
    num_splits: Bits[int]
    scheduler: Neutral[str]  # longest first if causal or local; upstream sorts unless local
    combine: Neutral[str]  # 'none', or its tile (rows x dims) and grid


@record
class Mask:
    """The mask after canonicalisation; what is left open of a window covers everything."""

    causal: bool
    local: bool
    left: int
    right: int


@selection(family="attention", scope="launch")
def attention(
    device: Device,
    model: Model,
    parallel: Parallel,
    engine: Engine,
    call: Call,
    build: Build,
    batch: Batch,
) -> Launch:
    fork = engine.flash_attention == "vllm"
    heads = model.heads // parallel.tensor
    kv_heads = max(1, model.kv_heads // parallel.tensor)  # a rank holds a whole head
    group = heads // kv_heads
    shape = shape_of(device, model, build, fork)
    check_call(device, model, engine, call, build, heads, kv_heads)
    check_batch(engine, batch)

    sq, total_q = batch.max_seqlen_q, batch.total_q
    sk = keys(engine, batch.max_seqlen_k)
    paged = engine.page_size is not None
    cu_q = engine.call == "var-len"
    varlen = engine.call != "fixed" or call.cu_seqlens_k or call.leftpad_k
    check_keys(call, sq, sk, (shape.asked_d + shape.asked_dv) * shape.bytes)

    asked_left = -1 if model.sliding_window is None else model.sliding_window - 1
    mask = canonical_mask(model, fork, paged, asked_left, sq, sk)
    Is_causal = mask.causal
    Is_local = mask.local
    use_one_mma_wg = (
        fork
        and shape.arch >= 90
        and shape.asked_d in (64, 128)
        and not Is_local
        and sq * group <= 64
    )

    # The three decisions that read the batch.
    pagedkv_tma = paged_tma(engine, call, shape, Is_causal, Is_local, use_one_mma_wg, sq * group)
    nontma = paged and not pagedkv_tma
    if engine.graph_splits is not None and total_q <= max(engine.capture_sizes):
        num_splits = engine.graph_splits
    elif engine.num_splits >= 1 or build.disable_split:
        num_splits = max(1, engine.num_splits)
    else:
        block_m, block_n = heuristic_tile(
            shape, call.k_new, paged, nontma, varlen, Is_causal, Is_local, use_one_mma_wg
        )
        loaded = max(0, min(sk, mask.right + mask.left + 1 + block_m)) if Is_local else sk
        m_blocks = ceil_div(sq * group, block_m)
        num_splits = num_splits_heuristic(
            (1 if varlen else batch.batch_size) * kv_heads * m_blocks,
            device.num_sms - engine.sm_margin,
            ceil_div(loaded, block_n),
            m_blocks,
            sk * (shape.asked_d + shape.asked_dv) * shape.bytes,
            Is_causal or Is_local,
            MAX_SPLITS,
        )
    if engine.pack_gqa is not None:
        pack_gqa = engine.pack_gqa
    elif shape.arch < 90 or nontma or num_splits > 1:
        pack_gqa = True
    elif build.disable_packgqa or heads == kv_heads:
        pack_gqa = False
    else:
        packed_m = sm90_tile(shape, Is_causal, Is_local, nontma, False, use_one_mma_wg).m
        pack_gqa = should_pack_gqa(cu_q, sq, group, packed_m)
    if fork:
        always = build.packgqa_only and shape.asked_d == shape.asked_dv
        small = group == 8 and shape.arch >= 90 and shape.asked_d == shape.asked_dv == 64
        if num_splits > 1 or always or (small and Is_local):
            pack_gqa = True
        if varlen and batch.batch_size > DYNAMIC_BATCH:
            num_splits = 1

    # The template arguments, in the order of the switches.
    require(num_splits >= 1, "a launch has a split count")
    template = template_of(shape, build)
    Arch = template.arch
    Split = num_splits > 1
    PagedKVNonTMA = nontma
    PackGQA = pack_gqa or Arch < 90 or PagedKVNonTMA or Split
    V_colmajor = call.v_dim_stride != 1 and shape.bytes == 1 and build.enable_vcolmajor
    AppendKV = call.k_new and varlen
    one_mma_wg = use_one_mma_wg and template.d == template.dv
    if Arch >= 90:
        tile = sm90_tile(template, Is_causal, Is_local, PagedKVNonTMA, V_colmajor, one_mma_wg)
        kBlockM, kBlockN = tile.m, tile.n
        MmaPV_is_RS, IntraWGOverlap = tile.rs, tile.overlap
        kNWarps, kStages = 4 * (mma_warpgroups(kBlockM, template.dv) + 1), 2
        Q_in_regs = False
    else:
        old = sm8x_tile(template, varlen and Split, AppendKV, Is_local, PagedKVNonTMA)
        kBlockM, kBlockN = old.m, old.n
        MmaPV_is_RS, IntraWGOverlap = True, False
        kNWarps, kStages = old.warps, old.stages
        Q_in_regs = old.q_in_regs

    clusters = (
        not build.disable_cluster
        and Arch == 90
        and (template.d >= 128 if shape.bytes == 2 else template.d == 192)
        and not (Is_causal or Is_local or Split or PagedKVNonTMA or varlen or one_mma_wg)
    )
    even = ceil_div(sq * group if PackGQA else sq, kBlockM) % 2 == 0
    ClusterM = 2 if clusters and even else 1
    scheduler = scheduler_class(Arch, Is_causal, Is_local, Split, varlen)
    combine = combine_kernel(num_splits, shape.asked_dv, cu_q, total_q, batch.batch_size, sq)

    check_mask(model, Is_causal, Is_local, asked_left, sq, sk)
    require(num_splits <= 256, "the library takes at most 256 splits")
    require(Split == (num_splits > 1), "partial results are written exactly if there are several")
    require(not (Split and build.disable_split), "kernels with splits are built")
    require(
        PackGQA or (Arch >= 90 and not PagedKVNonTMA and not Split),
        "a kernel without packed GQA is built only for SM90, TMA loads and one split",
    )
    require(Arch < 90 or not (PackGQA and build.disable_packgqa), "packed GQA is built")
    require(paged or not PagedKVNonTMA, "a kernel that looks pages up needs a page table")
    require(
        PagedKVNonTMA or engine.page_size is None or engine.page_size % kBlockN == 0,
        "a TMA load of keys stays inside a page",
    )
    require(ClusterM == 1 or (clusters and even), "blocks of a cluster come in pairs")
    if scheduler == "VarlenDynamicPersistent":
        require(heads < 65536, "the scheduler packs a head into 16 bits")
        require(not Split or num_splits < 256, "the scheduler packs a split count into 8 bits")
    if call.metadata_size is not None:
        need = metadata_size(fork, varlen, Arch, Is_causal, Is_local, num_splits, batch.batch_size)
        require(call.metadata_size == need, "the supplied schedule has the size of this launch")
    return Launch(
        Arch=Arch,
        Element=model.dtype,
        ElementOut="bf16" if model.dtype == "e4m3" else model.dtype,
        kHeadDim=template.d,
        kHeadDimV=template.dv,
        Is_causal=Is_causal,
        Is_local=Is_local,
        Has_softcap=shape.softcap,
        Varlen=varlen,
        PagedKVNonTMA=PagedKVNonTMA,
        AppendKV=AppendKV,
        HasQv=call.q_v
        and Arch == 90
        and shape.bytes == 2
        and template.d == 64
        and template.dv >= 256,
        PackGQA=PackGQA,
        Split=Split,
        V_colmajor=V_colmajor,
        ClusterM=ClusterM,
        kBlockM=kBlockM,
        kBlockN=kBlockN,
        MmaPV_is_RS=MmaPV_is_RS,
        IntraWGOverlap=IntraWGOverlap,
        kNWarps=kNWarps,
        kStages=kStages,
        Q_in_regs=Q_in_regs,
        num_splits=num_splits,
        scheduler=scheduler,
        combine=combine,
    )


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def round_up(a: int, b: int) -> int:
    return -(-a // b) * b


# -- the mask ------------------------------------------------------------------------------------


def keys(engine: Engine, max_seqlen_k: int) -> int:
    """The key length that the host sees."""
    if engine.page_size is None or engine.flash_attention == "vllm":
        return max_seqlen_k
    if engine.page_table_width is not None:
        return engine.page_table_width * engine.page_size
    return round_up(max_seqlen_k, engine.page_size)


def canonical_mask(
    model: Model, fork: bool, paged: bool, asked_left: int, sq: int, sk: int
) -> Mask:
    """The mask without limits that hide nothing."""
    d, chunk = model.head_dim, model.attention_chunk
    left = -1 if asked_left >= sk - 1 else asked_left
    # For 64 < d <= 128 a paged decode stays causal, which keeps its kBlockN.
    open_row = sq == 1 and left == -1 and chunk == 0 and (d <= 64 or d > 128 or not paged)
    right = 0 if model.causal and not open_row else -1
    is_causal = left < 0 and right == 0 and chunk == 0
    is_local = (left >= 0 or right >= 0 or chunk >= 1) and not is_causal
    if fork:
        return Mask(
            causal=is_causal,
            local=is_local,
            left=sk - 1 if left < 0 and right >= 0 else left,
            right=sq - 1 if left >= 0 and right < 0 else right,
        )
    left = sk - 1 if left < 0 else left
    right = sq - 1 if right < 0 else right
    if chunk > 0:
        left, right = min(left, chunk - 1), min(right, chunk - 1)
    return Mask(causal=is_causal, local=is_local, left=left, right=right)


def check_mask(
    model: Model, is_causal: bool, is_local: bool, asked_left: int, sq: int, sk: int
) -> None:
    """A kernel hides what the model asks it to, and nothing else."""
    require(not (is_causal and is_local), "causal and local are different kernels")
    require(
        is_local or (model.attention_chunk == 0 and (asked_left < 0 or asked_left >= sk - 1)),
        "a kernel without a window sees all keys of the longest context",
    )
    require(
        is_causal or is_local or not model.causal or sq == 1,
        "a kernel without a mask sees later keys",
    )
    require(not is_causal or model.causal, "a causal kernel hides later keys")


# -- the heuristics that read the batch ----------------------------------------------------------


def paged_tma(
    engine: Engine,
    call: Call,
    shape: Shape,
    causal: bool,
    local: bool,
    one_wg: bool,
    packed_rows: int,
) -> bool:
    """Whether keys are loaded page by page with TMA."""
    if shape.arch < 90 or engine.page_size is None or call.leftpad_k or call.k_new:
        return False
    if shape.fork and local:
        return False
    tile = sm90_tile(shape, causal, local, False, False, one_wg)
    return engine.page_size % tile.n == 0 and packed_rows > tile.m


def wave_efficiency(blocks: int, num_sm: int) -> float:
    """The share of multiprocessors that the last wave keeps busy, in binary32."""
    waves = float32(float32(blocks) / num_sm)
    return float32(waves / ceil(waves))


def num_splits_heuristic(
    total: int,
    num_sm: int,
    n_blocks: int,
    m_blocks: int,
    kv_bytes: int,
    causal_or_local: bool,
    max_splits: int,
) -> int:
    """The least split count with 85 % of the best one's efficiency."""
    if float32(total) >= float32(float32(0.8) * num_sm):
        if kv_bytes > L2_BUDGET and m_blocks >= 2 * num_sm and not causal_or_local:
            return min(ceil_div(kv_bytes, L2_BUDGET), max_splits)
        return 1
    if n_blocks <= 4:
        return 1
    limit = min(max_splits, num_sm, n_blocks)
    most = min(max_splits, num_sm)
    efficiency = [wave_efficiency(total * (i + 1), num_sm) for i in range(most)]
    best = 0.0
    for i in range(limit):
        best = max(best, efficiency[i])
    enough = 0.85 * best
    for i in range(limit):
        if efficiency[i] >= enough:
            return i + 1
    return 1


def should_pack_gqa(varlen_q: bool, sq: int, group: int, block_m: int) -> bool:
    """Whether packing the query heads of a group into one tile fills it better."""
    if varlen_q:
        return True
    alone = float32(sq / round_up(sq, block_m))
    packed = float32(sq * group / round_up(sq * group, block_m))
    return alone < 0.9 * packed


# -- the launch ----------------------------------------------------------------------------------


def scheduler_class(arch: int, causal: bool, local: bool, split: bool, varlen: bool) -> str:
    if arch >= 90 and split and not varlen:
        return "SingleTile"
    if arch < 90 and not (split if varlen else causal):
        return "SingleTile"
    if varlen:
        return "VarlenDynamicPersistent"
    return "DynamicPersistent" if causal or local else "StaticPersistent"


def combine_kernel(num_splits: int, dv: int, varlen_q: bool, total_q: int, b: int, sq: int) -> str:
    """The kernel that adds the splits, and whether its grid counts all tokens in one line."""
    rows, dims = (16, 64) if dv <= 64 else (8, 128)
    if num_splits == 1:
        return "none"
    if varlen_q and 2 * ceil_div(total_q, rows) < b * ceil_div(sq, rows):
        return f"{rows}x{dims} linearised"
    return f"{rows}x{dims} standard"


def metadata_size(
    fork: bool, prepare: bool, arch: int, causal: bool, local: bool, num_splits: int, b: int
) -> int:
    """How many int32 the scheduler's metadata has."""
    swizzle = causal or local
    if fork:
        dynamic = prepare and b <= DYNAMIC_BATCH and num_splits > 1
        vectors = int(prepare) + int(dynamic) + int(swizzle)
    else:
        vectors = 2 * int(prepare) + int(not local) + int(swizzle)
    if arch >= 90:
        semaphore = (swizzle and num_splits == 1) or prepare
    else:
        semaphore = (causal and not prepare) or (prepare and num_splits > 1)
    return round_up(b, 4) * vectors + int(semaphore)
