"""The operations of the graph, one row each.

`python` computes an operation on defined values and raises what CPython raises; `evaluate` makes it
total. Every consumer (interpreter, text, C, ranges, Z3) owns one table keyed by `Op`.
"""

from __future__ import annotations

import enum
import math
import operator
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from selc.ir.value import UNDEF, Value

FAULTS: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
    StopIteration,
)
"""What a partial operation may raise."""

MAX_BITS: Final = 14_284
"""Integers wider than this are refused: Python writes no more than 4,300 digits as text."""


class TooWide(Exception):
    """A value that graphs cannot hold: an integer beyond `MAX_BITS`, a complex number."""


class Op(enum.Enum):
    """Every operation; the value is its name in the text form."""

    __hash__ = object.__hash__  # members are single: no need to hash their names

    CONST = "const"
    INPUT = "input"
    MARK = "mark"
    SELECT = "select"
    OK = "ok"
    FAIL = "fail"
    ADD = "add"
    SUB = "sub"
    MUL = "mul"
    FLOORDIV = "floordiv"
    MOD = "mod"
    TRUEDIV = "truediv"
    POW = "pow"
    LSHIFT = "lshift"
    RSHIFT = "rshift"
    BITAND = "bitand"
    BITOR = "bitor"
    BITXOR = "bitxor"
    NEG = "neg"
    POS = "pos"
    INVERT = "invert"
    ABS = "abs"
    EQ = "eq"
    NE = "ne"
    LT = "lt"
    LE = "le"
    GT = "gt"
    GE = "ge"
    IS = "is"
    IN = "in"
    NOT = "not"
    TRUTH = "truth"
    MIN2 = "min2"
    MAX2 = "max2"
    INT = "int"
    FLOAT = "float"
    FLOAT32 = "float32"
    STR = "str"
    ROUND = "round"
    CEIL = "ceil"
    FLOOR = "floor"
    TRUNC = "trunc"
    SQRT = "sqrt"
    LOG2 = "log2"
    BIT_LENGTH = "bit_length"
    IS_INTEGER = "is_integer"
    TUPLE = "tuple"
    INDEX = "index"
    LEN = "len"
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    ANY = "any"
    ALL = "all"
    SORTED = "sorted"
    LOOKUP = "lookup"
    HASKEY = "haskey"
    METHOD = "method"


def _float32(x: Value) -> float:
    value = float(x)  # type: ignore[arg-type]  # the operand's type is checked by float itself
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _is(a: Value, b: Value) -> bool:
    """`is` where CPython guarantees an answer: None, booleans and symbols."""
    if a is None or b is None or isinstance(a, bool) or isinstance(b, bool):
        return a is b
    return type(a) is type(b) and a == b


def _lshift(a: Value, b: Value) -> Value:
    if isinstance(b, int) and isinstance(a, int) and b > 0 and a.bit_length() + b > MAX_BITS:
        raise TooWide
    return a << b  # type: ignore[operator]  # CPython decides


def _pow(a: Value, b: Value) -> Value:
    if isinstance(a, int) and isinstance(b, int) and b > 0 and a.bit_length() * b > MAX_BITS:
        raise TooWide
    if isinstance(a, (int, float)) and isinstance(b, float) and a < 0 and not b.is_integer():
        raise TooWide  # a complex number
    return a**b  # type: ignore[operator]  # CPython decides


def _mul(a: Value, b: Value) -> Value:
    if isinstance(a, (str, tuple)) or isinstance(b, (str, tuple)):
        n = b if isinstance(b, int) else a
        if isinstance(n, int) and n > 4096:
            raise TooWide
    return a * b  # type: ignore[operator]  # CPython decides


def _min2(a: Value, b: Value) -> Value:
    return b if b < a else a  # type: ignore[operator]  # CPython decides


def _max2(a: Value, b: Value) -> Value:
    return b if b > a else a  # type: ignore[operator]  # CPython decides


def _index(a: Value, i: Value) -> Value:
    return a[i]  # type: ignore[index]  # CPython decides


def _in(x: Value, xs: Value) -> bool:
    return x in xs  # type: ignore[operator]  # CPython decides


def _bit_length(x: Value) -> int:
    return x.bit_length()  # type: ignore[attr-defined,no-any-return]  # CPython decides


def _is_integer(x: Value) -> bool:
    return x.is_integer()  # type: ignore[attr-defined,no-any-return]  # CPython decides


