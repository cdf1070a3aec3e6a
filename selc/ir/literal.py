"""Constants as text, and back: exact in type and bits.

Integers, booleans, `None`, tuples and ordinary floats are written as Python writes them, strings as
JSON does, a symbol as `<kind name size>`, a NaN with its bits.
"""

from __future__ import annotations

import json
import math
import re
import struct
from typing import Final

from selc.ir.value import UNDEF, Symbol, Value

_BARE: Final = re.compile(r"[A-Za-z_][\w.\-]*\Z", re.ASCII)
_SPACE: Final = re.compile(r" *")
_HEX: Final = re.compile(r"-?0x[0-9a-f]+")
_NUMBER: Final = re.compile(r"-?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|inf\b)")
_NAN: Final = re.compile(r"nan\(([0-9a-f]{16})\)")
_WORD: Final = re.compile(r"[A-Za-z_][\w.\-]*", re.ASCII)
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_WORDS: Final[dict[str, Value]] = {"None": None, "True": True, "False": False, "undef": UNDEF}
_DIGITS: Final = 4000


class LiteralError(ValueError):
    """The text is not a constant; `at` is where reading stopped."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.at = at


def format_value(value: Value) -> str:
    """The constant as text."""
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, float):
        if math.isnan(value):
            return f"nan({struct.pack('>d', value).hex()})"
        return repr(value)
    if isinstance(value, tuple):
        inner = ", ".join(format_value(v) for v in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, Symbol):
        return f"<{format_name(value.kind)} {format_name(value.name)} {value.size}>"
    if type(value) is int and value.bit_length() > 3 * _DIGITS:
        return hex(value)  # the decimal form of very wide integers is refused by Python
    return repr(value)


def format_name(name: str) -> str:
    """A name, in quotes unless it is plainly one word."""
    return name if _BARE.match(name) and name not in _WORDS else json.dumps(name)


class Reader:
    """Reads constants, names and punctuation off one line of text."""

    __slots__ = ("at", "text")

    def __init__(self, text: str, at: int = 0) -> None:
        self.text = text
        self.at = at

    def skip(self) -> None:
        """Move past spaces."""
        found = _SPACE.match(self.text, self.at)
        assert found is not None
        self.at = found.end()

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Read what matches here, if anything does."""
        found = pattern.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
        return found

    def accept(self, token: str) -> bool:
        """Read `token` if it stands next."""
        self.skip()
        if not self.text.startswith(token, self.at):
            return False
        self.at += len(token)
        return True

    def expect(self, token: str) -> None:
        """Read `token` or fail."""
        if not self.accept(token):
            raise LiteralError(f"expected {token!r}", self.at)

    def done(self) -> bool:
        """Whether only spaces are left."""
        self.skip()
        return self.at == len(self.text)

    def name(self) -> str:
        """Read a name, bare or in quotes."""
        self.skip()
        word = self.take(_WORD)
        if word is not None:
            return word.group()
        return self._string()

    def value(self) -> Value:
        """Read a constant."""
        self.skip()
        head = self.text[self.at : self.at + 1]
        if head == '"':
            return self._string()
        if head == "(":
            return self._tuple()
        if head == "<":
            return self._symbol()
        if (nan := self.take(_NAN)) is not None:
            result: float = struct.unpack(">d", bytes.fromhex(nan.group(1)))[0]
            return result
        if (wide := self.take(_HEX)) is not None:
            return int(wide.group(), 16)
        if (number := self.take(_NUMBER)) is not None:
            text = number.group()
            return float(text) if any(c in text for c in ".en") else int(text)
        at = self.at
        word = self.take(_WORD)
        if word is None or word.group() not in _WORDS:
            raise LiteralError("expected a constant", at)
        return _WORDS[word.group()]

    def _string(self) -> str:
        found = self.take(_STRING)
        if found is None:
            raise LiteralError("expected a string", self.at)
        text = json.loads(found.group())
        assert isinstance(text, str)
        return text

    def _tuple(self) -> Value:
        self.expect("(")
        items: list[Value] = []
        while not self.accept(")"):
            items.append(self.value())
            if not self.accept(","):
                self.expect(")")
                break
        return tuple(items)

    def _symbol(self) -> Value:
        self.expect("<")
        kind, name, size = self.name(), self.name(), self.value()
        self.expect(">")
        if type(size) is not int:
            raise LiteralError("expected the size of the symbol", self.at)
        return Symbol(kind, name, size)


def parse_value(text: str) -> Value:
    """The constant that `text` is.

    Raises:
        LiteralError: it is none.
    """
    reader = Reader(text)
    value = reader.value()
    if not reader.done():
        raise LiteralError("unexpected text after the constant", reader.at)
    return value
