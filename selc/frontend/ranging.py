"""`for ... in range(...)` whose bounds depend on an input: unrolled to the widest, left early."""

from __future__ import annotations

import ast
from typing import Final, NamedTuple

from selc.frontend import builtins_, expr, names
from selc.frontend.context import Lowering, snippet
from selc.frontend.state import State
from selc.frontend.values import External, V
from selc.ir.graph import Node
from selc.ir.op import Op

MAX_STEPS: Final = 1024
"""Iterations of a loop whose number is not known before serving."""


class Steps(NamedTuple):
    """The elements that a range may have, and for each whether it has it.

    An element is present only if all before it are.
    """

    items: tuple[Node, ...]
    present: tuple[Node, ...]


def iterable(cx: Lowering, st: State, e: ast.expr) -> V | Steps:
    """What a loop runs over; steps for a call of `range` whose length depends on an input."""
    if not _is_range(cx, st, e):
        return expr.lower(cx, st, e)
    assert isinstance(e, ast.Call)
    args = [cx.settle(expr.scalar(cx, st, a)) for a in e.args]
    start, stop, step = {
        1: (cx.graph.const(0), *args, cx.graph.const(1)),
        2: (*args, cx.graph.const(1)),
    }.get(len(args), tuple(args))
    return _steps(cx, e, start, stop, step) or builtins_.call(cx, st, e, "range", tuple(args), {})


def _is_range(cx: Lowering, st: State, e: ast.expr) -> bool:
    return (
        isinstance(e, ast.Call)
        and isinstance(e.func, ast.Name)
        and e.func.id == "range"
        and not e.keywords
        and 1 <= len(e.args) <= 3
        and not any(isinstance(a, ast.Starred) for a in e.args)
        and names.fact_for(cx, st, e.func) is None
        and expr.lower(cx, st, e.func) == External("builtins.range")
    )


def _steps(cx: Lowering, e: ast.Call, start: Node, stop: Node, step: Node) -> Steps | None:
    """The steps between bounds of which one is not known; None if both are, or have no range."""
    if (start.is_const and stop.is_const) or not step.is_const:
        return None
    by = step.attr
    if type(by) is not int or by == 0:
        return None
    first, last = cx.abs(start), cx.abs(stop)
    if not (first.is_integral and last.is_integral):
        return None
    low, high = (first.lo, last.hi) if by > 0 else (first.hi, last.lo)
    if low is None or high is None:
        return None
    count = len(range(low, high, by))
    if count > MAX_STEPS:
        cx.refuse(
            e.args[min(1, len(e.args) - 1)],
            "SEL902",
            f"`{snippet(e)}` has a bound that depends on an input: up to {count} elements",
            help=f"at most {MAX_STEPS} can be followed: bound it, as in `range(min(n, 128))`, or "
            "narrow the range of what it reads",
        )
    items = [cx.graph.fold(Op.ADD, start, cx.graph.const(i * by)) for i in range(count)]
    within = Op.LT if by > 0 else Op.GT
    return Steps(tuple(items), tuple([cx.graph.fold(within, i, stop) for i in items]))
