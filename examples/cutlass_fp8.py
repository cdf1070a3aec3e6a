"""FP8 products as vLLM's CUTLASS ladders launch them, by bands of token counts.

The products of weights with one scale per tensor or row take their tile from a ladder per
architecture; with one scale per block, from rules on the token count. A deeper tile adds more
products before it rounds, and with swapped operands the hardware groups them otherwise, so both
order sums. The band is what the batch decides: pinned to one band, every batch sums alike.
"""

from __future__ import annotations

from selc.lang import Bits, Neutral, Runtime, assume, record, require, selection

LAST = 1 << 30


@record
class Device:
    capability: int  # ten times major plus minor
    num_sms: int
    shared_memory: int


@record
class Model:
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int = 0
    quant_block: tuple[int, int] | None = None


@record
class Parallel:
    tensor: int


@record
class Engine:
    batch_invariant: bool
    max_num_batched_tokens: int


@record
class Batch:
    num_tokens: Runtime[int]


@record
class Launch:
    tile_k: Bits[int]
    swap_ab: Bits[bool]
    tile_m: Neutral[int]
    tile_n: Neutral[int]
    cluster_m: Neutral[int]
    cluster_n: Neutral[int]
    stages: Neutral[int]  # zero: as many as fit
    schedule: Neutral[str]


@record
class Tile:
    m: int
    n: int
    k: int
    cluster_m: int = 1
    cluster_n: int = 1
    swap_ab: bool = False
    stages: int = 0
    schedule: str = ""


@selection(family="gemm_fp8", scope="launch")
def cutlass_fp8(
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
    require(n > 0 and k > 0, "the model has this layer")
    require(n % 16 == 0 and k % 16 == 0, "rows are aligned to 16 bytes")
    if model.quant_block is not None:
        require(k % 128 == 0, "a scale covers 128 steps along K")
        tile = blockwise(device, num_tokens, n)
    elif device.capability >= 120:
        band = band_of((16, 32, 256, LAST), 64 if engine.batch_invariant else num_tokens)
        tile = sm120(band)
    elif device.capability >= 100:
        tile = sm100(engine, num_tokens, k)
    elif device.capability >= 90:
        tile = sm90(engine, num_tokens, n, k)
    else:
        require(device.capability == 89, "the device multiplies FP8")
        limits = (16, 32, 64, 128, 256, LAST)
        tile = sm89(band_of(limits, 64 if engine.batch_invariant else num_tokens), n)
    operands = tile.m * tile.k + tile.k * tile.n
    require(operands * max(tile.stages, 2) <= device.shared_memory, "the stages fit")
    return Launch(
        tile_k=tile.k,
        swap_ab=tile.swap_ab,
        tile_m=tile.m,
        tile_n=tile.n,
        cluster_m=tile.cluster_m,
        cluster_n=tile.cluster_n,
        stages=tile.stages,
        schedule=tile.schedule,
    )


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


def band_of(limits: tuple[int, ...], num_tokens: int) -> int:
    """The first limit that the token count does not exceed."""
    return next(limit for limit in limits if num_tokens <= limit)


def sm90(engine: Engine, num_tokens: int, n: int, k: int) -> Tile:
    # A batch-invariant engine chooses as for few tokens, by the columns alone.
    band = band_of((16, 64, 128, 8191, LAST), 64 if engine.batch_invariant else num_tokens)
    if band == 16:
        return Tile(64, 16, 256, 1, 2 if n <= 1280 else 1, swap_ab=True)
    if band == 64:
        if n <= 1280:
            return Tile(64, 16, 256, 1, 4, swap_ab=True)
        return Tile(64, 64, 256, swap_ab=True)
    if band == 128:
        return Tile(64, 128, 128, 2, 1, schedule="pingpong")
    if band == LAST and k >= 6144:
        return Tile(256, 128, 128, 2, 1, schedule="cooperative")
    return Tile(128, 128, 128, 2, 1, schedule="pingpong")


def sm100(engine: Engine, num_tokens: int, k: int) -> Tile:
    band = band_of((16, 63, 64, 256, LAST), 64 if engine.batch_invariant else num_tokens)
    if band == 16:
        return Tile(128, 32, 128, 4, 1, swap_ab=True)
    if band == 64 and k < 4096:
        return Tile(64, 64, 128)
    if band <= 64:
        return Tile(128, 64, 256, 4, 1, swap_ab=True)
    if band == 256:
        return Tile(128, 128, 128, 2, 1)
    return Tile(256, 128, 128, 2, 2)


def sm120(band: int) -> Tile:
    if band <= 32:
        return Tile(band, 64, 128)
    return Tile(64, 64, 128) if band == 256 else Tile(128, 128, 128)


def sm89(band: int, n: int) -> Tile:
    """By band of rows and power of two of columns; 8196 is what the source says."""
    wide = 1 << (n - 1).bit_length()
    if band == 16:
        if wide <= 8192:
            return Tile(16, 64, 128, stages=5)
        return Tile(16, 128, 64, stages=5) if wide <= 24576 else Tile(32, 64, 128, stages=5)
    if band == 32:
        if wide <= 8192:
            return Tile(32, 64, 128, stages=5)
        return Tile(32, 128, 128, stages=4) if wide <= 16384 else Tile(32, 64, 128, stages=5)
    if band == 64:
        if wide <= 8196:
            return Tile(64, 64, 128, stages=5)
        return Tile(64, 128, 128, stages=3) if wide <= 16384 else Tile(64, 64, 128, stages=5)
    if band == 128:
        if wide <= 8192:
            return Tile(64, 128, 128, stages=3)
        return Tile(128, 128, 64, stages=5) if wide <= 16384 else Tile(128, 64, 128, stages=3)
    if band == 256:
        return Tile(64, 128, 128, stages=3) if wide <= 4096 else Tile(128, 128, 64, stages=5)
    if 4096 < wide <= 8192:
        return Tile(256, 128, 64, stages=3)
    return Tile(128, 128, 64, stages=5)


def blockwise(device: Device, num_tokens: int, n: int) -> Tile:
    """One scale per 128 steps along K and, for weights, per 128 columns."""
    aligned = num_tokens % 4 == 0
    if device.capability >= 120:
        if num_tokens <= 64 or not aligned:
            return Tile(128, 32, 128, swap_ab=True)
        return Tile(64, 128, 128) if num_tokens <= 256 else Tile(128, 128, 128)
    if device.capability >= 100:
        if num_tokens < 16 or not aligned:
            return Tile(128, 16, 128, swap_ab=True)
        columns = (n + 127) // 128
        if columns * ((num_tokens + 63) // 64) <= device.num_sms:
            return Tile(64, 128, 128)
        if columns * ((num_tokens + 127) // 128) <= device.num_sms:
            return Tile(128, 128, 128)
        return Tile(256, 128, 128, 2, 1)
    if not aligned:
        return Tile(128, 16, 128, swap_ab=True)
    return Tile(128, 128, 128, 1, 2)
