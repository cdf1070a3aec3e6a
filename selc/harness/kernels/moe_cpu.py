"""Mixture of experts on the CPU: blocks of rows of one expert, each of a fixed shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from selc.harness.kernels.blocked_cpu import ROWS, padded, product
from selc.harness.protocol import Unsupported


@dataclass(frozen=True, slots=True)
class Block:
    """Pairs of a token and one of its experts that one block multiplies, by their numbers."""

    expert: int
    pairs: Tensor


def run(
    choice: Mapping[str, Any], x: Tensor, up: Tensor, down: Tensor, ids: Tensor, share: Tensor
) -> Tensor:
    """The experts' outputs, each by its share, added in the order of a token's experts."""
    rows, topk = ids.shape
    block_m = choice["gate_up.BLOCK_SIZE_M"]
    if choice["down.BLOCK_SIZE_M"] != block_m:
        raise Unsupported("rows are sorted once, into blocks of one size")
    naive = choice.get("expert_assignment", "sorted") == "naive"
    width = down.shape[2]
    activated = torch.empty((rows * topk, width), dtype=x.dtype)
    result = torch.empty((rows * topk, down.shape[1]), dtype=x.dtype)
    blocks = _naive(ids) if naive else _sorted(ids, block_m)
    height = padded(block_m, 1)
    for block in blocks:
        hidden = _multiplied(choice, "gate_up", _filled(x, block.pairs // topk, height), up, block)
        for top in range(0, len(block.pairs), ROWS):
            tile = hidden[top : top + ROWS]
            gate = tile[:, :width].float().contiguous()
            active = torch.nn.functional.silu(gate).to(x.dtype) * tile[:, width:]
            kept = block.pairs[top : top + ROWS]
            activated[kept] = active[: len(kept)]
    shares = share.reshape(-1, 1)
    for block in blocks:
        source = _filled(activated, block.pairs, height)
        out = _multiplied(choice, "down", source, down, block, _filled(shares, block.pairs, height))
        result[block.pairs] = out[: len(block.pairs)]
    parts = result.view(rows, topk, -1)
    total = parts[:, 0].float()
    for index in range(1, topk):
        total = total + parts[:, index].float()
    return total.to(x.dtype)


def _multiplied(
    choice: Mapping[str, Any],
    gemm: str,
    rows: Tensor,
    weights: Tensor,
    block: Block,
    share: Tensor | None = None,
) -> Tensor:
    out = product(
        rows,
        weights[block.expert].t(),
        choice[f"{gemm}.BLOCK_SIZE_N"],
        choice[f"{gemm}.BLOCK_SIZE_K"],
        choice.get(f"{gemm}.SPLIT_K", 1),
    )
    return (out if share is None else out * share).to(rows.dtype)


def _filled(source: Tensor, index: Tensor, height: int) -> Tensor:
    """Some rows, with zeros below up to a height."""
    out = source.new_zeros((height, source.shape[1]))
    out[: len(index)] = source[index]
    return out


def _sorted(ids: Tensor, block_m: int) -> list[Block]:
    flat = ids.reshape(-1)
    out = []
    for expert in torch.unique(flat).tolist():
        pairs = torch.nonzero(flat == expert)[:, 0]
        out += [Block(expert, part) for part in torch.split(pairs, block_m)]
    return out


def _naive(ids: Tensor) -> list[Block]:
    """A block for each pair."""
    return [Block(e, torch.tensor([i])) for i, e in enumerate(ids.reshape(-1).tolist())]
