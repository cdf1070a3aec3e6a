"""Diagnostics as JSON objects: the form of `{"format": 1, "errors": [...]}`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from selc.diag.diagnostic import Diagnostic, Severity

FORMAT: Final = 1


def error_object(diagnostic: Diagnostic) -> dict[str, Any]:
    """One diagnostic; `path`, `line` and `column` are null where there is no such place."""
    span = diagnostic.span
    placed = bool(span.path) and span.line > 0
    return {
        "code": diagnostic.code,
        "message": diagnostic.message,
        "path": span.path or None,
        "line": span.line if placed else None,
        "column": span.column if placed else None,
    }


def errors_object(diagnostics: Iterable[Diagnostic]) -> dict[str, Any]:
    """What `--format json` prints when the input is wrong: the errors, without warnings."""
    errors = [d for d in diagnostics if d.severity is Severity.ERROR]
    return {"format": FORMAT, "errors": [error_object(d) for d in errors]}
