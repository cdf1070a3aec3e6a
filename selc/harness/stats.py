"""Medians and how sure they are."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

NORMAL: Final = 1.96
"""Standard deviations on either side that hold 95 % of a normal distribution."""


class Spread(NamedTuple):
    """What some repetitions say about a time."""

    median: float
    low: float
    high: float
    """Ends of the 95 % bootstrap interval of the median."""
    mad: float
    """Median absolute deviation."""
    variance: float
    """Of the bootstrapped median."""


def median(values: Sequence[float]) -> float:
    """The middle value, or the mean of the two in the middle."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least a share of all do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def spread(values: Sequence[float]) -> Spread:
    """Median, MAD, and the bootstrap of the median.

    Nothing is drawn: the median of a resample is one of the values, and with which probability
    follows from the binomial distribution.
    """
    ordered = sorted(values)
    middle = median(ordered)
    weights = _weights(len(ordered))
    mean = math.fsum(w * x for w, x in zip(weights, ordered, strict=True))
    variance = math.fsum(w * (x - mean) ** 2 for w, x in zip(weights, ordered, strict=True))
    mad = median([abs(x - middle) for x in ordered])
    low, high = _at(ordered, weights, 0.025), _at(ordered, weights, 0.975)
    return Spread(middle, min(low, middle), max(high, middle), mad, variance)


def _at(ordered: Sequence[float], weights: Sequence[float], share: float) -> float:
    reached = 0.0
    for value, weight in zip(ordered, weights, strict=True):
        reached += weight
        if reached >= share:
            return value
    return ordered[-1]


@lru_cache(maxsize=64)
def _weights(count: int) -> tuple[float, ...]:
    """The probability of each order statistic to be the upper median of a resample."""
    need = count // 2 + 1

    def reaches(rank: int) -> float:
        """The probability that at least `need` of the draws are among the lowest `rank`."""
        p = rank / count
        return math.fsum(
            math.comb(count, k) * p**k * (1 - p) ** (count - k) for k in range(need, count + 1)
        )

    upto = [reaches(rank) for rank in range(count + 1)]
    return tuple(b - a for a, b in itertools.pairwise(upto))
