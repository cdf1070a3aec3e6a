"""Writing parts of values: items of dicts and lists, attributes."""

from __future__ import annotations

import ast

from selc.frontend import (
    access,
    classes,
    expr,
    launches,
    library,
    literals,
    names,
    reading,
    tensors,
)
from selc.frontend.context import Lowering, snippet
from selc.frontend.state import State
from selc.frontend.tuplesite import unmarked
from selc.frontend.values import (
    Choice,
    Cls,
    DictObj,
    Entry,
    External,
    InstObj,
    ListObj,
    Ref,
    Tup,
    V,
    put,
)
from selc.ir.graph import Node
from selc.ir.op import Op


def store_subscript(cx: Lowering, st: State, target: ast.Subscript, value: V) -> None:
    """`container[key] = value`."""
    container = expr.lower(cx, st, target.value)
    if isinstance(container, Choice):
        index = expr.lower(cx, st, target.slice)

        def change(s: State, v: V) -> V:
            _set_item(cx, s, target, v, index, value)
            return cx.none

        expr.each(cx, st, container, change)
        return
    if tensors.is_opaque(cx, st, container) and container != External("os.environ"):
        return
    _set_item(cx, st, target, container, expr.lower(cx, st, target.slice), value)


def _set_item(
    cx: Lowering, st: State, target: ast.Subscript, container: V, index: V, value: V
) -> None:
    if isinstance(container, External) and container.name == "os.environ":
        library.environ_store(cx, st, target, index, value)
        return
    if not isinstance(container, Ref):
        cx.refuse(
            target, "SEL901", f"assigning into {expr.describe(cx, st, container)} is not supported"
        )
    obj = cx.obj(st, container, target)
    if isinstance(obj, ListObj):
        _set_list_item(cx, st, target, container, obj, index, value)
        return
    if not isinstance(obj, DictObj):
        cx.refuse(target, "SEL901", "assigning into an object is not supported")
    if _incomparable(cx, st, index):
        why = obj.unknown or snippet(target.value)
        cx.replace(st, container, DictObj({}, why, obj.frozen), target)
        return
    if obj.unknown:
        _remember(cx, st, value)
    key = access.key_or_node(cx, st, index, target, obj)
    if isinstance(key, Node):
        if not obj.unknown:
            cx.refuse(
                target,
                "SEL901",
                "writing a dict at a key that depends on an input is not supported",
                help="select the value first, then write it under a constant key",
            )
        memoize(cx, st, target, container, obj, index, value)
        return
    if obj.unknown and any(oid == container.oid for oid, _, _ in cx.obligations):
        memoize(cx, st, target, container, obj, index, value)
        return
    entries = dict(obj.entries)
    put(entries, key[0], Entry(cx.true, value))
    cx.replace(st, container, DictObj(entries, obj.unknown, obj.frozen, obj.memo), target)


def _remember(cx: Lowering, st: State, value: V) -> None:
    """Note the objects in what a memo dict keeps: the next call finds them as they are then."""
    if isinstance(value, Tup):
        for item in value.items:
            _remember(cx, st, item)
    elif isinstance(value, Choice):
        _remember(cx, st, value.then)
        _remember(cx, st, value.other)
    elif isinstance(value, Ref) and value.oid not in cx.heap.remembered:
        cx.heap.remembered.add(value.oid)
        obj = cx.heap.get(st, value)
        if isinstance(obj, ListObj):
            _remember(cx, st, Tup(obj.items))
        else:
            entries = obj.entries if isinstance(obj, DictObj) else obj.fields
            _remember(cx, st, Tup(tuple(x.value for x in entries.values())))


def _incomparable(cx: Lowering, st: State, index: V) -> bool:
    """Whether a key holds a device: any key may be equal to it, so the dict is not known then."""
    if isinstance(index, Tup):
        return any(_incomparable(cx, st, v) for v in index.items)
    if not isinstance(index, Ref) or tensors.is_tensor(cx, st, index):
        return False
    obj = cx.heap.get(st, index)
    return isinstance(obj, InstObj) and obj.name == tensors.DEVICE


def memoize(
    cx: Lowering, st: State, e: ast.AST, ref: Ref, obj: DictObj, index: V, value: V
) -> None:
    """A write to a memo dict: transparent if the key determines everything the value depends on."""
    if cx.change_counts.get(obj.unknown, 0) > 1:
        names.refuse_state(cx, e, obj.unknown)
    leaves = {unmarked(n).id for n in access.flat_nodes(index)}
    _keep_key(cx, index)
    for node in access.flat_nodes(value, cx, st):
        for leaf in cx.graph.cone([node]):
            if leaf.op is Op.INPUT and leaf.id not in leaves:
                cx.refuse(
                    e,
                    "SEL906",
                    f"what is remembered in `{obj.unknown}` depends on `{leaf.attr}`, which its "
                    "key leaves out",
                    help="make the key hold every input of the remembered value",
                )
    if not all(isinstance(n, Node) for n in access.flat_nodes(value, cx, st)):
        names.refuse_state(cx, e, obj.unknown)
    _settle_body(cx, obj.unknown, index, value)
    cx.obligations = [
        o for o in cx.obligations if not (o[0] == ref.oid and same_index(cx, o[1], index))
    ]
    cx.replace(
        st, ref, DictObj(obj.entries, obj.unknown, obj.frozen, (*obj.memo, (index, value))), e
    )


