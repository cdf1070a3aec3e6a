"""Many steps as a few: groups of similar ones, each with one of its own steps to stand for it.

The count of a group is the number of its steps, so that counts add up to all steps. Who stands for
a group is chosen so that the totals stay near: what one group gets too much the next gets less.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

NEAREST: Final = 64
"""Members near a group's middle that may stand for it."""


@dataclass(frozen=True, slots=True)
class Point:
    """A step: where it lies among others, what must add up, and how long it takes."""

    features: tuple[float, ...]
    totals: tuple[float, ...]
    seconds: float


def compress(points: Sequence[Point], most: int) -> list[tuple[int, int]]:
    """At most `most` of the points, each with the number of points that it stands for."""
    if not points:
        return []
    places = [tuple(math.log2(1.0 + f) for f in p.features) for p in points]
    groups = _groups(points, places, most)
    groups.sort(key=lambda g: (-len(g), g[0]))
    whole = [math.fsum(p.totals[k] for p in points) or 1.0 for k in range(len(points[0].totals))]
    owed = [0.0] * len(whole)
    out = []
    for group in groups:
        means = [
            math.fsum(points[i].totals[k] for i in group) / len(group) for k in range(len(whole))
        ]
        best = min(
            _near_middle(group, places),
            key=lambda i: (_error(points[i], group, means, owed, whole), i),
        )
        for k, mean in enumerate(means):
            owed[k] += len(group) * (points[best].totals[k] - mean)
        out.append((best, len(group)))
    return sorted(out)


def _groups(
    points: Sequence[Point], places: Sequence[tuple[float, ...]], most: int
) -> list[list[int]]:
    """Split the worst group at its mean along its widest feature, again and again."""
    first = list(range(len(points)))
    queue = [(*_spread(first, points, places), 0, first)]
    numbers = 1
    while len(queue) < most and queue[0][0] < 0:
        _, feature, middle, _, group = heapq.heappop(queue)
        halves = (
            [i for i in group if places[i][feature] <= middle],
            [i for i in group if places[i][feature] > middle],
        )
        for half in halves:
            heapq.heappush(queue, (*_spread(half, points, places), numbers, half))
            numbers += 1
    return [entry[-1] for entry in queue]


def _spread(
    group: Sequence[int], points: Sequence[Point], places: Sequence[tuple[float, ...]]
) -> tuple[float, int, float]:
    """How far a group spreads, weighted by time and negative; along what, and the mean there."""
    best = (0.0, 0, 0.0)
    weight = math.fsum(points[i].seconds for i in group)
    for feature in range(len(places[0])):
        values = [places[i][feature] for i in group]
        low, high = min(values), max(values)
        if low == high:
            continue
        mean = math.fsum(points[i].seconds * v for i, v in zip(group, values, strict=True)) / weight
        mean = min(max(mean, low), math.nextafter(high, low))
        spread = math.fsum(
            points[i].seconds * (v - mean) ** 2 for i, v in zip(group, values, strict=True)
        )
        best = min(best, (-spread, feature, mean))
    return best


def _near_middle(group: list[int], places: Sequence[tuple[float, ...]]) -> list[int]:
    size = len(places[0])
    middle = [math.fsum(places[i][k] for i in group) / len(group) for k in range(size)]
    return heapq.nsmallest(NEAREST, group, key=lambda i: (math.dist(places[i], middle), i))


def _error(
    point: Point,
    group: Sequence[int],
    means: Sequence[float],
    owed: Sequence[float],
    whole: Sequence[float],
) -> float:
    return math.fsum(
        ((o + len(group) * (value - mean)) / all_) ** 2
        for value, mean, o, all_ in zip(point.totals, means, owed, whole, strict=True)
    )
