"""full: with source and path. concise: one line each. github: annotations of a workflow run."""

from __future__ import annotations

from collections.abc import Sequence

from selc.diag.diagnostic import Diagnostic, Label, Severity
from selc.diag.render_text import render_text
from selc.diag.source_text import SourceLines
from selc.diag.span import Span
from selc.lint.model import Finding, Step

_MOST_LABELS = 6


def full(findings: Sequence[Finding]) -> str:
    """Every finding with the lines it speaks of, and a count."""
    parts = [render_text(_diagnostic(each)) for each in findings]
    return "\n\n".join([*parts, summary(findings)])


def concise(findings: Sequence[Finding]) -> str:
    """One line for each finding: place, level, code, message."""
    return "\n".join(
        f"{f.place.path}:{f.place.line}:{f.place.column}: {f.level}[{f.code}] {f.message}"
        for f in findings
    )


def github(findings: Sequence[Finding]) -> str:
    """Workflow commands that annotate a change."""
    kinds = {"error": "error", "warning": "warning", "note": "notice"}
    rows = []
    for each in findings:
        place = each.place
        where = f"file={_escape(place.path, True)},line={place.line},col={place.column}"
        where += f",endLine={place.end_line},endColumn={place.end_column}"
        title = _escape(f"selc ({each.code} {each.name})", True)
        words = _escape(f"{each.message}\n{each.help}" if each.help else each.message, False)
        rows.append(f"::{kinds[each.level]} {where},title={title}::{words}")
    return "\n".join(rows)


def summary(findings: Sequence[Finding]) -> str:
    """Counts by level."""
    counts = []
    for level, plural in (("error", "errors"), ("warning", "warnings"), ("note", "notes")):
        number = sum(each.level == level for each in findings)
        if number:
            counts.append(f"{number} {level if number == 1 else plural}")
    if not counts:
        return "Found nothing."
    code = findings[0].code
    return f"Found {' and '.join(counts)}. `selc explain {code}` says more."


def _diagnostic(finding: Finding) -> Diagnostic:
    place = finding.place
    labels = [
        Label(_span(step), _words(step, finding))
        for step in finding.trace[:-1][:_MOST_LABELS]
        if (step.path, step.line) != (place.path, place.line)
    ]
    return Diagnostic(
        finding.code,
        finding.message,
        Span(*place),
        Severity(finding.level),
        label=finding.role,
        labels=tuple(labels),
        help=finding.help,
    )


def _words(step: Step, finding: Finding) -> str:
    if step.text.startswith("parameter "):
        return step.text
    if (step.path, step.line) == (finding.source_path, finding.source_line):
        return "the batch enters here"
    return ""


def _span(step: Step) -> Span:
    """The whole line of a step: columns come from its text."""
    text = SourceLines().line(step.path, step.line) or ""
    start = len(text) - len(text.lstrip()) + 1
    return Span(step.path, step.line, start, step.line, max(len(text.rstrip()) + 1, start + 1))


def _escape(text: str, is_property: bool) -> str:
    out = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return out.replace(":", "%3A").replace(",", "%2C") if is_property else out
