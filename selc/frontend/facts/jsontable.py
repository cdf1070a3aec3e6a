"""JSON tables: read strictly, with the order of their keys, and errors that name the line."""

from __future__ import annotations

import json
import re
from typing import Final, NoReturn

from selc.diag.diagnostic import Sink
from selc.diag.span import Span
from selc.frontend.facts.tree import UNREADABLE, WRONG, error

TOKEN: Final = re.compile(
    r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|-?Infinity|NaN|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?', re.DOTALL
)

_BRACKET: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[][{}]', re.DOTALL)
MAX_DEPTH: Final = 64


class Bad(Exception):
    """A value that JSON tables do not take."""

    def __init__(self, message: str, token: str, help_: str) -> None:
        super().__init__(message)
        self.message, self.token, self.help = message, token, help_


def read_json(text: str, path: str, sink: Sink) -> tuple[object] | None:
    """The value of a JSON text in a box; lists are tuples."""
    if _depth(text) > MAX_DEPTH:
        top = Span(path, 1, 1, 1, 1)
        message = f"this file is nested more than {MAX_DEPTH} deep"
        error(sink, UNREADABLE, top, message, "flatten it")
        return None
    try:
        value = json.loads(
            text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_float,
            parse_int=_int,
        )  # fmt: skip
        return (_frozen(value),)
    except json.JSONDecodeError as e:
        span = Span(path, e.lineno, e.colno, e.lineno, e.colno + 1)
        error(sink, UNREADABLE, span, f"this is not JSON: {e.msg}", "mend the file at this place")
    except Bad as e:
        error(sink, WRONG, _place(text, path, e.token), e.message, e.help)
    return None


def _depth(text: str) -> int:
    """How deep the brackets of a text go."""
    depth = most = 0
    for part in _BRACKET.findall(text):
        if part[0] != '"':
            depth += 1 if part in "[{" else -1
            most = max(most, depth)
    return most


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    out = dict(pairs)
    if len(out) < len(pairs):
        seen: set[str] = set()
        twice = next(k for k, _ in pairs if k in seen or seen.add(k))  # type: ignore[func-returns-value]  # add returns None
        raise Bad(f"the key `{twice}` is set twice in one object", "", "keep one of them")
    return out


def _constant(name: str) -> NoReturn:
    raise Bad(f"{name} is not JSON", name, "write a finite number")


def _float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise Bad(f"{text} is too large for a float", text, "write a finite number")
    return value


def _int(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        message = f"this number has {len(text)} digits"
        raise Bad(message, text, "write a number of at most 4,300 digits") from None


def _frozen(value: object) -> object:
    if isinstance(value, list):
        return tuple(_frozen(v) for v in value)
    if isinstance(value, dict):
        return {k: _frozen(v) for k, v in value.items()}
    return value


def _place(text: str, path: str, token: str) -> Span:
    """Where `token` stands outside strings; for an empty one, the first key that is set twice.

    Objects close from the inside out, so the parser meets the twice-set key of the object that
    closes first; the scan reports that one too.
    """
    open_: list[dict[str, re.Match[str] | None]] = []
    last: re.Match[str] | None = None
    for match in TOKEN.finditer(text):
        word = match.group()
        if token and word == token:
            return _span(text, path, match)
        if word in "{[":
            open_.append({"": None} if word == "{" else {})
        elif word in "}]" and open_:
            twice = open_.pop().get("twice", None)
            if not token and twice is not None:
                return _span(text, path, twice)
        elif word == ":" and last is not None and open_:
            keys = open_[-1]
            key = "k" + json.loads(last.group())
            if key in keys:
                keys.setdefault("twice", last)
            keys[key] = last
        last = match
    return Span(path, 1, 1, 1, 1)


def _span(text: str, path: str, match: re.Match[str]) -> Span:
    before = text[: match.start()]
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    return Span(path, line, column, line, column + len(match.group()))
