"""Diagnostics: what went wrong, where, and one concrete next step.

Passes append to a `Sink`; nobody prints. `Refused` gives up on one function or file.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, field

from selc.diag.span import NOWHERE, Span


class Severity(enum.Enum):
    """How bad a diagnostic is, mildest first."""

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Label:
    """A secondary place with a few words about it."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One message for the user."""

    code: str
    message: str
    span: Span = NOWHERE
    severity: Severity = Severity.ERROR
    label: str = ""
    labels: tuple[Label, ...] = ()
    notes: tuple[str, ...] = ()
    help: str = ""


class Refused(Exception):
    """The input is wrong or not supported; carries the diagnostics to show."""

    exit_code = 2

    def __init__(self, *diagnostics: Diagnostic) -> None:
        super().__init__("; ".join(d.message for d in diagnostics))
        self.diagnostics = diagnostics


@dataclass(slots=True)
class Sink:
    """Collects diagnostics in order of arrival."""

    items: list[Diagnostic] = field(default_factory=list)

    def add(self, diagnostic: Diagnostic) -> None:
        """Append one diagnostic, once."""
        if diagnostic not in self.items:
            self.items.append(diagnostic)

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self.items)

    @property
    def has_errors(self) -> bool:
        """Whether anything in here is an error."""
        return any(d.severity is Severity.ERROR for d in self.items)
