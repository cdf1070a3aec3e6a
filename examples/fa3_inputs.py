"""What FlashAttention-3 is called with, and what it checks before it plans anything."""

from __future__ import annotations

from selc.lang import Unpinnable, assume, record, require


@record
class Device:
    capability: int  # 10 * major + minor
    num_sms: int


@record
class Model:
    heads: int
    kv_heads: int
    head_dim: int
    head_dim_v: int | None = None  # None: the same
    dtype: str = "bf16"  # 'fp16', 'bf16', 'e4m3': of queries, keys and values
    causal: bool = True
    sliding_window: int | None = None  # keys that a query sees, itself included
    attention_chunk: int = 0
    softcap: float = 0.0


@record
class Parallel:
    tensor: int


@record
class Engine:
    flash_attention: str  # 'upstream' or 'vllm'
    call: str  # 'fixed': no lengths; 'kv-cache': key lengths; 'var-len': query and key lengths
    max_num_batched_tokens: int
    max_model_len: int  # keys of the longest context that is served
    page_size: int | None  # None: keys and values are not paged
    page_table_width: int | None = None  # pages; None: as wide as the batch's longest context
    num_splits: int = 0  # 0: the library's heuristic
    graph_splits: int | None = None  # the count that steps within the captured sizes ask for
    capture_sizes: tuple[int, ...] = ()
    pack_gqa: bool | None = None  # None: the library's heuristic
    sm_margin: int = 0


@record
class Call:
    """What else an engine passes, and how its tensors lie; these are the ones of both engines."""

    kv_dtype: str | None = None  # None: the queries'
    out_dtype: str | None = None  # None: the queries', or bf16 for e4m3
    last_dim_stride: int = 1  # of queries and keys
    v_dim_stride: int = 1
    on_device: bool = True
    page_table_dtype: str = "int32"
    page_table_contiguous: bool = True
    lengths_dtype: str = "int32"
    lengths_contiguous: bool = True
    kv_batch_idx: bool = False
    leftpad_k: bool = False
    cu_seqlens_k: bool = False
    k_new: bool = False
    v_new: bool = False
    q_v: bool = False
    rotary_dim: int = 0  # 0: none
    rotary_sin: bool = True
    rotary_dtype: str | None = None  # None: the queries'
    rotary_len: int = 0
    descale_shape: str = "(b, h_k)"
    metadata_size: int | None = None  # of scheduler_metadata, if supplied
    sinks: bool = False
    context_parallel: int = 1


@record
class Build:
    """Flags under which the library was compiled."""

    disable_split: bool = False
    disable_packgqa: bool = False
    disable_pagedkv: bool = False
    disable_appendkv: bool = False
    disable_local: bool = False
    disable_softcap: bool = False
    disable_varlen: bool = False
    disable_cluster: bool = False
    disable_fp16: bool = False
    disable_fp8: bool = False
    disable_sm8x: bool = False
    disable_hdim64: bool = False
    disable_hdim96: bool = False
    disable_hdim128: bool = False
    disable_hdim192: bool = False
    disable_hdim256: bool = False
    disable_hdimdiff64: bool = False
    disable_hdimdiff192: bool = False
    disable_two_level_fp8: bool = False  # the fork's
    enable_vcolmajor: bool = False
    varlen_only: bool = False  # the fork's
    packgqa_only: bool = False  # the fork's


@record
class Batch:
    batch_size: Unpinnable[int]
    total_q: Unpinnable[int]  # query tokens
    max_seqlen_q: Unpinnable[int]
    max_seqlen_k: Unpinnable[int]


