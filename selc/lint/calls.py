"""Calls: what flows into a callee, what comes back, which calls are choices themselves."""

from __future__ import annotations

import ast

from selc.lint.arithmetic import builtin, of_tensor, time_source
from selc.lint.attributes import constructed
from selc.lint.choice import is_launch
from selc.lint.expr import evaluate, run_lambda
from selc.lint.index import Class, Function
from selc.lint.instantiate import bind, hits_of_call, returned_by_call
from selc.lint.passing import check_filled, check_keywords, check_library, check_spread
from selc.lint.sinks import check_field, check_store, report
from selc.lint.state import State
from selc.lint.tables import get, is_table
from selc.lint.values import (
    CLEAN,
    OPAQUE,
    UNKNOWN,
    Partial,
    Taint,
    Val,
    dotted,
    merge,
    only,
    step,
    tainted,
)

_CONDITIONALS = ("torch.cond", "cond", "lax.cond")
_COMPILERS = ("compile", "get_kernel", "get_function", "get_compiled", "make_kernel", "build")


def call(state: State, node: ast.Call) -> Val:
    """The value of a call."""
    name = dotted(node.func)
    if state.names.is_mode(f"{name}.()") or state.names.is_mode(name):
        const = True if state.session.guarded else UNKNOWN
        return Val(const=const, mode=(state.at(node),))
    arguments = [evaluate(state, each) for each in node.args]
    keywords = {word.arg: evaluate(state, word.value) for word in node.keywords if word.arg}
    spread = [evaluate(state, word.value) for word in node.keywords if word.arg is None]
    if isinstance(node.func, ast.Subscript):
        return _subscripted(state, node, name, keywords)
    check_keywords(state, node, name, keywords)
    check_spread(state, node, name)
    check_library(state, node, name, arguments, keywords, spread)
    if name in _CONDITIONALS and arguments:
        return _conditional(state, node, name, arguments[0])
    if isinstance(node.func, ast.Name) and node.func.id in state.env:
        return _held(state, node, state.env[node.func.id], arguments, keywords)
    found = builtin(state, node, name, arguments, keywords)
    if found is None and isinstance(node.func, ast.Attribute):
        found = _method(state, node, node.func, name, arguments, keywords)
    if found is not None:
        return found
    target = state.resolve(name) if "(" not in name and "[" not in name else None
    if isinstance(target, Function):
        return _follow(state, node, target, arguments, keywords)
    last = name.rsplit(".", 1)[-1]
    if isinstance(target, Class) or last.lstrip("_")[:1].isupper():
        return _record(target, last, arguments, keywords)
    return _unknown(state, node, name, arguments, keywords)


def _conditional(state: State, node: ast.Call, name: str, predicate: Val) -> Val:
    """`torch.cond(predicate, one, other, operands)`."""
    branches = ", ".join(f"`{ast.unparse(each)}`" for each in node.args[1:3])
    what = f"the branch of `{name}` ({branches})"
    report(state, "SEL104", "warning", node, predicate.taint, sink=name, what=what)
    return OPAQUE


def _method(
    state: State,
    node: ast.Call,
    func: ast.Attribute,
    name: str,
    arguments: list[Val],
    keywords: dict[str, Val],
) -> Val | None:
    """A method of a table, a tensor, or an object whose class is known; None for another."""
    base = evaluate(state, func.value)
    if func.attr == "get" and arguments:
        row = get(state, node, base, arguments[0])
        if row is not None:
            return row
    if func.attr == "update":
        _update(state, node, func, base, arguments, keywords)
    known = of_tensor(state, node, base, func.attr, arguments, keywords)
    if known is not None:
        return known
    if isinstance(base.target, Class):
        method = base.target.method(state.session.index, func.attr)
        if method is not None:
            return _follow(state, node, method, arguments, keywords)
    by_branch = any(flow.control for flow in only(base.taint, "src").values())
    if by_branch and base.target is None and isinstance(func.value, ast.Name):
        _chosen_callee(state, node, name, base.taint)
    return None


def _update(
    state: State,
    node: ast.Call,
    func: ast.Attribute,
    base: Val,
    arguments: list[Val],
    keywords: dict[str, Val],
) -> None:
    """`config.update(...)`: fields, and what picked them as a whole."""
    for key, value in keywords.items():
        check_store(state, key, value, node, True)
    for given in arguments:
        for key, value in (given.fields or {}).items():
            check_field(state, node, key, value, "", "a configuration")
        if given.taint and isinstance(func.value, ast.Name):
            state.env[func.value.id] = tainted(base, given.taint)


def _record(target: object, name: str, arguments: list[Val], keywords: dict[str, Val]) -> Val:
    """A new object: its fields, and what picked it if it stands for a choice."""
    fields = dict(keywords)
    if isinstance(target, Class):
        fields |= constructed(target, arguments, keywords)
    for value in arguments:
        fields.update(value.fields or {})
    taint: Taint = CLEAN
    if name.endswith(("Key", "Config", "Descriptor", "Plan", "Choice", "Options")):
        for value in (*arguments, *fields.values()):
            taint = merge(taint, value.taint)
    return Val(taint, fields=fields, target=target if isinstance(target, Class) else None)


