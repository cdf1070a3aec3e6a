"""Tuple files: the assignment of pins and knobs that a deployment committed to.

A file that is malformed or names what is not there is refused. Whether it was made for this
selector, and whether it is legal, is an answer: the caller decides what follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from selc.diag.diagnostic import Diagnostic, Refused, Sink
from selc.diag.span import Span
from selc.diag.spelling import spelt
from selc.diag.suggest import did_you_mean
from selc.diag.table import listing
from selc.driver.describe import knob_order, setting_of
from selc.driver.matching import Absent, find
from selc.frontend.facts.tree import Entry, Map, Tree, as_int, as_map, as_text, fields, to_value
from selc.ir.value import to_json

if TYPE_CHECKING:
    from selc.driver.pipeline import Decided
    from selc.ir.value import Value

CODE: Final = "SEL933"
FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class Committed:
    """One family's entry: the hash it was made for, and a value for every parameter of R."""

    selector: str | None
    values: Mapping[str, Value]
    span: Span


@dataclass(frozen=True, slots=True)
class FamilyEntry:
    """One family's entry as it is written."""

    selector: str | None
    pins: Mapping[str, Entry]
    knobs: Mapping[str, Entry]
    span: Span

    @property
    def assignment(self) -> Mapping[str, Entry]:
        """Pins and knobs."""
        return {**self.pins, **self.knobs}


def entry_of(path: Path, family: str, sink: Sink) -> FamilyEntry:
    """A family's entry of a tuple file; what is wrong inside of it goes to the sink.

    Raises:
        Refused: it is no tuple file, or has nothing for the family.
    """
    entry = _entry(path, family, sink)
    known = fields(entry, ("selector", "pins", "knobs"), "a family's tuple", sink)
    selector = as_text(known["selector"].tree, "`selector`", sink) if "selector" in known else None
    pins = _section(known.get("pins"), "pins", sink)
    knobs = _section(known.get("knobs"), "knobs", sink)
    return FamilyEntry(selector, pins, knobs, entry.span)


def read_tuple(path: Path, decided: Decided) -> Committed:
    """The entry of the selection's family.

    Raises:
        Refused: the file does not fit.
    """
    sink = Sink()
    entry = entry_of(path, decided.program.family, sink)
    values = _pins(entry.pins, entry.span, decided, sink) | _knobs(entry.knobs, decided, sink)
    _stop(sink)
    return Committed(entry.selector, values, entry.span)


def _entry(path: Path, family: str, sink: Sink) -> Map:
    from selc.diag.files import Files
    from selc.frontend.facts.yamltext import parse

    text = Files(sink).read(path, "tuple file")
    _stop(sink)
    tree = parse(text or "", str(path), sink)
    _stop(sink)
    top = Span(str(path), 1, 1, 1, 1)
    if tree is None:
        raise Refused(Diagnostic(CODE, "this tuple file is empty", top, help=_SHAPE))
    whole = as_map(tree, "a tuple file", sink, _SHAPE)
    _stop(sink)
    assert whole is not None
    known = fields(whole, ("format", "families"), "a tuple file", sink)
    known.missing(sink, top, "a tuple file has `format` and `families`", _SHAPE) if len(
        known
    ) < 2 else None
    _stop(sink)
    version = as_int(known["format"].tree, "`format`", sink)
    if version is not None and version != FORMAT:
        message = f"this tuple file has format {version}; selc reads format {FORMAT}"
        sink.add(Diagnostic(CODE, message, known["format"].tree.span, help="commit it again"))
    families = as_map(known["families"].tree, "`families`", sink, _SHAPE)
    _stop(sink)
    assert families is not None
    names = [str(name) for name in families.entries]
    if family not in families.entries:
        hint = did_you_mean(family, names) or f"it has: {', '.join(names) or 'nothing'}"
        message = f"this tuple file has nothing for the family `{family}`"
        raise Refused(Diagnostic(CODE, message, known["families"].key, help=hint))
    entry = as_map(families.entries[family].tree, f"the tuple of `{family}`", sink, _SHAPE)
    _stop(sink)
    assert entry is not None
    return entry


_SHAPE: Final = "write {format: 1, families: {FAMILY: {selector: HASH, pins: {NAME: VALUE}}}}"


def _section(entry: Entry | None, what: str, sink: Sink) -> Mapping[str, Entry]:
    if entry is None:
        return {}
    tree = as_map(entry.tree, f"`{what}`", sink)
    return {str(key): each for key, each in tree.entries.items()} if tree is not None else {}


def _pins(
    given: Mapping[str, Entry], place: Span, decided: Decided, sink: Sink
) -> dict[str, Value]:
    pins = {p.name: p for p in decided.residual.pins if p.parameter is not None}
    free = {p.name for p in decided.residual.pins if p.parameter is None}
    out: dict[str, Value] = {}
    for name, entry in given.items():
        if name in free:
            continue  # its value was proved, whatever the file says
        if name not in pins:
            sink.add(_unknown(name, "pin", entry.key, list(pins)))
            continue
        pin = pins[name]
        axis = (*(pin.candidates.values or ()), *pin.offered)
        assert pin.parameter is not None
        _take(out, pin.parameter, name, entry.tree, axis, sink)
    missing = [name for name in pins if name not in given]
    if missing and not sink.has_errors:
        message = f"the tuple gives no value for {', '.join(f'`{n}`' for n in missing)}"
        sink.add(Diagnostic(CODE, message, place, help="a tuple has one value for every pin"))
    return out


def _knobs(given: Mapping[str, Entry], decided: Decided, sink: Sink) -> dict[str, Value]:
    order = knob_order(decided)
    inputs = decided.program.graph.inputs
    out: dict[str, Value] = {}
    for name in order:
        setting = setting_of(decided, name)
        out[name] = inputs[name].domain[0] if setting is None and name not in given else setting
    for name, entry in given.items():
        if name not in inputs or inputs[name].kind != "knob":
            sink.add(_unknown(name, "knob", entry.key, order))
            continue
        _take(out, name, name, entry.tree, tuple(inputs[name].domain), sink)
    return out


def _take(
    out: dict[str, Value],
    parameter: str,
    name: str,
    tree: Tree,
    axis: tuple[Value, ...],
    sink: Sink,
) -> None:
    value = to_value(tree, sink)
    found = find(value, axis)
    if isinstance(found, Absent):
        some = listing([spelt(to_json(v)) for v in axis], 12)
        message = f"`{name}` cannot be {spelt(value)}"
        sink.add(Diagnostic(CODE, message, tree.span, help=f"it can be: {some}"))
    else:
        out[parameter] = found


def _unknown(name: str, what: str, span: Span, known: list[str]) -> Diagnostic:
    hint = did_you_mean(name, known) or (
        f"the {what}s are: {', '.join(known)}" if known else f"this selection has no {what}s"
    )
    return Diagnostic(CODE, f"this selection has no {what} `{name}`", span, help=hint)


def _stop(sink: Sink) -> None:
    if sink.has_errors:
        raise Refused(*sink)