def check_call(
    device: Device,
    model: Model,
    engine: Engine,
    call: Call,
    build: Build,
    heads: int,
    kv_heads: int,
) -> None:
    """What the library checks of a call."""
    d, dtype = model.head_dim, model.dtype
    dv = d if model.head_dim_v is None else model.head_dim_v
    major, eight_bit = device.capability // 10, dtype == "e4m3"
    paged = engine.page_size is not None
    require(major >= 8, "compute capability 8.0 or newer")
    require(dtype in ("fp16", "bf16", "e4m3"), "fp16, bf16 or e4m3")
    require(not eight_bit or major >= 9, "e4m3 needs compute capability 9.0")
    require(call.kv_dtype is None or call.kv_dtype == dtype, "queries, keys, values of one type")
    require(
        call.out_dtype is None or call.out_dtype == ("bf16" if eight_bit else dtype),
        "the output has the type that the kernel writes",
    )
    require(call.on_device, "all tensors are on the device")
    require(call.last_dim_stride == 1 and call.v_dim_stride == 1, "contiguous last dimensions")
    require(not paged or call.page_table_dtype == "int32", "an int32 page table")
    require(not paged or call.page_table_contiguous, "a page table with contiguous rows")
    require(engine.call == "fixed" or call.lengths_dtype == "int32", "int32 lengths")
    require(engine.call == "fixed" or call.lengths_contiguous, "contiguous lengths")
    require(
        not call.cu_seqlens_k or not (paged or call.kv_batch_idx),
        "cumulative key lengths exclude pages and a batch index",
    )
    require(d <= 256, "head dimensions up to 256")
    require(heads % kv_heads == 0, "query heads in whole groups")
    require(
        dv == d
        or (major == 9 and ((128 < d <= 192 and 96 < dv <= 128) or (d <= 64 and dv <= 512))),
        "a different value dimension is built for a few sizes",
    )
    require(dv <= 256 or not eight_bit, "value dimensions above 256 in 16 bits only")
    step = 16 if eight_bit else 8
    require(d % step == 0 and dv % step == 0, "head dimensions in whole vectors")
    require(not call.k_new or (call.v_new and engine.call != "fixed"), "new keys have values")
    require(
        not call.q_v or (d <= 64 and dv >= 256 and not eight_bit and device.capability == 90),
        "queries against values are built for small heads on SM90",
    )
    if call.rotary_dim > 0:
        require(call.k_new, "rotary embedding applies to new keys")
        require(call.rotary_dim <= d and call.rotary_dim % 16 == 0, "rotary dims in steps of 16")
        require(call.rotary_sin, "rotary sines come with the cosines")
        require(call.rotary_dtype is None or call.rotary_dtype == dtype, "rotary tables' type")
    require(not eight_bit or call.descale_shape == "(b, h_k)", "one scale per sequence and head")
    require(engine.num_splits <= 256, "the library takes at most 256 splits")
    require(not (call.k_new and call.v_dim_stride != 1), "appending needs row-major values")
    if engine.flash_attention == "vllm":
        require(model.attention_chunk == 0, "the fork has no chunks")
        require(
            not call.sinks or (device.capability == 90 and heads <= 64 and d == dv),
            "sinks are built for SM90 and up to 64 heads",
        )
        require(not call.sinks or dtype == "bf16", "sinks are bf16")
        require(call.context_parallel == 1 or model.sliding_window is None, "no window over ranks")
    check_build(device, model, engine, call, build, dv)


def check_build(
    device: Device, model: Model, engine: Engine, call: Call, build: Build, dv: int
) -> None:
    """What is left out of a build cannot be called."""
    d, dtype = model.head_dim, model.dtype
    lengths = engine.call != "fixed" or call.leftpad_k or call.cu_seqlens_k
    require(not build.varlen_only or lengths, "calls without lengths are built")
    require(not build.disable_varlen or not lengths, "calls with lengths are built")
    require(not build.disable_local or model.sliding_window is None, "windows are built")
    require(not build.disable_softcap or model.softcap <= 0.0, "softcap is built")
    require(not build.disable_pagedkv or engine.page_size is None, "pages are built")
    require(not build.disable_appendkv or not call.k_new, "appending is built")
    require(not build.disable_fp16 or dtype != "fp16", "fp16 is built")
    require(not build.disable_fp8 or dtype != "e4m3", "fp8 is built")
    require(not build.disable_sm8x or device.capability >= 90, "kernels for SM8x are built")
    require(not build.disable_hdimdiff64 or dv == d or d > 64, "other value dimensions are built")
    require(not build.disable_hdimdiff192 or dv == d or d <= 64, "other value dimensions are built")
    require(not build.disable_hdim64 or d > 64, "head dimensions up to 64 are built")
    require(not build.disable_hdim96 or not 64 < d <= 96, "head dimensions up to 96 are built")
    require(not build.disable_hdim128 or not 96 < d <= 128, "head dimensions up to 128 are built")
    require(not build.disable_hdim192 or not 128 < d <= 192, "head dimensions up to 192 are built")
    require(not build.disable_hdim256 or d <= 192, "head dimensions up to 256 are built")


def check_batch(engine: Engine, batch: Batch) -> None:
    """What a scheduler promises of the batches that it makes."""
    b, sq, total_q = batch.batch_size, batch.max_seqlen_q, batch.total_q
    assume(total_q <= engine.max_num_batched_tokens, "the scheduler's token budget")
    assume(batch.max_seqlen_k <= engine.max_model_len, "no context is longer than is served")
    if engine.call == "var-len":
        assume(sq + b - 1 <= total_q, "every other sequence has a query token")
        assume(total_q <= b * sq, "no sequence is longer than the longest")
    else:
        assume(total_q == b * sq, "every sequence has the same number of queries")


def check_keys(call: Call, sq: int, sk: int, bytes_per_key: int) -> None:
    """What the host's arithmetic and the appended keys need of the lengths."""
    assume(sk * bytes_per_key < 2**31, "the size of a key-value head fits in 32 bits")
    assume(not call.k_new or sq <= sk, "appended keys are among the keys")
    assume(call.rotary_dim == 0 or call.rotary_len >= sk, "rotary tables cover the keys")
