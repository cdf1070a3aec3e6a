"""What an expression can denote while a program is lowered.

Scalars are graph nodes. Everything with structure (tuples, dicts, objects, functions) is static:
only the scalars inside it are values of the graph. Objects that can be changed live in a heap and
are denoted by `Ref`, so that aliases see each other's changes.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from selc.ir.graph import Node
from selc.ir.op import Op

if TYPE_CHECKING:
    from pathlib import Path

    from selc.frontend.source import ModuleSource


@dataclass(frozen=True, slots=True, eq=False)
class Tup:
    """An immutable sequence. `fields` names a NamedTuple's elements; `size` tells a torch.Size.

    `cls` is the class of a NamedTuple, if it is known.
    """

    items: tuple[V, ...]
    fields: tuple[str, ...] = ()
    size: bool = False
    cls: Cls | None = None


@dataclass(frozen=True, slots=True)
class Ref:
    """A heap object."""

    oid: int


@dataclass(frozen=True, slots=True, eq=False)
class Func:
    """A function or lambda with the scope it closes over."""

    node: ast.FunctionDef | ast.Lambda
    module: ModuleSource
    qualname: str
    scope: int | None = None
    defaults: tuple[V, ...] = ()
    kw_defaults: Mapping[str, V] = field(default_factory=dict)
    cls: Cls | None = None
    flavour: str = ""  # 'static', 'class', 'property' or ''
    cached: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Cls:
    """A class whose body is read from source."""

    node: ast.ClassDef
    module: ModuleSource
    qualname: str


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """A function with its first argument."""

    func: Func
    self: V


@dataclass(frozen=True, slots=True, eq=False)
class Super:
    """`super()` of a class's method on an object."""

    cls: Cls
    self: V


@dataclass(frozen=True, slots=True, eq=False)
class Method:
    """A built-in method of a value, not yet called."""

    self: V
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Partial:
    """functools.partial."""

    func: V
    args: tuple[V, ...]
    kwargs: Mapping[str, V]


@dataclass(frozen=True, slots=True)
class ModuleV:
    """A module, by dotted name; followed on demand."""

    name: str


@dataclass(frozen=True, slots=True)
class External:
    """A dotted name that source does not define: a builtin, or something of a library."""

    name: str


@dataclass(frozen=True, slots=True)
class FileV:
    """An open file whose content is read at compile time."""

    path: Path


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """`then` if `cond` else `other`, where the two have different structure."""

    cond: Node
    then: V
    other: V


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception instance or class."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Unbound:
    """A name that no assignment reached."""

    name: str


@dataclass(frozen=True, slots=True)
class Poison:
    """Stands for something that was refused already; using it is refused in silence."""


@dataclass(frozen=True, slots=True)
class Opaque:
    """Something selc does not model; it may be passed around but not looked into.

    `parameters` and `constexprs` are those of a kernel whose definition was found, `home` its
    module; `query` is the callee of a call whose answer is not known; `made` tells a value that an
    expression gave from what a name of a module stands for, `data` one that may be a number or
    another choice, so that it must not be passed over.
    """

    text: str
    parameters: tuple[str, ...] = ()
    constexprs: frozenset[str] = frozenset()
    query: str = ""
    made: bool = False
    data: bool = False
    home: str = ""


@dataclass(frozen=True, slots=True)
class Seq:
    """A sequence of the batch by its input's name. `array`: whether it compares by element."""

    name: str
    array: bool | None = None  # None: not known


@dataclass(frozen=True, slots=True, eq=False)
class Mask:
    """An array of bools: every element of a sequence compared with a number."""

    seq: Seq
    op: Op
    other: Node


V: TypeAlias = (
    Node
    | Tup
    | Ref
    | Func
    | Cls
    | Bound
    | Super
    | Method
    | Partial
    | ModuleV
    | External
    | FileV
    | Choice
    | Raised
    | Unbound
    | Poison
    | Opaque
    | Seq
    | Mask
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A value that is there iff `present`; `loose`: at a place among the others that depends."""

    present: Node
    value: V
    loose: bool = False


def put(entries: dict[object, Entry], key: object, entry: Entry) -> None:
    """Write a key of a dict: where it was, or else last."""
    old = entries.get(key)
    if old is not None and old.present.is_const and not old.present.attr:
        del entries[key]
    elif old is not None:
        certain = old.present.is_const or next(reversed(entries)) == key
        entry = Entry(entry.present, entry.value, entry.loose or old.loose or not certain)
    entries[key] = entry


@dataclass(frozen=True, slots=True)
class DictObj:
    """A dict with constant keys. `unknown` names a module-level dict that begins as state."""

    entries: Mapping[object, Entry]
    unknown: str = ""
    frozen: str = ""  # why it must not be changed
    memo: tuple[tuple[V, V], ...] = ()  # symbolic (key, value) pairs of a memo dict


@dataclass(frozen=True, slots=True)
class ListObj:
    """A list (or set, or bytearray-like) of static length."""

    items: tuple[V, ...]
    unknown: str = ""
    frozen: str = ""
    kind: str = "list"


@dataclass(frozen=True, slots=True)
class InstObj:
    """An instance of a followed class, or a record."""

    cls: Cls | None
    fields: Mapping[str, Entry]
    frozen: str = ""
    name: str = ""


Obj: TypeAlias = DictObj | ListObj | InstObj
