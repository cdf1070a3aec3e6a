"""Profiles: the distinct calls of a workload, one JSON object per line, with their counts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from selc.diag.diagnostic import Diagnostic, Refused, Severity, Sink
from selc.diag.span import Span
from selc.diag.suggest import did_you_mean
from selc.driver.arguments import admits, aggregates_of, arguments
from selc.driver.matching import Absent, find
from selc.ir.domain import Input

if TYPE_CHECKING:
    from selc.ir.program import Program, SequenceInput
    from selc.ir.value import Value

CODE: Final = "SEL934"
FORMAT: Final = 1
MAX_ERRORS: Final = 10

Call = tuple[Mapping[str, "Value"], int]


def read_profile(path: Path, program: Program, sink: Sink) -> tuple[Call, ...]:
    """The calls of the selection's family; those of other families are passed over.

    Calls outside the declared domain are left out, with a warning.

    Raises:
        Refused: a line is not a call of this selection.
    """
    from selc.diag.files import Files

    trouble = Sink()
    text = Files(trouble).read(path, "profile")
    if text is None:
        raise Refused(*trouble)
    calls: list[Call] = []
    outside: list[tuple[int, int, str]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        place = Span(str(path), number, 1, number, len(line) + 1)
        try:
            call = _line(line, place, program)
        except Refused as refused:
            for diagnostic in refused.diagnostics:
                trouble.add(diagnostic)
            if len(trouble.items) >= MAX_ERRORS:
                break
            continue
        if call is None:
            continue
        inputs, count, odd = call
        if odd:
            outside.append((number, count, odd))
        else:
            calls.append((inputs, count))
    if trouble.has_errors:
        raise Refused(*trouble)
    if not calls:
        message = f"this profile has no call of the family `{program.family}` in its domain"
        top = Span(str(path), 1, 1, 1, 1)
        raise Refused(Diagnostic(CODE, message, top, help="check the family, or widen the ranges"))
    if outside:
        sink.add(_left_out(path, outside))
    return tuple(calls)


def _line(line: str, place: Span, program: Program) -> tuple[dict[str, Value], int, str] | None:
    """The inputs and the count of a line, and which input is outside its domain (empty: none)."""
    try:
        data = json.loads(line)
    except ValueError as error:
        raise _wrong(f"this line is not JSON: {error}", place) from None
    if not isinstance(data, dict):
        raise _wrong("a line of a profile is a JSON object", place)
    if data.get("format") != FORMAT:
        raise _wrong(f"this line has format {data.get('format')!r}, not {FORMAT}", place)
    if data.get("family") != program.family:
        return None
    count = data.get("count", 1)
    if type(count) is not int or count < 1:
        raise _wrong(f"`count` is {count!r}, not a positive integer", place)
    given = data.get("inputs")
    if not isinstance(given, dict):
        raise _wrong("`inputs` is missing or not an object", place)
    return _inputs(given, place, program, count)


def _inputs(
    given: dict[str, Any], place: Span, program: Program, count: int
) -> tuple[dict[str, Value], int, str]:
    declared = {each.name: each for each in arguments(program)}
    out: dict[str, Value] = {}
    odd = ""
    for name, value in given.items():
        each = declared.get(name)
        if each is None:
            hint = did_you_mean(name, declared) or f"the inputs are: {', '.join(declared)}"
            raise _wrong(f"this selection has no input `{name}`", place, hint)
        found = _admit(value, each)
        if found is None:
            odd = odd or f"{name}={value!r}"
        else:
            out |= found
    missing = [n for n, each in declared.items() if n not in given and each.kind != "request"]
    if missing:
        raise _wrong(f"`inputs` lacks {', '.join(f'`{n}`' for n in missing)}", place)
    return out, count, odd


def _admit(value: object, each: Input | SequenceInput) -> dict[str, Value] | None:
    """The inputs that an argument gives; None if it is outside its domain."""
    if not isinstance(each, Input):
        if not isinstance(value, list) or not admits(each, value):
            return None
        return aggregates_of(each, value)
    if each.domain.values is None:
        return {each.name: value} if value in each.domain else None
    found = find(value, each.domain.values)
    return None if isinstance(found, Absent) else {each.name: found}


def _wrong(message: str, place: Span, hint: str = "") -> Refused:
    return Refused(
        Diagnostic(CODE, message, place, help=hint or "record it anew with the selector's `record`")
    )


def _left_out(path: Path, outside: list[tuple[int, int, str]]) -> Diagnostic:
    number, _, odd = outside[0]
    calls = sum(count for _, count, _ in outside)
    message = f"{calls} recorded calls lie outside the declared domain and are left out ({odd})"
    span = Span(str(path), number, 1, number, 2)
    hint = "widen the ranges in the facts file if such calls are to be served"
    return Diagnostic(CODE, message, span, Severity.WARNING, help=hint)
