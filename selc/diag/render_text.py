"""Diagnostics as text: `path:line:col`, the line with its marks, notes, help.

    model.py:4:5: error[SEL902]: this loop has no bound that selc can see
      |
    4 |     while n > 0:
      |     ^^^^^^^^^^^ runs as long as `n` is positive
      |
      = help: give `n` a range with an upper end in the facts file

Everything that selc adds is ASCII. Rendering never raises: what cannot be shown is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from selc.diag.diagnostic import Diagnostic, Severity
from selc.diag.source_text import SourceLines, shown, width
from selc.diag.span import Span

_LONGEST = 120  # columns of source shown of one line
_USAGE = "SEL909"  # a wrong command line needs no further explanation
_LEAD = 30  # columns shown before the marked part of a longer line


class _Mark(NamedTuple):
    """One underline: where, with which character, with which words."""

    span: Span
    stroke: str
    text: str


def render_text(diagnostic: Diagnostic, sources: Mapping[str, str] | None = None) -> str:
    """One diagnostic, without a final newline. `sources` are texts that need not be read."""
    return _render(diagnostic, SourceLines(sources))


def render_all(diagnostics: Iterable[Diagnostic], sources: Mapping[str, str] | None = None) -> str:
    """Several diagnostics with a closing line of counts; empty if there are none."""
    items = list(diagnostics)
    if not items:
        return ""
    lines = SourceLines(sources)
    parts = [_render(item, lines) for item in items]
    summary = _summary(items)
    return "\n\n".join([*parts, summary] if summary else parts)


def frame(span: Span, lines: SourceLines, words: str = "", gutter: int = 4) -> list[str]:
    """The source line of a span with its mark; empty where the line cannot be read."""
    if lines.line(span.path, span.line) is None:
        return []
    return _block({span.line: [_Mark(span, "^", words)]}, span.path, lines, gutter)[1:]


def location(span: Span) -> str:
    """`path:line:col`, or as much of it as there is."""
    if not span.path:
        return ""
    return str(span) if span.line > 0 else span.path


def _render(diagnostic: Diagnostic, lines: SourceLines) -> str:
    where = location(diagnostic.span)
    head = f"{diagnostic.severity.value}[{diagnostic.code}]: {diagnostic.message}"
    out = [f"{where}: {head}" if where else head]
    marks = [_Mark(diagnostic.span, "^", diagnostic.label)]
    marks += [_Mark(label.span, "-", label.text) for label in diagnostic.labels]
    gutter = len(str(max((mark.span.line for mark in marks), default=0)))
    frame = _frames(marks, lines, gutter)
    out += frame
    trailers = [("note", note) for note in diagnostic.notes]
    if diagnostic.help:
        trailers.append(("help", diagnostic.help))
    if frame and trailers:
        out.append(f"{' ' * gutter} |")
    for kind, text in trailers:
        first, *rest = text.splitlines() or [""]
        out.append(f"{' ' * gutter} = {kind}: {first}")
        out += [f"{' ' * gutter}   {' ' * len(kind)}  {line}" for line in rest]
    return "\n".join(line.rstrip() for line in out)


def _frames(marks: list[_Mark], lines: SourceLines, gutter: int) -> list[str]:
    """One block per file, the primary file first, lines in order, gaps as `...`."""
    out: list[str] = []
    paths = list(dict.fromkeys(mark.span.path for mark in marks))
    for path in paths:
        by_line: dict[int, list[_Mark]] = {}
        for mark in marks:
            if mark.span.path == path and lines.line(path, mark.span.line) is not None:
                by_line.setdefault(mark.span.line, []).append(mark)
        unseen = [mark for mark in marks[1:] if mark.span.path == path and mark.text]
        unseen = [mark for mark in unseen if mark.span.line not in by_line]
        if by_line and path != paths[0]:
            first = min(by_line)
            out.append(f"{' ' * gutter}--> {location(by_line[first][0].span)}")
        out += _block(by_line, path, lines, gutter)
        for mark in unseen:
            where = location(mark.span)
            out.append(f"{' ' * gutter} = note: {f'{where}: ' if where else ''}{mark.text}")
    return out


def _block(
    by_line: dict[int, list[_Mark]], path: str, lines: SourceLines, gutter: int
) -> list[str]:
    out: list[str] = []
    previous = 0
    for number in sorted(by_line):
        if not out:
            out.append(f"{' ' * gutter} |")
        elif number > previous + 1:
            out.append("...")
        text = lines.line(path, number) or ""
        shown_marks = sorted(by_line[number], key=lambda mark: (mark.stroke, mark.span.column))
        start, cells = _window(text, shown_marks[0].span.column - 1)
        lead = "... " if start else ""
        tail = " ..." if start + len(cells) < len(text.rstrip()) else ""
        out.append(f"{number:>{gutter}} | {lead}{''.join(cells)}{tail}")
        for mark in shown_marks:
            underline = _underline(mark, text, start, cells)
            out.append(f"{' ' * gutter} | {' ' * len(lead)}{underline}")
        previous = number
    return out


def _window(text: str, column: int) -> tuple[int, list[str]]:
    """The part of a line to show: its first character's index, and what stands for each one."""
    cells = [shown(character) for character in text.rstrip()]
    if sum(map(width, cells)) <= _LONGEST:
        return 0, cells
    start = max(0, min(column, len(cells)) - _LEAD) if column > _LONGEST - _LEAD else 0
    taken: list[str] = []
    used = 0
    for cell in cells[start:]:
        used += width(cell)
        if used > _LONGEST:
            break
        taken.append(cell)
    return start, taken


def _underline(mark: _Mark, text: str, start: int, cells: list[str]) -> str:
    """Spaces up to the span, strokes under it, then the words."""
    span = mark.span
    length = len(text.rstrip())
    begin = min(max(span.column - 1, 0), length)
    over = span.end_line > span.line
    end = length if over else min(max(span.end_column - 1, begin), length)
    begin = min(max(begin - start, 0), len(cells))
    end = min(max(end - start, begin), len(cells))
    indent = width("".join(cells[:begin]))
    strokes = max(width("".join(cells[begin:end])), 1)
    words = f" {mark.text}" if mark.text else ""
    if over:
        words += f" (to line {span.end_line})"
    return f"{' ' * indent}{mark.stroke * strokes}{words}"


def _summary(items: list[Diagnostic]) -> str:
    """`2 errors, 1 warning; ...` where there is an error; warnings speak for themselves."""
    errors = sum(item.severity is Severity.ERROR for item in items)
    warnings = sum(item.severity is Severity.WARNING for item in items)
    if not errors:
        return ""
    counts = [f"{errors} error{'s' if errors != 1 else ''}"]
    if warnings:
        counts.append(f"{warnings} warning{'s' if warnings != 1 else ''}")
    codes = [item.code for item in items if item.severity is Severity.ERROR]
    if set(codes) == {_USAGE}:
        return ""
    return f"{', '.join(counts)}; `selc explain {codes[0]}` says more"
