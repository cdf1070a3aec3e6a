"""`selc profile`: what a recorded workload holds, several made one, and how two differ."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from selc.diag.diagnostic import Diagnostic, Refused, Sink
from selc.diag.outcome import Outcome
from selc.diag.span import Span
from selc.diag.table import table

CODE: Final = "SEL934"
FORMAT: Final = 1
FIELDS: Final = ("format", "family", "selector", "inputs", "extra", "count")
MAX_ERRORS: Final = 10
WIDTH: Final = 100
MOST: Final = 12
"""Calls that a text answer lists."""

Key = tuple[str, str, str]
"""Family, selector, and inputs with extra as canonical JSON."""


@dataclass(frozen=True, slots=True)
class Workload:
    """The distinct calls of one or more profiles, with counts that may be weighted."""

    calls: Mapping[Key, float]

    @property
    def total(self) -> float:
        """All calls."""
        return math.fsum(self.calls.values())

    def families(self) -> list[str]:
        """The families in it."""
        return sorted({key[0] for key in self.calls})


def show(paths: Sequence[Path]) -> Outcome:
    """Distinct calls, counts and the spread of every input, by family."""
    try:
        workload = read(paths)
    except Refused as refused:
        return Outcome(2, diagnostics=list(refused.diagnostics))
    families = [_family(workload, name) for name in workload.families()]
    answer = {"format": FORMAT, "profiles": [str(p) for p in paths], "families": families}
    return Outcome(0, "\n".join(_shown(families)), answer)


def merge(paths: Sequence[Path], weights: Sequence[float], out: Path) -> Outcome:
    """One profile of several; counts are added, times their file's weight."""
    try:
        if weights and len(weights) != len(paths):
            raise _wrong(f"{len(weights)} weights for {len(paths)} profiles", None)
        if any(not math.isfinite(w) or w <= 0 for w in weights):
            raise _wrong("a weight is not positive", None, "give each profile a weight above 0")
        workload = read(paths, weights)
        write_profile(workload, out)
    except Refused as refused:
        return Outcome(2, diagnostics=list(refused.diagnostics))
    answer = {
        "format": FORMAT,
        "written": str(out),
        "distinct": len(workload.calls),
        "calls": sum(_count(c) for c in workload.calls.values()),
    }
    return Outcome(0, f"{out}: {answer['calls']} calls, {answer['distinct']} distinct", answer)


def diff(one: Path, other: Path) -> Outcome:
    """Calls that only one of two profiles has, and those whose share changed; exit 1 if any."""
    try:
        a, b = read([one]), read([other])
    except Refused as refused:
        return Outcome(2, diagnostics=list(refused.diagnostics))
    rows = []
    for key in sorted({*a.calls, *b.calls}):
        before = a.calls.get(key, 0.0) / a.total if a.total else 0.0
        after = b.calls.get(key, 0.0) / b.total if b.total else 0.0
        if before != after:
            rows.append((key, before, after))
    distance = math.fsum(abs(after - before) for _, before, after in rows) / 2
    rows.sort(key=lambda r: (-abs(r[2] - r[1]), r[0]))
    answer = {
        "format": FORMAT,
        "profiles": [str(one), str(other)],
        "distance": distance,
        "calls": [
            {"family": k[0], "selector": k[1], **json.loads(k[2]), "before": x, "after": y}
            for k, x, y in rows
        ],
    }
    cells = [[f"{x:.2%}", f"{y:.2%}", f"{k[0]} {_call(k)}"] for k, x, y in rows[:MOST]]
    lines = [f"{len(rows)} calls differ in their share; {distance:.2%} of the calls moved"]
    lines += table(["before", "after", "call"], cells, WIDTH)
    return Outcome(1 if rows else 0, "\n".join(lines), answer)


def read(paths: Sequence[Path], weights: Sequence[float] = ()) -> Workload:
    """The calls of some profiles together.

    Raises:
        Refused: a file cannot be read, or a line is no call.
    """
    from selc.diag.files import Files

    trouble = Sink()
    found: dict[Key, float] = {}
    for path, weight in zip(paths, weights or [1.0] * len(paths), strict=True):
        text = Files(trouble).read(path, "profile")
        for number, line in enumerate((text or "").splitlines(), start=1):
            if not line.strip() or len(trouble.items) >= MAX_ERRORS:
                continue
            try:
                key, count = _line(line, Span(str(path), number, 1, number, len(line) + 1))
            except Refused as refused:
                for diagnostic in refused.diagnostics:
                    trouble.add(diagnostic)
                continue
            found[key] = found.get(key, 0.0) + weight * count
    if trouble.has_errors:
        raise Refused(*trouble)
    return Workload(found)


