"""What a command gets back from what does its work; plain data, cheap to import."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from selc.diag.diagnostic import Diagnostic


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command has to say: the exit code, both forms of the answer, and what to warn of."""

    exit_code: int
    text: str = ""
    json: dict[str, Any] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)