def _str(x: Value) -> str:
    return str(x)


def _tuple(*xs: Value) -> Value:
    return xs


STRING_METHODS: Final = frozenset(
    {
        "capitalize", "casefold", "count", "endswith", "find", "format", "index", "isalnum",
        "isalpha", "isdigit", "isidentifier", "islower", "isupper", "join", "lower", "lstrip",
        "partition", "removeprefix", "removesuffix", "replace", "rfind", "rindex", "rpartition",
        "rsplit", "rstrip", "split", "splitlines", "startswith", "strip", "swapcase", "title",
        "upper", "zfill",
    }
)  # fmt: skip
"""Methods of strings (and tuples: count, index) that `METHOD` computes."""


@dataclass(frozen=True, slots=True)
class Row:
    """What everybody may know about an operation."""

    arity: int  # -1: any number
    python: Callable[..., Value] | None
    doc: str
    commutes: bool = False
    total: bool = False  # never raises on defined values


def _row(arity: int, python: Callable[..., Value] | None, doc: str, **flags: bool) -> Row:
    return Row(arity, python, doc, **flags)


TABLE: Final[dict[Op, Row]] = {
    Op.CONST: _row(0, None, "the constant in `attr`", total=True),
    Op.INPUT: _row(0, None, "the input, pin or knob named by `attr`", total=True),
    Op.MARK: _row(1, None, "its argument, at the site whose key is `attr`", total=True),
    Op.SELECT: _row(
        3, None, "the second argument if the first is True, else the third", total=True
    ),
    Op.OK: _row(-1, None, "whether the operation in `attr` would not raise on these", total=True),
    Op.FAIL: _row(0, None, "no value: reading an unbound name, an absent key", total=False),
    Op.ADD: _row(2, operator.add, "a + b"),
    Op.SUB: _row(2, operator.sub, "a - b"),
    Op.MUL: _row(2, _mul, "a * b"),
    Op.FLOORDIV: _row(2, operator.floordiv, "a // b, rounded toward minus infinity"),
    Op.MOD: _row(2, operator.mod, "a % b, with the sign of b; string formatting if a is a string"),
    Op.TRUEDIV: _row(2, operator.truediv, "a / b, correctly rounded also for wide integers"),
    Op.POW: _row(2, _pow, "a ** b"),
    Op.LSHIFT: _row(2, _lshift, "a << b"),
    Op.RSHIFT: _row(2, operator.rshift, "a >> b"),
    Op.BITAND: _row(2, operator.and_, "a & b"),
    Op.BITOR: _row(2, operator.or_, "a | b"),
    Op.BITXOR: _row(2, operator.xor, "a ^ b"),
    Op.NEG: _row(1, operator.neg, "-a"),
    Op.POS: _row(1, operator.pos, "+a"),
    Op.INVERT: _row(1, operator.invert, "~a"),
    Op.ABS: _row(1, abs, "abs(a)"),
    Op.EQ: _row(2, operator.eq, "a == b, as Python compares", commutes=True, total=True),
    Op.NE: _row(2, operator.ne, "a != b, as Python compares", commutes=True, total=True),
    Op.LT: _row(2, operator.lt, "a < b, exact between integers and floats"),
    Op.LE: _row(2, operator.le, "a <= b"),
    Op.GT: _row(2, operator.gt, "a > b"),
    Op.GE: _row(2, operator.ge, "a >= b"),
    Op.IS: _row(2, _is, "a is b", commutes=True, total=True),
    Op.IN: _row(2, _in, "a in b, b a tuple or a string"),
    Op.NOT: _row(1, operator.not_, "not a", total=True),
    Op.TRUTH: _row(1, bool, "bool(a)", total=True),
    Op.MIN2: _row(2, _min2, "b if b < a else a: Python's min(a, b)"),
    Op.MAX2: _row(2, _max2, "b if b > a else a: Python's max(a, b)"),
    Op.INT: _row(1, int, "int(a)"),
    Op.FLOAT: _row(1, float, "float(a)"),
    Op.FLOAT32: _row(1, _float32, "a rounded to binary32, kept as a float"),
    Op.STR: _row(1, _str, "str(a)", total=True),
    Op.ROUND: _row(1, round, "round(a): half to even"),
    Op.CEIL: _row(1, math.ceil, "math.ceil(a)"),
    Op.FLOOR: _row(1, math.floor, "math.floor(a)"),
    Op.TRUNC: _row(1, math.trunc, "math.trunc(a)"),
    Op.SQRT: _row(1, math.sqrt, "math.sqrt(a)"),
    Op.LOG2: _row(1, math.log2, "math.log2(a)"),
    Op.BIT_LENGTH: _row(1, _bit_length, "a.bit_length()"),
    Op.IS_INTEGER: _row(1, _is_integer, "a.is_integer()"),
    Op.TUPLE: _row(-1, _tuple, "the tuple of its arguments", total=True),
    Op.INDEX: _row(2, _index, "a[b], a a tuple or a string"),
    Op.LEN: _row(1, len, "len(a)"),
    Op.SUM: _row(1, sum, "sum(a), left to right"),
    Op.MIN: _row(1, min, "min(a) of a tuple; the first of equals"),
    Op.MAX: _row(1, max, "max(a) of a tuple; the first of equals"),
    Op.ANY: _row(1, any, "any(a)"),
    Op.ALL: _row(1, all, "all(a)"),
    Op.SORTED: _row(1, lambda a: tuple(sorted(a)), "tuple(sorted(a))"),
    Op.LOOKUP: _row(1, None, "the value at key a of the mapping in `attr`, a tuple of pairs"),
    Op.HASKEY: _row(1, None, "whether the keys in `attr` hold a", total=True),
    Op.METHOD: _row(-1, None, "the string method named by `attr`"),
}


