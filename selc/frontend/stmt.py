"""Statements: each advances a state; ways out are kept with the function, loop or try left."""

from __future__ import annotations

import ast
import builtins as py
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from selc.diag.diagnostic import Refused
from selc.diag.span import Span
from selc.frontend import (
    calls,
    expr,
    iteration,
    launches,
    library,
    methods,
    names,
    writing,
)
from selc.frontend.context import MAX_UNROLL, Cascade, Exit, Frame, Handler, Loop, Lowering, snippet
from selc.frontend.sites import stores
from selc.frontend.state import State
from selc.frontend.values import (
    Choice,
    Cls,
    DictObj,
    Entry,
    External,
    FileV,
    Func,
    InstObj,
    ListObj,
    Opaque,
    Poison,
    Raised,
    Ref,
    Tup,
    V,
)
from selc.ir.graph import Node
from selc.ir.op import Op

if TYPE_CHECKING:
    from selc.frontend.source import ModuleSource, Segment


# -- functions and modules -----------------------------------------------------------------------


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
                if (
                    name not in frame.plan.assigned
                    and isinstance(value, Node)
                    and cx.known(value) is None
                ):
                    st.scopes[frame.scope][name] = cx.mark(
                        st, name, "parameter", value, cx.span(node)
                    )
            block(cx, st, node.body)
            if not st.dead:
                frame.returns.append(Exit(st.live, st.fork(cx.true), cx.none))
            value = _join(cx, st, frame.returns)
            if sum(len(h.raises) for h in cx.handlers) == raised and frame.returns:
                st.live = cx.true
            if isinstance(value, Node) and frame.plan.returns > 1 and cx.known(value) is None:
                value = cx.mark(st, "return", "return", value, cx.span(node))
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


def _join(cx: Lowering, st: State, exits: list[Exit]) -> V:
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
            return launches.definition(node, qualname, module.module_name)
    if any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in ast.walk(node)):
        return Opaque(qualname)
    cx.keep.append(node)
    defaults = tuple(_default(cx, st, d) for d in node.args.defaults)
    pairs = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
    kw = {a.arg: _default(cx, st, d) for a, d in pairs if d is not None}
    return Func(node, module, qualname, scope, defaults, kw, cls, flavour, cached)


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
                    step(cx, st, part)
        value = st.scopes[frame.scope].get(name)
        if value is None:
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


# -- statements ----------------------------------------------------------------------------------


def block(cx: Lowering, st: State, body: Sequence[ast.stmt]) -> None:
    """Run statements until control cannot go on; refused ones are reported and passed over."""
    for statement in body:
        if st.dead:
            return
        depth = len(cx.frames)
        try:
            step(cx, st, statement)
        except Refused as refused:
            assert len(cx.frames) == depth
            if not isinstance(refused, Cascade):
                for diagnostic in refused.diagnostics:
                    cx.sink.add(diagnostic)
            cx.failed = True
            for name in stores(statement):
                names.store(cx, st, name, Poison())
            if any(isinstance(n, (ast.Return, ast.Raise)) for n in ast.walk(statement)):
                cx.frame.returns.append(Exit(cx.true, st.fork(cx.true), Poison()))
                if isinstance(statement, ast.Return):
                    st.live = cx.false


def step(cx: Lowering, st: State, statement: ast.stmt) -> None:
    """Run one statement and put the marks that follow it."""
    rule = _RULES.get(type(statement))
    if rule is None:
        what = type(statement).__name__.lower()
        cx.refuse(
            statement,
            "SEL901",
            f"`{what}` statements are not supported here",
            help=(
                "move the selection into a plain function, or state the value it computes in "
                "the facts"
            ),
        )
    rule(cx, st, statement)
    if not st.dead:
        _marks(cx, st, statement)


def _marks(cx: Lowering, st: State, statement: ast.stmt) -> None:
    frame = cx.frame
    if frame.silent:
        return
    if isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
        for name in stores(statement):
            number = frame.plan.numbers.get((id(statement), name))
            if number is not None and (frame.plan.totals[name] > 1 or frame.iterations):
                _mark(cx, st, name, f"{name}#{number}", "definition", statement, always=False)
    for name in frame.plan.joins.get(id(statement), ()):
        _mark(cx, st, name, name, "variable", statement, always=name in frame.plan.inner)


