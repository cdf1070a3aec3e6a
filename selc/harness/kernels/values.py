"""The numbers that bundled kernels compute with.

A number is a function of its request's seed, its position and its column alone, in integer
arithmetic up to the last step, so that it is the same in every batch, on every device.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Final

import torch
from torch import Tensor

from selc.harness.call import Call, Request, requests_of

CHUNK: Final = 1 << 24
"""Numbers made at a time."""

GOLDEN: Final = -7046029254386353131
FIRST: Final = -4658895280553007687
SECOND: Final = -7723592293110705685
DEVIATION: Final = 37837.227
"""Standard deviation of the sum of four uniform 16-bit numbers."""

MEAN: Final = 131070
DTYPES: Final = {2: "bfloat16", 4: "float32"}


def requests(call: Call) -> tuple[Request, ...]:
    """The requests of a call, as recorded or as its inputs suggest."""
    return call.requests or requests_of(call.inputs, call.extra)


def dtype_of(call: Call) -> torch.dtype:
    """The element type of activations and weights: `dtype`, or by the facts' `element_size`."""
    default = DTYPES.get(call.find("element_size", default=2), "bfloat16")
    name = str(call.find("dtype", default=default)).removeprefix("torch.")
    if name not in ("float16", *DTYPES.values()):
        raise ValueError(f"the kernels compute in float16, bfloat16 or float32, not in {name}")
    return getattr(torch, name)


def out_dtype_of(call: Call) -> torch.dtype:
    """The element type of a result, by default that of the activations."""
    return torch.float32 if call.find("out_dtype") == "float32" else dtype_of(call)


def mix(z: Tensor) -> Tensor:
    """Scramble 64-bit numbers (the finalizer of splitmix64)."""
    z = (z ^ (z >> 30 & (1 << 34) - 1)) * FIRST
    z = (z ^ (z >> 27 & (1 << 37) - 1)) * SECOND
    return z ^ (z >> 31 & (1 << 33) - 1)


def row_keys(call: Call) -> Tensor:
    """One number for each row of a launch, in the order of its requests."""
    seeds, positions = [], []
    for request in requests(call):
        seeds.append(torch.full((request.rows,), request.seed, dtype=torch.int64))
        positions.append(torch.arange(request.context - request.rows, request.context))
    if not seeds:
        return torch.zeros(0, dtype=torch.int64)
    return mix(mix(torch.cat(seeds) * GOLDEN + 1) + torch.cat(positions) * GOLDEN)


def normal(
    keys: Tensor,
    columns: int,
    *,
    salt: int,
    scale: float,
    dtype: torch.dtype,
    device: str,
    magnitude: str = "normal",
    out_rows: int = 0,
) -> Tensor:
    """Roughly normal numbers, a row for each key; rows up to `out_rows` are zero.

    With the magnitude "extreme" each number is taken times a power of ten from 1e-4 to 1e4.
    """
    out = torch.zeros((max(len(keys), out_rows), columns), dtype=dtype, device=device)
    keys = mix(keys.to(device) + mix(torch.tensor(salt, device=device)))
    column = torch.arange(columns, device=device) * GOLDEN
    powers = torch.tensor([10.0**e for e in range(-4, 5)], dtype=torch.float32, device=device)
    largest = 6 if dtype == torch.float16 else 8
    step = max(1, CHUNK // columns)
    for start in range(0, len(keys), step):
        z = mix(keys[start : start + step, None] + column)
        total = (z & 0xFFFF) + (z >> 16 & 0xFFFF) + (z >> 32 & 0xFFFF) + (z >> 48 & 0xFFFF)
        values = (total - MEAN).to(torch.float32) * (scale / DEVIATION)
        if magnitude == "extreme":
            values *= powers[mix(z + 1).remainder(largest + 1)]
        out[start : start + len(values)] = values
    return out


@lru_cache(maxsize=12)
def weights(
    rows: int, columns: int, salt: int, scale: float, dtype: torch.dtype, device: str
) -> Tensor:
    """Weights of a layer; the same tensor every time."""
    keys = mix(torch.arange(rows) * GOLDEN + 2)
    return normal(keys, columns, salt=salt, scale=scale, dtype=dtype, device=device)


def digest_of_files(*names: str) -> str:
    """A hash of some modules of this package, by their names."""
    digest = hashlib.sha256()
    for name in names:
        digest.update(Path(__file__).with_name(f"{name}.py").read_bytes())
    return "sha256:" + digest.hexdigest()[:16]
