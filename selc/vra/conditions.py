"""Facts that hold where a condition does: literals of conjunctions, and ranges narrowed by them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from selc.ir.absval import AbsVal, of_values, transfer
from selc.ir.graph import Node
from selc.ir.op import Op, TooWide, evaluate
from selc.vra.view import View

Literal = tuple[Node, bool]

MAX_LEAVES: Final = 64
MAX_CONDITION: Final = 64
"""Conditions that compute more than this are not split on."""

MAX_COMBINED: Final = 128
ROUNDS: Final = 2

_MONOTONE: Final = frozenset(
    {
        Op.ADD, Op.SUB, Op.MUL, Op.FLOORDIV, Op.TRUEDIV, Op.FLOAT, Op.FLOAT32, Op.CEIL, Op.FLOOR,
        Op.INT, Op.TRUNC, Op.ROUND, Op.NEG, Op.POS, Op.MARK, Op.MIN2, Op.MAX2, Op.LSHIFT, Op.RSHIFT,
    }
)  # fmt: skip
_FIRST_ONLY: Final = frozenset({Op.FLOORDIV, Op.TRUEDIV, Op.LSHIFT, Op.RSHIFT})
_ORDER: Final = frozenset({Op.LT, Op.LE, Op.GT, Op.GE})


def bare(node: Node) -> Node:
    """What a mark marks."""
    while node.op is Op.MARK:
        node = node.args[0]
    return node


def literals(node: Node, holds: bool = True) -> list[Literal]:
    """Conditions that all hold (or fail) where `node` is True (or, with `holds` False, False)."""
    out: list[Literal] = []
    todo = [(node, holds)]
    while todo:
        node, holds = todo.pop()
        node = bare(node)
        if node.op is Op.NOT:
            todo.append((node.args[0], not holds))
        elif node.op is Op.SELECT and node.args[2].is_const and node.args[2].attr is not holds:
            todo += [(node.args[1], holds), (node.args[0], True)]
        elif node.op is Op.SELECT and node.args[1].is_const and node.args[1].attr is not holds:
            todo += [(node.args[2], holds), (node.args[0], False)]
        elif not node.is_const:
            out.append((node, holds))
    return out


def expanded(view: View, given: Sequence[Literal]) -> list[list[Literal]]:
    """The literals by cases of the conditions inside them; cases that contradict themselves go."""
    out: list[list[Literal]] = []
    todo: list[tuple[dict[Node, bool], list[Literal]]] = [({}, list(reversed(given)))]
    while todo:
        known, open_ = todo.pop()
        alive = True
        while open_ and alive:
            node, holds = open_.pop()
            node = bare(node)
            if node.is_const or node in known:
                alive = (node.attr if node.is_const else known[node]) is holds
            elif node.op is Op.NOT:
                open_.append((node.args[0], not holds))
            elif node.op is Op.SELECT and _splits(view, node, known, len(todo) + len(out)):
                cond, then, other = node.args
                cond = bare(cond)
                if known.get(cond) is not True:
                    todo.append((dict(known), [*open_, (other, holds), (cond, False)]))
                if known.get(cond) is not False:
                    todo.append((dict(known), [*open_, (then, holds), (cond, True)]))
                alive = False
            else:
                known[node] = holds
        if alive:
            out.append(list(known.items()))
    return out


def _splits(view: View, node: Node, known: Mapping[Node, bool], busy: int) -> bool:
    if bare(node.args[0]) in known:
        return True
    return busy < MAX_LEAVES and len(view.graph.cone([node.args[0]])) <= MAX_CONDITION


def leaves(view: View, node: Node) -> list[tuple[list[Literal], Node]]:
    """What a node is, by cases of its outermost conditions."""
    out: list[tuple[list[Literal], Node]] = []
    todo: list[tuple[list[Literal], Node]] = [([], node)]
    while todo:
        given, node = todo.pop()
        node = bare(node)
        small = len(todo) + len(out) < MAX_LEAVES
        if node.op is Op.SELECT and small and len(view.graph.cone([node.args[0]])) <= MAX_CONDITION:
            cond, then, other = node.args
            todo.append(([*given, *literals(cond, False)], other))
            todo.append(([*given, *literals(cond, True)], then))
        else:
            out.append((given, node))
    return out


def narrowed(view: View, cone: Sequence[Node], given: Sequence[Literal]) -> list[AbsVal] | None:
    """Facts of the nodes of a cone where the literals hold; None if they never hold together."""
    facts = list(view.facts)
    known: dict[int, AbsVal] = {}
    for n, holds in given:
        known[n.id] = of_values((holds,))
        fact = view.facts[n.id]
        if fact.values is not None and not any(v is holds for v in fact.values):
            return None
    for turn in range(ROUNDS):
        before = dict(known)
        for node, holds in given:
            for x, fact in _chain(facts, node, holds).items():
                old = known.get(x)
                known[x] = fact if old is None else meet(old, fact)
        if turn and known == before:
            break
        for node in cone:
            fact = (
                facts[node.id]
                if node.op in (Op.INPUT, Op.CONST)
                else transfer(node, _coarse([facts[a.id] for a in node.args]))
            )
            if node.id in known:
                fact = meet(fact, known[node.id])
            if empty(fact):
                return None
            facts[node.id] = fact
    return facts


def _coarse(args: Sequence[AbsVal]) -> Sequence[AbsVal]:
    """The same, with ranges for sets whose combinations would be too many to be worth it."""
    count = math.prod(len(a.values) for a in args if a.values is not None)
    if count <= MAX_COMBINED:
        return args
    return [a if a.values is None or len(a.values) <= 2 else replace(a, values=None) for a in args]


def empty(fact: AbsVal) -> bool:
    """Whether a defined node can have no value at all."""
    if fact.values is not None:
        return not fact.values and fact.defined
    return fact.lo is not None and fact.hi is not None and fact.lo > fact.hi


def meet(a: AbsVal, b: AbsVal) -> AbsVal:
    """What is in both; of two sets of integers, ranges are intersected."""
    if b.values is not None and a.values is None:
        a, b = b, a
    defined = a.defined or b.defined
    if a.values is not None:
        kept = tuple(v for v in a.values if _within(v, b))
        return of_values(kept, defined) if kept else AbsVal((), frozenset(), defined=defined)
    lo = max((x for x in (a.lo, b.lo) if x is not None), default=None)
    hi = min((x for x in (a.hi, b.hi) if x is not None), default=None)
    return replace(a, lo=lo, hi=hi, kinds=a.kinds & b.kinds or a.kinds, defined=defined)


def _within(value: object, b: AbsVal) -> bool:
    if b.values is not None:
        return any(type(v) is type(value) and v == value for v in b.values)
    if isinstance(value, int):
        return (b.lo is None or b.lo <= value) and (b.hi is None or value <= b.hi)
    return True


def settled(facts: Sequence[AbsVal], literal: Literal) -> bool:
    """Whether a literal says no more than that some integer below it lies in a range."""
    return bool(_chain(facts, *literal))


def _chain(facts: Sequence[AbsVal], literal: Node, holds: bool) -> Mapping[int, AbsVal]:
    """Ranges of the integers below a comparison of which it is a monotone function."""
    out: dict[int, AbsVal] = {}
    if literal.op in (Op.EQ, Op.NE) and holds is (literal.op is Op.EQ):
        for a, b in (literal.args, literal.args[::-1]):
            if facts[b.id].single and facts[a.id].kinds == {"int"} and facts[b.id].kinds == {"int"}:
                out[a.id] = facts[b.id]
        return out
    if literal.op not in _ORDER:
        return out
    chain = [literal]
    while True:
        top = chain[-1]
        open_args = [a for a in top.args if not facts[a.id].single]
        if len(open_args) != 1 or (top is not literal and top.op not in _MONOTONE):
            return out
        if top.op in _FIRST_ONLY and top.args[0] is not open_args[0]:
            return out
        if len(top.args) == 2 and top.args[0] is top.args[1]:
            return out
        x = open_args[0]
        fact = facts[x.id]
        if fact.kinds == {"int"} and fact.lo is not None and fact.hi is not None:
            bounds = _bisected(facts, chain, x, holds, fact.lo, fact.hi)
            if bounds is not None:
                out[x.id] = AbsVal(None, fact.kinds, bounds[0], bounds[1])
        chain.append(x)


def _bisected(
    facts: Sequence[AbsVal], chain: Sequence[Node], x: Node, holds: bool, lo: int, hi: int
) -> tuple[int, int] | None:
    def at(value: int) -> bool:
        current: object = value
        below = x
        for node in reversed(chain):
            args = tuple(
                current if a is below else (facts[a.id].values or (None,))[0] for a in node.args
            )
            current = evaluate(node.op, node.attr, args)
            below = node
        return current is holds

    try:
        first, last = at(lo), at(hi)
        if first is last:
            return None if first else (1, 0)
        low, high = lo, hi
        while high - low > 1:
            middle = (low + high) // 2
            if at(middle) is first:
                low = middle
            else:
                high = middle
    except TooWide:
        return None
    return (lo, low) if first else (high, hi)
