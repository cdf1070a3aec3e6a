"""Bounds of floats: every rounding is monotone, so the ends of a range bound what lies between."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from selc.ir.op import FAULTS, Op, TooWide, apply

Ends = tuple[int | float, ...]

MONOTONE: Final = frozenset(
    {Op.ADD, Op.SUB, Op.MUL, Op.TRUEDIV, Op.NEG, Op.POS, Op.FLOAT, Op.FLOAT32, Op.SQRT, Op.LOG2}
)
"""Operations that are monotone in each argument (quotients where the divisor keeps its sign)."""

ROUNDING: Final = frozenset({Op.INT, Op.CEIL, Op.FLOOR, Op.TRUNC, Op.ROUND})
"""Operations from numbers to integers that are monotone, and fail on infinities and NaN alone."""


def real_bounds(op: Op, args: Sequence[Ends]) -> tuple[float, float] | None:
    """Bounds of the floats that an operation makes of numbers between given ends.

    None where no finite bounds are known; with bounds, the result is neither infinite nor NaN.
    """
    if op is Op.TRUEDIV and not (min(args[1]) > 0 or max(args[1]) < 0):
        return None
    if op not in MONOTONE:
        return None
    seen: list[float] = []
    pairs = (
        [(x, y) for x in args[0] for y in args[1]] if len(args) == 2 else [(x,) for x in args[0]]
    )
    try:
        for corner in pairs:
            value = apply(op, None, corner)
            assert isinstance(value, (int, float))
            seen.append(float(value))
    except (*FAULTS, TooWide):
        return None
    if not all(math.isfinite(v) for v in seen):
        return None
    return min(seen), max(seen)


def rounded_bounds(op: Op, ends: Ends) -> tuple[int, int]:
    """Bounds of the integers that a rounding makes of numbers between given ends."""
    values = [apply(op, None, (x,)) for x in ends]
    assert all(isinstance(v, int) for v in values)
    return min(values), max(values)  # type: ignore[type-var,return-value]  # integers
