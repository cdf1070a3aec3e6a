"""What the syntax of a function tells a skeleton: its names, and which calls answer questions."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from selc.frontend.values import Cls, Func

if TYPE_CHECKING:
    from selc.frontend.source import ModuleSource


def arguments(node: ast.FunctionDef | ast.Lambda) -> list[str]:
    """The parameters by position, then the others."""
    spec = node.args
    return [a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]


def bound_in(node: ast.FunctionDef | ast.Lambda) -> set[str]:
    """Every name that a function binds, also in nested ones, without those declared global."""
    out = set()
    outer = {g for n in ast.walk(node) if isinstance(n, ast.Global) for g in n.names}
    for n in ast.walk(node):
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
            out.add(n.id)
        elif isinstance(n, (ast.FunctionDef, ast.ClassDef)) and n is not node:
            out.add(n.name)
        elif isinstance(n, ast.arg):
            out.add(n.arg)
    return out - outer


def call_aliases(body: Sequence[ast.stmt]) -> dict[str, str]:
    """Variables that hold what a call without arguments returned: name -> callee."""
    out = {}
    for name, call in _assigned_calls(body):
        if not call.args and not call.keywords:
            out[name] = ast.unparse(call.func)
    return out


def _assigned_calls(body: Sequence[ast.stmt]) -> Iterator[tuple[str, ast.Call]]:
    for statement in body:
        for n in ast.walk(statement):
            if isinstance(n, ast.Assign) and isinstance(n.value, ast.Call):
                for target in n.targets:
                    if isinstance(target, ast.Name):
                        yield target.id, n.value


def callee(e: ast.expr, aliases: dict[str, str]) -> str | None:
    """The callee whose answer an expression is."""
    if isinstance(e, ast.Call):
        return ast.unparse(e.func)
    return aliases.get(e.id) if isinstance(e, ast.Name) else None


def questions(body: Sequence[ast.stmt], entry: bool) -> set[int]:
    """The calls whose answers decide or are computed with; in helpers also those returned."""
    out: set[int] = set()
    for statement in body:
        for n in ast.walk(statement):
            asked: list[ast.expr] = []
            if isinstance(n, (ast.If, ast.IfExp, ast.While, ast.Assert)):
                asked = [n.test]
            elif isinstance(n, (ast.Compare, ast.BoolOp, ast.BinOp, ast.UnaryOp)):
                asked = [c for c in ast.iter_child_nodes(n) if isinstance(c, ast.expr)]
            elif isinstance(n, ast.Return) and n.value is not None and not entry:
                asked = [n.value]
            out |= {id(e) for e in asked if isinstance(e, ast.Call)}
    return out


def definitions(body: Sequence[ast.stmt], name: str) -> list[ast.stmt]:
    """Every definition of a name in a body and in its conditional blocks, in source order."""
    out: list[ast.stmt] = []
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            out += [statement] if statement.name == name else []
            continue
        for part in ("body", "orelse", "finalbody"):
            inner = getattr(statement, part, None)
            if isinstance(inner, list):
                out += definitions(inner, name)
        for handler in getattr(statement, "handlers", ()):
            out += definitions(handler.body, name)
    return out


def decorated(node: ast.FunctionDef, name: str) -> bool:
    """Whether a function bears a decorator of a plain name."""
    return any(isinstance(d, ast.Name) and d.id == name for d in node.decorator_list)


def inner_tensors(node: ast.FunctionDef | ast.Lambda) -> set[str]:
    """Parameters of nested functions that are annotated as tensors."""
    return {
        a.arg
        for n in ast.walk(node)
        if isinstance(n, ast.FunctionDef) and n is not node
        for a in n.args.args
        if a.annotation is not None and "Tensor" in ast.unparse(a.annotation)
    }


def may_be_imported(module: ModuleSource, name: str, value: object) -> bool:
    """Whether an import under a condition or in a `try` binds a name whose source is not here."""
    return not isinstance(value, (Cls, Func)) and any(
        (alias.asname or alias.name.partition(".")[0]) == name
        for segment in module.segments_binding(name)
        if segment.kind in ("if", "try")
        for statement in module.parse(segment)
        for node in ast.walk(statement)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    )
