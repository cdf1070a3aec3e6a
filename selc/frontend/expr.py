"""Expressions to values."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from selc.frontend import (
    access,
    calls,
    comparing,
    enums,
    iteration,
    launches,
    methods,
    names,
    reading,
    sequences,
    tensors,
)
from selc.frontend.context import Cascade, Lowering
from selc.frontend.literals import from_python
from selc.frontend.state import State
from selc.frontend.values import (
    Choice,
    Cls,
    DictObj,
    Entry,
    External,
    Func,
    InstObj,
    ListObj,
    Mask,
    ModuleV,
    Opaque,
    Poison,
    Raised,
    Ref,
    Seq,
    Tup,
    Unbound,
    V,
    put,
)
from selc.ir.graph import BOOLEAN, Node
from selc.ir.op import Op
from selc.ir.value import is_plain

BINARY = {
    ast.Add: Op.ADD,
    ast.Sub: Op.SUB,
    ast.Mult: Op.MUL,
    ast.FloorDiv: Op.FLOORDIV,
    ast.Mod: Op.MOD,
    ast.Div: Op.TRUEDIV,
    ast.Pow: Op.POW,
    ast.LShift: Op.LSHIFT,
    ast.RShift: Op.RSHIFT,
    ast.BitAnd: Op.BITAND,
    ast.BitOr: Op.BITOR,
    ast.BitXor: Op.BITXOR,
}
UNARY = {ast.USub: Op.NEG, ast.UAdd: Op.POS, ast.Invert: Op.INVERT}
COMPARE = {
    ast.Eq: Op.EQ,
    ast.NotEq: Op.NE,
    ast.Lt: Op.LT,
    ast.LtE: Op.LE,
    ast.Gt: Op.GT,
    ast.GtE: Op.GE,
}


def lower(cx: Lowering, st: State, e: ast.expr) -> V:
    """The value of an expression; `st` advances past its effects."""
    rule = _RULES.get(type(e))
    if rule is None:
        cx.refuse(
            e,
            "SEL901",
            f"{_kind(e)} is not supported here",
            help="write it with plain expressions, or state the enclosing call under `functions:`",
        )
    run = rule if type(e) not in _COMPOSED else _one_site
    once = not cx.alternatives or cx.frame.silent
    value = run(cx, st, e) if once else _in_alternatives(cx, st, e, run)
    if isinstance(value, Poison):
        raise Cascade
    return names.current(cx, st, value)


_COMPOSED = frozenset({ast.Call, ast.Subscript, ast.Compare, ast.BinOp, ast.UnaryOp})
"""Expressions that may take several operations."""


def _in_alternatives(
    cx: Lowering, st: State, e: ast.expr, rule: Callable[[Lowering, State, ast.expr], V]
) -> V:
    """An expression that is evaluated once per alternative: no site unless each has its mark."""
    key = cx.site_key(cx.position(e))
    before = len(cx.site_marks(key))
    value = rule(cx, st, e)
    if len(cx.site_marks(key)) == before:
        cx.spoiled.add(key)
    return value


def _one_site(cx: Lowering, st: State, e: ast.expr) -> V:
    """An expression that may take several operations: its site is the whole, not one of them."""
    rule = _RULES[type(e)]
    if cx.frame.silent:
        return rule(cx, st, e)
    base = cx.position(e)
    key = cx.site_key(base)
    before = cx.site_marks(key)
    value = rule(cx, st, e)
    fresh = [m for m in cx.site_marks(key) if m not in before]
    if not fresh or (len(fresh) == 1 and fresh[0].node is value):
        return value
    cx.forget(key, fresh)
    if not isinstance(value, Node) or cx.known(value) is not None:
        return value
    if value.op is Op.SELECT and not value.site:
        return cx.op(st, e, Op.SELECT, *value.args)
    return cx.mark(st, base, "expression", value, cx.span(e))


def scalar(cx: Lowering, st: State, e: ast.expr) -> Node:
    """The value of an expression that must be a scalar."""
    return as_node(cx, st, lower(cx, st, e), e)


def as_node(cx: Lowering, st: State, value: V, e: ast.AST) -> Node:
    """A value as a graph node: scalars, and tuples of them."""
    if isinstance(value, Node):
        return value
    if isinstance(value, Tup):
        return cx.graph.fold(Op.TUPLE, *[as_node(cx, st, v, e) for v in value.items])
    if isinstance(value, Choice):
        return cx.graph.select(
            value.cond, as_node(cx, st, value.then, e), as_node(cx, st, value.other, e)
        )
    if isinstance(value, Poison):
        raise Cascade
    needed(cx, e, value)
    cx.refuse(
        e,
        "SEL905",
        f"{describe(cx, st, value)} is used where a number, string, bool or None is needed",
        help="state what it is in the facts (`functions:`, `objects:`, `globals:` or `facts:`)",
    )


def truth(cx: Lowering, st: State, value: V, e: ast.AST) -> Node:  # noqa: C901  # one case per kind
    """`bool(value)` as a bool node."""
    if isinstance(value, Node):
        if cx.enums:
            value = enums.plain(cx, value, e)
        if value.op in BOOLEAN or cx.abs(value).kinds == {"bool"}:
            return value
        return cx.graph.fold(Op.TRUTH, cx.settle(value))
    if isinstance(value, Tup):
        return cx.graph.const(bool(value.items))
    if isinstance(value, Choice):
        return cx.graph.select(
            value.cond, truth(cx, st, value.then, e), truth(cx, st, value.other, e)
        )
    if isinstance(value, Ref):
        obj = cx.obj(st, value, e)
        if isinstance(obj, (ListObj, DictObj)) and obj.unknown:
            names.refuse_state(cx, e, obj.unknown)
        if isinstance(obj, ListObj):
            return cx.graph.const(bool(obj.items))
        if isinstance(obj, DictObj):
            out = cx.false
            for entry in obj.entries.values():
                out = cx.graph.either(out, entry.present)
            return out
        for method in ("__bool__", "__len__"):
            if obj.cls is not None and reading.class_member(cx, st, obj.cls, method) is not None:
                cx.refuse(e, "SEL901", f"the truth of an object with `{method}` is not supported")
        return cx.true
    needed(cx, e, value)
    if isinstance(value, Seq) and value.array is False:
        return cx.graph.fold(Op.NE, sequences.size(cx, value), cx.graph.const(0))
    if isinstance(value, (Opaque, External, Seq, Mask)):
        cx.refuse(
            e,
            "SEL905",
            f"{describe(cx, st, value)} is used as a condition",
            help="state what it is in the facts (`functions:`, `objects:` or `globals:`)",
        )
    if isinstance(value, Poison):
        raise Cascade
    return cx.true


def needed(cx: Lowering, e: ast.AST, value: V) -> None:
    """Refuse the answer of a call that cannot be followed, where it is needed."""
    names.tell_why(cx, value, e)
    if isinstance(value, Opaque) and value.query:
        cx.need(
            e,
            f'functions:\n  "{value.query}": ...',
            f"what `{value.query}` returns is not known: its source cannot be followed",
        )


def describe(cx: Lowering, st: State, value: V) -> str:
    """A value in words."""
    match value:
        case Tup():
            return "a tuple"
        case Ref():
            obj = cx.heap.get(st, value)
            return {DictObj: "a dict", ListObj: "a list", InstObj: "an object"}[type(obj)]
        case Func():
            return f"the function `{value.qualname}`"
        case Cls():
            return f"the class `{value.qualname}`"
        case ModuleV() | External():
            return f"`{value.name}`"
        case Opaque():
            return f"`{value.text}`, which selc cannot see into,"
        case Raised():
            return "an exception"
        case Seq():
            return f"`{value.name}`, a sequence of the batch,"
        case Mask():
            return "an array of bools"
        case _:
            return "this value"


def each(cx: Lowering, st: State, value: V, fn: Callable[[State, V], V]) -> V:
    """Apply a continuation to every alternative of a value that has several structures."""
    if isinstance(value, Choice):
        then, other = value.then, value.other
        with cx.for_each():
            return cx.branch(
                st, value.cond, lambda s: each(cx, s, then, fn), lambda s: each(cx, s, other, fn)
            )
    return fn(st, value)


def split(cx: Lowering, st: State, node: Node, e: ast.AST, fn: Callable[[State, object], V]) -> V:
    """Apply a continuation to every value that a node can take (few, known)."""
    values = cx.abs(node).values
    if not values or len({*values}) < len(values):
        cx.refuse(
            e,
            "SEL901",
            "this needs a value known before serving, or one of a few known values",
            help="give it as a fact, or as an input with `values:`",
        )
    return _split(cx, st, node, list(values), fn)


def _split(
    cx: Lowering, st: State, node: Node, values: list[object], fn: Callable[[State, object], V]
) -> V:
    if len(values) == 1:
        return fn(st, values[0])
    cond = cx.graph.fold(Op.EQ, node, cx.graph.const(values[0]))
    first, rest = values[0], values[1:]
    with cx.for_each():
        return cx.branch(st, cond, lambda s: fn(s, first), lambda s: _split(cx, s, node, rest, fn))


# -- rules ---------------------------------------------------------------------------------------


def _constant(cx: Lowering, st: State, e: ast.Constant) -> V:
    if e.value is Ellipsis:
        return Opaque("...")
    if not is_plain(e.value):
        cx.refuse(e, "SEL901", f"{type(e.value).__name__} constants are not supported")
    return cx.graph.const(e.value)


def _name(cx: Lowering, st: State, e: ast.Name) -> V:
    value = names.load(cx, st, e)
    return iteration.read(cx, e, _bound(cx, st, value, e))


def _bound(cx: Lowering, st: State, value: V, e: ast.Name) -> V:
    """Strip alternatives in which the name is unbound, with a guard that they are not reached."""
    if isinstance(value, Unbound):
        cx.partial(st, e, cx.false, "NameError", f"`{e.id}` has no value here")
        return cx.graph.add(Op.FAIL)
    if not isinstance(value, Choice) or not _has_unbound(value):
        return value
    cond, stripped = _strip(cx, value)
    cx.partial(st, e, cond, "NameError", f"`{e.id}` may have no value here")
    return stripped


def _has_unbound(value: V) -> bool:
    if isinstance(value, Choice):
        return _has_unbound(value.then) or _has_unbound(value.other)
    return isinstance(value, Unbound)


def _strip(cx: Lowering, value: V) -> tuple[Node, V]:
    if isinstance(value, Unbound):
        return cx.false, cx.graph.add(Op.FAIL)
    if not isinstance(value, Choice):
        return cx.true, value
    a, then = _strip(cx, value.then)
    b, other = _strip(cx, value.other)
    bound = cx.graph.select(value.cond, a, b)
    if cx.known_bool(a) is False:
        return bound, other
    if cx.known_bool(b) is False:
        return bound, then
    if isinstance(then, Node) and isinstance(other, Node):
        return bound, cx.graph.select(value.cond, then, other)
    return bound, Choice(value.cond, then, other)


def _binary(cx: Lowering, st: State, e: ast.BinOp) -> V:
    return binary(cx, st, e, BINARY.get(type(e.op)), lower(cx, st, e.left), lower(cx, st, e.right))


def binary(cx: Lowering, st: State, e: ast.expr, op: Op | None, left: V, right: V) -> V:
    """A binary operation on any values."""
    if isinstance(left, Choice):
        return each(cx, st, left, lambda s, v: binary(cx, s, e, op, v, right))
    if isinstance(right, Choice):
        return each(cx, st, right, lambda s, v: binary(cx, s, e, op, left, v))
    iteration.operands(cx, e, left, right)
    if op is None:
        return calls.matmul(cx, st, e, left, right)
    if op is Op.ADD:
        sequence = _concatenate(cx, st, e, left, right)
        if sequence is not None:
            return sequence
    if op is Op.MUL and isinstance(right, Node):
        repeated = _repeat(cx, st, left, right, e)
        if repeated is not None:
            return repeated
    if (
        op is Op.BITOR
        and isinstance(left, Ref)
        and isinstance(right, Ref)
        and not tensors.is_tensor(cx, st, left)
    ):
        return methods.merged_dicts(cx, st, e, left, right)
    if (
        isinstance(left, Ref)
        and isinstance(right, Ref)
        and (sets := methods.set_operation(cx, st, e, op, left, right)) is not None
    ):
        return sets
    if op is Op.MOD and isinstance(left, Node) and isinstance(right, Tup):
        return cx.op(st, e, op, left, as_node(cx, st, right, e))
    if isinstance(left, (Ref, Opaque)) or isinstance(right, (Ref, Opaque)):
        return calls.operator(cx, st, e, op, left, right)
    return cx.op(st, e, op, as_node(cx, st, left, e), as_node(cx, st, right, e))


def sequence(cx: Lowering, st: State, value: V, e: ast.AST) -> tuple[tuple[V, ...], bool] | None:
    """The items of a tuple or a list, and whether it is a list."""
    if isinstance(value, Tup):
        return value.items, False
    if isinstance(value, Ref):
        obj = cx.obj(st, value, e)
        if isinstance(obj, ListObj) and not obj.unknown and obj.kind == "list":
            return obj.items, True
    return None


def _concatenate(cx: Lowering, st: State, e: ast.expr, left: V, right: V) -> V | None:
    a, b = sequence(cx, st, left, e), sequence(cx, st, right, e)
    if a is None and b is None:
        return None
    if a is not None and b is not None and a[1] == b[1]:
        items = a[0] + b[0]
        return cx.heap.new(st, ListObj(items)) if a[1] else Tup(items)
    if (a is not None and not a[1] and isinstance(right, Node)) or (
        b is not None and not b[1] and isinstance(left, Node)
    ):
        return cx.op(st, e, Op.ADD, as_node(cx, st, left, e), as_node(cx, st, right, e))
    return None


def _repeat(cx: Lowering, st: State, left: V, right: Node, e: ast.expr) -> V | None:
    a = sequence(cx, st, left, e)
    times = cx.known(right)
    if a is None or times is None or not isinstance(times[0], int):
        return None
    items = a[0] * times[0]
    return cx.heap.new(st, ListObj(items)) if a[1] else Tup(items)


def _unary(cx: Lowering, st: State, e: ast.UnaryOp) -> V:
    value = lower(cx, st, e.operand)
    if not isinstance(e.op, ast.Not) and tensors.is_opaque(cx, st, value):
        return launches.derived(cx, e, value)
    if isinstance(e.op, ast.Not):
        return cx.op(st, e, Op.NOT, truth(cx, st, value, e.operand))
    op = UNARY[type(e.op)]
    return each(cx, st, value, lambda s, v: cx.op(s, e, op, as_node(cx, s, v, e)))


def _boolop(cx: Lowering, st: State, e: ast.BoolOp) -> V:
    return _sited(cx, st, e, _boolean(cx, st, e, list(e.values), isinstance(e.op, ast.And)))


def _boolean(cx: Lowering, st: State, e: ast.BoolOp, rest: list[ast.expr], conjunction: bool) -> V:
    first = lower(cx, st, rest[0])
    if len(rest) == 1:
        return first
    cond = truth(cx, st, first, rest[0])
    if not conjunction:
        cond = cx.graph.negate(cond)
    return cx.branch(st, cond, lambda s: _boolean(cx, s, e, rest[1:], conjunction), lambda s: first)


def _sited(cx: Lowering, st: State, e: ast.expr, value: V) -> V:
    """Make the value of a choosing expression a site of its own, unless it is one already."""
    if (
        isinstance(value, Node)
        and value.op is Op.SELECT
        and not value.site
        and cx.known(value) is None
    ):
        return cx.op(st, e, Op.SELECT, *value.args)
    return value


def _ifexp(cx: Lowering, st: State, e: ast.IfExp) -> V:
    cond = truth(cx, st, lower(cx, st, e.test), e.test)
    value = cx.branch(st, cond, lambda s: lower(cx, s, e.body), lambda s: lower(cx, s, e.orelse))
    return _sited(cx, st, e, value)


def _compare(cx: Lowering, st: State, e: ast.Compare) -> V:
    left = lower(cx, st, e.left)
    before = cx.marks_of(e)
    value = _chain(cx, st, e, left, list(zip(e.ops, e.comparators, strict=True)))
    if len(e.ops) == 1:
        return value
    value = _sited(cx, st, e, value)
    if isinstance(value, Node):
        cx.forget_marks(e, before, value)
    return value


def _chain(
    cx: Lowering, st: State, e: ast.Compare, left: V, rest: list[tuple[ast.cmpop, ast.expr]]
) -> V:
    op, comparator = rest[0]
    right = lower(cx, st, comparator)
    value = comparing.compare(cx, st, e, op, left, right)
    if len(rest) == 1:
        return value
    cond = truth(cx, st, value, e)
    return cx.branch(st, cond, lambda s: _chain(cx, s, e, right, rest[1:]), lambda s: value)


def _tuple(cx: Lowering, st: State, e: ast.Tuple) -> V:
    return Tup(elements(cx, st, e.elts))


def elements(cx: Lowering, st: State, exprs: Sequence[ast.expr]) -> tuple[V, ...]:
    """Values of a display or argument list, stars expanded."""
    out: list[V] = []
    for x in exprs:
        if isinstance(x, ast.Starred):
            out.extend(iteration.iterate(cx, st, lower(cx, st, x.value), x.value))
        else:
            out.append(lower(cx, st, x))
    return tuple(out)


def _list(cx: Lowering, st: State, e: ast.List) -> V:
    return cx.heap.new(st, ListObj(elements(cx, st, e.elts)))


def _set(cx: Lowering, st: State, e: ast.Set) -> V:
    return cx.heap.new(st, ListObj(elements(cx, st, e.elts), kind="set"))


def _dict(cx: Lowering, st: State, e: ast.Dict) -> V:
    entries: dict[object, Entry] = {}
    for key, value in zip(e.keys, e.values, strict=True):
        if key is None:
            ref = lower(cx, st, value)
            for each_key, entry in iteration.entries_of(cx, st, ref, value).items():
                put(entries, each_key, entry)
            continue
        k = access.static_key(cx, st, lower(cx, st, key), key)
        put(entries, k, Entry(cx.true, lower(cx, st, value)))
    return cx.heap.new(st, DictObj(entries))


def _lambda(cx: Lowering, st: State, e: ast.Lambda) -> V:
    defaults = tuple(lower(cx, st, d) for d in e.args.defaults)
    cx.keep.append(e)
    return Func(e, cx.frame.module, "<lambda>", cx.frame.scope, defaults)


def _fstring(cx: Lowering, st: State, e: ast.JoinedStr) -> V:
    parts: list[Node] = []
    for part in e.values:
        if isinstance(part, ast.Constant):
            parts.append(cx.graph.const(part.value))
        elif isinstance(part, ast.FormattedValue):
            value = lower(cx, st, part.value)
            if part.format_spec is not None or part.conversion not in (-1, 115):
                parts.append(_formatted(cx, st, e, part, value))
            else:
                parts.append(access.text_of(cx, st, part.value, value))
    out = cx.graph.const("")
    for piece in parts:
        out = cx.op(st, e, Op.ADD, out, piece)
    return out


def _formatted(cx: Lowering, st: State, e: ast.expr, part: ast.FormattedValue, value: V) -> Node:
    """A field with a conversion or a format: what `str.format` makes of it."""
    spec = part.format_spec
    known = cx.known(scalar(cx, st, spec)) if spec is not None else ("",)
    node = as_node(cx, st, value, part)
    if known is None or set("{}") & set(str(known[0])) or "symbol" in cx.abs(node).kinds:
        cx.refuse(part, "SEL901", "this format specification is not supported")
    convert = "" if part.conversion == -1 else f"!{chr(part.conversion)}"
    field = cx.graph.const(f"{{{convert}:{known[0]}}}")
    return cx.op(st, e, Op.METHOD, field, node, attr="format")


def _walrus(cx: Lowering, st: State, e: ast.NamedExpr) -> V:
    value = lower(cx, st, e.value)
    names.store(cx, st, e.target.id, value)
    return value


def _attribute(cx: Lowering, st: State, e: ast.Attribute) -> V:
    fact = names.fact_for(cx, st, e)
    if fact is not None and fact.is_value:
        return from_python(cx, st, fact.value)
    value = lower(cx, st, e.value)
    return each(cx, st, value, lambda s, v: reading.attribute(cx, s, e, v, e.attr))


def _subscript(cx: Lowering, st: State, e: ast.Subscript) -> V:
    container = lower(cx, st, e.value)
    return each(cx, st, container, lambda s, v: access.subscript(cx, s, e, v))


def _call(cx: Lowering, st: State, e: ast.Call) -> V:
    return calls.call(cx, st, e)


def _comprehension(cx: Lowering, st: State, e: ast.expr) -> V:
    return iteration.comprehension(cx, st, e)


_RULES: dict[type, Callable[[Lowering, State, Any], V]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _boolop,
    ast.IfExp: _ifexp,
    ast.Compare: _compare,
    ast.Tuple: _tuple,
    ast.List: _list,
    ast.Set: _set,
    ast.Dict: _dict,
    ast.Lambda: _lambda,
    ast.JoinedStr: _fstring,
    ast.NamedExpr: _walrus,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.Call: _call,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.DictComp: _comprehension,
}


def _kind(e: ast.expr) -> str:
    return {
        "Await": "`await`",
        "Yield": "`yield`",
        "YieldFrom": "`yield from`",
        "Starred": "a starred expression",
        "Slice": "a slice",
    }.get(type(e).__name__, type(e).__name__)
