"""One file: its findings and notices, what they depend on, and the pre-filter before all that.

The pre-filter asks whether any word of a file's text is one that a source, a rule or a description
of a library needs. It misses nothing: a value counts as the batch's only by a name or an annotation
in the linted file, and what a call brings back from another file is named there or depends on
arguments that are named here.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from selc.diag.source_text import decode
from selc.lint.config import Config
from selc.lint.findings import finding_of
from selc.lint.index import Index
from selc.lint.model import Finding, Place, Step
from selc.lint.names import Names
from selc.lint.registry import rule
from selc.lint.session import Session
from selc.lint.state import State

_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(slots=True)
class Unit:
    """What linting one file gave."""

    findings: list[Finding] = field(default_factory=list)
    looked: set[Path] = field(default_factory=set)

    def as_json(self) -> dict[str, Any]:
        """What the cache keeps."""
        return {"findings": [_dump(finding) for finding in self.findings]}


def may_matter(text: str, names: Names) -> bool:
    """The pre-filter: whether a file can have findings at all."""
    if any(names.is_word(word) for word in set(_WORD.findall(text))):
        return True
    return any(entry.call.search(text) for entry in names.libraries)


def lint_file(path: Path, session: Session, other: Session | None, config: Config) -> Unit:
    """Lint one file. `other` is a session in which the invariant mode counts as on."""
    from selc.lint.gaps import check_gaps
    from selc.lint.numbers import check_numbers
    from selc.lint.tuned import check_tuned

    unit = Unit(looked={path})
    index = session.index
    index.looked.clear()
    try:
        text = decode(path.read_bytes())
    except OSError as error:
        unit.findings.append(
            own("SEL001", index.shown(path), 1, f"cannot read this file: {error.strerror}")
        )
        return unit
    matters = may_matter(text, session.names)
    module = index.module(path, text)
    if module is None:
        unit.findings.append(own("SEL001", index.shown(path), *_why(text)))
        return unit
    if not matters:
        return unit
    hits = walk_module(session, path, config.assume_unguarded)
    if other is not None:
        kept = walk_module(other, path)
        unit.findings += check_gaps(module, session.names, hits, kept)
    else:
        unit.findings += [finding for finding, _ in hits]
        unit.findings += check_gaps(module, session.names, [], [])
    unit.findings += check_tuned(module, session.names)
    unit.findings += check_numbers(module, session.names)
    for name, where in session.exceeded.items():
        message = (
            f"`{name.rsplit(':', 1)[-1]}` is too large to follow; the rest of it is not checked"
        )
        unit.findings.append(own("SEL004", where.path, where.line, message))
    session.exceeded.clear()
    unit.looked |= index.looked
    if other is not None:
        unit.looked |= other.index.looked
        other.index.looked.clear()
    return unit


def walk_module(session: Session, path: Path, audit: bool = False) -> list[tuple[Finding, str]]:
    """Findings of SEL1xx and SEL205 of a file, each with the kind of choice that it is."""
    module = session.index.module(path)
    out: dict[tuple[str, Place], tuple[Finding, str]] = {}
    if module is None:
        return []
    for function in module.all_functions():
        if State.is_kernel_source(function.node):
            continue
        for hit in session.summary(function, session.levels).hits:
            if hit.label[0] == "src":
                finding = finding_of(hit, audit)
                key = (finding.code, finding.place)
                if key not in out or len(finding.trace) < len(out[key][0].trace):
                    out[key] = (finding, f"{hit.code}:{hit.sink.rsplit('.', 1)[-1].lower()}")
    return list(out.values())


def own(code: str, path: str, line: int, message: str, column: int = 1) -> Finding:
    """A finding of the linter about its own work, or one without a path from a source."""
    known = rule(code)
    place = Place(path, line, column, line, column + 1)
    return Finding(
        code, known.name, known.level, message, place, "", "", line, path, "", "", help=known.fix
    )


def _why(text: str) -> tuple[int, str]:
    try:
        ast.parse(text)
    except SyntaxError as error:
        return error.lineno or 1, f"this is no Python: {error.msg}"
    except (ValueError, RecursionError) as error:
        return 1, f"this cannot be parsed: {error}"
    return 1, "this cannot be parsed"


def _dump(finding: Finding) -> list[Any]:
    return [
        finding.code,
        finding.name,
        finding.level,
        finding.message,
        list(finding.place),
        finding.function,
        finding.source,
        finding.source_line,
        finding.source_path,
        finding.sink,
        finding.role,
        [list(step) for step in finding.trace],
        finding.threshold,
        finding.help,
        finding.text,
    ]


def from_json(data: dict[str, Any]) -> list[Finding]:
    """Findings as the cache kept them."""
    out = []
    for row in data["findings"]:
        (
            code,
            name,
            level,
            message,
            where,
            function,
            source,
            line,
            path,
            sink,
            role,
            trace,
            *rest,
        ) = row
        steps = tuple(Step(*each) for each in trace)
        out.append(
            Finding(
                code,
                name,
                level,
                message,
                Place(*where),
                function,
                source,
                line,
                path,
                sink,
                role,
                steps,
                *rest,
            )
        )
    return out


def session_of(root: Path, names: Names, config: Config, guarded: bool) -> Session:
    """A session over a project."""
    return Session(Index(root), names, levels=config.calls, guarded=guarded)
