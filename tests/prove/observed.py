"""Which statements of a function change records that variables hold, seen while CPython runs it."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

FAULTS = (ArithmeticError, AssertionError, AttributeError, LookupError, NameError, TypeError,
          ValueError, StopIteration, RuntimeError)  # fmt: skip
_INNER = (ast.FunctionDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
Change = tuple[int, int, str, str]
"""Line and column of a statement, a variable, and the part of its record."""


def stored(node: ast.AST) -> set[str]:
    """The names that a statement binds in its own function."""
    out, todo = set(), [node]
    while todo:
        n = todo.pop()
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
            out.add(n.id)
        if not isinstance(n, _INNER):
            todo.extend(ast.iter_child_nodes(n))
    return out


def bodies(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The lists of statements in a compound one."""
    for name in ("body", "orelse", "finalbody"):
        if getattr(statement, name, None):
            yield getattr(statement, name)
    for handler in getattr(statement, "handlers", ()):
        yield handler.body


def changes(
    tree: ast.Module,
    function: str,
    runs: Iterable[Mapping[str, Any]],
) -> set[Change]:
    """What statements outside loops change without binding the variable; `tree` is used up."""
    out: set[Change] = set()
    held: list[dict[str, dict[str, Any]]] = []
    places: list[tuple[ast.stmt, set[str]]] = []

    def note(number: int, behind: bool, names: Mapping[str, Any]) -> None:
        statement, bound = places[number]
        now = {n: parts(v) for n, v in names.items()}
        if not behind:
            held[number] = now
            return
        for name, old in held[number].items():
            new = now.get(name, {})
            if name not in bound:
                changed = {p for p in {*old, *new} if old.get(p) != new.get(p)}
                out.update((statement.lineno, statement.col_offset, name, p) for p in changed)

    def body(statements: list[ast.stmt]) -> list[ast.stmt]:
        return [s for statement in statements for s in around(statement)]

    def around(statement: ast.stmt) -> Iterator[ast.stmt]:
        places.append((statement, stored(statement)))
        held.append({})
        number = len(places) - 1
        if isinstance(statement, (ast.If, ast.Try, ast.With)):
            for inner in bodies(statement):
                inner[:] = body(inner)
        yield from ast.parse(f"__note__({number}, False, locals())").body
        yield statement
        yield from ast.parse(f"__note__({number}, True, locals())").body

    node = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == function)
    node.body = body(node.body)
    module = types.ModuleType("judged")
    sys.modules["judged"] = module  # where dataclasses look for it
    names = module.__dict__
    names["__note__"] = note
    exec(compile(ast.fix_missing_locations(tree), "observed", "exec"), names)
    for arguments in runs:
        with contextlib.suppress(*FAULTS):
            names[function](**arguments)
    return out


def parts(value: Any) -> dict[str, Any]:
    """The parts of a record by name, each with all that is in it; none of what is no record."""
    if isinstance(value, type):
        return {}
    if dataclasses.is_dataclass(value):
        inside = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    elif hasattr(value, "_asdict"):
        inside = value._asdict()
    elif isinstance(value, dict):
        inside = {str(k): v for k, v in value.items()}
    elif isinstance(value, (list, tuple)):
        inside = {str(i): v for i, v in enumerate(value)}
    else:
        return {}
    return {k: parts(v) or (type(v).__name__, v) for k, v in inside.items()}
