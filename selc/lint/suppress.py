"""`# selc: ignore[SEL101] -- reason` and `# selc: file-ignore[...]`, used, unused and unknown."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from dataclasses import dataclass

from selc.lint.model import Finding, Place

_COMMENT = re.compile(r"#\s*selc:\s*(?P<kind>file-ignore|ignore)\b\s*(?:\[(?P<codes>[^\]]*)\])?")


@dataclass(slots=True)
class Suppression:
    """One code of one comment."""

    code: str
    place: Place
    whole_file: bool
    lines: range
    used: bool = False

    def covers(self, finding: Finding, extents: dict[int, range]) -> bool:
        """Whether a finding lies where this one looks."""
        if self.code.lower() not in (finding.code.lower(), finding.name.lower()):
            return False
        if self.whole_file:
            return True
        extent = extents.get(
            finding.place.line, range(finding.place.line, finding.place.end_line + 1)
        )
        return any(line in extent for line in self.lines)


def read(path: str, text: str) -> tuple[list[Suppression], list[Place]]:
    """Suppressions of a file, and comments that name no rule."""
    found: list[Suppression] = []
    blank: list[Place] = []
    if "selc:" not in text:
        return found, blank
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        return found, blank
    for token in tokens:
        if token.type != tokenize.COMMENT:
            continue
        match = _COMMENT.search(token.string)
        if match is None:
            continue
        line, column = token.start
        place = Place(path, line, column + 1, line, token.end[1] + 1)
        alone = not token.line[:column].strip()
        codes = [code.strip() for code in (match["codes"] or "").split(",") if code.strip()]
        if not codes:
            blank.append(place)
        lines = range(line, _next_code(text, line) + 1) if alone else range(line, line + 1)
        found += [Suppression(code, place, match["kind"] == "file-ignore", lines) for code in codes]
    return found, blank


def _next_code(text: str, line: int) -> int:
    """The line that a comment on its own line speaks of."""
    lines = text.split("\n")
    while line < len(lines) and (not lines[line].strip() or lines[line].lstrip().startswith("#")):
        line += 1
    return line + 1


def extents(text: str) -> dict[int, range]:
    """For each line of a simple statement, or of the head of a compound one, all of its lines."""
    out: dict[int, range] = {}
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return out
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = node.end_lineno or node.lineno
            if isinstance(body, list) and body:
                last = max(node.lineno, body[0].lineno - 1)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                first = min([node.lineno, *(mark.lineno for mark in node.decorator_list)])
            else:
                first = node.lineno
            whole = range(first, last + 1)
            for line in whole:
                if line not in out or len(whole) < len(out[line]):
                    out[line] = whole
    return out
