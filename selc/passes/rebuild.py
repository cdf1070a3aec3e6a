"""Copying the cone of some roots into a fresh graph, node by node: what every pass is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from selc.ir.graph import BOOLEAN, Graph, Node
from selc.ir.op import Op
from selc.ir.value import Value, value_key

Images = dict[Node, Node]
"""Old node -> new node."""

Rule = Callable[[Graph, Node, tuple[Node, ...]], Node | None]
"""The image of a node in the new graph, given those of its arguments; None: the same operation."""

_BOOLEAN: Final = BOOLEAN | {Op.ANY, Op.ALL, Op.IS_INTEGER}
_LEAVES: Final = frozenset({Op.CONST, Op.INPUT, Op.FAIL})


def empty_like(graph: Graph) -> Graph:
    """A graph without nodes that declares the same inputs."""
    new = Graph()
    new.inputs.update(graph.inputs)
    return new


def keep(new: Graph, node: Node, args: tuple[Node, ...]) -> Node:
    """The same operation on the images of its arguments."""
    return new.add(node.op, *args, attr=node.attr, site=node.site)


def rebuild(graph: Graph, roots: Sequence[Node], *rules: Rule) -> tuple[Graph, Images]:
    """Apply rules, one after the other, to every node that `roots` read, arguments first."""
    new = empty_like(graph)
    image: Images = {}
    for node in graph.cone(roots):
        args = tuple([image[a] for a in node.args])
        made: Node | None = None
        current = node
        for rule in rules:
            out = rule(new, current, args)
            if out is not None:
                made = current = out
                args = out.args
        if made is None:
            made = new.add(node.op, *args, attr=node.attr, site=node.site)
        image[node] = made
        if made.op not in _LEAVES and made.id not in new.origin:
            span = graph.origin.get(node.id)
            if span is not None:
                new.origin[made.id] = span
    return new, image


def compose(first: Mapping[Node, Node], second: Mapping[Node, Node]) -> Images:
    """The images after both; a node whose value is no longer read has none."""
    return {old: second[mid] for old, mid in first.items() if mid in second}


class Booleans:
    """Which nodes of one growing graph are always bools."""

    __slots__ = ("_graph", "_known")

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._known: list[bool] = []

    def __contains__(self, node: Node) -> bool:
        known = self._known
        for n in self._graph.nodes[len(known) : node.id + 1]:
            known.append(self._is_bool(n))
        return known[node.id]

    def _is_bool(self, node: Node) -> bool:
        op = node.op
        if op in _BOOLEAN:
            return True
        if op is Op.CONST:
            return type(node.attr) is bool
        if op is Op.SELECT:
            return all(self._known[a.id] or a.op is Op.FAIL for a in node.args[1:])
        if op is Op.MARK:
            return self._known[node.args[0].id]
        if op is Op.INPUT:
            assert isinstance(node.attr, str)
            return self._graph.inputs[node.attr].domain.kinds == {"bool"}
        return False


def is_value(node: Node, value: Value) -> bool:
    """Whether the node is this very constant, by type and bits."""
    return node.op is Op.CONST and value_key(node.attr) == value_key(value)


def is_true(node: Node) -> bool:
    """Whether the node is the constant True."""
    return node.op is Op.CONST and node.attr is True


def is_false(node: Node) -> bool:
    """Whether the node is the constant False."""
    return node.op is Op.CONST and node.attr is False
