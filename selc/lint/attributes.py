"""The classes of attributes, from annotations and from constructor calls in `__init__`."""

from __future__ import annotations

import ast

from selc.lint.index import Class, Function
from selc.lint.session import Session
from selc.lint.state import State
from selc.lint.values import Val, dotted


def attribute_types(session: Session, owner: Class) -> dict[str, Class]:
    """Attribute names with the class of what they hold."""
    found = session.types.get(id(owner))
    if found is not None:
        return found
    found = session.types[id(owner)] = {}
    for base in owner.bases(session.index):
        found.update(attribute_types(session, base))
    for node in owner.node.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            _note(session, owner, node.target.id, node.annotation, found)
    method = owner.methods.get("__init__")
    if method is None:
        return found
    _from_constructor(session, method, found)
    return found


def _from_constructor(session: Session, method: Function, found: dict[str, Class]) -> None:
    state = State(session, method.module, method, 0)
    notes = {each.arg: each.annotation for each in method.parameters}
    inside = list(ast.walk(method.node))
    for node in inside:
        if isinstance(node, ast.Import | ast.ImportFrom):
            state.imports(node)
    for node in inside:
        match node:
            case ast.Assign(targets=[ast.Attribute(attr=attr) as target], value=value) if _own(
                target
            ):
                _constructed(state, attr, value, notes, found)
            case ast.AnnAssign(target=ast.Attribute(attr=attr) as target) if _own(target):
                named = state.annotated(node.annotation)
                if named is not None:
                    found.setdefault(attr, named)
                elif node.value is not None:
                    _constructed(state, attr, node.value, notes, found)
            case _:
                pass


def _own(target: ast.Attribute) -> bool:
    return isinstance(target.value, ast.Name) and target.value.id == "self"


def _note(
    session: Session, owner: Class, attr: str, note: ast.expr, found: dict[str, Class]
) -> None:
    methods = list(owner.methods.values())
    if methods:
        named = State(session, owner.module, methods[0], 0).annotated(note)
        if named is not None:
            found.setdefault(attr, named)


def _constructed(
    state: State,
    attr: str,
    value: ast.expr,
    notes: dict[str, ast.expr | None],
    found: dict[str, Class],
) -> None:
    match value:
        case ast.Call(func=func):
            name = dotted(func)
            if name.rsplit(".", 1)[-1].lstrip("_")[:1].isupper():
                made = state.resolve(name)
                if isinstance(made, Class):
                    found.setdefault(attr, made)
        case ast.Name(id=name) if name in notes:
            made = state.annotated(notes[name])
            if made is not None:
                found.setdefault(attr, made)
        case _:
            pass


def constructed(owner: Class, arguments: list[Val], keywords: dict[str, Val]) -> dict[str, Val]:
    """Attributes of a new object that are arguments of its constructor."""
    method = owner.methods.get("__init__")
    if method is None:
        declared = [
            node.target.id
            for node in owner.node.body
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
        ]
        return dict(zip(declared, arguments, strict=False))
    given = dict(zip([each.arg for each in method.parameters], arguments, strict=False))
    given |= keywords
    found = {}
    for node in method.node.body:
        match node:
            case ast.Assign(
                targets=[ast.Attribute(value=ast.Name(id="self"), attr=attr)],
                value=ast.Name(id=name),
            ) if name in given:
                found[attr] = given[name]
            case _:
                pass
    return found
