"""Kernels that choose values of their own when they are launched: `@triton.autotune`, heuristics.

What they choose is no value of the selection, so that nothing here can pin it. It is said, and a
choice that is made by something of the batch is warned of.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from selc.diag.diagnostic import Diagnostic, Severity
from selc.frontend import names, tensors
from selc.frontend.values import Choice, Opaque, Ref, Tup, V
from selc.ir.graph import Node
from selc.ir.op import Op

if TYPE_CHECKING:
    from selc.frontend.context import Lowering
    from selc.frontend.state import State

_TUNERS: Final = ("autotune", "heuristics")


def note(
    cx: Lowering,
    st: State,
    e: ast.Call,
    callee: Opaque,
    args: tuple[V, ...],
    kwargs: Mapping[str, V],
) -> None:
    """Say what the decorators of a launched kernel choose, and by which of its arguments."""
    found = _definition(cx, st, e, callee)
    if found is None:
        return
    node, path = found
    passed = {**dict(zip(_parameters(node), args, strict=False)), **kwargs}
    for decorator in node.decorator_list:
        if not isinstance(decorator, ast.Call):
            continue
        tuner = ast.unparse(decorator.func).rpartition(".")[2]
        if tuner in _TUNERS:
            place = f"{path}:{decorator.lineno}"
            read = _key(decorator) if tuner == "autotune" else _heuristics(decorator)
            cx.assumptions.append(_words(node, tuner, decorator, place, read))
            _warn(cx, st, e, callee, node, f"@{tuner} ({place})", read, passed)


def _words(
    node: ast.FunctionDef, tuner: str, e: ast.Call, place: str, read: Mapping[str, bool] | None
) -> str:
    by = "computed names" if read is None else ", ".join(f"`{n}`" for n in read) or "nothing"
    if tuner == "autotune":
        return f"`{node.name}` is tuned when it runs (@autotune, {place}), by the key {by}"
    table = e.args[0] if e.args else None
    keys = table.keys if isinstance(table, ast.Dict) else []
    set_ = ", ".join(f"`{k.value!s}`" for k in keys if isinstance(k, ast.Constant)) or "values"
    return f"`{node.name}` computes {set_} when it runs (@heuristics, {place}), from {by}"


def _warn(
    cx: Lowering,
    st: State,
    e: ast.Call,
    callee: Opaque,
    node: ast.FunctionDef,
    tuner: str,
    read: Mapping[str, bool] | None,
    passed: Mapping[str, V],
) -> None:
    """Warn if an argument that a tuner reads follows the batch, or if it may read any."""
    wanted = dict.fromkeys(passed, True) if read is None else read
    moved = [
        n
        for n, inside in wanted.items()
        if n in passed and not _protected(cx, callee, n) and _moves(cx, st, passed[n], inside)
    ]
    if not moved:
        return
    shown = ", ".join(f"`{n}`" for n in moved)
    follow = "follows" if len(moved) == 1 else "follow"
    told = Diagnostic(
        "SEL945",
        f"{tuner} of the kernel `{node.name}` chooses by {shown}, which {follow} the batch",
        cx.span(e),
        Severity.WARNING,
        help="fix the kernel's configuration for serving, or tune by what the batch does not move",
    )
    if told not in cx.sink.items:
        cx.sink.add(told)


def _protected(cx: Lowering, callee: Opaque, name: str) -> bool:
    """Whether an argument is a choice that the batch cannot move once it is pinned."""
    stated = [r for k, r in cx.facts.returns.items() if k in ("*", name) or k.endswith(f".{name}")]
    return name in callee.constexprs and all(role == "bits" for role in stated)


# -- what a tuner reads --------------------------------------------------------------------------


def _key(e: ast.Call) -> dict[str, bool] | None:
    """The arguments of a key; None if it is no list of names."""
    key = next((k.value for k in e.keywords if k.arg == "key"), e.args[1] if e.args[1:] else None)
    if not isinstance(key, (ast.List, ast.Tuple)):
        return None
    parts = [x.value if isinstance(x, ast.Constant) else None for x in key.elts]
    return None if None in parts else {str(p): False for p in parts}


def _heuristics(e: ast.Call) -> dict[str, bool] | None:
    """The arguments that lambdas read, and whether they look inside; None if that is not seen."""
    table = e.args[0] if e.args else next((k.value for k in e.keywords if k.arg == "values"), None)
    if not isinstance(table, ast.Dict) or any(k is None for k in table.keys):
        return None
    out: dict[str, bool] = {}
    for value in table.values:
        if not isinstance(value, ast.Lambda) or len(value.args.args) != 1:
            return None
        if not _reads(value.body, value.args.args[0].arg, out):
            return None
    return out


def _reads(body: ast.expr, parameter: str, out: dict[str, bool]) -> bool:
    """Collect `args["NAME"]`; False if the arguments are used in any other way."""
    items: set[int] = set()
    for n in ast.walk(body):
        if isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name):
            if n.value.id == parameter and isinstance(n.slice, ast.Constant):
                items.add(id(n.value))
                out.setdefault(str(n.slice.value), False)
        elif isinstance(n, (ast.Attribute, ast.Call)):
            for inner in ast.walk(n):
                if isinstance(inner, ast.Subscript) and isinstance(inner.slice, ast.Constant):
                    out[str(inner.slice.value)] = True
    used = (n for n in ast.walk(body) if isinstance(n, ast.Name) and n.id == parameter)
    return all(id(n) in items for n in used)


# -- the kernel and its arguments ----------------------------------------------------------------


def _definition(
    cx: Lowering, st: State, e: ast.Call, callee: Opaque
) -> tuple[ast.FunctionDef, str] | None:
    """The definition of a launched kernel and its file, if the source is there."""
    func = e.func.value if isinstance(e.func, ast.Subscript) else e.func
    name = f"{callee.home}.{callee.text}" if callee.home else names.qualified(cx, st, func)
    if name is None:
        return None
    base, _, last = names.origin(cx, name).rpartition(".")
    module = cx.finder.find(base) if base else None
    for segment in module.segments_binding(last) if module is not None else ():
        for node in (n for s in module.parse(segment) for n in ast.walk(s)) if module else ():
            if isinstance(node, ast.FunctionDef) and node.name == last and node.decorator_list:
                return node, str(module.path) if module else ""
    return None


def _parameters(node: ast.FunctionDef) -> list[str]:
    return [a.arg for a in (*node.args.posonlyargs, *node.args.args)]


def _moves(cx: Lowering, st: State, value: V, inside: bool) -> bool:
    """Whether a value follows the batch; of a tensor its sizes, if the reader looks inside."""
    if isinstance(value, Choice):
        arms = (value.then, value.other)
        return _moves(cx, st, value.cond, False) or any(_moves(cx, st, v, inside) for v in arms)
    if isinstance(value, Tup):
        return any(_moves(cx, st, v, inside) for v in value.items)
    if isinstance(value, Ref) and inside and tensors.is_tensor(cx, st, value):
        return any(_moves(cx, st, n, False) for n in tensors.parts(cx, st, value)[0])
    if isinstance(value, Opaque):
        return value.data
    if not isinstance(value, Node):
        return False
    scope = cx.facts.scope or "launch"
    cone = cx.graph.cone([value])
    return any(n.op is Op.INPUT and cx.graph.inputs[str(n.attr)].is_batch(scope) for n in cone)
