"""A decision from its journal alone: no selector, no kernels, no device."""

from __future__ import annotations

from pathlib import Path

from selc.diag.diagnostic import Diagnostic, Refused
from selc.diag.outcome import Outcome
from selc.harness.journal import CODE, read_journal
from selc.harness.tune.decide import stories
from selc.harness.tune.report import Answer, finish


def replay(path: Path, out: Path | None) -> Outcome:
    """Decide as the run did that wrote the journal."""
    try:
        answer = recorded(path)
    except Refused as refused:
        return Outcome(2, diagnostics=list(refused.diagnostics))
    return finish(answer, out)


def recorded(path: Path) -> Answer:
    """What a journal holds.

    Raises:
        Refused: it cannot be read, or is of another command.
    """
    header, records = read_journal(path)
    try:
        if header["command"] != "tune":
            raise KeyError(header["command"])
        return Answer(header, stories(records))
    except (KeyError, TypeError, ValueError, IndexError):
        message = f"the journal `{path}` is not one of `selc tune`"
        help_ = "name the file that `selc tune --journal` wrote"
        raise Refused(Diagnostic(CODE, message, help=help_)) from None
