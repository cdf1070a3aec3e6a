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
    module, _, last = name.rpartition(".")
    if name in _CLEAN_CALLS:
        return NOTHING
    if name == "dict":
        return Val(fields=keywords)
    if not arguments:
        return None
    if last in _REDUCERS and module in ("", "np", "torch", "numpy", "math"):
        return _reduced(state, node, arguments, keywords)
    if name in ("sorted", "list", "tuple", "set", "reversed", "iter"):
        return arguments[0]
    if name in ("range", "enumerate", "zip", "map", "filter"):
        taint: Taint = CLEAN
        for value in arguments:
            taint = merge(taint, merge(value.vec, value.rows))
        return Val(vec=taint)
    return _named_builtin(state, node, name, arguments, keywords)


def _named_builtin(
    state: State, node: ast.Call, name: str, arguments: list[Val], keywords: dict[str, Val]
) -> Val | None:
    """`len`, `next`, `bisect`, `getattr`, `partial`."""
    where, first = state.at(node), arguments[0]
    match name.rsplit(".", 1)[-1]:
        case "len" if name == "len":
            size = CLEAN if first.shape else merge(first.rows, first.vec)
            return Val(step(size, where), opaque=not size and not first.shape)
        case "next" if name == "next":
            return Val(merge(first.taint, first.vec))
        case "bisect" | "bisect_left" | "bisect_right" if len(arguments) > 1:
            words = f"bisect: {state.module.line(node.lineno)}"[:90]
            return Val(step(arguments[1].taint, where, words))
        case "getattr" if len(arguments) > 1:
            return _getattr(state, node, arguments[1])
        case "partial":
            target = state.resolve(dotted(node.args[0])) if node.args else None
            if isinstance(target, Function):
                return Val(target=Partial(target, tuple(arguments[1:]), keywords))
            return first
        case _:
            return None


def _getattr(state: State, node: ast.Call, name: Val) -> Val:
    from selc.lint.expr import evaluate

    key = node.args[1]
    if isinstance(key, ast.Constant) and isinstance(key.value, str):
        read = ast.copy_location(ast.Attribute(node.args[0], key.value, ast.Load()), node)
        return evaluate(state, read)
    return Val(name.taint, opaque=True)


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
    if method in _KEYS:
        return base
    if method == "size" and (base.rows or base.vec):
        if not arguments:
            return Val(shape=step(base.rows, where))
        return Val(step(base.rows, where)) if arguments[0].const == 0 else NOTHING
    if method == "numel" and (base.rows or base.shape):
        return Val(step(merge(base.rows, base.shape), where))
    if method in _REDUCERS and base.vec:
        return Val(step(base.vec, where))
    if method in ("tolist", "cpu", "cuda", "to", "clone", "numpy", "contiguous", "int", "long"):
        return base
    return _other_method(state, node, base, method, arguments)


def _other_method(
    state: State, node: ast.Call, base: Val, method: str, arguments: list[Val]
) -> Val | None:
    """What is left: numbers stay numbers, tensors keep their rows."""
    if base.taint and method in ("bit_length", "item", "max", "min", "sum", "__index__"):
        return Val(step(base.taint, state.at(node)))
    if base.rows or base.vec:
        if method in _REDUCERS:
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
