"""Diagnostics as plain data, so that a cached answer repeats its warnings word by word."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from selc.diag.diagnostic import Diagnostic, Label, Severity
from selc.diag.span import Span


def dump(diagnostics: Iterable[Diagnostic]) -> list[dict[str, Any]]:
    """Diagnostics as JSON data; nothing is lost."""
    return [
        {
            "code": d.code,
            "severity": d.severity.value,
            "message": d.message,
            "span": _region(d.span),
            "label": d.label,
            "labels": [[_region(each.span), each.text] for each in d.labels],
            "notes": list(d.notes),
            "help": d.help,
        }
        for d in diagnostics
    ]


def read(data: Iterable[dict[str, Any]]) -> list[Diagnostic]:
    """The inverse of `dump`."""
    return [
        Diagnostic(
            code=d["code"],
            message=d["message"],
            span=Span(*d["span"]),
            severity=Severity(d["severity"]),
            label=d["label"],
            labels=tuple(Label(Span(*span), text) for span, text in d["labels"]),
            notes=tuple(d["notes"]),
            help=d["help"],
        )
        for d in data
    ]


def public(diagnostics: Iterable[Diagnostic]) -> list[dict[str, Any]]:
    """What the answer says of them: code, severity, message and place."""
    out = []
    for d in diagnostics:
        placed = bool(d.span.path) and d.span.line > 0
        out.append(
            {
                "code": d.code,
                "severity": d.severity.value,
                "message": d.message,
                "path": d.span.path or None,
                "line": d.span.line if placed else None,
                "column": d.span.column if placed else None,
            }
        )
    return out


def _region(span: Span) -> list[Any]:
    return [span.path, span.line, span.column, span.end_line, span.end_column]
