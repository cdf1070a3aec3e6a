"""What every operation means, said with Python's own operators, and how graphs are evaluated.

A graph is evaluated over columns: one list per node with a value for each call looked at.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any, Final, NamedTuple

from selc.check.values import UNDEF, WIDE, key

BITS: Final = 14_284
SAME: Final = "="
"""The checker's own operation: equal in type and bits, also where both are undefined."""

RAISED: Final = (
    ArithmeticError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
    AssertionError,
)


class Meaning(NamedTuple):
    """The number of arguments (-1: any) and the function; None where evaluation treats it."""

    arity: int
    function: Callable[..., Any] | None = None


class _Wide(Exception):
    pass


def _times(a: Any, b: Any) -> Any:
    for sequence, count in ((a, b), (b, a)):
        if isinstance(sequence, (str, tuple)) and isinstance(count, int) and count > 4096:
            raise _Wide
    return a * b


def _power(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int) and b > 0 and a.bit_length() * b > BITS:
        raise _Wide
    return a**b


def _left(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int) and b > 0 and a.bit_length() + b > BITS:
        raise _Wide
    return a << b


def _same_object(a: Any, b: Any) -> bool:
    if any(x is None or isinstance(x, bool) for x in (a, b)):
        return a is b
    return type(a) is type(b) and a == b


def _single(a: Any) -> float:
    wide = float(a)
    try:
        return float(struct.unpack("<f", struct.pack("<f", wide))[0])
    except OverflowError:
        return math.copysign(math.inf, wide)


def _string_method(name: str) -> Callable[..., Any]:
    def call(target: Any, *args: Any) -> Any:
        if not isinstance(target, (str, tuple)) or name.startswith("_"):
            raise AttributeError(name)
        result = getattr(target, name)(*args)
        return tuple(result) if isinstance(result, list) else result

    return call


