"""What there is to say of a value, as JSON and as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from selc.diag.source_text import SourceLines
from selc.diag.span import NOWHERE
from selc.diag.spelling import arguments
from selc.driver.describe import candidates_json, location
from selc.driver.why import FORMAT, call_of, count_of, grid_of
from selc.ir.value import to_json

if TYPE_CHECKING:
    from selc.cut.alternatives import Alternative
    from selc.driver.why import Step, Why
    from selc.ir.program import Program
    from selc.ir.residual import Pin


def as_json(why: Why) -> dict[str, Any]:
    """The JSON object."""
    lines = SourceLines()
    pair = None
    if why.pair is not None:
        inputs = [call_of(why.program, env) for env in (why.pair.first, why.pair.second)]
        pair = {
            "inputs": inputs,
            "calls": [_call(each) for each in inputs],
            "values": [to_json(v) for v in why.pair.values],
            "knobs": {k: to_json(v) for k, v in _knobs(why.program, why.pair.first).items()},
        }
    return {
        "format": FORMAT,
        "target": why.program.target,
        "function": why.program.function,
        "value": why.asked.name,
        "kind": why.asked.kind,
        "batch_dependent": why.moved,
        "why": why.because,
        "path": [
            {
                "name": step.name,
                "kind": step.kind,
                "location": None if step.span == NOWHERE else location(step.span),
                "text": _source(step, lines),
            }
            for step in why.path
        ],
        "pair": pair,
        "pins": [_pin(p) for p in why.pins],
        "cut": {"pins": [p.name for p in why.chosen], "assignments": grid_of(why.chosen)},
        "other_cuts": [_cut(c) for c in why.cuts],
        "no_cut": why.no_cut or None,
    }


def _pin(pin: Pin) -> dict[str, Any]:
    return {
        "name": pin.name,
        "free": pin.free,
        "candidates": candidates_json(pin.candidates),
        "location": location(pin.site.span),
    }


def _cut(cut: Alternative) -> dict[str, Any]:
    return {
        "pins": [{"name": p.name, "candidates": count_of(p)} for p in cut.pins],
        "free": [p.name for p in cut.free],
        "assignments": grid_of(cut.pins),
    }


def _knobs(program: Program, env: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in env.items() if program.graph.inputs[k].kind == "knob"}


def _call(inputs: dict[str, Any]) -> str:
    """A call of the emitted selector."""
    return f"select_unpinned({arguments(inputs)})"


def _source(step: Step, lines: SourceLines) -> str:
    line = lines.line(step.span.path, step.span.line) if step.span != NOWHERE else None
    if line is None:
        return ""
    over = step.span.end_line > step.span.line
    return line[step.span.column - 1 : None if over else step.span.end_column - 1].strip()


def as_text(why: Why) -> str:
    """The report for a terminal."""
    name = why.asked.name
    head = {True: "follows the batch", False: "does not follow the batch", None: "is undecided"}
    parts = [f"{name} ({why.asked.kind}) {head[why.moved]}: {why.because}"]
    if why.path:
        parts.append("\n".join(_path(why)))
    if why.pair is not None:
        calls = [_call(call_of(why.program, e)) for e in (why.pair.first, why.pair.second)]
        wide = max(map(len, calls))
        rows = [
            f"  {call:<{wide}}  -> {_ascii(value)}"
            for call, value in zip(calls, why.pair.values, strict=True)
        ]
        knobs = _knobs(why.program, why.pair.first)
        under = f", with {arguments(knobs)}" if knobs else ""
        parts.append("\n".join([f"two batches that differ there{under}", *rows]))
    parts.append("\n".join(_pins(why)))
    if why.chosen:
        cut = ", ".join(f"{p.name} ({count_of(p)})" for p in why.chosen)
        rows = [f"the cut: {cut}: {grid_of(why.chosen)} assignments"]
        rows += ["other cuts with as many pins"] if why.cuts else ["no other cut has as few pins"]
        for other in why.cuts:
            pins = ", ".join(f"{p.name} ({count_of(p)})" for p in other.pins)
            free = f", with {', '.join(p.name for p in other.free)} fixed" if other.free else ""
            rows.append(f"  {pins}: {grid_of(other.pins)} assignments{free}")
        parts.append("\n".join(rows))
    return "\n\n".join(parts)


def _path(why: Why) -> list[str]:
    from selc.diag.render_text import frame

    lines = SourceLines()
    out = ["how the batch gets there"]
    for number, step in enumerate(why.path, 1):
        label = step.name or "an expression"
        where = f"{step.span}: " if step.span != NOWHERE else ""
        out.append(f"  {number}. {where}{label} ({step.kind})")
        out += [f"  {line}" for line in frame(step.span, lines)] if step.span != NOWHERE else []
    return out


def _pins(why: Why) -> list[str]:
    if why.no_cut:
        return [f"no pin: {why.no_cut}"]
    if not why.pins:
        return ["no pin is on it" if why.moved is not False else "no pin is needed for it"]
    out = ["pins on it"]
    for p in why.pins:
        if p.free:
            value = _ascii(p.constant) if p.at is None else "its value at one batch"
            out.append(f"  {p.name}: fixed to {value} ({p.proof})")
        else:
            values = p.candidates.values
            shown = ", ".join(_ascii(v) for v in (values or ())[:8])
            more = ", ..." if values is not None and len(values) > 8 else ""
            out.append(
                f"  {p.name}: {count_of(p)} candidates" + (f": {shown}{more}" if shown else "")
            )
    return out


def _ascii(value: object) -> str:
    return repr(value).encode("ascii", "backslashreplace").decode()