def _subscripted(state: State, node: ast.Call, name: str, keywords: dict[str, Val]) -> Val:
    """`kernel[grid](...)`, or a dict of functions."""
    assert isinstance(node.func, ast.Subscript)
    base = evaluate(state, node.func.value)
    if base.fields is None and is_launch(state.names, node):
        kernel = dotted(node.func.value)
        if base.taint and only(base.taint, "src"):
            _chosen_callee(state, node, kernel, base.taint)
        for word in node.keywords:
            if word.arg:
                value = keywords[word.arg]
                check_field(state, word.value, word.arg, value, kernel, f"launch `{kernel}`", True)
        check_spread(state, node, kernel)
        check_filled(state, node, kernel)
        return OPAQUE
    key = evaluate(state, node.func.slice)
    if key.taint and is_table(state, node.func.value, base):
        _chosen_callee(state, node, name, step(key.taint, state.at(node)))
    return OPAQUE


def _chosen_callee(state: State, node: ast.Call, name: str, taint: Taint) -> None:
    if isinstance(node.func, ast.Attribute) and not state.names.is_kernel(name):
        return
    report(state, "SEL102", "warning", node, taint, sink=name, what=f"which function `{name}` is")


def _held(
    state: State, node: ast.Call, held: Val, arguments: list[Val], keywords: dict[str, Val]
) -> Val:
    """A call of something in a variable."""
    name = dotted(node.func)
    sources = only(held.taint, "src")
    if sources and any(flow.control or flow.threshold for flow in held.taint.values()):
        _chosen_callee(state, node, name, sources)
    if isinstance(held.target, ast.Lambda):
        return run_lambda(state, held.target, arguments)
    if isinstance(held.target, Partial):
        given = held.target
        whole = [*given.arguments, *arguments]
        return _follow(state, node, given.function, whole, {**given.keywords, **keywords})
    if isinstance(held.target, Function):
        return _follow(state, node, held.target, arguments, keywords)
    rows: Taint = CLEAN
    for value in arguments[:1]:
        rows = value.rows
    return Val(rows=rows, opaque=True, mode=held.mode)  # the mode picked what it comes from


def _follow(
    state: State, node: ast.Call, target: Function, arguments: list[Val], keywords: dict[str, Val]
) -> Val:
    """A call of a function whose source is there."""
    bound = bind(target, arguments, keywords)
    name = dotted(node.func)
    told: set[int] = set()
    for position, each in enumerate(target.parameters):
        value = bound.get(position)
        if value is None or not only(value.taint, "src"):
            continue
        if state.names.role(each.arg, name.rsplit(".", 1)[-1]) in ("harmful", "opaque"):
            told.add(position)
            if each.arg not in keywords and position < len(node.args):
                check_field(state, node.args[position], each.arg, value, name, f"`{name}`")
    if state.is_kernel_source(target.node):
        return OPAQUE
    if state.names.matches("helpers", target.node.name) or target.node.name in _COMPILERS:
        return _unknown(state, node, name, arguments, keywords)
    matters = any(v.dirty or v.target or v.fields for v in bound.values())
    matters = matters or state.names.matches("selectors", target.node.name)
    if state.level <= 0 or not matters:
        return _unknown(state, node, name, arguments, keywords)
    summary = state.session.summary(target, state.level - 1)
    state.summary.guards += summary.returns.mode
    hits_of_call(state, node, summary, bound, told)
    return returned_by_call(state, node, target, summary, bound)


def _unknown(
    state: State, node: ast.Call, name: str, arguments: list[Val], keywords: dict[str, Val]
) -> Val:
    """A call of something whose source is not there."""
    last = name.rsplit(".", 1)[-1]
    if time_source(name):
        return Val(state.source("measured time", state.at(node)))
    values = [*arguments, *keywords.values()]
    taint, rows, vec = CLEAN, CLEAN, CLEAN
    for value in values:
        taint = merge(taint, value.taint)
        rows = merge(rows, value.rows)
        vec = merge(vec, value.vec)
    where = state.at(node)
    if state.names.matches("helpers", last):
        return Val(step(taint, where), rows=rows, vec=vec)
    if state.names.matches("selectors", last) and not last.startswith("get_"):
        cause = merge(taint, merge(vec, rows if last.lstrip("_").startswith("should") else CLEAN))
        return Val(step(cause, where, ast.unparse(node)[:80]), opaque=True)
    if state.names.matches("selectors", last):
        return Val(step(taint, where), opaque=True)
    if last in _COMPILERS:
        return Val(step(taint, where), opaque=True)
    if rows or name.startswith("torch."):
        return Val(rows=rows or taint, vec=vec, opaque=True)
    return Val(opaque=True)
