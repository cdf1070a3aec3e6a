"""json: the object of the contract."""

from __future__ import annotations

import json
from collections.abc import Sequence

from selc.lint.model import Finding, fingerprints


def as_json(findings: Sequence[Finding]) -> str:
    """All findings as one object."""
    rows = list(findings)
    objects = [each.as_json(mark) for each, mark in zip(rows, fingerprints(rows), strict=True)]
    return json.dumps({"format": 1, "findings": objects}, indent=2)
