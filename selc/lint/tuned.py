"""SEL2xx: autotuning, heuristics and caches of plans, by their syntax."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from selc.lint.index import Module
from selc.lint.model import Finding, Place, Step
from selc.lint.names import Names
from selc.lint.registry import rule
from selc.lint.values import dotted


def check_tuned(module: Module, names: Names) -> list[Finding]:
    """Findings of one module."""
    found: list[Finding] = []
    if "autotune" in module.text or "heuristics" in module.text:
        found += _decorated(module, names)
    if "cache" in module.text or "PLAN" in module.text.upper():
        found += _cached(module, names)
    return found


def _decorated(module: Module, names: Names) -> Iterator[Finding]:
    aliases = {
        name: value
        for name, value in module.constants.items()
        if isinstance(value, ast.Call) and _last(value.func) in ("autotune", "heuristics")
    }
    applied: set[str] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef):
            for mark in node.decorator_list:
                made: ast.expr = mark
                if isinstance(mark, ast.Name) and mark.id in aliases:
                    made = aliases[mark.id]
                    applied.add(mark.id)
                yield from _mark(module, names, node, mark, made)
        match node:
            case ast.Call(func=ast.Name(id=alias), args=[ast.Name(id=name), *_]) if (
                alias in aliases
            ):
                kernel = module.functions.get(name)
                if kernel is not None and isinstance(kernel.node, ast.FunctionDef):
                    yield from _mark(module, names, kernel.node, node, aliases[alias])
            case _:
                pass


def _mark(
    module: Module, names: Names, kernel: ast.FunctionDef, where: ast.expr, mark: ast.expr
) -> Iterator[Finding]:
    if not isinstance(mark, ast.Call):
        return
    if _last(mark.func) == "heuristics":
        yield from _heuristics(module, names, kernel, mark)
        return
    if _last(mark.func) != "autotune":
        return
    words = {word.arg: word.value for word in mark.keywords if word.arg}
    key = words.get("key") or (mark.args[1] if len(mark.args) > 1 else None)
    configs = words.get("configs") or (mark.args[0] if mark.args else None)
    listed = [each.value for each in getattr(key, "elts", []) if isinstance(each, ast.Constant)]
    batch = [str(each) for each in listed if _is_batch(names, str(each))]
    moving, several = _moving(module, names, configs)
    if not several:
        return
    if batch:
        message = (
            f"`{kernel.name}` is tuned for each `{batch[0]}`: the key of its autotuner holds it"
        )
        if moving:
            message += f", and its configurations differ in `{moving[0]}`"
        yield _finding(
            module,
            "SEL201",
            "error" if moving else "warning",
            where,
            kernel.name,
            batch[0],
            f"key of {kernel.name}",
            message,
        )
        return
    taken = [each.arg for each in kernel.args.args if _is_batch(names, each.arg)]
    if moving and taken:
        message = (
            f"`{kernel.name}` is tuned by whichever `{taken[0]}` comes first: the key leaves it "
            f"out, and its configurations differ in `{moving[0]}`"
        )
        yield _finding(
            module,
            "SEL202",
            "warning",
            where,
            kernel.name,
            taken[0],
            f"key of {kernel.name}",
            message,
        )


def _heuristics(
    module: Module, names: Names, kernel: ast.FunctionDef, mark: ast.Call
) -> Iterator[Finding]:
    table = mark.args[0] if mark.args else next((w.value for w in mark.keywords), None)
    if not isinstance(table, ast.Dict):
        return
    for key, value in zip(table.keys, table.values, strict=True):
        field = str(key.value) if isinstance(key, ast.Constant) else ""
        role = names.role(field, kernel.name)
        if role in ("neutral", "sizes"):
            continue
        read = [
            str(node.slice.value)
            for node in ast.walk(value)
            if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)
        ]
        batch = [name for name in read if _is_batch(names, name)]
        if batch and isinstance(value, ast.Lambda) and not _asks_for_none(value.body):
            message = f"`{field}` of `{kernel.name}` is computed from `{batch[0]}` at each launch"
            level = "error" if role == "harmful" else "warning"
            yield _finding(module, "SEL203", level, value, kernel.name, batch[0], field, message)


def _asks_for_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is | ast.IsNot)


def _moving(module: Module, names: Names, configs: ast.expr | None) -> tuple[list[str], bool]:
    """Harmful fields in which configurations differ, and whether there are several at all."""
    if isinstance(configs, ast.Name):
        configs = module.constants.get(configs.id, configs)
    if isinstance(configs, ast.List):
        if len(configs.elts) < 2 and not isinstance(configs.elts and configs.elts[0], ast.Starred):
            return [], False
        seen: dict[str, set[str]] = {}
        for each in configs.elts:
            for name, value in _fields(each):
                seen.setdefault(name, set()).add(ast.dump(value))
        moving = [n for n, v in seen.items() if len(v) > 1 and names.role(n) == "harmful"]
        return moving, True
    if isinstance(configs, ast.ListComp):
        free = {
            name.id
            for generator in configs.generators
            for name in ast.walk(generator.target)
            if isinstance(name, ast.Name)
        }
        moving = [
            name
            for name, value in _fields(configs.elt)
            if names.role(name) == "harmful"
            and any(isinstance(n, ast.Name) and n.id in free for n in ast.walk(value))
        ]
        return moving, True
    return [], True


def _fields(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Dict):
            for key, value in zip(inner.keys, inner.values, strict=True):
                if isinstance(key, ast.Constant):
                    yield str(key.value), value


def _cached(module: Module, names: Names) -> Iterator[Finding]:
    for function in module.all_functions():
        node = function.node
        marks = [_last(m.func if isinstance(m, ast.Call) else m) for m in node.decorator_list]
        if any(mark in ("lru_cache", "cache") for mark in marks):
            batch = [each.arg for each in function.parameters if _is_batch(names, each.arg)]
            read = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
            batch = [name for name in batch if name in read]
            if batch and names.matches("selectors", node.name):
                message = (
                    f"`{node.name}` is cached for each `{batch[0]}`: every size gets its own answer"
                )
                yield _finding(
                    module,
                    "SEL204",
                    "warning",
                    node.args,
                    node.name,
                    batch[0],
                    node.name,
                    message,
                    node,
                )
        yield from _filled(module, names, node)


def _filled(
    module: Module, names: Names, function: ast.FunctionDef | ast.AsyncFunctionDef
) -> Iterator[Finding]:
    """`PLANS[key] = ...` where the key holds a batch quantity."""
    keys: dict[str, ast.expr] = {}
    for node in ast.walk(function):
        if not isinstance(node, ast.Assign):
            continue
        match node.targets:
            case [ast.Name(id=name)] if isinstance(node.value, ast.Tuple):
                keys[name] = node.value
            case [ast.Subscript(value=base, slice=key)]:
                held = _last(base).lower()
                if not any(
                    word in held for word in ("plan", "algo", "tactic", "best_config", "tuned")
                ):
                    continue
                whole = keys.get(key.id, key) if isinstance(key, ast.Name) else key
                parts = whole.elts if isinstance(whole, ast.Tuple) else [whole]
                batch = [_last(p) for p in parts if _is_batch(names, _last(p))]
                if batch:
                    message = f"`{dotted(base)}` holds a plan for each `{batch[0]}`"
                    yield _finding(
                        module,
                        "SEL204",
                        "warning",
                        node.targets[0],
                        function.name,
                        batch[0],
                        dotted(base),
                        message,
                    )
            case _:
                pass


def _is_batch(names: Names, name: str) -> bool:
    return (
        names.kind(name) == "scalar"
        or name in ("B", "m", "total_tokens", "batch")
        or (
            "BUCKET" in name.upper()
            and any(w in name.upper() for w in ("SEQ", "TOKEN", "BATCH", "T_", "NT_", "LQ", "LD"))
        )
        or (names.kind(name.lower()) == "scalar" and len(name) > 2)
    )


def _last(node: ast.expr) -> str:
    return dotted(node).rsplit(".", 1)[-1]


def _finding(
    module: Module,
    code: str,
    level: str,
    node: ast.AST,
    function: str,
    source: str,
    sink: str,
    message: str,
    instead: ast.stmt | None = None,
) -> Finding:
    known = rule(code)
    at = instead or node
    line = getattr(at, "lineno", 1)
    column = getattr(at, "col_offset", 0) + 1
    end = getattr(at, "end_lineno", line) if instead is None else line
    end_column = getattr(at, "end_col_offset", column) + 1 if instead is None else column + 1
    text = module.line(line)
    return Finding(
        code,
        known.name,
        level,
        message,
        Place(module.shown, line, column, end, end_column),
        function,
        source,
        line,
        module.shown,
        sink,
        "tuned",
        (Step(module.shown, line, text),),
        "",
        known.fix,
        text,
    )
