"""Sets of values that are known before serving: their size, and how they compare."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Final

from selc.frontend.context import Lowering
from selc.frontend.state import State
from selc.frontend.values import ListObj, Ref, V
from selc.ir.graph import Node
from selc.ir.value import Symbol, Value

FROZENSET: Final = "it is a frozenset"
"""Why a set must not be changed."""

_COMPARE: Final[dict[type[ast.cmpop], Callable[[frozenset[Value], frozenset[Value]], bool]]] = {
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
}


def known(cx: Lowering, st: State, value: V) -> frozenset[Value] | None:
    """The elements of a set, if it is one and all of them are known."""
    if not isinstance(value, Ref):
        return None
    obj = cx.heap.get(st, value)
    if not isinstance(obj, ListObj) or obj.kind != "set" or obj.unknown:
        return None
    out: list[Value] = []
    for item in obj.items:
        found = cx.known(item) if isinstance(item, Node) else None
        if found is None or not _plain(cx, found[0]):
            return None
        out.append(found[0])
    return frozenset(out)


def _plain(cx: Lowering, value: Value) -> bool:
    """Whether Python compares it as the graph does; Enum members may be numbers or texts too."""
    if isinstance(value, Symbol) and value.kind in cx.enums:
        members = cx.enums[value.kind]
        own = {i.name for i in members.cls.node.body if isinstance(i, ast.FunctionDef)}
        return members.mixin == "" and not own & {"__eq__", "__hash__"}
    return value == value and not isinstance(value, tuple)


def comparison(
    cx: Lowering, st: State, e: ast.expr, op: ast.cmpop, left: V, right: V
) -> Node | None:
    """`left <= right` and its kin; None if these are no sets."""
    rule = _COMPARE.get(type(op))
    sides = [cx.heap.get(st, v) for v in (left, right) if isinstance(v, Ref)]
    if rule is None or len(sides) < 2:
        return None
    if not all(isinstance(s, ListObj) and s.kind == "set" for s in sides):
        return None
    a, b = known(cx, st, left), known(cx, st, right)
    if a is None or b is None:
        cx.refuse(e, "SEL901", "comparing sets whose elements depend on an input is not supported")
    return cx.graph.const(rule(a, b))


__all__ = ["FROZENSET", "comparison", "known"]
