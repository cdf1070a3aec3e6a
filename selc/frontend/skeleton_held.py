"""What variables and attributes hold, as far as their assignments tell: for skeletons alone.

A guess that is wrong costs a line too many in a skeleton; lowering asks the facts instead.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from selc.diag.diagnostic import Refused
from selc.frontend import classes, names
from selc.frontend.state import State
from selc.frontend.values import Cls, Func, V

if TYPE_CHECKING:
    from selc.frontend.context import Lowering
    from selc.frontend.skeleton_text import Found
    from selc.frontend.source import ModuleSource


class Reader(Protocol):
    """What is needed of the visitor of a function."""

    cx: Lowering
    func: Func
    owner: str

    def value(self, e: ast.expr) -> V | None:
        """What an expression denotes outside the function."""


class Held:
    """The assignments of one function."""

    def __init__(self, body: Sequence[ast.stmt], found: Found) -> None:
        self.found = found
        self.assigned: dict[str, list[ast.expr]] = {}
        self.returned: set[str] = set()
        """Variables that hold a part of what a call returned."""
        for node in (n for statement in body for n in ast.walk(statement)):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        self.assigned.setdefault(target.id, []).extend(_arms(node.value))
                    elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Call):
                        self.returned |= {x.id for x in target.elts if isinstance(x, ast.Name)}

    def functions(self, reader: Reader, name: str) -> Iterator[Func]:
        """The functions that a variable may hold."""
        for e in self.assigned.get(name, ()):
            value = reader.value(e)
            if isinstance(value, Func):
                yield value

    def receivers(self, reader: Reader, e: ast.expr) -> Iterator[tuple[Cls, str]]:
        """The classes of the object that an expression may be, and what it is called."""
        own = reader.func.cls
        if own is None:
            return
        if isinstance(e, ast.Call) and ast.unparse(e) == "super()":
            with suppress(Refused):
                for base in classes.bases(reader.cx, own):
                    if isinstance(base, Cls):
                        yield base, reader.owner
            return
        for arm in self.assigned.get(e.id, ()) if isinstance(e, ast.Name) else [e]:
            if isinstance(arm, ast.Attribute) and ast.unparse(arm.value) == "self" and reader.owner:
                owner = f"{reader.owner}.{arm.attr}"
                for cls in _made(reader, own, arm.attr):
                    self.found.objects.setdefault(owner, f"{cls.module.module_name}:{cls.qualname}")
                    yield cls, owner


def _made(reader: Reader, cls: Cls, attribute: str) -> Iterator[Cls]:
    """The classes whose objects a class's methods store in an attribute."""
    with suppress(Refused):
        for base in classes.bases(reader.cx, cls):
            if isinstance(base, Cls):
                yield from _made(reader, base, attribute)
    for method in (n for n in cls.node.body if isinstance(n, ast.FunctionDef)):
        local: dict[str, list[ast.expr]] = {}
        stored: list[ast.expr] = []
        for node in ast.walk(method):
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if ast.unparse(target) == f"self.{attribute}":
                        stored += _arms(node.value)
                    elif isinstance(target, ast.Name):
                        local.setdefault(target.id, []).extend(_arms(node.value))
        calls = [e.func for e in stored if isinstance(e, ast.Call)]
        for called in calls:
            for e in local.get(called.id, [called]) if isinstance(called, ast.Name) else [called]:
                yield from _classes(reader, cls.module, method, e)


def _classes(
    reader: Reader, module: ModuleSource, function: ast.FunctionDef, e: ast.expr
) -> Iterator[Cls]:
    """The classes that an expression in a function may be, also what a call of its returns."""
    name = e.func if isinstance(e, ast.Call) else e
    if not isinstance(name, ast.Name):
        return
    value: V | None = None
    with suppress(Refused):
        value = _named(reader, module, function, name)
    if isinstance(e, ast.Name) and isinstance(value, Cls):
        yield value
        return
    if not isinstance(e, ast.Call) or not isinstance(value, Func) or value.node is function:
        return
    for node in ast.walk(value.node):
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Name):
            assert isinstance(value.node, ast.FunctionDef)
            yield from _classes(reader, value.module, value.node, node.value)


def _named(
    reader: Reader, module: ModuleSource, function: ast.FunctionDef, name: ast.Name
) -> V | None:
    """What a name in a function is: by the imports in it, else at module level."""
    for node in ast.walk(function):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            target = names.bindings(reader.cx, module, node).get(name.id)
            if target is not None:
                return names.dotted(reader.cx, target, name)
    return names.module_value(reader.cx, State(reader.cx.true), module, name.id, name)


def _arms(e: ast.expr) -> list[ast.expr]:
    """The values that an expression chooses between."""
    if isinstance(e, ast.IfExp):
        return [*_arms(e.body), *_arms(e.orelse)]
    return [v for x in e.values for v in _arms(x)] if isinstance(e, ast.BoolOp) else [e]