def _line(line: str, place: Span) -> tuple[Key, int]:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _wrong(f"this line is not JSON: {error}", place) from None
    if not isinstance(data, dict):
        raise _wrong("a line of a profile is a JSON object", place)
    if data.get("format") != FORMAT:
        raise _wrong(f"this line has format {data.get('format')!r}, not {FORMAT}", place)
    odd = sorted(set(data) - set(FIELDS))
    if odd:
        hint = f"a line has {', '.join(FIELDS)}; what a kernel needs besides goes under `extra`"
        raise _wrong(f"a line of a profile has no field `{odd[0]}`", place, hint)
    count = data.get("count", 1)
    if type(count) is not int or count < 1:
        raise _wrong(f"`count` is {count!r}, not a positive integer", place)
    for name in ("family", "selector"):
        if not isinstance(data.get(name, ""), str) or (name == "family" and not data.get(name)):
            raise _wrong(f"`{name}` is {data.get(name)!r}, not a name", place)
    inputs, extra = data.get("inputs"), data.get("extra", {})
    if not isinstance(inputs, dict) or not isinstance(extra, dict):
        raise _wrong("`inputs` or `extra` is missing or not an object", place)
    body = json.dumps({"inputs": inputs, "extra": extra}, sort_keys=True)
    return (data["family"], data.get("selector", ""), body), count


def _wrong(message: str, place: Span | None, hint: str = "") -> Refused:
    hint = hint or "record it anew with the selector's `record`"
    if place is None:
        return Refused(Diagnostic("SEL909", message, help=hint))
    return Refused(Diagnostic(CODE, message, place, help=hint))


def write_profile(workload: Workload, out: Path) -> None:
    """Write a profile whole, or not at all.

    Raises:
        Refused: it cannot be written.
    """
    import os
    import tempfile

    lines = []
    for (family, selector, body), count in sorted(workload.calls.items()):
        head = {"format": FORMAT, "family": family, "selector": selector}
        lines.append(json.dumps({**head, **json.loads(body), "count": _count(count)}) + "\n")
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(dir=out.parent, prefix=".")
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write("".join(lines))
        mask = os.umask(0o077)
        os.umask(mask)
        Path(temporary).chmod(0o666 & ~mask)
        Path(temporary).replace(out)
    except OSError as error:
        message = f"the profile `{out}` cannot be written: {error.strerror}"
        hint = "name a place in a folder that exists and may be written"
        raise Refused(Diagnostic("SEL915", message, help=hint)) from None
    finally:
        if temporary:
            Path(temporary).unlink(missing_ok=True)


def _count(weighted: float) -> int:
    """A weighted count as the nearest whole one; a call that was made stays."""
    return max(1, round(weighted))


def _family(workload: Workload, name: str) -> dict[str, Any]:
    mine = {k: c for k, c in workload.calls.items() if k[0] == name}
    total = math.fsum(mine.values())
    inputs: dict[str, dict[str, float]] = {}
    for key, count in mine.items():
        for which, value in json.loads(key[2])["inputs"].items():
            counts = inputs.setdefault(which, {})
            text = json.dumps(value)
            counts[text] = counts.get(text, 0.0) + count
    top = sorted(mine.items(), key=lambda item: (-item[1], item[0]))[:MOST]
    return {
        "family": name,
        "selectors": sorted({k[1] for k in mine}),
        "distinct": len(mine),
        "calls": total,
        "inputs": {which: _spread(counts) for which, counts in sorted(inputs.items())},
        "most": [{**json.loads(k[2]), "share": c / total} for k, c in top],
    }


def _spread(counts: Mapping[str, float]) -> dict[str, Any]:
    """Distinct values, and quantiles by count where all are numbers."""
    values = [(json.loads(text), count) for text, count in counts.items()]
    out: dict[str, Any] = {"distinct": len(values)}
    if all(type(v) in (int, float) for v, _ in values):
        values.sort()
        total = math.fsum(c for _, c in values)
        for name, share in (("min", 0.0), ("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)):
            reached = 0.0
            for value, count in values:
                reached += count
                out[name] = value
                if reached >= share * total and share < 1.0:
                    break
    return out


def _shown(families: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not families:
        yield "no calls"
    for each in families:
        yield f"{each['family']}: {each['calls']:g} calls, {each['distinct']} distinct"
        columns = ("distinct", "min", "p50", "p90", "p99", "max")
        rows = [
            [name, *(str(spread.get(c, "-")) for c in columns)]
            for name, spread in each["inputs"].items()
        ]
        yield from table(["input", *columns], rows, WIDTH)
        shown = [
            [f"{call['share']:.1%}", ", ".join(f"{n}={v!r}" for n, v in call["inputs"].items())]
            for call in each["most"]
        ]
        yield from table(["share", "most frequent calls"], shown, WIDTH)


def _call(key: Key) -> str:
    inputs = json.loads(key[2])["inputs"]
    return ", ".join(f"{n}={v!r}" for n, v in inputs.items())