def _mark(
    cx: Lowering, st: State, name: str, base: str, kind: str, statement: ast.stmt, always: bool
) -> None:
    value = st.scopes.get(cx.frame.scope, {}).get(name)
    if isinstance(value, Node) and value.op is not Op.FAIL and (always or cx.known(value) is None):
        st.scopes[cx.frame.scope][name] = cx.mark(
            st, base, kind, value, _definition(cx, statement, name)
        )


def _definition(cx: Lowering, statement: ast.stmt, name: str) -> Span:
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            return cx.span(node)
    return cx.span(statement)


def assign(cx: Lowering, st: State, target: ast.expr, value: V) -> None:
    """Bind a target."""
    match target:
        case ast.Name():
            names.store(cx, st, target.id, value)
        case ast.Tuple() | ast.List():
            _unpack(cx, st, target, value)
        case ast.Subscript():
            writing.store_subscript(cx, st, target, value)
        case ast.Attribute():
            writing.store_attribute(cx, st, target, value)
        case _:
            cx.refuse(target, "SEL901", "this assignment target is not supported")


def _unpack(cx: Lowering, st: State, target: ast.Tuple | ast.List, value: V) -> None:
    stars = [i for i, t in enumerate(target.elts) if isinstance(t, ast.Starred)]
    items = _parts_of(cx, st, value, target, None if stars else len(target.elts))
    if stars:
        before, after = stars[0], len(target.elts) - stars[0] - 1
        if len(items) < before + after:
            cx.partial(st, target, cx.false, "ValueError", f"`{snippet(target)}` needs more values")
            return
        middle = items[before : len(items) - after]
        star = target.elts[before]
        assert isinstance(star, ast.Starred)
        parts = [*items[:before], cx.heap.new(st, ListObj(middle)), *items[len(items) - after :]]
        elements = [t.value if isinstance(t, ast.Starred) else t for t in target.elts]
        for t, v in zip(elements, parts, strict=True):
            assign(cx, st, t, v)
        return
    if len(items) != len(target.elts):
        cx.partial(
            st,
            target,
            cx.false,
            "ValueError",
            f"`{snippet(target)}` must get {len(target.elts)} values, not {len(items)}",
        )
        for t in target.elts:
            assign(cx, st, t, cx.graph.add(Op.FAIL))
        return
    for t, v in zip(target.elts, items, strict=True):
        assign(cx, st, t, v)


def _parts_of(cx: Lowering, st: State, value: V, e: ast.AST, count: int | None) -> tuple[V, ...]:
    """The elements that are unpacked; something opaque has as many opaque ones as are asked for."""
    if isinstance(value, Opaque) and value.made and count is not None:
        return tuple(replace(value, text=f"{value.text}[{i}]") for i in range(count))
    if isinstance(value, Choice) and count is not None:
        a, b = _parts_of(cx, st, value.then, e, count), _parts_of(cx, st, value.other, e, count)
        if len(a) == len(b) == count:
            pairs = zip(a, b, strict=True)
            return tuple(
                cx.graph.select(value.cond, x, y)
                if isinstance(x, Node) and isinstance(y, Node)
                else Choice(value.cond, x, y)
                for x, y in pairs
            )
    if isinstance(value, Opaque):
        cx.refuse(
            e,
            "SEL905",
            f"{expr.describe(cx, st, value)} is unpacked",
            help="state it under `functions:` or `objects:`",
        )
    return iteration.iterate(cx, st, value, e)


def _assign(cx: Lowering, st: State, s: ast.Assign) -> None:
    value = expr.lower(cx, st, s.value)
    for target in s.targets:
        assign(cx, st, target, value)


def _annassign(cx: Lowering, st: State, s: ast.AnnAssign) -> None:
    if s.value is not None:
        assign(cx, st, s.target, expr.lower(cx, st, s.value))


def _augassign(cx: Lowering, st: State, s: ast.AugAssign) -> None:
    if isinstance(s.target, ast.Name):
        read: ast.expr = ast.copy_location(ast.Name(s.target.id, ast.Load()), s.target)
    elif isinstance(s.target, ast.Attribute):
        read = ast.copy_location(ast.Attribute(s.target.value, s.target.attr, ast.Load()), s.target)
    else:
        read = ast.copy_location(
            ast.Subscript(s.target.value, s.target.slice, ast.Load()), s.target
        )
    e = ast.copy_location(ast.BinOp(read, s.op, s.value), s)
    left, right = expr.lower(cx, st, read), expr.lower(cx, st, s.value)
    silent, cx.frame.silent = cx.frame.silent, True  # a statement is no expression site
    try:
        _augmented(cx, st, s, e, left, right)
    finally:
        cx.frame.silent = silent


