"""SEL3xx: gaps in the guard of a project that declares its invariant mode."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from selc.lint.index import Class, Module
from selc.lint.model import Finding, Place, Step
from selc.lint.names import Names
from selc.lint.registry import rule
from selc.lint.values import dotted

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


def check_gaps(
    module: Module,
    names: Names,
    hits: list[tuple[Finding, str]],
    kept: list[tuple[Finding, str]],
) -> list[Finding]:
    """Findings that the mode leaves, marked where it pins others of their kind; lost pins.

    `hits` are the findings without the mode, `kept` those that are left with it.
    """
    found = [finding for finding, _ in kept]
    if names.modes:
        found = list(_siblings(hits, kept))
        found += _overwritten(module, names)
        found += _enabled_again(module, names)
    found += _unused(module, names)
    return found


def _siblings(
    hits: list[tuple[Finding, str]], kept: list[tuple[Finding, str]]
) -> Iterator[Finding]:
    """SEL301 and SEL304 in the place of what they explain."""
    left = {(finding.code, finding.place) for finding, _ in kept}
    guarded: dict[str, Finding] = {}
    by_function: dict[tuple[str, str], Finding] = {}
    for finding, kind in hits:
        if (finding.code, finding.place) not in left:
            guarded.setdefault(kind, finding)
            if finding.code == "SEL101" and finding.role == "harmful":
                by_function.setdefault((finding.place.path, finding.function), finding)
    for finding, kind in kept:
        half = by_function.get((finding.place.path, finding.function))
        if finding.code == "SEL101" and finding.role == "harmful" and half is not None:
            message = f"{finding.message}; the invariant mode pins `{half.sink}` here and not this"
            yield _recoded(finding, "SEL304", message)
        elif kind in guarded and finding.code in ("SEL101", "SEL103", "SEL106"):
            other = guarded[kind].place
            place = f"{other.path}:{other.line}"
            message = f"{finding.message}; the invariant mode pins the same at {place}"
            yield _recoded(finding, "SEL301", message)
        else:
            yield finding


def _recoded(finding: Finding, code: str, message: str) -> Finding:
    known = rule(code)
    return replace(
        finding, code=code, name=known.name, level=known.level, message=message, help=known.fix
    )


def _unused(module: Module, names: Names) -> Iterator[Finding]:
    """SEL302: a pin parameter that is accepted and never read."""
    readers: set[str] = set()
    silent: list[tuple[str, FunctionNode, ast.arg]] = []
    for function in module.all_functions():
        node = function.node
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        pins = [each for each in arguments if each.arg in names.pins]
        if not pins:
            continue
        read = {
            each.id
            for statement in node.body
            for each in ast.walk(statement)
            if isinstance(each, ast.Name)
        }
        works = any(isinstance(each, ast.Call) for s in node.body for each in ast.walk(s))
        stub = (
            "fake" in node.name
            or isinstance(node.body[-1], ast.Raise)
            or any(dotted(mark).endswith("abstractmethod") for mark in node.decorator_list)
        )
        for each in pins:
            if each.arg in read:
                readers.add(each.arg)
            elif works and not stub and "locals" not in read:
                silent.append((function.qualname, node, each))
    for qualname, node, each in silent:
        if each.arg in readers:
            message = f"`{node.name}` takes `{each.arg}` and does not use it: the pin is lost here"
            yield _at(module, "SEL302", each, qualname, each.arg, message)


def _overwritten(module: Module, names: Names) -> Iterator[Finding]:
    """SEL303: set under the mode, set again below without asking."""
    for function in module.all_functions():
        pinned: dict[str, ast.stmt] = {}
        yield from _sequence(module, names, function.qualname, function.node.body, pinned)


def _sequence(
    module: Module, names: Names, qualname: str, body: list[ast.stmt], pinned: dict[str, ast.stmt]
) -> Iterator[Finding]:
    for node in body:
        if isinstance(node, ast.If) and asks(names, node.test):
            pinned.update(_constants(node.body))
            for target, _ in _constants(node.orelse):
                pinned.pop(target, None)
            if node.body and isinstance(node.body[-1], ast.Return | ast.Raise):
                pinned.clear()
            continue
        if isinstance(node, ast.If | ast.For | ast.While | ast.With):
            if isinstance(node, ast.If) and any(
                dotted(each) in pinned for each in ast.walk(node.test) if isinstance(each, ast.expr)
            ):
                continue  # it looks at what was pinned before it changes it
            yield from _sequence(module, names, qualname, node.body, pinned)
            yield from _sequence(module, names, qualname, getattr(node, "orelse", []), pinned)
            continue
        for target, inner in _constants([node]):
            first = pinned.get(target)
            value = getattr(inner, "value", None)
            if first is not None and value is not None and not _keeps(first, value, target, names):
                message = (
                    f"`{target}` is pinned under the invariant mode at line {first.lineno} and "
                    "overwritten here without asking for it"
                )
                yield _at(module, "SEL303", inner, qualname, target, message, first)
                del pinned[target]


def _keeps(first: ast.stmt, value: ast.expr, target: str, names: Names) -> bool:
    """Whether a later value respects the pin: it reads it, equals it, or asks for the mode."""
    pinned = getattr(first, "value", None)
    if isinstance(pinned, ast.Constant) and ast.dump(pinned) == ast.dump(value):
        return True
    return any(
        isinstance(each, ast.expr) and dotted(each) == target for each in ast.walk(value)
    ) or asks(names, value)


def _constants(body: list[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    """Names and attributes that statements set, with the statements."""
    for node in body:
        match node:
            case ast.Assign(targets=[ast.Name() | ast.Attribute() as target]):
                yield dotted(target), node
            case ast.AnnAssign(target=ast.Name() | ast.Attribute() as target, value=ast.expr()):
                yield dotted(target), node
            case _:
                pass


def asks(names: Names, test: ast.expr) -> bool:
    """Whether a test requires the mode: it, or a conjunction with it."""
    match test:
        case ast.BoolOp(op=ast.And(), values=values):
            return any(asks(names, each) for each in values)
        case ast.Call(func=func):
            return names.is_mode(f"{dotted(func)}.()") or names.is_mode(dotted(func))
        case ast.Name() | ast.Attribute():
            return names.is_mode(dotted(test))
        case ast.IfExp(test=inner):
            return asks(names, inner)
        case _:
            return False


def _enabled_again(module: Module, names: Names) -> Iterator[Finding]:
    """SEL305: a method that asks for the mode sets what a later one sets without asking."""
    for owner in module.classes.values():
        for method in owner.methods.values():
            order = _called(owner, method.node)
            for position, name in enumerate(order):
                pins = dict(_under_mode(names, owner.methods[name].node))
                for later in order[position + 1 :] if pins else ():
                    if later == name:
                        continue
                    for target, node in _freely(names, owner.methods[later].node.body):
                        if target in pins:
                            message = (
                                f"`{target}` is set for the invariant mode in `{name}`, which runs "
                                f"before `{later}` sets it here without asking"
                            )
                            yield _at(
                                module,
                                "SEL305",
                                node,
                                f"{owner.name}.{later}",
                                target,
                                message,
                                pins[target],
                            )


def _called(owner: Class, node: FunctionNode) -> list[str]:
    """Own methods that a method calls one after the other."""
    out = []
    for statement in node.body:
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name))):
                if name in owner.methods:
                    out.append(name)
            case _:
                pass
    return out


def _under_mode(names: Names, node: FunctionNode) -> Iterator[tuple[str, ast.stmt]]:
    for each in ast.walk(node):
        if isinstance(each, ast.If) and asks(names, each.test):
            for inner in ast.walk(each):
                if isinstance(inner, ast.stmt):
                    for target, statement in _constants([inner]):
                        if target.startswith("self.") and isinstance(
                            getattr(statement, "value", None), ast.Constant
                        ):
                            yield target, statement


def _freely(names: Names, body: list[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    """What is set, to a constant, at the top of a method: under no condition at all."""
    for node in body:
        if isinstance(node, ast.If) and asks(names, node.test):
            return
        for target, statement in _constants([node]):
            if isinstance(getattr(statement, "value", None), ast.Constant):
                yield target, statement


def _at(
    module: Module,
    code: str,
    node: ast.stmt | ast.arg,
    function: str,
    sink: str,
    message: str,
    first: ast.stmt | None = None,
) -> Finding:
    known = rule(code)
    place = Place(
        module.shown,
        node.lineno,
        node.col_offset + 1,
        node.end_lineno or node.lineno,
        (node.end_col_offset or node.col_offset) + 1,
    )
    steps = [
        Step(module.shown, each.lineno, module.line(each.lineno)) for each in (first, node) if each
    ]
    return Finding(
        code,
        known.name,
        known.level,
        message,
        place,
        function,
        sink,
        steps[0].line,
        module.shown,
        sink,
        "pin",
        tuple(steps),
        "",
        known.fix,
        module.line(node.lineno),
    )
