"""What calls give (`functions:`), knob settings (`knobs:`), and extra pin values (`offer:`)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from selc.diag.diagnostic import Sink
from selc.frontend.facts.inputs import (
    DOMAIN_KEYS,
    check_value,
    read_choice,
    read_domain,
)
from selc.frontend.facts.model import FunctionFact, InputDecl, KnobDecl, typed_key
from selc.frontend.facts.tree import (
    MISSING,
    WRONG,
    Entry,
    Map,
    Scalar,
    as_seq,
    error,
    fields,
    to_value,
)

UNKNOWN_KINDS: Final = ("runtime", "request", "unpinnable", "fact")
FUNCTION_KEYS: Final = ("value", "table", "kind", *DOMAIN_KEYS)


def read_function(name: str, entry: Entry, sink: Sink) -> FunctionFact | None:
    """One entry of `functions:`."""
    tree, what = entry.tree, f"function `{name}`"
    if isinstance(tree, Scalar) and tree.value == "opaque":
        return FunctionFact(None, False, None, None, None, True, entry.key)
    if not isinstance(tree, Map):
        return FunctionFact(to_value(tree, sink), True, None, None, None, False, entry.key)
    if tree.entries and not tree.entries.keys() & set(FUNCTION_KEYS):
        error(
            sink,
            WRONG,
            tree.span,
            f"{what}: this mapping does not say what the call gives",
            "write `{value: {...}}` if the mapping is the value; else `table:` or `kind:`",
        )
        return None
    found = fields(tree, FUNCTION_KEYS, what, sink)
    ways = [key for key in ("value", "table", "kind") if key in found]
    if not ways:
        message = f"{what} says neither what the call gives nor of which kind it is"
        found.missing(sink, entry.key, message, "add `value:`, `table:` or `kind:`")
        return None
    extra = [key for key in found if key != ways[0] and (key in ways or ways[0] != "kind")]
    if extra:
        message = f"{what} has `{ways[0]}` and `{extra[0]}`, which exclude each other"
        error(sink, WRONG, found[extra[0]].key, message, "keep one of them")
        return None
    if ways[0] == "value":
        value = to_value(found["value"].tree, sink)
        return FunctionFact(value, True, None, None, None, False, entry.key)
    if ways[0] == "table":
        table = _table(found["table"], what, sink)
        if table is None:
            return None
        return FunctionFact(None, False, table, None, None, False, entry.key)
    kind = read_choice(found["kind"].tree, UNKNOWN_KINDS, f"kind of {what}", sink)
    domain = read_domain(found, what, entry.key, sink)
    if kind is None or domain is None:
        return None
    decl = domain.declare(name, kind, entry.key)
    return FunctionFact(None, False, None, kind, decl, False, entry.key)


def _table(entry: Entry, what: str, sink: Sink) -> tuple[tuple[object, ...], ...] | None:
    example = "write rows of [argument, ..., value]"
    seq = as_seq(entry.tree, f"`table` of {what}", sink, example)
    if seq is None:
        return None
    if not seq.items:
        error(sink, WRONG, seq.span, f"`table` of {what} is empty", example)
        return None
    rows: list[tuple[object, ...]] = []
    seen: dict[Hashable, int] = {}
    for item in seq.items:
        row = as_seq(item, f"a row of {what}", sink, example)
        if row is None:
            continue
        if not row.items:
            error(sink, WRONG, row.span, f"a row of {what} is empty", example)
            continue
        values = tuple(to_value(v, sink) for v in row.items)
        line = seen.setdefault(typed_key(values[:-1]), row.span.line)
        if len(seen) == len(rows):
            message = f"{what} has two rows for the same arguments, first on line {line}"
            error(sink, WRONG, row.span, message, "keep one of them")
            continue
        rows.append(values)
    return tuple(rows) if len(rows) == len(seq.items) else None


def read_knob(name: str, entry: Entry, sink: Sink) -> KnobDecl | None:
    """One entry of `knobs:`: a setting, or `{fixed: setting}`."""
    tree, fixed, what = entry.tree, False, f"knob `{name}`"
    if isinstance(tree, Map):
        found = fields(tree, ("fixed",), what, sink)
        if "fixed" not in found:
            hint = "write the setting, or `{fixed: setting}`"
            found.missing(sink, entry.key, f"{what} has no setting", hint)
            return None
        tree, fixed = found["fixed"].tree, True
    setting = to_value(tree, sink)
    if setting is None:
        message = f"{what} has no setting"
        error(sink, MISSING, entry.key, message, "write the setting, or `{fixed: setting}`")
        return None
    if not check_value(setting, tree, None, what, sink):
        return None
    return KnobDecl(name, setting, fixed, None, entry.key)


def knob_of_input(decl: InputDecl, setting: KnobDecl | None, sink: Sink) -> KnobDecl | None:
    """The knob that an input of kind knob declares, with the setting that `knobs:` gives it."""
    chosen = decl.default if setting is None else setting.setting
    place = decl.span if setting is None else setting.span
    choices = decl.values or ()
    if chosen is not None and typed_key(chosen) not in {typed_key(c) for c in choices}:
        shown = ", ".join(repr(c) for c in choices[:8]) + (", ..." if len(choices) > 8 else "")
        message = f"knob `{decl.name}` cannot be set to {chosen!r}"
        error(sink, WRONG, place, message, f"its choices are {shown}")
        return None
    fixed = setting is not None and setting.fixed
    return KnobDecl(decl.name, chosen, fixed, decl.values, place)
