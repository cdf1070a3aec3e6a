"""The nested result: which NamedTuple classes there are and how points fill them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from selc.codegen.names import distinct, identifier


@dataclass(slots=True)
class Branch:
    """One record of the result; children are records or indices of points."""

    children: dict[str | int, Branch | int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RecordClass:
    """A NamedTuple class: `fields` pairs the identifier of each field with its stored name."""

    name: str
    fields: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """The classes, innermost first, and how points stand in them.

    `expression` builds a result from `o0, o1, ...`; `access` is the attribute path of every point.
    """

    classes: tuple[RecordClass, ...]
    expression: str
    access: tuple[str, ...]


def arrange(paths: Sequence[tuple[str | int, ...]]) -> Branch:
    """The tree of the points; where one point's path runs through another, it stays flat."""
    root = Branch()
    taken = set(paths)
    for index, path in enumerate(paths):
        inside = any(path[:k] in taken for k in range(1, len(path)))
        steps: tuple[str | int, ...] = (_flat(path),) if inside else path
        branch = root
        for step in steps[:-1]:
            child = branch.children.setdefault(step, Branch())
            assert isinstance(child, Branch)
            branch = child
        key, count = steps[-1], 2
        while key in branch.children:
            key, count = f"{steps[-1]}_{count}", count + 1
        branch.children[key] = index
    return root


def shape_of(paths: Sequence[tuple[str | int, ...]]) -> Shape:
    """The classes and the expression for points with these paths."""
    classes: list[RecordClass] = []
    access = [""] * len(paths)
    expression = _build(arrange(paths), "Choice", "", classes, access)
    return Shape(tuple(classes), expression, tuple(access))


def _flat(path: tuple[str | int, ...]) -> str:
    return "_".join(str(step) for step in path)


def _build(
    branch: Branch, name: str, prefix: str, classes: list[RecordClass], access: list[str]
) -> str:
    keys = list(branch.children)
    is_tuple = all(isinstance(k, int) for k in keys) and sorted(map(int, keys)) == list(
        range(len(keys))
    )
    if is_tuple:
        keys = sorted(keys, key=int)
    idents = distinct(f"_{k}" if isinstance(k, int) else identifier(k, "field") for k in keys)
    if is_tuple:
        stored = idents
    else:
        stored = distinct(i if not i.startswith("_") else f"item{i}" for i in idents)
    values = []
    for key, ident in zip(keys, idents, strict=True):
        child = branch.children[key]
        where = f"{prefix}.{ident}" if prefix else ident
        if isinstance(child, int):
            access[child] = where
            values.append(f"o{child}")
        else:
            inner = f"{name}_{ident.strip('_')}"
            values.append(_build(child, inner, where, classes, access))
    fields = tuple(zip(idents, stored, strict=True))
    taken = {c.name for c in classes}
    chosen, count = name, 2
    while chosen in taken:
        chosen, count = f"{name}_{count}", count + 1
    classes.append(RecordClass(chosen, fields))
    return f"{chosen}({', '.join(values)})"
