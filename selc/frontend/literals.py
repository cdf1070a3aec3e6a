"""Literals of facts files and JSON tables as values of the program."""

from __future__ import annotations

from typing import Final

from selc.frontend import written
from selc.frontend.context import Lowering
from selc.frontend.state import State
from selc.frontend.values import DictObj, Entry, ListObj, Tup, V
from selc.ir.value import Symbol, Value

DTYPES: Final = {
    "float64": 8,
    "double": 8,
    "float32": 4,
    "float": 4,
    "float16": 2,
    "half": 2,
    "bfloat16": 2,
    "float8_e4m3fn": 1,
    "float8_e4m3fnuz": 1,
    "float8_e5m2": 1,
    "float8_e5m2fnuz": 1,
    "float8_e8m0fnu": 1,
    "float4_e2m1fn_x2": 1,
    "int64": 8,
    "long": 8,
    "int32": 4,
    "int": 4,
    "int16": 2,
    "short": 2,
    "int8": 1,
    "uint8": 1,
    "uint16": 2,
    "uint32": 4,
    "uint64": 8,
    "bool": 1,
    "complex64": 8,
    "complex128": 16,
}
"""torch dtypes and their item sizes in bytes."""

_ALIASES: Final = {
    "double": "float64",
    "float": "float32",
    "half": "float16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
}

FROM_FACTS: Final = "it comes from the facts"


def dtype(name: str) -> Symbol | None:
    """The dtype `torch.name`."""
    if name not in DTYPES:
        return None
    return Symbol("dtype", "torch." + _ALIASES.get(name, name), DTYPES[name])


def atom(value: object) -> Value:
    """A YAML scalar (or tuple of them) as a graph constant."""
    if isinstance(value, str) and value.startswith("torch."):
        return dtype(value.removeprefix("torch.")) or value
    if isinstance(value, (tuple, list)):
        return tuple(atom(v) for v in value)
    return value


def resolve(cx: Lowering, value: object) -> Value:
    """Like `atom`; text that names an Enum member of the program is that member."""
    if isinstance(value, str) and "." in value:
        from selc.frontend import enums

        member = enums.named(cx, value)
        if member is not None:
            return member
    if isinstance(value, (tuple, list)):
        return tuple(resolve(cx, v) for v in value)
    return atom(value)


def from_python(cx: Lowering, st: State | None, value: object, frozen: str = FROM_FACTS) -> V:
    """A literal as a value; mappings become dicts that must not be changed, lists tuples."""
    if isinstance(value, dict):
        if written.is_record(value):
            return written.record(cx, value, frozen)
        if written.is_list(value):
            items = tuple(from_python(cx, st, v, frozen) for v in value["items"])
            return cx.heap.new(None, ListObj(items, frozen=frozen))
        entries = {
            resolve(cx, key): Entry(cx.true, from_python(cx, st, v, frozen))
            for key, v in value.items()
        }
        return cx.heap.new(None, DictObj(entries, frozen=frozen))
    if isinstance(value, (tuple, list)):
        return Tup(tuple(from_python(cx, st, v, frozen) for v in value))
    return cx.graph.const(resolve(cx, value))


def from_json(cx: Lowering, st: State, value: object) -> V:
    """A freshly loaded JSON document: changeable dicts and lists."""
    if isinstance(value, dict):
        entries = {key: Entry(cx.true, from_json(cx, st, v)) for key, v in value.items()}
        return cx.heap.new(st, DictObj(entries))
    if isinstance(value, list):
        return cx.heap.new(st, ListObj(tuple(from_json(cx, st, v) for v in value)))
    return cx.graph.const(value)
