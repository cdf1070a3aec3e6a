"""Values in C: up to five components, of which most nodes have one.

`v` an int64 for ints and bools, `f` a double, `k` the number of a constant (strings, symbols,
tuples), `t` the kind where there are several, `d` whether it is defined. A component that does not
apply holds a stand-in inside the node's bounds, so that no arithmetic on it can overflow.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from selc.codegen.facts import Fact
from selc.ir.absval import INTEGRAL
from selc.ir.value import Symbol, Value, kind_of, value_key

NONE, BOOL, INT, FLOAT, CONST = range(5)
TAGS: Final = {"none": NONE, "bool": BOOL, "int": INT, "float": FLOAT}
CONSTANT_KINDS: Final = frozenset({"str", "symbol", "tuple"})
INT64: Final = (-(1 << 63), (1 << 63) - 1)


class Unsupported(Exception):
    """The selector cannot be written in C; the text says why, in the user's words."""


@dataclass(frozen=True, slots=True)
class Val:
    """C expressions (names or literals) for the components of one node.

    A tuple that is computed has its `items` instead, and nothing but them.
    """

    fact: Fact
    v: str | None = None
    f: str | None = None
    k: str | None = None
    t: str | None = None
    d: str | None = None
    items: tuple[Val, ...] | None = None

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds that it may have."""
        return self.fact.abs.kinds

    @property
    def tags(self) -> list[int]:
        """The tags that it may have, in order."""
        return sorted({TAGS.get(k, CONST) for k in self.kinds})

    def has(self, *tags: int) -> str:
        """A test that it has one of these tags."""
        mine = self.tags
        hit = [t for t in mine if t in tags]
        if not hit:
            return "0"
        if len(hit) == len(mine):
            return "1"
        assert self.t is not None
        return any_of(f"{self.t} == {t}" for t in hit)

    @property
    def defined(self) -> str:
        """A test that it is defined."""
        return self.d or "1"


def all_of(tests: Iterable[str]) -> str:
    """The conjunction of tests, without the trivial ones."""
    kept = list(dict.fromkeys(t for t in tests if t != "1"))
    if "0" in kept:
        return "0"
    return "1" if not kept else kept[0] if len(kept) == 1 else "(" + " && ".join(kept) + ")"


def any_of(tests: Iterable[str]) -> str:
    """The disjunction of tests, without the trivial ones."""
    kept = list(dict.fromkeys(t for t in tests if t != "0"))
    if "1" in kept:
        return "1"
    return "0" if not kept else kept[0] if len(kept) == 1 else "(" + " || ".join(kept) + ")"


def negation(test: str) -> str:
    """The opposite test."""
    return {"0": "1", "1": "0"}.get(test, f"!({test})")


def pick(test: str, then: str, other: str) -> str:
    """`then` if the test holds, else `other`."""
    if test == "1" or then == other:
        return then
    return other if test == "0" else f"({test} ? {then} : {other})"


def integer(value: int) -> str:
    """An int64 literal."""
    if value == INT64[0]:
        return "(-INT64_C(9223372036854775807) - 1)"
    if not INT64[0] < value <= INT64[1]:
        raise Unsupported(f"the constant {value} needs more than 64 bits")
    return f"INT64_C({value})" if value >= 0 else f"(-INT64_C({-value}))"


def real(value: float) -> str:
    """A double literal with exactly these bits (any NaN for NaN)."""
    if math.isnan(value):
        return "((double)NAN)"
    if math.isinf(value):
        return "((double)INFINITY)" if value > 0 else "(-(double)INFINITY)"
    text = value.hex()
    return f"({text})" if text.startswith("-") else text


class ConstantTable:
    """Strings, symbols and tuples by number."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self._numbers: dict[object, int] = {}

    def number(self, value: Value) -> int:
        """The number of a constant."""
        key = value_key(value)
        if key not in self._numbers:
            self._numbers[key] = len(self.values)
            self.values.append(value)
        return self._numbers[key]


def is_constant_kind(value: Value) -> bool:
    """Whether a value is kept by number."""
    return isinstance(value, (str, Symbol, tuple))


def tag_of(value: Value) -> int:
    """The tag of a value."""
    return TAGS.get(kind_of(value), CONST)


def stand_in(fact: Fact, table: ConstantTable) -> tuple[str, str, str, int]:
    """Harmless components for a node where it is undefined: v, f, k, tag."""
    a = fact.abs
    v = integer(a.lo) if a.kinds & INTEGRAL and a.lo is not None else "0"
    f = real(fact.flo) if fact.bounded_floats else "0.0"
    k = "0"
    if a.values is not None:
        texts = [x for x in a.values if is_constant_kind(x)]
        k = str(table.number(texts[0])) if texts else "0"
    tags = sorted({TAGS.get(kind, CONST) for kind in a.kinds})
    return v, f, k, tags[0] if tags else NONE


def constant(value: Value, fact: Fact, table: ConstantTable) -> Val:
    """The components of a constant."""
    if isinstance(value, (bool, int)):
        return Val(fact, v=integer(int(value)))
    if isinstance(value, float):
        return Val(fact, f=real(value))
    if value is None:
        return Val(fact)
    return Val(fact, k=str(table.number(value)))
