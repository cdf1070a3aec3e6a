"""Statements: each advances a state; ways out are kept with the function, loop or try left."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from selc.diag.diagnostic import Refused
from selc.frontend import (
    alive,
    bodies,
    calls,
    catching,
    expr,
    iteration,
    library,
    methods,
    names,
    places,
    ranging,
    targets,
)
from selc.frontend.context import MAX_UNROLL, Cascade, Exit, Handler, Loop, Lowering, snippet
from selc.frontend.iterators import Taken
from selc.frontend.sets import FROZENSET
from selc.frontend.sites import stores
from selc.frontend.state import State
from selc.frontend.values import (
    Choice,
    Cls,
    DictObj,
    Entry,
    External,
    FileV,
    InstObj,
    ListObj,
    Opaque,
    Poison,
    Raised,
    Ref,
    V,
)
from selc.ir.graph import Node

# -- functions and modules -----------------------------------------------------------------------


# -- statements ----------------------------------------------------------------------------------


def block(cx: Lowering, st: State, body: Sequence[ast.stmt]) -> None:
    """Run statements until control cannot go on; refused ones are reported and passed over."""
    for statement in body:
        if st.dead:
            return
        depth = len(cx.frames)
        try:
            step(cx, st, statement)
            iteration.kept(cx)
        except Refused as refused:
            assert len(cx.frames) == depth
            cx.iterators.kept()
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


_WORDS: Final[dict[type[ast.stmt], str]] = {
    ast.AsyncFunctionDef: "`async def`",
    ast.AsyncFor: "`async for`",
    ast.AsyncWith: "`async with`",
    ast.Match: "`match`",
    ast.TryStar: "`except*`",
}


def step(cx: Lowering, st: State, statement: ast.stmt) -> None:
    """Run one statement and put the marks that follow it."""
    rule = _RULES.get(type(statement))
    if rule is None:
        cx.refuse(
            statement,
            "SEL901",
            f"{_WORDS.get(type(statement), 'this statement')} is not supported here",
            help=(
                "move the selection into a plain function, or state the value it computes in "
                "the facts"
            ),
        )
    with places.watched(cx, st, statement):
        rule(cx, st, statement)
    if not st.dead:
        targets.marks(cx, st, statement)


def _assign(cx: Lowering, st: State, s: ast.Assign) -> None:
    value = expr.lower(cx, st, s.value)
    for target in s.targets:
        targets.assign(cx, st, target, value)


def _annassign(cx: Lowering, st: State, s: ast.AnnAssign) -> None:
    if s.value is not None:
        targets.assign(cx, st, s.target, expr.lower(cx, st, s.value))


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
    targets.assign(cx, st, s.target, _in_place(cx, st, s, e, left, right))


def _in_place(cx: Lowering, st: State, s: ast.AugAssign, e: ast.BinOp, left: V, right: V) -> V:
    """What an augmented assignment binds: a list, a dict or a set itself, which it changes."""
    if isinstance(left, Choice):
        return expr.each(cx, st, left, lambda each, v: _in_place(cx, each, s, e, v, right))
    obj = cx.obj(st, left, s) if isinstance(left, Ref) else None
    if isinstance(left, Ref) and isinstance(obj, DictObj) and isinstance(s.op, ast.BitOr):
        methods.update(cx, st, e, left, obj, (right,), {})
        return left
    if isinstance(left, Ref) and isinstance(obj, ListObj) and obj.frozen != FROZENSET:
        if isinstance(right, Choice):
            return expr.each(cx, st, right, lambda each, v: _in_place(cx, each, s, e, left, v))
        if isinstance(s.op, ast.Add) and obj.kind == "list" and not obj.unknown:
            items = obj.items + iteration.iterate(cx, st, right, s.value)
        else:
            value = expr.binary(cx, st, e, expr.BINARY.get(type(s.op)), left, right)
            made = cx.obj(st, value, s) if isinstance(value, Ref) else None
            if not isinstance(made, ListObj):
                return value
            items = made.items
        cx.replace(st, left, ListObj(items, obj.unknown, obj.frozen, obj.kind), s)
        return left
    return expr.binary(cx, st, e, expr.BINARY.get(type(s.op)), left, right)


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
    collection = ranging.iterable(cx, st, s.iter)
    if isinstance(collection, ranging.Steps):
        _loop(cx, st, s, collection.items, Taken(), collection.present)
        return

    def over(state: State, value: V) -> V:
        if isinstance(value, Node) and cx.known(value) is None and cx.abs(value).values is not None:
            return expr.split(cx, state, value, s.iter, lambda t, v: over(t, cx.graph.const(v)))
        found = cx.iterators.of(value)
        _loop(cx, state, s, iteration.iterate(cx, state, value, s.iter), found)
        return cx.none

    expr.each(cx, st, collection, over)


def _loop(
    cx: Lowering,
    st: State,
    s: ast.For,
    items: tuple[V, ...],
    taken: Taken,
    present: tuple[Node, ...] = (),
) -> None:
    """Run the body once per item; `present` tells which iterations there are, if not all.

    `taken` is where the items come from.
    """
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
        ends: list[Exit] = []
        frame.loops.append(loop)
        try:
            for i, item in enumerate(items):
                if present:
                    _leave_unless(cx, st, present[i], ends)
                if st.dead:
                    break
                frame.iterations = f"{iterations}[{i}]"
                was = alive.before(cx, st, taken)
                targets.assign(cx, st, s.target, item)
                _body(cx, st, s.body, loop)
                if not st.dead:
                    alive.check(cx, st, s.iter, taken, was, i, i == len(items) - 1)
        finally:
            frame.loops.pop()
            frame.iterations = iterations
        _joined(cx, st, ends)
        _finish(cx, st, loop, s.orelse)
    st.live = cx.graph.both(old, st.live)


def _leave_unless(cx: Lowering, st: State, cond: Node, ends: list[Exit]) -> None:
    """Leave a loop by its own end unless `cond`."""
    known = cx.known_bool(cond)
    if known is not True:
        ends.append(Exit(cx.graph.both(st.live, cx.graph.negate(cond)), st.fork(cx.true), None))
        st.live = cx.graph.both(st.live, cond) if known is None else cx.false


def _joined(cx: Lowering, st: State, ends: list[Exit]) -> None:
    """Go on from every end of a loop."""
    if ends:
        if not st.dead:
            ends.append(Exit(st.live, st.fork(cx.true), None))
        bodies.join(cx, st, ends)


def _body(cx: Lowering, st: State, body: list[ast.stmt], loop: Loop) -> None:
    loop.continues.clear()
    block(cx, st, body)
    if loop.continues:
        exits = list(loop.continues)
        loop.continues.clear()
        if not st.dead:
            exits.append(Exit(st.live, st.fork(cx.true), None))
        bodies.join(cx, st, exits)


def _finish(cx: Lowering, st: State, loop: Loop, orelse: list[ast.stmt]) -> None:
    if not st.dead and orelse:
        block(cx, st, orelse)
    if loop.breaks:
        exits = list(loop.breaks)
        if not st.dead:
            exits.append(Exit(st.live, st.fork(cx.true), None))
        bodies.join(cx, st, exits)


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
                    _leave_unless(cx, st, cond, ends)
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
        _joined(cx, st, ends)
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
    places.result(cx, st, s, value)
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
            and (not cx.fixed(value) or cx.frame.plan.returns > 1)
            and cx.known_bool(entry.present) is not False
        ):
            with cx.under(entry.present):  # the site is not met where the key is not there
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


SEVERAL: Final = "several"
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
    if name == SEVERAL and cx.handlers:
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


def _try(cx: Lowering, st: State, s: ast.Try) -> None:
    types = catching.catches(cx, st, s.handlers)
    if any(
        catching.matches("ImportError", t) or catching.matches("ModuleNotFoundError", t)
        for t in types
    ):
        catching.imports_succeed(cx, s.body)
    if s.finalbody and any(
        isinstance(n, (ast.Return, ast.Break, ast.Continue)) for n in ast.walk(s)
    ):
        cx.refuse(s, "SEL901", "`finally` after a `return`, `break` or `continue` is not supported")
    escaped = sum(len(h.raises) for h in cx.handlers)
    old = st.live
    with cx.under(old):
        st.live = cx.true
        handler = Handler(len(cx.conds), lambda name: any(catching.matches(name, t) for t in types))
        cx.handlers.append(handler)
        try:
            block(cx, st, s.body)
        finally:
            cx.handlers.pop()
        if not st.dead:
            block(cx, st, s.orelse)
        exits = [] if st.dead else [Exit(st.live, st.fork(cx.true), None)]
        for clause, caught in zip(s.handlers, types, strict=True):
            mine = [x for x in handler.raises if catching.matches(x.exception, caught)]
            handler.raises = [x for x in handler.raises if x not in mine]
            if mine:
                exits.extend(catching.clause(cx, clause, mine))
        bodies.join(cx, st, exits)
        if s.finalbody and sum(len(h.raises) for h in cx.handlers) > escaped:
            cx.refuse(s, "SEL901", "`finally` before an outer `except` is not supported")
        if not st.dead:
            block(cx, st, s.finalbody)
    st.live = cx.graph.both(old, st.live)


def _with(cx: Lowering, st: State, s: ast.With) -> None:
    for item in s.items:
        value = _context(cx, st, item.context_expr)
        if item.optional_vars is not None:
            targets.assign(cx, st, item.optional_vars, value)
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
    names.store(cx, st, s.name, bodies.function(cx, st, s, cx.frame.module, s.name, scope, None))


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
