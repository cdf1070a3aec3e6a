"""RMS norm on the CPU.

Everything is done element by element (sums too, as a tree of additions), so that a row is rounded
alike in every batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import torch
from torch import Tensor

from selc.harness.protocol import Unsupported

LANES: Final = 32
VECTOR: Final = 64


def run(choice: Mapping[str, Any], inputs: Any) -> Tensor:
    """Every row by its root mean square, times the weight."""
    x, weight, eps = inputs.x, inputs.weight, inputs.eps
    block, warps = choice["BLOCK_SIZE"], choice.get("num_warps", 4)
    if block < 1 or warps < 1 or block & (block - 1) or warps & (warps - 1):
        raise Unsupported("blocks and warps are powers of two")
    rows, hidden = x.shape
    total = torch.zeros(-(-rows // VECTOR) * VECTOR, dtype=torch.float32)
    for start in range(0, hidden, block):
        part = x[:, start : start + block].float()
        square = torch.zeros((rows, block), dtype=torch.float32)
        square[:, : part.shape[1]] = part * part
        total[:rows] += _tree(square, min(LANES * warps, block))
    scale = (1.0 / torch.sqrt(total / hidden + eps))[:rows, None]
    out = torch.empty_like(x, dtype=inputs.out)
    for start in range(0, hidden, block):
        end = min(start + block, hidden)
        out[:, start:end] = (x[:, start:end].float() * scale * weight[start:end].float()).to(
            inputs.out
        )
    return out


def _tree(values: Tensor, lanes: int) -> Tensor:
    """Each lane's sum in order, then the lanes by halves."""
    held = values.view(len(values), -1, lanes)
    sums = held[:, 0].clone()
    for index in range(1, held.shape[1]):
        sums += held[:, index]
    while sums.shape[1] > 1:
        half = sums.shape[1] // 2
        sums = sums[:, :half] + sums[:, half:]
    return sums[:, 0]
