"""Strings: implicit concatenation and f-strings.

Places inside f-strings: the text and the fields have their own places, as CPython has them from
3.12 on (3.11 gives every text and field the place of the whole string). A run of text takes the
place of the tokens that it was joined from.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

import libcst as cst

from selc.frontend.syntax_literals import string_value, unescape

if TYPE_CHECKING:
    from selc.frontend.syntax_expr import Expressions

_Part = cst.SimpleString | cst.FormattedString
_CONVERSIONS = {None: -1, "s": 115, "r": 114, "a": 97}


def string(
    reader: Expressions, node: cst.SimpleString | cst.ConcatenatedString | cst.FormattedString
) -> ast.expr:
    """Translate a string expression of any form."""
    first = reader.i
    parts = _parts(reader, node)
    kind = "u" if reader.text[first].startswith("u") else None
    if any(isinstance(part, cst.FormattedString) for part in parts):
        pieces = _Pieces(reader, kind)
        for part in parts:
            if isinstance(part, cst.FormattedString):
                raw = "r" in part.start.lower()
                reader.take(part.start)
                _content(reader, pieces, part.parts, raw)
                reader.take(part.end)
            else:
                reader.take(part.value)
                pieces.text(_text(reader, part), reader.i - 1, reader.i - 1)
        return reader.at(ast.JoinedStr(pieces.finish()), first)
    values = []
    for part in parts:
        assert isinstance(part, cst.SimpleString)
        reader.take(part.value)
        values.append(_value(reader, part))
    return reader.at(ast.Constant(_join(values), kind), first)


def _parts(reader: Expressions, node: cst.BaseExpression) -> list[_Part]:
    """The strings of an implicit concatenation, in order."""
    parts: list[_Part] = []
    while isinstance(node, cst.ConcatenatedString):
        left = node.left
        if not isinstance(left, cst.SimpleString | cst.FormattedString):
            raise reader.refuse("a template string is newer Python syntax than selc reads")
        parts.append(left)
        node = node.right
    if not isinstance(node, cst.SimpleString | cst.FormattedString):
        raise reader.refuse("a template string is newer Python syntax than selc reads")
    parts.append(node)
    return parts


def _join(values: list[str | bytes]) -> str | bytes:
    if len(values) == 1:
        return values[0]
    if isinstance(values[0], bytes):
        return b"".join(value for value in values if isinstance(value, bytes))
    return "".join(value for value in values if isinstance(value, str))


def _value(reader: Expressions, node: cst.SimpleString) -> str | bytes:
    try:
        return string_value(node.value)
    except ValueError as error:
        raise reader.refuse(str(error), reader.i - 1) from None


def _text(reader: Expressions, node: cst.SimpleString) -> str:
    value = _value(reader, node)
    if isinstance(value, bytes):
        raise reader.refuse("a bytes literal cannot be joined with a string", reader.i - 1)
    return value


class _Pieces:
    """The values of a JoinedStr; neighbouring texts become one constant."""

    def __init__(self, reader: Expressions, kind: str | None) -> None:
        self.reader = reader
        self.kind = kind
        self.values: list[ast.expr] = []
        self.pending: list[str] = []
        self.first = self.last = 0

    def text(self, value: str, first: int, last: int) -> None:
        """Append text that the tokens `first` to `last` stand for."""
        if not value:
            return
        if not self.pending:
            self.first = first
        self.last = last
        self.pending.append(value)

    def finish(self) -> list[ast.expr]:
        """Turn the text so far into a constant; all values."""
        if self.pending:
            constant = ast.Constant("".join(self.pending), self.kind)
            self.values.append(self.reader.between(constant, self.first, self.last))
            self.pending = []
        return self.values


def _content(
    reader: Expressions,
    pieces: _Pieces,
    parts: Sequence[cst.BaseFormattedStringContent],
    raw: bool,
) -> None:
    for part in parts:
        if isinstance(part, cst.FormattedStringText):
            reader.take(part.value)
            value = part.value.replace("{{", "{").replace("}}", "}")
            try:
                pieces.text(value if raw else unescape(value), reader.i - 1, reader.i - 1)
            except ValueError as error:
                raise reader.refuse(str(error), reader.i - 1) from None
        elif isinstance(part, cst.FormattedStringExpression):
            _field(reader, pieces, part, raw)


def _field(
    reader: Expressions, pieces: _Pieces, node: cst.FormattedStringExpression, raw: bool
) -> None:
    first = reader.i
    reader.take("{")
    value = reader.expr(node.expression)
    conversion = _CONVERSIONS[node.conversion]
    if node.equal is not None:
        reader.take("=")
        starts = reader.tokens.start
        text = reader.tokens.source[starts[first] + 1 : starts[reader.i]]
        pieces.text(text, first + 1, reader.i - 1)
        if node.conversion is None and node.format_spec is None:
            conversion = 114
    if node.conversion is not None:
        reader.take("!")
        reader.take(node.conversion)
    spec = None
    if node.format_spec is not None:
        start = reader.i
        reader.take(":")
        inner = _Pieces(reader, pieces.kind)
        _content(reader, inner, node.format_spec, raw)
        spec = reader.at(ast.JoinedStr(inner.finish()), start)
    reader.take("}")
    pieces.finish().append(reader.at(ast.FormattedValue(value, conversion, spec), first))
