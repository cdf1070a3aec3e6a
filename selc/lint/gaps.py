"""SEL3xx: gaps in the guard of a project that declares its invariant mode."""

from __future__ import annotations

from selc.lint.index import Module
from selc.lint.model import Finding
from selc.lint.names import Names


def check_gaps(
    module: Module,
    names: Names,
    hits: list[tuple[Finding, str]],
    kept: list[tuple[Finding, str]],
) -> list[Finding]:
    """Findings that the mode leaves, with those that siblings are guarded against marked."""
    del module, names, hits
    return [finding for finding, _ in kept]
