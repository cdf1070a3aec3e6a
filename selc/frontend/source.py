"""One module's source: read once, cut into top-level statements, parsed statement by statement.

Cutting scans tokens only, so that a large module costs milliseconds and only the statements that a
selection needs are ever parsed.
"""

from __future__ import annotations

import ast
import hashlib
import io
import tokenize as stdlib_tokenize
import unicodedata
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from selc.diag.diagnostic import Diagnostic, Refused
from selc.diag.span import Span
from selc.frontend.source_names import Statement
from selc.frontend.syntax_tokens import Tokens, syntax_error, tokenize

_CONTINUES = frozenset(("else", "elif", "except", "finally"))


@dataclass(frozen=True, slots=True)
class Segment:
    """One top-level statement (or several on one line, separated by semicolons).

    `kind` is def, class, import, if, try, with, for, assign, expr or other; `names` is all that the
    statement binds in the module, also in its blocks. The text covers whole lines, decorators too.
    """

    kind: str
    names: tuple[str, ...]
    first_line: int
    last_line: int
    text: str


class ModuleSource:
    """The text of one module, with plain line ends and without a byte order mark."""

    def __init__(
        self, path: str, data: bytes, module_name: str = "", is_package: bool = False
    ) -> None:
        self.path = path
        self.module_name = module_name
        self.is_package = is_package
        self.digest = hashlib.blake2b(data, digest_size=32).hexdigest()
        self.text = _decode(data, path)
        self.asked: set[str] = set()  # names whose binding statements were looked for
        self.whole = False  # whether an answer may depend on all of the text
        self._parsed: dict[int, list[ast.stmt]] = {}

    @property
    def package(self) -> str:
        """The dotted name that relative imports start from."""
        return self.module_name if self.is_package else self.module_name.rpartition(".")[0]

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """The top-level statements in source order."""
        return tuple(_cut(self.text, self.path))

    @cached_property
    def _binding(self) -> dict[str, list[Segment]]:
        index: dict[str, list[Segment]] = {}
        for segment in self.segments:
            for name in segment.names:
                index.setdefault(name, []).append(segment)
        return index

    def segments_binding(self, name: str) -> list[Segment]:
        """The statements that bind `name` (`*`: the star imports), in source order."""
        self.asked.add(name)
        return self.binding(name)

    def binding(self, name: str) -> list[Segment]:
        """The same, without counting as a question of the program's."""
        return list(self._binding.get(name, ()))

    def mentioning(self, word: str) -> list[Segment]:
        """The definitions of functions in whose text a word occurs."""
        return [s for s in self.segments if s.kind == "def" and word in s.text]

    @property
    def parsed(self) -> frozenset[int]:
        """The first lines of the statements that were parsed."""
        return frozenset(self._parsed)

    def parse(self, segment: Segment) -> list[ast.stmt]:
        """The statements of a segment as `ast` nodes; always the same objects."""
        found = self._parsed.get(segment.first_line)
        if found is None:
            from selc.frontend.syntax import check, parse_statements

            found = parse_statements(segment.text, self.path, segment.first_line)
            check(found, self.path, segment.first_line)
            self._parsed[segment.first_line] = found
        return found


def read_module(path: Path, module_name: str = "", is_package: bool = False) -> ModuleSource:
    """Read a file; an unreadable one is refused (SEL908)."""
    try:
        data = path.read_bytes()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise Refused(
            Diagnostic(
                "SEL908",
                f"the file `{path}` cannot be read: {reason.lower()}",
                help="Correct the path, or make the file readable.",
            )
        ) from None
    return ModuleSource(str(path), data, module_name, is_package)


def _decode(data: bytes, path: str) -> str:
    """Decode as Python does: byte order mark, encoding comment, else UTF-8."""
    encoding = "utf-8"
    try:
        encoding, _ = stdlib_tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        start = data.rfind(b"\n", 0, error.start) + 1
        column = len(data[start : error.start].decode(encoding, errors="replace"))
        line = data.count(b"\n", 0, error.start) + 1
        raise _undecodable(path, line, column, encoding) from None
    except (SyntaxError, LookupError, ValueError):
        line, column = _first_bad_byte(data)
        raise _undecodable(path, line, column, "") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _first_bad_byte(data: bytes) -> tuple[int, int]:
    """Where UTF-8 ends, else the first line: the encoding comment is what is wrong."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        start = data.rfind(b"\n", 0, error.start) + 1
        column = len(data[start : error.start].decode("utf-8", errors="replace"))
        return data.count(b"\n", 0, error.start) + 1, column
    head = data.split(b"\n", 2)
    return (2 if len(head) > 1 and b"coding" not in head[0] else 1), 0


def _undecodable(path: str, line: int, column: int, encoding: str) -> Refused:
    what = f"this byte is no {encoding} text" if encoding else "the text encoding is not known"
    return Refused(
        Diagnostic(
            "SEL900",
            what,
            Span(path, line, column + 1, line, column + 2),
            help="Save the file as UTF-8, or name its encoding in a comment on the first line.",
        )
    )


def _cut(text: str, path: str) -> list[Segment]:
    """Cut a module into its top-level statements."""
    tokens = tokenize(text, path)
    lines = text.split("\n")
    segments = []
    for group in _groups(tokens):
        first = tokens.line[group[0][0]]
        last = tokens.end_line[group[-1][1] - 1]
        kind, names = Statement(tokens, group).kind_and_names()
        body = "\n".join(lines[first - 1 : last]) + "\n"
        spelt = tuple(n if n.isascii() else unicodedata.normalize("NFKC", n) for n in names)
        segments.append(Segment(kind, spelt, first, last, body))
    return segments


def _groups(tokens: Tokens) -> list[list[tuple[int, int]]]:
    """The logical lines (first token, end) of each top-level statement."""
    starts = tokens.logical
    ends = [*starts[1:], len(tokens.text)][: len(starts)]
    groups: list[list[tuple[int, int]]] = []
    decorated = False
    for start, end in zip(starts, ends, strict=True):
        word = tokens.text[start]
        if tokens.column[start] > 0 or (word in _CONTINUES and groups) or decorated:
            if not groups:
                raise syntax_error(
                    tokens.path,
                    tokens.line[start],
                    tokens.column[start],
                    "this line is indented without a reason",
                )
            groups[-1].append((start, end))
        else:
            groups.append([(start, end)])
        decorated = word == "@" and tokens.column[start] == 0
    return groups
