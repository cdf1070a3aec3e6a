"""Where the keys of a request are split."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from selc.harness.kernels.paging import number
from selc.harness.protocol import Unsupported

PARAMETERS: Final = (
    "split_stride",
    "num_splits",
    "BLOCK_M",
    "BLOCK_N",
    "num_warps",
    "num_stages",
)
LARGEST: Final = 1 << 30
"""A stride that no request reaches."""


@dataclass(frozen=True, slots=True)
class Config:
    """One configuration. It is the same for every row of a launch.

    A stride puts the boundaries at its multiples in a request's own key positions. A count divides
    a request's tiles of keys evenly, so its boundaries move with the length.
    """

    split_stride: int
    num_splits: int
    block_m: int
    block_n: int
    num_warps: int
    num_stages: int

    def stride(self, context: int) -> int:
        """The keys of a split of a request that has so many."""
        if self.split_stride:
            return self.split_stride
        if self.num_splits <= 1:
            return LARGEST
        tiles = -(-context // self.block_n)
        return -(-tiles // self.num_splits) * self.block_n


def config_of(choice: Mapping[str, Any]) -> Config:
    """The configuration that a choice names.

    Raises:
        Unsupported: a number is out of range.
    """
    config = Config(
        split_stride=number(choice, "split_stride", 0),
        num_splits=number(choice, "num_splits", 1),
        block_m=number(choice, "BLOCK_M", 16),
        block_n=number(choice, "BLOCK_N", 64),
        num_warps=number(choice, "num_warps", 4),
        num_stages=number(choice, "num_stages", 3),
    )
    if min(config.split_stride, config.num_splits) < 0:
        raise Unsupported("split_stride and num_splits are not negative")
    for name, value in (("BLOCK_M", config.block_m), ("BLOCK_N", config.block_n)):
        if value < 16 or value & (value - 1):
            raise Unsupported(f"{name} is {value}, not a power of two from 16 up")
    return config
