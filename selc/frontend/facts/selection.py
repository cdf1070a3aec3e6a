"""The `selection:` section: which function, its scope and roles, and extra guards."""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass, field
from typing import Final

from selc.diag.diagnostic import Sink
from selc.frontend.facts.inputs import read_choice
from selc.frontend.facts.model import Expr
from selc.frontend.facts.tree import (
    WRONG,
    Entry,
    Map,
    Tree,
    as_map,
    as_seq,
    as_text,
    error,
    fields,
    named,
)

ROLES: Final = ("bits", "neutral", "aux")
SCOPES: Final = ("request", "launch")
SELECTION_KEYS: Final = ("function", "scope", "family", "returns", "require", "assume")
NAME: Final = r"[^\W\d]\w*"
DOTTED: Final = re.compile(rf"{NAME}(\.{NAME})*")
TARGET: Final = re.compile(rf"({NAME}(\.{NAME})*:)?{NAME}(\.{NAME})*")


@dataclass(slots=True)
class Selection:
    """What the section says."""

    function: str | None = None
    scope: str | None = None
    family: str | None = None
    returns: dict[str, str] = field(default_factory=dict)
    require: tuple[Expr, ...] = ()
    assume: tuple[Expr, ...] = ()


def read_selection(tree: Map, sink: Sink) -> Selection:
    """Read the section."""
    found = fields(tree, SELECTION_KEYS, "selection", sink)
    out = Selection()
    if "function" in found:
        out.function = read_target(found["function"].tree, "selection.function", sink)
    if "scope" in found:
        out.scope = read_choice(found["scope"].tree, SCOPES, "selection.scope", sink)
    if "family" in found:
        out.family = as_text(found["family"].tree, "selection.family", sink)
    if "returns" in found:
        out.returns = _roles(found["returns"], sink)
    if "require" in found:
        out.require = _expressions(found["require"], "selection.require", sink)
    if "assume" in found:
        out.assume = _expressions(found["assume"], "selection.assume", sink)
    return out


def read_target(tree: Tree, what: str, sink: Sink) -> str | None:
    """A function, `Class.method`, or either behind `package.module:`."""
    example = "write `name`, `Class.method` or `package.module:name`"
    text = as_text(tree, what, sink, example)
    if text is None or TARGET.fullmatch(text):
        return text
    error(sink, WRONG, tree.span, f"{what}: `{text}` does not name a function or class", example)
    return None


def _roles(entry: Entry, sink: Sink) -> dict[str, str]:
    example = "write `returns: {field: bits}`, with '*' in quotes for all others"
    tree = as_map(entry.tree, "selection.returns", sink, example)
    roles: dict[str, str] = {}
    for name, place in named(tree, "a field of selection.returns", sink) if tree else ():
        role = read_choice(place.tree, ROLES, f"role of `{name}`", sink)
        if role is not None:
            roles[name] = role
    return roles


def _expressions(entry: Entry, what: str, sink: Sink) -> tuple[Expr, ...]:
    seq = as_seq(entry.tree, what, sink, 'write a list of expressions: ["a <= b"]')
    found = (
        read_expression(item, f"an entry of {what}", sink) for item in (seq.items if seq else ())
    )
    return tuple(e for e in found if e is not None)


def read_expression(tree: Tree, what: str, sink: Sink) -> Expr | None:
    """A text that parses as one Python expression."""
    text = as_text(tree, what, sink, "write a Python expression in quotes")
    if text is None:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            ast.parse(text, mode="eval")
    except SyntaxError as e:
        where = f" at its character {e.offset}" if e.offset else ""
        hint = "write one expression that is true where the selection is valid"
        if re.search(r"(?<![=!<>:])=(?!=)", text):
            hint = "write == to compare"
        message = f"{what}, `{text}`, is not a Python expression: {e.msg}{where}"
        error(sink, WRONG, tree.span, message, hint)
        return None
    except (ValueError, MemoryError, RecursionError):
        error(sink, WRONG, tree.span, f"{what} cannot be parsed", "write a shorter expression")
        return None
    return Expr(text, tree.span)
