"""A few calls in the place of many: what is measured of a workload with thousands of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from selc.harness.call import Call


@dataclass(frozen=True, slots=True)
class Stand:
    """A call that is measured, with its weight in each workload, and how many it stands for."""

    call: Call
    weights: tuple[float, ...]
    distinct: int = 1


def representatives(stands: Sequence[Stand], works: Sequence[float], most: int) -> list[Stand]:
    """At most `most` of some calls; each of the others is counted with the one most like it.

    A call that moves more than the one that stands for it counts for more in proportion, so that
    the work adds up. `works` are estimates of the least time of each call.
    """
    if len(stands) <= most:
        return list(stands)
    places = [_place(s.call) for s in stands]
    weights = [math.fsum(s.weights) * w for s, w in zip(stands, works, strict=True)]
    chosen = [max(range(len(stands)), key=lambda i: (weights[i], -i))]
    nearest = [_apart(p, places[chosen[0]]) for p in places]
    while len(chosen) < most:
        best = max(range(len(stands)), key=lambda i: (weights[i] * nearest[i], -i))
        if nearest[best] == 0.0:
            break
        chosen.append(best)
        nearest = [min(n, _apart(p, places[best])) for n, p in zip(nearest, places, strict=True)]
    totals = {i: [0.0] * len(stands[0].weights) for i in chosen}
    counted = dict.fromkeys(chosen, 0)
    for index, stand in enumerate(stands):
        owner = min(chosen, key=lambda i: (_apart(places[index], places[i]), i))
        scale = works[index] / works[owner] if works[owner] > 0 else 1.0
        counted[owner] += 1
        for target, weight in enumerate(stand.weights):
            totals[owner][target] += weight * scale
    return [Stand(stands[i].call, tuple(totals[i]), counted[i]) for i in sorted(chosen)]


def _place(call: Call) -> dict[str, Any]:
    place: dict[str, Any] = {"rows": math.log2(1 + call.rows)}
    place["keys"] = math.log2(1 + sum(r.context for r in call.requests))
    place["requests"] = math.log2(1 + len(call.requests))
    for name, value in call.inputs.items():
        number = type(value) in (int, float) and value >= 0
        place["input " + name] = math.log2(1 + value) if number else value
    return place


def _apart(one: dict[str, Any], other: dict[str, Any]) -> float:
    total = 0.0
    for name, value in one.items():
        there = other.get(name)
        if isinstance(value, float) and isinstance(there, float):
            total += (value - there) ** 2
        elif value != there:
            total += 64.0
    return math.sqrt(total)
