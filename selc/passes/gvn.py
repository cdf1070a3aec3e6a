"""Value numbering: equal operations on equal arguments are one node, whatever their sites."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from selc.ir.absval import NUMERIC
from selc.ir.evaluate import abstract
from selc.ir.graph import Graph, Node
from selc.ir.op import TABLE, Op
from selc.passes.rebuild import Images, rebuild

_NUMBERS: Final = frozenset({Op.ADD, Op.MUL, Op.BITAND, Op.BITOR, Op.BITXOR})
_PURE: Final = frozenset({Op.MIN2, Op.MAX2})


def gvn(graph: Graph, roots: Sequence[Node], given: Sequence[Node] = ()) -> tuple[Graph, Images]:
    """Merge equal values; sites and marks, which keep them apart, are dropped.

    Before:

        v2 = le v0, 64          # site 3
        v3 = mark v2            # plan.small
        v4 = le v0, 64          # site 9
        v5 = eq 1, v1
        v6 = eq v1, 1

    After: `v3` and `v4` are `v2`, and `v6` is `v5`. Operands of sums and products are ordered only
    where both are numbers: strings and tuples do not commute.
    """
    facts = abstract(graph)

    def rule(new: Graph, node: Node, args: tuple[Node, ...]) -> Node:
        op = node.op
        if op is Op.MARK:
            return args[0]
        if len(args) == 2 and _rank(args[0]) > _rank(args[1]):
            kinds = facts[node.args[0].id].kinds | facts[node.args[1].id].kinds
            numbers = op in _NUMBERS and kinds <= NUMERIC
            if TABLE[op].commutes or numbers or (op in _PURE and kinds == {"int"}):
                args = (args[1], args[0])
        return new.add(op, *args, attr=node.attr)

    return rebuild(graph, roots, rule)


def _rank(node: Node) -> tuple[bool, int]:
    return node.is_const, node.id
