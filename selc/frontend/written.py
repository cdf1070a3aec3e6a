"""Values written out in facts with their class.

`{class: "package.module:Class", attrs: {...}}` is a dataclass or NamedTuple, `{class: list, items:
[...]}` a list: a plain list of a facts file arrives as a tuple.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Final

from selc.diag.diagnostic import Diagnostic, Refused
from selc.frontend.context import Lowering
from selc.frontend.state import State
from selc.frontend.values import Cls, InstObj, Ref, V

KEYS: Final = frozenset({"class", "attrs"})


def is_record(value: Mapping[object, object]) -> bool:
    """Whether a mapping of a facts file stands for an object of a class."""
    name = value.get("class")
    return value.keys() == KEYS and isinstance(name, str) and ":" in name


def is_list(value: Mapping[object, object]) -> bool:
    """Whether a mapping of a facts file stands for a list."""
    if value.keys() != {"class", "items"} or value["class"] != "list":
        return False
    return isinstance(value["items"], (tuple, list))


def record(cx: Lowering, value: Mapping[object, object], frozen: str) -> V:
    """The dataclass or NamedTuple, made as its constructor makes it from these fields."""
    from selc.frontend import calls, literals, names

    name, attrs = str(value["class"]), value["attrs"]
    module, _, cls_name = name.rpartition(":")
    source = cx.finder.find(module)
    where = ast.Name(cls_name, ast.Load())
    cls = (
        None if source is None else names.module_value(cx, State(cx.true), source, cls_name, where)
    )
    help_ = "write `package.module:Class` of a dataclass or NamedTuple, and its fields"
    if not isinstance(cls, Cls) or not calls.is_record_class(cx, cls):
        message = f"the facts write out a `{name}`, which is no dataclass or NamedTuple"
        raise Refused(Diagnostic("SEL908", message, help=help_))
    if not isinstance(attrs, Mapping):
        message = f"the facts write out a `{name}` without a mapping of its fields"
        raise Refused(Diagnostic("SEL911", message, help=help_))
    fields = {str(k): literals.from_python(cx, None, v, frozen) for k, v in attrs.items()}
    st = State(cx.true)
    made = calls.instantiate(cx, st, ast.Call(where, [], []), cls, (), fields)
    cx.heap.base.update(st.heap)
    if isinstance(made, Ref):
        obj = cx.heap.base[made.oid]
        assert isinstance(obj, InstObj)
        cx.heap.base[made.oid] = InstObj(obj.cls, obj.fields, frozen, obj.name)
    return made
