"""Names and texts of the input, made safe for Python and C.

Nothing of the input reaches generated code unescaped: identifiers in C are numbered, comments lose
what could end them, strings are escaped byte by byte.
"""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Iterable, Sequence

_PATH = re.compile(r"(?:\[\d+\]|[^\W\d]\w*)(?:\.?\[\d+\]|\.[^\W\d]\w*)*")
_STEP = re.compile(r"\[(\d+)\]|([^\W\d]\w*)")


def identifier(text: str, fallback: str = "value") -> str:
    """A Python identifier for any text: runs of other characters become one underscore.

    In the normal form that Python gives to identifiers, so that equal ones are equal texts.
    """
    name = re.sub(r"\W+", "_", unicodedata.normalize("NFKC", text)).strip("_")
    if not f"n{name}".isidentifier():
        name = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_")
    if not name:
        return fallback
    if not name.isidentifier():
        name = f"n{name}"
    return f"{name}_" if keyword.iskeyword(name) or name in _RESERVED else name


_RESERVED = frozenset({"None", "True", "False", "self", "cls"})


def distinct(names: Iterable[str]) -> list[str]:
    """The same names, later duplicates numbered from 2."""
    seen: set[str] = set()
    out: list[str] = []
    for name in names:
        chosen, count = name, 2
        while chosen in seen:
            chosen, count = f"{name}_{count}", count + 1
        seen.add(chosen)
        out.append(chosen)
    return out


def point_path(name: str) -> tuple[str | int, ...]:
    """How a point nests: `down.K` is ('down', 'K'), `[0]` is (0,), anything else one step."""
    if not _PATH.fullmatch(name):
        return (name,)
    return tuple(int(m[1]) if m[1] is not None else m[2] for m in _STEP.finditer(name))


def c_symbol(family: str) -> str:
    """A C identifier part for a family: ASCII letters, digits and underscores."""
    name = re.sub(r"[^A-Za-z0-9]+", "_", family).strip("_").lower()[:40]
    return name or "selector"


def comment(text: str) -> str:
    """Text that is safe inside a C or Python comment on one line."""
    flat = "".join(c if " " <= c <= "~" else "?" for c in " ".join(text.split()))
    safe = re.sub(r"\?+", "?", flat.replace("\\", "/"))
    return re.sub(r"(?<=\*)/|(?<=/)\*", r" \g<0>", safe)[:160]


def c_string(text: str) -> str:
    """A C string literal with the UTF-8 bytes of `text`."""
    out = []
    for byte in text.encode("utf-8", "surrogatepass"):
        char = chr(byte)
        plain = " " <= char <= "~" and char not in '"\\?%'
        out.append(char if plain else f"\\{byte:03o}")
    return '"' + "".join(out) + '"'


def c_lines(text: str) -> list[str]:
    """A text as the lines of a C block comment."""
    return ["/*", *(f" * {comment(line)}".rstrip() for line in text.splitlines()), " */"]


def unique_identifiers(texts: Sequence[str], fallback: str = "value") -> list[str]:
    """One distinct Python identifier per text."""
    return distinct(identifier(t, fallback) for t in texts)
