"""C expressions for the operations: what they give, and when they are defined.

Each function takes the argument values and returns tests or component texts; it may assume that
arguments are within their bounds, never that they are defined.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Final

from selc.codegen.cvalue import (
    BOOL,
    CONST,
    FLOAT,
    INT,
    NONE,
    ConstantTable,
    Unsupported,
    Val,
    all_of,
    any_of,
    integer,
    is_constant_kind,
    negation,
    pick,
    real,
)
from selc.ir.absval import INTEGRAL
from selc.ir.op import FAULTS, Op, apply
from selc.ir.value import UNDEF, Value

EXACT: Final = 1 << 53
MAX_CASES: Final = 256

COMPARE: Final = {Op.LT: "<", Op.LE: "<=", Op.GT: ">", Op.GE: ">="}
ARITHMETIC: Final = {Op.ADD: "+", Op.SUB: "-", Op.MUL: "*"}


def exact_double(a: Val) -> str:
    """An integer as a double, where that is exact."""
    lo, hi = a.fact.abs.lo, a.fact.abs.hi
    if lo is None or hi is None or max(abs(lo), abs(hi)) > EXACT:
        raise Unsupported("an integer beyond 2**53 meets a float")
    return f"(double){a.v}"


def numeric_form(a: Val) -> str:
    """'int' or 'float': the one form in which its numbers come."""
    kinds = a.kinds & {"bool", "int", "float"}
    if kinds and kinds <= INTEGRAL:
        return "int"
    if kinds == {"float"}:
        return "float"
    raise Unsupported("a value is an int on one path and a float on another")


def as_double(a: Val) -> str:
    """Its number as a double."""
    if numeric_form(a) == "int":
        return exact_double(a)
    assert a.f is not None
    return a.f


def is_number(a: Val) -> str:
    """A test that it is a number."""
    return a.has(BOOL, INT, FLOAT)


def truth(a: Val, truthy: Callable[[str], str]) -> str:
    """Python's bool(a)."""
    if a.items is not None:
        return "1" if a.items else "0"
    return any_of(
        [
            all_of([a.has(BOOL, INT), f"{a.v} != 0"]),
            all_of([a.has(FLOAT), f"{a.f} != 0.0"]),
            all_of([a.has(CONST), truthy(a.k)]) if a.k is not None else "0",
        ]
    )


def equal(a: Val, b: Val) -> str:
    """Python's a == b, between defined values."""
    if a.items is not None and b.items is not None:
        return _equal_items(a.items, b.items)
    if "tuple" in a.kinds and "tuple" in b.kinds:
        raise Unsupported("tuples are compared")
    integral = all_of([a.has(BOOL, INT), b.has(BOOL, INT), f"{a.v} == {b.v}"])
    tests = [
        all_of([a.has(NONE), b.has(NONE)]),
        integral,
        all_of([a.has(FLOAT), b.has(FLOAT), f"{a.f} == {b.f}"]),
        all_of([a.has(CONST), b.has(CONST), f"{a.k} == {b.k}"]),
    ]
    for x, y in ((a, b), (b, a)):
        if x.has(BOOL, INT) != "0" and y.has(FLOAT) != "0":
            tests.append(all_of([x.has(BOOL, INT), y.has(FLOAT), f"{exact_double(x)} == {y.f}"]))
    return any_of(tests)


def _equal_items(a: Sequence[Val], b: Sequence[Val]) -> str:
    if len(a) != len(b):
        return "0"
    if any("float" in x.kinds and not x.fact.bounded_floats for x in (*a, *b)):
        raise Unsupported("tuples are compared that may hold NaN")
    return all_of(equal(x, y) for x, y in zip(a, b, strict=True))


def identical(a: Val, b: Val) -> str:
    """Python's a is b, where the graph defines it."""
    if "tuple" in a.kinds and "tuple" in b.kinds:
        raise Unsupported("tuples are compared")
    same_tag = [
        all_of([a.has(tag), b.has(tag), f"{getattr(a, part)} == {getattr(b, part)}"])
        for tag, part in ((BOOL, "v"), (INT, "v"), (FLOAT, "f"), (CONST, "k"))
    ]
    return any_of([all_of([a.has(NONE), b.has(NONE)]), *same_tag])


