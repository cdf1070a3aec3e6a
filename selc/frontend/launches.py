"""Opaque calls: kernels and library operations whose arguments are the choices.

A call that cannot be looked into is a launch. Its constexprs and keyword options are choices, and so
is the callee that a path takes. What has been launched on a path is part of the state, so joins
gate it like any variable.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Final

from selc.frontend import tensors
from selc.frontend.context import Lowering, snippet
from selc.frontend.state import State
from selc.frontend.values import Choice, Opaque, Ref, Tup, Unbound, V
from selc.ir.graph import Node
from selc.ir.op import Op

SCOPE: Final = -2
"""The pseudo-scope of a state that holds what has been launched."""

CALL: Final = "call"

QUERIES: Final = ("is_", "has_", "get_", "supports_", "can_", "should_", "current_", "use_")
"""Opaque functions of these names answer questions; they launch nothing."""

QUIET: Final = frozenset({
    "arange", "tensor", "as_tensor", "cat", "stack", "device", "finfo", "iinfo", "promote_types", "result_type",
    "Generator", "Size", "numel", "is_tensor", "compile", "no_grad", "broadcast_shapes", "set_default_dtype",
})  # fmt: skip
"""torch functions that build or describe tensors and compute nothing that a kernel choice would change."""

KERNEL_OPTIONS: Final = frozenset({"num_warps", "num_stages", "num_ctas", "waves_per_eu", "matrix_instr_nonkdim", "kpack"})


def records(name: str) -> bool:
    """Whether calling a name that cannot be followed is a launch."""
    last = name.rpartition(".")[2]
    if last.startswith(QUERIES) or name.startswith(("torch.cuda.", "torch.distributed.get", "numpy.", "typing.", "torch.testing.")):
        return False
    return not (name.startswith("torch.") and (last in QUIET or name in tensors.ALLOCATORS or name in tensors.LIKE))


def launch(
    cx: Lowering, st: State, e: ast.Call, spelling: str, parameters: tuple[str, ...], constexprs: frozenset[str],
    args: tuple[V, ...], kwargs: Mapping[str, V],
) -> V:  # fmt: skip
    """Note a launch on this path; its result cannot be seen."""
    name = _name(cx, e, spelling)
    before = st.scopes.setdefault(SCOPE, {}).get(CALL)
    text = cx.graph.const(spelling)
    if isinstance(before, Node):
        text = cx.graph.fold(Op.ADD, before, cx.graph.const(" + " + spelling))
    elif isinstance(before, Choice):
        text = _after(cx, before, spelling)
    st.scopes[SCOPE][CALL] = text
    cx.launch_roles.setdefault(CALL, "bits")
    for i, value in enumerate(args):
        key = parameters[i] if i < len(parameters) else f"[{i}]"
        _argument(cx, st, name, key, value, "bits" if key in constexprs else "aux")
    for key, value in kwargs.items():
        plain = key in parameters and key not in constexprs and bool(constexprs)
        _argument(cx, st, name, key, value, "aux" if plain else "bits")
    return Opaque(snippet(e))


def _after(cx: Lowering, before: V, spelling: str) -> Node:
    """The callees so far, and one more."""
    if isinstance(before, Choice):
        return cx.graph.select(before.cond, _after(cx, before.then, spelling), _after(cx, before.other, spelling))
    if isinstance(before, Node):
        return cx.graph.fold(Op.ADD, before, cx.graph.const(" + " + spelling))
    return cx.graph.const(spelling)


def _name(cx: Lowering, e: ast.Call, spelling: str) -> str:
    """`CALLEE`, `CALLEE#2` for the second place that calls it, `[i]` in an unrolled loop."""
    place = (cx.frame.instance.key, e.lineno, e.col_offset)
    places = cx.launch_places.setdefault(spelling, [])
    if place not in places:
        places.append(place)
    n = places.index(place) + 1
    return spelling + (f"#{n}" if n > 1 else "") + cx.frame.iterations


def _argument(cx: Lowering, st: State, name: str, key: str, value: V, role: str) -> None:
    point = f"{name}{key}" if key.startswith("[") else f"{name}.{key}"
    found = _choice(cx, st, value)
    if found is None:
        return
    st.scopes[SCOPE][point] = found
    if cx.launch_roles.get(point) != "bits":
        cx.launch_roles[point] = role


def _choice(cx: Lowering, st: State, value: V) -> V | None:
    """An argument as a choice, None if it is none: a tensor, a function, something opaque."""
    if isinstance(value, (Node, Unbound)):
        return value
    if isinstance(value, Tup):
        parts = [_choice(cx, st, v) for v in value.items]
        nodes = [p for p in parts if isinstance(p, Node)]
        return cx.graph.fold(Op.TUPLE, *nodes) if len(nodes) == len(parts) and nodes else None
    if isinstance(value, Choice):
        a, b = _choice(cx, st, value.then), _choice(cx, st, value.other)
        if a is None and b is None:
            return None
        text = cx.graph.const("<tensor>")
        return Choice(value.cond, text if a is None else a, text if b is None else b)
    if isinstance(value, Ref) and not tensors.is_tensor(cx, st, value):
        from selc.frontend.values import ListObj

        obj = cx.heap.get(st, value)
        if isinstance(obj, ListObj) and not obj.unknown:
            return _choice(cx, st, Tup(obj.items))
    return None


def assigned(cx: Lowering, st: State, point: str, value: V) -> None:
    """An attribute of an object that outlives the call is a choice too."""
    found = _choice(cx, st, value)
    if found is not None:
        st.scopes.setdefault(SCOPE, {})[point] = found
        cx.launch_roles[point] = "bits"


def points(cx: Lowering, st: State) -> dict[str, Node]:
    """Every recorded choice; null on paths that do not make it."""
    return {name: _null(cx, value) for name, value in st.scopes.get(SCOPE, {}).items()}


def _null(cx: Lowering, value: V) -> Node:
    if isinstance(value, Choice):
        return cx.graph.select(value.cond, _null(cx, value.then), _null(cx, value.other))
    return value if isinstance(value, Node) else cx.none
