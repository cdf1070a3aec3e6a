"""Path conditions: inside an arm of a select its condition is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from selc.ir.absval import ANY, AbsVal, join, of_domain, of_values, transfer
from selc.ir.evaluate import abstract
from selc.ir.graph import Graph, Node
from selc.ir.op import FAULTS, Op, TooWide, apply
from selc.ir.value import Value, value_key
from selc.passes.algebra import divisors
from selc.passes.ranges import decide
from selc.passes.rebuild import Images, keep, rebuild

Context = Mapping[int, AbsVal]
"""What is known where a value is used: node id -> what that node can be there."""

_LIMIT: Final = 48
"""Facts that one context holds; the oldest are dropped."""

_NEAREST: Final = 32
"""Facts that one condition adds, itself and the nearest of what follows from it."""

_TRUE: Final = of_values((True,))
_FALSE: Final = of_values((False,))
_EMPTY: Final[Context] = {}
_COMPARISONS: Final = {
    Op.EQ: (Op.EQ, Op.NE), Op.NE: (Op.NE, Op.EQ), Op.LT: (Op.LT, Op.GE),
    Op.LE: (Op.LE, Op.GT), Op.GT: (Op.GT, Op.LE), Op.GE: (Op.GE, Op.LT),
}  # fmt: skip
_MIRRORED: Final = {Op.LT: Op.GT, Op.LE: Op.GE, Op.GT: Op.LT, Op.GE: Op.LE}


def context(
    graph: Graph, roots: Sequence[Node], given: Sequence[Node] = ()
) -> tuple[Graph, Images]:
    """Use in each arm what the select's condition says.

    Before:

        v1 = le v0, 16
        v2 = le v0, 64
        v3 = select v2, v7, v8
        v4 = select v1, v3, v9

    After: `v4` is `select v1, v7, v9`. One sweep from the roots finds for every value what holds
    at all of its uses (the join), one sweep back the ranges under that. No node is duplicated, so
    the image of a value is equal to it where it is used, not elsewhere; the roots are equal
    everywhere. `given` conditions hold everywhere except in themselves.
    """
    facts = abstract(graph)
    cone = graph.cone(roots)
    contexts = _contexts(facts, cone, roots, given)
    narrowed = _forward(graph, facts, cone, contexts)
    of = divisors(graph, facts)

    def rule(new: Graph, node: Node, args: tuple[Node, ...]) -> Node | None:
        here = contexts.get(node.id, _EMPTY)
        of_args = [_meet(narrowed[a.id], here.get(a.id)) for a in node.args]
        given_args = args
        if here:
            args = tuple(
                [
                    new.const(f.values[0]) if f.values is not None and len(f.values) == 1 else a
                    for f, a in zip(of_args, args, strict=True)
                ]
            )
        made = decide(new, node, args, narrowed[node.id], of_args, of)
        return keep(new, node, args) if made is None and args != given_args else made

    return rebuild(graph, roots, rule)


def conditions(
    graph: Graph, roots: Sequence[Node], given: Sequence[Node] = ()
) -> tuple[Graph, Images]:
    """Use in each arm that the select's condition holds, or does not, and nothing of ranges.

    Before:

        v1 = le v0, 16
        v3 = select v1, v7, v8
        v4 = select v1, v3, v9

    After: `v4` is `select v1, v7, v9`. What `context` does beside that, it does by ranges.
    """
    contexts = _contexts([ANY] * len(graph.nodes), graph.cone(roots), roots, given)

    def rule(new: Graph, node: Node, args: tuple[Node, ...]) -> Node | None:
        here = contexts.get(node.id, _EMPTY)
        told = [here.get(a.id) for a in node.args]
        made = tuple(
            [
                new.const(f.values[0]) if f is not None and f.single and f.values else a
                for f, a in zip(told, args, strict=True)
            ]
        )
        if node.op is Op.SELECT and made[0].is_const:
            return made[1] if made[0].attr else made[2]
        return keep(new, node, made) if made != args else None

    return rebuild(graph, roots, rule)


def _contexts(
    facts: Sequence[AbsVal], cone: Sequence[Node], roots: Sequence[Node], given: Sequence[Node]
) -> dict[int, Context]:
    """For each node what is known at every use of it."""
    known = _Implied(facts)
    everywhere = _EMPTY
    for g in given:
        everywhere = known.extend(everywhere, g, True)
    found: dict[int, Context] = {}
    themselves = {g.id for g in given}
    for r in roots:
        if r.id not in themselves:
            _use(facts, found, r, everywhere)
    for g in given:
        _use(facts, found, g, _EMPTY)
    for node in reversed(cone):
        here = found.get(node.id, _EMPTY)  # constants have none
        if node.op is Op.SELECT:
            cond, then, other = node.args
            _use(facts, found, cond, here)
            if not then.is_const:
                _use(facts, found, then, known.extend(here, cond, True))
            if not other.is_const:
                _use(facts, found, other, known.extend(here, cond, False))
        else:
            for a in node.args:
                _use(facts, found, a, here)
    return found


def _use(facts: Sequence[AbsVal], found: dict[int, Context], node: Node, here: Context) -> None:
    known = found.get(node.id)
    if known is None:
        found[node.id] = here
    elif known is not here:
        found[node.id] = _both(facts, known, here)


def _both(facts: Sequence[AbsVal], a: Context, b: Context) -> Context:
    """What holds in either of two contexts."""
    if len(b) < len(a):
        a, b = b, a
    out: dict[int, AbsVal] = {}
    for key, fact in a.items():
        other = b.get(key)
        if other is None:
            continue
        joined = fact if other is fact else join(fact, other)
        if joined is fact or joined != facts[key]:
            out[key] = joined
    return out


class _Implied:
    """What follows from conditions, whatever else is known; found once for each."""

    def __init__(self, facts: Sequence[AbsVal]) -> None:
        self.facts = facts
        self._known: dict[tuple[int, bool], tuple[Context, list[tuple[Node, bool]]]] = {}

    def of(self, cond: Node, value: bool) -> tuple[Context, list[tuple[Node, bool]]]:
        """Facts, nearest first, and the selects of which something may follow given more."""
        key = (cond.id, value)
        if key not in self._known:
            self._known[key] = self._find(cond, value)
        return self._known[key]

    def _find(self, cond: Node, value: bool) -> tuple[Context, list[tuple[Node, bool]]]:
        out: dict[int, AbsVal] = {}
        open_: list[tuple[Node, bool]] = []
        todo = [(cond, value)]
        while todo and len(out) < _NEAREST:
            node, truth = todo.pop()
            known = _TRUE if truth else _FALSE
            if node.is_const or out.get(node.id) is known:
                continue
            out[node.id] = known
            more = _implied(self.facts, node, truth)
            todo.extend(more)
            if node.op is Op.SELECT and not more:
                open_.append((node, truth))
            _compare(self.facts, out, node, truth)
        return out, open_

    def extend(self, here: Context, cond: Node, value: bool) -> Context:
        """A context in which a condition is known too."""
        out = dict(here)
        todo = [(cond, value)]
        done: set[int] = set()
        while todo:
            node, truth = todo.pop()
            if node.is_const or node.id in done:
                continue
            done.add(node.id)
            facts, open_ = self.of(node, truth)
            for key, fact in facts.items():
                old = out.pop(key, None)
                decided = old is None or fact is _TRUE or fact is _FALSE
                out[key] = fact if old is None or decided else _meet(old, fact)
            for choice, result in open_:
                taken = _truth(out, choice.args[0])
                if taken is not None:
                    todo.append((choice.args[1 if taken else 2], result))
        while len(out) > _LIMIT:
            del out[next(iter(out))]
        return out


def _truth(out: dict[int, AbsVal], node: Node, depth: int = 4) -> bool | None:
    """What a context says of a condition, itself or by its parts; it is noted there."""
    known = out.get(node.id)
    if known is _TRUE or known is _FALSE:
        return known is _TRUE
    if node.is_const:
        return node.attr if type(node.attr) is bool else None
    if not depth:
        return None
    truth: bool | None = None
    if node.op is Op.NOT:
        inner = _truth(out, node.args[0], depth - 1)
        truth = None if inner is None else not inner
    elif node.op is Op.SELECT:
        taken = _truth(out, node.args[0], depth - 1)
        if taken is not None:
            truth = _truth(out, node.args[1 if taken else 2], depth - 1)
    if truth is not None:
        out[node.id] = _TRUE if truth else _FALSE
    return truth


def _implied(facts: Sequence[AbsVal], node: Node, truth: bool) -> list[tuple[Node, bool]]:
    """Conditions that follow from one."""
    if node.op is Op.MARK:
        return [(node.args[0], truth)]
    if node.op in (Op.NOT, Op.TRUTH) and facts[node.args[0].id].kinds == {"bool"}:
        return [(node.args[0], truth is (node.op is Op.TRUTH))]
    if node.op is Op.SELECT:
        cond, then, other = node.args
        if then.is_const and then.attr is (not truth):
            return [(cond, False), (other, truth)]
        if other.is_const and other.attr is (not truth):
            return [(cond, True), (then, truth)]
    return []


def _compare(facts: Sequence[AbsVal], out: dict[int, AbsVal], node: Node, truth: bool) -> None:
    """What a comparison says of the value that it compares."""
    op = node.op
    if op in (Op.NOT, Op.TRUTH):
        _note(facts, out, node.args[0], Op.TRUTH, None, truth is (op is Op.TRUTH))
    elif op is Op.HASKEY:
        _note(facts, out, node.args[0], op, node.attr, truth)
    elif op is Op.IN and node.args[1].is_const:
        _note(facts, out, node.args[0], op, node.args[1].attr, truth)
    elif op in _COMPARISONS or op is Op.IS:
        a, b = node.args
        if b.is_const:
            _note(facts, out, a, op, b.attr, truth)
        elif a.is_const:
            _note(facts, out, b, _MIRRORED.get(op, op), a.attr, truth)


def _note(
    facts: Sequence[AbsVal], out: dict[int, AbsVal], node: Node, op: Op, other: Value, truth: bool
) -> None:
    """Narrow what is known of a node by one comparison with a constant."""
    narrowed = (
        None if node.is_const else _narrow(out.get(node.id, facts[node.id]), op, other, truth)
    )
    if narrowed is not None:
        out.pop(node.id, None)
        out[node.id] = narrowed


def _narrow(base: AbsVal, op: Op, other: Value, truth: bool) -> AbsVal | None:
    """The values of `base` for which the comparison has that truth; None if nothing is learnt."""
    if base.values is not None:
        kept = [v for v in base.values if _holds(op, v, other) is truth]
        return of_values(kept) if kept else None
    if type(other) not in (bool, int) or not base.is_integral or op not in _COMPARISONS:
        return None
    assert isinstance(other, int)
    k = int(other)
    lo, hi = base.lo, base.hi
    relation = _COMPARISONS[op][0 if truth else 1]
    if relation is Op.EQ:
        if base.kinds == {"int"}:
            return of_values((k,)) if (lo is None or lo <= k) and (hi is None or k <= hi) else None
        lo, hi = k, k
    elif relation is Op.NE:
        lo = k + 1 if lo == k else lo
        hi = k - 1 if hi == k else hi
    elif relation in (Op.LT, Op.LE):
        top = k - 1 if relation is Op.LT else k
        hi = top if hi is None else min(hi, top)
    else:
        bottom = k + 1 if relation is Op.GT else k
        lo = bottom if lo is None else max(lo, bottom)
    if lo is not None and hi is not None and lo > hi:
        return None  # dead code: any value will do
    if lo is not None and lo == hi and base.kinds == {"int"}:
        return of_values((lo,))
    return AbsVal(None, base.kinds, lo, hi)


def _holds(op: Op, value: Value, other: Value) -> bool | None:
    try:
        if op is Op.TRUTH:
            return bool(value)
        args = (value,) if op is Op.HASKEY else (value, other)
        return bool(apply(op, other if op is Op.HASKEY else None, args))
    except (*FAULTS, TooWide):
        return None


def _meet(fact: AbsVal, known: AbsVal | None) -> AbsVal:
    """What both say; `fact` alone where they contradict each other, which is dead code."""
    if known is None or known is fact or known == fact:
        return fact
    defined = fact.defined or known.defined
    if fact.values is not None or known.values is not None:
        small, large = (fact, known) if fact.values is not None else (known, fact)
        assert small.values is not None
        if large.values is not None:
            keys = {value_key(v) for v in large.values}
            kept = [v for v in small.values if value_key(v) in keys]
        else:
            kept = [v for v in small.values if not isinstance(v, int) or _inside(int(v), large)]
        return of_values(kept, defined) if kept else fact
    if not (fact.is_integral and known.is_integral):
        return fact
    lo = fact.lo if known.lo is None else known.lo if fact.lo is None else max(fact.lo, known.lo)
    hi = fact.hi if known.hi is None else known.hi if fact.hi is None else min(fact.hi, known.hi)
    if lo is not None and hi is not None and lo > hi:
        return fact
    return AbsVal(None, fact.kinds & known.kinds or fact.kinds, lo, hi, defined)


def _inside(value: int, fact: AbsVal) -> bool:
    return (fact.lo is None or fact.lo <= value) and (fact.hi is None or value <= fact.hi)


def _forward(
    graph: Graph, facts: Sequence[AbsVal], cone: Sequence[Node], contexts: Mapping[int, Context]
) -> dict[int, AbsVal]:
    """What each node can be where it is used."""
    out: dict[int, AbsVal] = {}
    for node in cone:
        here = contexts.get(node.id, _EMPTY)
        if node.op is Op.INPUT:
            assert isinstance(node.attr, str)
            value = of_domain(graph.inputs[node.attr].domain)
        elif node.op is Op.CONST:
            value = facts[node.id]
        else:
            value = _meet(
                facts[node.id],
                transfer(node, [_meet(out[a.id], here.get(a.id)) for a in node.args]),
            )
        out[node.id] = _meet(value, here.get(node.id))
    return out
