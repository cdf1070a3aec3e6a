"""Attributes, subscripts, membership: reading and writing parts of values."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from selc.frontend import (
    comparing,
    enums,
    equality,
    expr,
    launches,
    library,
    names,
    reading,
    tensorindex,
    tensors,
)
from selc.frontend.context import Lowering, snippet
from selc.frontend.state import State
from selc.frontend.tuplesite import marks_over, unmarked
from selc.frontend.values import (
    Choice,
    Cls,
    DictObj,
    Entry,
    External,
    Func,
    InstObj,
    ListObj,
    Obj,
    Opaque,
    Ref,
    Tup,
    V,
)
from selc.ir.graph import Node
from selc.ir.op import Op

DICT_METHODS = frozenset(
    {"get", "update", "pop", "setdefault", "copy", "keys", "values", "items", "clear", "popitem"}
)
LIST_METHODS = frozenset(
    {
        "append",
        "extend",
        "copy",
        "index",
        "count",
        "insert",
        "pop",
        "add",
        "remove",
        "sort",
        "reverse",
        "clear",
        "union",
        "discard",
        "issubset",
    }
)
MAX_DIGITS = 4300
ROW = "it is a row of a table"
NUMBER_METHODS = frozenset({"bit_length", "is_integer", "item"})


def entry_value(
    cx: Lowering, st: State, e: ast.AST, entry: Entry, exception: str, name: object
) -> V:
    """An entry's value, guarded by its presence."""
    cx.partial(st, e, entry.present, exception, f"`{name}` must be there")
    return entry.value


# -- keys and subscripts -------------------------------------------------------------------------


def static_key(cx: Lowering, st: State, value: V, e: ast.AST) -> object:
    """A dict key known before serving."""
    if isinstance(value, Node):
        known = cx.known(value)
        if known is not None:
            return known[0]
        cx.refuse(
            e,
            "SEL901",
            "a dict key that depends on an input is not supported here",
            help="use constant keys; select the value, not the key",
        )
    if isinstance(value, Tup):
        return tuple(static_key(cx, st, v, e) for v in value.items)
    if isinstance(value, (Cls, Func, External)):
        return value
    cx.refuse(e, "SEL901", f"{expr.describe(cx, st, value)} as a dict key is not supported")


def key_or_node(
    cx: Lowering, st: State, value: V, e: ast.AST, obj: DictObj
) -> tuple[object] | Node:
    """A key into a dict: known before serving (in a tuple of one), or a node."""
    if isinstance(value, (Cls, Func, External)):
        return (value,)
    node = expr.as_node(cx, st, value, e)
    if cx.enums:
        node = enums.key(cx, e, obj.entries, node)
    known = cx.known(node)
    return known if known is not None else node


def subscript(cx: Lowering, st: State, e: ast.Subscript, container: V) -> V:
    """`container[...]`."""
    if isinstance(container, Tup) and cx.iterators.no_tuple(container):
        cx.iterators.use(container)
        return _no_slice(cx, st, e, "TypeError")
    if isinstance(container, Ref) and tensors.is_tensor(cx, st, container):
        return tensorindex.item(cx, st, e, container)
    if isinstance(e.slice, ast.Slice):
        return _slice(cx, st, e, container, e.slice)
    environ = isinstance(container, External) and container.name == "os.environ"
    if isinstance(container, Opaque):
        return (
            replace(container, made=False)
            if container.parameters or not container.made
            else launches.derived(cx, e, container)
        )
    if isinstance(container, Func):
        return launches.kernels(container)
    if isinstance(container, Cls) and enums.base_of(cx, container) is not None:
        return enums.by_name(cx, st, e, container, expr.lower(cx, st, e.slice))
    if isinstance(container, (External, Cls)) and not environ:
        return Opaque(snippet(e), made=True)
    index = expr.lower(cx, st, e.slice)
    return expr.each(cx, st, index, lambda s, v: _item(cx, s, e, container, v))


def _item(cx: Lowering, st: State, e: ast.Subscript, container: V, index: V) -> V:
    if isinstance(container, Node):
        return cx.op(st, e, Op.INDEX, container, expr.as_node(cx, st, index, e))
    if isinstance(container, Ref):
        obj = cx.obj(st, container, e)
        if isinstance(obj, DictObj):
            return dict_get(cx, st, e, obj, index, None)
        if isinstance(obj, ListObj):
            if obj.unknown:
                names.refuse_state(cx, e, obj.unknown)
            return sequence_item(cx, st, e, obj.items, index)
        if obj.cls is not None:
            method = reading.class_member(cx, st, obj.cls, "__getitem__")
            if isinstance(method, Func):
                from selc.frontend import calls

                return calls.invoke(cx, st, e, method, (container, index), {})
    if isinstance(container, Tup):
        return sequence_item(cx, st, e, container.items, index)
    if isinstance(container, External) and container.name == "os.environ":
        return library.environ_item(cx, st, e, index)
    cx.refuse(e, "SEL901", f"indexing {expr.describe(cx, st, container)} is not supported")


