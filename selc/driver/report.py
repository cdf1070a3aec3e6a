"""The text output of `selc compile`, made from the JSON answer alone: a hit reads like a miss."""

from __future__ import annotations

import os
import shutil
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from selc.diag.spelling import arguments, spelt
from selc.diag.table import listing, table

Answer = Mapping[str, Any]

WIDTH: Final = 100
"""Used when the output is no terminal."""

MAX_GUARDS: Final = 24
LISTED: Final = 8
MAX_PATH: Final = 40


def report(answer: Answer, files: Sequence[str], reason: str | None, width: int = 0) -> str:
    """The whole report."""
    size = max(60, min(width or shutil.get_terminal_size((WIDTH, 24)).columns, 160))
    parts = [
        _head(answer),
        _points(answer, size),
        _pins(answer, size),
        _knobs(answer, size),
        _guards(answer, size),
        _listed("assumptions", answer["assumptions"], size),
        _listed("taken as aux (no role was stated)", answer["aux_by_default"], size),
        _end(answer, files, reason),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part)


def _head(answer: Answer) -> list[str]:
    legal, graph = answer["legal"], answer["graph"]
    moving, bits = graph["batch_dependent_points"], _bits(answer)
    lines = [
        f"{answer['family']}: {answer['function']}, scope {answer['scope']}, in {answer['target']}",
        f"  {moving} of {bits} protected points follow the batch; "
        f"{_count([p for p in answer['pins'] if not p['free']], 'pin')} "
        f"{'cuts' if len(answer['pins']) == 1 else 'cut'} it off",
    ]
    if not answer["pins"]:
        lines[1] = (
            f"  none of {bits} protected points follows the batch: nothing to pin"
            if not moving
            else f"  {moving} of {bits} protected points follow the batch, through knobs alone"
        )
    lines.append(
        f"  {legal['legal']} of {legal['assignments']} assignments of pins and knobs are legal "
        f"({legal['evidence']})"
    )
    return lines


def _bits(answer: Answer) -> int:
    return sum(p["role"] == "bits" for p in answer["points"])


def _count(items: Sequence[object], noun: str) -> str:
    return f"{len(items)} {noun}{'' if len(items) == 1 else 's'}"


def _points(answer: Answer, width: int) -> list[str]:
    rows = []
    order = {"bits": 0, "neutral": 1, "aux": 2}
    for p in sorted(answer["points"], key=lambda p: (order[p["role"]], not p["batch_dependent"])):
        through = ", ".join(p["depends_on"]) if p["batch_dependent"] else "-"
        if not p.get("decided", True):
            through += " (undecided)"
        adaptive = "adaptive" if p["batch_dependent"] else "-"
        rows.append([p["name"], p["role"], through, ", ".join(p["pinned_by"]) or adaptive])
    return ["selection points", *table(["point", "role", "moves with", "pinned by"], rows, width)]


def _pins(answer: Answer, width: int) -> list[str]:
    lines: list[str] = []
    chosen = answer["tuple"] or {}
    rows, proofs = [], []
    for p in answer["pins"]:
        where = _place(p["location"])
        if p["free"]:
            at = arguments(p.get("at", {}))
            proofs.append(
                [p["name"], spelt(p["default"]) if not at else f"as at {at}", p["proof"], where]
            )
            continue
        legal = [spelt(v) for v in p["legal"]]
        candidates = _candidates(p["candidates"])
        candidates += "" if p["exact"] or isinstance(p["candidates"], dict) else " at most"
        if p["offered"]:
            candidates += f" + {listing([spelt(v) for v in p['offered']], LISTED)}"
        same = isinstance(p["candidates"], list) and p["legal"] == p["candidates"] + p["offered"]
        shown = "all" if same else listing(legal, LISTED) or "none"
        value = spelt(chosen[p["name"]]) if p["name"] in chosen else "-"
        rows.append([p["name"], candidates, shown, value, p["evidence"], where])
    if rows:
        head = ["pin", "candidates", "legal", "in force", "evidence", "source"]
        lines += ["pins", *table(head, rows, width)]
    if proofs:
        head = ["constant", "value", "why", "source"]
        lines += [*([""] if lines else []), "free pins (no dimension of the tuple)"]
        lines += table(head, proofs, width)
    return lines


