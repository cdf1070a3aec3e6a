"""SEL4xx (preview): one scale for the whole batch."""

from __future__ import annotations

import ast

from selc.lint.index import Module
from selc.lint.model import Finding, Place, Step
from selc.lint.names import Names
from selc.lint.registry import rule
from selc.lint.values import dotted


def check_numbers(module: Module, names: Names) -> list[Finding]:
    """Assignments to scales that take the largest value over all rows of an activation."""
    if "max" not in module.text or "scale" not in module.text:
        return []
    found = []
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Assign) or not _is_scale(node.targets[0]):
            continue
        for inner in ast.walk(node.value):
            source = _whole_max(names, inner)
            if source:
                found.append(_finding(module, node, source))
                break
    return found


def _is_scale(target: ast.expr) -> bool:
    name = dotted(target).rsplit(".", 1)[-1].lower()
    return "scale" in name or "amax" in name


def _whole_max(names: Names, node: ast.AST) -> str:
    """The activation of `x.abs().max()`, `torch.max(torch.abs(x))`, `x.amax()`: over all axes."""
    if not isinstance(node, ast.Call) or node.keywords:
        return ""
    name = dotted(node.func)
    if name.rsplit(".", 1)[-1] not in ("max", "amax"):
        return ""
    if name.startswith(("torch.", "np.")):
        inner = node.args[0] if len(node.args) == 1 else None
    else:
        inner = node.func.value if isinstance(node.func, ast.Attribute) and not node.args else None
    while inner is not None:
        match inner:
            case ast.Call(func=ast.Attribute(value=base, attr="abs" | "float" | "to" | "detach")):
                inner = node_argument(inner, base)
            case ast.Name(id=each) if names.kind(each) == "rows":
                return each
            case _:
                return ""
    return ""


def node_argument(call: ast.Call, base: ast.expr) -> ast.expr:
    """What `torch.abs(x)` or `x.abs()` is applied to."""
    return call.args[0] if call.args and dotted(base) in ("torch", "np") else base


def _finding(module: Module, node: ast.Assign, source: str) -> Finding:
    known = rule("SEL401")
    text = module.line(node.lineno)
    sink = dotted(node.targets[0])
    place = Place(
        module.shown,
        node.lineno,
        node.col_offset + 1,
        node.end_lineno or node.lineno,
        (node.end_col_offset or 0) + 1,
    )
    message = (
        f"`{sink}` is the largest value over all rows of `{source}`: neighbours change a request's "
        "numbers"
    )
    return Finding(
        "SEL401",
        known.name,
        known.level,
        message,
        place,
        "",
        f"{source}",
        node.lineno,
        module.shown,
        sink,
        "scale",
        (Step(module.shown, node.lineno, text),),
        "",
        known.fix,
        text,
    )
