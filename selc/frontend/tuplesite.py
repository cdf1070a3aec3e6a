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
    from selc.ir.program import Site


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
    key = cx.site_key(base)
    marked = cx.mark(st, base, kind, whole, span)
    cx.lengths.setdefault(key, set()).add(len(nodes))
    _offers_fit(cx, key, len(nodes), span)
    places = [cx.graph.const(i) for i in range(len(nodes))]
    return replace(value, items=tuple(cx.graph.fold(Op.INDEX, marked, p) for p in places))


def _offers_fit(cx: Lowering, key: str, length: int, span: Span) -> None:
    """Refuse values offered for a variable that are no tuples of its length."""
    odd = [v for v in cx.offered(key) if not isinstance(v, tuple) or len(v) != length]
    if odd:
        cx.refuse(
            span,
            "SEL911",
            f"`offer:` gives {odd[0]!r} for a variable that holds a tuple of {length} here",
            help=f"offer tuples of {length} elements",
        )


def of_one_shape(cx: Lowering, key: str, site: Site) -> bool:
    """Whether all values of a site are tuples of one length, if some of its marks rest on that.

    A variable that holds tuples of several lengths, or now a tuple and now a number, has a mark
    for each; a pin sets them all to one value, which only some of them could take.
    """
    lengths = cx.lengths.get(key)
    if lengths is None:
        return True
    held = [v for m in site.marks for v in cx.abs(m.node.args[0]).values or (None,)]
    return all(isinstance(v, tuple) and {len(v)} == lengths for v in held)


def unmarked(node: Node) -> Node:
    """The node under marks; an element of a marked tuple counts as what stands there."""
    return _under(node)[0]


def marks_over(node: Node) -> set[Node]:
    """The marks that `unmarked` takes away."""
    return set(_under(node)[1])


def _under(node: Node) -> tuple[Node, list[Node]]:
    marks: list[Node] = []
    while node.op in (Op.MARK, Op.INDEX):
        inner, over = _under(node.args[0])
        if node.op is Op.MARK:
            return inner, [*marks, node, *over]
        place = node.args[1].attr if node.args[1].is_const else None
        if inner.op is not Op.TUPLE or type(place) is not int:
            break
        marks += over
        node = inner.args[place]
    return node, marks