def sequence_item(cx: Lowering, st: State, e: ast.Subscript, items: tuple[V, ...], index: V) -> V:
    """An element of a static sequence at any index."""
    node = enums.plain(cx, expr.as_node(cx, st, index, e), e)
    known = cx.known(node)
    if known is not None and isinstance(known[0], int):
        i = known[0]
        if -len(items) <= i < len(items):
            return items[i]
        cx.partial(st, e, cx.false, "IndexError", f"`{snippet(e)}` is out of range")
        return cx.graph.add(Op.FAIL)
    kinds = cx.abs(node).kinds
    if not kinds & {"int", "bool"}:
        cx.partial(st, e, cx.false, "TypeError", f"the index in `{snippet(e)}` must be an integer")
        return cx.graph.add(Op.FAIL)
    if all(isinstance(v, Node) for v in items):
        return cx.op(st, e, Op.INDEX, expr.as_node(cx, st, Tup(items), e), node)
    if not kinds <= {"int", "bool"}:
        cx.refuse(e, "SEL901", f"the index in `{snippet(e)}` is not always an integer")
    inside = cx.graph.both(
        cx.graph.fold(Op.GE, node, cx.graph.const(-len(items))),
        cx.graph.fold(Op.LT, node, cx.graph.const(len(items))),
    )
    cx.partial(st, e, inside, "IndexError", f"`{snippet(e)}` must be in range")
    keys = [*range(len(items)), *range(-len(items), 0)]
    low = cx.abs(node).lo
    if low is not None and low >= 0:
        keys = keys[: len(items)]
    return choose(cx, st, e, node, [(k, items[k]) for k in keys])


def choose(cx: Lowering, st: State, e: ast.AST, key: Node, pairs: list[tuple[object, V]]) -> V:
    """The value of the first pair whose key equals `key`; the last one where none does."""
    possible = cx.abs(key).values
    if possible is not None:
        pairs = [p for p in pairs if any(p[0] == v for v in possible)] or pairs[-1:]
    out = pairs[-1][1]
    for k, value in reversed(pairs[:-1]):
        cond = cx.graph.fold(Op.EQ, key, cx.graph.const(k))
        other = out
        out = cx.branch(st, cond, _give(value), _give(other))
    return out


def _give(value: V) -> Callable[[State], V]:
    return lambda _: value


def dict_get(cx: Lowering, st: State, e: ast.AST, obj: DictObj, index: V, default: V | None) -> V:
    """`d[index]`, or `d.get(index, default)` if a default is given."""
    for known, value in reversed(obj.memo):
        if same_key(cx, known, index):
            return value
    found = key_or_node(cx, st, index, e, obj)
    if isinstance(found, tuple):
        key = found
        entry = obj.entries.get(key[0])
        if entry is None and obj.unknown:
            names.refuse_state(cx, e, obj.unknown)
        if (
            entry is None
            and isinstance(key[0], External)
            and any(isinstance(k, External) for k in obj.entries)
        ):
            cx.refuse(
                e,
                "SEL905",
                f"whether `{key[0].name}` is among the keys is not known",
                help="state what it is under `functions:`",
            )
        if default is None:
            if entry is None:
                cx.partial(st, e, cx.false, "KeyError", f"the key {key[0]!r} must be there")
                return cx.graph.add(Op.FAIL)
            return entry_value(cx, st, e, entry, "KeyError", key[0])
        if entry is None:
            return default
        return cx.branch(st, entry.present, _give(entry.value), _give(default))
    if obj.unknown:
        names.refuse_state(cx, e, obj.unknown)
    return _dynamic_get(cx, st, e, obj, found, default)


