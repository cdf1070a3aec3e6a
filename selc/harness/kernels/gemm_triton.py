# ruff: noqa: N803, SIM108  # constants are called what configurations call them
# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"
"""The dense product in Triton: a tile of the output for each program, parts of a sum in order.

Operands come through the copy engine (tensor descriptors), which fills what lies outside with
zeros, so that no load is masked. Tiles of few rows swap the operands: the weights then go where
the matrix unit takes 64 rows at a time, and all tiles use the same instruction.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

from selc.harness.kernels.launching import launch, positive
from selc.harness.protocol import Unsupported

REDUCE: Final = 1024
ALIGNED: Final = 8
"""The copy engine takes rows of whole 16 bytes."""


@triton.jit(do_not_specialize=["rows"])
def tile_kernel(
    x,
    w,
    out,
    rows,
    columns,
    depth,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    SPLIT_K: tl.constexpr,
    SWAP: tl.constexpr,
    PDL: tl.constexpr,
):
    """A tile of one part of the sum; `out` is the result, or the parts one after the other."""
    down = tl.cdiv(rows, BLOCK_M)
    across = tl.cdiv(columns, BLOCK_N)
    program = tl.program_id(0)
    group = program // (GROUP_M * across)
    height = min(down - group * GROUP_M, GROUP_M)
    top = (group * GROUP_M + program % (GROUP_M * across) % height) * BLOCK_M
    left = program % (GROUP_M * across) // height * BLOCK_N
    part = tl.program_id(1)

    steps = tl.cdiv(depth, BLOCK_K)
    first = part * steps // SPLIT_K
    last = (part + 1) * steps // SPLIT_K
    tl.assume(last > first)  # else ptxas waits for each matrix instruction of some tiles
    if SWAP:
        total = tl.zeros((BLOCK_N, BLOCK_M), dtype=tl.float32)
    else:
        total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(first, last):
        a = x.load([top, step * BLOCK_K])
        b = w.load([left, step * BLOCK_K])
        if SWAP:
            total = tl.dot(b, a.T, total)
        else:
            total = tl.dot(a, b.T, total)

    if PDL:
        tl.extra.cuda.gdc_launch_dependents()
    if SWAP:
        row = top + tl.arange(0, BLOCK_M)[None, :]
        column = left + tl.arange(0, BLOCK_N)[:, None]
    else:
        row = top + tl.arange(0, BLOCK_M)[:, None]
        column = left + tl.arange(0, BLOCK_N)[None, :]
    place = out + part.to(tl.int64) * rows * columns + row.to(tl.int64) * columns + column
    tl.store(place, total.to(out.dtype.element_ty), mask=(row < rows) & (column < columns))


@triton.jit(do_not_specialize=["rows"])
def walk_kernel(
    x,
    w,
    out,
    rows,
    columns,
    depth,
    PROGRAMS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    HALF: tl.constexpr,
):
    """Tiles one after the other: the next one's loads begin before a tile is stored."""
    down = tl.cdiv(rows, BLOCK_M)
    across = tl.cdiv(columns, BLOCK_N)
    steps = tl.cdiv(depth, BLOCK_K)
    for tile in tl.range(tl.program_id(0), down * across, PROGRAMS, flatten=True):
        group = tile // (GROUP_M * across)
        height = min(down - group * GROUP_M, GROUP_M)
        top = (group * GROUP_M + tile % (GROUP_M * across) % height) * BLOCK_M
        left = tile % (GROUP_M * across) // height * BLOCK_N
        total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for step in range(steps):
            a = x.load([top, step * BLOCK_K])
            b = w.load([left, step * BLOCK_K])
            total = tl.dot(a, b.T, total)
        pair = tl.permute(tl.reshape(total, (BLOCK_M, 2, HALF)), (0, 2, 1))
        here, beside = tl.split(pair)
        out.store([top, left], here.to(out.dtype))
        out.store([top, left + HALF], beside.to(out.dtype))


