"""Baselines: findings that are known, by path, rule, function and line text; no line numbers.

One entry on a line, sorted: two branches that each fix something do not collide.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from selc.diag.diagnostic import Diagnostic, Refused
from selc.diag.span import Span
from selc.lint.model import Finding


def write(path: Path, findings: Sequence[Finding]) -> None:
    """Write the baseline of these findings."""
    counts = Counter(finding.key for finding in findings)
    rows = [f"    {json.dumps(key)}: {count}" for key, count in sorted(counts.items())]
    body = ",\n".join(rows)
    inner = f"\n{body}\n  " if rows else ""
    path.write_text(f'{{\n  "format": 1,\n  "findings": {{{inner}}}\n}}\n', encoding="utf-8")


def read(path: Path) -> Counter[str]:
    """Keys with how often each is known."""
    place = Span(str(path), 0, 0, 0, 0)
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["format"] != 1:
            raise ValueError("it has another format")
        return Counter({str(key): int(count) for key, count in data["findings"].items()})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"this is no baseline: {error}"
        hint = "write one with `selc lint --write-baseline --baseline FILE`"
        raise Refused(Diagnostic("SEL909", message, place, help=hint)) from None


def subtract(findings: Sequence[Finding], known: Counter[str]) -> tuple[list[Finding], list[str]]:
    """Findings that are new, and entries that nothing answers to any more."""
    left = Counter(known)
    fresh = []
    for finding in findings:
        if left[finding.key] > 0:
            left[finding.key] -= 1
        else:
            fresh.append(finding)
    return fresh, sorted(key for key, count in left.items() if count > 0)
