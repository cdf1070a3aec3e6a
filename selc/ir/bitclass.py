"""Bit classes: tables over points of which only the class has to follow the request.

The value of a class is the name of the class that the fields' values are in, or the tuple of those
values itself where they are in none or were not measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from selc.ir.graph import Graph, Node, is_place
from selc.ir.op import Op
from selc.ir.value import Value, same, value_key

TRIED: Final = 16
"""So many members of a class are tried as its representative."""


@dataclass(frozen=True, slots=True)
class BitClass:
    """A partition of the values of some points. `name` is that of its point and of its site.

    `members` are (class, values) with the representatives first. `given` are other points and the
    values at which the partition holds. `unnamed` are fields that can be overwritten where they are
    returned, because nothing else reads them; others only at their sites. `bound` says what it was
    measured on.
    """

    name: str
    fields: tuple[str, ...]
    members: tuple[tuple[str, tuple[Value, ...]], ...]
    given: tuple[tuple[str, Value], ...] = ()
    unnamed: tuple[str, ...] = ()
    bound: Mapping[str, object] = field(default_factory=dict)

    def of(self, values: Sequence[Value], given: Sequence[Value]) -> Value:
        """The class of some values of the fields."""
        measured = all(same(g, v) for g, (_, v) in zip(given, self.given, strict=True))
        key = value_key(tuple(values))
        for name, member in self.members if measured else ():
            if value_key(member) == key:
                return name
        return tuple(values)

    def in_class(self, value: Value) -> list[tuple[Value, ...]]:
        """Some members of a class, those first that are to be taken first."""
        if isinstance(value, tuple):
            return [value]
        return [member for name, member in self.members if name == value][:TRIED]

    @property
    def names(self) -> tuple[str, ...]:
        """The classes that have a name."""
        return tuple(dict.fromkeys(name for name, _ in self.members))


def class_node(graph: Graph, cls: BitClass, values: Sequence[Node], given: Sequence[Node]) -> Node:
    """The class of the fields' values."""
    key, inside, name = _parts(graph, cls, values, given)
    return graph.select(inside, name, key)


def is_class(
    graph: Graph, cls: BitClass, values: Sequence[Node], given: Sequence[Node], wanted: Node
) -> Node:
    """Whether the fields' values are in a class."""
    key, inside, name = _parts(graph, cls, values, given)
    return graph.select(inside, graph.fold(Op.EQ, name, wanted), graph.fold(Op.EQ, key, wanted))


def _parts(
    graph: Graph, cls: BitClass, values: Sequence[Node], given: Sequence[Node]
) -> tuple[Node, Node, Node]:
    """The values as a tuple, whether they stand in the partition, and there the class's name."""
    key = graph.fold(Op.TUPLE, *values)
    inside = graph.fold(Op.HASKEY, key, attr=tuple([member for _, member in cls.members]))
    for node, (_, value) in zip(given, cls.given, strict=True):
        inside = graph.both(graph.fold(Op.IS, node, graph.const(value)), inside)
    pairs = tuple([(member, name) for name, member in cls.members])
    return key, inside, graph.fold(Op.LOOKUP, key, attr=pairs)


def leaves_of(tree: Node, stops: frozenset[int]) -> list[Node]:
    """What a selection chooses among; nodes in `stops` are not looked into."""
    found: dict[int, Node] = {}
    todo, seen = [tree], {tree.id}
    while todo:
        node = todo.pop()
        if node.id not in stops and (node.op is Op.SELECT or is_place(node)):
            for a in node.args[1:] or node.args:
                if a.id not in seen:
                    seen.add(a.id)
                    todo.append(a)
        else:
            found[node.id] = node
    return list(found.values())


def places(tree: Node, marks: frozenset[int]) -> frozenset[int]:
    """The nodes by which a field is overwritten: those of its sites, else columns of tables.

    A field that is read off a row (`num_stages=row.stages`) has no site of its own: it is the row's
    column, wherever the program reads that.
    """
    if marks:
        return marks
    return frozenset({n.id for n in leaves_of(tree, marks) if n.op is Op.LOOKUP})


def may_lack(tree: Node, stops: frozenset[int]) -> bool:
    """Whether the choice is null on some paths: there it is not made, and nothing overwrites it."""
    found = leaves_of(tree, stops)
    nulls = [n for n in found if n.is_const and n.attr is None]
    return bool(nulls) and len(nulls) < len(found)
