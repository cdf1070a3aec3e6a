"""Methods of built-in types: strings, dicts, lists; copies."""

from __future__ import annotations

import ast
from dataclasses import replace

from selc.frontend import (
    access,
    arity,
    expr,
    iteration,
    names,
    sequences,
    tensors,
)
from selc.frontend.context import Lowering, snippet
from selc.frontend.iterators import View
from selc.frontend.sets import FROZENSET
from selc.frontend.state import State
from selc.frontend.values import (
    Choice,
    DictObj,
    Entry,
    InstObj,
    ListObj,
    Mask,
    Opaque,
    Ref,
    Seq,
    Tup,
    V,
    put,
)
from selc.ir.graph import Node
from selc.ir.op import Op


def raw_entries(cx: Lowering, st: State, ref: Ref, e: ast.AST) -> dict[object, Entry]:
    """The entries of a dict, also of those that may be absent."""
    obj = cx.obj(st, ref, e)
    assert isinstance(obj, DictObj)
    if obj.unknown:
        names.refuse_state(cx, e, obj.unknown)
    return dict(obj.entries)


def merged_dicts(cx: Lowering, st: State, e: ast.expr, left: Ref, right: Ref) -> V:
    """`left | right` of two dicts or sets."""
    sets = _set_algebra(cx, st, e, Op.BITOR, left, right)
    if sets is not None:
        return sets
    if not all(isinstance(cx.obj(st, r, e), DictObj) for r in (left, right)):
        cx.refuse(e, "SEL901", "`|` between these objects is not supported")
    entries = raw_entries(cx, st, left, e)
    for key, entry in iteration.entries_of(cx, st, right, e).items():
        put(entries, key, entry)
    return cx.heap.new(st, DictObj(entries))


def _set_algebra(cx: Lowering, st: State, e: ast.expr, op: Op, left: Ref, right: Ref) -> V | None:
    """`|`, `&`, `-` of two sets whose elements are known; None if these are no sets."""
    a, b = cx.obj(st, left, e), cx.obj(st, right, e)
    if not (isinstance(a, ListObj) and isinstance(b, ListObj) and a.kind == b.kind == "set"):
        return None
    for obj in (a, b):
        if obj.unknown:
            names.refuse_state(cx, e, obj.unknown)
    first = {access.static_key(cx, st, v, e): v for v in a.items}
    second = {access.static_key(cx, st, v, e): v for v in b.items}
    if op is Op.BITOR:
        out = {**second, **first}
    else:
        out = {k: v for k, v in first.items() if (k in second) == (op is Op.BITAND)}
    frozen = a.frozen if a.frozen == FROZENSET else ""
    return cx.heap.new(st, ListObj(tuple(out.values()), frozen=frozen, kind="set"))


def set_operation(cx: Lowering, st: State, e: ast.expr, op: Op, left: Ref, right: Ref) -> V | None:
    """`&` and `-` of two sets; None if these are no sets."""
    return _set_algebra(cx, st, e, op, left, right) if op in (Op.BITAND, Op.SUB) else None


def method(  # noqa: C901  # one case per kind
    cx: Lowering,
    st: State,
    e: ast.expr,
    self: V,
    name: str,
    args: tuple[V, ...],
    kwargs: dict[str, V],
) -> V:
    """A method of a built-in type."""
    assert isinstance(e, ast.Call)
    if isinstance(self, Mask) and name in ("any", "all") and not (args or kwargs):
        return sequences.quantified(cx, st, e, self, name == "all")
    if isinstance(self, Seq):
        if args or kwargs:
            cx.refuse(
                e, "SEL901", f"`{snippet(e)}` along a dimension is not supported: {sequences.ONLY}"
            )
        return sequences.aggregate(cx, st, e, self, name, method=True)
    if isinstance(self, Node):
        arity.check(cx, e, arity.NUMBER.get(name, arity.TEXT), args, kwargs)
        return _node_method(cx, st, e, self, name, args)
    if isinstance(self, Ref):
        obj = cx.obj(st, self, e)
        if isinstance(obj, DictObj):
            arity.check(cx, e, arity.DICT.get(name), args, kwargs)
            return _dict_method(cx, st, e, self, obj, name, args, kwargs)
        if isinstance(obj, ListObj):
            arity.check(cx, e, arity.LIST.get(name), args, kwargs)
            return _list_method(cx, st, e, self, obj, name, args)
        if obj.name == tensors.TENSOR:
            return tensors.method(cx, st, e, self, name, args, kwargs)
    if isinstance(self, Tup) and self.size and name == "numel" and not args:
        return tensors.product(cx, [expr.as_node(cx, st, v, e) for v in self.items])
    if isinstance(self, Tup):
        arity.check(cx, e, arity.TUPLE.get(name), args, kwargs)
    if isinstance(self, Tup) and name in ("index", "count"):
        return cx.op(
            st,
            e,
            Op.METHOD,
            expr.as_node(cx, st, self, e),
            *[expr.as_node(cx, st, a, e) for a in args],
            attr=name,
        )
    if isinstance(self, Tup) and name == "_replace":
        if not set(kwargs) <= set(self.fields):
            cx.refuse(e, "SEL901", f"`{snippet(e)}` names a field that the tuple does not have")
        items = tuple(kwargs.get(f, v) for f, v in zip(self.fields, self.items, strict=True))
        return Tup(items, self.fields, cls=self.cls)
    if isinstance(self, Tup) and name == "_asdict":
        return cx.heap.new(
            st,
            DictObj({f: Entry(cx.true, v) for f, v in zip(self.fields, self.items, strict=True)}),
        )
    cx.refuse(
        e, "SEL901", f"the method `.{name}` of {expr.describe(cx, st, self)} is not supported"
    )


