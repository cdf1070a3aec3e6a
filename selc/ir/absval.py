"""Abstract values: what a node can be, whatever is pinned above it.

Forward and non-relational, so that a fact found here survives any pin whose values lie inside the
abstract value of the pinned site (offers are joined in by the caller). Either a finite set of
constants, or kinds with bounds for the integers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from selc.ir.domain import Domain
from selc.ir.floatrange import ROUNDING, Ends, real_bounds, rounded_bounds
from selc.ir.graph import BOOLEAN, Node
from selc.ir.op import FAULTS, TABLE, Op, TooWide, apply, evaluate
from selc.ir.value import UNDEF, Value, kind_of, value_key

MAX_SET: Final = 64
MAX_COMBINATIONS: Final = 4096
NUMERIC: Final = frozenset({"int", "bool", "float"})
INTEGRAL: Final = frozenset({"int", "bool"})
_FLOATABLE: Final = 1 << 500


@dataclass(frozen=True, slots=True)
class AbsVal:
    """`values`: exactly these (or a subset); otherwise `kinds`, with lo..hi bounding the integers.

    `real` bounds the floats, and says that all of them are finite. `defined` says that the node is
    never `UNDEF`.
    """

    values: tuple[Value, ...] | None
    kinds: frozenset[str]
    lo: int | None = None
    hi: int | None = None
    defined: bool = True
    real: tuple[float, float] | None = None

    @property
    def is_integral(self) -> bool:
        """Only ints and bools."""
        return bool(self.kinds) and self.kinds <= INTEGRAL

    @property
    def single(self) -> bool:
        """Exactly one value, always defined."""
        return self.values is not None and len(self.values) == 1 and self.defined


ANY: Final = AbsVal(
    None, frozenset({"none", "bool", "int", "float", "str", "symbol", "tuple"}), defined=False
)
BOOL: Final = AbsVal((False, True), frozenset({"bool"}), 0, 1)


def of_values(values: Sequence[Value], defined: bool = True) -> AbsVal:
    """The abstraction of a non-empty collection of constants."""
    distinct = tuple({value_key(v): v for v in values}.values())
    kinds = frozenset(kind_of(v) for v in distinct)
    ints = [int(v) for v in distinct if isinstance(v, (bool, int))]
    lo, hi = (min(ints), max(ints)) if ints else (None, None)
    floats = [v for v in distinct if isinstance(v, float)]
    real = (min(floats), max(floats)) if floats and all(map(math.isfinite, floats)) else None
    return AbsVal(distinct if len(distinct) <= MAX_SET else None, kinds, lo, hi, defined, real)


def of_domain(domain: Domain) -> AbsVal:
    """The abstraction of a declared domain."""
    if domain.values is not None:
        return of_values(domain.values)
    if len(domain) <= MAX_SET:
        return of_values(tuple(domain))
    return AbsVal(None, frozenset({"int"}), domain.lo, domain.hi)


def join(a: AbsVal, b: AbsVal) -> AbsVal:
    """The least abstraction above both."""
    defined = a.defined and b.defined
    if a.values is not None and b.values is not None:
        return of_values(a.values + b.values, defined) if a.values or b.values else a
    kinds = a.kinds | b.kinds
    sides = [s for s in (a, b) if s.kinds & INTEGRAL]
    lo = None if any(s.lo is None for s in sides) else min((s.lo for s in sides), default=None)  # type: ignore[type-var]
    hi = None if any(s.hi is None for s in sides) else max((s.hi for s in sides), default=None)  # type: ignore[type-var]
    floating = [s.real for s in (a, b) if "float" in s.kinds]
    known = [f for f in floating if f is not None]
    real = None
    if known and len(known) == len(floating):
        real = min(f[0] for f in known), max(f[1] for f in known)
    return AbsVal(None, kinds, lo, hi, defined, real)


def ends(a: AbsVal) -> Ends | None:
    """Numbers between which all values lie; None if not all are numbers with known bounds."""
    out: list[int | float] = []
    if not a.kinds or not a.kinds <= NUMERIC:
        return None
    if a.kinds & INTEGRAL:
        if a.lo is None or a.hi is None:
            return None
        out += [a.lo, a.hi]
    if "float" in a.kinds:
        if a.real is None:
            return None
        out += a.real
    return tuple(out)


def transfer(node: Node, args: Sequence[AbsVal]) -> AbsVal:
    """The abstraction of a node from those of its arguments; not for INPUT."""
    op = node.op
    if op is Op.CONST:
        return of_values((node.attr,))
    if op is Op.MARK:
        return args[0]
    if op is Op.FAIL:
        return AbsVal((), frozenset(), defined=False)
    if op is Op.SELECT:
        return _select(args[0], args[1], args[2])
    if op is Op.OK:
        return _ok(node, args)
    finite = _finite(node, args)
    if finite is not None:
        return finite
    if op in BOOLEAN:
        return _compare(op, args)
    defined = all(a.defined for a in args) and (TABLE[op].total or never_fails(op, node.attr, args))
    kinds = _kinds(op, node.attr, args)
    lo, hi = _integers(op, kinds, args)
    real = None
    if "float" in kinds or op in ROUNDING:
        known = [e for e in map(ends, args) if e is not None]
        if len(known) == len(args) and op in ROUNDING and not args[0].is_integral:
            lo, hi = rounded_bounds(op, known[0])
        elif len(known) == len(args) and args:
            real = _real(op, args, known)
    if lo is not None and lo == hi and kinds == {"int"}:
        return AbsVal((lo,), kinds, lo, hi, defined)
    return AbsVal(None, kinds, lo, hi, defined, real)


def _integers(
    op: Op, kinds: frozenset[str], args: Sequence[AbsVal]
) -> tuple[int | None, int | None]:
    """Bounds of the integers in the result of an operation."""
    a = args[0] if args else ANY
    if op is Op.LEN:
        return 0, None
    if op is Op.BIT_LENGTH and a.is_integral and a.lo is not None and a.hi is not None:
        return 0, max(abs(a.lo), abs(a.hi)).bit_length()
    if not kinds & INTEGRAL:
        return None, None
    if all(x.is_integral for x in args):
        return _bounds(op, args)
    if not all(x.kinds <= NUMERIC for x in args):
        return None, None
    whole = [x for x in args if x.kinds & INTEGRAL]
    if op in (Op.MIN2, Op.MAX2):  # an integer is one of theirs
        if any(x.lo is None or x.hi is None for x in whole):
            return None, None
        return _least_of([x.lo for x in whole]), _greatest_of([x.hi for x in whole])
    # an integer is made of integers alone
    return _bounds(op, args) if op in _CLOSED and len(whole) == len(args) else (None, None)


def _real(op: Op, args: Sequence[AbsVal], known: Sequence[Ends]) -> tuple[float, float] | None:
    """Bounds of the floats in the result of an operation on numbers."""
    floats = [a.real for a in args if a.real is not None]
    if op in (Op.MIN2, Op.MAX2) and floats:
        return min(f[0] for f in floats), max(f[1] for f in floats)
    if op is Op.ABS and floats:
        return 0.0, max(abs(floats[0][0]), abs(floats[0][1]))
    return real_bounds(op, known)


def _select(cond: AbsVal, then: AbsVal, other: AbsVal) -> AbsVal:
    arms = []
    if cond.values is None or any(cond.values):
        arms.append(then)
    if cond.values is None or not all(cond.values):
        arms.append(other)
    result = arms[0] if arms else other
    for arm in arms[1:]:
        result = join(result, arm)
    if cond.defined:
        return result
    return replace(result, defined=False)


def _ok(node: Node, args: Sequence[AbsVal]) -> AbsVal:
    assert isinstance(node.attr, tuple)
    op = Op(node.attr[0])
    if TABLE[op].total or never_fails(op, node.attr[1], args):
        return of_values((True,))
    finite = _finite(node, args)
    return finite if finite is not None else BOOL


def _finite(node: Node, args: Sequence[AbsVal]) -> AbsVal | None:
    count = 1
    for a in args:
        if a.values is None:
            return None
        count *= len(a.values)
    if count > MAX_COMBINATIONS or count == 0:
        return None
    out: list[Value] = []
    defined = all(a.defined for a in args)
    try:
        for combo in itertools.product(*[a.values for a in args if a.values is not None]):
            value = evaluate(node.op, node.attr, combo)
            if value is UNDEF:
                defined = False
            else:
                out.append(value)
    except TooWide:
        return None
    if node.op is Op.OK and not all(a.defined for a in args):
        out.append(True)
    if not out:
        return AbsVal((), frozenset(), defined=False)
    return of_values(out, defined)


def never_fails(op: Op, attr: Value, args: Sequence[AbsVal]) -> bool:  # noqa: C901  # by operation
    """Whether the operation cannot raise on any defined values of its arguments."""
    if TABLE[op].total:
        return True
    if not args:
        return False
    numeric = all(a.kinds <= NUMERIC for a in args)
    integral = all(a.is_integral for a in args)
    b = args[-1]
    if op in (Op.ADD, Op.SUB, Op.MUL, Op.MIN2, Op.MAX2, Op.LT, Op.LE, Op.GT, Op.GE):
        if op is Op.ADD and all(a.kinds == {"tuple"} for a in args):
            return True
        if op in (Op.LT, Op.LE, Op.GT, Op.GE, Op.MIN2, Op.MAX2) and numeric:
            return True
        # int op float overflows for wide integers only
        return numeric and (
            integral or all(a.kinds == {"float"} or _bounded(a, 1 << 1000) for a in args)
        )
    if op in (Op.FLOORDIV, Op.MOD):
        return numeric and _excludes_zero(b) and (integral or all(_convertible(a) for a in args))
    if op is Op.TRUEDIV:
        return numeric and _excludes_zero(b) and all(_convertible(a) for a in args)
    if op in (Op.NEG, Op.POS, Op.ABS):
        return numeric
    if op in (Op.BITAND, Op.BITOR, Op.BITXOR, Op.INVERT, Op.BIT_LENGTH):
        return integral
    if op in (Op.LSHIFT, Op.RSHIFT):
        return (
            integral and b.lo is not None and b.lo >= 0 and (op is Op.RSHIFT or _bounded(b, 1024))
        )
    if op in (Op.INT, Op.ROUND, Op.CEIL, Op.FLOOR, Op.TRUNC):
        return integral or ends(args[0]) is not None
    if op in (Op.FLOAT, Op.FLOAT32):
        return numeric and _convertible(args[0])
    if op in (Op.LEN, Op.ANY, Op.ALL):
        return args[0].kinds == {"tuple"}
    if op is Op.IN:  # values are compared by `==`, which never raises
        return b.kinds == {"tuple"} or all(a.kinds == {"str"} for a in args)
    if op is Op.SQRT:
        return (
            integral and args[0].lo is not None and args[0].lo >= 0 and _bounded(args[0], 1 << 500)
        )
    if op is Op.LOG2:
        return integral and args[0].lo is not None and args[0].lo > 0
    return False


def _bounded(a: AbsVal, limit: int) -> bool:
    """Whether the integers among some numbers are within limits."""
    if a.kinds == {"bool"}:
        return True
    return a.lo is not None and a.hi is not None and -limit < a.lo and a.hi < limit


def _convertible(a: AbsVal) -> bool:
    """Numbers whose integers are small enough to be made floats without overflow."""
    return a.kinds == {"float"} or (a.kinds <= NUMERIC and _in_float_range(a))


def _in_float_range(a: AbsVal) -> bool:
    return a.lo is not None and a.hi is not None and a.lo > -_FLOATABLE and a.hi < _FLOATABLE


def _excludes_zero(a: AbsVal) -> bool:
    if a.values is not None:
        return all(v != 0 for v in a.values)
    if a.is_integral:
        return (a.lo is not None and a.lo > 0) or (a.hi is not None and a.hi < 0)
    known = ends(a)
    return known is not None and (min(known) > 0 or max(known) < 0)


def _compare(op: Op, args: Sequence[AbsVal]) -> AbsVal:
    defined = all(a.defined for a in args) and never_fails(op, None, args)
    verdict: bool | None = None
    if op in (Op.TRUTH, Op.NOT) and args[0].is_integral and _excludes_zero(args[0]):
        verdict = op is Op.TRUTH
    elif op is Op.IS:
        a, b = args
        if not a.kinds & b.kinds:
            verdict = False
    elif (
        op in (Op.EQ, Op.NE)
        and not (args[0].kinds & args[1].kinds)
        and not all(a.kinds & NUMERIC for a in args)
    ):
        verdict = op is Op.NE
    elif len(args) == 2 and all(a.is_integral for a in args):
        verdict = _order(op, args[0], args[1])
    elif len(args) == 2 and all(a.kinds and a.kinds <= NUMERIC for a in args):
        verdict = _real_order(op, args[0], args[1])
    if verdict is None:
        return AbsVal((False, True), frozenset({"bool"}), 0, 1, defined)
    return of_values((verdict,), defined)


def _real_order(op: Op, a: AbsVal, b: AbsVal) -> bool | None:
    """Like `_order`, where floats take part; Python compares integers with floats exactly."""
    left, right = ends(a), ends(b)
    if left is None or right is None:
        return None
    below, above = max(left) < min(right), min(left) > max(right)
    at_most, at_least = max(left) <= min(right), min(left) >= max(right)
    return _decided(op, below, above, at_most, at_least)


def _order(op: Op, a: AbsVal, b: AbsVal) -> bool | None:
    below = a.hi is not None and b.lo is not None and a.hi < b.lo
    above = a.lo is not None and b.hi is not None and a.lo > b.hi
    at_most = a.hi is not None and b.lo is not None and a.hi <= b.lo
    at_least = a.lo is not None and b.hi is not None and a.lo >= b.hi
    return _decided(op, below, above, at_most, at_least)


def _decided(op: Op, below: bool, above: bool, at_most: bool, at_least: bool) -> bool | None:
    yes, no = {
        Op.LT: (below, at_least),
        Op.GE: (at_least, below),
        Op.GT: (above, at_most),
        Op.LE: (at_most, above),
        Op.NE: (below or above, False),
        Op.EQ: (False, below or above),
    }.get(op, (False, False))
    return True if yes else False if no else None


_CLOSED: Final = frozenset({Op.ADD, Op.SUB, Op.MUL, Op.NEG, Op.POS, Op.ABS, Op.FLOORDIV})
_FLOATING: Final = frozenset({Op.FLOAT, Op.FLOAT32, Op.TRUEDIV, Op.SQRT, Op.LOG2})
_ARITHMETIC: Final = frozenset(
    {Op.ADD, Op.SUB, Op.MUL, Op.FLOORDIV, Op.MOD, Op.NEG, Op.POS, Op.ABS}
)


def _kinds(op: Op, attr: Value, args: Sequence[AbsVal]) -> frozenset[str]:
    """An upper bound of the kinds of the result."""
    if op in (
        Op.INT,
        Op.CEIL,
        Op.FLOOR,
        Op.TRUNC,
        Op.ROUND,
        Op.BIT_LENGTH,
        Op.LEN,
        Op.LSHIFT,
        Op.RSHIFT,
        Op.INVERT,
    ):
        return frozenset({"int"})
    if op in _FLOATING:
        return frozenset({"float"})
    if op in (Op.TUPLE, Op.SORTED):
        return frozenset({"tuple"})
    if op is Op.STR:
        return frozenset({"str"})
    if op in (Op.BITAND, Op.BITOR, Op.BITXOR) and all(a.is_integral for a in args):
        return (
            frozenset({"bool"})
            if all(a.kinds == {"bool"} for a in args)
            else frozenset({"int", "bool"})
        )
    if op in _ARITHMETIC and all(a.kinds <= NUMERIC for a in args):
        if all(a.is_integral for a in args):
            return frozenset({"int"})
        return (
            frozenset({"float"})
            if any(a.kinds == {"float"} for a in args)
            else frozenset({"int", "float"})
        )
    if op in (Op.MIN2, Op.MAX2):
        return args[0].kinds | args[1].kinds
    if op is Op.LOOKUP:
        assert isinstance(attr, tuple)
        return frozenset(kind_of(v) for _, v in attr)
    return ANY.kinds


def _bounds(  # noqa: C901  # one arm per operation
    op: Op, args: Sequence[AbsVal]
) -> tuple[int | None, int | None]:
    a = args[0]
    b = args[-1]
    al, ah, bl, bh = a.lo, a.hi, b.lo, b.hi
    if op is Op.ADD:
        return _add(al, bl), _add(ah, bh)
    if op is Op.SUB:
        return _add(al, _neg(bh)), _add(ah, _neg(bl))
    if op is Op.NEG:
        return _neg(ah), _neg(al)
    if op in (Op.POS, Op.INT, Op.CEIL, Op.FLOOR, Op.TRUNC, Op.ROUND):
        return al, ah
    if op is Op.MIN2:
        return (None if al is None or bl is None else min(al, bl)), _least(ah, bh)
    if op is Op.MAX2:
        return _greatest(al, bl), (None if ah is None or bh is None else max(ah, bh))
    if op is Op.ABS and al is not None and ah is not None:
        return (0 if al <= 0 <= ah else min(abs(al), abs(ah))), max(abs(al), abs(ah))
    if op is Op.MOD and bl is not None and bl > 0:
        if al is not None and ah is not None and al >= 0 and ah < bl:
            return al, ah
        return 0, None if bh is None else bh - 1
    if op is Op.BITAND and al is not None and al >= 0 and bl is not None and bl >= 0:
        return 0, _least(ah, bh)
    if al is None or ah is None or bl is None or bh is None:
        return None, None
    corners = [(x, y) for x in (al, ah) for y in (bl, bh)]
    if op is Op.MUL:
        products = [x * y for x, y in corners]
        return min(products), max(products)
    if op is Op.FLOORDIV and (bl > 0 or bh < 0):
        quotients = [x // y for x, y in corners]
        return min(quotients), max(quotients)
    if op in (Op.LSHIFT, Op.RSHIFT) and bl >= 0 and bh <= 4096:
        shifted = [x << y if op is Op.LSHIFT else x >> y for x, y in corners]
        return min(shifted), max(shifted)
    return None, None


def _least_of(xs: Sequence[int | None]) -> int | None:
    return min(x for x in xs if x is not None)


def _greatest_of(xs: Sequence[int | None]) -> int | None:
    return max(x for x in xs if x is not None)


def _neg(x: int | None) -> int | None:
    return None if x is None else -x


def _add(x: int | None, y: int | None) -> int | None:
    return None if x is None or y is None else x + y


def _least(x: int | None, y: int | None) -> int | None:
    return min((v for v in (x, y) if v is not None), default=None)


def _greatest(x: int | None, y: int | None) -> int | None:
    return max((v for v in (x, y) if v is not None), default=None)


def check_sound(node: Node, value: Value, abstract: AbsVal) -> bool:
    """Whether a concrete value lies inside an abstract one (used by tests and the verifier)."""
    if value is UNDEF:
        return not abstract.defined
    if abstract.values is not None:
        return any(value_key(v) == value_key(value) for v in abstract.values)
    if kind_of(value) not in abstract.kinds:
        return False
    if isinstance(value, (bool, int)):
        return (abstract.lo is None or abstract.lo <= value) and (
            abstract.hi is None or value <= abstract.hi
        )
    if isinstance(value, float) and abstract.real is not None:
        return abstract.real[0] <= value <= abstract.real[1]
    return True


__all__ = [
    "ANY",
    "BOOL",
    "FAULTS",
    "AbsVal",
    "apply",
    "check_sound",
    "join",
    "of_domain",
    "of_values",
    "transfer",
]
