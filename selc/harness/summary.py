"""From times of launches to what each tuple costs on a workload."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from selc.harness.call import Call
from selc.harness.candidates import Candidate
from selc.harness.executor import Job
from selc.harness.stats import NORMAL, Spread, spread


@dataclass(slots=True)
class Times:
    """What is known of one launch."""

    seconds: list[float] = field(default_factory=list)
    failure: str = ""
    how: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """A family's part of a benchmark."""

    family: str
    calls: tuple[tuple[Call, float], ...]
    work: tuple[tuple[int, int], ...]
    """Bytes and operations of every call."""
    candidates: tuple[Candidate, ...]
    legal: int
    jobs: tuple[tuple[Job, ...], ...]
    """By candidate and call; none for a candidate that is refused."""
    refused: Mapping[str, str]
    """Why the stock selection makes no choice for some call."""

    def distinct(self) -> list[Job]:
        """Every launch once, those of the most frequent calls first."""
        found: dict[str, Job] = {}
        for column in range(len(self.calls)):
            for row in filter(None, self.jobs):
                found.setdefault(row[column].key, row[column])
        return list(found.values())


class Cell(NamedTuple):
    """A tuple on a call."""

    call: int
    spread: Spread
    rounds: int
    how: str


@dataclass(frozen=True, slots=True)
class Line:
    """What a tuple costs."""

    candidate: Candidate
    total: float | None
    """Seconds of all calls with their counts; None if it failed on one."""
    half: float = 0.0
    """Half the width of the total's 95 % interval."""
    bandwidth: float = 0.0
    cells: tuple[Cell, ...] = ()
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Summary:
    """A family's results."""

    plan: Plan
    measured: tuple[int, ...]
    """The calls that were measured for every tuple, and that totals are of."""
    lines: tuple[Line, ...]
    """Fastest first, failed ones last."""

    def named(self, name: str) -> Line | None:
        """The line of a tuple, if it has a total."""
        for line in self.lines:
            if line.candidate.name == name and line.total is not None:
                return line
        return None

    @property
    def share(self) -> float:
        """The part of the workload's calls that totals are of."""
        every = math.fsum(count for _, count in self.plan.calls)
        return math.fsum(self.plan.calls[c][1] for c in self.measured) / every

    @property
    def rounds(self) -> int:
        """The fewest rounds that a time rests on."""
        return min((c.rounds for line in self.lines for c in line.cells), default=0)


def summarize(plan: Plan, times: Mapping[str, Times]) -> Summary:
    """The tuples of a family by what they cost on the calls that all of them were measured on."""
    rows = [[times.get(job.key) for job in row] for row in plan.jobs]
    measured = [c for c in range(len(plan.calls)) if all(_known(row[c]) for row in rows if row)]
    lines = [
        _line(plan, candidate, row, measured)
        for candidate, row in zip(plan.candidates, rows, strict=True)
    ]
    lines.sort(key=lambda line: (line.total is None, line.total or 0.0))
    return Summary(plan, tuple(measured), tuple(lines))


def _known(times: Times | None) -> bool:
    return times is not None and bool(times.seconds or times.failure)


def _line(
    plan: Plan, candidate: Candidate, row: Sequence[Times | None], measured: Sequence[int]
) -> Line:
    if candidate.name in plan.refused:
        return Line(candidate, None, failure=plan.refused[candidate.name])
    cells: list[Cell] = []
    for column in measured:
        times = row[column]
        assert times is not None
        if times.failure:
            return Line(candidate, None, failure=times.failure)
        cells.append(Cell(column, spread(times.seconds), len(times.seconds), times.how))
    if not cells:
        return Line(candidate, None)
    counts = [plan.calls[c.call][1] for c in cells]
    total = math.fsum(n * c.spread.median for n, c in zip(counts, cells, strict=True))
    variance = math.fsum(n * n * c.spread.variance for n, c in zip(counts, cells, strict=True))
    moved = math.fsum(n * plan.work[c.call][0] for n, c in zip(counts, cells, strict=True))
    half = NORMAL * math.sqrt(variance)
    return Line(candidate, total, half, moved / total if total else 0.0, tuple(cells))


def ratio(line: Line, base: Line | None) -> float | None:
    """How many times as long as another tuple one takes."""
    if base is None or not base.total or line.total is None:
        return None
    return line.total / base.total
