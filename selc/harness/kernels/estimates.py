"""What a tiled product takes, as far as its shape tells: rounds of blocks, steps along the depth.

A step takes what is slowest of three: the matrix unit, the memory that its tiles come from, and
the latency that the stages in flight do not hide. The rates are rounded fits to times that were
measured on one H200, of one deployment a family; on other devices ratios matter, and the tuner
learns how far they can be trusted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from selc.harness.call import Call

PEAK: Final = 989e12
"""Operations a second of the matrix units, in bfloat16."""
MEMORY: Final = 4.2e12
"""Bytes a second that device memory gives to loads."""
ACCUMULATED: Final = 3.5e12
"""Bytes a second of partial sums that are written and read again."""
REGISTERS: Final = 65536
MOST_REGISTERS: Final = 255
OVERHEAD: Final = 50
"""Registers of a thread besides its part of the tile."""
MOST_WARPS: Final = 64
RESERVED: Final = 1024
"""Bytes of shared memory that every block costs besides its own."""
EXPOSED: Final = 0.5
"""Part of the shorter of computing and waiting that two stages leave in the open, where no other
block fills it."""
UNEVEN: Final = 0.2
"""Part of the last, incomplete round that is not made up by blocks that ended early."""


@dataclass(frozen=True, slots=True)
class Device:
    """What a deployment says of its device, an H200 where it says nothing."""

    processors: int
    shared_memory: int

    @classmethod
    def of(cls, call: Call) -> Device:
        """From the facts of a call."""
        return cls(
            int(call.find("num_sms", default=132)), int(call.find("shared_memory", default=232448))
        )

    def resident(self, warps: int, shared: float, registers: float) -> int:
        """Blocks that a multiprocessor holds at a time; `registers` are those of a thread."""
        by_registers = REGISTERS / (32 * warps * min(MOST_REGISTERS, registers))
        by_memory = self.shared_memory / (shared + RESERVED)
        return max(1, int(min(by_memory, MOST_WARPS / warps, by_registers)))


@dataclass(frozen=True, slots=True)
class Rates:
    """What a family's kernel reaches."""

    compute: float
    """Part of the peak."""
    cache: float
    """How many times as fast as memory tiles come that another block has just read."""
    scattered: float
    """How much longer a step is where neighbours in time share no columns."""
    latency: float
    """Seconds of a step with one stage in flight."""
    begin: float
    """Seconds until a block's first step."""
    crowded: float = 1.0
    """Part of `compute` that eight warps on a tile too small for them reach."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A block's part of a product, as choices name it."""

    rows: int
    columns: int
    depth: int
    group: int
    warps: int
    stages: int


def product(
    device: Device,
    rates: Rates,
    tile: Tile,
    blocks: float,
    depth: int,
    filled: float,
    down: float,
    parts: int = 1,
    walks: bool = False,
) -> float:
    """Seconds of `blocks` tiles whose sums over `depth` are cut in `parts`.

    `filled` rows of a tile are real, and `down` tiles share the same columns. With `walks` a
    multiprocessor has one block that goes from tile to tile.
    """
    area, processors = tile.rows * tile.columns, device.processors
    steps = math.ceil(math.ceil(depth / tile.depth) / parts)
    shared = tile.stages * (tile.rows + tile.columns) * tile.depth * 2
    fit = 1 if walks else device.resident(tile.warps, shared, area / (32 * tile.warps) + OVERHEAD)
    programs = blocks * parts
    beside = min(fit, max(1.0, programs / processors))
    rounds = programs / (processors * fit)
    rounds = 1.0 if rounds <= 1 else rounds + UNEVEN * min(1.0, math.ceil(rounds) - rounds)
    swapped = tile.rows < 64 <= tile.columns
    height = tile.rows if swapped else max(tile.rows, 64)
    reached = rates.compute * (rates.crowded if tile.warps == 8 and area < 128 * 128 else 1.0)
    compute = 2 * height * tile.columns * tile.depth * beside / (PEAK / processors * reached)
    speed = MEMORY if down <= 1 else MEMORY * rates.cache
    moved = (filled + tile.columns) * tile.depth * 2 * beside
    memory = moved * min(processors, programs) / speed
    waiting = rates.latency / max(0.6, tile.stages - 1)
    step = slowest(compute, memory, waiting)
    if tile.stages <= 2 and beside < 2:
        step += EXPOSED * min(compute, waiting)
    if tile.group == 1 and down > 1:
        step *= 1 + rates.scattered
    return rounds * (steps * step + rates.begin)


def slowest(*seconds: float) -> float:
    """The largest of some times, or somewhat more where several are about as large."""
    return float(math.fsum(s**4 for s in seconds) ** 0.25)
