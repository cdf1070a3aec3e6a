"""From what a function returns to selection points: their names and their roles."""

from __future__ import annotations

import ast
from collections.abc import Callable

from selc.diag.diagnostic import Diagnostic, Refused
from selc.diag.suggest import did_you_mean
from selc.frontend import expr
from selc.frontend.context import Lowering
from selc.frontend.dsl import annotation
from selc.frontend.literals import FROM_FACTS
from selc.frontend.state import State
from selc.frontend.values import Choice, Cls, DictObj, Entry, Func, InstObj, ListObj, Ref, Tup, V
from selc.ir.graph import Node
from selc.ir.op import Op
from selc.ir.value import Symbol


def flatten(  # noqa: C901  # one case per kind
    cx: Lowering, st: State, value: V, prefix: str, whole: frozenset[str], e: ast.AST
) -> dict[str, Node]:
    """Every field of a returned value, by name; a field that may be absent is null there."""
    name = prefix or "result"
    if isinstance(value, (Cls, Func)):
        return {
            name: cx.graph.const(
                Symbol("class" if isinstance(value, Cls) else "function", value.qualname)
            )
        }
    if (
        name in whole
        and not isinstance(value, Node)
        and (prefix or not _has_field(cx, st, value, name, e))
    ):
        if isinstance(value, Choice):
            then, other = (
                flatten(cx, st, v, prefix, whole, e)[name] for v in (value.then, value.other)
            )
            return {name: cx.graph.select(value.cond, then, other)}
        return {name: expr.as_node(cx, st, _plain(cx, st, value, e), e)}
    if isinstance(value, Node):
        return {prefix or "result": value}
    if isinstance(value, Choice):
        left = flatten(cx, st, value.then, prefix, whole, e)
        right = flatten(cx, st, value.other, prefix, whole, e)
        for mine, theirs in ((left, right), (right, left)):
            if (
                list(mine) == [name]
                and theirs.keys() - mine.keys()
                and cx.known(mine[name]) == (None,)
            ):
                del mine[name]  # None: the fields are null there
        return {
            k: cx.graph.select(value.cond, left.get(k, cx.none), right.get(k, cx.none))
            for k in {**left, **right}
        }
    parts: list[tuple[str, V]] = []
    if isinstance(value, Tup):
        names = [_joined(prefix, f) for f in value.fields] or [
            f"{prefix}[{i}]" for i in range(len(value.items))
        ]
        parts = list(zip(names, value.items, strict=True))
    elif isinstance(value, Ref):
        obj = cx.obj(st, value, e)
        if isinstance(obj, ListObj):
            parts = [(f"{prefix}[{i}]", v) for i, v in enumerate(obj.items)]
        else:
            entries = obj.entries if isinstance(obj, DictObj) else obj.fields
            for key, entry in entries.items():
                name = _joined(prefix, str(key))
                if cx.known_bool(entry.present) is not True:
                    inner = flatten(cx, st, entry.value, name, whole, e)
                    parts.extend(
                        (n, cx.graph.select(entry.present, v, cx.none)) for n, v in inner.items()
                    )
                else:
                    parts.append((name, entry.value))
    else:
        expr.needed(cx, e, value)
        cx.refuse(
            e,
            "SEL905",
            f"{expr.describe(cx, st, value)} is returned as a choice",
            help="return numbers, strings, bools, None, or records of them",
        )
    out: dict[str, Node] = {}
    for name, part in parts:
        out.update(
            {name: part} if isinstance(part, Node) else flatten(cx, st, part, name, whole, e)
        )
    return out


def mirror_flat(cx: Lowering, flat: dict[str, Node]) -> V:
    """`result` of a function with an opaque tail: a mapping from point names."""
    entries: dict[object, Entry] = {k: Entry(cx.true, _read(cx, k, v)) for k, v in flat.items()}
    return cx.heap.new(None, DictObj(entries, frozen=FROM_FACTS))


def _has_field(cx: Lowering, st: State, value: V, name: str, e: ast.AST) -> bool:
    """Whether a returned record has a field of this name."""
    if isinstance(value, Choice):
        return _has_field(cx, st, value.then, name, e) or _has_field(cx, st, value.other, name, e)
    if isinstance(value, Ref):
        obj = cx.obj(st, value, e)
        return name in (
            obj.entries
            if isinstance(obj, DictObj)
            else obj.fields
            if isinstance(obj, InstObj)
            else ()
        )
    return isinstance(value, Tup) and name in value.fields


