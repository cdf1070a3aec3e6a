# ruff: noqa: N803  # kernels' constants are called what configurations call them
# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"
"""RMS norm in Triton: a program for each row, which it sums block by block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from selc.harness.kernels.launching import launch, positive


@triton.jit
def row_kernel(x, weight, out, eps, HIDDEN: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    """One row; each block's squares are added as a tree, the blocks in order."""
    row = tl.program_id(0).to(tl.int64) * HIDDEN
    at = tl.arange(0, BLOCK_SIZE)
    total = 0.0
    for start in tl.static_range(0, HIDDEN, BLOCK_SIZE):
        inside = start + at < HIDDEN
        part = tl.load(x + row + start + at, mask=inside, other=0.0).to(tl.float32)
        total += tl.sum(part * part, axis=0)
    scale = 1.0 / tl.sqrt(total / HIDDEN + eps)
    for start in tl.static_range(0, HIDDEN, BLOCK_SIZE):
        inside = start + at < HIDDEN
        part = tl.load(x + row + start + at, mask=inside, other=0.0).to(tl.float32)
        by = tl.load(weight + start + at, mask=inside, other=0.0).to(tl.float32)
        tl.store(out + row + start + at, (part * scale * by).to(out.dtype.element_ty), mask=inside)


def run(choice: Mapping[str, Any], inputs: Any) -> Tensor:
    """The normed rows under a choice."""
    block, warps = positive(choice, "BLOCK_SIZE", "num_warps")
    x = inputs.x
    out = torch.empty_like(x, dtype=inputs.out)
    launch(
        row_kernel,
        (len(x),),
        x,
        inputs.weight,
        out,
        inputs.eps,
        HIDDEN=x.shape[1],
        BLOCK_SIZE=block,
        num_warps=warps,
    )
    return out
