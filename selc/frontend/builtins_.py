"""Built-in functions, methods of built-in types, iteration and comprehensions."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from selc.frontend import (
    access,
    alive,
    arity,
    calls,
    classes,
    enums,
    expr,
    iteration,
    methods,
    reading,
    sequences,
    sets,
    tensors,
)
from selc.frontend.context import Lowering, snippet
from selc.frontend.literals import FROM_FACTS
from selc.frontend.state import State
from selc.frontend.values import (
    Choice,
    Cls,
    DictObj,
    Entry,
    External,
    InstObj,
    ListObj,
    Opaque,
    Raised,
    Ref,
    Seq,
    Tup,
    V,
    put,
)
from selc.ir.graph import Node
from selc.ir.op import Op

# -- iteration -----------------------------------------------------------------------------------


# -- functions -----------------------------------------------------------------------------------


def call(
    cx: Lowering, st: State, e: ast.Call, name: str, args: tuple[V, ...], kwargs: dict[str, V]
) -> V:
    """A built-in function."""
    arity.check(cx, e, arity.FUNCTIONS.get(name), args, kwargs)
    if args and isinstance(args[0], Choice) and name in _OF_COLLECTIONS and len(args) == 1:
        return expr._sited(
            cx, st, e, expr.each(cx, st, args[0], lambda s, v: call(cx, s, e, name, (v,), kwargs))
        )
    rule = _FUNCTIONS.get(name)
    if rule is not None:
        computed = [e] if name == "map" else []
        heap = dict(st.heap) if computed else {}
        value = rule(cx, st, e, args, kwargs)
        if name not in iteration.ITERATORS:
            return value
        alive.unmoved(cx, st, e, heap)
        cx.iterators.takes(value, args, name == "reversed", *computed)
        return iteration.once(cx, value, e)
    if name == "super":
        return classes.call(cx, st, e)
    import builtins as py

    found = getattr(py, name, None)
    if isinstance(found, type) and issubclass(found, BaseException):
        text = cx.known(args[0]) if args and isinstance(args[0], Node) else None
        return Raised(name, str(text[0]) if text else "")
    cx.refuse(
        e,
        "SEL901",
        f"the built-in `{name}` is not supported",
        help=f'state the call under `functions:`: "{snippet(e.func)}"',
    )


Rule = Callable[[Lowering, State, ast.Call, tuple[V, ...], dict[str, V]], V]


def _extremum(largest: bool) -> Rule:
    def rule(cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]) -> V:
        op2, op1 = (Op.MAX2, Op.MAX) if largest else (Op.MIN2, Op.MIN)
        if len(args) == 1 and isinstance(args[0], Seq) and not kwargs:
            return sequences.aggregate(cx, st, e, args[0], "max" if largest else "min")
        if (
            len(args) == 1
            and isinstance(args[0], Node)
            and "key" not in kwargs
            and "default" not in kwargs
        ):
            return cx.op(st, e, op1, args[0])
        if len(args) == 1 and isinstance(args[0], Choice):
            return expr.each(cx, st, args[0], lambda s, v: rule(cx, s, e, (v,), kwargs))
        items = args if len(args) > 1 else iteration.iterate(cx, st, args[0], e)
        if not items:
            if "default" in kwargs:
                return kwargs["default"]
            cx.partial(st, e, cx.false, "ValueError", f"`{snippet(e)}` of an empty collection")
            return cx.graph.add(Op.FAIL)
        key = kwargs.get("key", cx.none)
        if key is cx.none:
            if cx.enums and any(isinstance(v, Node) and enums.of(cx, v) is not None for v in items):
                return _by_key(
                    cx, st, e, items, [enums.ordered(cx, st, v, e, largest) for v in items], largest
                )
            if any(not isinstance(v, Node) for v in items):
                return _by_key(cx, st, e, items, list(items), largest)
            out = expr.as_node(cx, st, items[0], e)
            for item in items[1:]:
                out = cx.op(st, e, op2, out, expr.as_node(cx, st, item, e))
            return out
        return _by_key(
            cx, st, e, items, [calls.invoke(cx, st, e, key, (v,), {}) for v in items], largest
        )

    return rule


def _by_key(
    cx: Lowering, st: State, e: ast.Call, items: tuple[V, ...], keys: list[V], largest: bool
) -> V:
    """The first item whose key is extreme, as CPython scans them."""
    best, best_key = items[0], expr.as_node(cx, st, keys[0], e)
    for item, key in zip(items[1:], keys[1:], strict=True):
        node = expr.as_node(cx, st, key, e)
        better = cx.graph.fold(
            Op.GT if largest else Op.LT, cx.settle(node), cx.settle(best_key), origin=cx.span(e)
        )
        cx.check(st, e, Op.GT if largest else Op.LT, None, (cx.settle(node), cx.settle(best_key)))
        old = best
        best = cx.branch(st, better, access._give(item), access._give(old))
        best_key = cx.graph.select(better, node, best_key)
    return expr._sited(cx, st, e, best)


def _sum(cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]) -> V:
    if isinstance(args[0], Seq) and len(args) == 1 and not kwargs:
        return sequences.aggregate(cx, st, e, args[0], "sum")
    if isinstance(args[0], Node) and len(args) == 1 and not kwargs and cx.known(args[0]) is None:
        return cx.op(st, e, Op.SUM, args[0])
    start = args[1] if len(args) > 1 else kwargs.get("start", cx.graph.const(0))
    out = start
    for item in iteration.iterate(cx, st, args[0], e):
        out = expr.binary(cx, st, e, Op.ADD, out, item)
    return out


def _len(cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]) -> V:
    value = args[0]
    if isinstance(value, Seq):
        return sequences.aggregate(cx, st, e, value, "len")
    if isinstance(value, Ref) and tensors.is_tensor(cx, st, value):
        shape = tensors.parts(cx, st, value)[0]
        return shape[0] if shape else cx.graph.add(Op.FAIL)
    if isinstance(value, Opaque):
        return Opaque(snippet(e), query=value.query or snippet(e.func), made=True, data=True)
    if isinstance(value, Choice):
        return expr.each(cx, st, value, lambda s, v: _len(cx, s, e, (v,), {}))
    if isinstance(value, Node):
        return cx.op(st, e, Op.LEN, value)
    if isinstance(value, Ref):
        obj = cx.obj(st, value, e)
        if isinstance(obj, DictObj) and not obj.unknown:
            total: Node = cx.graph.const(0)
            for entry in obj.entries.values():
                total = cx.graph.fold(Op.ADD, total, cx.graph.fold(Op.INT, entry.present))
            return total
        if isinstance(obj, ListObj) and obj.kind == "set" and len(obj.items) > 1:
            elements = sets.known(cx, st, value)
            if elements is not None:
                return cx.graph.const(len(elements))
            cx.refuse(
                e, "SEL901", "the length of a set of values that may be equal is not supported"
            )
    return cx.graph.const(len(iteration.iterate(cx, st, value, e)))


def _op1(op: Op) -> Rule:
    def rule(cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]) -> V:
        return expr.each(cx, st, args[0], lambda s, v: cx.op(s, e, op, expr.as_node(cx, s, v, e)))

    return rule


def _int(cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]) -> V:
    if not args:
        return cx.graph.const(0)
    if len(args) > 1:
        cx.refuse(e, "SEL901", "`int` with a base is not supported")
    node = expr.as_node(cx, st, args[0], e)
    return node if cx.abs(node).kinds == {"int"} else cx.op(st, e, Op.INT, node)


def _bool(cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]) -> V:
    return expr.truth(cx, st, args[0], e) if args else cx.false


def _str(cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]) -> V:
    return access.text_of(cx, st, e, args[0]) if args else cx.graph.const("")


def _tuple(cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]) -> V:
    return Tup(iteration.iterate(cx, st, args[0], e)) if args else Tup(())


def _list(cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]) -> V:
    return cx.heap.new(st, ListObj(iteration.iterate(cx, st, args[0], e) if args else ()))


def _set(cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]) -> V:
    return _set_of(cx, st, e, args, "")


def _frozenset(
    cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]
) -> V:
    return _set_of(cx, st, e, args, sets.FROZENSET)


def _set_of(cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], frozen: str) -> V:
    obj = cx.obj(st, args[0], e) if args and isinstance(args[0], Ref) else None
    if isinstance(obj, ListObj) and obj.kind == "set" and not obj.unknown:
        return cx.heap.new(st, ListObj(obj.items, frozen=frozen, kind="set"))
    items = iteration.iterate(cx, st, args[0], e) if args else ()
    return cx.heap.new(st, ListObj(items, frozen=frozen, kind="set"))


def _dict(cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]) -> V:
    entries: dict[object, Entry] = {}
    if args and isinstance(args[0], Ref) and isinstance(cx.obj(st, args[0], e), DictObj):
        entries.update(methods.raw_entries(cx, st, args[0], e))
    elif args:
        for pair in iteration.iterate(cx, st, args[0], e):
            key, value = iteration.iterate(cx, st, pair, e)
            entries[access.static_key(cx, st, key, e)] = Entry(cx.true, value)
    for name, value in kwargs.items():
        put(entries, name, Entry(cx.true, value))
    return cx.heap.new(st, DictObj(entries))


def _enumerate(
    cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]
) -> V:
    start = cx.known(
        expr.as_node(
            cx, st, args[1] if len(args) > 1 else kwargs.get("start", cx.graph.const(0)), e
        )
    )
    if start is None or not isinstance(start[0], int):
        cx.refuse(e, "SEL901", "`enumerate` from a start that depends on an input is not supported")
    items = iteration.iterate(cx, st, args[0], e)
    return Tup(tuple(Tup((cx.graph.const(i), v)) for i, v in enumerate(items, start[0])))


def _zip(cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]) -> V:
    columns = [iteration.iterate(cx, st, a, e) for a in args]
    if kwargs and len({len(c) for c in columns}) > 1:
        cx.refuse(e, "SEL901", "`zip(strict=...)` of different lengths")
    return Tup(tuple(Tup(tuple(row)) for row in zip(*columns, strict=False)))


def _reversed(cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]) -> V:
    return Tup(tuple(reversed(iteration.iterate(cx, st, args[0], e))))


def _map(cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]) -> V:
    columns = [iteration.iterate(cx, st, a, e) for a in args[1:]]
    return Tup(
        tuple(
            calls.invoke(cx, st, e, args[0], tuple(row), {}) for row in zip(*columns, strict=False)
        )
    )


def _sorted(cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]) -> V:
    value = args[0]
    if isinstance(value, Ref) and isinstance(cx.obj(st, value, e), ListObj):
        obj = cx.obj(st, value, e)
        items = obj.items if isinstance(obj, ListObj) else ()
    else:
        items = iteration.iterate(cx, st, value, e)
    key = kwargs.get("key", cx.none)
    by = [v if key is cx.none else calls.invoke(cx, st, e, key, (v,), {}) for v in items]
    known = [cx.known(enums.ordered(cx, st, k, e, False)) for k in by]
    reverse = cx.known_bool(expr.truth(cx, st, kwargs.get("reverse", cx.false), e))
    if key is cx.none and reverse is not None and any(k is None for k in known):
        return _in_order(cx, st, e, items, reverse)
    if reverse is None or any(k is None for k in known):
        cx.refuse(e, "SEL901", "sorting by keys that depend on an input is not supported")
    values: list[Any] = [k[0] for k in known if k is not None]
    try:
        order = sorted(range(len(items)), key=lambda i: values[i], reverse=reverse)
    except TypeError:
        cx.partial(
            st, e, cx.false, "TypeError", f"`{snippet(e)}` compares values that have no order"
        )
        return cx.graph.add(Op.FAIL)
    return cx.heap.new(st, ListObj(tuple(items[i] for i in order)))


def _in_order(cx: Lowering, st: State, e: ast.Call, items: tuple[V, ...], reverse: bool) -> V:
    """A sorted list of numbers or strings; no site, for the graph holds it as a tuple."""
    nodes = [cx.settle(v) for v in items if isinstance(v, Node) and "symbol" not in cx.abs(v).kinds]
    if len(nodes) < len(items):
        cx.refuse(e, "SEL901", "sorting these values is not supported: they depend on an input")
    whole = cx.graph.fold(Op.TUPLE, *(nodes[::-1] if reverse else nodes), origin=cx.span(e))
    cx.check(st, e, Op.SORTED, None, (whole,))
    result = cx.graph.fold(Op.SORTED, whole, origin=cx.span(e))
    places = [cx.graph.fold(Op.INDEX, result, cx.graph.const(i)) for i in range(len(nodes))]
    return cx.heap.new(st, ListObj(tuple(places[::-1] if reverse else places)))


def _any_all(existential: bool) -> Rule:
    def rule(cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]) -> V:
        if isinstance(args[0], Seq):
            return sequences.aggregate(cx, st, e, args[0], "any" if existential else "all")
        if isinstance(args[0], Node) and cx.known(args[0]) is None:
            return cx.op(st, e, Op.ANY if existential else Op.ALL, args[0])
        out = cx.false
        for item in iteration.iterate(cx, st, args[0], e):
            hit = expr.truth(cx, st, item, e)
            out = cx.graph.either(out, hit if existential else cx.graph.negate(hit))
        return expr._sited(cx, st, e, out if existential else cx.graph.negate(out))

    return rule


def _next(cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]) -> V:
    argument = e.args[0]
    if not isinstance(argument, ast.GeneratorExp):
        cx.refuse(e, "SEL901", "`next` is supported on a generator expression alone")
    items = iteration.iterate(cx, st, args[0], e)
    if items:
        return items[0]
    if len(args) > 1:
        return args[1]
    cx.partial(st, e, cx.false, "StopIteration", f"`{snippet(e)}` must find an element")
    return cx.graph.add(Op.FAIL)


def _isinstance(
    cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]
) -> V:
    value = args[0]
    if isinstance(value, Choice):
        return expr.each(cx, st, value, lambda s, v: _isinstance(cx, s, e, (v, args[1]), {}))
    types = args[1].items if isinstance(args[1], Tup) else (args[1],)
    verdicts = [_is_instance(cx, st, e, value, t) for t in types]
    out = cx.false
    for v in verdicts:
        out = cx.graph.either(out, v)
    return out


_KINDS = {
    "int": {"int", "bool"},
    "bool": {"bool"},
    "float": {"float"},
    "str": {"str"},
    "tuple": {"tuple"},
}


def _is_instance(cx: Lowering, st: State, e: ast.Call, value: V, kind: V) -> Node:  # noqa: C901  # one case per kind
    verdict = enums.instance(cx, value, kind) if isinstance(value, Node) else None
    if verdict is not None:
        return cx.graph.const(verdict)
    if isinstance(kind, External) and kind.name.startswith("builtins."):
        name = kind.name.removeprefix("builtins.")
        if isinstance(value, Node) and name in _KINDS:
            kinds = cx.abs(value).kinds
            if kinds <= _KINDS[name]:
                return cx.true
            if not kinds & _KINDS[name]:
                return cx.false
            if kinds - _KINDS[name] == {"none"}:
                return cx.graph.negate(cx.graph.fold(Op.IS, value, cx.none))
        if isinstance(value, (Tup, Ref)):
            obj = cx.heap.get(st, value) if isinstance(value, Ref) else None
            actual = (
                "tuple"
                if obj is None
                else obj.kind
                if isinstance(obj, ListObj)
                else "dict"
                if isinstance(obj, DictObj)
                else ""
            )
            return cx.graph.const(name == actual)
        if isinstance(value, Node) and name in ("list", "dict", "set"):
            return cx.false
    if kind == External("torch.Tensor") and isinstance(value, (Ref, Node, Tup)):
        return cx.graph.const(tensors.is_tensor(cx, st, value))
    if isinstance(kind, Cls):
        if isinstance(value, Ref):
            obj = cx.heap.get(st, value)
            if isinstance(obj, InstObj) and obj.cls is not None:
                return cx.graph.const(_derives(cx, obj.cls, kind))
            return cx.false
        if isinstance(value, Tup) and value.cls is not None:
            return cx.graph.const(_derives(cx, value.cls, kind))
        plain = isinstance(value, Tup) and not value.fields
        if plain or (isinstance(value, Node) and "symbol" not in cx.abs(value).kinds):
            return cx.false
    cx.refuse(
        e,
        "SEL901",
        f"`{snippet(e)}` is not known before serving",
        help="state it under `functions:`",
    )


def _derives(cx: Lowering, cls: Cls, ancestor: Cls) -> bool:
    if cls.node is ancestor.node:
        return True
    return any(isinstance(b, Cls) and _derives(cx, b, ancestor) for b in classes.bases(cx, cls))


def _getattr(cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]) -> V:
    name = expr.as_node(cx, st, args[1], e)
    known = cx.known(name)
    if known is None:
        return expr.split(
            cx,
            st,
            name,
            e,
            lambda s, v: _getattr(cx, s, e, (args[0], cx.graph.const(v), *args[2:]), {}),
        )
    if len(args) > 2:
        there = _hasattr(cx, st, e, args[:2], {})
        default = args[2]
        return cx.branch(
            st, there, lambda s: _attr(cx, s, e, args[0], str(known[0])), access._give(default)
        )
    return _attr(cx, st, e, args[0], str(known[0]))


def _attr(cx: Lowering, st: State, e: ast.Call, value: V, name: str) -> V:
    return expr.each(cx, st, value, lambda s, v: reading.attribute(cx, s, e, v, name))


def _hasattr(
    cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]
) -> Node:
    name = cx.known(expr.as_node(cx, st, args[1], e))
    value = args[0]
    if name is not None and isinstance(value, Ref):
        obj = cx.obj(st, value, e)
        if isinstance(obj, InstObj):
            if name[0] in obj.fields:
                return obj.fields[str(name[0])].present
            if obj.cls is not None and not obj.frozen:
                return cx.graph.const(
                    reading.class_member(cx, st, obj.cls, str(name[0])) is not None
                )
        if isinstance(obj, DictObj) and obj.frozen == FROM_FACTS and name[0] in obj.entries:
            return obj.entries[name[0]].present  # that others are missing the facts do not say
    if name is not None and isinstance(value, Node):
        found = enums.of(cx, value)
        if cx.abs(value).kinds <= {"none"}:
            return cx.graph.const(hasattr(None, str(name[0])))
        if found is not None and reading.class_member(cx, st, found.cls, str(name[0])) is not None:
            return cx.true
    if name is not None and isinstance(value, Cls):
        return cx.graph.const(reading.class_member(cx, st, value, str(name[0])) is not None)
    cx.need(e, f'functions:\n  "{snippet(e)}": ...', f"`{snippet(e)}` is not known before serving")


def _type(cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]) -> V:
    if isinstance(args[0], Ref):
        obj = cx.heap.get(st, args[0])
        if isinstance(obj, InstObj) and obj.cls is not None:
            return obj.cls
        if isinstance(obj, InstObj) and obj.name == tensors.TENSOR:
            return External("torch.Tensor")
        if isinstance(obj, (DictObj, ListObj)):
            return External("builtins." + (obj.kind if isinstance(obj, ListObj) else "dict"))
    if isinstance(args[0], Tup) and not args[0].fields:
        return External("torch.Size" if args[0].size else "builtins.tuple")
    if isinstance(args[0], Node):
        kinds = cx.abs(args[0]).kinds
        if len(kinds) == 1 and kinds <= {"int", "bool", "float", "str", "tuple"}:
            return External("builtins." + next(iter(kinds)))
    cx.refuse(e, "SEL901", "`type(...)` of this value is not supported")


def _divmod(cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]) -> V:
    a, b = (expr.as_node(cx, st, v, e) for v in args)
    return Tup((cx.op(st, e, Op.FLOORDIV, a, b), cx.op(st, e, Op.MOD, a, b)))


def _pow(cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]) -> V:
    return cx.op(st, e, Op.POW, expr.as_node(cx, st, args[0], e), expr.as_node(cx, st, args[1], e))


def _round(cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]) -> V:
    if len(args) > 1:
        cx.refuse(e, "SEL901", "`round` to digits is not supported")
    return cx.op(st, e, Op.ROUND, expr.as_node(cx, st, args[0], e))


_OF_COLLECTIONS = frozenset(
    {
        "sum",
        "any",
        "all",
        "max",
        "min",
        "tuple",
        "list",
        "set",
        "frozenset",
        "sorted",
        "dict",
        "enumerate",
        "reversed",
        "abs",
        "bool",
        "iter",
    }
)
"""Functions of one collection, which may have several structures."""


def _no_value(cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]) -> V:
    return cx.none


_FUNCTIONS: dict[str, Rule] = {
    "min": _extremum(False),
    "max": _extremum(True),
    "sum": _sum,
    "len": _len,
    "range": iteration.range_of,
    "abs": _op1(Op.ABS),
    "float": _op1(Op.FLOAT),
    "int": _int,
    "bool": _bool,
    "str": _str,
    "tuple": _tuple,
    "list": _list,
    "set": _set,
    "frozenset": _frozenset,
    "dict": _dict,
    "enumerate": _enumerate,
    "zip": _zip,
    "reversed": _reversed,
    "map": _map,
    "sorted": _sorted,
    "any": _any_all(True),
    "all": _any_all(False),
    "next": _next,
    "isinstance": _isinstance,
    "getattr": _getattr,
    "hasattr": _hasattr,
    "type": _type,
    "divmod": _divmod,
    "pow": _pow,
    "round": _round,
    "print": _no_value,
    "iter": _tuple,
}


# -- methods -------------------------------------------------------------------------------------


__all__ = ["call"]
