"""What `selc bench` prints and writes: a table, one JSON object, lines for every tuple and call."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from selc.diag.diagnostic import Diagnostic, Severity
from selc.diag.table import table
from selc.harness.candidates import MOST_LEGAL
from selc.harness.summary import Line, Summary, ratio

FORMAT: Final = 1
WIDTH: Final = 110
MOST: Final = 20
"""Tuples that a table lists besides those with a name."""
FAILED: Final = "SEL956"
MOST_WARNINGS: Final = 5


@dataclass(frozen=True, slots=True)
class Run:
    """A benchmark, finished or not."""

    device: Mapping[str, Any]
    clocks: Mapping[str, Any]
    ceilings: Mapping[str, float]
    rounds: int
    seconds: float
    summaries: tuple[Summary, ...]
    unfinished: str = ""
    """Why not everything was measured."""


def as_json(run: Run) -> dict[str, Any]:
    """The whole answer."""
    return {
        "format": FORMAT,
        "device": dict(run.device),
        "clocks": dict(run.clocks),
        "ceilings": dict(run.ceilings),
        "rounds": run.rounds,
        "seconds": run.seconds,
        "unfinished": run.unfinished,
        "families": [_family(s, run.ceilings) for s in run.summaries],
    }


def as_lines(run: Run) -> Iterator[dict[str, Any]]:
    """Every tuple on every call."""
    for summary in run.summaries:
        plan = summary.plan
        for line in summary.lines:
            for cell in line.cells:
                call, count = plan.calls[cell.call]
                moved, operations = plan.work[cell.call]
                yield {
                    "family": plan.family,
                    "tuple": line.candidate.name,
                    "inputs": dict(call.inputs),
                    "requests": len(call.requests),
                    "rows": call.rows,
                    "count": count,
                    "choice": dict(_job(summary, line, cell.call)),
                    "median": cell.spread.median,
                    "low": cell.spread.low,
                    "high": cell.spread.high,
                    "mad": cell.spread.mad,
                    "rounds": cell.rounds,
                    "how": cell.how,
                    "bytes": moved,
                    "flops": operations,
                }


def as_text(run: Run) -> str:
    """A table for each family."""
    device = run.device
    head = [f"{device.get('kind')} {device.get('name')}, torch {device.get('torch')}"]
    if device.get("kind") == "cpu":
        head.append(f"{device.get('threads')} thread, caches warm")
    else:
        head += [f"triton {device.get('triton')}", f"driver {device.get('driver')}"]
        head += [f"clock {run.clocks[n]['clocks.sm']} {n}" for n in run.clocks if run.clocks[n]]
    lines = [", ".join(head)]
    if run.ceilings:
        copy, product = run.ceilings["copy"], run.ceilings["matmul"]
        reached = (
            f"{product / 1e12:.3g} TFLOP/s" if product > 1e12 else f"{product / 1e9:.3g} GFLOP/s"
        )
        lines.append(f"measured in this run: copy {copy / 1e9:.4g} GB/s, matrix product {reached}")
    for summary in run.summaries:
        lines += ["", *_table(summary, run.ceilings)]
    if run.unfinished:
        lines += ["", run.unfinished]
    return "\n".join(lines)


def warnings(run: Run) -> list[Diagnostic]:
    """Tuples that failed, by reason; an error where none is left of a family."""
    out: list[Diagnostic] = []
    for summary in run.summaries:
        failed = Counter(line.failure for line in summary.lines if line.failure)
        worked = any(line.total is not None for line in summary.lines)
        severity = Severity.WARNING if worked or not failed else Severity.ERROR
        total = len(summary.lines)
        for reason, count in failed.most_common(MOST_WARNINGS):
            first = next(x.candidate.name for x in summary.lines if x.failure == reason)
            words = f"{count} of {total} candidates of `{summary.plan.family}` failed, as {first}"
            out.append(Diagnostic(FAILED, f"{words}: {reason}", severity=severity))
    return out


def write_all(run: Run, folder: Path) -> tuple[list[str], list[Diagnostic]]:
    """Write results and plots; the files' names, and what could not be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lines = "".join(json.dumps(line) + "\n" for line in as_lines(run))
        (folder / "results.jsonl").write_text(lines, "utf-8")
        (folder / "bench.json").write_text(json.dumps(as_json(run), indent=2) + "\n", "utf-8")
        (folder / "bench.txt").write_text(as_text(run) + "\n", "utf-8")
    except OSError as error:
        message = f"results cannot be written to `{folder}`: {error.strerror}"
        return [], [
            Diagnostic(
                "SEL915",
                message,
                help="name another folder; the answer that was printed is complete",
            )
        ]
    names = ["results.jsonl", "bench.json", "bench.txt"]
    try:
        from selc.harness import plots

        return names + plots.draw(run, folder), []
    except (ImportError, OSError) as error:
        message = f"no plots: {error}"
        hint = "`pip install 'selc[bench]'` has matplotlib"
        return names, [Diagnostic("SEL915", message, severity=Severity.WARNING, help=hint)]


