"""What a top-level statement binds, read off its tokens without parsing it.

Bodies of functions and classes are passed over: they bind nothing in the module. A name that `del`
removes counts as bound, since the statement changes what it means, and so does `:=` in a lambda:
rather a name too many than one too few. `from m import *` binds `*`.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterator, Sequence

from selc.frontend.syntax_tokens import Tokens

_OPENERS = frozenset("([{")
_CLOSERS = frozenset(")]}")
_AUGMENTED = frozenset(
    ("+=", "-=", "*=", "/=", "//=", "%=", "@=", "&=", "|=", "^=", ">>=", "<<=", "**=")
)
_BLOCKS = frozenset(
    ("if", "elif", "else", "try", "except", "finally", "with", "for", "while", "async")
)
_OTHER = frozenset(
    ("pass", "del", "raise", "assert", "global", "nonlocal", "return", "break", "continue")
)
_KINDS = {"import": "import", "from": "import", "class": "class", "def": "def"}
_BLOCK_KINDS = {"if": "if", "try": "try", "with": "with", "for": "for"}
_Row = Sequence[str]


class Statement:
    """One top-level statement: the tokens of its logical lines."""

    def __init__(self, tokens: Tokens, lines: Sequence[tuple[int, int]]) -> None:
        self.tokens = tokens
        self.lines = lines

    def kind_and_names(self) -> tuple[str, tuple[str, ...]]:
        """The kind of the statement and the names it binds, in order of first binding."""
        kind = "other"
        names: dict[str, None] = {}
        for first, row in self._rows():
            found, bound = _line(row)
            if first or (kind == "decorated" and found != "decorated"):
                kind = found
            names.update(dict.fromkeys(bound))
        return kind, tuple(names)

    def _rows(self) -> Iterator[tuple[bool, _Row]]:
        """The tokens of each logical line outside the bodies of functions and classes."""
        tokens = self.tokens
        inside: int | None = None
        matching: list[int] = []
        for number, (start, end) in enumerate(self.lines):
            column = tokens.column[start]
            if inside is not None and column > inside:
                continue
            inside = None
            row = [
                "''" if index in tokens.literal else tokens.text[index]
                for index in range(start, end)
            ]
            while matching and column <= matching[-1]:
                matching.pop()
            if row[0] in ("def", "class") or row[:2] == ["async", "def"]:
                inside = column
            elif row[0] == "match" and row[-1] == ":":
                matching.append(column)
                row[0] = "while"  # a block that has an expression in its head
            elif row[0] == "case" and matching:
                row[0] = "\0case"
            yield number == 0, row


def _line(row: _Row) -> tuple[str, list[str]]:
    """The kind of one logical line and what it binds."""
    names = [
        row[index - 1] for index, text in enumerate(row) if text == ":=" and is_name(row[index - 1])
    ]
    head = row[0]
    if head == "@":
        return "decorated", names
    if head in ("def", "class") or list(row[:2]) == ["async", "def"]:
        name = row[2] if head == "async" else row[1] if len(row) > 1 else ""
        head_end = _colon(row)
        walrus = [n for n in names if _before(row, n, head_end)]
        return "class" if head == "class" else "def", [name, *walrus]
    if head in _BLOCKS or head == "\0case":
        colon = _colon(row)
        names += _head(row[:colon])
        if colon + 1 < len(row):
            names += _line(row[colon + 1 :])[1]
        word = row[1] if head == "async" and len(row) > 1 else head
        return _BLOCK_KINDS.get(word, "other"), names
    kinds: set[str] = set()
    for part in _split(row, ";"):
        if part:
            kind, bound = _simple(part)
            kinds.add(kind)
            names += bound
    return kinds.pop() if len(kinds) == 1 else "other", names


def _before(row: _Row, name: str, end: int) -> bool:
    return any(row[i] == name and row[i + 1] == ":=" for i in range(min(end, len(row) - 1)))


def _head(row: _Row) -> list[str]:
    """What the head of a block binds (without its colon)."""
    head = row[0]
    if head == "async":
        row, head = row[1:], row[1] if len(row) > 1 else ""
    if head == "for":
        end = next((i for i, depth in _depths(row) if depth == 0 and row[i] == "in"), len(row))
        return targets(row[1:end])
    if head == "with":
        return _with(row)
    if head == "except" and len(row) > 2 and row[-2] == "as":
        return [row[-1]]
    if head == "\0case":
        return _pattern(row[1:])
    return []


def _with(row: _Row) -> list[str]:
    names: list[str] = []
    for index, text in enumerate(row):
        if text != "as":
            continue
        depth = 0
        end = index + 1
        while end < len(row):
            if depth == 0 and (row[end] == "," or row[end] in _CLOSERS):
                break
            depth += (row[end] in _OPENERS) - (row[end] in _CLOSERS)
            end += 1
        names += targets(row[index + 1 : end])
    return names


def _pattern(row: _Row) -> list[str]:
    names: list[str] = []
    for index, text in enumerate(row):
        follower = row[index + 1] if index + 1 < len(row) else ""
        before = row[index - 1] if index else ""
        if text == "if":
            break
        if is_name(text) and text != "_" and before != "." and follower not in (".", "(", "="):
            names.append(text)
    return names


def _simple(row: _Row) -> tuple[str, list[str]]:
    """The kind of a simple statement and what it binds."""
    head = row[0]
    if head in _KINDS:
        return "import", _imported(row)
    if head == "del":
        return "other", targets(row[1:])
    if head in _OTHER:
        return "other", []
    if head == "type" and len(row) > 2 and is_name(row[1]) and row[2] in ("=", "["):
        return "other", [row[1]]
    marks = []
    for index, depth in _depths(row):
        if depth == 0:
            if row[index] == "lambda":
                break
            if row[index] in ("=", ":") or row[index] in _AUGMENTED:
                marks.append(index)
    if not marks:
        return "expr", []
    if row[marks[0]] == ":":
        return "assign", targets(row[: marks[0]]) if len(marks) > 1 or "=" in row else []
    names: list[str] = []
    start = 0
    for mark in marks:
        names += targets(row[start:mark])
        start = mark + 1
    return "assign", names


def _imported(row: _Row) -> list[str]:
    if row[0] == "from":
        row = row[list(row).index("import") :] if "import" in row else row[:0]
    plain = [text for text in row[1:] if text not in ("(", ")")]
    return [part[-1] if "as" in part else part[0] for part in _split(plain, ",") if part]


def targets(row: _Row) -> list[str]:
    """The plain names of an assignment target: no attributes, nothing subscripted or called."""
    names: list[str] = []
    trailers: list[bool] = []
    for index, text in enumerate(row):
        before = row[index - 1] if index else ""
        if text in _OPENERS:
            trailers.append(is_name(before) or before in _CLOSERS or before[-1:] in ("'", '"'))
        elif text in _CLOSERS:
            if trailers:
                trailers.pop()
        elif is_name(text) and before != "." and not any(trailers):
            follower = row[index + 1] if index + 1 < len(row) else ""
            if follower not in (".", "[", "("):
                names.append(text)
    return names


def is_name(text: str) -> bool:
    """Whether a token is an identifier."""
    return text.isidentifier() and not keyword.iskeyword(text)


def _depths(row: _Row) -> Iterator[tuple[int, int]]:
    """Each index with the number of brackets open around it."""
    depth = 0
    for index, text in enumerate(row):
        depth -= text in _CLOSERS
        yield index, depth
        depth += text in _OPENERS


def _colon(row: _Row) -> int:
    """The colon that ends the head of a block."""
    lambdas = 0
    for index, depth in _depths(row):
        if depth == 0:
            if row[index] == "lambda":
                lambdas += 1
            elif row[index] == ":":
                if lambdas == 0:
                    return index
                lambdas -= 1
    return len(row)


def _split(row: _Row, separator: str) -> Iterator[_Row]:
    start = 0
    for index, depth in _depths(row):
        if depth == 0 and row[index] == separator:
            yield row[start:index]
            start = index + 1
    yield row[start:]
