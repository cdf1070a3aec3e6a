"""What a synthetic profile stands for, what it lacks, and how far its totals are off."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from selc.diag.diagnostic import Diagnostic, Refused, Severity
from selc.diag.table import table
from selc.harness.synth.arrivals import Jobs
from selc.harness.synth.compress import Point
from selc.harness.synth.deployed import Asker
from selc.harness.synth.placed import CODE
from selc.harness.workload import WIDTH


@dataclass(slots=True)
class Family:
    """What the steps are to one selector."""

    asker: Asker
    places: list[tuple[int, int]]
    """Load and number of every step that is taken."""
    points: list[Point]
    left_out: Counter[str]


def told(family: Family, chosen: Sequence[tuple[int, int]], distinct: int) -> dict[str, Any]:
    """A family's part of the answer: how many calls, and how far the totals are off."""

    def error(k: int) -> float:
        true = math.fsum(p.totals[k] for p in family.points)
        kept = math.fsum(family.points[i].totals[k] * count for i, count in chosen)
        return kept / true - 1.0

    return {
        "family": family.asker.selector.family,
        "selector": family.asker.selector.hash,
        "distinct": distinct,
        "calls": len(family.points),
        "tokens_error": error(0),
        "keys_error": error(1) if family.asker.reads_lengths else None,
        "left_out": [
            {"steps": count, "why": why} for why, count in sorted(family.left_out.items())
        ],
    }


def warnings(families: Sequence[Family], made: Jobs) -> Iterator[Diagnostic]:
    """What the profile lacks.

    Raises:
        Refused: a selector takes no step at all.
    """
    for family in families:
        name = family.asker.selector.family
        for why, count in sorted(family.left_out.items()):
            message = f"the selector of `{name}` refuses {count} steps: {why}"
            hint = "describe a workload that the deployment admits, or widen its domain"
            if not family.points:
                raise Refused(Diagnostic("SEL952", message, help=hint))
            yield Diagnostic("SEL952", message + "; left out", severity=Severity.WARNING, help=hint)
        for unknown in family.asker.unknown:
            value = family.asker.names[unknown]
            yield Diagnostic(
                CODE,
                f"nothing says what `{unknown}` of `{name}` is in a batch: always {value!r}",
                severity=Severity.WARNING,
                help=f"state it in a description: `inputs: {{{unknown}: ...}}`",
            )
    if made.cut:
        yield Diagnostic(
            CODE,
            f"{made.cut} of {len(made.jobs)} requests were cut to the longest context",
            severity=Severity.WARNING,
            help="describe shorter ones, or compile for longer contexts",
        )


def text(answer: Mapping[str, Any]) -> Iterator[str]:
    """The answer for people."""
    calls = sum(f["distinct"] for f in answer["families"])
    yield f"{answer['written']}: {calls} calls"
    yield from (f"  {note}" for note in answer["notes"])
    head = ["load", "requests", "prompt", "cached", "output", "steps", "batch", "seconds"]
    rows = []
    for load in answer["loads"]:
        count = load["requests"]
        rows.append(
            [
                f"{load['load']:g}",
                str(count),
                f"{load['prompt_tokens'] / count:.0f}",
                f"{load['cached_tokens'] / load['prompt_tokens']:.1%}",
                f"{load['output_tokens'] / count:.0f}",
                str(load["steps"]),
                f"{load['mean_batch']:.1f}",
                f"{load['seconds']:.1f}" + ("" if load["finished"] else " (stopped)"),
            ]
        )
    yield from table(head, rows, WIDTH)
    rows = [
        [
            f["family"],
            str(f["calls"]),
            str(f["distinct"]),
            f"{f['tokens_error']:+.3%}",
            "-" if f["keys_error"] is None else f"{f['keys_error']:+.3%}",
            str(sum(each["steps"] for each in f["left_out"])),
        ]
        for f in answer["families"]
    ]
    yield from table(["family", "steps", "calls", "tokens", "keys", "left out"], rows, WIDTH)
