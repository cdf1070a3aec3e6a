"""Lookups in constant tables: projections, compositions, and tables that say one thing."""

from __future__ import annotations

from collections.abc import Sequence

from selc.ir.graph import Graph, Node
from selc.ir.op import Op
from selc.ir.value import Value, value_key
from selc.passes.peval import constant
from selc.passes.rebuild import Images, rebuild


def table(graph: Graph, roots: Sequence[Node], given: Sequence[Node] = ()) -> tuple[Graph, Images]:
    """Move operations into the tables that they read, and drop tables with one value.

    Before:

        v1 = lookup v0  {1: (16, 64), 32: (32, 64)}
        v2 = index v1, 0
        v3 = index v1, 1

    After: `v2` is `lookup v0 {1: 16, 32: 32}` and `v3` is the constant 64. A key that is not in
    the table gives no value, before and after; its guard stands apart.
    """
    return rebuild(graph, roots, lookups)


def lookups(new: Graph, node: Node, args: tuple[Node, ...]) -> Node | None:
    """The rule of this pass."""
    op = node.op
    if op is Op.LOOKUP:
        return _lookup(new, node.attr, args[0])
    if op in (Op.SELECT, Op.CONST, Op.INPUT, Op.MARK, Op.FAIL):
        return None
    return _through(new, op, node.attr, args)


def _lookup(new: Graph, attr: Value, key: Node) -> Node:
    assert isinstance(attr, tuple)
    if not attr:
        return new.add(Op.FAIL)
    if len({value_key(v) for _, v in attr}) == 1:
        return new.const(attr[0][1])
    if key.op is Op.LOOKUP:
        rows = _mapped(new, key.attr, Op.LOOKUP, attr, (key,), 0)
        if rows is not None:
            return _lookup(new, rows, key.args[0])
    return new.add(Op.LOOKUP, key, attr=attr)


def _through(new: Graph, op: Op, attr: Value, args: tuple[Node, ...]) -> Node | None:
    """The operation applied to each row of the one argument that is a lookup."""
    at = -1
    for k, a in enumerate(args):
        if a.is_const:
            continue
        if at >= 0 or a.op is not Op.LOOKUP:
            return None
        at = k
    if at < 0 or op is Op.OK:
        return None
    rows = _mapped(new, args[at].attr, op, attr, args, at)
    return None if rows is None else _lookup(new, rows, args[at].args[0])


def _mapped(
    new: Graph, rows: Value, op: Op, attr: Value, args: tuple[Node, ...], at: int
) -> tuple[Value, ...] | None:
    """The rows with the operation applied to their values; failing ones are left out."""
    assert isinstance(rows, tuple)
    out = []
    for key, value in rows:
        made = constant(
            new, op, attr, tuple([value if k == at else a.attr for k, a in enumerate(args)])
        )
        if made is None:
            return None
        if made.is_const:
            out.append((key, made.attr))
    return tuple(out)
