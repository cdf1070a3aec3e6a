"""Value numbering: equal operations on equal arguments are one node, whatever their sites."""

from __future__ import annotations

from collections.abc import Sequence

from selc.ir.graph import Graph, Node
from selc.ir.op import TABLE, Op
from selc.passes.rebuild import Images, rebuild


def gvn(graph: Graph, roots: Sequence[Node], given: Sequence[Node] = ()) -> tuple[Graph, Images]:
    """Merge equal values; sites and marks, which keep them apart, are dropped.

    Before:

        v2 = le v0, 64          # site 3
        v3 = mark v2            # plan.small
        v4 = le v0, 64          # site 9
        v5 = eq 1, v1
        v6 = eq v1, 1

    After: `v3` and `v4` are `v2`, and `v6` is `v5`.
    """
    return rebuild(graph, roots, number)


def number(new: Graph, node: Node, args: tuple[Node, ...]) -> Node | None:
    """The rule of this pass; interning does the rest."""
    if node.op is Op.MARK:
        return args[0]
    if len(args) == 2 and TABLE[node.op].commutes and _rank(args[0]) > _rank(args[1]):
        return new.add(node.op, args[1], args[0], attr=node.attr)
    return new.add(node.op, *args, attr=node.attr) if node.site else None


def _rank(node: Node) -> tuple[bool, int]:
    return node.is_const, node.id
