"""What a battery found, as data and as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from selc.diag.table import table
from selc.harness.bits.cells import KINDS

WIDTH: Final = 100
MOST: Final = 12
"""Differing cells and reasons that a text answer lists."""
STATES: Final = ("equal", "differs", "failed", "skipped")


def summary(
    records: Sequence[Mapping[str, Any]], points: Sequence[str], read: Sequence[str]
) -> dict[str, Any]:
    """Counts by group and arm, and the verdict.

    `points` set bits and move with the batch when nothing is pinned; the kernels read `read`.
    """
    groups: dict[str, dict[str, Counter[str]]] = {}
    for r in records:
        arms = groups.setdefault(r["group"], {"pinned": Counter(), "control": Counter()})
        arms[r["arm"]][r["status"]] += 1
    total = {
        arm: {s: sum(g[arm][s] for g in groups.values()) for s in STATES}
        for arm in ("pinned", "control")
    }
    verdict, why = _verdict(total, records, points, read)
    return {
        "verdict": verdict,
        "why": why,
        "control_applies": bool(points),
        "moving_points": list(points),
        "total": total,
        "groups": {
            k: {arm: {s: g[arm][s] for s in STATES} for arm in g} for k, g in groups.items()
        },
        "differing": [r for r in records if r["arm"] == "pinned" and r["status"] == "differs"],
        "failed": [r for r in records if r["arm"] == "pinned" and r["status"] == "failed"],
        "skipped": dict(
            Counter(
                r["reason"] for r in records if r["arm"] == "pinned" and r["status"] == "skipped"
            ).most_common()
        ),
    }


def _verdict(
    total: Mapping[str, Mapping[str, int]],
    records: Sequence[Mapping[str, Any]],
    points: Sequence[str],
    read: Sequence[str],
) -> tuple[str, str]:
    pinned, control = total["pinned"], total["control"]
    if pinned["differs"]:
        return "differs", f"{pinned['differs']} cells do not give the bits of the request alone"
    if pinned["failed"]:
        return "failed", f"the kernels failed in {pinned['failed']} cells"
    equal = pinned["equal"]
    if not equal:
        return "inconclusive", "no cell could be run"
    said = f"{equal} cells give the bits of the request alone"
    if not points:
        return "equal", f"{said}; no bits point moves with the batch, so there is no control"
    if control["differs"]:
        return "equal", f"{said}; without pins {control['differs']} of them differ"
    why = "the control did not fail: this battery has no power here"
    if not read:
        names = ", ".join(points)
        return "inconclusive", f"{why}; the kernels read none of the points that move ({names})"
    moved = any(
        r["arm"] == "control" and "choices" in r and r["choices"]["alone"] != r["choices"]["here"]
        for r in records
    )
    if not moved:
        return "inconclusive", f"{why}; the unpinned choice was the same in every cell"
    return "inconclusive", f"{why}; unpinned choices moved and the bits did not"


def text(answer: Mapping[str, Any]) -> list[str]:
    """The answer for one family."""
    pins = ", ".join(f"{k}={v!r}" for k, v in answer["tuple"].items()) or "no pins"
    out = [f"{answer['family']} on {answer['device']['name']}: {pins}", ""]
    rows = []
    for kind in KINDS:
        group = answer["groups"].get(kind)
        if group is None:
            continue
        pinned = [str(group["pinned"][s]) for s in STATES]
        rows.append([kind, *pinned, str(group["control"]["differs"]), KINDS[kind]])
    out += table(["cells", *STATES, "control differs", "what is changed"], rows, WIDTH)
    for title in ("differing", "failed"):
        if answer[title]:
            out += ["", title]
            out += [f"  {line}" for r in answer[title][:MOST] for line in _told(r)]
            if len(answer[title]) > MOST:
                out.append(f"  ... {len(answer[title]) - MOST} more")
    if answer["skipped"]:
        counts = list(answer["skipped"].items())
        out += ["", "skipped"]
        out += table(["cells", "why"], [[str(n), why] for why, n in counts[:MOST]], WIDTH)
        if len(counts) > MOST:
            out.append(f"  ... {len(counts) - MOST} more reasons")
    knobs = answer["control_knobs"]
    odd = {k: v for k, v in knobs.items() if k in answer["tuple"] and answer["tuple"][k] != v}
    if odd:
        said = ", ".join(f"{k}={v!r}" for k, v in odd.items())
        out += ["", f"the unpinned selection refuses calls under the tuple's knobs; it had {said}"]
    loud = answer["verdict"] if answer["verdict"] == "equal" else answer["verdict"].upper()
    return [*out, "", f"{loud}: {answer['why']}"]


def _told(record: Mapping[str, Any]) -> list[str]:
    if record["status"] == "failed":
        return [f"{record['cell']}: {record['reason']}"]
    at = record["first"]
    lines = [
        f"{record['cell']}: token {at['token']}, element {at['element']}: {at['alone']} alone, "
        f"{at['here']} here; {record['differing']} of {record['elements']} elements"
    ]
    alone, here = record["choices"]["alone"], record["choices"]["here"]
    odd = [k for k in {**alone, **here} if alone.get(k) != here.get(k)]
    if odd:
        changes = ", ".join(f"{k}={alone.get(k)!r} alone, {here.get(k)!r} here" for k in odd)
        lines.append(f"  the choice differs: {changes}")
    else:
        lines.append("  the choice is the same")
    return lines
