"""`==` of dicts, lists and objects, by their contents."""

from __future__ import annotations

import ast

from selc.frontend import calls, comparing, expr, names, reading
from selc.frontend.context import Lowering
from selc.frontend.state import State
from selc.frontend.values import DictObj, InstObj, ListObj, Obj, Ref, Tup, V
from selc.ir.graph import Node
from selc.ir.op import Op


def equal(cx: Lowering, st: State, e: ast.expr, left: V, right: V) -> Node:
    """Whether two values are equal, as a bool node."""
    if not isinstance(left, Ref) and not isinstance(right, Ref):
        return expr.truth(cx, st, comparing.compare(cx, st, e, ast.Eq(), left, right), e)
    if left == right:
        return cx.true
    a = cx.obj(st, left, e) if isinstance(left, Ref) else None
    b = cx.obj(st, right, e) if isinstance(right, Ref) else None
    if a is None or b is None:
        _identified(cx, st, e, a or b)
        other = right if a is not None else left
        if not isinstance(other, (Node, Tup)):
            cx.refuse(
                e, "SEL901", "comparing these objects is not supported", help="compare their fields"
            )
        return cx.false
    if isinstance(a, DictObj) and isinstance(b, DictObj):
        return _dicts(cx, st, e, a, b)
    if (
        isinstance(a, ListObj)
        and isinstance(b, ListObj)
        and a.kind == b.kind == "list"
        and not (a.unknown or b.unknown)
    ):
        if len(a.items) != len(b.items):
            return cx.false
        return _all(cx, [equal(cx, st, e, x, y) for x, y in zip(a.items, b.items, strict=True)])
    if isinstance(a, InstObj) and isinstance(b, InstObj):
        return _objects(cx, st, e, a, b, left, right)
    if isinstance(a, ListObj) and isinstance(b, ListObj):
        cx.refuse(e, "SEL901", "comparing these collections is not supported")
    _identified(cx, st, e, a)
    _identified(cx, st, e, b)
    return cx.false


def _all(cx: Lowering, verdicts: list[Node]) -> Node:
    out = cx.true
    for verdict in verdicts:
        out = cx.graph.both(out, verdict)
    return out


def _dicts(cx: Lowering, st: State, e: ast.expr, a: DictObj, b: DictObj) -> Node:
    for obj in (a, b):
        if obj.unknown:
            names.refuse_state(cx, e, obj.unknown)
    out = cx.true
    for key in {**a.entries, **b.entries}:
        x, y = a.entries.get(key), b.entries.get(key)
        one, two = cx.false if x is None else x.present, cx.false if y is None else y.present
        out = cx.graph.both(out, cx.graph.fold(Op.EQ, one, two))
        if x is not None and y is not None:
            same = equal(cx, st, e, x.value, y.value)
            out = cx.graph.both(out, cx.graph.either(cx.graph.negate(one), same))
    return out


def _objects(
    cx: Lowering, st: State, e: ast.expr, a: InstObj, b: InstObj, left: V, right: V
) -> Node:
    """Dataclasses of one class by their fields, other objects by identity."""
    if (
        a.cls is not None
        and b.cls is not None
        and a.cls.node is b.cls.node
        and calls.is_dataclass(a.cls)
    ):
        names = [f[0] for f in calls.all_fields(cx, a.cls)]
        pairs = [(a.fields.get(n), b.fields.get(n)) for n in names]
        if all(x is not None and y is not None for x, y in pairs):
            return _all(
                cx,
                [
                    equal(cx, st, e, x.value, y.value)
                    for x, y in pairs
                    if x is not None and y is not None
                ],
            )
    _identified(cx, st, e, a)
    _identified(cx, st, e, b)
    known = {o for r in (left, right) if isinstance(r, Ref) for o in (r.oid,)}
    if any(o in cx.heap.superseded or o in cx.heap.sources for o in known):
        cx.refuse(
            e,
            "SEL901",
            "whether two objects are the same is not certain here",
            help="compare their fields",
        )
    return cx.false


def _identified(cx: Lowering, st: State, e: ast.expr, obj: Obj | None) -> None:
    """Refuse objects whose class decides what they are equal to."""
    if isinstance(obj, InstObj) and (
        obj.cls is None or reading.class_member(cx, st, obj.cls, "__eq__") is not None
    ):
        cx.refuse(
            e, "SEL901", "comparing these objects is not supported", help="compare their fields"
        )