@triton.jit(do_not_specialize=["eights"])
def add_parts(parts, out, eights, SPLIT_K: tl.constexpr, BLOCK: tl.constexpr, PDL: tl.constexpr):
    """Add the parts of each sum in their order; there are eight times `eights` sums."""
    count = eights.to(tl.int64) * 8
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    if PDL:
        tl.extra.cuda.gdc_wait()
    total = tl.load(parts + place, mask=inside, other=0.0)
    for part in tl.static_range(1, SPLIT_K):
        total += tl.load(parts + count * part + place, mask=inside, other=0.0)
    tl.store(out + place, total.to(out.dtype.element_ty), mask=inside)


def run(choice: Mapping[str, Any], inputs: Any) -> Tensor:
    """`x @ w.T` under a choice."""
    block_m, block_n, block_k, group_m, split_k, warps, stages = positive(
        choice, "BLOCK_M", "BLOCK_N", "BLOCK_K", "GROUP_M", "SPLIT_K", "num_warps", "num_stages"
    )
    x, w = inputs.x, inputs.w
    columns, depth = w.shape
    if depth % ALIGNED or columns % ALIGNED:
        raise Unsupported(f"rows of {depth} or {columns} are no multiple of {ALIGNED}")
    if split_k > -(-depth // block_k):
        raise Unsupported(f"{depth} has no {split_k} steps of {block_k}")
    padding = choice.get("padding", 1)
    rows = -(-inputs.rows // padding) * padding
    swap = bool(choice.get("swap_ab", block_m < 64 <= block_n))
    out = torch.empty((rows, columns), dtype=inputs.out, device=x.device)
    tiles = -(-rows // block_m) * -(-columns // block_n)
    shared = {
        "BLOCK_M": block_m,
        "BLOCK_N": block_n,
        "BLOCK_K": block_k,
        "GROUP_M": group_m,
        "num_warps": warps,
        "num_stages": stages,
    }
    operands = (
        _tiles(inputs, "x", x, block_m, block_k),
        _tiles(inputs, "w", w, block_n, block_k),
    )
    programs = _processors(x.device)
    walks = choice.get("persistent", block_m >= 128 and tiles > programs)
    if walks and split_k == 1 and not swap:
        half = block_n // 2
        target = TensorDescriptor.from_tensor(out, [block_m, half])
        sizes = (rows, columns, depth)
        options = {**shared, "PROGRAMS": programs, "HALF": half}
        launch(walk_kernel, (min(programs, tiles),), *operands, target, *sizes, **options)
        return out[: inputs.rows]
    parts = out if split_k == 1 else _parts(inputs, split_k, rows, columns)
    pdl = split_k > 1 and bool(choice.get("pdl", False))
    options = {**shared, "SPLIT_K": split_k, "SWAP": swap, "PDL": pdl}
    launch(tile_kernel, (tiles, split_k), *operands, parts, rows, columns, depth, **options)
    if split_k > 1:
        eights = rows * columns // ALIGNED
        blocks = -(-rows * columns // REDUCE)
        constants = {"SPLIT_K": split_k, "BLOCK": REDUCE, "PDL": pdl, "num_warps": 4}
        launch(add_parts, (blocks,), parts, out, eights, launch_pdl=pdl, **constants)
    return out[: inputs.rows]


@cache
def _processors(device: torch.device) -> int:
    """Multiprocessors of a GPU."""
    if device.type != "cuda":
        return 4
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


def _tiles(inputs: Any, name: str, tensor: Tensor, rows: int, columns: int) -> Any:
    key = (name, rows, columns)
    if key not in inputs.scratch:
        inputs.scratch[key] = TensorDescriptor.from_tensor(tensor, [rows, columns])
    return inputs.scratch[key]


def _parts(inputs: Any, split_k: int, rows: int, columns: int) -> Tensor:
    """Room for the parts, the same at each launch, so that a captured graph keeps it."""
    key = ("parts", split_k, rows)
    if key not in inputs.scratch:
        size = (split_k, rows, columns)
        inputs.scratch[key] = torch.empty(size, dtype=torch.float32, device=inputs.x.device)
    return inputs.scratch[key]
