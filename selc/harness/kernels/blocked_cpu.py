"""A matrix product in blocks, for machines without a GPU.

Every call of the matrix library has the same number of rows and columns, whatever the batch and
the tile, because its rounding moves with the shape. Only the steps along K order a sum.
"""

from __future__ import annotations

import itertools
from typing import Final

import torch
from torch import Tensor

from selc.harness.protocol import Unsupported

ROWS: Final = 16
COLUMNS: Final = 64


def spans(depth: int, block_k: int, split_k: int) -> list[tuple[int, int]]:
    """The first index along K of each split, and the one after its last.

    Raises:
        Unsupported: a split has no step.
    """
    steps = -(-depth // block_k)
    if split_k > steps:
        raise Unsupported(f"{depth} has no {split_k} steps of {block_k}")
    ends = [min(i * steps // split_k * block_k, depth) for i in range(split_k + 1)]
    return list(itertools.pairwise(ends))


def product(x: Tensor, w: Tensor, block_n: int, block_k: int, split_k: int) -> Tensor:
    """`x @ w` in float32 for a block of rows (a multiple of ROWS); `w` has K rows.

    Tiles are converted to float32 where they are loaded, so that a narrow tile pays for it more
    often, as on a GPU.
    """
    depth, columns = w.shape
    out = torch.empty((len(x), columns), dtype=torch.float32)
    for left in range(0, columns, block_n):
        right = min(left + block_n, columns)
        for number, (start, end) in enumerate(spans(depth, block_k, split_k)):
            part = torch.zeros((len(x), right - left), dtype=torch.float32)
            for k in range(start, end, block_k):
                a = x[:, k : min(k + block_k, end)].float().contiguous()
                b = w[k : min(k + block_k, end), left:right].float()
                _add_product(part, a, b)
            if number == 0:
                out[:, left:right] = part
            else:
                out[:, left:right] += part
    return out


def _add_product(part: Tensor, a: Tensor, b: Tensor) -> None:
    for column in range(0, b.shape[1], COLUMNS):
        stripe = b[:, column : column + COLUMNS].contiguous()
        for row in range(0, len(a), ROWS):
            tile = part[row : row + ROWS, column : column + COLUMNS]
            tile += a[row : row + ROWS] @ stripe


def padded(rows: int, multiple: int) -> int:
    """Rows filled up to a multiple, and to whole tiles."""
    block = -(-multiple // ROWS) * ROWS
    return -(-rows // block) * block
