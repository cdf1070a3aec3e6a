"""The values a graph computes with: Python scalars, tuples of them, and symbols.

Constants are told apart by type and bits: `1`, `True` and `1.0` are three values, so are `0.0` and
`-0.0`. `UNDEF` is the result of a partial operation that Python would have left by an exception; it
is absorbing, except through an arm that a select does not take.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final, final


@final
class Undefined:
    """The type of `UNDEF`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "undef"


UNDEF: Final = Undefined()


@dataclass(frozen=True, slots=True)
class Symbol:
    """A named constant that is equal to itself alone: a dtype, an enum member."""

    kind: str
    name: str
    size: int = 0

    def __repr__(self) -> str:
        return self.name


Value = object  # None | bool | int | float | str | Symbol | tuple[Value, ...] | UNDEF

SCALARS: Final = (type(None), bool, int, float, str, Symbol)


def value_key(value: Value) -> Hashable:
    """A hashable key that is equal exactly for values of equal type and bits."""
    if isinstance(value, tuple):
        return ("tuple", *[value_key(v) for v in value])
    if isinstance(value, float):
        return ("float", struct.pack("<d", value))
    return (type(value).__name__, value)


def same(a: Value, b: Value) -> bool:
    """Equal in type and bits."""
    return value_key(a) == value_key(b)


def kind_of(value: Value) -> str:
    """The kind of a value: none, bool, int, float, str, symbol or tuple."""
    if value is None:
        return "none"
    return "symbol" if isinstance(value, Symbol) else type(value).__name__


def is_plain(value: Value) -> bool:
    """Whether a graph can hold `value` as a constant."""
    if type(value) is tuple:
        return all(is_plain(v) for v in value)
    return type(value) in SCALARS


def sort_key(value: Value) -> tuple[int, object]:
    """A total order over values: none, numbers by size, strings, symbols, tuples."""
    if value is None:
        return (0, 0)
    if isinstance(value, (bool, int, float)):
        return (1, (value, type(value).__name__))
    if isinstance(value, str):
        return (2, value)
    if isinstance(value, Symbol):
        return (3, (value.kind, value.name))
    assert isinstance(value, tuple)
    return (4, tuple(sort_key(v) for v in value))


def to_json(value: Value) -> object:
    """A value as JSON shows it: tuples are lists, symbols and non-finite floats their names."""
    if isinstance(value, tuple):
        return [to_json(v) for v in value]
    if isinstance(value, Symbol):
        return value.name
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value