def equals_constant(a: Val, value: Value, table: ConstantTable) -> str:
    """Python's a == value, for a constant."""
    if a.items is not None:
        if not isinstance(value, tuple) or len(value) != len(a.items):
            return "0"
        if any(v != v for v in value):
            raise Unsupported("tuples are compared that may hold NaN")
        return all_of(equals_constant(x, v, table) for x, v in zip(a.items, value, strict=True))
    if value is None:
        return a.has(NONE)
    if isinstance(value, tuple) and "tuple" in a.kinds:
        raise Unsupported("tuples are compared")
    if is_constant_kind(value):
        return all_of([a.has(CONST), f"{a.k} == {table.number(value)}"])
    assert isinstance(value, (bool, int, float))
    tests = []
    lo, hi = a.fact.abs.lo, a.fact.abs.hi
    if a.has(BOOL, INT) != "0" and math.isfinite(value) and value == int(value):
        assert lo is not None
        assert hi is not None
        if lo <= value <= hi:
            tests.append(all_of([a.has(BOOL, INT), f"{a.v} == {integer(int(value))}"]))
    if a.has(FLOAT) != "0":
        if isinstance(value, int) and abs(value) > EXACT:
            raise Unsupported("an integer beyond 2**53 meets a float")
        tests.append(all_of([a.has(FLOAT), f"{a.f} == {real(float(value))}"]))
    return any_of(tests)


def is_exactly(a: Val, value: Value, table: ConstantTable) -> str:
    """A test that `a` has the type and bits of `value`."""
    if value is None:
        return a.has(NONE)
    if isinstance(value, bool):
        return all_of([a.has(BOOL), f"{a.v} == {integer(int(value))}"])
    if isinstance(value, int):
        return all_of([a.has(INT), f"{a.v} == {integer(value)}"])
    if isinstance(value, float):
        return all_of([a.has(FLOAT), f"selc_i_same({a.f}, {real(value)})"])
    return all_of([a.has(CONST), f"{a.k} == {table.number(value)}"])


def compare(op: Op, a: Val, b: Val) -> str:
    """An order between numbers."""
    if numeric_form(a) == numeric_form(b) == "int":
        return f"({a.v} {COMPARE[op]} {b.v})"
    return f"({as_double(a)} {COMPARE[op]} {as_double(b)})"


def fails_not(op: Op, args: Sequence[Val]) -> str:
    """A test that the operation does not raise on defined arguments (numeric operations)."""
    a, b = args[0], args[-1]
    if op in (Op.FLOORDIV, Op.MOD, Op.TRUEDIV):
        zero = f"{b.v} != 0" if numeric_form(b) == "int" else f"{b.f} != 0.0"
        if b.fact.abs.is_integral and _excludes_zero(b):
            zero = "1"
        return all_of([is_number(a), is_number(b), zero])
    if op in (Op.LSHIFT, Op.RSHIFT):
        lo = b.fact.abs.lo
        positive = "1" if lo is not None and lo >= 0 else f"{b.v} >= 0"
        return all_of([a.has(BOOL, INT), b.has(BOOL, INT), positive])
    if op in (Op.BITAND, Op.BITOR, Op.BITXOR, Op.INVERT, Op.BIT_LENGTH):
        return all_of(x.has(BOOL, INT) for x in args)
    if op in (Op.INT, Op.ROUND, Op.CEIL, Op.FLOOR, Op.TRUNC):
        finite = "1" if numeric_form(a) == "int" else f"isfinite({a.f})"
        return all_of([is_number(a), finite])
    if op is Op.SQRT:
        return all_of([is_number(a), f"!({as_double(a)} < 0.0)"])
    if op is Op.LOG2:
        return all_of([is_number(a), f"!({as_double(a)} <= 0.0)"])
    if op is Op.POW:
        return all_of([a.has(BOOL, INT), b.has(BOOL, INT), f"{b.v} >= 0"])
    return all_of(is_number(x) for x in args)


def _excludes_zero(b: Val) -> bool:
    a = b.fact.abs
    if a.values is not None:
        return all(v != 0 for v in a.values)
    return (a.lo is not None and a.lo > 0) or (a.hi is not None and a.hi < 0)