def _keep_key(cx: Lowering, index: V) -> None:
    """No pin on a memo's key alone: other values would be remembered under it than are computed."""
    for node in access.flat_nodes(index):
        for part in (node, *node.args[:1]) if node.op is Op.INDEX else (node,):
            key = cx.key_of(part)
            if key is not None and cx.sites[key].kind != "parameter":
                cx.spoiled.add(key)


def _settle_body(cx: Lowering, name: str, index: V, value: V) -> None:
    """Where several keys are remembered, no pin between a key and what is remembered under it.

    They may be equal: then the value of the first is read, whatever is overwritten on the way to
    that of the second.
    """
    known = {n.id for n in cx.graph.cone(access.flat_nodes(index))}
    made = {n.id for n in cx.graph.cone(access.flat_nodes(value))} - known
    before = cx.remembered_by.setdefault(name, [])
    before.append(made)
    inside = set[int]().union(*before) if len(before) > 1 else set()
    for key, site in cx.sites.items():
        if any(m.node.id in inside for m in site.marks):
            cx.spoiled.add(key)


def same_index(cx: Lowering, a: V, b: V) -> bool:
    """Whether two keys, constant or not, are certainly equal."""
    return a is b or access.same_key(cx, a, b)


def _set_list_item(
    cx: Lowering, st: State, target: ast.Subscript, ref: Ref, obj: ListObj, index: V, value: V
) -> None:
    known = cx.known(expr.as_node(cx, st, index, target))
    if obj.unknown:
        names.refuse_state(cx, target, obj.unknown)
    if known is None or not isinstance(known[0], int):
        cx.refuse(
            target, "SEL901", "writing a list at an index that depends on an input is not supported"
        )
    items = list(obj.items)
    if not -len(items) <= known[0] < len(items):
        cx.partial(st, target, cx.false, "IndexError", f"`{snippet(target)}` is out of range")
        return
    items[known[0]] = value
    cx.replace(st, ref, ListObj(tuple(items), frozen=obj.frozen, kind=obj.kind), target)


def store_attribute(cx: Lowering, st: State, target: ast.Attribute, value: V) -> None:
    """`object.name = value`."""
    owner = expr.lower(cx, st, target.value)
    if not isinstance(owner, Ref):
        cx.refuse(
            target,
            "SEL906",
            f"assigning an attribute of {expr.describe(cx, st, owner)} is not supported",
            help="only objects made by followed code can be changed",
        )
    obj = cx.obj(st, owner, target)
    if not isinstance(obj, InstObj):
        cx.refuse(target, "SEL901", "assigning an attribute of a dict or list is not supported")
    if obj.frozen == literals.FROM_FACTS:
        launches.assigned(cx, st, snippet(target), value, target)
        st.heap[owner.oid] = InstObj(
            obj.cls, {**obj.fields, target.attr: Entry(cx.true, value)}, obj.frozen, obj.name
        )
        return
    if obj.cls is not None:
        _plainly_stored(cx, st, target, obj.cls)
    fields = {**obj.fields, target.attr: Entry(cx.true, value)}
    cx.replace(st, owner, InstObj(obj.cls, fields, obj.frozen, obj.name), target)


def _plainly_stored(cx: Lowering, st: State, target: ast.Attribute, cls: Cls) -> None:
    """Refuse to store an attribute where a class has a say in it."""
    if reading.class_member(cx, st, cls, "__setattr__") is not None:
        cx.refuse(target, "SEL901", f"`{cls.qualname}` has a `__setattr__`, which is not followed")
    for each in classes.linear(cx, cls, target)[0]:
        if _is_frozen(each):
            cx.refuse(
                target,
                "SEL901",
                f"`{each.qualname}` is frozen: assigning `{target.attr}` raises",
                help="make a copy with another field: `dataclasses.replace(x, ...)`",
            )
        for item in each.node.body:
            if isinstance(item, ast.FunctionDef) and item.name == target.attr and _governs(item):
                cx.refuse(
                    target, "SEL901", f"storing into the property `{target.attr}` is not followed"
                )
    member = reading.class_member(cx, st, cls, target.attr)
    held = cx.heap.get(st, member) if isinstance(member, Ref) else None
    if (
        isinstance(held, InstObj)
        and held.cls is not None
        and reading.class_member(cx, st, held.cls, "__set__") is not None
    ):
        cx.refuse(target, "SEL901", f"storing into the descriptor `{target.attr}` is not followed")


def _is_frozen(cls: Cls) -> bool:
    """Whether a class is a dataclass that may be frozen."""
    for decorator in cls.node.decorator_list:
        options = decorator.keywords if isinstance(decorator, ast.Call) else []
        for option in options:
            off = isinstance(option.value, ast.Constant) and option.value.value is False
            if option.arg == "frozen" and not off:
                return True
    return False


def _governs(function: ast.FunctionDef) -> bool:
    """Whether a method is a property, which stands before what an object holds itself."""
    names = [ast.unparse(d).rpartition(".")[2] for d in function.decorator_list]
    return any(n in ("property", "setter", "getter", "deleter", "abstractproperty") for n in names)
