"""`sum`, `min` and `max` of a generator that keeps some elements, which may depend on an input."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Final

from selc.frontend import access, builtins_, expr, iteration
from selc.frontend.context import Lowering, snippet
from selc.frontend.state import State
from selc.frontend.values import Tup, V
from selc.ir.graph import Node
from selc.ir.op import Op

_KEYWORD: Final = {"sum": "start", "min": "default", "max": "default"}


def filtered(e: ast.Call) -> bool:
    """Whether a call has the form `max(... for ... if ...)`, perhaps with a start or default."""
    if not isinstance(e.func, ast.Name) or e.func.id not in _KEYWORD or len(e.args) != 1:
        return False
    generator = e.args[0]
    if not isinstance(generator, ast.GeneratorExp) or not generator.generators[-1].ifs:
        return False
    return all(k.arg == _KEYWORD[e.func.id] for k in e.keywords)


@dataclass(slots=True)
class _Fold:
    """The value so far, and whether there is one; `items` while nothing depends on an input."""

    e: ast.Call
    name: str
    value: Node
    found: Node
    items: list[V] | None

    def add(self, cx: Lowering, st: State, item: V) -> Node:
        """The value with one more element."""
        node = expr.as_node(cx, st, item, self.e)
        if self.name == "sum":
            return expr.as_node(
                cx, st, expr.binary(cx, st, self.e, Op.ADD, self.value, node), self.e
            )
        op = Op.GT if self.name == "max" else Op.LT

        def compared(s: State) -> Node:
            sides = cx.operands(op, (cx.settle(node), cx.settle(self.value)), self.e)
            cx.check(s, self.e, op, None, sides)
            beats = cx.graph.fold(op, *sides, origin=cx.span(self.e))
            return cx.graph.select(beats, node, self.value)

        out = cx.branch(st, self.found, compared, access._give(node))
        assert isinstance(out, Node)
        return out

    def replay(self, cx: Lowering, st: State) -> None:
        """What was kept for certain so far, one by one."""
        for item in self.items or ():
            self.value, self.found = self.add(cx, st, item), cx.true
        self.items = None


def fold(cx: Lowering, st: State, e: ast.Call) -> V:
    """The value of such a call; elements are made, tested and used one after the other."""
    generator = e.args[0]
    assert isinstance(generator, ast.GeneratorExp)
    assert isinstance(e.func, ast.Name)
    name = e.func.id
    kwargs = {str(k.arg): expr.lower(cx, st, k.value) for k in e.keywords}
    so_far = _Fold(e, name, cx.graph.add(Op.FAIL), cx.false, [])

    def element(s: State, tests: list[ast.expr]) -> None:
        kept = iteration.all_hold(cx, s, tests)
        known = cx.known_bool(kept)
        if so_far.items is not None and known is not None:
            if known:
                so_far.items.append(expr.lower(cx, s, generator.elt))
            return
        if so_far.items is not None:
            if name == "sum":
                start = kwargs.get("start", cx.graph.const(0))
                so_far.value, so_far.found = expr.as_node(cx, s, start, e), cx.true
            so_far.replay(cx, s)
        value = cx.branch(
            s,
            kept,
            lambda t: so_far.add(cx, t, expr.lower(cx, t, generator.elt)),
            access._give(so_far.value),
        )
        assert isinstance(value, Node)
        so_far.value, so_far.found = value, cx.graph.either(so_far.found, kept)

    iteration._generate(cx, st, e, generator.generators, element)
    if so_far.items is not None:
        return builtins_.call(cx, st, e, name, (Tup(tuple(so_far.items)),), kwargs)
    if "default" in kwargs:
        default = access._give(kwargs["default"])
        return expr._sited(
            cx, st, e, cx.branch(st, so_far.found, access._give(so_far.value), default)
        )
    if name != "sum":
        cx.partial(st, e, so_far.found, "ValueError", f"`{snippet(e)}` must find an element")
    return expr._sited(cx, st, e, so_far.value)
