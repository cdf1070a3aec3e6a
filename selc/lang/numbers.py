"""Numbers that kernels' hosts compute with and Python does not have."""

from __future__ import annotations

import math
import struct


def float32(x: float) -> float:
    """The binary32 number nearest to `x` (ties to even); infinite beyond its range."""
    wide = float(x)
    try:
        (narrow,) = struct.unpack("=f", struct.pack("=f", wide))
    except OverflowError:
        return math.copysign(math.inf, wide)
    return float(narrow)
