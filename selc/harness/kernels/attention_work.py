"""What an attention launch does, as lists of integers that its kernels read.

A tile is up to BLOCK_M rows of one request: its tokens times the query heads that share keys. An
item is a tile with some of its splits. Either one item folds all splits of a tile in their order,
or every split is an item that leaves a partial result, and a second kernel folds those in the same
order. Both give the same bits, so that which of them is taken may follow the batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from selc.harness.call import Request
from selc.harness.kernels.splits import Config

ITEM: Final = 12
"""Integers of an item, padded to a multiple of 16 bytes: see `Tile.item`."""
FOLD: Final = 4
"""Integers of a fold: first partial row, partial rows between splits, splits, row of the output."""
FEW: Final = 16
"""Rows of a tile up to which partial results are small beside the keys."""


@dataclass(frozen=True, slots=True)
class Work:
    """Items, longest first, folds, and how many partial rows there are."""

    items: list[tuple[int, ...]]
    folds: list[tuple[int, int, int, int]]
    partial_rows: int

    @property
    def most_splits(self) -> int:
        """The most splits that a fold has."""
        return max((f[2] for f in self.folds), default=0)


@dataclass(frozen=True, slots=True)
class Tile:
    """Rows `first` to `first + rows` of a request, counted over tokens and heads."""

    index: int  # of the request
    row: int  # of the output, where the request begins
    position: int  # of the request's first token here
    first: int
    rows: int
    stop: int  # one past the last key that a row sees
    stride: int

    @property
    def splits(self) -> int:
        """How many splits have a key for some row."""
        return -(-self.stop // self.stride)

    def item(self, start: int, stop: int, partial: int) -> tuple[int, ...]:
        """Keys from `start` to `stop`; `partial` is the first partial row, or -1."""
        head = (self.row, self.index, self.position, self.first, self.rows)
        return (*head, start, stop, self.stride, partial, 0, 0, 0)


def tiles(requests: tuple[Request, ...], group: int, config: Config) -> Iterator[Tile]:
    """The tiles of all requests."""
    row = 0
    for index, request in enumerate(requests):
        position = request.context - request.rows
        stride = config.stride(request.context)
        for first in range(0, request.rows * group, config.block_m):
            rows = min(config.block_m, request.rows * group - first)
            stop = position + (first + rows - 1) // group + 1
            yield Tile(index, row, position, first, rows, stop, stride)
        row += request.rows


def work_of(
    requests: tuple[Request, ...], group: int, kv_heads: int, config: Config, processors: int
) -> Work:
    """The work of a launch on a device with so many multiprocessors."""
    found = list(tiles(requests, group, config))
    enough = 2 * len(found) * kv_heads >= processors
    items: list[tuple[int, ...]] = []
    folds: list[tuple[int, int, int, int]] = []
    partial = 0
    for tile in found:
        if tile.splits == 1 or (enough and tile.rows > FEW):
            items.append(tile.item(0, tile.stop, -1))
            continue
        for number in range(tile.splits):
            start = number * tile.stride
            stop = min(start + tile.stride, tile.stop)
            items.append(tile.item(start, stop, partial + number * tile.rows))
        for at in range(tile.rows):
            token, member = divmod(tile.first + at, group)
            splits = -(-(tile.position + token + 1) // tile.stride)
            out = (tile.row + token) * group + member
            folds.append((partial + at, tile.rows, splits, out))
        partial += tile.splits * tile.rows
    items.sort(key=lambda item: item[5] - item[6])
    return Work(items, folds, partial)
