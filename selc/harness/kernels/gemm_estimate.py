"""How long a dense product takes under a choice: what `Gemm.estimate` tells the tuner."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from selc.harness.call import Call
from selc.harness.kernels.estimates import ACCUMULATED, Device, Rates, Tile, product

RATES: Final = Rates(compute=0.83, cache=3.2, scattered=0.06, latency=1.0e-6, begin=0.7e-6)
LAUNCH: Final = 4.5e-6
ADDING: Final = 1.2e-6
"""Seconds of a second kernel, besides what it moves."""


def estimate(call: Call, choice: Mapping[str, Any], rows: int, columns: int, depth: int) -> float:
    """Seconds of a product of so many rows, columns and so much depth."""
    device = Device.of(call)
    tile = Tile(
        choice["BLOCK_M"], choice["BLOCK_N"], choice["BLOCK_K"], choice.get("GROUP_M", 1),
        choice["num_warps"], choice["num_stages"],
    )  # fmt: skip
    padding, parts = choice.get("padding", 1), choice.get("SPLIT_K", 1)
    rows = math.ceil(rows / padding) * padding
    down = math.ceil(rows / tile.rows)
    blocks = down * math.ceil(columns / tile.columns)
    walks = parts == 1 and tile.rows >= 128 and blocks > device.processors
    seconds = product(
        device, RATES, tile, blocks, depth, min(tile.rows, rows), down, parts,
        bool(choice.get("persistent", walks)),
    )  # fmt: skip
    if parts > 1:
        seconds += ADDING + 2 * parts * rows * columns * 4 / (1.25 * ACCUMULATED)
    return seconds + LAUNCH
