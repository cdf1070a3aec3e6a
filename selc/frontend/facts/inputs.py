"""Inputs and their domains: a range, listed values, or a sequence by length and element."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import Final

from selc.diag.diagnostic import Sink
from selc.diag.span import Span
from selc.frontend.facts.model import InputDecl, distinct
from selc.frontend.facts.tree import (
    WRONG,
    Entry,
    Fields,
    Seq,
    Tree,
    as_int,
    as_map,
    as_seq,
    as_text,
    describe,
    error,
    fields,
    suggest,
    to_value,
)

KINDS: Final = ("runtime", "request", "unpinnable", "knob", "fact")
TYPES: Final[dict[str, type | None]] = {
    "int": int, "float": float, "bool": bool, "str": str, "tuple": tuple, "any": None,
}  # fmt: skip
DOMAIN_KEYS: Final = ("type", "range", "multiple_of", "values", "length", "element")
INPUT_KEYS: Final = ("kind", *DOMAIN_KEYS, "default")
NOT_TEXT: Final = re.compile(
    r"(torch|triton\.language|tl)\.\w+|([a-z_]\w*\.)*[A-Z]\w*(\.[A-Z]\w*)+"
)
_MOST_VALUES: Final = 2**63 - 1
DOMAIN_HELP: Final = "give `range: [lo, hi]`, `values: [...]`, or `length` and `element`"


@dataclass(frozen=True, slots=True)
class Domain:
    """What an input can be; the fields are those of `InputDecl`."""

    type: str
    lo: int | None = None
    hi: int | None = None
    step: int = 1
    values: tuple[object, ...] | None = None
    length: tuple[int, int] | None = None
    element: tuple[int, int] | None = None

    def declare(self, name: str, kind: str, span: Span, default: object = None) -> InputDecl:
        """An input of this domain."""
        return InputDecl(
            name, kind, self.type, self.lo, self.hi, self.step, self.values, self.length,
            self.element, span, default,
        )  # fmt: skip


def read_input(name: str, entry: Entry, kind_needed: bool, sink: Sink) -> InputDecl | None:
    """One entry of `inputs:`."""
    what = f"input `{name}`"
    tree = as_map(entry.tree, what, sink, f"write `{name}: {{kind: runtime, range: [1, 1024]}}`")
    if tree is None:
        return None
    found = fields(tree, INPUT_KEYS, what, sink)
    kind: str | None = ""
    if "kind" in found:
        kind = read_choice(found["kind"].tree, KINDS, f"kind of {what}", sink)
    elif kind_needed:
        kind = None
        found.missing(
            sink,
            entry.key,
            f"{what} has no kind",
            f"add `kind:`, one of {', '.join(KINDS)}",
        )
    domain = read_domain(found, what, entry.key, sink)
    default: object = None
    if "default" in found:
        place = found["default"]
        if kind == "knob":
            default = to_value(place.tree, sink)
        else:
            error(
                sink,
                WRONG,
                place.key,
                f"{what} is no knob and takes no default",
                "remove `default`, or make the input a knob",
            )
    if kind is None or domain is None:
        return None
    if kind == "knob":
        domain = _choices(domain, what, entry.key, sink)
    return None if domain is None else domain.declare(name, kind, entry.key, default)


def read_choice(tree: Tree, known: tuple[str, ...], what: str, sink: Sink) -> str | None:
    """One of a few words."""
    text = as_text(tree, what, sink, f"one of {', '.join(known)}")
    if text is None or text in known:
        return text
    message = f"`{text}` is no {what}"
    error(sink, WRONG, tree.span, message, suggest(text, known, "one of"))
    return None


def read_domain(found: Fields, what: str, place: Span, sink: Sink) -> Domain | None:
    """The domain that the fields of an input, or of an unknown call, describe."""
    declared = None
    if "type" in found:
        declared = read_choice(found["type"].tree, tuple(TYPES), f"type of {what}", sink)
        if declared is None:
            return None
    sequence = "length" in found or "element" in found
    if ("values" in found) + ("range" in found) + sequence > 1:
        second = (
            found["values"]
            if "values" in found and "range" in found
            else (found.get("length") or found["element"])
        )
        message = f"{what} is given in two ways"
        error(sink, WRONG, second.key, message, "keep one of `values`, `range`, `length`/`element`")
        return None
    if "multiple_of" in found and "range" not in found:
        message = f"`multiple_of` of {what} needs a range"
        error(sink, WRONG, found["multiple_of"].key, message, "add `range`, or remove it")
        return None
    if "values" in found:
        return _listed(found["values"].tree, declared, what, sink)
    if "range" in found:
        return _ranged(found, declared, what, sink)
    if sequence:
        return _sequence(found, declared, what, place, sink)
    if declared == "bool":
        return Domain("bool", values=(False, True))
    found.missing(sink, place, f"{what} does not say what it can be", DOMAIN_HELP)
    return None


def _listed(tree: Tree, declared: str | None, what: str, sink: Sink) -> Domain | None:
    seq = as_seq(tree, f"`values` of {what}", sink, "write `values: [...]`")
    if seq is None:
        return None
    if not seq.items:
        error(sink, WRONG, seq.span, f"`values` of {what} is empty", "list at least one value")
        return None
    values, sound = [], True
    for item in seq.items:
        value = to_value(item, sink)
        sound = check_value(value, item, declared, what, sink) and sound
        values.append(value)
    listed = distinct(tuple(values))
    return Domain(declared or infer(listed), values=listed) if sound else None


def check_value(value: object, tree: Tree, declared: str | None, what: str, sink: Sink) -> bool:
    """Whether a listed value can be one: of the declared type, and equal to itself."""
    if has_nan(value):
        message = f"{what} cannot be NaN, which equals nothing"
        error(sink, WRONG, tree.span, message, "remove it from the values")
        return False
    wanted = TYPES[declared] if declared else None
    if wanted is None or type(value) is wanted:
        return True
    hint = "leave out `type`, or mend the value"
    if wanted is float and type(value) is int:
        hint = f"write {value}.0: 1 and 1.0 are different values"
    elif wanted is str and not isinstance(value, (tuple, dict)):
        hint = "put quotes around it"
    message = f"{what} is declared {declared}, and {describe(tree)} is not"
    error(sink, WRONG, tree.span, message, hint)
    return False


def has_nan(value: object) -> bool:
    """Whether a NaN is the value or inside it."""
    if isinstance(value, float):
        return math.isnan(value)
    if isinstance(value, tuple):
        return any(has_nan(v) for v in value)
    return isinstance(value, dict) and any(has_nan(v) for v in value.values())


def infer(values: tuple[object, ...]) -> str:
    """The type that all values have; any where they differ, or where text may name a constant."""
    names = {type(v).__name__ for v in values}
    if len(names) != 1 or any(isinstance(v, str) and NOT_TEXT.fullmatch(v) for v in values):
        return "any"
    (name,) = names
    return name if name in TYPES else "any"


def read_bounds(tree: Tree, what: str, sink: Sink) -> tuple[int, int] | None:
    """A pair `[lo, hi]` of integers with lo <= hi."""
    seq = as_seq(tree, what, sink, "write [lo, hi], both included")
    if seq is None:
        return None
    if len(seq.items) != 2:
        error(
            sink,
            WRONG,
            seq.span,
            f"{what} must be two integers, not {len(seq.items)} values",
            "write [lo, hi], both included",
        )
        return None
    lo, hi = (as_int(item, f"a bound of {what}", sink) for item in seq.items)
    if lo is None or hi is None:
        return None
    if lo > hi:
        error(sink, WRONG, seq.span, f"{what} is empty: {lo} > {hi}", f"write [{hi}, {lo}]")
        return None
    if hi - lo >= _MOST_VALUES:
        message = f"{what} has more than 2**63 values"
        error(sink, WRONG, seq.span, message, "narrow it to what the deployment admits")
        return None
    return lo, hi


def _ranged(found: Fields, declared: str | None, what: str, sink: Sink) -> Domain | None:
    tree = found["range"].tree
    step: int | None = 1
    if "multiple_of" in found:
        place = found["multiple_of"].tree
        step = as_int(place, f"`multiple_of` of {what}", sink)
        if step is not None and step < 1:
            message = f"`multiple_of` of {what} must be at least 1, not {step}"
            error(sink, WRONG, place.span, message, "write a positive integer")
            step = None
    if declared not in (None, "int", "any"):
        message = f"{what} is declared {declared}, and a range holds integers"
        error(sink, WRONG, tree.span, message, "list `values`, or write `type: int`")
        return None
    bounds = read_bounds(tree, f"`range` of {what}", sink)
    if bounds is None or step is None:
        return None
    lo, hi = -(-bounds[0] // step) * step, bounds[1] // step * step
    if lo > hi:
        message = f"`range` of {what} is empty: no multiple of {step} in {list(bounds)}"
        error(sink, WRONG, tree.span, message, "widen the range, or change `multiple_of`")
        return None
    return Domain("int", lo, hi, step)


def _sequence(
    found: Fields, declared: str | None, what: str, place: Span, sink: Sink
) -> Domain | None:
    example = "write `length: [1, 64], element: {range: [1, 4096]}`"
    for name in ("length", "element"):
        if name not in found:
            found.missing(sink, place, f"{what} has no `{name}`", example)
            return None
    if declared not in (None, "tuple", "any"):
        message = f"{what} is declared {declared}, and `length` makes it a sequence"
        error(sink, WRONG, found["length"].key, message, "write `type: tuple`, or remove `type`")
        return None
    length = read_bounds(found["length"].tree, f"`length` of {what}", sink)
    if length is not None and length[0] < 0:
        message = f"`length` of {what} cannot be negative"
        error(sink, WRONG, found["length"].tree.span, message, "start it at 0 or above")
        length = None
    inner = as_map(found["element"].tree, f"`element` of {what}", sink, example)
    if inner is None:
        return None
    parts = fields(inner, ("range",), f"`element` of {what}", sink)
    if "range" not in parts:
        parts.missing(sink, found["element"].key, f"`element` of {what} has no range", example)
        return None
    element = read_bounds(parts["range"].tree, f"`range` of `element` of {what}", sink)
    return Domain("tuple", length=length, element=element) if length and element else None


def _choices(domain: Domain, what: str, place: Span, sink: Sink) -> Domain | None:
    """A knob's domain as a list of choices."""
    if domain.values is not None:
        return domain
    if domain.lo is None or domain.hi is None:
        message = f"{what} is a knob, and a knob's choices are listed"
        error(sink, WRONG, place, message, "write `values: [...]`")
        return None
    choices = range(domain.lo, domain.hi + 1, domain.step)
    if len(choices) > 1024:
        message = f"{what} is a knob with {len(choices):,} choices"
        error(sink, WRONG, place, message, "list at most 1,024 settings under `values`")
        return None
    return replace(domain, lo=None, hi=None, step=1, values=tuple(choices))


def read_values(entry: Entry, what: str, sink: Sink) -> tuple[object, ...] | None:
    """A list of values that is not empty, each once."""
    seq: Seq | None = as_seq(entry.tree, what, sink, "write a list: [...]")
    if seq is None:
        return None
    if not seq.items:
        error(sink, WRONG, seq.span, f"{what} is empty", "list at least one value, or remove it")
        return None
    values = [(to_value(item, sink), item) for item in seq.items]
    sound = [check_value(value, item, None, what, sink) for value, item in values]
    return distinct(tuple(value for value, _ in values)) if all(sound) else None