def _node_method(
    cx: Lowering, st: State, e: ast.Call, self: Node, name: str, args: tuple[V, ...]
) -> V:
    if name == "bit_length":
        return cx.op(st, e, Op.BIT_LENGTH, self)
    if name == "is_integer":
        return cx.op(st, e, Op.IS_INTEGER, self)
    if name == "item":
        return sequences.sited(cx, st, e, self) if self.op is Op.INPUT else self
    nodes = [
        _joined(cx, st, a, e)
        if isinstance(a, Ref) or a in cx.iterators
        else expr.as_node(cx, st, a, e)
        for a in args
    ]
    return cx.op(st, e, Op.METHOD, self, *nodes, attr=name)


def _joined(cx: Lowering, st: State, value: V, e: ast.AST) -> Node:
    return expr.as_node(cx, st, Tup(iteration.iterate(cx, st, value, e)), e)


def _dict_method(
    cx: Lowering,
    st: State,
    e: ast.Call,
    ref: Ref,
    obj: DictObj,
    name: str,
    args: tuple[V, ...],
    kwargs: dict[str, V],
) -> V:
    if name == "get":
        default = args[1] if len(args) > 1 else cx.none
        return expr.each(cx, st, args[0], lambda s, v: access.dict_get(cx, s, e, obj, v, default))
    if name in ("keys", "values", "items"):
        entries = iteration.in_order(cx, st, ref, e)
        if name == "keys":
            view = Tup(tuple(iteration.key_value(cx, k) for k in entries))
        elif name == "values":
            view = Tup(tuple(v.value for v in entries.values()))
        else:
            pairs = ((iteration.key_value(cx, k), v.value) for k, v in entries.items())
            view = Tup(tuple(Tup(pair) for pair in pairs))
        cx.iterators.shown.add(view)
        cx.iterators.takes(view, (ref,), False)
        if not obj.frozen:
            held = {r.oid: st.heap.get(r.oid) for r in cx.heap.related(ref)}
            cx.iterators.views[view] = View(e, held)
        return view
    if name == "copy":
        return copied(cx, st, e, ref, deep=False)
    if name == "update":
        return update(cx, st, e, ref, obj, args, kwargs)
    if name in ("pop", "setdefault"):
        return _pop_or_set(cx, st, e, ref, obj, name, args)
    if name == "clear":
        cx.replace(st, ref, DictObj({}, "", obj.frozen), e)
        return cx.none
    cx.refuse(e, "SEL901", f"the dict method `.{name}` is not supported")


def update(
    cx: Lowering,
    st: State,
    e: ast.expr,
    ref: Ref,
    obj: DictObj,
    args: tuple[V, ...],
    kwargs: dict[str, V],
) -> V:
    """`ref.update(*args, **kwargs)` of a dict."""
    entries = dict(obj.entries)
    if args and isinstance(args[0], Choice):

        def one(s: State, v: V) -> V:
            inner = cx.obj(s, ref, e)
            assert isinstance(inner, DictObj)
            return update(cx, s, e, ref, inner, (v,), kwargs)

        return expr.each(cx, st, args[0], one)
    if args:
        other = args[0]
        extra = cx.obj(st, other, e) if isinstance(other, Ref) else None
        if isinstance(extra, DictObj):
            if extra.unknown:
                names.refuse_state(cx, e, extra.unknown)
            for key, entry in extra.entries.items():
                put(entries, key, _overlay(cx, st, e, entries.get(key), entry))
        else:
            for pair in iteration.iterate(cx, st, other, e):
                key, value = iteration.iterate(cx, st, pair, e)
                put(entries, access.static_key(cx, st, key, e), Entry(cx.true, value))
    for key, value in kwargs.items():
        put(entries, key, Entry(cx.true, value))
    cx.replace(st, ref, DictObj(entries, obj.unknown, obj.frozen, obj.memo), e)
    return cx.none