def _augmented(cx: Lowering, st: State, s: ast.AugAssign, e: ast.BinOp, left: V, right: V) -> None:
    if isinstance(left, Ref) and isinstance(s.op, ast.Add):
        obj = cx.obj(st, left, s)
        if isinstance(obj, ListObj) and not obj.unknown:
            items = obj.items + iteration.iterate(cx, st, right, s.value)
            cx.replace(st, left, ListObj(items, kind=obj.kind, frozen=obj.frozen), s)
            return
    assign(cx, st, s.target, expr.binary(cx, st, e, expr.BINARY.get(type(s.op)), left, right))


def _expression(cx: Lowering, st: State, s: ast.Expr) -> None:
    if not isinstance(s.value, ast.Constant):
        expr.lower(cx, st, s.value)


def _if(cx: Lowering, st: State, s: ast.If) -> None:
    cond = expr.truth(cx, st, expr.lower(cx, st, s.test), s.test)

    def arm(body: list[ast.stmt]) -> Callable[[State], V]:
        def run(state: State) -> V:
            block(cx, state, body)
            return cx.none

        return run

    cx.branch(st, cond, arm(s.body), arm(s.orelse))


def _for(cx: Lowering, st: State, s: ast.For) -> None:
    collection = expr.lower(cx, st, s.iter)

    def over(state: State, value: V) -> V:
        if isinstance(value, Node) and cx.known(value) is None and cx.abs(value).values is not None:
            return expr.split(cx, state, value, s.iter, lambda t, v: over(t, cx.graph.const(v)))
        _loop(cx, state, s, iteration.iterate(cx, state, value, s.iter))
        return cx.none

    expr.each(cx, st, collection, over)


def _loop(cx: Lowering, st: State, s: ast.For, items: tuple[V, ...]) -> None:
    if len(items) > MAX_UNROLL:
        cx.refuse(
            s.iter, "SEL902", f"this loop has {len(items)} iterations, more than {MAX_UNROLL}"
        )
    frame = cx.frame
    iterations = frame.iterations
    old = st.live
    with cx.under(old):
        st.live = cx.true
        loop = Loop(len(cx.conds))
        frame.loops.append(loop)
        try:
            for i, item in enumerate(items):
                if st.dead:
                    break
                frame.iterations = f"{iterations}[{i}]"
                assign(cx, st, s.target, item)
                _body(cx, st, s.body, loop)
        finally:
            frame.loops.pop()
            frame.iterations = iterations
        _finish(cx, st, loop, s.orelse)
    st.live = cx.graph.both(old, st.live)


def _body(cx: Lowering, st: State, body: list[ast.stmt], loop: Loop) -> None:
    loop.continues.clear()
    block(cx, st, body)
    if loop.continues:
        exits = list(loop.continues)
        loop.continues.clear()
        if not st.dead:
            exits.append(Exit(st.live, st.fork(cx.true), None))
        _join(cx, st, exits)


def _finish(cx: Lowering, st: State, loop: Loop, orelse: list[ast.stmt]) -> None:
    if not st.dead and orelse:
        block(cx, st, orelse)
    if loop.breaks:
        exits = list(loop.breaks)
        if not st.dead:
            exits.append(Exit(st.live, st.fork(cx.true), None))
        _join(cx, st, exits)


def _while(cx: Lowering, st: State, s: ast.While) -> None:
    frame = cx.frame
    iterations = frame.iterations
    old = st.live
    with cx.under(old):
        st.live = cx.true
        loop = Loop(len(cx.conds))
        ends: list[Exit] = []
        frame.loops.append(loop)
        unknown = 0
        try:
            for i in range(MAX_UNROLL):
                if st.dead:
                    break
                frame.iterations = f"{iterations}[{i}]"
                cond = expr.truth(cx, st, expr.lower(cx, st, s.test), s.test)
                known = cx.known_bool(cond)
                if known is False:
                    break
                if known is None:
                    unknown += 1
                    end = st.fork(cx.true)
                    ends.append(Exit(cx.graph.both(st.live, cx.graph.negate(cond)), end, None))
                    st.live = cx.graph.both(st.live, cond)
                if unknown > 1024:
                    break
                _body(cx, st, s.body, loop)
            else:
                unknown = 1025
            if unknown > 1024:
                cx.refuse(
                    s.test,
                    "SEL902",
                    "how often this loop runs is not bounded by the declared inputs",
                    help="narrow the range of what the condition reads, or use a bounded `for`",
                )
        finally:
            frame.loops.pop()
            frame.iterations = iterations
        if ends:
            if not st.dead:
                ends.append(Exit(st.live, st.fork(cx.true), None))
            _join(cx, st, ends)
        _finish(cx, st, loop, s.orelse)
    st.live = cx.graph.both(old, st.live)


