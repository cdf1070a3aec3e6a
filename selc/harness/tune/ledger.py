"""What was measured, by launch."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from selc.harness.stats import median
from selc.harness.tune.problem import Pair


@dataclass(slots=True)
class Entry:
    """A launch's times: those of the search, and those of each comparison by its number."""

    search: list[float] = field(default_factory=list)
    paired: dict[int, list[float]] = field(default_factory=dict)
    failure: str = ""

    @property
    def every(self) -> list[float]:
        """All times."""
        return [*self.search, *(s for times in self.paired.values() for s in times)]

    @property
    def best(self) -> list[float]:
        """The times that were taken in comparisons; those of the search if there are none."""
        return [s for times in self.paired.values() for s in times] or self.search


@dataclass(slots=True)
class Ledger:
    """The times of one family."""

    entries: dict[Pair, Entry] = field(default_factory=dict)

    def add(self, record: Mapping[str, Any]) -> None:
        """Take a `sample` record in."""
        entry = self.entries.setdefault((record["call"], record["choice"]), Entry())
        if record["compare"] is None:
            entry.search += record["seconds"]
        else:
            entry.paired.setdefault(record["compare"], []).extend(record["seconds"])
        entry.failure = entry.failure or record["failure"]

    def known(self, pair: Pair) -> bool:
        """Whether a launch was measured, or has failed."""
        entry = self.entries.get(pair)
        return entry is not None and bool(entry.failure or entry.search or entry.paired)

    def failed(self, choices: Sequence[int]) -> str:
        """Why a row of choices cannot be used; empty if nothing says so."""
        for pair in enumerate(choices):
            entry = self.entries.get(pair)
            if entry is not None and entry.failure:
                return entry.failure
        return ""

    def seconds(self, pair: Pair) -> float | None:
        """The time of a launch."""
        entry = self.entries.get(pair)
        if entry is None or entry.failure or not entry.best:
            return None
        return center(entry.best)

    def cost(self, choices: Sequence[int], weights: Sequence[float]) -> float | None:
        """What a row of choices costs, if every launch that counts was measured."""
        total = 0.0
        for pair, weight in zip(enumerate(choices), weights, strict=True):
            if weight == 0:
                continue
            seconds = self.seconds(pair)
            if seconds is None:
                return None
            total += weight * seconds
        return total

    def spread(self) -> float:
        """The relative deviation of one round, as all launches show it together."""
        rows = [e.every for e in self.entries.values() if len(e.every) > 1]
        deviations = [abs(s / median(row) - 1) for row in rows for s in row]
        scale = 1 + 0.5 / max(1.0, median([len(r) for r in rows]) - 1) if rows else 1.0
        return 1.48 * median(deviations) * scale if deviations else 0.02


def center(values: Iterable[float]) -> float:
    """The mean of the middle half: outliers count for nothing, and little is thrown away."""
    ordered = sorted(values)
    cut = len(ordered) // 4
    kept = ordered[cut : len(ordered) - cut] if len(ordered) > 2 else ordered
    if len(ordered) == 3:
        kept = ordered[1:2]
    return math.fsum(kept) / len(kept)