_BY_NAME: Final = {op.value: op for op in Op}


def apply(op: Op, attr: Value, args: tuple[Value, ...]) -> Value:
    """Compute an operation as CPython would, raising what it raises; arguments are defined.

    Raises:
        TooWide: an integer would need more than `MAX_BITS` bits.
    """
    if op is Op.LOOKUP:
        return dict(attr)[args[0]]  # type: ignore[call-overload]  # attr holds pairs
    if op is Op.HASKEY:
        return args[0] in dict.fromkeys(attr)  # type: ignore[call-overload]  # attr holds keys
    if op is Op.METHOD:
        target = args[0]
        if attr not in STRING_METHODS or not isinstance(target, (str, tuple)):
            raise TypeError(attr)
        result = getattr(target, str(attr))(*args[1:])
        return tuple(result) if isinstance(result, list) else result
    python = TABLE[op].python
    assert python is not None, op
    result = python(*args)
    if type(result) is int and result.bit_length() > MAX_BITS:
        raise TooWide
    return result


def evaluate(op: Op, attr: Value, args: tuple[Value, ...]) -> Value:
    """Compute an operation totally: `UNDEF` stands for every exception. Not for CONST and INPUT."""
    if op is Op.SELECT:
        cond, then, other = args
        return UNDEF if cond is UNDEF else then if cond else other
    if op is Op.MARK:
        return args[0]
    if op is Op.FAIL:
        return UNDEF
    if op is Op.OK:
        if UNDEF in args:
            return True  # an earlier guard speaks for the failure
        assert isinstance(attr, tuple)
        try:
            apply(_BY_NAME[attr[0]], attr[1], args)
        except FAULTS:
            return False
        return True
    if UNDEF in args:
        return UNDEF
    try:
        return apply(op, attr, args)
    except FAULTS:
        return UNDEF


def total(op: Op, attr: Value) -> Callable[..., Value]:
    """`evaluate` for one operation, with everything decided that can be decided beforehand."""
    if op is Op.SELECT:
        return lambda cond, then, other: UNDEF if cond is UNDEF else then if cond else other
    row = TABLE[op]
    python = row.python
    if python is None or row.arity not in (1, 2):
        return lambda *args: evaluate(op, attr, args)

    def one(a: Value) -> Value:
        if a is UNDEF:
            return UNDEF
        try:
            result = python(a)
        except FAULTS:
            return UNDEF
        if type(result) is int and result.bit_length() > MAX_BITS:
            raise TooWide
        return result

    def two(a: Value, b: Value) -> Value:
        if a is UNDEF or b is UNDEF:
            return UNDEF
        try:
            result = python(a, b)
        except FAULTS:
            return UNDEF
        if type(result) is int and result.bit_length() > MAX_BITS:
            raise TooWide
        return result

    return one if row.arity == 1 else two