def _candidates(found: Any) -> str:
    if isinstance(found, list):
        return listing([spelt(v) for v in found], LISTED)
    span = found["range"]
    if span is None:
        return "unknown"
    low, high, step = span
    return (
        f"{low}..{high}"
        + (f" step {step}" if step != 1 else "")
        + ("" if found["exact"] else " at most")
    )


def _knobs(answer: Answer, width: int) -> list[str]:
    rows = [
        [k["name"], spelt(k["setting"]), listing([spelt(c) for c in k["choices"]], LISTED)]
        for k in answer["knobs"]
    ]
    return ["knobs", *table(["knob", "setting", "choices"], rows, width)] if rows else []


def _guards(answer: Answer, width: int) -> list[str]:
    guards = [g for g in answer["guards"] if g["kind"] == "require"]
    if not guards:
        return ["guards", "  none: the selection requires nothing"]
    loud = [g for g in guards if g["evidence"] not in ("proved", "exhaustive") or g.get("unseen")]
    shown = loud + [g for g in guards if g not in loud]
    counts: dict[tuple[str, str, str], int] = {}
    for g in shown:
        says = g["evidence"]
        says += f" ({g['points']} points)" if says == "sampled" else ""
        says += " (unseen)" if g.get("unseen") else ""
        spent = f" (undecided after {g['budget']})" if g.get("budget") else ""
        row = (says, _place(g["location"]), " ".join(g["text"].split()) + spent + _excluded(g))
        counts[row] = counts.get(row, 0) + 1
    rows = [[*row[:2], row[2] + (f" [{n} times]" if n > 1 else "")] for row, n in counts.items()]
    lines = ["guards", *table(["evidence", "source", "requirement"], rows[:MAX_GUARDS], width)]
    if len(rows) > MAX_GUARDS:
        lines.append(f"  and {len(rows) - MAX_GUARDS} more; --format json lists them all")
    if any(g["evidence"] == "sampled" for g in guards):
        lines.append("  SAMPLED guards were tried, not proved; they are checked on every call")
    if any(g["evidence"] == "unknown" or "budget" in g for g in guards):
        lines.append("  UNKNOWN: a budget ran out, and what it left undecided is not legal;")
        lines.append(
            "  give more with --solver-budget, narrow the ranges of what the guard reads, or state"
        )
        lines.append("  a promise as an `assume`")
    return lines


def _excluded(guard: Mapping[str, Any]) -> str:
    """What a guard rules out, by example."""
    found = guard["counterexample"]
    if found is None:
        return ""
    pins, inputs = arguments(found["parameters"]), arguments(found["inputs"])
    return f" (rules out {pins or 'every tuple'}: fails for {inputs or 'every input'})"


def _listed(title: str, items: Sequence[str], width: int) -> list[str]:
    lines = [title] if items else []
    for item in items:
        lines += textwrap.wrap(item, width - 4, initial_indent="  - ", subsequent_indent="    ")
    return lines


def _end(answer: Answer, files: Sequence[str], reason: str | None) -> list[str]:
    made, times = answer["artifacts"], answer["timings_ms"]
    where = relative(made["dir"])
    stages = ", ".join(f"{k} {v:.0f}" for k, v in times.items() if k != "total" and v >= 0.5)
    lines = []
    if made["module"] is None:
        lines.append(f"written  {where}: manifest.json alone; nothing there can be imported")
    else:
        native = "native" if made["native"] else f"no native module ({reason})"
        texts = [f for f in files if f.endswith((".ir", ".dot")) and not f.startswith("g1-")]
        after = sum(f.startswith("g1-") for f in files)
        texts += [f"{after} graphs g1-*.ir"] if after else []
        kept = ["Python", native, *(["selector.h"] if made["header"] else []), "manifest.json"]
        lines.append(f"written  {where}: {', '.join(kept + texts)}")
        lines.append(f"use      from {made['module']} import select, repin, PINS")
    lines.append(
        f"cache    {answer['cache']}; {times['total']:.0f} ms" + (f": {stages}" if stages else "")
    )
    return lines


def relative(path: str) -> str:
    """A path below the working folder without it."""
    try:
        inside = os.path.relpath(path)
    except (OSError, ValueError):
        return path
    return path if inside.startswith("..") else inside


def _place(location: Mapping[str, Any]) -> str:
    path = relative(location["path"]) if location["path"] else ""
    folders = Path(path).parts
    shown = folders[-1] if len(path) > MAX_PATH and len(folders) > 1 else path
    return f"{shown}:{location['line']}"
