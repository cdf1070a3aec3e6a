"""Nodes and graphs.

Nodes are created by `Graph.add` alone and interned on (op, arguments, attribute, site), so identity
is equality. Ids are dense and arguments precede their users: list order is topological order.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import final

from selc.diag.span import NOWHERE, Span
from selc.ir.domain import Domain, Input
from selc.ir.op import FAULTS, TABLE, Op, apply
from selc.ir.value import UNDEF, Value, value_key


@final
class Node:
    """One value of a graph. `site` keeps equal expressions of different sites apart (0: none)."""

    __slots__ = ("args", "attr", "id", "op", "site")

    def __init__(self, id: int, op: Op, args: tuple[Node, ...], attr: Value, site: int) -> None:
        self.id = id
        self.op = op
        self.args = args
        self.attr = attr
        self.site = site

    def __repr__(self) -> str:
        return f"v{self.id}"

    @property
    def is_const(self) -> bool:
        """Whether it is a constant."""
        return self.op is Op.CONST


class Graph:
    """An acyclic graph of values over named inputs."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.inputs: dict[str, Input] = {}
        self.origin: dict[int, Span] = {}
        self._interned: dict[Hashable, Node] = {}

    def add(
        self, op: Op, *args: Node, attr: Value = None, site: int = 0, origin: Span = NOWHERE
    ) -> Node:
        """The node for an operation; an existing one if all four parts are equal."""
        row = TABLE[op]
        assert row.arity in (-1, len(args)), (op, args)
        key = (op, tuple(a.id for a in args), value_key(attr), site)
        node = self._interned.get(key)
        if node is None:
            node = Node(len(self.nodes), op, args, attr, site)
            self.nodes.append(node)
            self._interned[key] = node
            if origin is not NOWHERE:
                self.origin[node.id] = origin
        return node

    def const(self, value: Value) -> Node:
        """The constant `value`."""
        return self.add(Op.CONST, attr=value) if value is not UNDEF else self.add(Op.FAIL)

    def input(self, name: str, kind: str, domain: Domain) -> Node:
        """The leaf `name`; declared once, with one kind and domain."""
        known = self.inputs.setdefault(name, Input(name, kind, domain))
        assert known == Input(name, kind, domain), name
        return self.add(Op.INPUT, attr=name)

    def fold(
        self, op: Op, *args: Node, attr: Value = None, site: int = 0, origin: Span = NOWHERE
    ) -> Node:
        """Like `add`, but computed now where arguments are constants (a failing one is kept)."""
        if op is Op.SELECT:
            if args[0].is_const:
                return args[1] if args[0].attr else args[2]
            if args[1] is args[2]:
                return args[1]
        elif op not in (Op.MARK, Op.INPUT, Op.CONST, Op.FAIL) and all(a.is_const for a in args):
            values = tuple(a.attr for a in args)
            try:
                if op is Op.OK:
                    assert isinstance(attr, tuple)
                    apply(Op(attr[0]), attr[1], values)
                    return self.const(True)
                return self.const(apply(op, attr, values))
            except FAULTS:
                if op is Op.OK:
                    return self.const(False)
        return self.add(op, *args, attr=attr, site=site, origin=origin)

    def select(self, cond: Node, then: Node, other: Node, origin: Span = NOWHERE) -> Node:
        """`then if cond else other`; `cond` is a bool."""
        return self.fold(Op.SELECT, cond, then, other, origin=origin)

    def both(self, a: Node, b: Node) -> Node:
        """`a and b` over bools."""
        if b.is_const and b.attr is True:
            return a
        return self.select(a, b, self.const(False)) if a is not b else a

    def either(self, a: Node, b: Node) -> Node:
        """`a or b` over bools."""
        if b.is_const and b.attr is False:
            return a
        return self.select(a, self.const(True), b) if a is not b else a

    def negate(self, a: Node) -> Node:
        """`not a`; a negation that is a site is not looked through, for it may be overwritten."""
        plain = a.op is Op.NOT and not a.site and a.args[0].op in BOOLEAN
        return a.args[0] if plain else self.fold(Op.NOT, a)

    def cone(self, roots: Iterable[Node]) -> list[Node]:
        """Every node that `roots` read, themselves included, in topological order."""
        wanted = [False] * len(self.nodes)
        todo = list(roots)
        while todo:
            node = todo.pop()
            if not wanted[node.id]:
                wanted[node.id] = True
                todo.extend(node.args)
        return [n for n in self.nodes if wanted[n.id]]


def is_place(node: Node) -> bool:
    """Whether a node only marks where reading (b) overwrites a field of a record; it is no site."""
    return node.op is Op.MARK and isinstance(node.attr, tuple) and node.attr[:1] == ("place",)


BOOLEAN = frozenset(
    {Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE, Op.IS, Op.IN, Op.NOT, Op.TRUTH, Op.OK, Op.HASKEY}
)
"""Operations whose result is always a bool."""
