"""The dense product on the CPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from selc.harness.kernels.blocked_cpu import padded, product
from selc.harness.protocol import Unsupported


def run(choice: Mapping[str, Any], inputs: Any) -> Tensor:
    """`x @ w.T` under a choice."""
    x, w, rows = inputs.x, inputs.w, inputs.rows
    block_m, block_n = choice["BLOCK_M"], choice["BLOCK_N"]
    block_k, split_k = choice["BLOCK_K"], choice.get("SPLIT_K", 1)
    if min(block_m, block_n, block_k, split_k) < 1:
        raise Unsupported("a block is not positive")
    filled = -(-rows // choice.get("padding", 1)) * choice.get("padding", 1)
    out = torch.empty((rows, len(w)), dtype=inputs.out)
    transposed = w.t()
    for top in range(0, filled, block_m):
        block = x[top : min(top + block_m, len(x))]
        height = padded(block_m, 1)
        if len(block) < height:
            block = torch.cat([block, block.new_zeros((height - len(block), x.shape[1]))])
        result = product(block, transposed, block_n, block_k, split_k)
        if top < rows:
            kept = min(block_m, rows - top)
            out[top : top + kept] = result[:kept].to(inputs.out)
    return out
