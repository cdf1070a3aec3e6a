"""Decorators that the source itself defines: one that hands the function back changes nothing."""

from __future__ import annotations

import ast
from contextlib import suppress

from selc.diag.diagnostic import Refused
from selc.frontend import calls, expr, names
from selc.frontend.context import Lowering
from selc.frontend.state import State
from selc.frontend.values import Bound, Func, Partial


def unchanged(cx: Lowering, decorator: ast.expr, func: Func) -> bool:
    """Whether a decorator can be followed and gives back the very function that it gets."""
    frame = names.module_frame(cx, func.module)
    st = State(cx.true)
    st.scopes[frame.scope] = {}
    cx.frames.append(frame)
    conds, bases, handlers = cx.conds, cx.bases, cx.handlers
    cx.conds, cx.bases, cx.handlers = [], [cx.true], []
    try:
        with suppress(Refused), cx.tentative():
            callee = expr.lower(cx, st, decorator)
            if isinstance(callee, (Func, Bound, Partial)):
                given = calls.invoke(cx, st, decorator, callee, (func,), {})
                return isinstance(given, Func) and given.node is func.node and st.live is cx.true
    finally:
        cx.frames.pop()
        cx.conds, cx.bases, cx.handlers = conds, bases, handlers
    return False
