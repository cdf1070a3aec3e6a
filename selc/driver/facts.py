"""`selc facts`: the skeleton of a facts file."""

from __future__ import annotations

from pathlib import Path

from selc.diag.diagnostic import Refused
from selc.diag.outcome import Outcome


def run(target: str, roots: tuple[Path, ...]) -> Outcome:
    """A facts-file skeleton for a target."""
    from selc.frontend.skeleton import skeleton

    try:
        return Outcome(0, skeleton(target, roots))
    except Refused as refused:
        return Outcome(2, diagnostics=list(refused.diagnostics))
