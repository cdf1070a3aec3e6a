"""What the `return`s of a selection name: variables, records, and records that are made there."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final

from selc.diag.diagnostic import Refused
from selc.frontend import calls
from selc.frontend import names as modules
from selc.frontend.changes import ANY, Changes
from selc.frontend.context import Lowering
from selc.frontend.sites import _own_statements, stores
from selc.frontend.state import State
from selc.frontend.values import Cls, V

_COMPUTED = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Constant)
_DEPTH: Final = 16


@dataclass(slots=True)
class Named:
    """What returned expressions name, by where in the result it stands ("": all of it)."""

    variables: dict[str, set[str]] = field(default_factory=dict)
    made: dict[str, set[str]] = field(default_factory=dict)  # places of calls that make records
    records: set[str] = field(default_factory=set)  # variables that are returned as a whole
    computed: set[str] = field(default_factory=set)  # points that a `return` computes

    def add(self, other: Named) -> None:
        """Take in what another `return` names."""
        for mine, theirs in ((self.variables, other.variables), (self.made, other.made)):
            for prefix, found in theirs.items():
                mine.setdefault(prefix, set()).update(found)
        self.records |= other.records
        self.computed |= other.computed


@dataclass(frozen=True, slots=True)
class Definition:
    """The one assignment of a variable, and the parts of what it assigns that are written later."""

    value: ast.expr
    changed: frozenset[str]

    @property
    def stays(self) -> bool:
        """Whether it is known which parts are written later."""
        return ANY not in self.changed


def definitions(node: ast.FunctionDef, seen: Changes) -> dict[str, Definition]:
    """The variables that are assigned once, and nowhere else bound."""
    found: dict[str, list[ast.expr]] = {}
    bound: set[str] = set()
    changed: dict[str, set[str]] = {}
    for statement in _own_statements(node.body):
        for head in _heads(statement):
            for name_, part in seen.of(head):
                changed.setdefault(name_, set()).add(part)
        own = [n for head in _heads(statement) for n in stores(head)]
        if (
            isinstance(statement, ast.Assign)
            and len(statement.targets) == 1
            and isinstance(statement.targets[0], ast.Name)
        ):
            found.setdefault(statement.targets[0].id, []).append(statement.value)
            own.remove(statement.targets[0].id)
        bound.update(own)
    return {
        k: Definition(v[0], frozenset(changed.get(k, ())))
        for k, v in found.items()
        if len(v) == 1 and k not in bound
    }


def _heads(statement: ast.stmt) -> list[ast.AST]:
    """A simple statement; of a compound one what stands in front of its blocks."""
    blocks = (ast.stmt, ast.excepthandler, ast.match_case)
    children = [*ast.iter_child_nodes(statement)]
    heads = [n for n in children if not isinstance(n, blocks)]
    return heads if len(heads) < len(children) else [statement]


def parts(e: ast.expr, fields: Collection[str] = ()) -> Iterator[tuple[str, ast.expr]]:
    """What a display or a call puts together, by name."""
    if isinstance(e, ast.Dict):
        for key, value in zip(e.keys, e.values, strict=True):
            if isinstance(key, ast.Constant):
                yield str(key.value), value
    elif isinstance(e, (ast.Tuple, ast.List)):
        yield from ((f"[{i}]", value) for i, value in enumerate(_before_star(e.elts)))
    elif isinstance(e, ast.Call):
        yield from zip(fields, _before_star(e.args), strict=False)
        yield from ((k.arg, k.value) for k in e.keywords if k.arg is not None)


def _before_star(values: list[ast.expr]) -> Iterator[ast.expr]:
    return takewhile(lambda v: not isinstance(v, ast.Starred), values)


def name(cx: Lowering, st: State, e: ast.expr, known: Mapping[str, Definition]) -> Named:
    """What one returned expression names; `known` are the definitions that it is followed to."""
    out = Named()
    _name(cx, st, e, "", out, known, 0)
    return out


def joined(prefix: str, part: str) -> str:
    """The name of a part of what has a name."""
    return prefix + part if part.startswith("[") else f"{prefix}.{part}" if prefix else part


def _name(
    cx: Lowering,
    st: State,
    e: ast.expr,
    prefix: str,
    out: Named,
    known: Mapping[str, Definition],
    depth: int,
    without: frozenset[str] = frozenset(),
) -> None:
    if depth > _DEPTH:
        return
    inner: list[tuple[str, ast.expr]] = []
    if isinstance(e, ast.IfExp):
        inner = [("", e.body), ("", e.orelse)]
    elif isinstance(e, ast.Name):
        out.variables.setdefault(prefix, set()).add(e.id)
        if not prefix:
            out.records.add(e.id)
        found = known.get(e.id)
        if found and found.stays and isinstance(found.value, (ast.Call, ast.Dict, ast.Tuple)):
            _name(cx, st, found.value, prefix, out, known, depth + 1, found.changed)
    elif isinstance(e, ast.Call):
        fields = fields_of(cx, st, e)
        if fields is not None:
            out.made.setdefault(prefix, set()).add(cx.position(e))
            inner = [*parts(e, fields)]
    elif isinstance(e, _COMPUTED):
        out.computed.add(prefix or "result")
    else:
        inner = [*parts(e)]
    for part, value in inner:
        if part not in without:
            where = joined(prefix, part) if part else prefix
            _name(cx, st, value, where, out, known, depth + 1)


def fields_of(cx: Lowering, st: State, e: ast.Call) -> list[str] | None:
    """The fields that a call gives by position, if it makes a record or a dict."""
    if not isinstance(e.func, ast.Name) or cx.entry_module is None:
        return None
    cls: V | None = None
    with suppress(Refused), cx.tentative():
        cls = modules.module_value(cx, st, cx.entry_module, e.func.id, e)
    if isinstance(cls, Cls):
        return [f[0] for f in calls.class_fields(cls)]
    return [] if e.func.id == "dict" else None
