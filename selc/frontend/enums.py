"""Enum classes: members are symbols, named `Class.MEMBER`, and behave as the class says.

Members of an Enum that is an int or a str as well (IntEnum, StrEnum, mixed in) are symbols too;
where Python would use the number or the text, a table from member to value stands in for it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from selc.diag.diagnostic import Diagnostic, Refused
from selc.diag.span import Span
from selc.frontend import bodies, names, reading
from selc.frontend.context import Lowering, snippet
from selc.frontend.state import State
from selc.frontend.values import Bound, Cls, DictObj, Entry, External, Func, Method, Tup, V
from selc.ir.graph import Node
from selc.ir.op import Op
from selc.ir.value import Symbol, Value

KIND: Final = "enum:"
_BASES: Final = {
    "enum.Enum": "",
    "enum.IntEnum": "int",
    "enum.StrEnum": "str",
    "builtins.int": "int",
    "builtins.str": "str",
    "enum.Flag": "flag",
    "enum.IntFlag": "flag",
    "enum.ReprEnum": "",
    "builtins.float": "float",
}
_MEMBER: Final = re.compile(
    r"(?:(?P<module>[a-z_]\w*(?:\.\w+)*)[.:])?(?P<cls>[A-Z_]\w*(?:\.[A-Z]\w*)*)\.(?P<name>[A-Za-z]\w*)"
)
_COMPARED: Final = {
    ast.Eq: "__eq__",
    ast.NotEq: "__ne__",
    ast.Lt: "__lt__",
    ast.LtE: "__le__",
    ast.Gt: "__gt__",
    ast.GtE: "__ge__",
}


@dataclass(frozen=True, slots=True, eq=False)
class Members:
    """The members of an Enum class; an alias has the symbol of the member that it names."""

    cls: Cls
    mixin: str  # 'int', 'str', 'float', 'flag' or ''
    symbols: dict[str, Symbol]
    values: dict[Symbol, Value]  # without those that have no constant value


def base_of(cx: Lowering, cls: Cls) -> str | None:
    """What an Enum class mixes in ('' for nothing); None for other classes."""
    key = (f"{cls.module.path}:{cls.qualname}", "<enum>")
    known = cx.enum_bases.get(key)
    if known is None:
        known = cx.enum_bases[key] = (_base_of(cx, cls),)
    return known[0]


def _base_of(cx: Lowering, cls: Cls) -> str | None:

    found: str | None = None
    mixin = ""
    for base in cls.node.bases:
        if isinstance(base, ast.Subscript):
            continue
        try:
            value = bodies.run_class_value(cx, cls, base)
        except Refused:
            continue
        if isinstance(value, External) and value.name in _BASES:
            if value.name.startswith("enum."):
                found = ""
            mixin = mixin or _BASES[value.name]
        elif isinstance(value, Cls):
            inner = base_of(cx, value)
            if inner is not None:
                found, mixin = "", mixin or inner
    return None if found is None else mixin


def members(cx: Lowering, cls: Cls) -> Members:
    """The members of an Enum class, in order of definition."""
    kind = f"{KIND}{cls.module.module_name}.{cls.qualname}"
    known = cx.enums.get(kind)
    if known is None:
        known = cx.enums[kind] = _members(cx, cls, kind)
    return known


def _members(cx: Lowering, cls: Cls, kind: str) -> Members:
    mixin = base_of(cx, cls) or ""
    symbols: dict[str, Symbol] = {}
    values: dict[Symbol, Value] = {}
    given: list[Value] = []
    raw: dict[str, V] = {}  # in the class body, a member's name is its plain value
    for item in cls.node.body:
        if isinstance(item, ast.FunctionDef) and item.name == "_generate_next_value_":
            cx.refuse(
                item, "SEL901", f"the members of `{cls.qualname}` are numbered by code of its own"
            )
        if not isinstance(item, ast.Assign):
            continue
        for target in item.targets:
            if not isinstance(target, ast.Name):
                cx.refuse(
                    item, "SEL901", f"this definition in the Enum `{cls.qualname}` is not supported"
                )
            if target.id.startswith("_"):
                continue
            value = _value(cx, cls, item.value, target.id, mixin, given, raw)
            if value is not None:
                given.append(value[0])
                raw[target.id] = cx.graph.const(value[0])
            first = (
                None
                if value is None
                else next((s for s, v in values.items() if v == value[0]), None)
            )
            symbol = first or Symbol(kind, f"{cls.qualname.rpartition('.')[2]}.{target.id}")
            symbols[target.id] = symbol
            if first is None and value is not None:
                values[symbol] = value[0]
    if any(isinstance(i, ast.FunctionDef) and i.name == "__new__" for i in cls.node.body):
        values = {}
    return Members(cls, mixin, symbols, values)


def _value(
    cx: Lowering,
    cls: Cls,
    e: ast.expr,
    name: str,
    mixin: str,
    given: list[Value],
    raw: Mapping[str, V],
) -> tuple[Value] | None:
    """The constant value of a member; None where it has none that selc knows."""
    from selc.frontend import expr

    if isinstance(e, ast.Call) and ast.unparse(e.func).rpartition(".")[2] == "auto" and not e.args:
        if mixin == "str":
            return (name.lower(),)
        numbers = [v for v in given if isinstance(v, int)]
        if (
            len(numbers) < len(given)
            or (numbers and numbers[-1] != max(numbers))
            or mixin == "flag"
        ):
            cx.refuse(
                e,
                "SEL901",
                f"what `auto()` gives here in `{cls.qualname}` depends on the version of Python",
            )
        return (numbers[-1] + 1 if numbers else 1,)
    try:
        value = bodies.run_class_value(cx, cls, e, raw)
        node = expr.as_node(cx, State(cx.true), value, e)
    except Refused:
        return None
    return cx.known(node)


def member(cx: Lowering, cls: Cls, name: str) -> Node | None:
    """The member `cls.name`, None if there is none (or the class is no Enum)."""
    if base_of(cx, cls) is None:
        return None
    symbol = members(cx, cls).symbols.get(name)
    return None if symbol is None else cx.graph.const(symbol)


# -- facts ---------------------------------------------------------------------------------------


def named(cx: Lowering, text: str) -> Symbol | None:
    """The member that `Class.MEMBER`, also with its module, names in a facts file, if any."""
    match = _MEMBER.fullmatch(text)
    if match is None or cx.entry_module is None:
        return None
    place = match["module"]
    parts = match["cls"].split(".")
    sources = [cx.entry_module] if place is None else [cx.finder.find(place)]
    if place is None:
        declared = [d.cls.rpartition(":")[0] for d in cx.facts.objects.values() if d.cls]
        sources += [cx.finder.find(m) for m in dict.fromkeys(declared)]
    where = ast.Name(parts[0], ast.Load())
    for source in sources:
        if source is None:
            continue
        frame = names.module_frame(cx, source)
        cx.frames.append(frame)
        try:
            value = names.module_value(cx, State(cx.true), source, parts[0], where)
            found = _nested(cx, value, parts[1:])
            node = member(cx, found, match["name"]) if found is not None else None
        except Refused:
            node = None
        finally:
            cx.frames.pop()
        if node is not None:
            assert isinstance(node.attr, Symbol)
            return node.attr
    if place is not None and sources[0] is not None:
        raise Refused(
            Diagnostic(
                "SEL911",
                f"`{text}` is no Enum member: there is no such class or member in "
                f"{sources[0].path}",
                Span("", 0, 0, 0, 0),
                help="check the spelling",
            )
        )
    return None


def _nested(cx: Lowering, value: V | None, rest: list[str]) -> Cls | None:

    for part in rest:
        if not isinstance(value, Cls):
            return None
        value = reading.class_member(cx, State(cx.true), value, part)
    return value if isinstance(value, Cls) else None


# -- nodes ---------------------------------------------------------------------------------------


def of(cx: Lowering, node: Node) -> Members | None:
    """The Enum whose members a node ranges over; None unless it certainly is one of them."""
    values = cx.abs(node).values
    if not values or not all(isinstance(v, Symbol) for v in values):
        return None
    kinds = {v.kind for v in values if isinstance(v, Symbol)}
    return cx.enums.get(kinds.pop()) if len(kinds) == 1 else None


def plain(cx: Lowering, node: Node, e: ast.AST) -> Node:
    """The number or text that a member of a mixed-in Enum is; other nodes as they are."""
    if not cx.enums or "symbol" not in cx.abs(node).kinds:
        return node
    if not any(m.mixin for m in cx.enums.values()):
        return node
    values = cx.abs(node).values
    if values is None:
        cx.refuse(
            e,
            "SEL901",
            "which Enum members this can be is not known",
            help="list them: `values: [Class.A, Class.B]`",
        )
    table: list[tuple[Value, Value]] = []
    mixed = False
    for value in values:
        found = cx.enums.get(value.kind) if isinstance(value, Symbol) else None
        if found is not None and found.mixin:
            assert isinstance(value, Symbol)
            if found.mixin == "flag" or value not in found.values:
                cx.refuse(e, "SEL901", f"the value of `{value.name}` is not known here")
            table.append((value, found.values[value]))
            mixed = True
        else:
            if isinstance(value, (bool, int, float, tuple)) and mixed:
                cx.refuse(e, "SEL901", "this is an Enum member or a number, depending on an input")
            table.append((value, value))
    if not mixed:
        return node
    if any(isinstance(k, (bool, int, float, tuple)) for k, _ in table):
        cx.refuse(e, "SEL901", "this is an Enum member or a number, depending on an input")
    return cx.graph.fold(Op.LOOKUP, node, attr=tuple(table), origin=cx.span(e))


def operands(cx: Lowering, op: Op, args: tuple[Node, ...], e: ast.AST) -> tuple[Node, ...]:
    """Arguments of an operation, members turned to what they are where Python would."""
    if op in (Op.SELECT, Op.MARK, Op.TUPLE, Op.IS, Op.OK, Op.IN):
        return args
    if op in (Op.EQ, Op.NE):
        a, b = (of(cx, n) for n in args)
        if a is not None and a is b:
            return args
    return tuple(plain(cx, a, e) for a in args)


def comparison(cx: Lowering, st: State, e: ast.expr, op: ast.cmpop, left: V, right: V) -> V | None:
    """A comparison that the Enum class defines itself."""
    name = _COMPARED.get(type(op))
    if name is None or not (isinstance(left, Node) or isinstance(right, Node)) or not cx.enums:
        return None
    own = of(cx, left) if isinstance(left, Node) else None
    other = of(cx, right) if isinstance(right, Node) else None
    from selc.frontend import calls

    for side in (own, other):
        if side is None:
            continue
        method = reading.class_member(cx, st, side.cls, name)
        if isinstance(method, Func):
            if side is not own:
                cx.refuse(
                    e,
                    "SEL901",
                    f"`{snippet(e)}` is decided by `{side.cls.qualname}.{name}` of the right "
                    "operand",
                )
            return calls.invoke(cx, st, e, Bound(method, left), (right,), {})
    return None


def key(cx: Lowering, e: ast.AST, entries: object, node: Node) -> Node:
    """A dict key: the member itself among keys that are members of its class, else what it is."""
    found = of(cx, node)
    keys = list(entries) if isinstance(entries, dict) else []
    inside = [x for k in (*keys, *(cx.abs(node).values or ())) if isinstance(k, tuple) for x in k]
    if any(isinstance(x, Symbol) and x.kind in cx.enums and cx.enums[x.kind].mixin for x in inside):
        cx.refuse(
            e,
            "SEL901",
            "Enum members that are numbers or text, inside a tuple used as key, are not supported",
        )
    theirs = {cx.enums.get(k.kind) if isinstance(k, Symbol) else None for k in keys}
    if found is not None and found.mixin and theirs == {found}:
        return node
    mixed = any(m is not None and m.mixin for m in theirs) and (found is None or found.mixin)
    if mixed and (found is not None or cx.abs(node).kinds & {"int", "bool", "float", "str"}):
        cx.refuse(
            e,
            "SEL901",
            "looking up a number or text among Enum members is not supported",
            help="use one kind of key",
        )
    return plain(cx, node, e)


def alike(cx: Lowering, container: Tup, item: V, e: ast.AST) -> tuple[Tup, V]:
    """The operands of `in`, members turned to what they are unless all are of one class."""
    if not cx.enums:
        return container, item
    nodes = [v for v in (*container.items, item) if isinstance(v, Node)]
    found = [of(cx, n) for n in nodes]
    if (
        found
        and found[0] is not None
        and all(m is found[0] for m in found)
        and len(nodes) == len(container.items) + 1
    ):
        return container, item
    items = tuple(plain(cx, v, e) if isinstance(v, Node) else v for v in container.items)
    return Tup(items, container.fields), plain(cx, item, e) if isinstance(item, Node) else item


def attribute(cx: Lowering, st: State, e: ast.expr, node: Node, name: str) -> V | None:
    """`member.name`; None if the node is no member of a followed Enum."""
    found = of(cx, node)
    if found is None:
        return None
    from selc.frontend import calls

    if name in ("name", "_name_"):
        return _lookup(cx, e, node, {s: s.name.rpartition(".")[2] for s in found.symbols.values()})
    if name in ("value", "_value_"):
        if any(v not in found.values for v in cx.abs(node).values or ()):
            cx.refuse(e, "SEL901", f"the values of `{found.cls.qualname}` are not constants")
        return _lookup(cx, e, node, found.values)
    if name == "__class__":
        return found.cls
    own = reading.class_member(cx, st, found.cls, name)
    if isinstance(own, Func):
        if own.flavour == "property":
            return calls.invoke(cx, st, e, own, (node,), {})
        if own.flavour == "static":
            return own
        return Bound(own, found.cls if own.flavour == "class" else node)
    if own is not None:
        return own
    if found.mixin not in ("int", "str", "float"):
        cx.refuse(
            e,
            "SEL901",
            f"`.{name}` of a member of `{found.cls.qualname}` is not supported",
            help=f'state it: functions: {{"{snippet(e)}": ...}}',
        )
    return Method(plain(cx, node, e), name)


def _lookup(cx: Lowering, e: ast.AST, node: Node, table: dict[Symbol, Value]) -> Node:
    possible = cx.abs(node).values or ()
    pairs = tuple((s, v) for s, v in table.items() if s in possible)
    return cx.graph.fold(Op.LOOKUP, cx.settle(node), attr=pairs, origin=cx.span(e))


def text(cx: Lowering, node: Node, e: ast.AST) -> Node:
    """What `str(member)` reads, for nodes that are members; others as they are."""
    if not cx.enums or "symbol" not in cx.abs(node).kinds:
        return node
    found = of(cx, node)
    if found is None:
        return plain(cx, node, e)

    for method in ("__str__", "__format__", "__repr__"):
        if reading.class_member(cx, State(cx.true), found.cls, method) is not None:
            cx.refuse(
                e, "SEL901", f"the text of a member is made by `{found.cls.qualname}.{method}`"
            )
    if found.mixin and not any(
        ast.unparse(b).rpartition(".")[2] in ("IntEnum", "StrEnum") for b in found.cls.node.bases
    ):
        cx.refuse(
            e,
            "SEL901",
            f"the text of a member of `{found.cls.qualname}` depends on the version of Python",
            help="use `.value` or `.name`",
        )
    return plain(cx, node, e)


def ordered(cx: Lowering, st: State, value: V, e: ast.AST, largest: bool) -> Node:
    """A value as `max`, `min` and `sorted` compare it."""
    from selc.frontend import expr

    node = expr.as_node(cx, st, value, e)
    found = of(cx, node)
    if found is not None and isinstance(
        reading.class_member(cx, st, found.cls, "__gt__" if largest else "__lt__"), Func
    ):
        cx.refuse(e, "SEL901", f"the order of `{found.cls.qualname}` is decided by code of its own")
    return plain(cx, node, e)


# -- classes -------------------------------------------------------------------------------------


def by_value(cx: Lowering, st: State, e: ast.expr, cls: Cls, args: tuple[V, ...]) -> V:
    """`Class(value)`."""
    from selc.frontend import calls, expr

    found = members(cx, cls)
    if len(args) != 1:
        cx.refuse(e, "SEL901", f"making the Enum `{cls.qualname}` by a call is not supported")
    node = expr.as_node(cx, st, args[0], e)
    if of(cx, node) is found:
        return node
    node = plain(cx, node, e)
    pairs: list[tuple[Value, Value]] = [(v, s) for s, v in found.values.items()]
    if len(found.values) < len(set(found.symbols.values())) or any(
        isinstance(v, (Symbol, tuple)) for v, _ in pairs
    ):
        cx.refuse(e, "SEL901", f"the values of `{cls.qualname}` are not constants")
    inside = cx.graph.fold(Op.HASKEY, node, attr=tuple(v for v, _ in pairs))
    missing = reading.class_member(cx, st, cls, "_missing_")

    def there(s: State) -> V:
        return cx.graph.fold(Op.LOOKUP, node, attr=tuple(pairs), origin=cx.span(e))

    def absent(s: State) -> V:
        if isinstance(missing, Func):
            return calls.invoke(cx, s, e, Bound(missing, cls), (node,), {})
        cx.partial(
            s, e, cx.false, "ValueError", f"`{snippet(e)}` must be a value of `{cls.qualname}`"
        )
        return cx.graph.add(Op.FAIL)

    return cx.branch(st, inside, there, absent)


def by_name(cx: Lowering, st: State, e: ast.expr, cls: Cls, index: V) -> V:
    """`Class[name]`."""
    from selc.frontend import expr

    found = members(cx, cls)
    node = plain(cx, expr.as_node(cx, st, index, e), e)
    inside = cx.graph.fold(Op.HASKEY, node, attr=tuple(found.symbols))
    cx.partial(st, e, inside, "KeyError", f"`{snippet(e)}` must name a member of `{cls.qualname}`")
    if cx.known_bool(inside) is False:
        return cx.graph.add(Op.FAIL)
    return cx.graph.fold(Op.LOOKUP, node, attr=tuple(found.symbols.items()), origin=cx.span(e))


def listed(cx: Lowering, cls: Cls) -> tuple[V, ...]:
    """The members in order, without aliases."""
    return tuple(cx.graph.const(s) for s in dict.fromkeys(members(cx, cls).symbols.values()))


def mapping(cx: Lowering, cls: Cls) -> V:
    """`Class.__members__`."""
    entries: dict[object, Entry] = {
        name: Entry(cx.true, cx.graph.const(s)) for name, s in members(cx, cls).symbols.items()
    }
    return cx.heap.new(None, DictObj(entries, frozen="it lists the members of a class"))


def instance(cx: Lowering, node: Node, kind: V) -> bool | None:
    """Whether a node is an instance of a class or built-in type, as far as members tell."""
    found = of(cx, node)
    if found is None:
        return None
    if isinstance(kind, External) and kind.name.startswith("builtins."):
        return kind.name in ("builtins.object", f"builtins.{found.mixin}")
    if isinstance(kind, External) and kind.name in ("enum.Enum", "enum.IntEnum", "enum.StrEnum"):
        bases = {ast.unparse(b).rpartition(".")[2] for b in found.cls.node.bases}
        return True if kind.name == "enum.Enum" else kind.name.removeprefix("enum.") in bases
    if isinstance(kind, Cls):
        if kind.node is found.cls.node:
            return True
        return None if base_of(cx, kind) is not None else False
    return None


__all__ = [
    "alike",
    "attribute",
    "base_of",
    "by_name",
    "by_value",
    "comparison",
    "instance",
    "key",
    "listed",
    "mapping",
    "member",
    "members",
    "named",
    "of",
    "operands",
    "ordered",
    "plain",
    "text",
]
