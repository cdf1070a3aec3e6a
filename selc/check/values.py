"""The constants of graphs, and the reader of lines of their text."""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Final


class Unreadable(ValueError):
    """The manifest is no certificate that this checker reads."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """A named constant that is equal to itself alone: a dtype, a member of an enumeration."""

    kind: str
    name: str
    size: int

    def __str__(self) -> str:
        return self.name


class _Mark:
    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


UNDEF: Final = _Mark("undef")
"""Where Python would have raised."""

WIDE: Final = _Mark("too wide")
"""A value that graphs do not hold: an integer of more than 14,284 bits, a complex number."""


def key(value: Any) -> Hashable:
    """Equal exactly for values of equal type and bits."""
    if type(value) is tuple:
        return ("tuple", *map(key, value))
    if type(value) is float:
        return ("float", struct.pack("<d", value))
    return (type(value).__name__, value)


def plain(value: Any) -> Any:
    """A value as the JSON of the manifest writes it."""
    if type(value) is tuple:
        return [plain(v) for v in value]
    if type(value) is Symbol:
        return value.name
    if type(value) is float and not math.isfinite(value):
        return repr(value)
    return value


def frozen(data: Any) -> Hashable:
    """JSON data as something that compares with type and bits."""
    if isinstance(data, list):
        return ("tuple", *map(frozen, data))
    if isinstance(data, dict):
        return ("object", *sorted((k, frozen(v)) for k, v in data.items()))
    return key(data)


_TOKEN: Final = re.compile(
    r"""\s*(?: (?P<string>"(?:[^"\\]|\\.)*")
             | (?P<hex>-?0x[0-9a-f]+)
             | (?P<nan>nan\([0-9a-f]{16}\))
             | (?P<range>\.\.)
             | (?P<number>-?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|inf\b))
             | (?P<name>[A-Za-z_][\w.\-]*)
             | (?P<sign>\S)
             | (?P<end>\Z))""",
    re.VERBOSE,
)
_WORDS: Final[dict[str, Any]] = {"None": None, "True": True, "False": False, "undef": UNDEF}


class Line:
    """One line of text, read token by token."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.kind = self.token = ""
        self._next()

    def _next(self) -> None:
        found = _TOKEN.match(self.text, self.at)
        if found is None or found.lastgroup is None:
            raise Unreadable(f"cannot read: {self.text[:120]}")
        self.kind, self.token, self.at = found.lastgroup, found[found.lastgroup], found.end()

    def take(self) -> str:
        """The next token, whatever it is."""
        token = self.token
        self._next()
        return token

    def accept(self, token: str) -> bool:
        """Read this word or sign if it stands next."""
        if self.token != token or self.kind == "string":
            return False
        self._next()
        return True

    def expect(self, token: str) -> None:
        """Read this word or sign."""
        if not self.accept(token):
            raise Unreadable(f"expected {token!r}: {self.text[:120]}")

    def name(self) -> str:
        """A name, bare or in quotes."""
        if self.kind == "string":
            return str(json.loads(self.take()))
        if self.kind != "name":
            raise Unreadable(f"expected a name: {self.text[:120]}")
        return self.take()

    def node(self) -> int:
        """The number of a node: `v12`."""
        if self.kind != "name" or not re.fullmatch(r"v\d+", self.token):
            raise Unreadable(f"expected a node: {self.text[:120]}")
        return int(self.take()[1:])

    def integer(self) -> int:
        """An integer."""
        value = self.value()
        if type(value) is not int:
            raise Unreadable(f"expected an integer: {self.text[:120]}")
        return value

    def value(self) -> Any:
        """A constant."""
        kind = self.kind
        if kind == "string":
            return json.loads(self.take())
        if kind == "hex":
            return int(self.take(), 16)
        if kind == "nan":
            return struct.unpack(">d", bytes.fromhex(self.take()[4:-1]))[0]
        if kind == "number":
            text = self.take()
            return float(text) if any(c in text for c in ".en") else int(text)
        if kind == "name" and self.token in _WORDS:
            return _WORDS[self.take()]
        if self.accept("("):
            return self.items(")")
        if self.accept("<"):
            symbol = Symbol(self.name(), self.name(), self.integer())
            self.expect(">")
            return symbol
        raise Unreadable(f"expected a constant: {self.text[:120]}")

    def items(self, close: str) -> tuple[Any, ...]:
        """Constants up to a closing sign."""
        out: list[Any] = []
        while not self.accept(close):
            out.append(self.value())
            if not self.accept(","):
                self.expect(close)
                break
        return tuple(out)

    def domain(self) -> range | tuple[Any, ...]:
        """`lo..hi`, `lo..hi step s`, or `{a, b, c}`."""
        if self.accept("{"):
            return self.items("}")
        low = self.integer()
        self.expect("..")
        high = self.integer()
        step = self.integer() if self.accept("step") else 1
        if step < 1 or high < low:
            raise Unreadable(f"an empty range: {self.text[:120]}")
        return range(low, high + 1, step)

    def rest(self) -> str:
        """What follows the `;`: the place in the source, or nothing."""
        if self.kind == "sign" and self.token[0] == ";":
            return self.text[self.at :].strip()
        if self.kind != "end":
            raise Unreadable(f"unexpected text at the end: {self.text[:120]}")
        return ""
