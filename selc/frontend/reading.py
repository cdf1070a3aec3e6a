"""Attributes of values: of numbers, objects, classes and modules."""

from __future__ import annotations

import ast

from selc.frontend import (
    access,
    attributes,
    bodies,
    classes,
    enums,
    expr,
    launches,
    library,
    literals,
    names,
    sequences,
    tensors,
)
from selc.frontend.context import Lowering, snippet
from selc.frontend.state import State
from selc.frontend.values import (
    Bound,
    Cls,
    DictObj,
    External,
    FileV,
    Func,
    InstObj,
    ListObj,
    Mask,
    Method,
    ModuleV,
    Opaque,
    Ref,
    Seq,
    Super,
    Tup,
    V,
)
from selc.ir.graph import Node
from selc.ir.op import STRING_METHODS, Op
from selc.ir.value import Symbol


def attribute(cx: Lowering, st: State, e: ast.expr, value: V, name: str) -> V:  # noqa: C901  # one case per kind
    """`value.name`."""
    match value:
        case Node():
            return _node_attribute(cx, st, e, value, name)
        case Tup():
            if name in value.fields:
                return value.items[value.fields.index(name)]
            if (
                value.cls is not None
                and (member := class_member(cx, st, value.cls, name)) is not None
            ):
                return (
                    _method_of(cx, st, e, value, value.cls, member)
                    if isinstance(member, Func)
                    else member
                )
            return Method(value, name)
        case Ref():
            return _object_attribute(cx, st, e, value, name)
        case Cls():
            return _class_attribute(cx, st, e, value, name)
        case ModuleV():
            return _module_attribute(cx, st, e, value, name)
        case External():
            return names.external(cx, f"{value.name}.{name}")
        case FileV():
            return Method(value, name)
        case Super():
            return classes.attribute(cx, st, e, value, name)
        case Opaque():
            data = value.data or (value.made and name in launches.FIELDS)
            query = value.query if value.data or not data else f"{value.text}.{name}"
            return Opaque(f"{value.text}.{name}", query=query, made=value.made, data=data)
        case Mask() if name in ("any", "all"):
            return Method(value, name)
        case Seq() if name in sequences.METHODS and value.array is not False:
            return Method(value, name)
        case Func() if name == "__name__":
            return cx.graph.const(value.qualname.rpartition(".")[2])
        case _:
            cx.refuse(e, "SEL901", f"`.{name}` of {expr.describe(cx, st, value)} is not supported")


def _node_attribute(cx: Lowering, st: State, e: ast.expr, node: Node, name: str) -> V:
    kinds = cx.abs(node).kinds
    if "symbol" in kinds:
        member = enums.attribute(cx, st, e, node, name)
        if member is not None:
            return member
    known = cx.known(node)
    if known is not None and isinstance(known[0], Symbol):
        symbol = known[0]
        if symbol.kind == "dtype" and name == "itemsize":
            return cx.graph.const(symbol.size)
        if name == "name":
            return cx.graph.const(symbol.name.rpartition(".")[2])
        if symbol.kind == "dtype" and name in ("is_floating_point", "is_complex"):
            integral = symbol.name.removeprefix("torch.").startswith(("int", "uint", "bool"))
            return cx.graph.const(
                name == "is_floating_point" and not integral and "complex" not in symbol.name
            )
    if (name in STRING_METHODS and kinds <= {"str", "tuple"}) or (
        name in access.NUMBER_METHODS and kinds <= {"int", "bool", "float"}
    ):
        return Method(node, name)
    if "none" in kinds and kinds <= {"none"}:
        cx.partial(
            st, e, cx.false, "AttributeError", f"`{snippet(e)}`: None has no attribute `{name}`"
        )
        return cx.graph.add(Op.FAIL)
    cx.refuse(e, "SEL901", f"`.{name}` of a number, string or None is not supported")


def _object_attribute(cx: Lowering, st: State, e: ast.expr, ref: Ref, name: str) -> V:
    obj = cx.obj(st, ref, e)
    if isinstance(obj, InstObj) and obj.name == tensors.TENSOR:
        return tensors.attribute(cx, st, e, ref, name)
    if isinstance(obj, ListObj):
        return Method(ref, name)
    if isinstance(obj, DictObj):
        return _dict_attribute(cx, st, e, ref, obj, name)
    entry = obj.fields.get(name)
    if entry is not None:
        return access.entry_value(cx, st, e, entry, "AttributeError", name)
    if name == "__class__" and obj.cls is not None:
        return obj.cls
    if obj.cls is not None:
        member = class_member(cx, st, obj.cls, name)
        if isinstance(member, Func):
            return _method_of(cx, st, e, ref, obj.cls, member)
        if member is not None:
            if obj.frozen == literals.FROM_FACTS and attributes.default_of(cx, obj.cls, name):
                cx.need(
                    e,
                    f"facts:\n  {snippet(e)}: ...",
                    f"`{snippet(e)}` is not stated in the facts, and its class sets it",
                )
            return member
    if obj.cls is None or obj.frozen == literals.FROM_FACTS:
        cx.need(e, f"facts:\n  {snippet(e)}: ...", f"`{snippet(e)}` is not stated in the facts")
    cx.partial(st, e, cx.false, "AttributeError", f"`{snippet(e)}` has not been set here")
    return cx.graph.add(Op.FAIL)


