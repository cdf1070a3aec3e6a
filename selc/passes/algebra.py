"""Rewriting of single operations that is right where ranges and kinds say so.

Integer comparisons get one form: `le x, c` or `eq x, c` with the constant on the right, looked
through sums, products and floor divisions by constants, and `not` of those. So equal thresholds
become one node, and a threshold implies another wherever both are on the same value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from selc.ir.absval import INTEGRAL, AbsVal
from selc.ir.graph import Graph, Node
from selc.ir.op import Op

_INT: Final = frozenset({"int"})
_BOOL: Final = frozenset({"bool"})
_ROUNDING: Final = frozenset({Op.INT, Op.CEIL, Op.FLOOR, Op.TRUNC, Op.ROUND, Op.POS})


def algebra(new: Graph, op: Op, args: tuple[Node, ...], facts: Sequence[AbsVal]) -> Node | None:
    """A simpler or more regular node of the same value, or None."""
    if not args:
        return None
    if len(args) == 2:
        if op in (Op.EQ, Op.NE, Op.IS):
            return _equality(new, op, args[0], args[1], facts)
        if op in (Op.LT, Op.LE, Op.GT, Op.GE):
            return _order(new, op, args[0], args[1], facts)
        if op in (Op.MIN2, Op.MAX2):
            return _extremum(new, op, args[0], args[1], facts)
        if all(f.is_integral for f in facts):
            return _arithmetic(new, op, args[0], args[1], facts)
        return None
    return _unary(new, op, args[0], facts[0]) if len(args) == 1 else None


def _int(node: Node) -> int | None:
    """The value of an integer constant."""
    return node.attr if node.is_const and type(node.attr) is int else None


def _unary(new: Graph, op: Op, a: Node, f: AbsVal) -> Node | None:
    if op in _ROUNDING and f.kinds == _INT:
        return a
    if op is Op.FLOAT and f.kinds == {"float"}:
        return a
    if op is Op.FLOAT32 and a.op is Op.FLOAT32:
        return a
    if op is Op.TRUTH:
        if f.kinds == _BOOL:
            return a
        if f.is_integral:
            return new.fold(Op.NOT, new.fold(Op.EQ, a, new.const(0)))
    if op is Op.NOT and f.kinds == _INT:
        return new.fold(Op.EQ, a, new.const(0))
    if op is Op.NEG and a.op is Op.NEG and f.kinds == _INT:
        # what is negated twice may be a boolean, and comes back as an integer
        return new.add(Op.POS, a.args[0]) if a.args[0].op is not Op.SELECT else None
    if op is Op.ABS and f.kinds == _INT and f.lo is not None and f.lo >= 0:
        return a
    return None


def _arithmetic(new: Graph, op: Op, a: Node, b: Node, facts: Sequence[AbsVal]) -> Node | None:
    if op in (Op.ADD, Op.MUL) and (a.is_const, a.id) > (b.is_const, b.id):
        a, b, facts = b, a, (facts[1], facts[0])
        made = _arithmetic(new, op, a, b, facts)
        return new.add(op, a, b) if made is None else made
    pure = facts[0].kinds == _INT
    k = _int(b)
    if op is Op.SUB:
        if a is b:
            return new.const(0)
        return None if k is None else _plus(new, a, -k, pure) or new.add(Op.ADD, a, new.const(-k))
    if k is None:
        return None
    if op is Op.ADD:
        return _plus(new, a, k, pure)
    if op is Op.MUL:
        return _times(new, a, k, pure)
    if op is Op.FLOORDIV and k > 0:
        return _over(new, a, k, pure)
    if op is Op.MOD and k > 0:
        if k == 1:
            return new.const(0)
        inside = (
            facts[0].lo is not None
            and facts[0].lo >= 0
            and facts[0].hi is not None
            and facts[0].hi < k
        )
        return a if pure and inside else None
    return None


def _plus(new: Graph, a: Node, k: int, pure: bool) -> Node | None:
    if k == 0 and pure:
        return a
    inner = _int(a.args[1]) if a.op is Op.ADD else None
    if inner is not None:
        return _plus(new, a.args[0], inner + k, False) or new.add(
            Op.ADD, a.args[0], new.const(inner + k)
        )
    return None


def _times(new: Graph, a: Node, k: int, pure: bool) -> Node | None:
    if k == 0:
        return new.const(0)
    if k == 1 and pure:
        return a
    if a.op is Op.NEG:
        return new.add(Op.MUL, a.args[0], new.const(-k))
    inner = _int(a.args[1]) if a.op is Op.MUL else None
    return None if inner is None else new.add(Op.MUL, a.args[0], new.const(inner * k))


def _over(new: Graph, a: Node, k: int, pure: bool) -> Node | None:
    if k == 1 and pure:
        return a
    inner = _int(a.args[1]) if a.op in (Op.MUL, Op.FLOORDIV) else None
    if inner is None:
        return None
    if a.op is Op.FLOORDIV and inner > 0:
        return new.add(Op.FLOORDIV, a.args[0], new.const(inner * k))
    if a.op is Op.MUL and inner % k == 0:
        return new.add(Op.MUL, a.args[0], new.const(inner // k))
    return None


def _extremum(new: Graph, op: Op, a: Node, b: Node, facts: Sequence[AbsVal]) -> Node | None:
    if a is b:
        return a
    f, g = facts
    if not (f.is_integral and g.is_integral):
        return None
    if op is Op.MIN2:
        if f.hi is not None and g.lo is not None and f.hi <= g.lo:
            return a
        if g.hi is not None and f.lo is not None and g.hi < f.lo:
            return b
    else:
        if f.lo is not None and g.hi is not None and f.lo >= g.hi:
            return a
        if g.lo is not None and f.hi is not None and g.lo > f.hi:
            return b
    if not (f.kinds == _INT == g.kinds):
        return None
    if (a.is_const and not b.is_const) or (a.id > b.id and not b.is_const):
        a, b = b, a
    k = _int(b)
    inner = _int(a.args[1]) if a.op is op else None
    if k is not None and inner is not None:
        return new.add(op, a.args[0], new.const(min(k, inner) if op is Op.MIN2 else max(k, inner)))
    return new.add(op, a, b)


def _equality(new: Graph, op: Op, a: Node, b: Node, facts: Sequence[AbsVal]) -> Node | None:
    if a.is_const and not b.is_const:
        a, b, facts = b, a, (facts[1], facts[0])
    if op is Op.NE:
        return new.fold(Op.NOT, _equality(new, Op.EQ, a, b, facts) or new.add(Op.EQ, a, b))
    if op is Op.IS:
        if b.is_const and type(b.attr) is bool and facts[0].kinds == _BOOL:
            return a if b.attr else new.fold(Op.NOT, a)
        return None
    if a is b and "float" not in facts[0].kinds and "tuple" not in facts[0].kinds:
        return new.const(True)
    if b.is_const and type(b.attr) in (bool, int) and facts[0].kinds == _BOOL and b.attr in (0, 1):
        return a if b.attr else new.fold(Op.NOT, a)
    k = _int(b)
    if k is None or not facts[0].is_integral:
        return new.add(Op.EQ, a, b)
    return _equals(new, a, k)


def _equals(new: Graph, x: Node, c: int) -> Node:
    """`x == c` over integers, with constants on the left moved to the right."""
    while True:
        k = _int(x.args[1]) if x.op in (Op.ADD, Op.MUL) else None
        if x.op is Op.NEG:
            x, c = x.args[0], -c
        elif x.op is Op.ADD and k is not None:
            x, c = x.args[0], c - k
        elif x.op is Op.MUL and k:
            if c % k:
                return new.const(False)
            x, c = x.args[0], c // k
        else:
            return new.fold(Op.EQ, x, new.const(c))


def _order(new: Graph, op: Op, a: Node, b: Node, facts: Sequence[AbsVal]) -> Node | None:
    if op in (Op.GT, Op.GE):
        a, b, facts = b, a, (facts[1], facts[0])
        op = Op.LT if op is Op.GT else Op.LE
        if not all(f.is_integral for f in facts):
            return new.add(op, a, b)
    if not all(f.is_integral for f in facts):
        return None
    if op is Op.LT:
        return new.fold(Op.NOT, _at_most(new, b, a, (facts[1], facts[0])))
    return _at_most(new, a, b, facts)


def _at_most(new: Graph, a: Node, b: Node, facts: Sequence[AbsVal]) -> Node:
    """`a <= b` over integers."""
    k = _int(b)
    if k is not None:
        return _bounded(new, a, k)
    k = _int(a)
    if k is not None:
        return new.fold(Op.NOT, _bounded(new, b, k - 1))
    return new.const(True) if _certain(a, b, facts) else new.add(Op.LE, a, b)


def _bounded(new: Graph, x: Node, c: int) -> Node:
    """`x <= c` over integers, with constants on the left moved to the right."""
    positive = True
    while True:
        k = _int(x.args[1]) if x.op in (Op.ADD, Op.MUL, Op.FLOORDIV) else None
        flip = False
        if x.op is Op.NEG:
            x, c, flip = x.args[0], -c - 1, True
        elif x.op is Op.ADD and k is not None:
            x, c = x.args[0], c - k
        elif x.op is Op.MUL and k:
            flip = k < 0
            x, c = x.args[0], (-(-c // k) - 1 if flip else c // k)
        elif x.op is Op.FLOORDIV and k:
            flip = k < 0
            x, c = x.args[0], ((c + 1) * k if flip else c * k + k - 1)
        else:
            break
        positive ^= flip
    made = new.fold(Op.LE, x, new.const(c))
    return made if positive else new.fold(Op.NOT, made)


def _certain(a: Node, b: Node, facts: Sequence[AbsVal]) -> bool:
    """Whether `a <= b` follows from how the two are made."""
    if a is b or (a.op is Op.MIN2 and b in a.args) or (b.op is Op.MAX2 and a in b.args):
        return True
    if a.op is Op.MIN2 and b.op is Op.MIN2 and _shares(a, b):
        return True
    if a.op is Op.FLOORDIV and facts[0].lo is not None and facts[0].lo >= 0:
        k = _int(a.args[1])
        if k is not None and k > 0:  # x // k >= 0, hence x >= 0
            if a.args[0] is b:
                return True
            j = _int(b.args[1]) if b.op is Op.FLOORDIV and b.args[0] is a.args[0] else None
            return j is not None and 0 < j <= k
    return False


def _shares(a: Node, b: Node) -> bool:
    """Whether min(x, c) <= min(x, d) for constants c <= d."""
    c, d = _int(a.args[1]), _int(b.args[1])
    return a.args[0] is b.args[0] and c is not None and d is not None and c <= d


def divisors(graph: Graph, facts: Sequence[AbsVal]) -> list[int]:
    """For every node a number that divides it whenever it is an integer (0: it is 0)."""
    out: list[int] = []
    for node in graph.nodes:
        d = _divisor(graph, node, out) if facts[node.id].kinds <= INTEGRAL else 1
        out.append(d if d < 1 << 62 else 1 << 61 if d % (1 << 61) == 0 else 1)
    return out


def _divisor(graph: Graph, node: Node, known: Sequence[int]) -> int:
    op = node.op
    of = [known[a.id] for a in node.args]
    if op is Op.CONST:
        return abs(int(node.attr)) if isinstance(node.attr, int) else 1
    if op is Op.INPUT:
        assert isinstance(node.attr, str)
        domain = graph.inputs[node.attr].domain
        return math.gcd(domain.lo, domain.step) if domain.values is None else 1
    if op is Op.MUL:
        return of[0] * of[1]
    if op in (Op.ADD, Op.SUB, Op.MIN2, Op.MAX2, Op.MOD):
        return math.gcd(of[0], of[1])
    if op is Op.SELECT:
        return math.gcd(of[1], of[2])
    if op in (Op.NEG, Op.POS, Op.ABS, Op.MARK, Op.INT):
        return of[0]
    k = _int(node.args[1]) if len(node.args) == 2 else None
    if k is None or k <= 0:
        return 1
    if op is Op.FLOORDIV and of[0] % k == 0:
        return of[0] // k
    if op is Op.LSHIFT and k < 62:
        return of[0] << k
    return 1


def by_divisor(
    new: Graph, op: Op, args: tuple[Node, ...], of: Sequence[int], facts: Sequence[AbsVal]
) -> Node | None:
    """Remainders and equalities that divisibility decides.

    What is no integer has 1 for a divisor, and may have a remainder all the same.
    """
    k = _int(args[1]) if len(args) == 2 else None
    if k is None:
        return None
    if op is Op.MOD and k and of[0] % k == 0 and facts[0].is_integral:
        return new.const(0)
    if op in (Op.EQ, Op.NE) and of[0] and k % of[0]:
        return new.const(op is Op.NE)
    return None
