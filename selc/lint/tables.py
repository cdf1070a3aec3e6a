"""Rows of tables: which row the batch picks."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from selc.lint.values import OPAQUE, Taint, Val, dotted, join, step, tainted

if TYPE_CHECKING:
    from selc.lint.state import State


def lookup(state: State, node: ast.Subscript, base: Val, key: Val) -> Val:
    """`table[key]`: a choice if the key follows the batch."""
    fresh = {label: flow for label, flow in key.taint.items() if label not in base.taint}
    cause = step(fresh, state.at(node))
    if not cause:
        return Val(base.taint, opaque=True, fields=base.fields if base.fields else None)
    return _picked(state, node, node.value, base, cause)


def get(state: State, node: ast.Call, base: Val, key: Val) -> Val | None:
    """`table.get(key)`, for a base that is a table by its name or its text."""
    assert isinstance(node.func, ast.Attribute)
    if not key.taint or not is_table(state, node.func.value, base):
        return None
    return _picked(state, node, node.func.value, base, step(key.taint, state.at(node)))


def _settled(cause: Taint) -> Taint:
    """What a row carries: that it was searched for is told once."""
    return {
        label: flow._replace(threshold=f"row: {flow.threshold.partition(': ')[2]}")
        if flow.threshold.startswith(("bisect:", "nearest:"))
        else flow
        for label, flow in cause.items()
    }


def is_table(state: State, node: ast.expr, base: Val) -> bool:
    """Whether something holds one row for each size."""
    if base.fields is not None or base.items is not None:
        return True
    name = dotted(node)
    last = name.removesuffix(".()").rsplit(".", 1)[-1]
    if "buffer" in last or "cache" in last or "output" in last:
        return False
    return state.names.matches("tables", last) or (
        isinstance(node, ast.Name) and isinstance(state.module.constants.get(node.id), ast.Dict)
    )


def _picked(state: State, node: ast.expr, held: ast.expr, base: Val, cause: Taint) -> Val:
    from selc.lint.sinks import report

    searched = any(flow.threshold.startswith(("bisect:", "nearest:")) for flow in cause.values())
    if not searched and not is_table(state, held, base):
        return OPAQUE
    name = dotted(held)
    out = _settled(cause)
    rows = list((base.fields or {}).values()) or list(base.items or ())
    if rows and all(row.target is None and row.fields is None for row in rows):
        whole = rows[0]
        for row in rows[1:]:
            whole = join(whole, row)
        return tainted(whole, out)
    if any(hit.sink == f"{name}[...]" and hit.label in cause for hit in state.summary.hits):
        return Val(out)
    last = name.removesuffix(".()").rsplit(".", 1)[-1].lower()
    tuned = any(word in last for word in ("config", "tuned", "plan", "heuristic", "tactic", "best"))
    report(
        state,
        "SEL103",
        "error" if tuned else "warning",
        node,
        cause,
        sink=f"{name}[...]",
        role="row of a tuned table" if tuned else "row of a table",
        what=f"the row of `{name}`",
    )
    return Val(out)
