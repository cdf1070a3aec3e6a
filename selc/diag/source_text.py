"""Lines of source files for display: reads anything, never raises, never runs terminal codes.

Columns are characters of the decoded text; what is shown of a character may be wider or narrower.
"""

from __future__ import annotations

import codecs
import io
import re
import tokenize
import unicodedata
from collections.abc import Mapping
from pathlib import Path

_LINE_END = re.compile("\r\n|\r|\n")
_TAB = "    "


def decode(data: bytes) -> str:
    """Text of a source file: its own declared encoding, else UTF-8; wrong bytes become U+FFFD."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except (SyntaxError, LookupError, UnicodeDecodeError):
        encoding = "utf-8"
    if data.startswith(codecs.BOM_UTF8):
        encoding = "utf-8-sig"
    try:
        return data.decode(encoding, errors="replace")
    except (LookupError, UnicodeError):
        return data.decode("utf-8", errors="replace")


class SourceLines:
    """Reads files once, for as long as one report is being rendered."""

    def __init__(self, texts: Mapping[str, str] | None = None) -> None:
        self._lines: dict[str, tuple[str, ...]] = {}
        for path, text in (texts or {}).items():
            self._lines[path] = tuple(_LINE_END.split(text))

    def line(self, path: str, number: int) -> str | None:
        """Line `number` (from 1) without its end, or None where there is none."""
        if path not in self._lines:
            self._lines[path] = self._read(path)
        lines = self._lines[path]
        return lines[number - 1] if 1 <= number <= len(lines) else None

    @staticmethod
    def _read(path: str) -> tuple[str, ...]:
        try:
            return tuple(_LINE_END.split(decode(Path(path).read_bytes())))
        except (OSError, ValueError):
            return ()


def shown(character: str) -> str:
    """What stands for one character of source on the screen."""
    if character == "\t":
        return _TAB
    category = unicodedata.category(character)
    if category in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        return f"\\u{ord(character):04x}" if ord(character) > 0xFF else f"\\x{ord(character):02x}"
    return character


def width(text: str) -> int:
    """Columns that shown text takes on a terminal."""
    return sum(_cell(character) for character in text)


def _cell(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1
