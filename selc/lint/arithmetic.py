"""Builtins, tensors and collections: what of the batch survives an operation."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from selc.lint.index import Function
from selc.lint.values import CLEAN, NOTHING, Partial, Taint, Val, dotted, merge, step

if TYPE_CHECKING:
    from selc.lint.state import State

_REDUCERS = ("max", "min", "sum", "mean", "any", "all", "amax", "amin", "item", "prod", "median")
_CLEAN_METHODS = (
    "element_size",
    "dim",
    "stride",
    "is_contiguous",
    "storage_offset",
    "data_ptr",
    "type",
)
_CLEAN_CALLS = ("isinstance", "hasattr", "type", "id", "print", "repr", "callable", "issubclass")
_KEYS = ("keys", "values", "items")


def builtin(
    state: State, node: ast.Call, name: str, arguments: list[Val], keywords: dict[str, Val]
) -> Val | None:
    """A builtin, or a function that does the same; None for another."""
    last = name.rsplit(".", 1)[-1]
    where = state.at(node)
    module = name.rpartition(".")[0]
    if name in _CLEAN_CALLS:
        return NOTHING
    if name == "len" and arguments:
        value = arguments[0]
        if value.shape:
            return NOTHING
        size = merge(value.rows, value.vec)
        return Val(step(size, where), opaque=not size)
    if last in _REDUCERS and module in ("", "np", "torch", "numpy", "math") and arguments:
        return _reduced(state, node, arguments, keywords)
    if name in ("sorted", "list", "tuple", "set", "reversed", "iter") and arguments:
        return arguments[0]
    if last in ("bisect", "bisect_left", "bisect_right") and len(arguments) > 1:
        return Val(
            step(arguments[1].taint, where, f"bisect: {state.module.line(node.lineno)}"[:90])
        )
    if name == "getattr" and len(node.args) >= 2:
        key = node.args[1]
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            from selc.lint.expr import evaluate

            read = ast.copy_location(ast.Attribute(node.args[0], key.value, ast.Load()), node)
            return evaluate(state, read)
    if name == "getattr" and len(arguments) > 1:
        return Val(arguments[1].taint, opaque=True)
    if name == "dict":
        return Val(fields=keywords)
    if name in ("range", "enumerate", "zip", "map", "filter"):
        taint: Taint = CLEAN
        for value in arguments:
            taint = merge(taint, merge(value.vec, value.rows))
        return Val(vec=taint)
    if name == "next" and arguments:
        value = arguments[0]
        return Val(merge(value.taint, value.vec))
    if name in ("functools.partial", "partial") and node.args:
        target = state.resolve(dotted(node.args[0]))
        if isinstance(target, Function):
            return Val(target=Partial(target, tuple(arguments[1:]), keywords))
        return arguments[0]
    return None


def _reduced(state: State, node: ast.Call, arguments: list[Val], keywords: dict[str, Val]) -> Val:
    """`max(a, b)`, `sum(lens)`, `min(keys, key=lambda k: abs(k - m))`."""
    from selc.lint.expr import run_lambda

    where = state.at(node)
    taint, vec = CLEAN, CLEAN
    for value in arguments:
        several = len(arguments) > 1 and isinstance(node.func, ast.Name)
        taint = merge(taint, value.taint if several else merge(value.taint, value.vec))
        vec = merge(vec, value.vec) if several else vec
        for item in value.items or ():
            taint = merge(taint, item.taint)
    key = keywords.get("key")
    if key is not None and isinstance(key.target, ast.Lambda):
        chosen = run_lambda(state, key.target, [NOTHING])
        taint = merge(
            taint, step(chosen.taint, where, f"nearest: {state.module.line(node.lineno)}"[:90])
        )
    opaque = all(value.opaque for value in arguments)
    return Val(step(taint, where), vec=vec, opaque=opaque)


def of_tensor(
    state: State,
    node: ast.Call,
    base: Val,
    method: str,
    arguments: list[Val],
    keywords: dict[str, Val],
) -> Val | None:
    """A method of a tensor, a shape or a collection; None for another."""
    where = state.at(node)
    if method in _CLEAN_METHODS:
        return NOTHING
    if method == "size" and (base.rows or base.vec):
        if not arguments:
            return Val(shape=step(base.rows, where))
        first = arguments[0].const == 0
        return Val(step(base.rows, where)) if first else NOTHING
    if method == "numel" and (base.rows or base.shape):
        return Val(step(merge(base.rows, base.shape), where))
    if method in _KEYS:
        return base
    if method in _REDUCERS and base.vec:
        return Val(step(base.vec, where))
    if method in ("tolist", "cpu", "cuda", "to", "clone", "numpy", "contiguous", "int", "long"):
        return base
    if base.taint and method in ("bit_length", "item", "tolist", "max", "min", "sum", "__index__"):
        return Val(step(base.taint, where))
    if base.rows or base.vec:
        if method in ("max", "min", "sum", "amax", "mean", "item", "any", "all"):
            return Val(opaque=True)
        return Val(rows=base.rows, vec=base.vec, opaque=True)
    if base.shape:
        return NOTHING
    if method.startswith("new_") and arguments:
        return Val(rows=arguments[0].taint, opaque=True)
    return None


def time_source(name: str) -> bool:
    """Whether a call measures time."""
    last = name.rsplit(".", 1)[-1]
    return last in (
        "do_bench",
        "do_bench_cudagraph",
        "elapsed_time",
        "perf_counter",
        "perf_counter_ns",
    )
