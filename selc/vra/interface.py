"""Supersets of what nodes with too many inputs can be, through a small interface below them.

An interface is a set of nodes that every path from the inputs meets, the product of whose ranges is
small: the ranges are narrowed by the conditions under which the nodes are wanted, and by divisors.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Final

from selc.ir.absval import AbsVal
from selc.ir.graph import Node
from selc.ir.op import FAULTS, Op, TooWide
from selc.ir.value import UNDEF, Value, value_key
from selc.passes.vertexcut import INFINITE, vertex_cut
from selc.vra.conditions import Literal, bare, expanded, leaves, literals, narrowed, settled
from selc.vra.enumerate import Row
from selc.vra.frontier import rebuilt
from selc.vra.view import View

MAX_JOINT: Final = 1 << 15
"""Joint values of an interface that are tried for one case."""

MAX_KEPT: Final = 12
"""Joint values that are remembered for each value of the node above."""

DEPTHS: Final = (24, 96, 1 << 20)
"""An interface is made of nodes that compute at most so much from inputs; the first that works.

Without it the cheapest cut would be the last step of a loop, which tells nothing.
"""

_SCALE: Final = 1024


@dataclass(slots=True)
class Case:
    """One case of a node: under `given`, its values come from joint values of `nodes`."""

    given: Sequence[Literal]
    nodes: Sequence[Node]
    found: dict[Hashable, list[Row]] = field(default_factory=dict)
    values: dict[Hashable, Value] = field(default_factory=dict)


def cases(view: View, node: Node, path: Node, budget: int = MAX_JOINT) -> list[Case] | None:
    """A superset of the values of a node where `path` is True; None if no interface is small."""
    wanted = literals(path)
    out = []
    for given, leaf in leaves(view, node):
        for literals_ in expanded(view, [*wanted, *given]):
            case = _case(view, leaf, literals_, budget)
            if case is None:
                return None
            out.append(case)
    return out


def joint(view: View, nodes: Sequence[Node], budget: int = MAX_JOINT) -> list[Row] | None:
    """Every joint value that the nodes take, or a superset; None if no small interface is found."""
    found = _through(view, nodes, [(n, True) for n in view.admits], budget)
    if found is None:
        return None
    seen: dict[Hashable, Row] = {}
    for shown, _ in found[1]:
        seen.setdefault(value_key(shown), shown)
    return list(seen.values())


def _case(view: View, leaf: Node, given: Sequence[Literal], budget: int) -> Case | None:
    found = _through(view, [leaf], given, budget)
    if found is None:
        return None
    case = Case(given, found[0])
    for (value,), below in found[1]:
        if value is UNDEF:
            continue
        key = value_key(value)
        case.values.setdefault(key, value)
        kept = case.found.setdefault(key, [])
        if len(kept) < MAX_KEPT:
            kept.append(below)
    return case


def _through(
    view: View, roots: Sequence[Node], given: Sequence[Literal], budget: int
) -> tuple[list[Node], list[tuple[Row, Row]]] | None:
    """An interface below some nodes, and what they are for each of its joint values."""
    cone = view.graph.cone([*roots, *(n for n, _ in given)])
    facts = narrowed(view, cone, given)
    if facts is None:
        return [], []
    open_ = [n for n, holds in given if not settled(view.facts, (n, holds))]
    nodes = _interface(roots, open_, facts, budget)
    if nodes is None and open_:
        nodes = _interface(roots, [], facts, budget)
    if nodes is None:
        return None
    domains = [_values(n, facts) for n in nodes]
    if any(d is None for d in domains) or math.prod(len(d or ()) for d in domains) > budget:
        return None
    polarity = dict(given)
    fixed = {
        n.id: fact.values[0]
        for n in cone
        if (fact := facts[n.id]).single and fact.values and n not in polarity
    }
    polarity_by_id = {n.id: holds for n, holds in given}
    tests = list(polarity)
    function, shown = rebuilt(view, [*roots, *tests], nodes, domains, fixed, polarity_by_id, facts)
    if not all(shown[: len(roots)]):
        return None
    expected = [polarity[n] if s else None for n, s in zip(tests, shown[len(roots) :], strict=True)]
    out = []
    for row in itertools.product(*(d or () for d in domains)):
        try:
            result = function(*row)
        except FAULTS:
            continue  # the facts hold where the conditions do, and here they do not
        except TooWide:
            return None
        tested = zip(result[len(roots) :], expected, strict=True)
        if all(e is None or r is e for r, e in tested):
            out.append((result[: len(roots)], row))
    return nodes, out


def _interface(
    roots: Sequence[Node], tests: Sequence[Node], facts: Sequence[AbsVal], budget: int
) -> list[Node] | None:
    """Nodes that decide what `roots` are and whether `tests` hold."""
    sinks = list(
        {n.id: n for n in [*roots, *tests] if n in tests or not facts[n.id].single}.values()
    )
    live = _live(sinks, facts, {n.id for n in tests})

    def below(node: Node) -> Sequence[Node]:
        return [a for a in _below(node, facts) if not facts[a.id].single]

    sizes = {n.id: _size(n, facts) for n in live}
    direct = [n for n in sinks if n.op is Op.INPUT and (sizes[n.id] or budget + 1) <= budget]
    inner = [n for n in sinks if n not in direct and (below(n) or n.op is Op.INPUT)]
    varying = [n for n in live if not facts[n.id].single or n in tests]
    cut = _cheapest(varying, below, sizes, inner, budget)
    return None if cut is None else list({n.id: n for n in [*cut, *direct]}.values())


def _cheapest(
    varying: Sequence[Node],
    below: Callable[[Node], Sequence[Node]],
    sizes: Mapping[int, int | None],
    sinks: Sequence[Node],
    budget: int,
) -> list[Node] | None:
    """The cut with the smallest product, of nodes as near to the inputs as `DEPTHS` tries."""
    if not sinks:
        return []
    limit = round(_SCALE * math.log2(budget)) + 64
    work = _work(varying, below)
    for depth in DEPTHS:

        def weight(node: Node, depth: int = depth) -> int:
            size = sizes[node.id]
            if size is None or size > budget or work[node.id] > depth:
                return INFINITE
            return round(_SCALE * math.log2(size)) + 1

        cut = vertex_cut(varying, below, weight, sinks, limit)
        if cut is not None:
            return cut
    return None


def _work(nodes: Sequence[Node], below: Callable[[Node], Sequence[Node]]) -> dict[int, int]:
    """How many operations each node computes from inputs, as far as `DEPTHS` tells them apart."""
    most = DEPTHS[-2]
    sets: dict[int, frozenset[int] | None] = {}
    for node in nodes:
        own = frozenset({node.id}) if node.op is not Op.MARK else frozenset[int]()
        joined: frozenset[int] | None = own
        for a in below(node):
            more = sets.get(a.id, frozenset())
            joined = None if joined is None or more is None else joined | more
        sets[node.id] = None if joined is None or len(joined) > most else joined
    return {key: most + 1 if s is None else len(s) for key, s in sets.items()}


def _below(node: Node, facts: Sequence[AbsVal]) -> tuple[Node, ...]:
    if node.op is Op.SELECT:
        cond = facts[node.args[0].id]
        if cond.single:
            return (node.args[1] if cond.values == (True,) else node.args[2],)
    return node.args


def _live(sinks: Sequence[Node], facts: Sequence[AbsVal], tests: Set[int]) -> list[Node]:
    seen: dict[int, Node] = {}
    todo = list(sinks)
    while todo:
        node = todo.pop()
        if node.id not in seen:
            seen[node.id] = node
            if node.id in tests or not facts[node.id].single:
                todo += _below(node, facts)
    return [seen[k] for k in sorted(seen)]


def _size(node: Node, facts: Sequence[AbsVal]) -> int | None:
    fact = facts[node.id]
    if fact.values is not None:
        return len(fact.values) + (not fact.defined)
    if fact.kinds != {"int"} or fact.lo is None or fact.hi is None or not fact.defined:
        return None
    return len(_span(node, fact))


def _span(node: Node, fact: AbsVal) -> range:
    assert fact.lo is not None
    assert fact.hi is not None
    step = divisor(node) or 1
    return range(-(-fact.lo // step) * step, fact.hi + 1, step)


def _values(node: Node, facts: Sequence[AbsVal]) -> Sequence[Value] | None:
    fact = facts[node.id]
    if fact.values is not None:
        return fact.values if fact.defined else (*fact.values, UNDEF)
    return None if _size(node, facts) is None else _span(node, fact)


def divisor(node: Node, depth: int = 12) -> int:
    """A number that divides every value of an integer node (0: it is always 0)."""
    node = bare(node)
    if node.op is Op.CONST:
        return abs(node.attr) if isinstance(node.attr, int) else 1
    if not depth or not node.args:
        return 1
    of = [divisor(a, depth - 1) for a in node.args]
    if node.op is Op.MUL:
        return of[0] * of[1]
    if node.op in (Op.ADD, Op.SUB, Op.MIN2, Op.MAX2):
        return math.gcd(*of)
    if node.op is Op.SELECT:
        return math.gcd(*of[1:])
    return of[0] if node.op in (Op.NEG, Op.POS, Op.ABS) else 1
