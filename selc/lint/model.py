"""What linting gives: findings with the path from the batch to the choice."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

LEVELS: Final = ("note", "warning", "error")


class Step(NamedTuple):
    """One place on the way of a batch quantity."""

    path: str
    line: int
    text: str


class Place(NamedTuple):
    """A region of one file: 1-based, columns in characters, the end exclusive."""

    path: str
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Finding:
    """One choice that the batch reaches."""

    code: str
    name: str
    level: str
    message: str
    place: Place
    function: str
    source: str
    source_line: int
    source_path: str
    sink: str
    role: str
    trace: tuple[Step, ...] = ()
    threshold: str = ""
    help: str = ""
    text: str = ""  # the sink's line without its indentation

    @property
    def key(self) -> str:
        """Path, rule, function and normalised line: what stays when lines move."""
        text = " ".join(self.text.split())
        return f"{self.place.path}::{self.code}::{self.function}::{text}"

    def fingerprint(self, nth: int = 0) -> str:
        """A stable name; `nth` tells equal keys apart, in source order."""
        return hashlib.blake2b(f"{self.key}::{nth}".encode(), digest_size=8).hexdigest()

    def as_json(self, fingerprint: str) -> dict[str, Any]:
        """The object of the JSON format."""
        return {
            "code": self.code,
            "name": self.name,
            "level": self.level,
            "message": self.message,
            "path": self.place.path,
            "line": self.place.line,
            "column": self.place.column,
            "end_line": self.place.end_line,
            "end_column": self.place.end_column,
            "source": {"text": self.source, "line": self.source_line, "path": self.source_path},
            "sink": {"text": self.sink, "line": self.place.line, "role": self.role},
            "trace": [{"path": s.path, "line": s.line, "text": s.text} for s in self.trace],
            "threshold": self.threshold or None,
            "help": self.help,
            "fingerprint": fingerprint,
        }


def fingerprints(findings: list[Finding]) -> list[str]:
    """A fingerprint for each finding, distinct within one report."""
    seen: dict[str, int] = {}
    out = []
    for finding in findings:
        nth = seen.get(finding.key, 0)
        seen[finding.key] = nth + 1
        out.append(finding.fingerprint(nth))
    return out