def _dynamic_get(
    cx: Lowering, st: State, e: ast.AST, obj: DictObj, key: Node, default: V | None
) -> V:
    entries = {k: v for k, v in obj.entries.items() if cx.known_bool(v.present) is not False}
    inside = has_key(cx, entries, key)
    if not entries:
        if default is not None:
            return default
        cx.partial(st, e, cx.false, "KeyError", "the dict is empty")
        return cx.graph.add(Op.FAIL)
    if default is None:
        cx.partial(st, e, inside, "KeyError", f"`{snippet(e)}`: the key must be there")
    values = [v.value for v in entries.values()]
    constant = all(isinstance(v, Node) and v.is_const for v in values)
    found: V
    if constant and isinstance(e, ast.expr):
        pairs = tuple((k, v.value.attr) for k, v in entries.items() if isinstance(v.value, Node))
        if default is not None:
            looked = cx.graph.fold(Op.LOOKUP, key, attr=pairs, origin=cx.span(e))
            return expr._sited(cx, st, e, cx.branch(st, inside, _give(looked), _give(default)))
        found = cx.op_unchecked(st, e, Op.LOOKUP, key, attr=pairs)
    else:
        rows = _rows(cx, st, e, entries, key)
        found = (
            rows
            if rows is not None
            else choose(cx, st, e, key, [(k, v.value) for k, v in entries.items()])
        )
    if default is None:
        return found
    return cx.branch(st, inside, _give(found), _give(default))


def _rows(cx: Lowering, st: State, e: ast.AST, entries: dict[object, Entry], key: Node) -> V | None:
    """A row of a table whose rows are tuples or dicts of constants, one lookup per column."""
    values = [v.value for v in entries.values()]
    tuples = [v for v in values if isinstance(v, Tup)]
    if len(tuples) == len(values) and len({(len(t.items), t.fields) for t in tuples}) == 1:
        columns = list(zip(*[t.items for t in tuples], strict=True))
        if all(isinstance(v, Node) and v.is_const for column in columns for v in column):
            keys = list(entries)
            return Tup(
                tuple(_column(cx, e, keys, list(column), key) for column in columns),
                tuples[0].fields,
            )
    objs = [cx.obj(st, v, e) for v in values if isinstance(v, Ref)]
    if len(objs) != len(values):
        return None
    row = _flat_row(cx, e, entries, objs, key)
    if row is None:
        return None
    first = objs[0]
    if all(isinstance(o, DictObj) and not o.unknown for o in objs):
        return cx.heap.new(st, DictObj(row, frozen=ROW))
    if isinstance(first, InstObj) and all(
        isinstance(o, InstObj) and o.cls is first.cls for o in objs
    ):
        return cx.heap.new(
            st, InstObj(first.cls, {str(k): v for k, v in row.items()}, ROW, first.name)
        )
    return None


def _flat_row(
    cx: Lowering, e: ast.AST, entries: dict[object, Entry], objs: list[Obj], key: Node
) -> dict[object, Entry] | None:
    rows: list[dict[object, Entry]] = []
    for o in objs:
        if isinstance(o, DictObj):
            rows.append(dict(o.entries))
        elif isinstance(o, InstObj):
            rows.append({str(name): entry for name, entry in o.fields.items()})
    flat = all(
        isinstance(x.value, Node) and x.value.is_const and x.present is cx.true
        for r in rows
        for x in r.values()
    )
    if len(rows) < len(objs) or not flat:
        return None
    out: dict[object, Entry] = {}
    for name in {n: None for r in rows for n in r}:
        having = [(k, r[name].value) for k, r in zip(entries, rows, strict=True) if name in r]
        present = cx.true
        if len(having) < len(rows):
            present = cx.graph.fold(Op.HASKEY, key, attr=tuple(k for k, _ in having))
        out[name] = Entry(
            present, _column(cx, e, [k for k, _ in having], [v for _, v in having], key)
        )
    return out


def _column(cx: Lowering, e: ast.AST, keys: list[object], column: list[V], key: Node) -> V:
    values = [v.attr for v in column if isinstance(v, Node)]
    first = column[0]
    if isinstance(first, Node) and all(v is first for v in column):
        return first
    pairs = tuple(zip(keys, values, strict=True))
    return cx.graph.fold(Op.LOOKUP, key, attr=pairs, origin=cx.span(e))


def has_key(cx: Lowering, entries: dict[object, Entry], key: Node) -> Node:
    """Whether a node is among the keys that are present."""
    certain = tuple(k for k, v in entries.items() if v.present is cx.true)
    out = cx.graph.fold(Op.HASKEY, key, attr=certain) if certain else cx.false
    possible = cx.abs(key).values
    if possible is not None and all(v in certain for v in possible):
        out = cx.true
    for k, v in entries.items():
        if v.present is not cx.true:
            same = cx.graph.fold(Op.EQ, key, cx.graph.const(k))
            out = cx.graph.either(out, cx.graph.both(same, v.present))
    return out


