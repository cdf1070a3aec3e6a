"""Dense matrix products: DeepGEMM's search for a layout, and CUTLASS's ladders for FP8.

`gemm` is what a linear layer launches where DeepGEMM serves it. The layout with the lowest modelled
cost is taken out of all that fit, for the shape at hand, and the rows of the shape are the batch's
tokens. Every layout walks along K in the same steps and none splits K, so a layout says which rows
and columns share a block and who loads what, and the kernel and the padding of the rows are all
that can order a sum. That the compiled kernels keep to it is what `selc bits` measures.

`cutlass_fp8` is what vLLM launches for FP8 weights with one scale per tensor or row. Its tiles
differ along K and some swap the operands, so a band of token counts is a choice that orders sums.
"""

from __future__ import annotations

from selc.lang import Bits, Neutral, Runtime, assume, float32, knob, record, require, selection

SHARED_MEMORY = 232448
UNUSABLE = 1 << 62


@record
class Device:
    capability: int  # ten times major plus minor
    num_sms: int


@record
class Model:
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    element_size: int
    intermediate: int = 0
    quant: str | None = None


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
    kernel: Bits[str]
    padding: Bits[int]  # rows are filled up to a multiple of this
    block_k: Bits[int]
    swap_ab: Neutral[bool]
    block_m: Neutral[int]
    block_n: Neutral[int]
    cluster_m: Neutral[int]
    cluster_n: Neutral[int]
    stages: Neutral[int]


@record
class Shape:
    """Everything about a product but its rows."""

    kind: str  # 'normal', 'contiguous' or 'masked': one matrix, or one per group of rows
    kernel: str  # '1d1d', '1d2d' (which operands have scales along K) or 'nosf' (none)
    n: int
    k: int
    groups: int
    alignment: int  # what the rows of a group are filled up to
    element: int  # bytes
    out: int
    accumulate: bool
    sms: int


@record
class Layout:
    swap_ab: bool
    block_m: int
    block_n: int
    cluster_m: int
    cluster_n: int
    stages: int