def _dict_attribute(cx: Lowering, st: State, e: ast.expr, ref: Ref, obj: DictObj, name: str) -> V:
    stated = obj.frozen == literals.FROM_FACTS
    if stated and name in obj.entries and name not in access.DICT_METHODS:
        return access.entry_value(cx, st, e, obj.entries[name], "AttributeError", name)
    if name in access.DICT_METHODS or hasattr(dict, name):
        return Method(ref, name)
    if stated:
        cx.need(e, f"facts:\n  {snippet(e)}: ...", f"`{snippet(e)}` is not stated in the facts")
    cx.refuse(e, "SEL901", f"`.{name}` of a dict is not supported")


def _method_of(cx: Lowering, st: State, e: ast.expr, owner: V, cls: Cls, member: Func) -> V:
    """A function of a class as an attribute of one of its objects."""
    if member.flavour == "property":
        from selc.frontend import calls

        return calls.invoke(cx, st, e, member, (owner,), {})
    if member.flavour == "static":
        return member
    return Bound(member, cls if member.flavour == "class" else owner)


def class_member(cx: Lowering, st: State, cls: Cls, name: str) -> V | None:
    """A class attribute or method, bases followed in order."""
    key = (f"{cls.module.path}:{cls.qualname}", name)
    if key in cx.module_values:
        return cx.module_values[key]
    found = own_member(cx, st, cls, name)
    for base in classes.bases(cx, cls) if found is None else ():
        if isinstance(base, Cls):
            found = class_member(cx, st, base, name)
        if found is not None:
            break
    if found is not None:
        cx.module_values[key] = found
    return found


def own_member(cx: Lowering, st: State, cls: Cls, name: str) -> V | None:
    """What a class itself binds a name to."""
    found: V | None = attributes.stated(cx, cls, name)
    for item in () if found is not None else cls.node.body:
        if isinstance(item, ast.FunctionDef) and item.name == name:
            found = bodies.function(cx, st, item, cls.module, f"{cls.qualname}.{name}", None, cls)
        elif isinstance(item, (ast.Assign, ast.AnnAssign)) and item.value is not None:
            targets = item.targets if isinstance(item, ast.Assign) else [item.target]
            if any(isinstance(t, ast.Name) and t.id == name for t in targets):
                found = enums.member(cx, cls, name)
                if found is None:
                    found = attributes.of_class(
                        cx, cls, name, bodies.run_class_value(cx, cls, item.value), item
                    )
        elif isinstance(item, ast.If) and name in names_bound(item):
            cx.refuse(
                item, "SEL901", f"`{cls.qualname}.{name}` is defined under a condition in its class"
            )
    return found


def names_bound(node: ast.AST) -> set[str]:
    """Names that a statement binds, nested functions included."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} | {
        n.name for n in ast.walk(node) if isinstance(n, ast.FunctionDef)
    }


def _class_attribute(cx: Lowering, st: State, e: ast.expr, cls: Cls, name: str) -> V:
    if name == "__name__":
        return cx.graph.const(cls.qualname.rpartition(".")[2])
    if name == "__members__" and enums.base_of(cx, cls) is not None:
        return enums.mapping(cx, cls)
    member = class_member(cx, st, cls, name)
    if member is None:
        cx.partial(st, e, cx.false, "AttributeError", f"`{snippet(e)}` is not defined")
        return cx.graph.add(Op.FAIL)
    if isinstance(member, Func) and member.flavour == "class":
        return Bound(member, cls)
    return member


def _module_attribute(cx: Lowering, st: State, e: ast.expr, module: ModuleV, name: str) -> V:
    source = cx.finder.find(module.name)
    if source is None:
        return Opaque(f"{module.name}.{name}")
    if module.name.rpartition(".")[2] in ("envs", "environ"):
        return library.engine_env(cx, st, e, source, name)
    value = names.module_value(cx, st, source, name, e)
    if value is not None:
        return value
    if cx.finder.find(f"{module.name}.{name}") is not None:
        return ModuleV(f"{module.name}.{name}")
    return Opaque(f"{module.name}.{name}")
