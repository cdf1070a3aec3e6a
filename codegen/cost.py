"""Which guards cost enough to be remembered, once per tuple and typed inputs.

An estimate of native nanoseconds from the operations that a guard alone needs, the same with and
without a compiler, because it decides what the selector's hash covers.
"""

from __future__ import annotations

from typing import Final

from selc.codegen.spec import SelectorSpec
from selc.ir.graph import Node
from selc.ir.op import Op

COSTLY: Final = 1000
"""Nanoseconds from which on a guard is remembered."""

_FREE: Final = frozenset({Op.CONST, Op.INPUT, Op.MARK})
_DEAR: Final = {
    Op.SQRT: 5, Op.LOG2: 15, Op.POW: 15, Op.STR: 50, Op.SORTED: 50, Op.FLOORDIV: 6, Op.MOD: 6,
    Op.TRUEDIV: 5, Op.ROUND: 5, Op.LOOKUP: 8, Op.HASKEY: 8, Op.INDEX: 4, Op.IN: 8,
}  # fmt: skip


def costs(spec: SelectorSpec) -> dict[int, int]:
    """What each guard that is checked on calls costs beyond the choice itself, by index."""
    graph = spec.residual.graph
    needed = {n.id for n in graph.cone([node for _, node in spec.residual.points])}
    needed |= {n.id for n in graph.cone([node for _, node in spec.residual.assumes])}
    return {
        index: sum(
            _cost(node)
            for node in graph.cone(list(spec.residual.guards[index].readings))
            if node.id not in needed
        )
        for index in spec.checked
    }


def remembered(spec: SelectorSpec) -> frozenset[int]:
    """The guards that are remembered, by index."""
    return frozenset(index for index, cost in costs(spec).items() if cost > COSTLY)


def _cost(node: Node) -> int:
    return 0 if node.op in _FREE else _DEAR.get(node.op, 1)
