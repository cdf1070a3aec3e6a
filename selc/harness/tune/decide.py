"""The decision: a function of a journal's records and of nothing else.

So every rank that has the journal decides alike, and a decision can be looked at again without
kernels or a device. Equal costs are ordered by the tuples' values in the order of the legal ones.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from selc.harness.tune.ledger import Ledger, center
from selc.harness.tune.problem import Candidate

RESAMPLES: Final = 400
ENDS: Final = (0.025, 0.975)


@dataclass(frozen=True, slots=True)
class Ratio:
    """A quotient of two costs with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(slots=True)
class Story:
    """What a journal says of one family."""

    problem: Mapping[str, Any]
    choices: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    candidates: dict[tuple[int, ...], Candidate] = field(default_factory=dict)
    ledger: Ledger = field(default_factory=Ledger)
    ends: list[Mapping[str, Any]] = field(default_factory=list)

    @property
    def family(self) -> str:
        """Its name."""
        return str(self.problem["family"])

    @property
    def default(self) -> Candidate:
        """The default tuple."""
        d = self.problem["default"]
        return Candidate(tuple(d["values"]), tuple(d["choices"]))

    @property
    def stock(self) -> tuple[int, ...]:
        """The choices of the selection without pins; empty if it refuses a call."""
        return tuple(self.problem["stock"])

    def assignment(self, candidate: Candidate) -> dict[str, Any]:
        """A tuple by name."""
        rows = zip(self.problem["parameters"], candidate.values, strict=True)
        return {name: values[i] for (name, values), i in rows}


@dataclass(frozen=True, slots=True)
class Decision:
    """A family's result for one workload, or for all together."""

    target: str
    winner: Candidate | None
    cost: float | None = None
    """Seconds of all calls, with their counts."""
    runner_up: Candidate | None = None
    gap: Ratio | None = None
    """The runner-up's cost over the winner's."""
    default: float | None = None
    gain: Ratio | None = None
    """The default tuple's cost over the winner's."""
    stock: float | None = None
    price: Ratio | None = None
    """The winner's cost over the stock selection's."""


def stories(records: Iterable[Mapping[str, Any]]) -> list[Story]:
    """The families of a journal, in its order."""
    out: dict[str, Story] = {}
    for record in records:
        kind = record["kind"]
        if kind == "problem":
            out.setdefault(record["family"], Story(record))
        elif kind in ("choice", "candidate", "sample", "end"):
            story = out[record["family"]]
            if kind == "choice":
                story.choices[record["number"]] = record["choice"]
            elif kind == "candidate":
                made = Candidate(tuple(record["values"]), tuple(record["choices"]))
                story.candidates.setdefault(made.values, made)
            elif kind == "sample":
                story.ledger.add(record)
            else:
                story.ends.append(record)
    return list(out.values())


def decide(story: Story, target: int = 0) -> Decision:
    """The best of the tuples that were measured on every call of a workload."""
    name = story.problem["targets"][target]
    weights = [c["weights"][target] for c in story.problem["calls"]]
    ranked = rank(story, weights)
    if not ranked:
        return Decision(name, None)
    cost, winner = ranked[0]
    other = next((c for _, c in ranked[1:] if _differ(c.choices, winner.choices, weights)), None)
    ledger = story.ledger
    default = ledger.cost(story.default.choices, weights)
    stock = ledger.cost(story.stock, weights) if story.stock else None

    def over(one: Sequence[int], two: Sequence[int]) -> Ratio:
        return ratio(ledger, weights, one, two)

    return Decision(
        name,
        winner,
        cost,
        other,
        None if other is None else over(other.choices, winner.choices),
        default,
        None if default is None else over(story.default.choices, winner.choices),
        stock,
        None if stock is None else over(winner.choices, story.stock),
    )


def rank(story: Story, weights: Sequence[float]) -> list[tuple[float, Candidate]]:
    """The tuples with a known cost, cheapest first.

    Where some were measured against each other only those compete: a time from elsewhere in the
    run may be lucky.
    """
    rows = []
    for candidate in {**story.candidates, story.default.values: story.default}.values():
        cost = story.ledger.cost(candidate.choices, weights)
        if cost is not None:
            rows.append((not compared(story.ledger, candidate.choices, weights), cost, candidate))
    rows.sort(key=lambda r: (r[0], r[1], r[2].values))
    return [(cost, candidate) for _, cost, candidate in rows]


def compared(ledger: Ledger, choices: Sequence[int], weights: Sequence[float]) -> bool:
    """Whether every launch that counts was measured in a comparison."""
    pairs = [p for p, w in zip(enumerate(choices), weights, strict=True) if w > 0]
    return all(p in ledger.entries and ledger.entries[p].paired for p in pairs)


def ratio(
    ledger: Ledger, weights: Sequence[float], above: Sequence[int], below: Sequence[int]
) -> Ratio:
    """How many times as much one row of choices costs as another.

    Rounds are drawn again with replacement, the same for both where both ran in the same ones, so
    that what disturbs a round cancels out, and equal choices have no part in the difference.
    """
    source = random.Random(0)  # noqa: S311
    sides = [
        (w, _aligned(ledger, call, a, b))
        for call, (w, a, b) in enumerate(zip(weights, above, below, strict=True))
        if w > 0
    ]
    value = _quotient((w, center(a), center(b)) for w, (a, b, _) in sides)
    drawn = []
    for _ in range(RESAMPLES):
        parts = []
        for weight, (a, b, together) in sides:
            here = [int(source.random() * len(a)) for _ in a]
            there = here if together else [int(source.random() * len(b)) for _ in b]
            parts.append((weight, center(a[i] for i in here), center(b[i] for i in there)))
        drawn.append(_quotient(parts))
    drawn.sort()
    low, high = (drawn[round(e * (len(drawn) - 1))] for e in ENDS)
    return Ratio(value, min(low, value), max(high, value))


def matrix(story: Story, decisions: Sequence[Decision]) -> list[list[float | None]]:
    """What each workload's tuple (rows) costs on each workload, against that one's own tuple."""
    out: list[list[float | None]] = []
    for row in decisions:
        cells: list[float | None] = []
        for column in decisions:
            at = story.problem["targets"].index(column.target)
            weights = [c["weights"][at] for c in story.problem["calls"]]
            cost = None if row.winner is None else story.ledger.cost(row.winner.choices, weights)
            cells.append(cost / column.cost if cost is not None and column.cost else None)
        out.append(cells)
    return out


def _aligned(
    ledger: Ledger, call: int, above: int, below: int
) -> tuple[list[float], list[float], bool]:
    """The times of two choices on a call, and whether they are of the same rounds."""
    a, b = ledger.entries[call, above], ledger.entries[call, below]
    one: list[float] = []
    two: list[float] = []
    for number in sorted(set(a.paired) & set(b.paired)):
        for x, y in zip(a.paired[number], b.paired[number], strict=False):
            one.append(x)
            two.append(y)
    if above == below and not one:
        return a.best, a.best, True
    return (one, two, True) if one else (a.best, b.best, False)


def _quotient(parts: Iterable[tuple[float, float, float]]) -> float:
    rows = list(parts)
    return math.fsum(w * a for w, a, _ in rows) / math.fsum(w * b for w, _, b in rows)


def _differ(one: Sequence[int], other: Sequence[int], weights: Sequence[float]) -> bool:
    return any(a != b for a, b, w in zip(one, other, weights, strict=True) if w > 0)
