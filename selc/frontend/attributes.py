"""Which attributes keep the value that construction gave them, and which are state.

An object that outlives a call may be changed between calls. Attributes that only constructors set
are known; those that other methods, or the module, assign are not. Variables of an engine's env
module are told by the environment that the facts state, whatever sets them.
"""

from __future__ import annotations

import ast
import re
from typing import Final

from selc.frontend import literals, names, reading
from selc.frontend.context import Lowering
from selc.frontend.state import State
from selc.frontend.values import Cls, DictObj, Entry, Func, InstObj, ListObj, Opaque, Ref, Tup, V

CONSTRUCTORS: Final = frozenset(
    {"__init__", "__post_init__", "__new__", "__set_name__", "__init_subclass__"}
)
EVERY: Final = "*"
_ENVIRONMENT: Final = re.compile(r"\b(?:getenv\(|environ\.get\(|environ\[)self\.")
_ASSIGNED: Final = r"\s*(?:[-+*/|&%^@]|//|<<|>>|\*\*)?=(?!=)"
_CHANGED: Final = (
    r"\s*(?:\[[^\n]*?\]\s*(?:=(?!=)|[-+*/|&]=|//=)"
    r"|\.(?:append|add|update|pop|setdefault|clear|extend|insert|remove|popitem|discard)\s*\()"
)


def family(cx: Lowering, cls: Cls) -> list[Cls]:
    """A class and the bases that are followed."""
    from selc.frontend import classes

    return [cls, *[c for b in classes.bases(cx, cls) if isinstance(b, Cls) for c in family(cx, b)]]


def set_later(cx: Lowering, cls: Cls) -> frozenset[str]:
    """Attributes that methods other than constructors assign; `*` for all."""
    key = f"{cls.module.path}:{cls.qualname}"
    known = cx.set_later.get(key)
    if known is None:
        found: set[str] = set()
        for one in family(cx, cls):
            for item in one.node.body:
                if (
                    isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef))
                    and item.name not in CONSTRUCTORS
                ):
                    found |= _assigned(item)
        known = cx.set_later[key] = frozenset(found)
    return known


def _assigned(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    every = [*function.args.posonlyargs, *function.args.args]
    first = every[0].arg if every else ""
    out: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, (ast.Store, ast.Del)):
            if isinstance(node.value, ast.Name) and node.value.id == first:
                out.add(node.attr)
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, (ast.Name, ast.Attribute))
            and node.args
        ):
            name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            target = node.args[0]
            if (
                name in ("setattr", "__setattr__", "delattr")
                and isinstance(target, ast.Name)
                and target.id == first
            ):
                out.add(EVERY)
    return out


def reads_environment(cx: Lowering, cls: Cls) -> bool:
    """Whether a class is a variable of an env module, which reads the environment by its name."""
    members = [
        i for one in family(cx, cls) for i in one.node.body if isinstance(i, ast.FunctionDef)
    ]
    named = any(i.name == "__set_name__" for i in members)
    return named and any(_ENVIRONMENT.search(ast.unparse(i)) for i in members)


def settle(cx: Lowering, value: V, module_text: str, name: str) -> None:
    """Forget what may have changed of an object that outlives the call, known as `name`."""
    if isinstance(value, Tup):
        for item in value.items:
            settle(cx, item, module_text, "")
    if not isinstance(value, Ref) or value.oid in cx.settled:
        return
    cx.settled.add(value.oid)
    obj = cx.heap.base.get(value.oid)
    if isinstance(obj, DictObj):
        for entry in obj.entries.values():
            settle(cx, entry.value, module_text, "")
    elif isinstance(obj, ListObj):
        for item in obj.items:
            settle(cx, item, module_text, "")
    elif isinstance(obj, InstObj) and obj.frozen != literals.FROM_FACTS:
        _settle_object(cx, value, obj, module_text, name)