def same_key(cx: Lowering, a: V, b: V) -> bool:
    """Whether two symbolic keys are certainly the same value.

    So they must be under pins: what is a site of one of them alone cannot be a pin.
    """
    if isinstance(a, Node) and isinstance(b, Node):
        if unmarked(a) is not unmarked(b):
            return False
        keys = [cx.key_of(m) for m in marks_over(a) ^ marks_over(b)]
        cx.spoiled.update(k for k in keys if k is not None)
        return True
    if isinstance(a, Tup) and isinstance(b, Tup) and len(a.items) == len(b.items):
        return all(same_key(cx, x, y) for x, y in zip(a.items, b.items, strict=True))
    return False


def contains(cx: Lowering, st: State, e: ast.expr, item: V, container: V) -> Node:  # noqa: C901  # one case per kind
    """`item in container`."""
    if isinstance(container, Choice):
        value = expr.each(cx, st, container, lambda s, v: contains(cx, s, e, item, v))
        return expr.as_node(cx, st, value, e)
    if isinstance(item, Choice):
        value = expr.each(cx, st, item, lambda s, v: contains(cx, s, e, v, container))
        return expr.as_node(cx, st, value, e)
    if isinstance(container, Ref):
        obj = cx.obj(st, container, e)
        if isinstance(obj, DictObj):
            return _dict_contains(cx, st, e, obj, item, container)
        if isinstance(obj, ListObj):
            if obj.unknown:
                names.refuse_state(cx, e, obj.unknown)
            container = Tup(obj.items)
    if isinstance(container, External) and container.name == "os.environ":
        return library.environ_has(cx, st, e, item)
    if isinstance(container, Tup):
        for outside in (item, *container.items):
            if isinstance(outside, Opaque) or (
                isinstance(outside, External) and not outside.name.startswith("builtins.")
            ):
                if item in container.items:
                    return cx.true
                cx.refuse(
                    e,
                    "SEL905",
                    f"whether {expr.describe(cx, st, outside)} is equal to the others is not known",
                    help="state what it is under `functions:` or `globals:`",
                )
        if isinstance(item, Ref) or any(isinstance(v, Ref) for v in container.items):
            found = cx.false
            for element in container.items:
                found = cx.graph.either(found, equality.equal(cx, st, e, element, item))
            return found
        if isinstance(item, (Cls, Func)):
            others = [v for v in container.items if isinstance(v, (Cls, Func))]
            same = [comparing.same_definition(cx, e, item, v) for v in others]
            return cx.graph.const(any(same))
        if not isinstance(item, (Node, Tup)):
            return cx.graph.const(item in container.items)
        container, item = enums.alike(cx, container, item, e)
        nodes = [v for v in container.items if isinstance(v, (Node, Tup))]
        if len(nodes) < len(container.items):
            cx.refuse(e, "SEL901", "membership among these values is not supported")
    return cx.op(st, e, Op.IN, expr.as_node(cx, st, item, e), expr.as_node(cx, st, container, e))


def _dict_contains(
    cx: Lowering, st: State, e: ast.expr, obj: DictObj, item: V, container: Ref
) -> Node:
    key = key_or_node(cx, st, item, e, obj)
    if any(same_key(cx, k, item) for k, _ in obj.memo):
        return cx.true
    if isinstance(key, tuple):
        entry = obj.entries.get(key[0])
        if entry is not None:
            return entry.present
        if obj.unknown:
            cx.obligations.append((container.oid, item, cx.span(e)))
        return cx.false
    if obj.unknown:
        cx.obligations.append((container.oid, item, cx.span(e)))
        return cx.false
    return has_key(cx, dict(obj.entries), key)


def _slice(cx: Lowering, st: State, e: ast.Subscript, container: V, part: ast.Slice) -> V:
    if isinstance(container, Opaque):
        for bound in (part.lower, part.upper, part.step):
            if bound is not None:
                expr.lower(cx, st, bound)
        return launches.derived(cx, e, container)
    nodes = [
        cx.none if b is None else expr.scalar(cx, st, b)
        for b in (part.lower, part.upper, part.step)
    ]
    return _sliced(cx, st, e, container, nodes, [])


