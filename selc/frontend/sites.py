"""Where sites are in a function, and what they are called.

A variable's site `f.x` overwrites x after its last top-level definition and after the last
definition inside each arm of that statement; `f.x#2` is its second definition. Names that need a
call or an iteration to be told apart get `@L<line>` and `[i]`.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

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


@dataclass(slots=True)
class _Facts:
    """What is asked of each statement once per variable, kept while one function is planned."""

    stored: dict[int, list[str]]
    returns: dict[int, bool]
    binds: Callable[[ast.AST], list[str]] = stores

    def stores(self, statement: ast.stmt) -> list[str]:
        """The names that the statement binds."""
        if id(statement) not in self.stored:
            self.stored[id(statement)] = self.binds(statement)
        return self.stored[id(statement)]

    def leaves(self, statement: ast.stmt) -> bool:
        """Whether there is a `return` in it."""
        if id(statement) not in self.returns:
            found = any(isinstance(x, ast.Return) for x in ast.walk(statement))
            self.returns[id(statement)] = found
        return self.returns[id(statement)]


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
    facts = _Facts({}, {})
    for statement in function.body:
        for name in facts.stores(statement):
            if name not in outer:
                assigned[name] = None
    out.assigned = frozenset(assigned)
    _join(function, assigned, out, facts)
    for statement in _own_statements(function.body):
        if isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            for name in facts.stores(statement):
                out.totals[name] = number = out.totals.get(name, 0) + 1
                out.numbers[id(statement), name] = number
        out.returns += isinstance(statement, ast.Return)
    return out


def joins(
    function: ast.FunctionDef, names: Iterable[str], binds: Callable[[ast.AST], list[str]]
) -> Plan:
    """Where the joins of some variables are, if `binds` says what a statement defines."""
    out = Plan()
    _join(function, names, out, _Facts({}, {}, binds))
    return out


def _join(function: ast.FunctionDef, names: Iterable[str], out: Plan, facts: _Facts) -> None:
    for name in names:
        placed: list[int] = []
        _place(function.body, name, out, placed, facts)
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


def _place(body: list[ast.stmt], name: str, out: Plan, placed: list[int], facts: _Facts) -> None:
    having = [s for s in body if name in facts.stores(s)]
    for statement in having:
        last = statement is having[-1]
        if isinstance(statement, (ast.If, ast.Try, ast.With)) and (last or facts.leaves(statement)):
            for part in parts(statement):
                _place(part, name, out, placed, facts)
        if last:
            out.joins[id(statement)].append(name)
            placed.append(id(statement))


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