def _settle_object(cx: Lowering, ref: Ref, obj: InstObj, module_text: str, name: str) -> None:
    later = (
        frozenset() if obj.cls is None or reads_environment(cx, obj.cls) else set_later(cx, obj.cls)
    )
    if name:
        pattern = rf"(?<![\w.]){re.escape(name)}\.(\w+){_ASSIGNED}"
        later |= frozenset(re.findall(pattern, module_text))
        # The object may be known by another name; a method's own `self` is looked at above.
        other = rf"(?<![\w.])(?!(?:self|cls)\.)\w+\.(\w+){_ASSIGNED}"
        later |= frozenset(re.findall(other, module_text)) & frozenset(obj.fields)
    fields: dict[str, Entry] = {}
    for key, entry in obj.fields.items():
        settle(cx, entry.value, module_text, "")
        if key in later or EVERY in later:
            fields[key] = Entry(entry.present, Opaque(f"{name or 'object'}.{key}"))
        else:
            fields[key] = entry
    cx.heap.base[ref.oid] = InstObj(obj.cls, fields, obj.frozen, obj.name)


# -- class attributes ----------------------------------------------------------------------------


def of_class(cx: Lowering, cls: Cls, name: str, value: V, e: ast.AST) -> V:
    """A class attribute's value, after what may change it later."""
    qualified = f"{cls.module.module_name}.{cls.qualname}.{name}"
    if isinstance(value, Ref):
        _name_descriptor(cx, value, name, e)
        settle(cx, value, cls.module.text, "")
    short = re.escape(cls.qualname.rpartition(".")[2])
    field = re.escape(name)
    if re.search(
        rf"(?<![\w.])(?:{short}|cls|type\(self\)|self\.__class__)\.{field}{_ASSIGNED}",
        cls.module.text,
    ):
        names.refuse_state(cx, e, qualified)
    if isinstance(value, Ref) and re.search(rf"\.{field}{_CHANGED}", cls.module.text):
        obj = cx.heap.base[value.oid]
        if isinstance(obj, DictObj):
            cx.heap.base[value.oid] = DictObj({}, unknown=qualified)
        elif isinstance(obj, ListObj):
            cx.heap.base[value.oid] = ListObj((), unknown=qualified, kind=obj.kind)
    return value


def stated(cx: Lowering, cls: Cls, name: str) -> V | None:
    """A class attribute that the facts state under `globals:`."""
    for key in (f"{cls.module.module_name}.{cls.qualname}.{name}", f"{cls.qualname}.{name}"):
        if key in cx.facts.globals and (
            key.startswith(cls.module.module_name) or cls.module is cx.entry_module
        ):
            cx.read.add(f"globals.{key}")
            return literals.from_python(cx, None, cx.facts.globals[key])
    return None


def _name_descriptor(cx: Lowering, ref: Ref, name: str, e: ast.AST) -> None:
    """`__set_name__` of an object in a class body: it learns the attribute's name."""
    obj = cx.heap.base.get(ref.oid)
    if not isinstance(obj, InstObj) or obj.cls is None:
        return
    state = State(cx.true)
    if reading.class_member(cx, state, obj.cls, "__get__") is not None:
        cx.refuse(
            e,
            "SEL901",
            f"reading `{name}` runs the descriptor `{obj.cls.qualname}`, which is not supported",
        )
    method = reading.class_member(cx, state, obj.cls, "__set_name__")
    if not isinstance(method, Func) or not isinstance(method.node, ast.FunctionDef):
        return
    parameters = [a.arg for a in method.node.args.args]
    fields = dict(obj.fields)
    for s in method.node.body:
        if isinstance(s, (ast.Assert, ast.Expr, ast.Pass)):
            continue  # a failing one would have stopped the import of the module
        target = s.targets[0] if isinstance(s, ast.Assign) and len(s.targets) == 1 else None
        if (
            isinstance(target, ast.Attribute)
            and isinstance(target.value, ast.Name)
            and target.value.id == parameters[0]
            and isinstance(s, ast.Assign)
            and isinstance(s.value, ast.Name)
            and s.value.id == parameters[-1]
        ):
            fields[target.attr] = Entry(cx.true, cx.graph.const(name))
            continue
        cx.refuse(e, "SEL901", f"`{obj.cls.qualname}.__set_name__` does more than keep the name")
    cx.heap.base[ref.oid] = InstObj(obj.cls, fields, obj.frozen, obj.name)


def default_of(cx: Lowering, cls: Cls, name: str) -> bool:
    """Whether an instance may have the class attribute `name` replaced by one of its own."""
    for one in family(cx, cls):
        for item in one.node.body:
            if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)) and _assigned(item) & {
                name,
                EVERY,
            }:
                return True
    return False
