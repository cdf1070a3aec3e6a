"""What `__init__` leaves in attributes: constants, and where the mode sets them."""

from __future__ import annotations

import ast

from selc.lint.index import Class, Function
from selc.lint.session import Session
from selc.lint.state import Exhausted, State
from selc.lint.values import NOTHING, OPAQUE, Val, join
from selc.lint.walk import MOST_GUARDS, execute


def walk_constructor(session: Session, owner: Class) -> dict[str, Val]:
    """Constants that every way through `__init__` leaves in an attribute."""
    method = owner.methods.get("__init__")
    found: dict[str, Val] = {}
    for base in owner.bases(session.index):
        found.update(session.attributes(base))
    if method is None:
        return found
    state = State(session, method.module, method, 1)
    state.silent = True
    try:
        if execute(state, method.node.body, ()) is None:
            state.leave(None, NOTHING)
    except (Exhausted, RecursionError):
        return found
    exits = [each.env for each in state.returned]
    names = {name for env in exits for name in env if name.startswith("self.")}
    found.update(_from_helpers(session, owner, method))
    later = {f"self.{attr}" for attr in _written_later(owner)}
    for name in names:
        values = [env.get(name, OPAQUE) for env in exits]
        whole = values[0]
        for value in values[1:]:
            whole = join(whole, value)
        mode = next((each.mode for each in values if each.mode), ())
        if name not in later:
            found[name[5:]] = Val(const=whole.const, target=whole.target, mode=mode)
        elif mode:
            found[name[5:]] = Val(mode=mode)
    return found


def _from_helpers(session: Session, owner: Class, method: Function) -> dict[str, Val]:
    """Attributes that the mode sets in the methods that `__init__` calls on the new object."""
    found: dict[str, Val] = {}
    if not session.names.modes:
        return found
    for node in ast.walk(method.node):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=attr)):
                helper = owner.method(session.index, attr)
                if helper is not None and helper is not method:
                    found.update(_set_by_mode(session, helper))
            case _:
                pass
    return found


def _set_by_mode(session: Session, helper: Function) -> dict[str, Val]:
    """Attributes whose value differs with the mode: in one way out, or between two."""
    state = State(session, helper.module, helper, 1)
    state.silent = True
    try:
        if execute(state, helper.node.body, ()) is None:
            state.leave(None, NOTHING)
    except (Exhausted, RecursionError):
        return {}
    exits = [each.env for each in state.returned]
    asked = tuple(dict.fromkeys(state.summary.guards))[:MOST_GUARDS]
    found: dict[str, Val] = {}
    for name in {name for env in exits for name in env if name.startswith("self.")}:
        values = [env.get(name) for env in exits]
        own = next((each.mode for each in values if each is not None and each.mode), ())
        mode = own or (asked if any(each is not values[0] for each in values) else ())
        if mode and not session.names.kind(name[5:]):  # a batch's name stays a source
            found[name[5:]] = Val(mode=mode)
    return found


def _written_later(owner: Class) -> set[str]:
    """Attributes that other methods set."""
    return {
        node.attr
        for name, method in owner.methods.items()
        if name != "__init__"
        for node in ast.walk(method.node)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }
