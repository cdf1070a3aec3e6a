"""Targets of assignments: names, unpacking, and the sites that definitions mark."""

from __future__ import annotations

import ast
from dataclasses import replace

from selc.diag.span import Span
from selc.frontend import (
    expr,
    iteration,
    names,
    places,
    writing,
)
from selc.frontend.context import Lowering, snippet
from selc.frontend.sites import stores
from selc.frontend.state import State
from selc.frontend.tuplesite import mark_tuple
from selc.frontend.values import (
    Choice,
    ListObj,
    Opaque,
    Unbound,
    V,
)
from selc.ir.graph import Node
from selc.ir.op import Op


def marks(cx: Lowering, st: State, statement: ast.stmt) -> None:
    """Mark the definitions that a statement makes."""
    frame = cx.frame
    if frame.silent:
        return
    if isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
        for name in stores(statement):
            number = frame.plan.numbers.get((id(statement), name))
            if number is not None and (frame.plan.totals[name] > 1 or frame.iterations):
                _mark(cx, st, name, f"{name}#{number}", "definition", statement, always=False)
    for name in frame.plan.joins.get(id(statement), ()):
        _mark(cx, st, name, name, "variable", statement, always=name in frame.plan.inner)
    places.defined(cx, st, statement)


def _mark(
    cx: Lowering, st: State, name: str, base: str, kind: str, statement: ast.stmt, always: bool
) -> None:
    value = st.scopes.get(cx.frame.scope, {}).get(name)
    span = _definition(cx, statement, name)
    if isinstance(value, Node) and value.op is not Op.FAIL and (always or not cx.fixed(value)):
        st.scopes[cx.frame.scope][name] = cx.mark(st, base, kind, value, span)
    elif (row := mark_tuple(cx, st, base, kind, value, span, always)) is not None:
        st.scopes[cx.frame.scope][name] = row
    elif value is not None and not isinstance(value, (Node, Unbound)):
        # On some path it is unbound or no scalar: overwriting it there is not what a pin does.
        cx.spoiled.add(cx.site_key(base))


def _definition(cx: Lowering, statement: ast.stmt, name: str) -> Span:
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            return cx.span(node)
    return cx.span(statement)


def assign(cx: Lowering, st: State, target: ast.expr, value: V) -> None:
    """Bind a target."""
    match target:
        case ast.Name():
            names.store(cx, st, target.id, value)
        case ast.Tuple() | ast.List():
            _unpack(cx, st, target, value)
        case ast.Subscript():
            writing.store_subscript(cx, st, target, value)
        case ast.Attribute():
            writing.store_attribute(cx, st, target, value)
        case _:
            cx.refuse(target, "SEL901", "this assignment target is not supported")


def _unpack(cx: Lowering, st: State, target: ast.Tuple | ast.List, value: V) -> None:
    stars = [i for i, t in enumerate(target.elts) if isinstance(t, ast.Starred)]
    items = _parts_of(cx, st, value, target, None if stars else len(target.elts))
    if stars:
        before, after = stars[0], len(target.elts) - stars[0] - 1
        if len(items) < before + after:
            cx.partial(st, target, cx.false, "ValueError", f"`{snippet(target)}` needs more values")
            return
        middle = items[before : len(items) - after]
        star = target.elts[before]
        assert isinstance(star, ast.Starred)
        parts = [*items[:before], cx.heap.new(st, ListObj(middle)), *items[len(items) - after :]]
        elements = [t.value if isinstance(t, ast.Starred) else t for t in target.elts]
        for t, v in zip(elements, parts, strict=True):
            assign(cx, st, t, v)
        return
    if len(items) != len(target.elts):
        cx.partial(
            st,
            target,
            cx.false,
            "ValueError",
            f"`{snippet(target)}` must get {len(target.elts)} values, not {len(items)}",
        )
        for t in target.elts:
            assign(cx, st, t, cx.graph.add(Op.FAIL))
        return
    for t, v in zip(target.elts, items, strict=True):
        assign(cx, st, t, v)


def _parts_of(cx: Lowering, st: State, value: V, e: ast.AST, count: int | None) -> tuple[V, ...]:
    """The elements that are unpacked; something opaque has as many opaque ones as are asked for."""
    if isinstance(value, Opaque) and value.made and count is not None:
        return tuple(replace(value, text=f"{value.text}[{i}]") for i in range(count))
    if isinstance(value, Choice) and count is not None:
        a, b = _parts_of(cx, st, value.then, e, count), _parts_of(cx, st, value.other, e, count)
        if len(a) == len(b) == count:
            pairs = zip(a, b, strict=True)
            return tuple(
                cx.graph.select(value.cond, x, y)
                if isinstance(x, Node) and isinstance(y, Node)
                else Choice(value.cond, x, y)
                for x, y in pairs
            )
    if isinstance(value, Opaque):
        cx.refuse(
            e,
            "SEL905",
            f"{expr.describe(cx, st, value)} is unpacked",
            help="state it under `functions:` or `objects:`",
        )
    return iteration.iterate(cx, st, value, e)