def duration(seconds: float) -> str:
    """Four digits and a unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.4g} {unit}"
    return f"{seconds / 1e-9:.4g} ns"


def _family(summary: Summary, ceilings: Mapping[str, float]) -> dict[str, Any]:
    plan = summary.plan
    return {
        "family": plan.family,
        "calls": len(plan.calls),
        "calls_measured": len(summary.measured),
        "share_measured": summary.share,
        "legal": plan.legal,
        "launches": len(plan.distinct()),
        "tuples": [_tuple(line, summary, ceilings) for line in summary.lines],
    }


def _tuple(line: Line, summary: Summary, ceilings: Mapping[str, float]) -> dict[str, Any]:
    commitment = line.candidate.commitment
    copy = ceilings.get("copy")
    return {
        "name": line.candidate.name,
        "values": None if commitment is None else dict(commitment),
        "seconds": line.total,
        "half_width": line.half,
        "per_default": ratio(line, summary.named("default")),
        "per_stock": ratio(line, summary.named("stock")),
        "bytes_per_second": line.bandwidth,
        "of_copy": line.bandwidth / copy if copy else None,
        "failure": line.failure,
    }


def _table(summary: Summary, ceilings: Mapping[str, float]) -> Iterator[str]:
    plan = summary.plan
    yield f"{plan.family}: {_what(summary)}"
    default, stock = summary.named("default"), summary.named("stock")
    rows = []
    shown: Sequence[Line] = [line for line in summary.lines if line.total is not None]
    left = MOST
    for line in shown:
        if line.candidate.name.startswith("#"):
            left -= 1
            if left < 0:
                continue
        assert line.total is not None
        copy = ceilings.get("copy")
        rows.append(
            [
                line.candidate.name,
                duration(line.total),
                f"+-{line.half / line.total:.1%}",
                _times(ratio(line, default)),
                _times(ratio(line, stock)),
                f"{line.bandwidth / 1e9:.4g}",
                f"{line.bandwidth / copy:.1%}" if copy else "-",
                _values(line),
            ]
        )
    head = ["tuple", "time", "95 %", "/default", "/stock", "GB/s", "of copy", "pins and knobs"]
    yield from table(head, rows, WIDTH)
    if left < 0:
        yield f"  and {-left} slower ones"


def _what(summary: Summary) -> str:
    plan = summary.plan
    measured, every = len(summary.measured), len(plan.calls)
    calls = f"{every} distinct calls"
    if measured < every:
        calls = f"{measured} of {every} distinct calls ({summary.share:.0%} of the workload)"
    numbered = sum(c.name.startswith("#") for c in plan.candidates)
    tuples = f"{len(plan.candidates)} tuples"
    if plan.legal:
        more = " or more" if plan.legal >= MOST_LEGAL else ""
        tuples = f"{numbered + 1} of {plan.legal}{more} legal tuples and stock"
        if numbered + 1 < plan.legal:
            tuples += ", spread out"
    launches = len(plan.distinct())
    return f"{calls}, {tuples}; {launches} distinct launches, {summary.rounds} rounds"


def _values(line: Line) -> str:
    commitment = line.candidate.commitment
    if commitment is None:
        return "(adaptive)"
    return ", ".join(f"{n.rsplit('.', 1)[-1]}={v}" for n, v in commitment.items()) or "(none)"


def _times(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}x"


def _job(summary: Summary, line: Line, column: int) -> Mapping[str, Any]:
    index = next(i for i, c in enumerate(summary.plan.candidates) if c.name == line.candidate.name)
    return summary.plan.jobs[index][column].choice