def _overlay(cx: Lowering, st: State, e: ast.AST, old: Entry | None, new: Entry) -> Entry:
    """An entry after an update with one that may be absent."""
    if old is None or cx.known_bool(new.present) is True:
        return new
    value = cx.branch(st, new.present, access._give(new.value), access._give(old.value))
    return Entry(cx.graph.either(new.present, old.present), value, new.loose)


def _pop_or_set(
    cx: Lowering, st: State, e: ast.Call, ref: Ref, obj: DictObj, name: str, args: tuple[V, ...]
) -> V:
    key = access.static_key(cx, st, args[0], e)
    entry = obj.entries.get(key)
    if entry is None and obj.unknown:
        names.refuse_state(cx, e, obj.unknown)
    absent = Entry(cx.false, cx.none)
    entry = entry or absent
    if name == "pop":
        value = entry.value
        if len(args) > 1:
            default = args[1]
            value = cx.branch(st, entry.present, access._give(entry.value), access._give(default))
        else:
            cx.partial(st, e, entry.present, "KeyError", f"the key {key!r} must be there")
        entries = {k: v for k, v in obj.entries.items() if k != key}
        cx.replace(st, ref, DictObj(entries, obj.unknown, obj.frozen, obj.memo), e)
        return value
    default = args[1] if len(args) > 1 else cx.none
    value = cx.branch(st, entry.present, access._give(entry.value), access._give(default))
    entries = dict(obj.entries)
    put(entries, key, Entry(cx.true, value))
    cx.replace(st, ref, DictObj(entries, obj.unknown, obj.frozen, obj.memo), e)
    return value


def _list_method(
    cx: Lowering, st: State, e: ast.Call, ref: Ref, obj: ListObj, name: str, args: tuple[V, ...]
) -> V:
    if name in ("append", "add", "extend", "insert") and obj.unknown:
        return cx.none  # its content is unknown anyway, and reading it is refused
    if obj.unknown:
        names.refuse_state(cx, e, obj.unknown)
    items = list(obj.items)
    result: V = cx.none
    if name in ("append", "add"):
        items.append(args[0])
    elif name == "extend":
        items.extend(iteration.iterate(cx, st, args[0], e))
    elif name == "copy":
        return cx.heap.new(st, _copy(obj, obj.items))
    elif name == "pop" and items:
        index = cx.known(expr.as_node(cx, st, args[0], e)) if args else (-1,)
        if (
            index is None
            or not isinstance(index[0], int)
            or not -len(items) <= index[0] < len(items)
        ):
            cx.refuse(e, "SEL901", "popping at an index that depends on an input is not supported")
        result = items.pop(index[0])
    elif name in ("index", "count"):
        return cx.op(
            st,
            e,
            Op.METHOD,
            expr.as_node(cx, st, Tup(obj.items), e),
            *[expr.as_node(cx, st, a, e) for a in args],
            attr=name,
        )
    elif name == "insert":
        index = cx.known(expr.as_node(cx, st, args[0], e))
        if index is None or not isinstance(index[0], int):
            cx.refuse(
                e, "SEL901", "inserting at an index that depends on an input is not supported"
            )
        items.insert(index[0], args[1])
    elif name == "reverse":
        items.reverse()
    else:
        cx.refuse(e, "SEL901", f"the list method `.{name}` is not supported")
    cx.replace(st, ref, ListObj(tuple(items), obj.unknown, obj.frozen, obj.kind), e)
    return result


def _copy(obj: ListObj, items: tuple[V, ...]) -> ListObj:
    return ListObj(items, frozen=obj.frozen if obj.frozen == FROZENSET else "", kind=obj.kind)


def copied(cx: Lowering, st: State, e: ast.AST, value: V, deep: bool) -> V:
    """A copy of a dict, list or object."""
    if isinstance(value, Choice):
        return expr.each(cx, st, value, lambda s, v: copied(cx, s, e, v, deep))
    if isinstance(value, Ref):
        obj = cx.obj(st, value, e)
        if isinstance(obj, (DictObj, ListObj)) and obj.unknown:
            names.refuse_state(cx, e, obj.unknown)

        def inner(v: V) -> V:
            return copied(cx, st, e, v, deep) if deep else v

        if isinstance(obj, DictObj):
            return cx.heap.new(
                st, DictObj({k: replace(v, value=inner(v.value)) for k, v in obj.entries.items()})
            )
        if isinstance(obj, ListObj):
            return cx.heap.new(st, _copy(obj, tuple(inner(v) for v in obj.items)))
        fields = {k: Entry(v.present, inner(v.value)) for k, v in obj.fields.items()}
        return cx.heap.new(st, InstObj(obj.cls, fields, "", obj.name))
    if isinstance(value, (Node, Tup, Opaque)):
        return value
    cx.refuse(e, "SEL901", "copying this value is not supported")
