"""From hits to findings: the words of a report."""

from __future__ import annotations

from selc.lint.model import Finding, Step
from selc.lint.registry import rule
from selc.lint.session import Hit


def finding_of(hit: Hit, audit: bool = False) -> Finding:
    """The finding for a batch quantity that reaches a choice."""
    source = str(hit.label[1])
    code = hit.code
    if source == "measured time" and code in ("SEL101", "SEL102", "SEL103", "SEL105"):
        code = "SEL205"
    known = rule(code)
    trace = _trace(hit.flow.steps)
    first = trace[0] if trace else Step(hit.place.path, hit.place.line, hit.text)
    subject = hit.what[0].upper() + hit.what[1:] if hit.what[0].isalpha() else hit.what
    if hit.role == "library":
        message = hit.what
    elif source == "measured time":
        message = f"{subject} follows measured time"
    else:
        message = f"{subject} follows the batch, by `{source}`"
    threshold = "" if hit.role == "library" else hit.flow.threshold
    if threshold and not threshold.startswith(("nearest:", "bisect:", "row:")):
        message += f", at `{threshold}`"
    elif threshold.startswith("nearest:"):
        message += ", through the nearest entry"
    elif threshold.startswith("bisect:"):
        message += ", through the next entry of a sorted list"
    elif threshold.startswith("row:"):
        message += ", through a row of a table"
    elif hit.flow.control:
        message += ", through a branch"
    if audit:
        trace = (
            *(Step(g.path, g.line, f"asks for the invariant mode: {g.text}") for g in hit.guards),
            *trace,
        )
    return Finding(
        code=code,
        name=known.name,
        level=hit.level,
        message=message,
        place=hit.place,
        function=hit.function,
        source=source,
        source_line=first.line,
        source_path=first.path,
        sink=hit.sink,
        role=hit.role,
        trace=trace,
        threshold=threshold,
        help=_help(hit, known.fix),
        text=hit.text,
    )


def _trace(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    out: list[Step] = []
    for each in steps:
        if not out or out[-1][:2] != each[:2]:
            out.append(each)
    return tuple(out)


def _help(hit: Hit, general: str) -> str:
    offer = (
        f"`selc compile {hit.place.path}:{hit.function.rsplit('.', 1)[-1]}` finds the legal pins"
    )
    if hit.help:
        return f"{hit.help}; {offer}" if hit.code in ("SEL101", "SEL103") else hit.help
    return (
        f"{general}; {offer}" if hit.code in ("SEL101", "SEL102", "SEL103", "SEL105") else general
    )
