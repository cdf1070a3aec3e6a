"""Abstract values: which labels of the batch a value carries, and what is known of its shape.

A label is `("src", name)` for a batch quantity, or `("arg", i)`, `("shape", i)`, `("vec", i)` for
what a parameter may bring. A taint maps labels to the way they took; an empty one is clean.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, final

from selc.lint.model import Step

Label = tuple[str, str | int]


class Flow(NamedTuple):
    """How one label reached a value: its steps, the comparison it passed, by data or by control."""

    steps: tuple[Step, ...]
    threshold: str = ""
    control: bool = False


Taint = Mapping[Label, Flow]
CLEAN: Final[Taint] = {}
_MOST_LABELS: Final = 5
_MOST_STEPS: Final = 12


class Unknown:
    """The constant of a value that is not known."""

    __slots__ = ()


UNKNOWN: Final = Unknown()


@final
class Val:
    """One abstract value. Never changed after it is made."""

    __slots__ = (
        "const",
        "fields",
        "items",
        "mode",
        "opaque",
        "rows",
        "shape",
        "taint",
        "target",
        "vec",
    )

    def __init__(
        self,
        taint: Taint = CLEAN,
        *,
        rows: Taint = CLEAN,
        vec: Taint = CLEAN,
        shape: Taint = CLEAN,
        items: tuple[Val, ...] | None = None,
        fields: Mapping[str, Val] | None = None,
        const: Any = UNKNOWN,
        target: Any = None,
        opaque: bool = False,
        mode: tuple[Step, ...] = (),
    ) -> None:
        self.taint = taint  # the value itself follows the batch
        self.rows = rows  # a tensor: its number of rows does
        self.vec = vec  # a collection: its maximum, sum or length does
        self.shape = shape  # a shape: its first element does
        self.items = items  # elements of a tuple or list that is written out
        self.fields = fields  # entries of a dict, attributes of a record
        self.const = const
        self.target = target  # the function, class, module or lambda that it is
        self.opaque = opaque  # comes out of something unknown
        self.mode = mode  # where the invariant mode was asked, if it came into this

    @property
    def dirty(self) -> bool:
        """Whether it carries anything of the batch or of a parameter."""
        return bool(self.taint or self.rows or self.vec or self.shape)


class Partial(NamedTuple):
    """A function with some arguments given."""

    function: Any
    arguments: tuple[Val, ...]
    keywords: Mapping[str, Val]


NOTHING: Final = Val()
OPAQUE: Final = Val(opaque=True)


def merge(first: Taint, second: Taint) -> Taint:
    """Both taints; of two ways of one label, the shorter."""
    if not first or first is second:
        return second
    if not second:
        return first
    out = dict(first)
    for label, flow in second.items():
        known = out.get(label)
        if known is None or (len(flow.steps), flow.control) < (len(known.steps), known.control):
            out[label] = flow
    if len(out) > _MOST_LABELS:
        kept = sorted(out, key=lambda label: (label[0] != "src", len(out[label].steps)))
        out = {label: out[label] for label in kept[:_MOST_LABELS]}
    return out


def step(taint: Taint, where: Step, threshold: str = "", control: bool = False) -> Taint:
    """The taint one place further on."""
    if not taint:
        return taint
    out = {}
    for label, flow in taint.items():
        steps = flow.steps
        fresh = not steps or steps[-1][:2] != where[:2]
        if fresh and len(steps) < _MOST_STEPS:
            steps = (*steps, where)
        out[label] = Flow(steps, flow.threshold or threshold, flow.control or control)
    return out


def only(taint: Taint, kind: str) -> Taint:
    """The labels of one kind."""
    return {label: flow for label, flow in taint.items() if label[0] == kind} if taint else taint


def join(first: Val, second: Val) -> Val:
    """A value that is one or the other."""
    if first is second:
        return first
    items = None
    ones, others = first.items, second.items
    if ones is not None and others is not None and len(ones) == len(others):
        items = tuple(map(join, ones, others))
    fields: Mapping[str, Val] | None = None
    if first.fields is not None or second.fields is not None:
        ours, theirs = first.fields or {}, second.fields or {}
        fields = {
            name: join(ours.get(name, OPAQUE), theirs.get(name, OPAQUE))
            for name in {**ours, **theirs}
        }
    same = type(first.const) is type(second.const) and first.const == second.const
    return Val(
        merge(first.taint, second.taint),
        rows=merge(first.rows, second.rows),
        vec=merge(first.vec, second.vec),
        shape=merge(first.shape, second.shape),
        items=items,
        fields=fields,
        const=first.const if same else UNKNOWN,
        target=first.target if first.target is second.target else None,
        opaque=first.opaque or second.opaque,
        mode=first.mode if len(first.mode) >= len(second.mode) else second.mode,
    )


def tainted(value: Val, taint: Taint) -> Val:
    """The same value, carrying more."""
    if not taint:
        return value
    return Val(
        merge(value.taint, taint),
        rows=value.rows,
        vec=value.vec,
        shape=value.shape,
        items=value.items,
        fields=value.fields,
        const=value.const,
        target=value.target,
        mode=value.mode,
    )


def truth(value: Val) -> bool | None:
    """Whether it is true, where that is known."""
    return None if isinstance(value.const, Unknown) else bool(value.const)


def dotted(node: ast.AST) -> str:
    """`a.b.c` of a name or attribute; calls and subscripts in between are written `()` and `[]`."""
    parts: list[str] = []
    while True:
        match node:
            case ast.Attribute(value=inner, attr=name):
                parts.append(name)
                node = inner
            case ast.Name(id=name):
                parts.append(name)
                return ".".join(reversed(parts))
            case ast.Call(func=inner):
                parts.append("()")
                node = inner
            case ast.Subscript(value=inner):
                parts.append("[]")
                node = inner
            case _:
                parts.append("?")
                return ".".join(reversed(parts))
