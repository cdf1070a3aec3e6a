"""Which kernels the arms of a branch run, and whether that differs."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from selc.lint.index import Function
from selc.lint.names import Names
from selc.lint.values import Taint, dotted, only

if TYPE_CHECKING:
    from selc.lint.state import State

_MOST = 400  # nodes of an arm that are looked at


def check_arms(
    state: State,
    node: ast.stmt,
    cause: Taint,
    body: Sequence[ast.stmt],
    orelse: Sequence[ast.stmt],
    after: tuple[Sequence[ast.stmt], ...],
) -> bool:
    """Report a branch whose arms run different kernels; whether it was reported."""
    from selc.lint.sinks import report

    if state.silent or state.chained or _raises(body) or (orelse and _raises(orelse)):
        return False
    first, second = kernels(state, body), kernels(state, orelse)
    if _leaves(body) and not _leaves(orelse):
        for block in after:
            second.update(kernels(state, block))
    elif orelse and _leaves(orelse) and not _leaves(body):
        for block in after:
            first.update(kernels(state, block))
    one, other = sorted(first - second), sorted(second - first)
    if one and other:
        what = f"whether {_listed(one)} or {_listed(other)} runs"
    elif _is_skipped(state, body, one, other, after):
        what = f"whether {_listed(other)} runs"
    else:
        return False
    test = node.test if isinstance(node, ast.If) else node
    report(state, "SEL102", "warning", test, cause, sink=" | ".join(one[:1] + other[:1]), what=what)
    return bool(only(cause, "src"))


def check_expressions(state: State, node: ast.IfExp, cause: Taint) -> None:
    """The same for a conditional expression."""
    from selc.lint.sinks import report

    one = kernels(state, [ast.copy_location(ast.Expr(node.body), node)])
    other = kernels(state, [ast.copy_location(ast.Expr(node.orelse), node)])
    first, second = sorted(one - other), sorted(other - one)
    if first and second and not state.silent:
        what = f"whether {_listed(first)} or {_listed(second)} runs"
        report(
            state,
            "SEL102",
            "warning",
            node.test,
            cause,
            sink=f"{first[0]} | {second[0]}",
            what=what,
        )


def kernels(state: State, body: Sequence[ast.stmt]) -> set[str]:
    """The kernels that statements run, as they are written, with constants of harmful fields."""
    found = set()
    for call in _calls(body):
        name = _callee(state, call)
        if name:
            found.add(name)
    return found


def calls_kernel(names: Names, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function's own text runs a kernel."""
    for call in _calls(node.body):
        if is_launch(names, call) or names.is_kernel(dotted(call.func)):
            return True
    return False


def is_launch(names: Names, call: ast.Call) -> bool:
    """`kernel[grid](...)`."""
    if not isinstance(call.func, ast.Subscript):
        return False
    name = dotted(call.func.value).rsplit(".", 1)[-1]
    return not names.matches("tables", name) or "kernel" in name


def _callee(state: State, call: ast.Call) -> str:
    names = state.names
    name = dotted(call.func)
    if is_launch(names, call):
        assert isinstance(call.func, ast.Subscript)
        name = dotted(call.func.value)
        if names.matches("benign", name.rsplit(".", 1)[-1]):
            return ""
    elif not names.is_kernel(name):
        if "?" in name or "(" in name or names.matches("benign", name.rsplit(".", 1)[-1]):
            return ""
        found = state.resolve(name) if state.level else None
        if not isinstance(found, Function) or not state.session.computes(found):
            return ""
    fields = [
        f"{word.arg}={word.value.value!r}"
        for word in call.keywords
        if word.arg
        and isinstance(word.value, ast.Constant)
        and names.role(word.arg, name) in ("harmful", "opaque")
    ]
    return f"{name}({', '.join(fields)})" if fields else name


def _calls(body: Sequence[ast.stmt]) -> Iterator[ast.Call]:
    """Calls in source order, without those of nested functions."""
    queue: list[ast.AST] = list(reversed(body))
    seen = 0
    while queue and seen < _MOST:
        node = queue.pop()
        seen += 1
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            continue
        if isinstance(node, ast.Raise | ast.Assert):
            continue
        if isinstance(node, ast.Call):
            yield node
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            made = ast.Call(ast.Name("matmul", ast.Load()), [node.left, node.right], [])
            yield ast.copy_location(made, node)
        queue.extend(reversed(list(ast.iter_child_nodes(node))))


def _leaves(body: Sequence[ast.stmt]) -> bool:
    """Whether the last statement leaves the function or the loop."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, ast.If):
        return bool(last.orelse) and _leaves(last.body) and _leaves(last.orelse)
    return isinstance(last, ast.Return | ast.Continue | ast.Break)


def _is_skipped(
    state: State,
    body: Sequence[ast.stmt],
    one: list[str],
    other: list[str],
    after: tuple[Sequence[ast.stmt], ...],
) -> bool:
    """Whether a branch returns something before the kernels that all others run."""
    if one or not _leaves(body) or not _gives(body) or not any(map(_gives, after)):
        return False
    return any(state.names.is_kernel(name.partition("(")[0]) for name in other)


def _gives(body: Sequence[ast.stmt]) -> bool:
    """Whether it ends by returning something."""
    last = body[-1] if body else None
    return isinstance(last, ast.Return) and last.value is not None


def _raises(body: Sequence[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], ast.Raise)


def _listed(names: list[str]) -> str:
    shown = [f"`{name}`" for name in names[:2]]
    return " and ".join(shown) + (f" (and {len(names) - 2} more)" if len(names) > 2 else "")
