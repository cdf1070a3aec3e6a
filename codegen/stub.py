"""`selector.pyi`: what editors and type checkers know of an emitted package."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from selc.codegen.module import argument_identifiers, opening
from selc.codegen.py import PythonBody
from selc.codegen.spec import Argument, SelectorSpec
from selc.codegen.tree import Shape
from selc.ir.domain import Domain

NAMES = (
    "FACTS", "KNOBS", "NATIVE", "NATIVE_REASON", "PINS", "SelectionError", "commit", "legal",
    "load", "pins", "points", "record", "repin", "select", "select_unpinned",
)  # fmt: skip
_TYPES = {"none": "None", "tuple": "tuple[Any, ...]", "symbol": "Symbol"}
_PLAIN = {bool: "bool", float: "float", str: "str", int: "SupportsIndex", type(None): "None"}

_HEAD = """\
from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any, NamedTuple, SupportsIndex

from ._record import Recorder
from ._runtime import SelectionError as SelectionError, Symbol
from ._surface import Knob, Pin
"""

_TAIL = '''
PINS: dict[str, Pin]
KNOBS: dict[str, Knob]
FACTS: dict[str, Any]
NATIVE: bool
NATIVE_REASON: str

def repin(assignment: Mapping[str, object]) -> dict[str, object]:
    """Put new values of pins and knobs in force; those not named stay. Returns all of them."""

def pins() -> dict[str, object]:
    """The pins and knobs in force."""

def legal(
    partial: Mapping[str, object] | None = ..., **named: object
) -> dict[str, tuple[object, ...]]:
    """The values that remain for every pin and knob once some are fixed."""

def commit(path: str | PathLike[str], assignment: Mapping[str, object] | None = ...) -> None:
    """Write the tuple in force to a tuple file, or as constants (`.py`, `.h`)."""

def load(path: str | PathLike[str]) -> dict[str, object]:
    """Put the tuple of a tuple file in force."""

def points(choice: Choice) -> dict[str, object]:
    """A choice by the names of its points."""

def record(path: str | PathLike[str] | None = ..., limit: int = ...) -> Recorder:
    """A counter of distinct calls, written when it is closed or the process ends."""
'''


def stub_text(spec: SelectorSpec, bodies: Iterable[PythonBody], shape: Shape, digest: str) -> str:
    """The stub of the package."""
    kinds: list[set[str]] = [set() for _ in spec.residual.points]
    for body in bodies:
        for found, node in zip(kinds, body.routine.outputs, strict=True):
            found |= set(body.facts[node.id].abs.kinds)
    types = [" | ".join(sorted({_TYPES.get(k, k) for k in found})) or "Any" for found in kinds]
    classes = _classes(shape, types)
    signature = ", ".join(
        f"{ident}: {_argument(argument)}"
        for argument, ident in zip(spec.arguments, argument_identifiers(spec), strict=True)
    )
    lines = [*opening(spec, digest, "The types of the selector."), _HEAD, *classes]
    for name, what in (
        ("select", "The choice for a call, whose domain and guards are checked."),
        ("select_unpinned", "What the selection takes without any pin."),
    ):
        lines += [f"def {name}({signature}) -> Choice:", f'    """{what}"""', ""]
    return "\n".join(lines) + _TAIL


def package_stub(spec: SelectorSpec, digest: str) -> str:
    """The stub of `__init__`: everything of `selector.pyi`, which is no module of its own."""
    names = [f"    {n} as {n}," for n in (*NAMES, "Choice")]
    head = opening(spec, digest, "What `import` gives; the types stand in selector.pyi.")
    return "\n".join([*head, "from .selector import (", *names, ")", ""])


def _classes(shape: Shape, types: list[str]) -> list[str]:
    fields: dict[str, list[str]] = {}

    def visit(node: ast.expr) -> str:
        if isinstance(node, ast.Name):
            return types[int(node.id[1:])]
        assert isinstance(node, ast.Call)
        assert isinstance(node.func, ast.Name)
        fields[node.func.id] = [visit(a) for a in node.args]
        return node.func.id

    visit(ast.parse(shape.expression, mode="eval").body)
    lines: list[str] = []
    for made in shape.classes:
        held = list(zip(made.fields, fields[made.name], strict=True))
        if any(stored.startswith("_") for (_, stored), _ in held) or not held:
            of = ", ".join(text for _, text in held) or "()"
            lines.append(f"class {made.name}(tuple[{of}]):")
            lines += [f"    {ident}: {text}" for (ident, _), text in held] or ["    ..."]
        else:
            lines.append(f"class {made.name}(NamedTuple):")
            lines += [f"    {stored}: {text}" for (_, stored), text in held]
            for (ident, stored), text in held:
                if ident != stored:
                    lines += ["    @property", f"    def {ident}(self) -> {text}: ..."]
        lines.append("")
    return lines


def _argument(argument: Argument) -> str:
    if argument.sequence is not None:
        return "Iterable[SupportsIndex]"
    assert argument.domain is not None
    return _domain(argument.domain)


def _domain(domain: Domain) -> str:
    if domain.values is None:
        return "SupportsIndex"
    found = {_PLAIN.get(type(v), "Any") for v in domain.values}
    return "Any" if "Any" in found else " | ".join(sorted(found))
