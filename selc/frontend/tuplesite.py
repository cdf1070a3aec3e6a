"""Variables that hold tuples of scalars are sites as a whole: a pin overwrites every element."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from selc.frontend.values import Tup, V
from selc.ir.graph import Node
from selc.ir.op import Op

if TYPE_CHECKING:
    from selc.diag.span import Span
    from selc.frontend.context import Lowering
    from selc.frontend.state import State


def mark_tuple(
    cx: Lowering, st: State, base: str, kind: str, value: V | None, span: Span, always: bool
) -> Tup | None:
    """The tuple with its elements read from one marked value; None if it is no site.

    It is one where it takes a few rows of scalars. With `always` a constant one counts, too: the
    arm of a join.
    """
    if not isinstance(value, Tup) or value.fields or value.size or not value.items:
        return None
    nodes = [item for item in value.items if isinstance(item, Node) and item.op is not Op.FAIL]
    if len(nodes) < len(value.items):
        return None
    if not always and all(cx.fixed(node) for node in nodes):
        return None
    whole = cx.graph.fold(Op.TUPLE, *nodes)
    if cx.abs(whole).values is None:
        return None
    marked = cx.mark(st, base, kind, whole, span)
    places = [cx.graph.const(i) for i in range(len(nodes))]
    return replace(value, items=tuple(cx.graph.fold(Op.INDEX, marked, p) for p in places))


def unmarked(node: Node) -> Node:
    """The node under marks; an element of a marked tuple counts as what stands there."""
    while node.op in (Op.MARK, Op.INDEX):
        inner = unmarked(node.args[0])
        if node.op is Op.MARK:
            return inner
        place = node.args[1].attr if node.args[1].is_const else None
        if inner.op is not Op.TUPLE or type(place) is not int:
            return node
        node = inner.args[place]
    return node