def _break(cx: Lowering, st: State, s: ast.Break) -> None:
    loop = cx.frame.loops[-1]
    loop.breaks.append(Exit(cx.since(loop.depth, st), st.fork(cx.true), None))
    st.live = cx.false


def _continue(cx: Lowering, st: State, s: ast.Continue) -> None:
    loop = cx.frame.loops[-1]
    loop.continues.append(Exit(cx.since(loop.depth, st), st.fork(cx.true), None))
    st.live = cx.false


def _return(cx: Lowering, st: State, s: ast.Return) -> None:
    value = cx.none if s.value is None else expr.lower(cx, st, s.value)
    frame = cx.frame
    if isinstance(s.value, ast.Name) and isinstance(value, Ref):
        _mark_fields(cx, st, s.value, value)
    frame.returns.append(Exit(cx.since(frame.depth, st), st.fork(cx.true), value))
    st.live = cx.false


def _mark_fields(cx: Lowering, st: State, name: ast.Name, ref: Ref) -> None:
    """The fields of a record that is returned by name are sites: `f.record.field`."""
    obj = cx.obj(st, ref, name)
    if isinstance(obj, InstObj) and obj.name:
        return
    if not isinstance(obj, (DictObj, InstObj)) or (isinstance(obj, DictObj) and obj.unknown):
        return
    entries = obj.entries if isinstance(obj, DictObj) else obj.fields
    out: dict[object, Entry] = {}
    changed = False
    for key, entry in entries.items():
        value = entry.value
        if (
            isinstance(value, Node)
            and isinstance(key, str)
            and (cx.known(value) is None or cx.frame.plan.returns > 1)
        ):
            value = cx.mark(st, f"{name.id}.{key}", "field", value, cx.span(name))
            changed = True
        out[key] = Entry(entry.present, value)
    if not changed:
        return
    # A new object: what other names see of the record does not pass through these sites.
    if isinstance(obj, DictObj):
        st.heap[ref.oid] = DictObj(out, obj.unknown, obj.frozen, obj.memo)
    else:
        st.heap[ref.oid] = InstObj(
            obj.cls, {str(k): v for k, v in out.items()}, obj.frozen, obj.name
        )


def _assert(cx: Lowering, st: State, s: ast.Assert) -> None:
    value = expr.lower(cx, st, s.test)
    if isinstance(value, Opaque) and value.made and not cx.handlers:
        # What only the opaque tail knows can stop the call; it can reach no choice.
        cx.assumptions.append(
            f"`{snippet(s.test)}` holds: selc does not see into its operands (line "
            f"{cx.span(s).line})"
        )
        return
    cond = expr.truth(cx, st, value, s.test)
    if any(h.catches("AssertionError") for h in cx.handlers):
        cx.partial(st, s.test, cond, "AssertionError")
        return
    message = (
        s.msg.value
        if isinstance(s.msg, ast.Constant)
        else (snippet(s.msg) if s.msg is not None else "")
    )
    if cx.known_bool(cond) is not True:
        cx.guard(st, "require", "assert", snippet(s.test), str(message), cx.span(s.test), cond)


_SEVERAL: Final = "several"
"""The exception that a handler holds if it may be one of several."""


def _raise(cx: Lowering, st: State, s: ast.Raise) -> None:
    name, why = "Exception", ""
    if s.exc is None:
        name = cx.current_exception or "Exception"
    else:
        try:
            value = expr.lower(cx, st, s.exc)
        except Refused:
            value = Opaque("exception")
        if isinstance(value, External):
            name = value.name.removeprefix("builtins.")
        elif isinstance(value, Raised):
            name, why = value.name, value.text
        elif isinstance(value, Cls):
            name = calls.exception_name(cx, value) or f"{value.qualname}:Exception"
        elif cx.handlers:
            cx.refuse(s, "SEL901", "which exception is raised inside a `try` is not certain")
        if isinstance(s.exc, ast.Call) and s.exc.args:
            first = s.exc.args[0]
            why = str(first.value) if isinstance(first, ast.Constant) else snippet(first)
    if name == _SEVERAL and cx.handlers:
        cx.refuse(s, "SEL901", "which exception is raised inside a `try` is not certain")
    for handler in reversed(cx.handlers):
        if handler.catches(name):
            handler.raises.append(
                Exit(cx.since(handler.depth, st), st.fork(cx.true), None, name, cx.span(s))
            )
            st.live = cx.false
            return
    cx.guard(st, "require", "raise", snippet(s), why, cx.span(s), cx.false)
    st.live = cx.false


