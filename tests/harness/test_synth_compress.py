"""Steps as a few calls: counts add up, totals stay near, the rare and large is not lost."""

from __future__ import annotations

import math
import random

import pytest

from selc.harness.synth.compress import Point, compress


def points(count: int, seed: int) -> list[Point]:
    draw = random.Random(seed)
    out = []
    for _ in range(count):
        batch = draw.randint(1, 60)
        rows = batch if draw.random() < 0.9 else draw.randint(100, 8192)
        keys = rows + int(draw.lognormvariate(8, 1)) * batch
        out.append(Point((rows, keys, batch), (rows, keys), 1e-3 + rows * 1e-6))
    return out


@pytest.mark.parametrize("most", [1, 2, 7, 24, 100])
def test_counts_add_up_and_totals_stay_near(most: int) -> None:
    for seed in range(3):
        given = points(3000, seed)
        chosen = compress(given, most)
        assert len(chosen) <= most
        assert len({index for index, _ in chosen}) == len(chosen)
        assert sum(count for _, count in chosen) == len(given)
        assert all(count > 0 for _, count in chosen)
        if most < 7:
            continue
        for k in (0, 1):
            true = math.fsum(p.totals[k] for p in given)
            kept = math.fsum(given[i].totals[k] * count for i, count in chosen)
            assert abs(kept / true - 1) < 0.02


def test_few_points_stay_as_they_are() -> None:
    given = [Point((v,), (v,), 1.0) for v in (5, 9, 5, 5, 200)]
    chosen = compress(given, 10)
    assert sorted((given[i].features[0], count) for i, count in chosen) == [
        (5, 3),
        (9, 1),
        (200, 1),
    ]
    assert compress([], 4) == []


def test_large_steps_are_kept_apart() -> None:
    given = [Point((8,), (8,), 1.0)] * 500 + [Point((8192,), (8192,), 20.0)] * 3
    chosen = compress(given, 2)
    assert sorted((given[i].features[0], count) for i, count in chosen) == [(8, 500), (8192, 3)]


def test_neighbouring_numbers_can_be_split() -> None:
    given = [Point((float(v),), (1.0,), 1.0) for v in (2**52, 2**52 + 1) * 3]
    assert sum(count for _, count in compress(given, 4)) == 6
