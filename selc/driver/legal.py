"""`selc legal`: what the relation of an emitted selector says of a partial assignment.

The relation is read from the manifest; nothing is decided again. Why an assignment is refused, and
whether one batch takes a tuple by itself, is evaluated on the manifest's graphs.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from selc.diag.diagnostic import Diagnostic, Refused, Sink
from selc.diag.outcome import Outcome
from selc.diag.span import NOWHERE, Span
from selc.diag.spelling import arguments, spelt
from selc.diag.suggest import did_you_mean
from selc.diag.table import listing, table
from selc.driver.check import read_manifest

if TYPE_CHECKING:
    from selc.check.ask import Questions

FORMAT: Final = 1
WIDTH: Final = 100
MOST_ROWS: Final = 4096
"""Rows of the relation in the JSON answer; the CSV form has all of them."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The questions of one command line."""

    directory: Path
    assignments: tuple[str, ...] = ()
    export: str = ""  # csv: the rows themselves instead of an answer
    tuple_file: Path | None = None


def run(asked: Asked) -> Outcome:
    """Exit 0 if a legal assignment has these values, 1 if none does, 2 if they make no sense."""
    from selc.check.ask import Questions
    from selc.check.values import Unreadable

    try:
        manifest = read_manifest(asked.directory)
        questions = Questions(manifest)
        fixed = _fixed(asked.assignments, questions)
        foreign = ""
        if asked.tuple_file is not None:
            foreign = _committed(asked.tuple_file, manifest, questions, fixed)
        if asked.export == "csv":
            return Outcome(0, _csv(questions, fixed))
        return _answer(asked.directory, manifest, questions, fixed, foreign)
    except Unreadable as error:
        message = f"{asked.directory / 'manifest.json'}: {error}"
        hint = "name a folder that `selc compile` wrote"
        return Outcome(2, diagnostics=[Diagnostic("SEL936", message, help=hint)])
    except Refused as refused:
        return Outcome(2, diagnostics=list(refused.diagnostics))


def _fixed(assignments: Sequence[str], questions: Questions) -> dict[str, int]:
    """`NAME=VALUE` as positions on axes.

    Raises:
        Refused: a name or value is not there, or an argument has no `=`.
    """
    fixed: dict[str, int] = {}
    problems = []
    for text in assignments:
        name, equals, value = text.partition("=")
        name = name.strip()
        known = questions.spelt(name)
        if not equals:
            message = f"`{text}` is no assignment"
            problems.append(Diagnostic("SEL933", message, help="write NAME=VALUE"))
        elif known is None:
            names = list(questions.names)
            hint = did_you_mean(name, names) or f"there are: {', '.join(names) or 'no pins'}"
            problems.append(Diagnostic("SEL933", f"no pin or knob is named `{name}`", help=hint))
        elif known in fixed:
            message = f"`{known}` is given twice"
            problems.append(Diagnostic("SEL933", message, help="give each name one value"))
        elif (place := questions.place(known, value.strip())) is None:
            problems.append(_cannot(questions, known, value.strip()))
        else:
            fixed[known] = place
    if problems:
        raise Refused(*problems)
    return fixed


def _cannot(questions: Questions, name: str, value: str, place: Span = NOWHERE) -> Diagnostic:
    axis = listing([spelt(v) for v in questions.axis(name)], 12)
    return Diagnostic("SEL933", f"`{name}` cannot be {value}", place, help=f"it can be: {axis}")


def _committed(
    path: Path, manifest: Mapping[str, Any], questions: Questions, fixed: dict[str, int]
) -> str:
    """Add what a tuple file commits to; the hash of the selector that it was made for, if another.

    Raises:
        Refused: the file is malformed, or has names or values that are not there.
    """
    from selc.driver.tuples import entry_of
    from selc.frontend.facts.tree import to_value

    sink = Sink()
    entry = entry_of(path, str(manifest.get("family")), sink)
    free = {p["name"] for p in manifest["pins"] if p["free"]}
    for name, each in entry.assignment.items():
        if name in free:
            continue  # its value was proved, whatever the file says
        value = json.loads(json.dumps(to_value(each.tree, sink), default=str))
        if name not in questions.names:
            hint = did_you_mean(name, questions.names)
            hint = hint or f"there are: {', '.join(questions.names) or 'no pins'}"
            message = f"no pin or knob is named `{name}`"
            sink.add(Diagnostic("SEL933", message, each.key, help=hint))
        elif (place := questions.position(name, value)) is None:
            sink.add(_cannot(questions, name, spelt(value), each.tree.span))
        elif fixed.setdefault(name, place) != place:
            message = f"`{name}` is {spelt(value)} here and another value on the command line"
            sink.add(Diagnostic("SEL933", message, each.key, help="give each name one value"))
    if sink.has_errors:
        raise Refused(*sink)
    return entry.selector if entry.selector not in (None, manifest["hash"]) else ""


def _answer(
    directory: Path,
    manifest: Mapping[str, Any],
    questions: Questions,
    fixed: dict[str, int],
    foreign: str,
) -> Outcome:
    count = questions.count(fixed)
    values = {n: questions.axis(n)[i] for n, i in fixed.items()}
    remaining = {n: questions.remaining(n, fixed) for n in questions.names if n not in fixed}
    broken = questions.broken(fixed) if not count else None
    rows = list(questions.rows(fixed, MOST_ROWS)) if count <= MOST_ROWS else None
    answer = {
        "format": FORMAT,
        "directory": str(directory),
        "family": manifest.get("family"),
        "selector": manifest["hash"],
        "assignment": values,
        "made_for": foreign or None,
        "legal": count > 0,
        "assignments": questions.total(),
        "count": count,
        "evidence": manifest["legal"]["evidence"],
        "remaining": remaining,
        "witnessed": questions.witnessed(fixed) if count else None,
        "broken": broken,
        "columns": questions.names,
        "relation": rows,
    }
    return Outcome(0 if count else 1, "\n".join(_text(answer)), answer)


def _text(answer: Mapping[str, Any]) -> Iterator[str]:
    asked = arguments(answer["assignment"])
    head = f"{answer['family']}: {answer['count']} of {answer['assignments']} assignments are legal"
    yield f"{head} ({answer['evidence']})" + (f" with {asked}" if asked else "")
    if answer["made_for"]:
        yield f"  the tuple was made for another selector, {answer['made_for'][:16]}"
    if answer["broken"]:
        broken = answer["broken"]
        call = arguments(broken["inputs"])
        where = broken["location"]
        yield f"  breaks  {broken['text']}"
        yield f"          {where['path']}:{where['line']}" if where["path"] else "          "
        yield f"          fails for {call}" if call else "          fails for every input"
    elif not answer["legal"]:
        yield "  no single guard refuses it: the guards together leave nothing"
    if answer["legal"] and answer["witnessed"] is not None and not answer["remaining"]:
        yield (
            "  one batch takes these values together"
            if answer["witnessed"]
            else "  no batch takes these values together"
        )
    rows = [
        [name, str(len(left)), listing([spelt(v) for v in left], 16)]
        for name, left in answer["remaining"].items()
    ]
    yield from table(["remaining", "values", ""], rows, WIDTH)


def _csv(questions: Questions, fixed: dict[str, int]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*questions.names, "witnessed"])
    joint = questions.joint()
    for row in questions.rows(fixed, None):
        seen = questions.seen(joint, row)
        cells = [v if isinstance(v, (int, float, str)) else json.dumps(v) for v in row]
        writer.writerow([*cells, "" if seen is None else str(seen).lower()])
    return out.getvalue()
