"""The DSL's own functions and annotations, as the front end reads them from source."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from selc.frontend import expr, literals
from selc.frontend.context import Lowering, snippet
from selc.frontend.state import State
from selc.frontend.values import V
from selc.ir.domain import Domain
from selc.ir.op import Op

KINDS = {"Runtime": "runtime", "Unpinnable": "unpinnable", "Request": "request", "Fact": "fact"}
ROLES = {"Bits": "bits", "Neutral": "neutral", "Aux": "aux"}


@dataclass(frozen=True, slots=True)
class Selection:
    """What `@selection(...)` says."""

    family: str = ""
    scope: str = ""


def decoration(node: ast.FunctionDef) -> Selection | None:
    """The `@selection` of a function, if it has one."""
    for decorator in node.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        if ast.unparse(target).rpartition(".")[2] == "selection":
            keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
            given = {k.arg: k.value.value for k in keywords if isinstance(k.value, ast.Constant)}
            return Selection(str(given.get("family", "")), str(given.get("scope", "")))
    return None


def annotation(e: ast.expr | None) -> tuple[str, str, ast.expr | None]:
    """Kind, role and inner annotation of `Runtime[int]`, `Bits[int]` or a plain annotation."""
    if isinstance(e, ast.Constant) and isinstance(e.value, str):
        e = ast.parse(e.value, mode="eval").body
    if isinstance(e, ast.Subscript):
        name = ast.unparse(e.value).rpartition(".")[2]
        if name in KINDS:
            return KINDS[name], "", e.slice
        if name in ROLES:
            return "", ROLES[name], e.slice
    return "", "", e


def call(
    cx: Lowering, st: State, e: ast.Call, name: str, args: tuple[V, ...], kwargs: dict[str, V]
) -> V:
    """`require`, `assume`, `knob` and `float32`."""
    if name in ("require", "assume"):
        cond = expr.truth(cx, st, args[0], e.args[0])
        why = args[1] if len(args) > 1 else kwargs.get("why", cx.graph.const(""))
        text = cx.known(expr.as_node(cx, st, why, e)) or ("",)
        if cx.known_bool(cond) is not True:
            cx.guard(st, name, "call", snippet(e.args[0]), str(text[0]), cx.span(e.args[0]), cond)
        return cx.none
    if name == "float32":
        return cx.op(st, e, Op.FLOAT32, expr.as_node(cx, st, args[0], e))
    if name == "knob":
        return _knob(cx, st, e, args, kwargs)
    cx.refuse(e, "SEL901", f"`{name}` cannot be called in a selection")


def _knob(cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]) -> V:
    known = cx.known(expr.as_node(cx, st, args[0], e)) if args else None
    if known is None or not isinstance(known[0], str):
        cx.refuse(
            e,
            "SEL901",
            "a knob needs a constant name",
            help='write `knob("name", choices=(...), default=...)`',
        )
    choices = kwargs.get("choices", args[1] if len(args) > 1 else cx.none)
    default = kwargs.get("default", cx.none)
    values = cx.known(expr.as_node(cx, st, choices, e))
    start = cx.known(expr.as_node(cx, st, default, e))
    if values is None or not isinstance(values[0], tuple) or not values[0] or start is None:
        cx.refuse(
            e,
            "SEL901",
            f"the knob `{known[0]}` needs constant choices",
            help="`choices=` takes a tuple of constants",
        )
    return declare_knob(cx, known[0], values[0], start[0])


def declare_knob(cx: Lowering, name: str, choices: tuple[object, ...], setting: object) -> V:
    """A knob as the program and the facts declare it: a free leaf, or its fixed setting."""
    stated = cx.facts.knobs.get(name)
    if stated is not None:
        cx.read.add(f"knobs.{name}")
        setting = setting if stated.setting is None else literals.resolve(cx, stated.setting)
        if stated.fixed:
            return cx.graph.const(setting)
        if stated.choices is not None:
            choices = tuple(literals.resolve(cx, c) for c in stated.choices)
    if setting is not None:
        cx.settings[name] = setting
    return cx.graph.input(name, "knob", Domain(values=choices))
