"""Where sites are in a function, and what they are called.

A variable's site `f.x` overwrites x after its last top-level definition and after the last
definition inside each arm of that statement; `f.x#2` is its second definition. Names that need a
call or an iteration to be told apart get `@L<line>` and `[i]`.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

T = TypeVar("T")
Defines = Callable[[ast.stmt], bool]
"""Whether a statement defines what is asked about."""
Leaves = Mapping[int, frozenset[bool]]
"""As `leaving` returns it."""
_SCOPES = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.Lambda,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)


def stores(statement: ast.AST) -> list[str]:
    """Names that a statement binds in its own function, breadth first, each once."""
    out: list[str] = []
    todo: list[ast.AST] = [statement]
    while todo:
        node = todo.pop(0)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id not in out:
            out.append(node.id)
        if not isinstance(node, _SCOPES):
            todo.extend(ast.iter_child_nodes(node))
    return out


@dataclass(slots=True)
class Plan:
    """The sites of one function body."""

    joins: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))  # id(statement)
    inner: set[str] = field(default_factory=set)  # variables whose join site has several marks
    numbers: dict[tuple[int, str], int] = field(default_factory=dict)  # (id(statement), name) -> #n
    totals: dict[str, int] = field(default_factory=dict)
    assigned: frozenset[str] = frozenset()
    returns: int = 0


def gathered(
    function: ast.FunctionDef,
    here: Callable[[ast.AST], Iterable[T]],
    enters: Callable[[ast.AST], bool] = lambda _: True,
) -> dict[int, frozenset[T]]:
    """By identity of each node in a function: what `here` says of it and of all nodes in it.

    Of a node that `enters` refuses, only what is said of itself.
    """
    order: list[ast.AST] = []
    todo: list[ast.AST] = [function]
    while todo:
        node = todo.pop()
        order.append(node)
        if node is function or enters(node):
            todo.extend(ast.iter_child_nodes(node))
    out: dict[int, frozenset[T]] = {}
    for node in reversed(order):
        found = frozenset(here(node))
        for child in ast.iter_child_nodes(node):
            found |= out.get(id(child), frozenset())
        out[id(node)] = found
    return out


def stored(function: ast.FunctionDef) -> dict[int, frozenset[str]]:
    """By identity of each statement of a function: the names that it binds there."""
    return gathered(function, _stored_here, lambda node: not isinstance(node, _SCOPES))


def _stored_here(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id


def _binds(bound: Mapping[int, frozenset[str]], name: str, statement: ast.stmt) -> bool:
    return name in bound[id(statement)]


def leaving(function: ast.FunctionDef) -> dict[int, frozenset[bool]]:
    """By identity of each statement of a function: not empty if there is a `return` in it."""
    return gathered(function, lambda node: (True,) if isinstance(node, ast.Return) else ())


def plan(function: ast.FunctionDef) -> Plan:
    """Find the sites of a function."""
    out = Plan()
    assigned: dict[str, None] = {}
    outer = {
        name
        for s in _own_statements(function.body)
        if isinstance(s, (ast.Global, ast.Nonlocal))
        for name in s.names
    }
    for statement in function.body:
        for name in stores(statement):
            if name not in outer:
                assigned[name] = None
    out.assigned = frozenset(assigned)
    bound, leaves = stored(function), leaving(function)
    for name in assigned:
        _join(function, name, out, partial(_binds, bound, name), leaves)
    for statement in _own_statements(function.body):
        if isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            for name in stores(statement):
                out.totals[name] = number = out.totals.get(name, 0) + 1
                out.numbers[id(statement), name] = number
        out.returns += isinstance(statement, ast.Return)
    return out


def joins(function: ast.FunctionDef, name: str, defines: Defines, leaves: Leaves) -> Plan:
    """Where the joins of a variable are, if `defines` says which statements define it."""
    out = Plan()
    _join(function, name, out, defines, leaves)
    return out


def _join(
    function: ast.FunctionDef, name: str, out: Plan, defines: Defines, leaves: Leaves
) -> None:
    placed: list[int] = []
    for statement in _joined(function.body, defines, leaves):
        out.joins[id(statement)].append(name)
        placed.append(id(statement))
    if len(placed) > 1:
        out.inner.add(name)


def _own_statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """All statements of a body in source order, without those of nested functions."""
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        yield statement
        for part in parts(statement):
            yield from _own_statements(part)


def parts(statement: ast.stmt) -> list[list[ast.stmt]]:
    """The statement lists inside a compound statement, in source order."""
    out: list[list[ast.stmt]] = []
    for name in ("body", "handlers", "orelse", "finalbody"):
        value = getattr(statement, name, None) or []
        if name == "handlers":
            out.extend(handler.body for handler in value)
        elif isinstance(value, list) and value and isinstance(value[0], ast.stmt):
            out.append(value)
    return out


def _joined(body: list[ast.stmt], defines: Defines, leaves: Leaves) -> Iterator[ast.stmt]:
    having = [s for s in body if defines(s)]
    for statement in having:
        last = statement is having[-1]
        if isinstance(statement, (ast.If, ast.Try, ast.With)) and (last or leaves[id(statement)]):
            for part in parts(statement):
                yield from _joined(part, defines, leaves)
        if last:
            yield statement


@dataclass(eq=False, slots=True)
class Instance:
    """One inlined call of a function."""

    function: str
    parent: Instance | None
    line: int
    column: int
    iteration: str
    key: str

    def suffix(self, depth: int, columns: bool) -> str:
        """`@L` of the call and of `depth` calls around it."""
        out, at = "", self
        for _ in range(depth):
            if at.parent is None:
                break
            out += f"@L{at.line}" + (f"C{at.column}" if columns else "") + at.iteration
            at = at.parent
        return out


def suffixes(instances: Iterable[Instance]) -> dict[str, str]:
    """What to add to the site names of each instance (by key) so that no two coincide."""
    groups: dict[str, list[Instance]] = defaultdict(list)
    for instance in instances:
        groups[instance.function].append(instance)
    out: dict[str, str] = {}
    for group in groups.values():
        depth, columns = (0 if len(group) == 1 else 1), False
        while len({i.suffix(depth, columns) for i in group}) < len(group):
            columns, depth = (True, depth) if not columns else (False, depth + 1)
            if depth > 64:
                break
        for n, instance in enumerate(group):
            out[instance.key] = instance.suffix(depth, columns) if depth <= 64 else f"@{n}"
    return out
