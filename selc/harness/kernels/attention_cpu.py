"""Attention over pages in torch: tile by tile with a running maximum, as on a GPU.

A request is computed by itself, in blocks of BLOCK_M query rows (tokens times the query heads that
share keys) against BLOCK_N keys. A block is filled up to its size, and every product in it has the
rows of one token, so the shapes that a row meets depend on the configuration alone. With a wide
block a single token costs as much as many; with small splits or tiles there are more steps.
"""

from __future__ import annotations

from typing import Any

from selc.harness.kernels.paging import Inputs, gathered
from selc.harness.kernels.splits import Config

State = tuple[Any, Any, Any]
"""Of every row: the largest score, the sum of weights, the weighted sum of values."""


def launch(config: Config, inputs: Inputs) -> Any:
    """The output of all rows."""
    import torch

    out = torch.empty_like(inputs.q)
    tokens = max(1, config.block_m // inputs.shape.group)
    at = 0
    for index, request in enumerate(inputs.requests):
        keys, values = (_padded(each, config.block_n) for each in gathered(inputs, index))
        for low in range(0, request.rows, tokens):
            high = min(low + tokens, request.rows)
            first = request.context - request.rows + low
            done = _block(
                config, inputs, inputs.q[at + low : at + high], keys, values, first, tokens
            )
            out[at + low : at + high] = done[: high - low]
        at += request.rows
    return out


def _padded(tokens: Any, block_n: int) -> Any:
    """[kv_heads, tokens, head_dim] in float32 with a tile of zeros behind it."""
    import torch

    moved = tokens.float().transpose(0, 1)
    return torch.nn.functional.pad(moved, (0, 0, 0, block_n)).contiguous()


def _block(
    config: Config, inputs: Inputs, q: Any, keys: Any, values: Any, first: int, tokens: int
) -> Any:
    """Some tokens of one request, the first at position `first`."""
    import torch

    shape = inputs.shape
    context = keys.shape[1] - config.block_n
    full = torch.zeros((tokens, shape.heads, shape.head_dim))
    full[: len(q)] = q.float() * shape.scale
    full = full.view(tokens * shape.kv_heads, shape.group, shape.head_dim)
    places = torch.arange(first, first + tokens).repeat_interleave(shape.kv_heads)[:, None, None]
    places = places.clamp_max(first + len(q) - 1)
    end = first + len(q)
    stride = config.stride(context)
    total = _empty(full)
    for start in range(0, end, stride):
        split = _empty(full)
        stop = min(start + stride, end)
        for low in range(start, stop, config.block_n):
            split = _tile(config, full, keys, values, places, low, min(start + stride, end), split)
        total = _merge(total, split)
    _, weight, acc = total
    return (acc / weight).view(tokens, shape.heads, shape.head_dim).to(inputs.q.dtype)


def _empty(q: Any) -> State:
    import torch

    rows = (*q.shape[:2], 1)
    return torch.full(rows, float("-inf")), torch.zeros(rows), torch.zeros(q.shape)


def _tile(
    config: Config, q: Any, keys: Any, values: Any, places: Any, low: int, stop: int, state: State
) -> State:
    """One tile of keys more. A row that sees none of them keeps its state."""
    import torch

    heads = keys.shape[0]
    columns = torch.arange(low, low + config.block_n)
    k, v = (_tokens(each, low, stop, config.block_n) for each in (keys, values))
    copies = len(q) // heads
    scores = torch.bmm(q, k.transpose(1, 2).repeat(copies, 1, 1))
    scores.masked_fill_((columns > places) | (columns >= stop), float("-inf"))
    top, weight, acc = state
    new = torch.maximum(top, scores.amax(-1, keepdim=True))
    safe = new.masked_fill(new == float("-inf"), 0.0)
    p = torch.exp(scores - safe)
    old = torch.exp(top - safe)
    sums = p.sum(-1, keepdim=True)
    product = torch.bmm(p, v.repeat(copies, 1, 1))
    seen = places >= low
    return (
        new,
        torch.where(seen, weight * old + sums, weight),
        torch.where(seen, acc * old + product, acc),
    )


def _tokens(tokens: Any, low: int, stop: int, block_n: int) -> Any:
    """A tile; what lies past the split is nothing."""
    tile = tokens[:, low : low + block_n].clone()
    tile[:, stop - low :] = 0.0
    return tile


def _merge(total: State, split: State) -> State:
    """A split more, in their order. An empty one changes nothing."""
    import torch

    top = torch.maximum(total[0], split[0])
    safe = top.masked_fill(top == float("-inf"), 0.0)
    before, after = torch.exp(total[0] - safe), torch.exp(split[0] - safe)
    seen = split[0] > float("-inf")
    return (
        top,
        torch.where(seen, total[1] * before + split[1] * after, total[1]),
        torch.where(seen, total[2] * before + split[2] * after, total[2]),
    )
