"""Requests of a battery: the one whose bits are watched, and what it is batched with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from selc.harness.bits.limits import Limits
from selc.harness.call import Request

MIXES: Final = ("short", "long", "mixed")
SHORT: Final = 64
"""The longest context of a short companion."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A request whose last `rows` tokens are watched. Alone, they are one chunk."""

    label: str
    seed: int
    context: int
    rows: int
    magnitude: str = "normal"

    def request(self, rows: int = 0, back: int = 0, cached: int = 0) -> Request:
        """The request with some rows computed, ending `back` tokens before its last."""
        context = self.context - back
        return Request(self.seed, min(rows or self.rows, context), context, cached)


@dataclass(frozen=True, slots=True)
class Cell:
    """One launch with the probe at place `at` of the batch.

    `given` are values of inputs that no request sets. `again` makes the tensors anew and launches
    twice. A cell with `obstacle` cannot be built; it says why.
    """

    kind: str
    detail: str
    probe: Probe
    batch: tuple[Request, ...]
    at: int = 0
    extra: Mapping[str, Any] = field(default_factory=dict)
    given: Mapping[str, Any] = field(default_factory=dict)
    again: bool = False
    obstacle: str = ""

    @property
    def name(self) -> str:
        """What reports call it."""
        return f"{self.kind}/{self.detail}/{self.probe.label}"


def probes(limits: Limits, quick: bool) -> list[Probe]:
    """A short and a long context, a tiny one, and one with values of mixed magnitude."""
    few = 2 * limits.watched
    sizes = [("short", few + 1, "normal"), ("long", limits.long, "normal"), ("tiny", 3, "normal")]
    if not quick:
        sizes.append(("extreme", few + 5, "extreme"))
    return [_probe(k, *each, limits.watched, limits) for k, each in enumerate(sizes)]


def whole(limits: Limits) -> Probe:
    """A long context of which as many rows as possible are watched."""
    return _probe(10, "whole", limits.long, "normal", limits.long, limits)


def _probe(k: int, label: str, size: int, magnitude: str, rows: int, limits: Limits) -> Probe:
    context = max(limits.longest[0], min(size, limits.most_context))
    rows = max(min(rows, context, limits.most_rows), min(limits.rows[0], context))
    if rows >= limits.step:
        rows -= rows % limits.step
    return Probe(label, 7001 + k, context, rows, magnitude)


def padded(cell: Cell, limits: Limits) -> Cell:
    """The cell with one more companion, where rows have to be a multiple of something."""
    lacking = -sum(r.rows for r in cell.batch) % limits.step
    if not lacking or len(cell.batch) >= limits.count[1]:
        return cell
    context = max(lacking, limits.longest[0])
    return replace(cell, batch=(*cell.batch, Request(9000, lacking, context)))


def others(
    mix: str, count: int, limits: Limits, form: str = "both", first: int = 1
) -> list[Request]:
    """Companions; the same ones come first in every longer list.

    `form` says what is computed: "decode" one row each, "whole" all rows, "both" by turns.
    """
    out = []
    for i in range(count):
        half = max(1, limits.long // 2)
        long = half + i * 613 % half
        short = 1 + i * 37 % SHORT
        size = {"short": short, "long": long, "mixed": long if i % 2 else short, "one": 1}[mix]
        context = max(limits.longest[0], min(size, limits.most_context))
        whole = form == "whole" or (form == "both" and i % 3 != 1)
        rows = min(context, limits.most_rows) if whole else 1
        out.append(Request(1000 * first + i, rows, context))
    return out


def joined(
    probe: Request, companions: Sequence[Request], place: int, limits: Limits
) -> tuple[tuple[Request, ...], int]:
    """A batch with the probe at a place; companions compute less, or are left out, to fit."""
    left = limits.rows[1] - probe.rows
    keys = limits.total[1] - probe.context
    kept: list[Request] = []
    room = min(len(companions), limits.count[1] - 1)
    for k, other in enumerate(companions[:room]):
        after = room - k - 1
        rows = min(other.rows, left - after) if left > after else min(1, left)
        if rows < 1 or other.context > keys:
            break
        kept.append(Request(other.seed, rows, other.context, other.cached))
        left, keys = left - rows, keys - other.context
    at = min(place, len(kept))
    return (*kept[:at], probe, *kept[at:]), at
