"""Significant tokens of Python text with exact places.

Comments, blank space and line ends are left out; f-strings are opened up, so the tokens of the
expressions inside them appear in order. Lines are 1-based, columns 0-based and in characters, ends
exclusive.
"""

from __future__ import annotations

import re
from typing import NoReturn

from selc.diag.diagnostic import Diagnostic, Refused
from selc.diag.span import Span

_NAME = r"(?:[^\W\d]|[^\x00-\x7f])(?:\w|[^\x00-\x7f])*"
_DIGITS = r"[0-9](?:_?[0-9])*"
_EXPONENT = rf"[eE][+-]?{_DIGITS}"
_NUMBER = (
    r"0[xX](?:_?[0-9a-fA-F])+|0[bB](?:_?[01])+|0[oO](?:_?[0-7])+"
    rf"|(?:{_DIGITS}\.(?:{_DIGITS})?|\.{_DIGITS}|{_DIGITS})(?:{_EXPONENT})?[jJ]?"
)
_STRING = (
    r"(?:[uU]|[bB][rR]?|[rR][bB]?)?(?:"
    r"'''[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'''"
    r'|"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""'
    r"|'(?!'')[^'\\\n]*(?:\\.[^'\\\n]*)*'"
    r'|"(?!"")[^"\\\n]*(?:\\.[^"\\\n]*)*")'
)
_FORMATTED = r"(?:[fFtT][rR]?|[rR][fFtT])(?:'''|\"\"\"|'|\")"
_OPERATOR = r"\*\*=?|//=?|>>=?|<<=?|\.\.\.|->|:=|[-+*/%&|^@=<>!]=|[-+*/%&|^@=<>.,:;~]|!(?!=)"
_SPACE = r"(?:[ \t\f]|\\\n)*"
_TOKEN = re.compile(
    rf"{_SPACE}(?:({_FORMATTED})|({_STRING})|({_NAME})|({_NUMBER})|([(\[{{])|([)\]}}])"
    rf"|({_OPERATOR})|(#[^\n]*)|(\n)|(\Z))",
    re.DOTALL,
)
_FORMAT, _STR, _NAME_KIND, _NUM, _OPEN, _CLOSE, _OP, _COMMENT, _NEWLINE, _END = range(1, 11)
_MOST_BRACKETS = 200  # the limit of CPython itself
_CLOSER = {"(": ")", "[": "]", "{": "}"}


def _middle(quote: str, raw: bool, spec: bool) -> re.Pattern[str]:
    """The literal text of an f-string up to the next field or the closing quote."""
    mark = quote[0]
    escape = r"\\(?:[^{}]|(?=[{}]))" if raw else r"\\(?:N\{[^{}\n]*\}|[^{}]|(?=[{}]))"
    plain = rf"[^{{}}\\{mark}]" if len(quote) == 3 else rf"[^{{}}\\\n{mark}]"
    parts = [f"{plain}+", escape]
    if len(quote) == 3:
        parts.append(f"{mark}(?!{mark}{mark})")
    if not spec:
        parts += [r"\{\{", r"\}\}"]
    return re.compile(f"(?:{'|'.join(parts)})*", re.DOTALL)


_MIDDLE = {
    (quote, raw, spec): _middle(quote, raw, spec)
    for quote in ("'", '"', "'''", '"""')
    for raw in (False, True)
    for spec in (False, True)
}


def syntax_error(path: str, line: int, column: int, message: str, help_text: str = "") -> Refused:
    """The refusal of text that is not Python that we read (`column` 0-based)."""
    span = Span(path, line, column + 1, line, column + 2)
    hint = help_text or "Correct the Python syntax at this place."
    return Refused(Diagnostic("SEL900", message, span, help=hint))


class Tokens:
    """Parallel columns, one row per token; `logical` holds the first token of each logical line.

    `literal` holds the tokens that are the text between the fields of an f-string.
    `longest` counts the most tokens without a comma between them, and ends at `longest_at`.
    """

    __slots__ = (
        "column",
        "end_column",
        "end_line",
        "line",
        "literal",
        "logical",
        "longest",
        "longest_at",
        "path",
        "source",
        "start",
        "text",
    )

    def __init__(self, source: str, path: str) -> None:
        self.source = source
        self.path = path
        self.text: list[str] = []
        self.start: list[int] = []
        self.line: list[int] = []
        self.column: list[int] = []
        self.end_line: list[int] = []
        self.end_column: list[int] = []
        self.logical: list[int] = []
        self.literal: set[int] = set()
        self.longest = 0
        self.longest_at = 0


