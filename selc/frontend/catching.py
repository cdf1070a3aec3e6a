"""What `try` catches: exception types, guarded imports, clauses."""

from __future__ import annotations

import ast
import builtins as py
from collections.abc import Iterable

from selc.frontend import (
    bodies,
    expr,
    names,
    stmt,
)
from selc.frontend.context import Exit, Lowering
from selc.frontend.state import State
from selc.frontend.values import (
    Cls,
    External,
    Raised,
)


def catches(cx: Lowering, st: State, handlers: list[ast.ExceptHandler]) -> list[set[str]]:
    """The exception types of each handler of a `try`."""
    out: list[set[str]] = []
    for handler in handlers:
        if handler.type is None:
            out.append({"BaseException"})
            continue
        types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        names_: set[str] = set()
        for t in types:
            value = expr.lower(cx, st, t)
            if isinstance(value, External):
                names_.add(value.name.removeprefix("builtins."))
            elif isinstance(value, Cls):
                names_.add(value.qualname)
            else:
                cx.refuse(t, "SEL901", "this exception class cannot be followed")
        out.append(names_)
    return out


def matches(exception: str, types: set[str]) -> bool:
    """Whether a handler of these types takes an exception."""
    own, _, above = exception.partition(":")
    names_ = [own, *above.split(",")] if above else [own]
    if not types.isdisjoint(names_):
        return True
    raised = [c for n in names_ if isinstance(c := getattr(py, n, None), type)]
    caught = tuple(c for t in types if isinstance(c := getattr(py, t, None), type))
    return any(issubclass(r, caught) for r in raised)


def imports_succeed(cx: Lowering, body: list[ast.stmt]) -> None:
    """Refuse a guarded import unless the facts say of every name it binds what it is."""
    stated: dict[str, Iterable[str]] = {
        "functions": cx.facts.functions,
        "globals": cx.facts.globals,
    }
    for node in [
        n for b in body for n in ast.walk(b) if isinstance(n, (ast.Import, ast.ImportFrom))
    ]:
        for name, target in names.bindings(cx, cx.frame.module, node).items():
            if names.absent(cx, node, target):
                continue
            found = [
                f"{section}.{key}"
                for section, keys in stated.items()
                for key in keys
                if key in (name, target) or key.startswith((f"{name}.", f"{target}."))
            ]
            if not found:
                cx.refuse(
                    node,
                    "SEL901",
                    f"whether the import of `{name}` succeeds is not known to selc",
                    help=(
                        f"state `{name}` under `functions:` or `globals:` in the facts; it is "
                        "then taken to be there"
                    ),
                )
            cx.read.update(found)


def clause(cx: Lowering, clause: ast.ExceptHandler, raises: list[Exit]) -> list[Exit]:
    """Run one handler for what reaches it."""
    state = State(cx.true)
    live = cx.false
    for x in raises:
        live = cx.graph.either(live, x.live)
    bodies.join(cx, state, raises)
    several = any(x.exception != raises[0].exception for x in raises)
    exception = stmt.SEVERAL if several else raises[0].exception
    outer, cx.current_exception = cx.current_exception, exception
    try:
        with cx.under(live):
            state.live = cx.true
            if clause.name is not None:
                names.store(cx, state, clause.name, Raised(exception, ""))
            stmt.block(cx, state, clause.body)
    finally:
        cx.current_exception = outer
    if state.dead:
        return []
    return [Exit(cx.graph.both(live, state.live), state.fork(cx.true), None)]
