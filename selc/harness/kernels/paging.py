"""Requests of an attention launch as tensors: queries, and keys and values in pages."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from selc.diag.diagnostic import Diagnostic, Refused
from selc.harness.call import MISSING, Call, Request, requests_of
from selc.harness.kernels.data import normal

DTYPES: Final = ("bfloat16", "float16", "float32")
LAYOUTS: Final = ("NHD", "HND")
EXTREME: Final = ((1e-2, 1e-1, 1.0, 10.0, 100.0), (1e-4, 1e-2, 1.0, 1e2, 1e4))
"""Factors of queries and keys, and of values: scores stay within what float32 tells apart."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What all requests of a deployment share."""

    heads: int
    kv_heads: int
    head_dim: int
    dtype: str
    page_size: int
    layout: str  # of a page: tokens before heads, as engines have it, or heads before tokens

    @property
    def group(self) -> int:
        """Query heads that read the same keys."""
        return self.heads // self.kv_heads

    @property
    def scale(self) -> float:
        """What scores are multiplied by."""
        return float(self.head_dim**-0.5)


@dataclass(frozen=True, slots=True)
class Inputs:
    """The tensors of a launch.

    `q` and the output are [rows, heads, head_dim], `keys` and `values` [pages, page_size, kv_heads,
    head_dim] (as a view, whatever lies where), `table` [requests, pages of the longest]. Slots of
    a page that no token has hold NaN. `plans` keeps what a choice needs besides.
    """

    shape: Shape
    requests: tuple[Request, ...]
    q: Any
    keys: Any
    values: Any
    table: Any
    device: str
    plans: dict[Any, Any] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Rows of the output."""
        return sum(r.rows for r in self.requests)


def shape_of(call: Call) -> Shape:
    """The shape that facts and `extra` give.

    Raises:
        Refused: something is missing, or no kernel could take it.
    """
    ranks = call.find("parallel.tensor", "tensor", default=1)
    heads, kv_heads = (_positive(call, n) for n in ("heads", "kv_heads"))
    heads, kv_heads = max(heads // ranks, 1), max(kv_heads // ranks, 1)
    if heads % kv_heads:
        raise _wrong(f"{heads} query heads cannot share {kv_heads} heads of keys evenly")
    dtype = str(call.find("dtype", default="bfloat16")).removeprefix("torch.")
    layout = str(call.find("kv_layout", default="NHD"))
    for name, value, known in (("dtype", dtype, DTYPES), ("kv_layout", layout, LAYOUTS)):
        if value not in known:
            raise _wrong(f"`{name}` is {value!r}, not one of {', '.join(known)}")
    page = call.find("page_size", default=16)
    if type(page) is not int or page < 1 or page & (page - 1):
        raise _wrong(f"`page_size` is {page!r}, not a power of two")
    return Shape(heads, kv_heads, _positive(call, "head_dim"), dtype, page, layout)


def batch_of(call: Call) -> tuple[Request, ...]:
    """The requests of a call.

    Raises:
        Refused: a request computes more rows than it has tokens.
    """
    requests = tuple(call.requests) or requests_of(call.inputs, call.extra)
    for each in requests:
        if not 1 <= each.rows <= each.context:
            raise _wrong(f"a request computes {each.rows} rows of its {each.context} tokens")
    return requests


def place(call: Call, device: str) -> Inputs:
    """The tensors of a call."""
    import torch

    shape, requests = shape_of(call), batch_of(call)
    dtype = getattr(torch, shape.dtype)
    pages = _pages(requests, shape.page_size, int(call.find("layout", default=1)))
    longest = max(len(p) for p in pages)
    table = torch.zeros((len(requests), longest), dtype=torch.int32)
    for i, mine in enumerate(pages):
        table[i, : len(mine)] = torch.tensor(mine, dtype=torch.int32)
    count = sum(len(p) for p in pages)
    keys, values = (_cache(shape, count, dtype, device) for _ in range(2))
    extreme = call.find("magnitude", default="normal") == "extreme"
    near, far = EXTREME if extreme else ((), ())
    q = []
    for request, mine in zip(requests, pages, strict=True):
        width = shape.heads * shape.head_dim
        first = request.context - request.rows
        rows = normal(request.seed, 0, first * width, request.rows * width, device, near)
        q.append(rows.to(dtype).view(request.rows, shape.heads, shape.head_dim))
        where = torch.tensor(mine, dtype=torch.int64, device=device)
        width = shape.kv_heads * shape.head_dim
        for stream, cache, powers in ((1, keys, near), (2, values, far)):
            numbers = normal(request.seed, stream, 0, request.context * width, device, powers)
            _fill(cache, where, numbers.to(dtype).view(-1, shape.kv_heads, shape.head_dim))
    return Inputs(shape, requests, torch.cat(q), keys, values, table.to(device), device)


def gathered(inputs: Inputs, index: int) -> tuple[Any, Any]:
    """A request's keys and values, [context, kv_heads, head_dim]."""
    request, shape = inputs.requests[index], inputs.shape
    pages = inputs.table[index, : -(-request.context // shape.page_size)].long()
    out = []
    for cache in (inputs.keys, inputs.values):
        mine = cache[pages].reshape(-1, shape.kv_heads, shape.head_dim)
        out.append(mine[: request.context])
    return out[0], out[1]


def reference(inputs: Inputs, block: int = 512) -> Any:
    """The right output, in float64."""
    import torch

    shape, out, at = inputs.shape, [], 0
    for index, request in enumerate(inputs.requests):
        keys, values = (each.double().transpose(0, 1) for each in gathered(inputs, index))
        place_of = torch.arange(request.context, device=inputs.device)
        for low in range(0, request.rows, block):
            high = min(low + block, request.rows)
            q = inputs.q[at + low : at + high].double() * shape.scale
            q = q.view(high - low, shape.kv_heads, shape.group, -1).permute(1, 2, 0, 3)
            seen = place_of[None, :] <= place_of[request.context - request.rows :][low:high, None]
            rows = []
            for head in range(shape.kv_heads):
                scores = q[head] @ keys[head].T
                scores.masked_fill_(~seen, float("-inf"))
                rows.append(scores.softmax(-1) @ values[head])
            done = torch.stack(rows).permute(2, 0, 1, 3)
            out.append(done.reshape(high - low, shape.heads, shape.head_dim))
        at += request.rows
    return torch.cat(out)


def bytes_and_flops(call: Call) -> tuple[int, int]:
    """Queries, output, and every key and value once; two products per row and key."""
    shape, requests = shape_of(call), batch_of(call)
    size = 4 if shape.dtype == "float32" else 2
    rows = sum(r.rows for r in requests)
    tokens = sum(r.context for r in requests)
    seen = sum(r.rows * (2 * r.context - r.rows + 1) // 2 for r in requests)
    moved = 2 * rows * shape.heads + 2 * tokens * shape.kv_heads
    return moved * shape.head_dim * size, 4 * seen * shape.heads * shape.head_dim


def number(choice: Mapping[str, Any], name: str, default: int) -> int:
    """A point of a choice, absent or null for the default."""
    value = choice.get(name)
    return default if value is None else int(value)


def _pages(requests: tuple[Request, ...], size: int, layout: int) -> list[list[int]]:
    """Which pages each request has; what came out of a prefix cache lies behind the rest."""
    counts = [-(-r.context // size) for r in requests]
    order = list(range(sum(counts)))
    if layout:
        random.Random(layout).shuffle(order)  # noqa: S311  nothing secret
    free = iter(order)
    pages: list[list[int]] = [[-1] * n for n in counts]
    for old in (False, True):
        for request, mine in zip(requests, pages, strict=True):
            for i in range(len(mine)):
                if ((i + 1) * size <= request.cached) == old:
                    mine[i] = next(free)
    return pages


def _cache(shape: Shape, pages: int, dtype: Any, device: str) -> Any:
    import torch

    sizes = (pages, shape.page_size, shape.kv_heads, shape.head_dim)
    if shape.layout == "HND":
        swapped = (sizes[0], sizes[2], sizes[1], sizes[3])
        return torch.full(swapped, float("nan"), dtype=dtype, device=device).transpose(1, 2)
    return torch.full(sizes, float("nan"), dtype=dtype, device=device)


def _fill(cache: Any, pages: Any, tokens: Any) -> None:
    size = cache.shape[1]
    whole = len(tokens) // size
    cache[pages[:whole]] = tokens[: whole * size].view(whole, size, *tokens.shape[1:])
    rest = len(tokens) - whole * size
    if rest:
        cache[pages[whole], :rest] = tokens[whole * size :]


def _positive(call: Call, name: str) -> int:
    value = call.get(f"model.{name}", name)
    if type(value) is not int or value < 1:
        raise _wrong(f"`{name}` is {value!r}, not a positive integer")
    return value


def _wrong(message: str) -> Refused:
    return Refused(Diagnostic(MISSING, message, help="give other values with `--set NAME=VALUE`"))