@selection(family="gemm", scope="launch")
def gemm(
    device: Device,
    model: Model,
    parallel: Parallel,
    engine: Engine,
    batch: Batch,
    linear: str = "qkv",
    kind: str = "normal",
    groups: int = 1,
    alignment: int = 128,
    fp32_out: bool = False,
    accumulate: bool = False,
) -> Launch:
    num_tokens = batch.num_tokens
    assume(num_tokens >= 1, "an empty batch is not launched")
    assume(num_tokens <= engine.max_num_batched_tokens, "the scheduler's token budget")
    n, k = sizes(model, parallel, linear)
    require(n > 0 and k > 0, "the model has this layer")

    fp8 = model.quant == "fp8_w8a8"
    if not fp8:
        kernel = "nosf"
    elif device.capability // 10 == 9 and not fp32_out:
        kernel = "1d2d"
    else:
        kernel = "1d1d"
    shape = Shape(
        kind=kind,
        kernel=kernel,
        n=n,
        k=k,
        groups=groups,
        alignment=alignment,
        element=1 if fp8 else 2,
        out=4 if fp32_out else 2,
        accumulate=accumulate,
        sms=device.num_sms,
    )
    padding = knob("gemm_padding", choices=(1, 16, 64, 128), default=1)
    rows = max(num_tokens, round_up(num_tokens, padding))
    require(rows <= round_up(engine.max_num_batched_tokens, 128), "the padded rows are allocated")
    layout = hopper(shape, rows) if device.capability // 10 == 9 else blackwell(shape, rows)
    return Launch(
        kernel=kernel,
        padding=padding,
        block_k=128 // shape.element,
        swap_ab=layout.swap_ab,
        block_m=layout.block_m,
        block_n=layout.block_n,
        cluster_m=layout.cluster_m,
        cluster_n=layout.cluster_n,
        stages=layout.stages,
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


def ceil_div(a: int, b: int) -> int:
    return (a + b - 1) // b


def round_up(a: int, b: int) -> int:
    return ceil_div(a, b) * b


def hopper(shape: Shape, rows: int) -> Layout:
    """The first of the cheapest layouts in the order in which the library tries them."""
    return min(hopper_layouts(shape), key=lambda layout: hopper_cost(shape, layout, rows))


def hopper_layouts(shape: Shape) -> list[Layout]:
    """Every layout that fits; some only for few rows, which the cost knows."""
    if shape.kind == "contiguous":
        block_ms = [shape.alignment]
    elif shape.kind == "masked":
        block_ms = [64, 128]
    else:
        block_ms = [64, 128, 16, 32] + ([256] if shape.out != 4 else [])
    if shape.kernel == "1d1d" and shape.out == 4:
        block_ns = [16, *range(24, 161, 16)]
    else:
        block_ns = list(range(16, {"nosf": 257, "1d2d": 193, "1d1d": 161}[shape.kernel], 16))
    clusters = [(1, 1), (1, 2), (2, 1)]
    tiles = [(c, bm, bn) for c in clusters for bm in block_ms for bn in block_ns]
    return [
        Layout(False, bm, bn, c[0], c[1], hopper_stages(shape, bm, bn))
        for c, bm, bn in tiles
        if hopper_fits(shape, bm, bn, c[0] * c[1])
    ]


def hopper_fits(shape: Shape, block_m: int, block_n: int, cluster: int) -> bool:
    block_k = 128 // shape.element
    if shape.kernel == "1d2d" and block_n > block_k:
        over = block_n - block_k
        if block_n % over != 0 and block_k % over != 0:
            return False
    if shape.sms % cluster != 0:
        return False
    if shape.kind == "masked" and ceil_div(shape.n, block_n) % cluster != 0:
        return False
    if block_m > 128 and block_n > 128:
        return False
    stages = hopper_stages(shape, block_m, block_n)
    return stages >= (3 if block_m * block_n >= 128 * 192 else 4)


def hopper_stages(shape: Shape, block_m: int, block_n: int) -> int:
    """How many steps along K fit in shared memory at once."""
    block_k = 128 // shape.element
    fixed = round_up(block_m * block_n * shape.out, 1024) + 256
    if shape.kernel == "1d2d":
        steps = ceil_div(shape.k, block_k)
        fixed += round_up(steps * 4 * (1 if block_k % block_n == 0 else 2), 8)
    stage = (block_m + block_n) * block_k * shape.element
    if shape.kernel != "nosf":
        stage += round_up(4 * block_m, 128)
    if shape.kernel == "1d1d":
        stage += round_up(4 * block_n, 128)
    return min((SHARED_MEMORY - fixed) // stage, 16)


def hopper_cost(shape: Shape, layout: Layout, rows: int) -> int:
    """Modelled cycles; every matrix of a masked product is expected to have as many rows."""
    block_m, block_n = layout.block_m, layout.block_n
    if shape.kind == "normal" and block_m in (16, 32) and rows > block_m:
        return UNUSABLE
    matrices = shape.groups if shape.kind == "masked" else 1
    blocks = ceil_div(rows, block_m) * ceil_div(shape.n, block_n) * matrices
    waves = ceil_div(blocks, shape.sms)
    if layout.cluster_m * layout.cluster_n > 1 and waves <= 1:
        return UNUSABLE
    depth, out = shape.k * shape.element, block_m * block_n * shape.out
    written = out * 2 if shape.accumulate else out
    far = depth * (block_m // layout.cluster_n + block_n // layout.cluster_m) + written
    near = depth * (block_m + block_n) + depth * (max(64, block_m) + block_n) + out + written
    far_speed = int(min(64 * shape.sms, 8e6 / 1.3e3))
    slowest = max(far * blocks // far_speed, near * blocks // (128 * shape.sms))
    busy = float32(float32(blocks) / float32(waves * shape.sms))
    return int(float32(float32(slowest) / busy))


def blackwell(shape: Shape, rows: int) -> Layout:
    if shape.kind != "normal":
        paired = ceil_div(shape.n, 128) % 2 == 0 and shape.sms % 2 == 0
        cluster = 2 if paired else 1
        stages = blackwell_stages(shape, True, shape.alignment, 128, 1, cluster)
        return Layout(True, shape.alignment, 128, 1, cluster, stages)
    return min(blackwell_layouts(shape), key=lambda layout: blackwell_cost(shape, layout, rows))


def blackwell_layouts(shape: Shape) -> list[Layout]:
    widths = [16, *range(32, (128 if shape.k <= 256 else 256) + 1, 32)]
    plain = [(False, bm, bn, c, 1) for c in (1, 2) for bm in (32, 64, 128) for bn in widths]
    swapped = [(True, bm, 128, 1, c) for c in (1, 2) for bm in range(16, 257, 16)]
    return [
        Layout(swap, bm, bn, cm, cn, blackwell_stages(shape, swap, bm, bn, cm, cn))
        for swap, bm, bn, cm, cn in [*plain, *swapped]
        if blackwell_fits(shape, swap, bm, bn, cm, cn)
    ]


def blackwell_fits(shape: Shape, swap: bool, bm: int, bn: int, cm: int, cn: int) -> bool:
    if shape.sms % (cm * cn) != 0 or ceil_div(shape.n, bn) % cn != 0:
        return False
    if (bm // cn) % 8 != 0 or (bn // cm) % 8 != 0:
        return False
    scales = 0 if shape.kernel == "nosf" else (round_up(bm, 128) + round_up(bn, 128)) // 32
    return 2 * (bm if swap else bn) + scales <= 512


def blackwell_stages(shape: Shape, swap: bool, bm: int, bn: int, cm: int, cn: int) -> int:
    row = next(width for width in (128, 64, 32, 16) if bn * shape.out % width == 0)
    fixed = 16 * bn * shape.out * 2 if swap else min(128, bm) * row * 2
    fixed += 32 * 8 * 3 + 32 + 8 + 4
    stage = (bm // cn + bn // cm) * 128
    if shape.kernel == "1d1d":
        stage += (round_up(bm, 128) + round_up(bn, 128)) * 4
    return min((SHARED_MEMORY - fixed) // stage, 32)


def blackwell_cost(shape: Shape, layout: Layout, rows: int) -> int:
    """One number in the library's order.

    A single wave, then the larger cluster, fewer waves, a fuller last wave, and smaller blocks.
    """
    block_m, block_n = layout.block_m, layout.block_n
    if not layout.swap_ab:
        fitting = 32 if rows <= 32 else 64 if rows <= 64 else 128
        if block_m != fitting:
            return UNUSABLE
    down = ceil_div(rows, block_m)
    if down % layout.cluster_m != 0:
        return UNUSABLE
    blocks = down * ceil_div(shape.n, block_n)
    waves = ceil_div(blocks, shape.sms)
    idle = waves * shape.sms - blocks
    cost = (0 if waves <= 1 else 2) + (2 - layout.cluster_m * layout.cluster_n)
    cost = (cost << 20) + waves
    cost = (cost << 8) + idle
    return (cost << 28) + ((block_m + block_n) << 18) + block_m * block_n