MEANING: Final[dict[str, Meaning]] = {
    "const": Meaning(0),
    "input": Meaning(0),
    "fail": Meaning(0),
    "mark": Meaning(1),
    "select": Meaning(3),
    "ok": Meaning(-1),
    "lookup": Meaning(1),
    "haskey": Meaning(1),
    "method": Meaning(-1),
    "add": Meaning(2, lambda a, b: a + b),
    "sub": Meaning(2, lambda a, b: a - b),
    "mul": Meaning(2, _times),
    "floordiv": Meaning(2, lambda a, b: a // b),
    "mod": Meaning(2, lambda a, b: a % b),
    "truediv": Meaning(2, lambda a, b: a / b),
    "pow": Meaning(2, _power),
    "lshift": Meaning(2, _left),
    "rshift": Meaning(2, lambda a, b: a >> b),
    "bitand": Meaning(2, lambda a, b: a & b),
    "bitor": Meaning(2, lambda a, b: a | b),
    "bitxor": Meaning(2, lambda a, b: a ^ b),
    "neg": Meaning(1, lambda a: -a),
    "pos": Meaning(1, lambda a: +a),
    "invert": Meaning(1, lambda a: ~a),
    "abs": Meaning(1, abs),
    "eq": Meaning(2, lambda a, b: a == b),
    "ne": Meaning(2, lambda a, b: a != b),
    "lt": Meaning(2, lambda a, b: a < b),
    "le": Meaning(2, lambda a, b: a <= b),
    "gt": Meaning(2, lambda a, b: a > b),
    "ge": Meaning(2, lambda a, b: a >= b),
    "is": Meaning(2, _same_object),
    "in": Meaning(2, lambda a, b: a in b),
    "not": Meaning(1, lambda a: not a),
    "truth": Meaning(1, bool),
    "min2": Meaning(2, lambda a, b: min(a, b)),
    "max2": Meaning(2, lambda a, b: max(a, b)),
    "int": Meaning(1, int),
    "float": Meaning(1, float),
    "float32": Meaning(1, _single),
    "str": Meaning(1, str),
    "round": Meaning(1, round),
    "ceil": Meaning(1, math.ceil),
    "floor": Meaning(1, math.floor),
    "trunc": Meaning(1, math.trunc),
    "sqrt": Meaning(1, math.sqrt),
    "log2": Meaning(1, math.log2),
    "bit_length": Meaning(1, lambda a: a.bit_length()),
    "is_integer": Meaning(1, lambda a: a.is_integer()),
    SAME: Meaning(2, None),
    "tuple": Meaning(-1, lambda *xs: xs),
    "index": Meaning(2, lambda a, i: a[i]),
    "len": Meaning(1, len),
    "sum": Meaning(1, sum),
    "min": Meaning(1, min),
    "max": Meaning(1, max),
    "any": Meaning(1, any),
    "all": Meaning(1, all),
    "sorted": Meaning(1, lambda a: tuple(sorted(a))),
}


_TAKES_ANYTHING: Final = frozenset(
    {"eq", "ne", "is", "in", "not", "truth", "str", "tuple", "haskey"}
)
_GROWS: Final = frozenset({"mul", "pow", "lshift", "int", "method"})


def function_of(op: str, attr: Any) -> Callable[..., Any]:
    """The operation on defined values; raises what Python raises."""
    if op == "lookup":
        table = dict(attr)
        return lambda a: table[a]
    if op == "haskey":
        keys = frozenset(attr)
        return lambda a: a in keys
    if op == "method":
        return _string_method(str(attr))
    known = MEANING[op].function
    if known is None:
        raise TypeError(op)
    return known


def once(op: str, attr: Any, args: Sequence[Any]) -> Any:
    """One operation on one list of values, `UNDEF` and `WIDE` among them; not for inputs."""
    return column(op, attr, [[a] for a in args], 1)[0]


def column(op: str, attr: Any, args: list[Sequence[Any]], count: int) -> Sequence[Any]:
    """One operation over `count` calls; not for inputs."""
    if op == "const":
        return [attr] * count
    if op == "fail":
        return [UNDEF] * count
    if op == "mark":
        return args[0]
    if op == "select":
        return [
            c if c is UNDEF or c is WIDE else t if c else e for c, t, e in zip(*args, strict=True)
        ]
    if op == SAME:
        return [
            WIDE if a is WIDE or b is WIDE else key(a) == key(b) for a, b in zip(*args, strict=True)
        ]
    if op == "ok":
        inner = function_of(attr[0], attr[1])
        return [_fine(inner, row) for row in _rows(args, count)]
    function = function_of(op, attr)
    quick = _quick(op, function, args)
    return [_apply(function, row) for row in _rows(args, count)] if quick is None else quick


def _quick(op: str, function: Callable[..., Any], args: list[Sequence[Any]]) -> list[Any] | None:
    """The column where nothing is undefined and nothing raises, or None.

    The marks of undefined values support no operator, so that most operations raise on them.
    """
    if op in _TAKES_ANYTHING and any(v is UNDEF or v is WIDE for a in args for v in a):
        return None
    if op in _GROWS or not args:
        return None
    try:
        return list(map(function, *args))
    except (*RAISED, _Wide):
        return None


def _rows(args: list[Sequence[Any]], count: int) -> Any:
    return zip(*args, strict=True) if args else repeat((), count)


def _apply(function: Callable[..., Any], row: tuple[Any, ...]) -> Any:
    for value in row:
        if value is WIDE:
            return WIDE
    for value in row:
        if value is UNDEF:
            return UNDEF
    try:
        result = function(*row)
    except RAISED:
        return UNDEF
    except _Wide:
        return WIDE
    kind = type(result)
    if kind is complex or (kind is int and result.bit_length() > BITS):
        return WIDE
    return result


def _fine(function: Callable[..., Any], row: tuple[Any, ...]) -> Any:
    if any(v is UNDEF for v in row) and not any(v is WIDE for v in row):
        return True  # an earlier guard speaks for the failure
    result = _apply(function, row)
    return WIDE if result is WIDE else result is not UNDEF
