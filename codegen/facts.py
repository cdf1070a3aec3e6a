"""What the C emitter may rely on: abstract values sharpened for code in which nothing can raise.

A partial operation is undefined where Python raises, and everything strict above it too; so its
arguments count only with the kinds on which it is defined. Floats get bounds of their own. Every
value of the emitted code lies inside these bounds, also where a stand-in speaks for undefined.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from selc.ir.absval import INTEGRAL, NUMERIC, AbsVal, join, of_domain, of_values, transfer
from selc.ir.graph import Graph, Node
from selc.ir.op import Op, apply

INF: Final = math.inf
NEVER: Final = AbsVal((), frozenset(), defined=False)

_NUMBERS_ONLY: Final = frozenset(
    {
        Op.SUB, Op.FLOORDIV, Op.TRUEDIV, Op.POW, Op.LSHIFT, Op.RSHIFT, Op.BITAND, Op.BITOR,
        Op.BITXOR, Op.NEG, Op.POS, Op.INVERT, Op.ABS, Op.ROUND, Op.CEIL, Op.FLOOR, Op.TRUNC,
        Op.SQRT, Op.LOG2, Op.BIT_LENGTH, Op.FLOAT32,
    }
)  # fmt: skip
_NUMBERS_OR_TEXT: Final = frozenset(
    {Op.ADD, Op.MUL, Op.MOD, Op.LT, Op.LE, Op.GT, Op.GE, Op.MIN2, Op.MAX2, Op.INT, Op.FLOAT}
)
_INTEGERS_ONLY: Final = frozenset(
    {Op.LSHIFT, Op.RSHIFT, Op.BITAND, Op.BITOR, Op.BITXOR, Op.INVERT, Op.BIT_LENGTH}
)
NARROWED: Final = _NUMBERS_ONLY | _NUMBERS_OR_TEXT


@dataclass(frozen=True, slots=True)
class Fact:
    """An abstract value, with bounds of its floats (infinite bounds include NaN)."""

    abs: AbsVal
    flo: float = -INF
    fhi: float = INF

    @property
    def bounded_floats(self) -> bool:
        """Whether every float it can be is finite."""
        return self.flo > -INF and self.fhi < INF


def text_possible(op: Op, args: Sequence[AbsVal]) -> bool:
    """Whether the operation may be defined on strings or tuples, given these arguments."""
    text = [a.kinds & {"str", "tuple"} for a in args]
    if op in _NUMBERS_ONLY or not any(text):
        return False
    if len(args) == 1 or op is Op.MUL:
        return True
    if op is Op.MOD:
        return "str" in args[0].kinds
    return bool(text[0] & text[1])


def narrow(op: Op, args: Sequence[AbsVal]) -> list[AbsVal]:
    """The arguments without the kinds on which `op` cannot be defined (undefined there instead)."""
    drop = {"none", "symbol"}
    if not text_possible(op, args):
        drop |= {"str", "tuple"}
    if op in _INTEGERS_ONLY:
        drop |= {"float"}
    return [restrict(a, a.kinds - drop) for a in args]


def restrict(a: AbsVal, kinds: frozenset[str]) -> AbsVal:
    """The part of `a` that has one of `kinds`."""
    if a.kinds <= kinds:
        return a
    if a.values is not None:
        kept = [v for v in a.values if of_values((v,)).kinds <= kinds]
        return replace(of_values(kept), defined=False) if kept else NEVER
    if not a.kinds & kinds:
        return NEVER
    lo, hi = (a.lo, a.hi) if a.kinds & kinds & INTEGRAL else (None, None)
    return AbsVal(None, a.kinds & kinds, lo, hi, False)


def analyse(graph: Graph, cone: Sequence[Node]) -> dict[int, Fact]:
    """The facts of every node of a cone, by node id."""
    out: dict[int, Fact] = {}
    for node in cone:
        out[node.id] = _fact(graph, node, [out[a.id] for a in node.args])
    return out


def _fact(graph: Graph, node: Node, args: Sequence[Fact]) -> Fact:
    op = node.op
    if op is Op.INPUT:
        assert isinstance(node.attr, str)
        return _from_values(of_domain(graph.inputs[node.attr].domain))
    if op is Op.CONST:
        return _from_values(of_values((node.attr,)))
    if op is Op.FAIL:
        return Fact(NEVER)
    if op is Op.MARK:
        return args[0]
    if op is Op.SELECT:
        return _select(node, args)
    if op is Op.OK:
        return Fact(transfer(node, [a.abs for a in args]))
    inner = list(args)
    if op in NARROWED:
        narrowed = narrow(op, [a.abs for a in args])
        inner = [replace(a, abs=n) for a, n in zip(args, narrowed, strict=True)]
    if any(a.abs.values == () or not a.abs.kinds for a in inner):
        return Fact(NEVER)
    value = transfer(node, [a.abs for a in inner])
    if not all(a.abs.defined for a in inner):
        value = replace(value, defined=False)
    return _sharpen(node, value, inner)


def _from_values(a: AbsVal) -> Fact:
    if a.values is None or "float" not in a.kinds:
        return Fact(a)
    floats = [v for v in a.values if isinstance(v, float)]
    if not all(math.isfinite(f) for f in floats):
        return Fact(a)
    return Fact(a, min(floats), max(floats))


def _select(node: Node, args: Sequence[Fact]) -> Fact:
    cond, then, other = args
    value = transfer(node, [a.abs for a in args])
    if not cond.abs.defined or cond.abs.values == ():
        value = replace(value, defined=False)
    arms = [a for a in (then, other) if "float" in a.abs.kinds]
    flo = min((a.flo for a in arms), default=-INF)
    fhi = max((a.fhi for a in arms), default=INF)
    return Fact(value, flo, fhi)


def _sharpen(node: Node, value: AbsVal, args: Sequence[Fact]) -> Fact:
    """Better bounds where `transfer` has none: they only ever replace an open end."""
    if value.values is not None:
        return _from_values(value)
    if value.kinds & INTEGRAL and (value.lo is None or value.hi is None):
        bounds = _integer_bounds(node.op, args)
        if bounds is not None and value.kinds <= NUMERIC:
            lo = bounds[0] if value.lo is None else max(value.lo, bounds[0])
            hi = bounds[1] if value.hi is None else min(value.hi, bounds[1])
            value = replace(value, lo=lo, hi=hi)
    if "float" in value.kinds:
        return Fact(value, *_float_bounds(node.op, args))
    return Fact(value)


def _span(fact: Fact) -> tuple[float, float] | None:
    """Bounds over ints and floats together, as exact Python numbers."""
    lows: list[float] = []
    highs: list[float] = []
    if fact.abs.kinds & INTEGRAL:
        if fact.abs.lo is None or fact.abs.hi is None:
            return None
        lows.append(fact.abs.lo)
        highs.append(fact.abs.hi)
    if "float" in fact.abs.kinds:
        if not fact.bounded_floats:
            return None
        lows.append(fact.flo)
        highs.append(fact.fhi)
    return (min(lows), max(highs)) if lows else None


def _integer_bounds(op: Op, args: Sequence[Fact]) -> tuple[int, int] | None:
    spans = [_span(a) for a in args]
    if op in (Op.INT, Op.CEIL, Op.FLOOR, Op.TRUNC, Op.ROUND) and spans[0] is not None:
        return math.floor(spans[0][0]), math.ceil(spans[0][1])
    if op in (Op.MIN2, Op.MAX2):
        sides = [a.abs for a in args if a.abs.kinds & INTEGRAL]
        lows = [s.lo for s in sides if s.lo is not None]
        highs = [s.hi for s in sides if s.hi is not None]
        return (min(lows), max(highs)) if len(lows) == len(highs) == len(sides) > 0 else None
    if not all(a.abs.is_integral for a in args) or any(s is None for s in spans):
        return None
    ends = [(int(s[0]), int(s[1])) for s in spans if s is not None]
    return _two_integers(op, ends) if len(ends) == 2 else None


def _two_integers(op: Op, ends: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    (al, ah), (bl, bh) = ends
    widest = max(abs(al), abs(ah))
    if op is Op.FLOORDIV:
        return -widest, widest
    if op is Op.MOD:
        return min(bl + 1, 0), max(bh - 1, 0)
    if op in (Op.BITOR, Op.BITXOR, Op.BITAND):
        bits = max(widest, abs(bl), abs(bh)).bit_length()
        return (0 if min(al, bl) >= 0 else -(1 << bits)), (1 << bits) - 1
    if op is Op.RSHIFT:
        return min(al, 0), max(ah, 0)
    if op is Op.LSHIFT and 0 <= bh <= 64:
        return min(al, al << bh), max(ah, ah << bh)
    if op is Op.POW and bl >= 0 and bh <= 64 and widest.bit_length() * bh <= 128:
        top = max(widest, 1) ** bh
        return (0 if al >= 0 else -top), top
    return None


def _float_bounds(op: Op, args: Sequence[Fact]) -> tuple[float, float]:
    """Rounding is monotone, so that corners computed in doubles bound what doubles give."""
    try:
        spans = [_span(a) for a in args]
        if any(s is None for s in spans):
            return -INF, INF
        ends = [(float(s[0]), float(s[1])) for s in spans if s is not None]
        bounds = _corners(op, ends, args)
    except (OverflowError, ValueError):
        return -INF, INF
    if bounds is None or not all(math.isfinite(b) for b in bounds):
        return -INF, INF
    return bounds


def _corners(
    op: Op, ends: Sequence[tuple[float, float]], args: Sequence[Fact]
) -> tuple[float, float] | None:
    (al, ah), (bl, bh) = ends[0], ends[-1]
    if op is Op.TRUEDIV and bl <= 0 <= bh:
        if not args[1].abs.is_integral:
            return None
        widest = max(abs(al), abs(ah))  # the divisor is at least one in size
        return -widest, widest
    four = [(x, y) for x in (al, ah) for y in (bl, bh)]
    table = {
        Op.ADD: lambda: [x + y for x, y in four],
        Op.SUB: lambda: [x - y for x, y in four],
        Op.MUL: lambda: [x * y for x, y in four],
        Op.TRUEDIV: lambda: [x / y for x, y in four],
        Op.NEG: lambda: [-al, -ah],
        Op.POS: lambda: [al, ah],
        Op.ABS: lambda: [abs(al), abs(ah), *([0.0] if al <= 0 <= ah else [])],
        Op.FLOAT: lambda: [al, ah],
        Op.SQRT: lambda: [math.sqrt(max(al, 0.0)), math.sqrt(max(ah, 0.0))],
        Op.FLOAT32: lambda: [_binary32(al), _binary32(ah)],
        Op.MIN2: lambda: [al, ah, bl, bh],
        Op.MAX2: lambda: [al, ah, bl, bh],
    }
    values = table[op]() if op in table else None
    return (min(values), max(values)) if values else None


def _binary32(x: float) -> float:
    value = apply(Op.FLOAT32, None, (x,))
    assert isinstance(value, float)
    return value


def merge(a: Fact, b: Fact) -> Fact:
    """The least fact above both."""
    floats = [x for x in (a, b) if "float" in x.abs.kinds]
    flo = min((x.flo for x in floats), default=-INF)
    return Fact(join(a.abs, b.abs), flo, max((x.fhi for x in floats), default=INF))


__all__ = ["NARROWED", "NEVER", "Fact", "analyse", "merge", "narrow", "restrict", "text_possible"]