class _Scanner:
    """One left-to-right scan; `brackets` holds (opener, line, column) of what is open."""

    def __init__(self, source: str, path: str, first_line: int) -> None:
        self.out = Tokens(source, path)
        self.source = source
        self.position = 0
        self.line = first_line
        self.line_start = 0
        self.brackets: list[tuple[str, int, int]] = []
        self.unbroken = 0

    def fail(self, message: str, position: int) -> NoReturn:
        """Refuse the text at an offset that lies on or after the current line."""
        before = self.source.count("\n", self.line_start, position)
        start = self.source.rfind("\n", 0, position) + 1
        raise syntax_error(self.out.path, self.line + before, position - start, message)

    def emit(self, text: str, start: int) -> None:
        """Append a token and step over it."""
        out = self.out
        out.text.append(text)
        out.start.append(start)
        out.line.append(self.line)
        out.column.append(start - self.line_start)
        self.position = start + len(text)
        if "\n" in text:
            self.line += text.count("\n")
            self.line_start = start + text.rfind("\n") + 1
        out.end_line.append(self.line)
        out.end_column.append(self.position - self.line_start)

    def run(self, base: int) -> None:
        """Scan to the end; inside a field (`base` > 0) to the token that ends its expression."""
        source, match, brackets = self.source, _TOKEN.match, self.brackets
        fresh = base == 0
        while True:
            found = match(source, self.position)
            if found is None:
                self.unreadable()
            kind = found.lastindex or 0
            text, start = found[kind], found.start(kind)
            if start != self.position:
                self.skip(start)
            if kind == _COMMENT:
                self.position = found.end()
                continue
            if kind == _NEWLINE:
                self.position = self.line_start = found.end()
                self.line += 1
                fresh = fresh or not brackets
                continue
            if kind == _END:
                self.finish()
                return
            if base and len(brackets) == base and (text in _FIELD_ENDS):
                self.position = start
                return
            if fresh:
                self.out.logical.append(len(self.out.text))
                fresh = False
                self.unbroken = 0
            if kind == _OPEN:
                self.open(text, start)
            elif kind == _CLOSE:
                self.close(text, start)
            self.measure(kind, text)
            if kind == _FORMAT:
                self.formatted(text, start)
            else:
                self.emit(text, start)

    def measure(self, kind: int, text: str) -> None:
        """Keep the largest number of tokens between two commas: what recursion depth depends on."""
        if text == ",":
            self.unbroken = 0
        elif kind != _STR:
            self.unbroken += 1
            if self.unbroken > self.out.longest:
                self.out.longest = self.unbroken
                self.out.longest_at = len(self.out.text)

    def skip(self, start: int) -> None:
        """Count the line continuations in the blank space before a token."""
        joined = self.source.count("\n", self.position, start)
        if joined:
            self.line += joined
            self.line_start = self.source.rfind("\n", 0, start) + 1

    def open(self, text: str, start: int) -> None:
        """Note an opening bracket."""
        if len(self.brackets) >= _MOST_BRACKETS:
            self.fail("brackets are nested too deeply", start)
        self.brackets.append((text, self.line, start - self.line_start))

    def close(self, text: str, start: int) -> None:
        """Match a closing bracket with what is open."""
        if not self.brackets or self.brackets[-1][0] not in _CLOSER:
            self.fail(f"'{text}' closes nothing that is open", start)
        opener, line, _ = self.brackets.pop()
        if _CLOSER[opener] != text:
            self.fail(f"'{text}' does not match '{opener}' of line {line}", start)

    def finish(self) -> None:
        """At the end of the text nothing may be open."""
        if self.brackets:
            opener, line, column = self.brackets[0]
            raise syntax_error(self.out.path, line, column, f"'{opener}' is never closed")

    def unreadable(self) -> NoReturn:
        """Say what stands where no token begins."""
        position = self.position
        while self.source[position] in " \t\f":
            position += 1
        found = re.compile(r"[a-zA-Z]{0,2}['\"]").match(self.source, position)
        if found is not None:
            self.fail("this string is never closed", position)
        if self.source[position] == "\\":
            self.fail("a line continuation must end the line", position)
        self.fail(f"{self.source[position]!r} is no Python token", position)

    def formatted(self, opening: str, start: int) -> None:
        """Scan an f-string from its prefix to its closing quote."""
        quote = opening.lstrip("fFrRtT")
        raw = "r" in opening.lower()
        self.emit(opening, start)
        self.brackets.append((opening, self.line, self.position - 1 - self.line_start))
        self.literal(quote, raw, spec=False)
        if not self.source.startswith(quote, self.position):
            self.fail(f"the string '{opening}' is never closed", start)
        self.brackets.pop()
        self.emit(quote, self.position)

    def literal(self, quote: str, raw: bool, spec: bool) -> None:
        """Literal text and fields up to a closing quote (or the end of a format specification)."""
        pattern = _MIDDLE[quote, raw, spec]
        while True:
            found = pattern.match(self.source, self.position)
            if found is not None and found[0]:
                self.out.literal.add(len(self.out.text))
                self.emit(found[0], self.position)
            if not self.source.startswith("{", self.position):
                break
            self.field(quote, raw)
        if not spec and self.source.startswith("}", self.position):
            self.fail("a single '}' is not allowed in an f-string", self.position)

    def field(self, quote: str, raw: bool) -> None:
        """One `{expression = !conversion : format}`."""
        self.open("{", self.position)
        self.emit("{", self.position)
        self.run(len(self.brackets))
        if self.source.startswith("!", self.position):
            self.emit("!", self.position)
            self.run(len(self.brackets))
        if self.source.startswith(":", self.position):
            self.emit(":", self.position)
            self.literal(quote, raw, spec=True)
        if not self.source.startswith("}", self.position):
            self.fail("this f-string field is never closed", self.position)
        self.brackets.pop()
        self.emit("}", self.position)


_FIELD_ENDS = frozenset(("}", "!", ":", ":="))


def tokenize(source: str, path: str, first_line: int = 1) -> Tokens:
    """Scan `source`; refuse what is not closed or is no token."""
    scanner = _Scanner(source, path, first_line)
    scanner.run(0)
    return scanner.out
