"""Bodies of functions, modules and classes: where they end, and what they give."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from selc.diag.diagnostic import Refused
from selc.frontend import (
    decorating,
    expr,
    launches,
    names,
)
from selc.frontend.context import Cascade, Exit, Frame, Lowering, snippet
from selc.frontend.state import State
from selc.frontend.tuplesite import mark_tuple
from selc.frontend.values import (
    Choice,
    Cls,
    DictObj,
    Func,
    InstObj,
    ListObj,
    Opaque,
    Ref,
    Tup,
    V,
)
from selc.ir.graph import Node
from selc.ir.op import Op

if TYPE_CHECKING:
    from selc.frontend.source import ModuleSource, Segment
from selc.frontend import stmt


def run_function(cx: Lowering, st: State, frame: Frame, node: ast.FunctionDef) -> V:
    """Run a function's body in its frame; parameters are bound already."""
    cx.frames.append(frame)
    old = st.live
    raised = sum(len(h.raises) for h in cx.handlers)
    try:
        with cx.under(old):
            frame.depth = len(cx.conds)
            st.live = cx.true
            for name, value in list(st.scopes[frame.scope].items()):
                if name in frame.plan.assigned:
                    continue
                if not isinstance(value, Node):
                    cx.spoiled.add(cx.site_key(name))
                elif not cx.fixed(value):
                    st.scopes[frame.scope][name] = cx.mark(
                        st, name, "parameter", value, cx.span(node)
                    )
            stmt.block(cx, st, node.body)
            if not st.dead:
                frame.returns.append(Exit(st.live, st.fork(cx.true), cx.none))
            value = join(cx, st, frame.returns)
            if sum(len(h.raises) for h in cx.handlers) == raised and frame.returns:
                st.live = cx.true
            span, several = cx.span(node), frame.plan.returns > 1
            if isinstance(value, Node):
                if several and not cx.fixed(value):
                    value = cx.mark(st, "return", "return", value, span)
            elif several and (row := mark_tuple(cx, st, "return", "return", value, span, False)):
                value = row
            else:
                cx.spoiled.add(cx.site_key("return"))
        st.live = cx.graph.both(old, st.live)
        if not _captures(node):
            st.scopes.pop(frame.scope, None)
        return value
    finally:
        cx.frames.pop()


def _captures(node: ast.FunctionDef) -> bool:
    """Whether a function inside may outlive the call and see its variables."""
    return any(
        isinstance(n, (ast.FunctionDef, ast.Lambda)) for n in ast.walk(node) if n is not node
    )


def join(cx: Lowering, st: State, exits: list[Exit]) -> V:
    """Join the states of mutually exclusive ways out into `st`; the joined value."""
    if not exits:
        st.live = cx.false
        return cx.graph.add(Op.FAIL)
    last = exits[-1]
    state, value, live = last.state, last.value, last.live
    state.live = cx.true
    for exit_ in reversed(exits[:-1]):
        exit_.state.live = cx.true
        joined = cx.joiner.states(exit_.live, exit_.state, state)
        if value is not None and exit_.value is not None:
            value = cx.joiner.values(exit_.live, exit_.value, value, exit_.state, state, joined)
        state, live = joined, cx.graph.either(exit_.live, live)
    st.become(state)
    st.live = live
    return cx.none if value is None else value


def function(
    cx: Lowering,
    st: State,
    node: ast.FunctionDef,
    module: ModuleSource,
    qualname: str,
    scope: int | None,
    cls: Cls | None,
) -> V:
    """A function definition as a value."""
    flavour, cached = "", False
    own: list[ast.expr] = []
    for decorator in node.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        text = ast.unparse(target)
        name = text.rpartition(".")[2]
        if name in ("staticmethod", "classmethod", "property", "cached_property"):
            flavour = {"staticmethod": "static", "classmethod": "class"}.get(name, "property")
        elif name in ("lru_cache", "cache"):
            cached = True
        elif name == "selection" or name in names.TRANSPARENT:
            continue
        elif qualname == cx.entry_name and module is cx.entry_module:
            _as_written(cx, decorator, qualname)
        else:
            own.append(decorator)
    if own and scope is not None:
        return launches.definition(node, qualname, module.module_name)
    if any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in ast.walk(node)):
        return Opaque(qualname)
    cx.keep.append(node)
    defaults = tuple(_default(cx, st, d) for d in node.args.defaults)
    pairs = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
    kw = {a.arg: _default(cx, st, d) for a, d in pairs if d is not None}
    func = Func(node, module, qualname, scope, defaults, kw, cls, flavour, cached)
    if all(decorating.unchanged(cx, d, func) for d in own):
        return func
    return launches.definition(node, qualname, module.module_name)


