"""Source positions: 1-based lines and columns, columns in characters, ends exclusive.

The numbers are those of CPython's `ast` (plus one for columns, which `ast` counts from zero).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A half-open region of one file."""

    path: str
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"

    def contains(self, other: Span) -> bool:
        """Whether `other` lies inside this span (same file)."""
        return (
            self.path == other.path
            and (self.line, self.column) <= (other.line, other.column)
            and (other.end_line, other.end_column) <= (self.end_line, self.end_column)
        )


NOWHERE = Span("", 0, 0, 0, 0)