def _catches(cx: Lowering, st: State, handlers: list[ast.ExceptHandler]) -> list[set[str]]:
    out: list[set[str]] = []
    for handler in handlers:
        if handler.type is None:
            out.append({"BaseException"})
            continue
        types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        names_: set[str] = set()
        for t in types:
            value = expr.lower(cx, st, t)
            if isinstance(value, External):
                names_.add(value.name.removeprefix("builtins."))
            elif isinstance(value, Cls):
                names_.add(value.qualname)
            else:
                cx.refuse(t, "SEL901", "this exception class cannot be followed")
        out.append(names_)
    return out


def _matches(exception: str, types: set[str]) -> bool:
    own, _, above = exception.partition(":")
    names_ = [own, *above.split(",")] if above else [own]
    if not types.isdisjoint(names_):
        return True
    raised = [c for n in names_ if isinstance(c := getattr(py, n, None), type)]
    caught = tuple(c for t in types if isinstance(c := getattr(py, t, None), type))
    return any(issubclass(r, caught) for r in raised)


def _try(cx: Lowering, st: State, s: ast.Try) -> None:
    types = _catches(cx, st, s.handlers)
    if any(_matches("ImportError", t) or _matches("ModuleNotFoundError", t) for t in types):
        _imports_succeed(cx, s.body)
    if s.finalbody and any(
        isinstance(n, (ast.Return, ast.Break, ast.Continue)) for n in ast.walk(s)
    ):
        cx.refuse(s, "SEL901", "`finally` after a `return`, `break` or `continue` is not supported")
    escaped = sum(len(h.raises) for h in cx.handlers)
    old = st.live
    with cx.under(old):
        st.live = cx.true
        handler = Handler(len(cx.conds), lambda name: any(_matches(name, t) for t in types))
        cx.handlers.append(handler)
        try:
            block(cx, st, s.body)
        finally:
            cx.handlers.pop()
        if not st.dead:
            block(cx, st, s.orelse)
        exits = [] if st.dead else [Exit(st.live, st.fork(cx.true), None)]
        for clause, caught in zip(s.handlers, types, strict=True):
            mine = [x for x in handler.raises if _matches(x.exception, caught)]
            handler.raises = [x for x in handler.raises if x not in mine]
            if mine:
                exits.extend(_clause(cx, clause, mine))
        _join(cx, st, exits)
        if s.finalbody and sum(len(h.raises) for h in cx.handlers) > escaped:
            cx.refuse(s, "SEL901", "`finally` before an outer `except` is not supported")
        if not st.dead:
            block(cx, st, s.finalbody)
    st.live = cx.graph.both(old, st.live)


def _imports_succeed(cx: Lowering, body: list[ast.stmt]) -> None:
    """Refuse a guarded import unless the facts say of every name it binds what it is."""
    stated: dict[str, Iterable[str]] = {
        "functions": cx.facts.functions,
        "globals": cx.facts.globals,
    }
    for node in [
        n for b in body for n in ast.walk(b) if isinstance(n, (ast.Import, ast.ImportFrom))
    ]:
        for name, target in names.bindings(cx, cx.frame.module, node).items():
            if names.absent(cx, node, target):
                continue
            found = [
                f"{section}.{key}"
                for section, keys in stated.items()
                for key in keys
                if key in (name, target) or key.startswith((f"{name}.", f"{target}."))
            ]
            if not found:
                cx.refuse(
                    node,
                    "SEL901",
                    f"whether the import of `{name}` succeeds is not known to selc",
                    help=(
                        f"state `{name}` under `functions:` or `globals:` in the facts; it is "
                        "then taken to be there"
                    ),
                )
            cx.read.update(found)


def _clause(cx: Lowering, clause: ast.ExceptHandler, raises: list[Exit]) -> list[Exit]:
    state = State(cx.true)
    live = cx.false
    for x in raises:
        live = cx.graph.either(live, x.live)
    _join(cx, state, raises)
    several = any(x.exception != raises[0].exception for x in raises)
    exception = _SEVERAL if several else raises[0].exception
    outer, cx.current_exception = cx.current_exception, exception
    try:
        with cx.under(live):
            state.live = cx.true
            if clause.name is not None:
                names.store(cx, state, clause.name, Raised(exception, ""))
            block(cx, state, clause.body)
    finally:
        cx.current_exception = outer
    if state.dead:
        return []
    return [Exit(cx.graph.both(live, state.live), state.fork(cx.true), None)]


