"""Which statements change a record that a variable holds, and in which parts.

What a statement writes itself is read off it. What a function that it calls, or another name of the
record, changes is seen while the statement is lowered: the parts of the record in front of it and
behind it are compared. The selection is lowered once more where something was seen.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from selc.frontend.context import Lowering
from selc.frontend.state import State
from selc.frontend.values import Choice, DictObj, Entry, ListObj, Ref, Tup, V
from selc.ir.graph import Node

MUTATORS: Final = frozenset(
    {"add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove"}
) | {"reverse", "setdefault", "sort", "update", "__setattr__", "__setitem__"}
"""Methods that change the object they are called on."""

ANY: Final = "*"
"""Any part of a container."""

FIRST: Final = re.compile(r"\.([^.\[]*)|(\[[^\]]*\])")
"""The first part in a name behind that of a variable."""

Change: TypeAlias = tuple[int, int, str, str]
"""Line and column of a statement, a variable, and the part of its record."""

Content: TypeAlias = object


@dataclass(frozen=True, slots=True)
class Changes:
    """What statements change, as they say and as was seen."""

    seen: frozenset[Change] = frozenset()

    def here(self, node: ast.AST) -> Iterator[tuple[str, str]]:
        """What a node alone changes: the variable and the part of its record (`*`: any)."""
        yield from _written(node)
        if isinstance(node, ast.stmt):
            at = _position(node)
            yield from ((name, part) for *place, name, part in self.seen if tuple(place) == at)

    def of(self, node: ast.AST) -> Iterator[tuple[str, str]]:
        """What anything in a node changes."""
        for n in ast.walk(node):
            yield from self.here(n)


def _written(n: ast.AST) -> Iterator[tuple[str, str]]:
    inner: ast.expr | None = None
    if isinstance(n, (ast.Subscript, ast.Attribute)) and not isinstance(n.ctx, ast.Load):
        inner = n
    elif isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute):
        inner = n.func.value if n.func.attr in MUTATORS else None
    part = ANY
    while isinstance(inner, (ast.Subscript, ast.Attribute)):
        part = _part(inner)
        inner = inner.value
    if isinstance(inner, ast.Name):
        yield inner.id, part


def _part(e: ast.Subscript | ast.Attribute) -> str:
    if isinstance(e, ast.Attribute):
        return e.attr
    key = e.slice.value if isinstance(e.slice, ast.Constant) else None
    return first(f".{key}") if isinstance(key, str) else f"[{key}]" if isinstance(key, int) else ANY


def first(rest: str) -> str:
    """The first part in what stands behind the name of a variable; "" if nothing does."""
    found = FIRST.match(rest)
    return "" if found is None else found[1] if found[2] is None else found[2]


def _position(statement: ast.stmt) -> tuple[int, int]:
    return statement.lineno, statement.col_offset


# -- what is seen --------------------------------------------------------------------------------


def seen(cx: Lowering, old: State, new: State, statement: ast.stmt) -> Iterator[Change]:
    """The parts of records that a statement changed without binding their variables.

    `old` has the variables that are asked for, which it does not bind, and the heap, as they were
    in front of it.
    """
    scope = cx.frame.scope
    names = old.scopes[scope].keys() & new.scopes.get(scope, {}).keys()
    if all(new.heap.get(k) is v for k, v in old.heap.items()) and all(
        new.scopes[scope][n] is old.scopes[scope][n] for n in names
    ):
        return
    for name in sorted(names):
        was, now = (_parts(cx, st, st.scopes[scope][name]) for st in (old, new))
        for part in was.keys() | now.keys():
            if was.get(part) != now.get(part):
                yield *_position(statement), name, part


def _parts(cx: Lowering, st: State, value: V) -> Mapping[str, Content]:
    """The parts of a record by name."""
    if isinstance(value, Choice):
        then, other = _parts(cx, st, value.then), _parts(cx, st, value.other)
        return {k: (value.cond.id, then.get(k), other.get(k)) for k in {**then, **other}}
    out: dict[str, list[Content]] = {}
    for name, inner in _inside(cx, st, value):
        out.setdefault(first(name), []).append((name, _content(cx, st, inner, ())))
    return {k: tuple(v) for k, v in out.items()}


def _content(cx: Lowering, st: State, value: V | Entry, around: tuple[int, ...]) -> Content:
    """What tells whether a value is still the same: scalars by node, objects by what they hold."""
    if isinstance(value, Entry):
        return value.present.id, _content(cx, st, value.value, around)
    if isinstance(value, Node):
        return value.id
    if isinstance(value, Choice):
        arms = (value.then, value.other)
        return value.cond.id, *(_content(cx, st, v, around) for v in arms)
    if isinstance(value, Ref) and value.oid in around:
        return "around", around.index(value.oid)
    inner = (*around, value.oid) if isinstance(value, Ref) else around
    parts = [(n, _content(cx, st, v, inner)) for n, v in _inside(cx, st, value)]
    return tuple(parts) if parts else value


def _inside(cx: Lowering, st: State, value: V) -> Iterator[tuple[str, V | Entry]]:
    """What a record is made of, named as behind the name of a variable."""
    if isinstance(value, Tup):
        names = [f".{f}" for f in value.fields] or [f"[{i}]" for i in range(len(value.items))]
        yield from zip(names, value.items, strict=True)
    elif isinstance(value, Ref):
        obj = cx.heap.get(st, value)
        if isinstance(obj, ListObj):
            yield from ((f"[{i}]", v) for i, v in enumerate(obj.items))
        else:
            entries = obj.entries if isinstance(obj, DictObj) else obj.fields
            yield from ((f".{k}", entry) for k, entry in entries.items())
