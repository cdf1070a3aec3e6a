"""Calls: what flows into a callee, what comes back, which calls are choices themselves."""

from __future__ import annotations

import ast

from selc.lint.arithmetic import builtin, of_tensor, time_source
from selc.lint.attributes import constructed
from selc.lint.choice import is_launch
from selc.lint.expr import evaluate, run_lambda
from selc.lint.index import Class, Function
from selc.lint.instantiate import bind, hits_of_call, returned_by_call
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
    _check_keywords(state, node, name, keywords)
    _check_spread(state, node, name)
    _check_library(state, node, name, arguments, keywords, spread)
    last = name.rsplit(".", 1)[-1]
    if last == "cond" and name in ("torch.cond", "cond", "lax.cond") and arguments:
        if arguments[0].taint:
            branches = ", ".join(f"`{ast.unparse(each)}`" for each in node.args[1:3])
            report(
                state,
                "SEL104",
                "warning",
                node,
                arguments[0].taint,
                sink=name,
                what=f"the branch of `{name}` ({branches})",
            )
        return OPAQUE
    if isinstance(node.func, ast.Name):
        held = state.env.get(node.func.id)
        if held is not None:
            return _held(state, node, held, arguments, keywords)
    found = builtin(state, node, name, arguments, keywords)
    if found is not None:
        return found
    if isinstance(node.func, ast.Attribute):
        base = evaluate(state, node.func.value)
        if last == "get" and arguments:
            row = get(state, node, base, arguments[0])
            if row is not None:
                return row
        if last == "update":
            for key, value in keywords.items():
                check_store(state, key, value, node, True)
            for given in arguments:
                for key, value in (given.fields or {}).items():
                    check_field(state, node, key, value, "", "a configuration")
                if given.taint and isinstance(node.func.value, ast.Name):
                    state.env[node.func.value.id] = tainted(base, given.taint)
        known = of_tensor(state, node, base, last, arguments, keywords)
        if known is not None:
            return known
        if isinstance(base.target, Class):
            method = base.target.method(state.session.index, last)
            if method is not None:
                return _follow(state, node, method, arguments, keywords)
        if base.taint and isinstance(node.func.value, ast.Name) and only(base.taint, "src"):
            if base.target is None and any(flow.control for flow in base.taint.values()):
                _chosen_callee(state, node, name, base.taint)
    target = state.resolve(name) if "(" not in name and "[" not in name else None
    if isinstance(target, Function):
        return _follow(state, node, target, arguments, keywords)
    if isinstance(target, Class) or last.lstrip("_")[:1].isupper():
        return _record(target, last, arguments, keywords)
    return _unknown(state, node, name, arguments, keywords)


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
        _check_spread(state, node, kernel)
        _check_filled(state, node, kernel)
        return OPAQUE
    key = evaluate(state, node.func.slice)
    if key.taint and is_table(state, node.func.value, base):
        _chosen_callee(state, node, name, step(key.taint, state.at(node)))
    return OPAQUE


def _check_filled(state: State, node: ast.Call, kernel: str) -> None:
    """A launch that computes split counts, its first argument, from lengths of the batch."""
    first = node.args[0] if node.args else None
    if not isinstance(first, ast.Name) or "split" not in kernel:
        return
    if state.names.role(first.id) != "harmful":
        return
    taint: Taint = CLEAN
    for each in node.args[1:]:
        value = evaluate(state, each)
        taint = merge(taint, merge(value.vec, value.taint))
    report(
        state,
        "SEL101",
        "error",
        node,
        taint,
        sink=first.id,
        role="harmful",
        what=f"`{first.id}`, which `{kernel}` fills,",
    )


def _chosen_callee(state: State, node: ast.Call, name: str, taint: Taint) -> None:
    if isinstance(node.func, ast.Attribute) and not state.names.is_kernel(name):
        return
    report(state, "SEL102", "warning", node, taint, sink=name, what=f"which function `{name}` is")