def _with(cx: Lowering, st: State, s: ast.With) -> None:
    for item in s.items:
        value = _context(cx, st, item.context_expr)
        if item.optional_vars is not None:
            assign(cx, st, item.optional_vars, value)
    block(cx, st, s.body)


_CONTEXTS = (
    "torch.no_grad",
    "torch.inference_mode",
    "contextlib.nullcontext",
    "torch.cuda.device",
    "torch.device",
)


def _context(cx: Lowering, st: State, e: ast.expr) -> V:
    if isinstance(e, ast.Call):
        fact = names.fact_for(cx, st, e.func)
        if fact is not None:
            return calls.call(cx, st, e)
        callee = expr.lower(cx, st, e.func)
        if callee == External("builtins.open") and e.args:
            return FileV(library.read_file(cx, st, e, expr.lower(cx, st, e.args[0])))
        if isinstance(callee, External) and callee.name in _CONTEXTS:
            return cx.none
    cx.refuse(
        e,
        "SEL901",
        f"the context `{snippet(e)}` is not known to leave the selection alone",
        help="state it under `functions:` if it does: "
        f'"{snippet(e.func if isinstance(e, ast.Call) else e)}": null',
    )


def _functiondef(cx: Lowering, st: State, s: ast.FunctionDef) -> None:
    inner = cx.frame.instance.function != "<module>"
    scope = cx.frame.scope if inner else None
    names.store(cx, st, s.name, function(cx, st, s, cx.frame.module, s.name, scope, None))


def _classdef(cx: Lowering, st: State, s: ast.ClassDef) -> None:
    if cx.frame.instance.function != "<module>":
        cx.refuse(
            s,
            "SEL901",
            "a class inside a function is not supported",
            help="move it to module level",
        )
    cx.keep.append(s)
    names.store(cx, st, s.name, Cls(s, cx.frame.module, s.name))


def _import(cx: Lowering, st: State, s: ast.Import | ast.ImportFrom) -> None:
    for name, target in names.bindings(cx, cx.frame.module, s).items():
        if names.absent(cx, s, target):
            cx.partial(st, s, cx.false, "ModuleNotFoundError", f"`{snippet(s)}` finds no module")
            names.store(cx, st, name, Poison())
            return
        value: V = Opaque(target)
        with suppress(Refused):
            value = names.dotted(cx, target, s)
        names.store(cx, st, name, value)
        cx.import_names[cx.frame.scope, name] = target


def _global(cx: Lowering, st: State, s: ast.Global) -> None:
    cx.frame.globals.update(s.names)


def _nonlocal(cx: Lowering, st: State, s: ast.Nonlocal) -> None:
    cx.frame.nonlocals.update(s.names)


def _delete(cx: Lowering, st: State, s: ast.Delete) -> None:
    for target in s.targets:
        if isinstance(target, ast.Name):
            st.scopes.get(cx.frame.scope, {}).pop(target.id, None)
            continue
        if isinstance(target, ast.Subscript):
            container = expr.lower(cx, st, target.value)
            if isinstance(container, Ref) and isinstance(cx.obj(st, container, s), DictObj):
                call = ast.copy_location(ast.Call(target, [target.slice], []), s)
                methods.method(
                    cx, st, call, container, "pop", (expr.lower(cx, st, target.slice),), {}
                )
                continue
        cx.refuse(s, "SEL901", "this `del` is not supported")


def _pass(cx: Lowering, st: State, s: ast.stmt) -> None:
    return


_RULES: dict[type, Callable[..., None]] = {
    ast.Assign: _assign,
    ast.AnnAssign: _annassign,
    ast.AugAssign: _augassign,
    ast.Expr: _expression,
    ast.If: _if,
    ast.For: _for,
    ast.While: _while,
    ast.Break: _break,
    ast.Continue: _continue,
    ast.Return: _return,
    ast.Assert: _assert,
    ast.Raise: _raise,
    ast.Try: _try,
    ast.With: _with,
    ast.FunctionDef: _functiondef,
    ast.ClassDef: _classdef,
    ast.Import: _import,
    ast.ImportFrom: _import,
    ast.Global: _global,
    ast.Nonlocal: _nonlocal,
    ast.Delete: _delete,
    ast.Pass: _pass,
}
