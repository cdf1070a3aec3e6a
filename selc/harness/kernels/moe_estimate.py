"""How long a layer of experts takes under a choice: what `Moe.estimate` tells the tuner."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from selc.harness.call import Call
from selc.harness.kernels.estimates import ACCUMULATED, Device, Rates, Tile, product

RATES: Final = Rates(
    compute=0.6, cache=2.2, scattered=0.1, latency=1.35e-6, begin=0.1e-6, crowded=0.45
)
LAUNCHES: Final = 9e-6
SORTING: Final = 3.7e-6


def estimate(
    call: Call, choice: Mapping[str, Any], rows: int, shape: tuple[int, int, int, int]
) -> float:
    """Seconds of a layer; `shape` is experts, experts a row, hidden size and an expert's width."""
    experts, topk, hidden, width = shape
    device, pairs = Device.of(call), rows * topk
    block_m = choice["gate_up.BLOCK_SIZE_M"]
    blocks, used = blocks_of(rows, experts, topk, block_m)
    seconds = LAUNCHES
    if choice.get("expert_assignment", "sorted") == "naive":
        blocks = float(pairs)
    else:
        seconds += SORTING
    down = blocks / used
    for part, columns, depth in (("gate_up", 2 * width, hidden), ("down", hidden, width)):
        tile = Tile(
            block_m, choice[f"{part}.BLOCK_SIZE_N"], choice[f"{part}.BLOCK_SIZE_K"],
            choice.get(f"{part}.GROUP_SIZE_M", 1), choice[f"{part}.num_warps"],
            choice[f"{part}.num_stages"],
        )  # fmt: skip
        count = blocks * math.ceil(columns / tile.columns)
        alone = 1.0 if down < 1.02 else down
        seconds += product(device, RATES, tile, count, depth, pairs / blocks, alone)
    between = pairs * (3 * width + hidden) + rows * hidden * (topk + 1)
    return seconds + between * 2 / ACCUMULATED


@lru_cache(maxsize=1024)
def blocks_of(rows: int, experts: int, topk: int, block: int) -> tuple[float, float]:
    """Blocks of rows of one expert, and experts that have any, for routing that is even on average.

    An expert's rows are then distributed binomially.
    """
    share = topk / experts
    if share >= 1:
        return experts * math.ceil(rows / block), float(experts)
    mean = rows * share
    reach = 8 * math.sqrt(mean + 1) + 8
    counts = range(max(0, int(mean - reach)), min(rows, int(mean + reach)) + 1)
    blocks = math.fsum(_chance(c, rows, share) * math.ceil(c / block) for c in counts)
    return experts * blocks, experts * (1 - (1 - share) ** rows)


def _chance(count: int, of: int, share: float) -> float:
    ways = math.lgamma(of + 1) - math.lgamma(count + 1) - math.lgamma(of - count + 1)
    return math.exp(ways + count * math.log(share) + (of - count) * math.log1p(-share))
