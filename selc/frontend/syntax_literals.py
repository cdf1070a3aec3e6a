"""The values of number and string tokens, as CPython computes them."""

from __future__ import annotations

import re
import unicodedata

_ESCAPE = re.compile(
    r"\\(?:([0-7]{1,3})|(x)([0-9a-fA-F]{2})?|(u)([0-9a-fA-F]{4})?|(U)([0-9a-fA-F]{8})?"
    r"|(N)(?:\{([^}]*)\})?|(.))",
    re.DOTALL,
)
_SIMPLE = {
    "\n": "",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}


def number_value(text: str) -> int | float | complex:
    """The value of a number token; raises ValueError for digits that are too many."""
    digits = text.replace("_", "")
    if digits[:2].lower() in ("0x", "0o", "0b"):
        return int(digits, 0)
    if digits[-1] in "jJ":
        return complex(0.0, float(digits[:-1]))
    return int(digits) if digits.isdigit() else float(digits)


def string_value(token: str) -> str | bytes:
    """The value of a plain string token; raises ValueError for an escape that means nothing."""
    cut = min(at for at in (token.find("'"), token.find('"')) if at >= 0)
    prefix = token[:cut].lower()
    width = 3 if token.startswith(('"""', "'''"), cut) else 1
    body = token[cut + width : -width]
    if "b" not in prefix:
        return body if "r" in prefix else unescape(body)
    if not body.isascii():
        raise ValueError("a bytes literal may only hold ASCII characters")
    return (body if "r" in prefix else unescape(body, octets=True)).encode("latin-1")


def unescape(body: str, octets: bool = False) -> str:
    r"""Replace backslash escapes; with `octets`, only those of bytes (no \u, \U, \N)."""
    if "\\" not in body:
        return body
    return _ESCAPE.sub(lambda found: _escape(found, octets), body)


def _escape(found: re.Match[str], octets: bool) -> str:
    octal, x, x_digits, u, u_digits, long_u, long_digits, n, name, other = found.groups()
    if other is not None:
        return _SIMPLE.get(other, found[0])
    if octal is not None:
        return chr(int(octal, 8) & 0xFF if octets else int(octal, 8))
    if x is not None:
        return _code_point(x_digits, found[0])
    if octets:
        return found[0]
    if n is not None:
        return _named(name)
    return _code_point(u_digits if u is not None else long_digits, f"\\{u or long_u}")


def _code_point(digits: str | None, escape: str) -> str:
    if digits is None or int(digits, 16) > 0x10FFFF:
        raise ValueError(f"the escape {escape} needs the digits of a character")
    return chr(int(digits, 16))


def _named(name: str | None) -> str:
    try:
        character = unicodedata.lookup(name or "")
    except KeyError:
        character = ""
    if len(character) != 1:
        raise ValueError(f"no character has the name {name!r}")
    return character