def _held(
    state: State, node: ast.Call, held: Val, arguments: list[Val], keywords: dict[str, Val]
) -> Val:
    """A call of something in a variable."""
    name = dotted(node.func)
    if held.taint and any(flow.control or flow.threshold for flow in held.taint.values()):
        if only(held.taint, "src"):
            _chosen_callee(state, node, name, only(held.taint, "src"))
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
    return Val(rows=rows, opaque=True)


def _check_keywords(state: State, node: ast.Call, name: str, keywords: dict[str, Val]) -> None:
    if not keywords or name.rsplit(".", 1)[-1] in ("debug", "info", "warning", "error", "dict"):
        if name != "dict":
            return
    for word in node.keywords:
        if word.arg:
            value = keywords[word.arg]
            if value.taint:
                check_field(state, word.value, word.arg, value, name, f"`{name}`")


def _check_spread(state: State, node: ast.Call, name: str) -> None:
    """`**config`, where the batch picked the whole configuration; variables named like fields."""
    for word in node.keywords:
        if word.arg is None:
            value = evaluate(state, word.value)
            text = dotted(word.value).rsplit(".", 1)[-1]
            if value.taint and state.names.matches("tables", text):
                report(
                    state,
                    "SEL101",
                    "error",
                    word.value,
                    value.taint,
                    sink=text,
                    role="configuration",
                    what=f"the configuration `{text}` of `{name}`",
                )
    if name.startswith("torch.") and not name.startswith("torch.ops."):
        return
    for each in node.args:
        if isinstance(each, ast.Name) and state.names.role(each.id) in ("harmful", "opaque"):
            value = evaluate(state, each)
            if value.taint and not state.names.matches("helpers", name.rsplit(".", 1)[-1]):
                check_field(state, each, each.id, value, name, f"`{name}`")


def _check_library(
    state: State,
    node: ast.Call,
    name: str,
    arguments: list[Val],
    keywords: dict[str, Val],
    spread: list[Val],
) -> None:
    """A call into a library whose choice follows the batch unless it is pinned."""
    entry = state.names.library(name)
    if entry is None or state.silent or _is_other_library(state, name):
        return
    if any(isinstance(each, ast.Starred) for each in node.args) and spread:
        return  # it hands on whatever it was given
    if entry.argument:
        if any(word.arg == entry.argument and _is_pin(state, word.value) for word in node.keywords):
            return
        if any(isinstance(each, ast.Name) and each.id in state.names.pins for each in node.args):
            return
        given = keywords.get(entry.argument)
        for each in spread:
            given = given or (each.fields or {}).get(entry.argument)
        if given is not None and "*" in entry.pinned:
            return
        if given is not None and given.const is not UNKNOWN and repr(given.const) in entry.pinned:
            return
        if given is not None and given.const is UNKNOWN and not given.taint:
            if not given.mode and not given.opaque:
                return
        if "disable_split_kv" in keywords:
            return
    where = state.at(node)
    taint: Taint = CLEAN
    for value in (*arguments, *keywords.values()):
        taint = merge(taint, only(merge(value.rows, merge(value.vec, value.taint)), "src"))
    if not taint:
        taint = state.source("the shapes of the batch", where)
    level = "warning"
    report(
        state,
        entry.rule,
        level,
        node,
        taint,
        sink=name,
        role="library",
        what=f"`{name}` follows the batch inside: {entry.follows}",
        help=entry.pin,
    )


def _is_other_library(state: State, name: str) -> bool:
    """AITER's functions share names with FlashAttention's and take no split."""
    head = name.partition(".")[0]
    whole = state.local_imports.get(head) or state.module.imports.get(head, head)
    return "aiter" in whole


def _is_pin(state: State, node: ast.expr) -> bool:
    """Whether an argument is an attribute that is a pin itself: it is judged where it is set."""
    if not isinstance(node, ast.Attribute) or node.attr not in state.names.pins:
        return False
    return not (isinstance(node.value, ast.Name) and node.value.id == state.receiver)


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
    if state.level <= 0 or not any(v.dirty or v.target or v.fields for v in bound.values()):
        if state.level <= 0 or not state.names.matches("selectors", target.node.name):
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