def _sliced(
    cx: Lowering,
    st: State,
    e: ast.Subscript,
    container: V,
    rest: list[Node],
    bounds: list[int | None],
) -> V:
    """A slice whose first bounds are known; the others are told apart by their values."""
    if rest:
        known = cx.known(rest[0])
        if known is None:
            values = cx.abs(rest[0]).values
            if values is None:
                cx.refuse(
                    e,
                    "SEL901",
                    "a slice bound that depends on an input is not supported",
                    help="give the input a few `values:`, so that each can be followed",
                )
            return expr.split(
                cx,
                st,
                rest[0],
                e,
                lambda s, v: _sliced(cx, s, e, container, [cx.graph.const(v), *rest[1:]], bounds),
            )
        if not (known[0] is None or isinstance(known[0], int)):
            return _no_slice(cx, st, e, "TypeError")
        return _sliced(cx, st, e, container, rest[1:], [*bounds, known[0]])
    if bounds[2] == 0:
        return _no_slice(cx, st, e, "ValueError")
    where = slice(*bounds)
    if isinstance(container, Tup):
        return Tup(container.items[where], size=container.size)
    if isinstance(container, Ref):
        obj = cx.obj(st, container, e)
        if isinstance(obj, ListObj) and not obj.unknown:
            return cx.heap.new(st, ListObj(obj.items[where]))
    if isinstance(container, Node):
        known = cx.known(container)
        if known is not None:
            return _part(cx, st, e, known[0], where)
        return expr.split(cx, st, container, e, lambda s, v: _part(cx, s, e, v, where))
    cx.refuse(e, "SEL901", f"slicing {expr.describe(cx, st, container)} is not supported")


def _part(cx: Lowering, st: State, e: ast.Subscript, value: object, where: slice) -> V:
    if isinstance(value, (str, tuple)):
        return cx.graph.const(value[where])
    return _no_slice(cx, st, e, "TypeError")


def _no_slice(cx: Lowering, st: State, e: ast.Subscript, exception: str) -> V:
    cx.partial(st, e, cx.false, exception, f"`{snippet(e)}` must be a slice of a sequence")
    return cx.graph.add(Op.FAIL)


# -- writing -------------------------------------------------------------------------------------


def flat_nodes(value: V, cx: Lowering | None = None, st: State | None = None) -> list[Node]:
    """The scalars inside a value."""
    if isinstance(value, Node):
        return [value]
    if isinstance(value, Tup):
        return [n for v in value.items for n in flat_nodes(v, cx, st)]
    if isinstance(value, Choice):
        return [value.cond, *flat_nodes(value.then, cx, st), *flat_nodes(value.other, cx, st)]
    if isinstance(value, Ref) and cx is not None and st is not None:
        obj = cx.heap.get(st, value)
        if isinstance(obj, DictObj):
            return [
                n for x in obj.entries.values() for n in (x.present, *flat_nodes(x.value, cx, st))
            ]
        if isinstance(obj, ListObj):
            return [n for v in obj.items for n in flat_nodes(v, cx, st)]
        return [n for x in obj.fields.values() for n in (x.present, *flat_nodes(x.value, cx, st))]
    return []


def _printable(cx: Lowering, e: ast.AST, node: Node) -> None:
    """Refuse the text of an integer that Python does not write out."""
    known = cx.abs(node)
    ends = known.values if known.values is not None else (known.lo, known.hi)
    if any(_too_long(v) for v in ends) or (
        node.op is Op.TUPLE and any(_too_long(x) for a in node.args for x in cx.abs(a).values or ())
    ):
        message = f"an integer in `{snippet(e)}` may have more than {MAX_DIGITS:,} digits"
        hint = "Python refuses to write it as text; narrow the inputs' ranges"
        cx.refuse(e, "SEL901", message, help=hint)


def _too_long(value: object) -> bool:
    if isinstance(value, tuple):
        return any(_too_long(v) for v in value)
    return isinstance(value, int) and abs(value) >= 10**MAX_DIGITS


def text_of(cx: Lowering, st: State, e: ast.AST, value: V) -> Node:
    """`str(value)` as a node."""
    if isinstance(value, Ref):
        items = list(flat_nodes(value, cx, st))
        for item in items:
            _printable(cx, e, item)
        obj = cx.obj(st, value, e)
        if (
            isinstance(obj, ListObj)
            and all(cx.known(n) for n in items)
            and len(items) == len(obj.items)
        ):
            return cx.graph.const(str([(cx.known(n) or (None,))[0] for n in items]))
    node = enums.text(cx, expr.as_node(cx, st, value, e), e)
    _printable(cx, e, node)
    return node if cx.abs(node).kinds == {"str"} else cx.graph.fold(Op.STR, cx.settle(node))
