"""Results of unrolled searches as tables over the few values that they look at."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from selc.ir.absval import AbsVal, of_values
from selc.ir.domain import Domain
from selc.ir.evaluate import abstract, compile_nodes
from selc.ir.graph import Graph, Node
from selc.ir.op import Op, TooWide, evaluate
from selc.ir.value import UNDEF, Value
from selc.passes.rebuild import Images, empty_like, rebuild
from selc.passes.vertexcut import INFINITE, vertex_cut

LARGE: Final = 192
"""Operations that make a value a search."""

SMALL: Final = 24
"""Operations that the values it looks at are made of, at most."""

POINTS: Final = 1 << 14
"""Joint values of an interface: the size is checked before any is made."""

_TRIES: Final = 24
_DEPTH: Final = 6
_SCALE: Final = 1024

Literal = tuple[Node, bool]


@dataclass(slots=True)
class _Search:
    """A value below some conditions: what it is where they hold."""

    arms: list[Literal]  # the selects from `top` down, and which arm is followed
    value: Node


@dataclass(slots=True)
class _Interface:
    """The nodes that decide a search, what they can be, and what is known of conditions."""

    search: _Search
    nodes: list[Node]
    domains: list[Sequence[Value]]
    truths: dict[int, bool]

    def size(self) -> int:
        """Joint values."""
        return math.prod(len(d) for d in self.domains)

    def table(self, facts: Sequence[AbsVal]) -> _Table | None:
        """The search at every joint value; None if it cannot be computed."""
        rows = _evaluated(self.search.value, self.nodes, self.domains, self.truths, facts)
        return None if rows is None else _Table(self.search, self.nodes, self.domains, rows)


@dataclass(slots=True)
class _Table:
    """A search as a function of `nodes`, over the product of their domains."""

    search: _Search
    nodes: list[Node]
    domains: list[Sequence[Value]]
    rows: dict[tuple[Value, ...], Value]


def searches(
    graph: Graph, roots: Sequence[Node], given: Sequence[Node] = ()
) -> tuple[Graph, Images]:
    """Replace an unrolled search by a table, where what it looks at can be few things only.

    Before (`v1` in 1..20000, `v5` in 1..128):

        v3 = le v1, 52
        ...                               ; 128 rounds over v1 and v5, in binary32
        v900 = select v3, v899, 1

    After:

        v6 = add (mul (sub v1, 1), 128), (sub v5, 1)
        v900 = select v3, (lookup v6 {...}), 1

    The interface {v1, v5} is the vertex cut with the fewest joint values among the nodes that are
    made of a few operations; the conditions on the way to the search narrow their ranges. Its size
    is known before a point is computed.
    """
    cone = graph.cone(roots)
    if len(cone) < LARGE:
        return rebuild(graph, roots)
    facts = abstract(graph)
    work = works(graph)
    tables: dict[int, _Table] = {}
    covered: set[int] = set()
    tries = 0
    for node in reversed(cone):
        if work[node.id] < LARGE or node.id in covered or tries >= _TRIES:
            continue
        found = [_interface(graph, s, facts, work) for s in _descents(node, work)]
        tries += len(found)
        known = [f for f in found if f is not None]
        table = min(known, key=_Interface.size).table(facts) if known else None
        if table is not None:
            tables[node.id] = table
            covered.update(n.id for n in graph.cone([table.search.value]))
    if not tables:
        return rebuild(graph, roots)
    return _replaced(graph, roots, tables)


def works(graph: Graph) -> list[int]:
    """How many operations each node computes from inputs, as far as `LARGE` tells them apart."""
    out: list[int] = []
    sets: list[frozenset[int] | None] = []
    for node in graph.nodes:
        if node.op is Op.CONST:
            joined: frozenset[int] | None = frozenset()
        else:
            joined = frozenset({node.id})
            for a in node.args:
                more = sets[a.id]
                joined = None if joined is None or more is None else joined | more
            if joined is not None and len(joined) >= LARGE:
                joined = None
        sets.append(joined)
        out.append(LARGE if joined is None else len(joined))
    return out


def _descents(node: Node, work: Sequence[int]) -> list[_Search]:
    """A select, and what is below it: the one arm that is large, under conditions that are not."""
    out: list[_Search] = []
    arms: list[Literal] = []
    value = node
    while value.op is Op.SELECT and len(out) < _DEPTH:
        out.append(_Search(list(arms), value))
        cond, then, other = value.args
        large = [work[a.id] >= LARGE for a in (cond, then, other)]
        if large not in ([False, True, False], [False, False, True]):
            break
        arms.append((value, large[1]))
        value = then if large[1] else other
    return out


def _interface(
    graph: Graph, search: _Search, facts: Sequence[AbsVal], work: Sequence[int]
) -> _Interface | None:
    """The interface of a search with the fewest joint values, if they are few enough."""
    cone = graph.cone([search.value])
    conditions = graph.cone([search.value, *(select.args[0] for select, _ in search.arms)])
    truths = _truths(conditions, search.arms)
    narrowed: dict[int, tuple[int, int]] = {}
    for node in conditions:
        if node.id in truths:
            _narrow(node, truths[node.id], facts, narrowed)
    sizes: dict[int, Sequence[Value]] = {}
    for node in cone:
        if work[node.id] <= SMALL:
            domain = _domain(facts[node.id], narrowed.get(node.id))
            if domain is not None and 0 < len(domain) <= POINTS:
                sizes[node.id] = domain

    def weight(node: Node) -> int:
        domain = sizes.get(node.id)
        return INFINITE if domain is None else round(_SCALE * math.log2(len(domain))) + 1

    small = [n for n in cone if work[n.id] <= SMALL and not n.is_const and n.id not in truths]
    ends = {a.id for n in cone if work[n.id] > SMALL for a in n.args}
    if any(not n.args and n.op is Op.INPUT and work[n.id] > SMALL for n in cone):
        return None
    sink = _Sink(graph, [n for n in small if n.id in ends])
    cut = vertex_cut([*small, sink.node], sink.below, weight, [sink.node], _limit())
    if cut is None or not cut:
        return None
    found = _Interface(search, cut, [sizes[n.id] for n in cut], truths)
    return found if found.size() <= POINTS else None


def _truths(cone: Sequence[Node], arms: Sequence[Literal]) -> dict[int, bool]:
    """What the conditions on the way say of conditions below: node id -> truth."""
    out: dict[int, bool] = {}
    todo = [(select.args[0], taken) for select, taken in arms]  # the outermost is looked at last
    while todo:
        node, taken = todo.pop(0)
        if node.is_const or node.id in out:
            continue
        out[node.id] = taken
        if node.op is Op.NOT:
            todo.append((node.args[0], not taken))
        elif node.op is Op.SELECT:
            which = _known(out, node.args[0])
            if which is not None:
                todo.append((node.args[1 if which else 2], taken))
            for value, arm in ((True, 1), (False, 2)):
                if _known(out, node.args[3 - arm]) is (not taken):
                    todo += [(node.args[0], value), (node.args[arm], taken)]
    for node in cone:
        which = _known(out, node.args[0]) if node.op in (Op.NOT, Op.SELECT) else None
        if which is None:
            continue
        truth = not which if node.op is Op.NOT else _known(out, node.args[1 if which else 2])
        if truth is not None:
            out.setdefault(node.id, truth)
    return out


def _known(truths: Mapping[int, bool], node: Node) -> bool | None:
    if node.is_const:
        return node.attr if type(node.attr) is bool else None
    return truths.get(node.id)


def _limit() -> int:
    return round(_SCALE * math.log2(POINTS)) + 16


class _Sink:
    """A node that stands for everything above the small nodes."""

    def __init__(self, graph: Graph, ends: Sequence[Node]) -> None:
        self.node = Node(len(graph.nodes), Op.TUPLE, tuple(ends), None, 0)

    def below(self, node: Node) -> Sequence[Node]:
        return [a for a in node.args if not a.is_const]


def _domain(fact: AbsVal, bounds: tuple[int, int] | None) -> Sequence[Value] | None:
    if not fact.defined:
        return None
    if fact.values is not None:
        if not all(type(v) in (int, bool) for v in fact.values):
            return None
        inside = [v for v in fact.values if bounds is None or bounds[0] <= v <= bounds[1]]  # type: ignore[operator]  # integers
        return sorted(inside, key=lambda v: (type(v) is int, v)) if _one_kind(inside) else None
    if fact.kinds != {"int"} or fact.lo is None or fact.hi is None:
        return None
    lo, hi = (fact.lo, fact.hi) if bounds is None else bounds
    return range(max(lo, fact.lo), min(hi, fact.hi) + 1)


def _one_kind(values: Sequence[Value]) -> bool:
    return len({type(v) for v in values}) == 1


def _narrow(
    cond: Node, taken: bool, facts: Sequence[AbsVal], out: dict[int, tuple[int, int]]
) -> None:
    """What a condition on a function of one integer says of it."""
    chain = [cond]
    while True:
        open_ = [a for a in chain[-1].args if not a.is_const]
        if len(set(open_)) != 1 or len(open_) != 1:
            return
        node = open_[0]
        fact = facts[node.id]
        if fact.kinds == {"int"} and fact.lo is not None and fact.hi is not None and fact.defined:
            lo, hi = out.get(node.id, (fact.lo, fact.hi))
            found = _where(chain, node, taken, lo, hi)
            if found is not None:
                out[node.id] = found
        chain.append(node)


_RISING: Final = frozenset(
    {Op.FLOAT, Op.FLOAT32, Op.CEIL, Op.FLOOR, Op.TRUNC, Op.INT, Op.POS, Op.MIN2, Op.MAX2}
    | {Op.LT, Op.LE, Op.GT, Op.GE, Op.ADD, Op.SUB, Op.MUL, Op.NEG, Op.NOT}
)
"""Operations that are monotone in either argument while the other is a constant."""

_FIRST: Final = frozenset({Op.FLOORDIV, Op.TRUEDIV})
"""Operations that are monotone in the first."""


def _where(
    chain: Sequence[Node], node: Node, taken: bool, lo: int, hi: int
) -> tuple[int, int] | None:
    """The values of an integer for which a monotone chain of operations on it ends in `taken`."""
    below = [*chain[1:], node]
    for op_node, arg in zip(chain, below, strict=True):
        first = op_node.op in _FIRST and op_node.args[0] is arg
        if op_node.op not in _RISING and not first:
            return None

    def holds(value: int) -> bool:
        current: Value = value
        for op_node, arg in zip(reversed(chain), reversed(below), strict=True):
            args = tuple([current if a is arg else a.attr for a in op_node.args])
            current = evaluate(op_node.op, op_node.attr, args)
        return current is taken

    try:
        first, last = holds(lo), holds(hi)
        if first == last:
            return (lo, hi) if first else None
        low, high = lo, hi
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if holds(middle) == first else (low, middle)
    except TooWide:
        return None
    return (lo, low) if first else (high, hi)


def _evaluated(
    value: Node,
    nodes: Sequence[Node],
    domains: Sequence[Sequence[Value]],
    truths: Mapping[int, bool],
    facts: Sequence[AbsVal],
) -> dict[tuple[Value, ...], Value] | None:
    """The value at every point of the product of the domains.

    What depends on one of the nodes only is computed once for each of its values.
    """
    order = _between(value, nodes, truths)
    if order is None:
        return None
    masks = {n.id: 1 << k for k, n in enumerate(nodes)}
    for node in order:
        masks[node.id] = 0
        for a in node.args:
            masks[node.id] |= masks.get(a.id, 0)
    counts = [sum(m == 1 << k for m in masks.values()) for k in range(len(nodes))]
    outer = max(range(len(nodes)), key=lambda k: counts[k])
    alone = {n.id for n in order if masks[n.id] == 1 << outer}
    used = {a.id for n in order if n.id not in alone for a in n.args} | {value.id}
    early = [n for n in order if n.id in alone and n.id in used]
    rows: dict[tuple[Value, ...], Value] = {}
    try:
        first = _function([nodes[outer]], order, early, truths, facts)
        last = _function([*nodes, *early], order, [value], truths, facts)
        rest = list(itertools.product(*(d for k, d in enumerate(domains) if k != outer)))
        for x in domains[outer]:
            shared = first(x)
            if UNDEF in shared:
                return None
            for other in rest:
                point = (*other[:outer], x, *other[outer:])
                rows[point] = last(*point, *shared)[0]
    except TooWide:
        return None
    return rows


def _between(value: Node, nodes: Sequence[Node], truths: Mapping[int, bool]) -> list[Node] | None:
    """The nodes from the interface up to the value; None if the interface does not cut it off."""
    stop = {n.id for n in nodes}
    seen: dict[int, Node] = {}
    todo = [value]
    while todo:
        node = todo.pop()
        if node.id in stop or node.id in seen:
            continue
        if node.op is Op.INPUT:
            return None
        seen[node.id] = node
        if node.id not in truths:
            todo += node.args
    return [seen[k] for k in sorted(seen)]


def _function(
    parameters: Sequence[Node],
    order: Sequence[Node],
    results: Sequence[Node],
    truths: Mapping[int, bool],
    facts: Sequence[AbsVal],
) -> Callable[..., tuple[Value, ...]]:
    """The results as a Python function of the parameters."""
    part = Graph()
    known: list[AbsVal] = []
    made: dict[int, Node] = {}

    def note(node: Node, fact: AbsVal) -> Node:
        while len(known) < len(part.nodes):
            new = part.nodes[len(known)]
            known.append(of_values((new.attr,)) if new.is_const else fact)
        return node

    for k, node in enumerate(parameters):
        made[node.id] = note(part.input(f"x{k}", "runtime", Domain(values=(0,))), facts[node.id])
    wanted = {n.id for n in results}
    todo = list(results)
    while todo:
        for a in todo.pop().args:
            if a.id not in wanted and a.id not in made:
                wanted.add(a.id)
                todo.append(a)
    for node in order:
        if node.id in made or node.id not in wanted:
            continue
        truth = truths.get(node.id)
        if truth is not None:
            made[node.id] = note(part.const(truth), facts[node.id])
            continue
        args = [made[a.id] for a in node.args]
        made[node.id] = note(part.add(node.op, *args, attr=node.attr), facts[node.id])
    names = [f"x{k}" for k in range(len(parameters))]
    return compile_nodes(part, [made[r.id] for r in results], names, known)


def _replaced(
    graph: Graph, roots: Sequence[Node], tables: Mapping[int, _Table]
) -> tuple[Graph, Images]:
    """The graph with each search replaced where its conditions hold."""
    images: Images = {}
    new = empty_like(graph)
    # What the tables and their conditions read, and everything that is no search.
    needed: dict[int, Node] = {}
    todo = list(roots)
    while todo:
        node = todo.pop()
        if node.id in needed:
            continue
        needed[node.id] = node
        table = tables.get(node.id)
        if table is None:
            todo += node.args
            continue
        todo += table.nodes
        for select, taken in table.search.arms:
            todo += [select.args[0], select.args[2 if taken else 1]]
    for key in sorted(needed):
        node = needed[key]
        table = tables.get(key)
        if table is None:
            made = new.add(node.op, *[images[a] for a in node.args], attr=node.attr, site=node.site)
        else:
            made = _lookup(new, [images[n] for n in table.nodes], table)
            for select, taken in reversed(table.search.arms):
                cond, then, other = (images.get(a) for a in select.args)
                assert cond is not None
                arms = (made, other) if taken else (then, made)
                assert arms[0] is not None
                assert arms[1] is not None
                made = new.fold(Op.SELECT, cond, *arms)
        images[node] = made
        if key in graph.origin and made.args:
            new.origin.setdefault(made.id, graph.origin[key])
    return new, images


def _lookup(new: Graph, nodes: Sequence[Node], table: _Table) -> Node:
    """The table at the joint value of its nodes, counted in mixed radix."""
    key = new.const(0)
    radix: list[dict[Value, int]] = []
    for node, domain in zip(nodes, table.domains, strict=True):
        radix.append({v: k for k, v in enumerate(domain)})
        if isinstance(domain, range):  # outside it is not used, but has a value
            inside = new.fold(Op.MAX2, new.const(domain[0]), node)
            inside = new.fold(Op.MIN2, new.const(domain[-1]), inside)
            place = new.fold(Op.SUB, inside, new.const(domain[0]))
        else:
            place = new.add(Op.LOOKUP, node, attr=tuple((v, k) for k, v in enumerate(domain)))
        key = new.fold(Op.ADD, new.fold(Op.MUL, key, new.const(len(domain))), place)
    rows = []
    for point, value in table.rows.items():
        at = 0
        for v, places in zip(point, radix, strict=True):
            at = at * len(places) + places[v]
        if value is not UNDEF:
            rows.append((at, value))
    return new.add(Op.LOOKUP, key, attr=tuple(rows))