def _as_written(cx: Lowering, decorator: ast.expr, qualname: str) -> None:
    """A decorator of the selection itself: that it runs the function is for the user to know."""
    text = f"`@{snippet(decorator)}` runs `{qualname}` as it is written"
    if text not in cx.assumptions:
        cx.assumptions.append(text)


def _default(cx: Lowering, st: State, e: ast.expr) -> V:
    try:
        with cx.tentative():
            value = expr.lower(cx, st, e)
    except Refused:
        return Opaque(snippet(e), made=True)
    share(cx, st, value, "a default value is shared between calls")
    return value


def share(cx: Lowering, st: State, value: V, why: str) -> None:
    """Forbid changes to an object that outlives the call, and to what it holds."""
    if isinstance(value, Tup):
        for item in value.items:
            share(cx, st, item, why)
    if isinstance(value, Choice):
        share(cx, st, value.then, why)
        share(cx, st, value.other, why)
    if not isinstance(value, Ref):
        return
    obj = cx.heap.get(st, value)
    if obj.frozen:
        return
    if isinstance(obj, ListObj):
        st.heap[value.oid] = ListObj(obj.items, obj.unknown, why, obj.kind)
        inner = list(obj.items)
    elif isinstance(obj, DictObj):
        st.heap[value.oid] = DictObj(obj.entries, obj.unknown, why, obj.memo)
        inner = [x.value for x in obj.entries.values()]
    else:
        st.heap[value.oid] = InstObj(obj.cls, obj.fields, why, obj.name)
        inner = [x.value for x in obj.fields.values()]
    for item in inner:
        share(cx, st, item, why)


def run_module(cx: Lowering, module: ModuleSource, segments: Sequence[Segment], name: str) -> V:
    """Run the module-level statements that bind a name; what it holds in the end."""
    frame = names.module_frame(cx, module)
    st = State(cx.true)
    st.scopes[frame.scope] = {}
    cx.frames.append(frame)
    conds, bases, handlers = cx.conds, cx.bases, cx.handlers
    cx.conds, cx.bases, cx.handlers = [], [cx.true], []
    frame.depth = 0
    running = len(cx.running)
    try:
        for segment in segments:
            cx.running[running:] = [(str(module.path), segment.first_line)]
            for statement in module.parse(segment):
                cx.keep.append(statement)
                for part in _binding(cx, st, statement, name):
                    stmt.step(cx, st, part)
        value = st.scopes[frame.scope].get(name)
        if value is None:
            if not cx.sink.has_errors:
                message = f"`{name}` is not bound when the module has run"
                hint = "define it after the `del`, or on every path"
                cx.refuse(module.parse(segments[-1])[0], "SEL904", message, help=hint)
            raise Cascade
    finally:
        del cx.running[running:]
        cx.frames.pop()
        cx.conds, cx.bases, cx.handlers = conds, bases, handlers
    cx.heap.base.update(st.heap)
    cx.closures.update({k: v for k, v in st.scopes.items() if k != frame.scope})
    return value


def _binding(cx: Lowering, st: State, statement: ast.stmt, name: str) -> list[ast.stmt]:
    """The parts of a module-level statement that bind a name, where its conditions are known."""
    body: list[ast.stmt] | None = None
    if isinstance(statement, ast.If):
        known = cx.known_bool(
            expr.truth(cx, st, expr.lower(cx, st, statement.test), statement.test)
        )
        body = statement.body if known is True else statement.orelse if known is False else None
    elif (
        isinstance(statement, ast.Try)
        and (str(cx.frame.module.path), statement.lineno) in cx.passed_tries
    ):
        body = statement.body
    if body is None:
        return [statement]
    return [p for s in body if name in names.bound_by(s) for p in _binding(cx, st, s, name)]


def run_class_value(cx: Lowering, cls: Cls, e: ast.expr, bound: Mapping[str, V] | None = None) -> V:
    """An expression of a class body, evaluated at module level; `bound` are names of the body."""
    frame = names.module_frame(cx, cls.module)
    st = State(cx.true)
    st.scopes[frame.scope] = dict(bound or {})
    cx.frames.append(frame)
    conds, bases, handlers = cx.conds, cx.bases, cx.handlers
    cx.conds, cx.bases, cx.handlers = [], [cx.true], []
    try:
        value = expr.lower(cx, st, e)
    finally:
        cx.frames.pop()
        cx.conds, cx.bases, cx.handlers = conds, bases, handlers
    share(cx, st, value, "a class attribute is shared between calls")
    cx.heap.base.update(st.heap)
    return value