def _floor(args: Sequence[Val], name: str) -> str:
    a, b = args
    lo, low = a.fact.abs.lo, b.fact.abs.lo
    if lo is not None and low is not None and lo >= 0 and low >= 0:
        return f"({a.v} {'/' if name == 'floordiv' else '%'} {b.v})"
    return f"selc_i_{name}({a.v}, {b.v})"


def integer_result(op: Op, args: Sequence[Val], test: str, standin: str) -> str:
    """The int64 that an operation on integers (or a rounding of a float) gives."""
    a = args[0]
    b = args[-1]
    guarded = {
        Op.FLOORDIV: lambda: _floor(args, "floordiv"),
        Op.MOD: lambda: _floor(args, "mod"),
        Op.LSHIFT: lambda: f"selc_i_shl({a.v}, {b.v})",
        Op.RSHIFT: lambda: f"selc_i_shr({a.v}, {b.v})",
        Op.POW: lambda: f"selc_i_pow({a.v}, {b.v})",
    }
    if op in guarded:
        return pick(test, guarded[op](), standin)
    if op in ARITHMETIC:
        return f"({a.v} {ARITHMETIC[op]} {b.v})"
    if op in (Op.INT, Op.ROUND, Op.CEIL, Op.FLOOR, Op.TRUNC):
        if numeric_form(a) == "int":
            return str(a.v)
        function = {Op.INT: "trunc", Op.TRUNC: "trunc", Op.ROUND: "rint", Op.CEIL: "ceil"}
        return pick(test, f"(int64_t){function.get(op, 'floor')}({a.f})", standin)
    table = {
        Op.NEG: f"(-{a.v})",
        Op.POS: f"{a.v}",
        Op.INVERT: f"(~{a.v})",
        Op.ABS: f"({a.v} < 0 ? -{a.v} : {a.v})",
        Op.BITAND: f"({a.v} & {b.v})",
        Op.BITOR: f"({a.v} | {b.v})",
        Op.BITXOR: f"({a.v} ^ {b.v})",
        Op.BIT_LENGTH: f"selc_i_bits({a.v})",
    }
    if op not in table:
        raise Unsupported(f"the operation {op.value!r} on integers")
    return table[op]


def float_result(op: Op, args: Sequence[Val], test: str, standin: str) -> str:
    """The double that an operation gives."""
    a = as_double(args[0])
    b = as_double(args[-1])
    if op in ARITHMETIC:
        return f"({a} {ARITHMETIC[op]} {b})"
    table = {
        Op.NEG: f"(-{a})",
        Op.POS: f"({a})",
        Op.ABS: f"fabs({a})",
        Op.FLOAT: f"({a})",
        Op.FLOAT32: f"selc_i_float32({a})",
        Op.TRUEDIV: pick(test, f"({a} / {b})", standin),
        Op.SQRT: pick(test, f"sqrt({a})", standin),
        Op.LOG2: pick(test, f"log2({a})", standin),
        Op.FLOORDIV: pick(test, f"selc_i_ffloordiv({a}, {b})", standin),
        Op.MOD: pick(test, f"selc_i_fmod({a}, {b})", standin),
    }
    if op not in table:
        raise Unsupported(f"the operation {op.value!r} on floats")
    return table[op]


def cases(
    op: Op, attr: Value, args: Sequence[Val], table: ConstantTable
) -> list[tuple[str, Value]]:
    """Every combination of argument values with the result: for finite arguments of any kind."""
    count = 1
    for a in args:
        if a.fact.abs.values is None:
            raise Unsupported(f"the operation {op.value!r} on these values")
        count *= len(a.fact.abs.values)
    if count > MAX_CASES:
        raise Unsupported(f"the operation {op.value!r} on {count} combinations of values")
    out: list[tuple[str, Value]] = []
    for combo in itertools.product(*[a.fact.abs.values or () for a in args]):
        test = all_of(is_exactly(a, v, table) for a, v in zip(args, combo, strict=True))
        try:
            out.append((test, apply(op, attr, combo)))
        except FAULTS:
            out.append((test, UNDEF))
    return out


__all__ = [
    "cases",
    "compare",
    "equal",
    "equals_constant",
    "fails_not",
    "float_result",
    "identical",
    "integer_result",
    "is_exactly",
    "is_number",
    "negation",
    "truth",
]
