"""How long an attention launch takes under a choice: what `Attention.estimate` tells the tuner.

The work is the launch's own (`attention_work`): tiles of rows, splits of keys, folds. The rates are
rounded fits to times that were measured on one H200 with one deployment's heads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from selc.harness.call import Call, Request
from selc.harness.kernels.attention_work import FEW, tiles
from selc.harness.kernels.estimates import ACCUMULATED, MEMORY, PEAK, Device, slowest
from selc.harness.kernels.splits import Config

COMPUTE: Final = 1.7
"""Of the peak for the rows of a tile that are real: a matrix instruction is paid by its 64 rows."""
OF_WARPS: Final = {2: 0.2, 4: 1.0, 8: 0.45}
CACHE: Final = 2.0
"""How many times as fast as memory keys come that another block has just read."""
LATENCY: Final = 0.52e-6
LAUNCH: Final = 7.8e-6
BEGIN: Final = 1.4e-6
FOLDING: Final = 1.5e-6
A_SPLIT: Final = 0.09e-6
"""Seconds of a fold for every split of the longest."""
CHAINED: Final = 1.4e-6
"""Seconds of every further split that a block folds itself."""
OVERHEAD: Final = 58


@dataclass(frozen=True, slots=True)
class Load:
    """A launch's work, for one head of keys."""

    tiles: int
    items: int
    keys: int
    """Of all tiles together."""
    longest: int
    """Keys of the longest item."""
    partial_rows: int
    most_splits: int
    chained: int
    """Splits that are folded by the block that has them."""


def estimate(
    call: Call,
    requests: tuple[Request, ...],
    config: Config,
    group: int,
    kv_heads: int,
    head_dim: int,
) -> float:
    """Seconds of a launch with `group` query heads on each of `kv_heads` heads of keys."""
    device = Device.of(call)
    strides = config.split_stride, config.num_splits, config.block_n
    load = _load(requests, group, kv_heads, config.block_m, strides, device.processors)
    block_m, block_n, warps = config.block_m, config.block_n, config.num_warps
    shared = (block_m + config.num_stages * 2 * block_n) * head_dim * 2
    held = (2 * block_m * head_dim + block_m * block_n) / (32 * warps) + OVERHEAD
    fit = device.resident(warps, shared, held)
    items = load.items * kv_heads
    busy = min(device.processors, items)
    beside = min(fit, max(1.0, items / device.processors))
    height = max(block_m, 64) if warps >= 4 else block_m
    reached = COMPUTE * OF_WARPS.get(warps, 0.45)
    compute = 4 * height * block_n * head_dim / (PEAK / device.processors * reached)
    again = load.keys / sum(r.context for r in requests) > 1.5
    memory = block_n * head_dim * 4 * busy / (MEMORY * (CACHE if again else 1.0))
    waiting = LATENCY * (1 + 0.8 * block_n / 64 + 0.33 * block_m * block_n / 4096)
    waiting /= math.sqrt(max(0.6, config.num_stages - 1))
    both = 0.55 * min(compute, memory)
    steps = (load.keys / block_n + load.tiles / 2) * kv_heads
    together = steps / busy * (slowest(compute, memory, waiting / beside) + both)
    alone = load.longest / block_n * slowest(compute, memory, waiting) * min(beside, 1.5)
    seconds = LAUNCH + slowest(together, alone)
    seconds += BEGIN * max(1.0, items / (device.processors * fit))
    seconds += CHAINED * load.chained * kv_heads / busy
    if load.most_splits:
        moved = 2 * load.partial_rows * kv_heads * head_dim * 4
        seconds += FOLDING + moved / (0.6 * ACCUMULATED) + A_SPLIT * load.most_splits
    return seconds


@lru_cache(maxsize=4096)
def _load(
    requests: tuple[Request, ...],
    group: int,
    kv_heads: int,
    block_m: int,
    strides: tuple[int, int, int],
    processors: int,
) -> Load:
    stride, count, block_n = strides
    found = list(tiles(requests, group, Config(stride, count, block_m, block_n, 4, 2)))
    enough = 2 * len(found) * kv_heads >= processors  # as `work_of` has it
    items = partial = most = chained = longest = 0
    for tile in found:
        splits = tile.splits
        if splits == 1 or (enough and tile.rows > FEW):
            items += 1
            chained += splits - 1
            longest = max(longest, tile.stop)
            continue
        items += splits
        partial += splits * tile.rows
        most = max(most, splits)
        longest = max(longest, min(tile.stop, tile.stride))
    keys = sum(t.stop for t in found)
    return Load(len(found), items, keys, longest, partial, most, chained)