def _plain(cx: Lowering, st: State, value: V, e: ast.AST) -> V:
    if isinstance(value, Ref):
        obj = cx.obj(st, value, e)
        if isinstance(obj, ListObj):
            return Tup(obj.items)
    return value


def _joined(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name


def mirror(
    cx: Lowering, st: State, value: V, prefix: str, points: dict[str, Node], e: ast.AST
) -> V:
    """The returned value as guards in facts files see it: every leaf is a read of its point."""
    if (prefix or "result") in points:
        name = prefix or "result"
        node = points[name]
        if isinstance(value, Tup):
            items = [
                cx.graph.fold(Op.INDEX, _read(cx, name, node), cx.graph.const(i))
                for i in range(len(value.items))
            ]
            return Tup(tuple(items), value.fields)
        return _read(cx, name, node)
    if isinstance(value, Choice):
        return Choice(
            value.cond,
            mirror(cx, st, value.then, prefix, points, e),
            mirror(cx, st, value.other, prefix, points, e),
        )
    if isinstance(value, Tup):
        names = [_joined(prefix, f) for f in value.fields] or [
            f"{prefix}[{i}]" for i in range(len(value.items))
        ]
        return Tup(
            tuple(mirror(cx, st, v, n, points, e) for n, v in zip(names, value.items, strict=True)),
            value.fields,
        )
    if isinstance(value, Ref):
        obj = cx.obj(st, value, e)
        if isinstance(obj, ListObj):
            return Tup(
                tuple(
                    mirror(cx, st, v, f"{prefix}[{i}]", points, e) for i, v in enumerate(obj.items)
                )
            )
        entries = obj.entries if isinstance(obj, DictObj) else obj.fields
        out = {
            k: Entry(x.present, mirror(cx, st, x.value, _joined(prefix, str(k)), points, e))
            for k, x in entries.items()
        }
        return cx.heap.new(None, DictObj(out, frozen=FROM_FACTS))
    return value


def _read(cx: Lowering, name: str, node: Node) -> Node:
    return cx.graph.add(Op.MARK, node, attr=("result", name))


# -- roles ---------------------------------------------------------------------------------------


def roles(cx: Lowering, names: list[str], annotated: dict[str, str]) -> dict[str, str]:
    """The role of every point: the facts' word, then the annotation's, then `bits`."""
    stated = cx.facts.returns
    unknown = [
        k
        for k in stated
        if k != "*" and not any(n == k or n.startswith((k + ".", k + "[")) for n in names)
    ]
    if unknown:
        span = cx.facts.spans.get(f"selection.returns.{unknown[0]}")
        message = f"`returns` names `{unknown[0]}`, which the function does not return"
        diagnostic = Diagnostic(
            "SEL911",
            message,
            help=did_you_mean(unknown[0], names) or f"it returns: {', '.join(names)}",
        )
        raise Refused(
            diagnostic
            if span is None
            else Diagnostic("SEL911", message, span, help=diagnostic.help)
        )
    out: dict[str, str] = {}
    for name in names:
        for table in (stated, annotated):
            role = _longest(table, name)
            if role:
                out[name] = role
                break
        else:
            out[name] = stated.get("*") or cx.launch_roles.get(name, "bits")
    return out


def _longest(table: dict[str, str], name: str) -> str:
    best = ""
    for key in table:
        if (
            key != "*"
            and len(key) > len(best)
            and (name == key or name.startswith((key + ".", key + "[")))
        ):
            best = key
    return table.get(best, "") if best else ""


def annotated_roles(
    cx: Lowering, st: State, e: ast.expr | None, resolve: Callable[[ast.expr], V], prefix: str = ""
) -> dict[str, str]:
    """Roles written as `Bits[...]`, `Neutral[...]`, `Aux[...]` on fields of the returned record."""
    _, role, inner = annotation(e)
    if role:
        return {prefix or "result": role}
    if not isinstance(inner, (ast.Name, ast.Attribute)):
        return {}
    try:
        with cx.tentative():
            cls = resolve(inner)
    except Refused:
        return {}
    if not isinstance(cls, Cls):
        return {}
    out: dict[str, str] = {}
    for item in cls.node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            out.update(
                annotated_roles(cx, st, item.annotation, resolve, _joined(prefix, item.target.id))
            )
    return out


__all__ = ["annotated_roles", "flatten", "mirror", "roles"]
