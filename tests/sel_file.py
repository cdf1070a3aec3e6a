"""Files of cases: sections found by one expression, rewritten in place from the bottom up."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

_HEAD: Final = re.compile(
    r"\[(case|src|facts|domain|ir|check|diag|run)(?: +([^\]\n]+))?\] *$", re.M
)
ORDER: Final = ("case", "src", "facts", "domain", "ir", "check", "diag", "run")
REWRITTEN: Final = ("ir", "diag")


class SelError(Exception):
    """A file of cases is malformed."""


@dataclass(frozen=True, slots=True)
class Section:
    """One section: where its body starts and ends in the file, and what stands in its head."""

    kind: str
    argument: str
    start: int
    end: int
    line: int
    body: str

    @property
    def after(self) -> str:
        """The pass that an `ir` or `check` section looks at."""
        return self.argument.removeprefix("after=")


@dataclass(slots=True)
class Case:
    """One case: a name, prose, a source, and what is expected of it."""

    name: str
    line: int
    sections: list[Section] = field(default_factory=list)

    def body(self, kind: str) -> str | None:
        """The text of the first section of a kind."""
        return next((s.body for s in self.sections if s.kind == kind), None)

    def all(self, kind: str) -> list[Section]:
        """All sections of a kind."""
        return [s for s in self.sections if s.kind == kind]


def parse(text: str) -> list[Case]:
    """The cases of a file.

    Raises:
        SelError: a section is out of order, a case has no source, or two cases share a name.
    """
    heads = list(_HEAD.finditer(text))
    if heads and text[: heads[0].start()].strip():
        raise SelError("text before the first [case]")
    cases: list[Case] = []
    for head, following in zip(heads, [*heads[1:], None], strict=True):
        start = head.end() + 1
        end = len(text) if following is None else following.start()
        line = text.count("\n", 0, head.start()) + 1
        kind, argument = head.group(1), head.group(2) or ""
        if kind == "case":
            cases.append(Case(argument, line))
            continue
        if not cases:
            raise SelError(f"line {line}: [{kind}] before the first [case]")
        body = text[start:end].strip("\n") + "\n"
        cases[-1].sections.append(Section(kind, argument, start, end, line, body))
    for case in cases:
        _check(case)
    names = [case.name for case in cases]
    if len(set(names)) < len(names):
        raise SelError("two cases share a name")
    return cases


def _check(case: Case) -> None:
    where = f"line {case.line}: case {case.name!r}"
    if not case.name:
        raise SelError(f"{where} has no name")
    if len(case.all("src")) != 1:
        raise SelError(f"{where} needs one [src]")
    places = [ORDER.index(s.kind) for s in case.sections]
    if places != sorted(places):
        raise SelError(f"{where}: sections stand in the order {', '.join(ORDER)}")
    for section in case.all("ir") + case.all("check"):
        if not section.argument.startswith("after="):
            raise SelError(f"line {section.line}: [{section.kind}] needs after=NAME")
    if not any(s.kind in ("ir", "check", "diag", "run") for s in case.sections):
        raise SelError(f"{where} expects nothing")


def rewrite(path: Path, changes: list[tuple[Section, str]]) -> None:
    """Replace the bodies of sections."""
    text = path.read_text(encoding="utf-8")
    for section, body in sorted(changes, key=lambda change: -change[0].start):
        gap = "\n" if section.end < len(text) else ""
        text = text[: section.start] + body.strip("\n") + "\n" + gap + text[section.end :]
    path.write_text(text, encoding="utf-8")
