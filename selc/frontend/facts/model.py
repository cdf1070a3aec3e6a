"""What a set of facts files says, as typed records; no YAML left in them.

Invariant: every value in here is built of None, bool, int, float, str, tuples and (for mappings)
plain dicts with insertion order; lists never occur.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from selc.diag.span import Span
from selc.ir.value import value_key

if TYPE_CHECKING:
    from selc.frontend.facts.partition import Partition


@dataclass(frozen=True, slots=True)
class Expr:
    """A Python expression as text; known to parse as one."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class InputDecl:
    """One declared input: its kind and its domain (a range, values, or length and element).

    `kind` is empty where a file without `selection:` leaves it out: the program's own marks decide.
    """

    name: str
    kind: str
    type: str
    lo: int | None
    hi: int | None
    step: int
    values: tuple[object, ...] | None
    length: tuple[int, int] | None
    element: tuple[int, int] | None
    span: Span
    default: object = None


@dataclass(frozen=True, slots=True)
class KnobDecl:
    """A knob's setting (None: none given), whether it folds, and its choices where declared."""

    name: str
    setting: object
    fixed: bool
    choices: tuple[object, ...] | None
    span: Span


@dataclass(frozen=True, slots=True)
class FunctionFact:
    """What a call gives: a value, a table of (argument, ..., value), an unknown, or the kernel."""

    value: object | None
    is_value: bool
    table: tuple[tuple[object, ...], ...] | None
    kind: str | None
    domain: InputDecl | None
    opaque: bool
    span: Span


@dataclass(frozen=True, slots=True)
class ClassesDecl:
    """A bit class: its fields, the file with its partition, the other fields it was measured at.

    `partition` is None where the file could not be read.
    """

    fields: tuple[str, ...]
    file: Path
    given: Mapping[str, object]
    span: Span
    partition: Partition | None = None


@dataclass(frozen=True, slots=True)
class TensorDecl:
    """A tensor parameter; sizes are ints or expression texts, no strides means contiguous."""

    shape: tuple[object, ...]
    dtype: str
    device: str | None
    strides: tuple[object, ...] | None
    span: Span


@dataclass(frozen=True, slots=True)
class ObjectDecl:
    """What an attribute chain is: its class, if it is followed in source, and known attributes."""

    cls: str | None
    attrs: Mapping[str, object]
    span: Span


@dataclass(frozen=True)
class Facts:
    """Everything that the facts files of one compilation say, merged.

    `spans` maps dotted paths (`facts.device.num_sms`, `inputs.m.range`) to where they are set.
    `layer_keys` holds dotted fact keys that a file with `layer:` set last (prefixes too, when all
    below them came from such files); `layer_paths` the paths of those files, for other sections.
    """

    function: str | None = None
    scope: str | None = None
    family: str | None = None
    returns: dict[str, str] = field(default_factory=dict)
    require: tuple[Expr, ...] = ()
    assume: tuple[Expr, ...] = ()
    facts: dict[str, object] = field(default_factory=dict)
    inputs: dict[str, InputDecl] = field(default_factory=dict)
    offer: dict[str, tuple[object, ...]] = field(default_factory=dict)
    knobs: dict[str, KnobDecl] = field(default_factory=dict)
    tables: dict[str, object] = field(default_factory=dict)
    table_files: dict[str, Path] = field(default_factory=dict)
    functions: dict[str, FunctionFact] = field(default_factory=dict)
    env: dict[str, str | None] = field(default_factory=dict)
    globals: dict[str, object] = field(default_factory=dict)
    objects: dict[str, ObjectDecl] = field(default_factory=dict)
    tensors: dict[str, TensorDecl] = field(default_factory=dict)
    files: dict[str, Path] = field(default_factory=dict)
    classes: dict[str, ClassesDecl] = field(default_factory=dict)
    layers: tuple[str, ...] = ()
    spans: dict[str, Span] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    layer_keys: frozenset[str] = frozenset()
    layer_paths: frozenset[str] = frozenset()


def typed_key(value: object) -> Hashable:
    """A hashable key that is equal exactly for values of equal type and bits, mappings too."""
    if isinstance(value, dict):
        return ("dict", *[(typed_key(k), typed_key(v)) for k, v in value.items()])
    if isinstance(value, tuple):
        return ("tuple", *[typed_key(v) for v in value])
    return value_key(value)


def distinct(values: tuple[object, ...]) -> tuple[object, ...]:
    """The values in order of first appearance, once each by type and bits."""
    seen: dict[Hashable, object] = {}
    for value in values:
        seen.setdefault(typed_key(value), value)
    return tuple(seen.values())
