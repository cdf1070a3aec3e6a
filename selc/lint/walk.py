"""Statements: how values flow through a function, which branch the batch takes, what it returns."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Final

from selc.lint.choice import check_arms
from selc.lint.index import Function
from selc.lint.model import Step
from selc.lint.session import Session, Summary, place
from selc.lint.sinks import (
    check_returns,
    check_store,
    check_switched,
    flush_pending,
)
from selc.lint.state import Exhausted, Returned, State
from selc.lint.values import (
    CLEAN,
    NOTHING,
    OPAQUE,
    UNKNOWN,
    Taint,
    Val,
    dotted,
    join,
    merge,
    only,
    step,
    tainted,
    truth,
)

MOST_GUARDS: Final = 6
_NUMBER = re.compile(r"(Optional\[)?(torch\.)?(int|float|bool|SymInt)\]?( \| (int|float|None))*")


def walk_function(session: Session, function: Function, level: int) -> Summary:
    """The summary of one function."""
    state = State(session, function.module, function, level)
    _bind_parameters(state, function)
    try:
        execute(state, function.node.body, ())
    except Exhausted:
        where = place(function.module.shown, function.node)
        session.exceeded[f"{function.module.shown}:{function.qualname}"] = where
    except RecursionError:
        where = place(function.module.shown, function.node)
        session.exceeded[f"{function.module.shown}:{function.qualname}"] = where
    state.summary.returns = check_returns(state)
    flush_pending(state)
    guards = tuple(dict.fromkeys(state.summary.guards))[:MOST_GUARDS]
    if guards:
        own = [
            hit._replace(guards=tuple(dict.fromkeys((*hit.guards, *guards))))
            for hit in state.summary.hits
        ]
        state.summary.hits[:] = own
        whole = state.summary.returns
        if not whole.mode:
            state.summary.returns = join(
                whole, Val(const=whole.const, target=whole.target, mode=guards[:1])
            )
    return state.summary


def _bind_parameters(state: State, function: Function) -> None:
    offline = state.names.matches("offline", function.node.name)
    owner = function.owner
    if owner is not None and function.is_method and function.node.args.args:
        state.env[function.node.args.args[0].arg] = Val(target=owner)
        state.receiver = function.node.args.args[0].arg
    siblings = [each.arg for each in function.parameters]
    for position, each in enumerate(function.parameters):
        state.env[each.arg] = parameter(state, each, position, siblings, offline)
    arguments = function.node.args
    for rest in (arguments.vararg, arguments.kwarg):
        if rest is not None:
            state.env[rest.arg] = OPAQUE


def parameter(
    state: State, each: ast.arg, position: int, siblings: list[str], offline: bool
) -> Val:
    """What a parameter may bring: a source by its name, or whatever the call gives it."""
    note = ast.unparse(each.annotation) if each.annotation is not None else ""
    name = each.arg
    kind = "" if offline else state.names.kind(name)
    is_tensor = "Tensor" in note or "ndarray" in note
    is_number = _NUMBER.fullmatch(note) is not None
    typed = bool(note) and not is_tensor and not is_number
    where = state.at(each, f"parameter {name}")
    shapes = siblings[:3] in (["m", "n", "k"], ["m", "k", "n"])
    by_type = is_number or (not note and shapes)
    if not kind and not offline and by_type and state.names.matches("parameters", name):
        kind = "scalar"
    given = _labelled(position, where, is_tensor, is_number or note in ("str", "str | None"))
    if kind == "scalar":
        if is_tensor:
            return _named(state, given, name, "vector", where)
        whole = state.names.matches("objects", name)
        if typed and not whole and note not in ("Any", "object") and "SymInt" not in note:
            return given
        return Val(merge(state.source(name, where), given.taint))
    if kind == "vector" or (kind == "rows" and not is_number and (not typed or "Tensor" in note)):
        return _named(state, given, name, kind, where)
    if kind == "weight":
        return NOTHING
    if position == 0 and note in ("torch.Tensor", "Tensor") and not kind and not offline:
        return _named(state, given, name, "rows", where)
    owner = state.annotated(each.annotation) if typed else None
    if owner is not None:
        return Val(given.taint, rows=given.rows, vec=given.vec, target=owner)
    return given


def _named(state: State, given: Val, name: str, kind: str, where: Step) -> Val:
    """A tensor or collection that is the batch's by its name."""
    rows = f"{name}.shape[0]" if kind == "rows" else f"len({name})"
    vec = state.source(name, where) if kind == "vector" else CLEAN
    return Val(
        rows=merge(state.source(rows, where), given.rows),
        vec=merge(vec, given.vec) if vec else CLEAN,
    )


def _labelled(position: int, where: Step, is_tensor: bool, is_number: bool) -> Val:
    """A parameter that brings what the call gives it."""
    return Val(
        CLEAN if is_tensor else step({("arg", position): _EMPTY}, where),
        rows=CLEAN if is_number else step({("shape", position): _EMPTY}, where),
        vec=CLEAN if is_number else step({("vec", position): _EMPTY}, where),
    )


def execute(
    state: State, body: Sequence[ast.stmt], after: tuple[Sequence[ast.stmt], ...]
) -> str | None:
    """Run statements; how they end: `return`, `raise`, `break`, or None if they run through."""
    for number, node in enumerate(body):
        state.tick()
        rest = body[number + 1 :]
        ended = _statement(state, node, (rest, *after) if rest else after)
        if ended is not None:
            return ended
    return None


def _statement(state: State, node: ast.stmt, after: tuple[Sequence[ast.stmt], ...]) -> str | None:
    match node:
        case ast.If():
            return branch(state, node, after)
        case ast.For() | ast.AsyncFor():
            _for(state, node, after)
        case ast.While(test=test, body=body):
            _while(state, node, test, body, after)
            execute(state, node.orelse, after)
        case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
            return _with(state, node, items, body, after)
        case ast.Try() | ast.TryStar():
            return _try(state, node, after)
        case ast.Match():
            return _match(state, node, after)
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            _nested(state, node)
        case _:
            return _simple(state, node)
    return None


def _simple(state: State, node: ast.stmt) -> str | None:
    """A statement without a body."""
    from selc.lint.expr import evaluate

    match node:
        case ast.Assign(targets=targets, value=value):
            result = evaluate(state, value)
            for target in targets:
                assign(state, target, result, node)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            result = evaluate(state, value)
            if result.target is None and (owner := state.annotated(node.annotation)):
                result = Val(result.taint, rows=result.rows, vec=result.vec, target=owner)
            assign(state, target, result, node)
        case ast.AugAssign(target=target, value=value):
            _augment(state, node, target, evaluate(state, value))
        case ast.Expr(value=value) | ast.Assert(test=value):
            evaluate(state, value)
        case ast.Return(value=value):
            state.leave(node, evaluate(state, value) if value is not None else Val(const=None))
            return "return"
        case ast.Raise():
            return "raise"
        case ast.Import() | ast.ImportFrom():
            state.imports(node)
        case ast.Break() | ast.Continue():
            return "break"
        case _:
            pass
    return None


def _with(
    state: State,
    node: ast.stmt,
    items: list[ast.withitem],
    body: Sequence[ast.stmt],
    after: tuple[Sequence[ast.stmt], ...],
) -> str | None:
    from selc.lint.expr import evaluate

    for item in items:
        held = evaluate(state, item.context_expr)
        if item.optional_vars is not None:
            assign(state, item.optional_vars, held, node)
    return execute(state, body, after)


def assign(state: State, target: ast.expr, value: Val, node: ast.stmt) -> None:
    """Store a value; what has a batch's name and comes out of the unknown is a source."""
    match target:
        case ast.Name(id=name):
            if "graph" not in name and state.names.kind(name) == "static":
                value = Val(rows=value.rows, vec=value.vec, const=value.const, mode=value.mode)
            elif (
                not state.offline and (value.opaque or value.taint) and not only(value.taint, "src")
            ):
                value = _by_name(state, name, value, node)
            if value.taint and not isinstance(getattr(node, "value", None), ast.Name):
                value = tainted(value, step(value.taint, state.at(node)))
            state.env[name] = value
            state.drop(name)
            check_store(state, name, value, node)
        case ast.Attribute(attr=attr):
            if value.mode and len(value.mode) < MOST_GUARDS:
                value = join(value, Val(const=value.const, mode=(*value.mode, state.at(node))))
            state.env[dotted(target)] = value
            check_store(state, attr, value, node, True)
        case ast.Subscript(value=base, slice=ast.Constant(value=str(key))):
            name = dotted(base)
            held = state.env.get(name)
            if held is not None:
                fields = {**(held.fields or {}), key: value}
                state.env[name] = Val(
                    held.taint, rows=held.rows, vec=held.vec, fields=fields, target=held.target
                )
            check_store(state, key, value, node, True)
        case ast.Subscript(value=base):
            check_store(state, dotted(base).rsplit(".", 1)[-1], value, node, True)
        case ast.Tuple(elts=elts) | ast.List(elts=elts):
            _unpack(state, elts, value, node)
        case ast.Starred(value=inner):
            assign(state, inner, Val(opaque=True), node)
        case _:
            pass


def _by_name(state: State, name: str, value: Val, node: ast.stmt) -> Val:
    kind = state.names.kind(name)
    if kind == "scalar":
        return Val(merge(state.source(name, state.at(node)), value.taint))
    if not value.opaque:
        return value
    if kind == "vector" and not value.vec:
        found = state.source(name, state.at(node))
        return Val(rows=merge(value.rows, found), vec=found)
    if kind == "rows" and not value.rows:
        return Val(rows=state.source(f"{name}.shape[0]", state.at(node)), opaque=True)
    return value


def _unpack(state: State, elts: list[ast.expr], value: Val, node: ast.stmt) -> None:
    parts: list[Val]
    if value.items is not None and len(value.items) == len(elts):
        parts = list(value.items)
    elif value.shape:
        first = Val(value.shape)
        parts = [first] + [NOTHING] * (len(elts) - 1)
        if isinstance(elts[0], ast.Starred):
            parts = [Val(shape=value.shape)] + [NOTHING] * (len(elts) - 1)
    else:
        data = value.taint
        parts = [Val(data, rows=value.rows, opaque=True, mode=value.mode)] * len(elts)
    for element, part in zip(elts, parts, strict=True):
        if isinstance(element, ast.Starred):
            assign(state, element.value, part, node)
        else:
            assign(state, element, part, node)


def _augment(state: State, node: ast.AugAssign, target: ast.expr, value: Val) -> None:
    from selc.lint.expr import evaluate

    held = evaluate(state, target) if isinstance(target, ast.Name | ast.Attribute) else NOTHING
    taint = merge(held.taint, value.taint)
    if state.loops and value.vec:
        taint = merge(taint, value.vec)
    result = Val(taint, rows=held.rows, vec=merge(held.vec, value.vec))
    assign(state, target, result, node)


def branch(state: State, node: ast.If, after: tuple[Sequence[ast.stmt], ...]) -> str | None:
    """An `if`: dead arms under the mode, the choice between the arms, what they leave."""
    from selc.lint.expr import evaluate

    test = evaluate(state, node.test)
    known = truth(test)
    state.summary.guards += test.mode
    if known is True:
        return execute(state, node.body, after)
    if known is False:
        return execute(state, node.orelse, after)
    cause = step(test.taint, state.at(node), control=True)
    return arms(state, node, cause, node.body, node.orelse, after, test.mode)


def arms(
    state: State,
    node: ast.stmt,
    cause: Taint,
    body: Sequence[ast.stmt],
    orelse: Sequence[ast.stmt],
    after: tuple[Sequence[ast.stmt], ...],
    mode: tuple[Step, ...] = (),
) -> str | None:
    """Run both arms under a cause, and join."""
    before, control, chained = dict(state.env), state.control, state.chained
    if cause:
        state.control = merge(control, cause)
        state.chained = check_arms(state, node, cause, body, orelse, after) or chained
    told, state.chained = state.chained, False
    first_end = execute(state, body, after)
    first = state.env
    state.env = before
    state.chained = told and len(orelse) == 1 and isinstance(orelse[0], ast.If)
    second_end = execute(state, orelse, after)
    state.chained = chained
    second = state.env
    if cause and "break" in (first_end, second_end):
        state.broken = merge(state.broken, cause)
    gone = ("return", "break")
    early = cause and (first_end in gone) != (second_end in gone)
    state.control = (
        merge(control, cause) if early and "raise" not in (first_end, second_end) else control
    )
    if first_end is not None and second_end is not None:
        state.env = second
        return first_end if first_end == second_end else "return"
    if first_end is not None:
        state.env = second
    elif second_end is not None:
        state.env = first
    else:
        state.env = _merge_arms(state, first, second, cause, body, orelse, mode)
    return None


def _merge_arms(
    state: State,
    first: dict[str, Val],
    second: dict[str, Val],
    cause: Taint,
    body: Sequence[ast.stmt],
    orelse: Sequence[ast.stmt],
    mode: tuple[Step, ...],
) -> dict[str, Val]:
    out = dict(second)
    for name, value in first.items():
        other = second.get(name)
        if other is value:
            continue
        if other is None:
            out[name] = (
                join(value, Val(value.taint, const=value.const, mode=mode)) if mode else value
            )
            continue
        joined = join(value, other)
        if mode and not joined.mode:
            joined = join(joined, Val(const=joined.const, target=joined.target, mode=mode))
        if cause and is_choice(value) and is_choice(other) and not _same(value, other):
            joined = tainted(joined, cause)
            check_switched(state, name, value, other, cause, body, orelse)
        out[name] = joined
    return out


def is_choice(value: Val) -> bool:
    """Whether a value is picked, rather than computed by a kernel."""
    if (value.rows or value.vec) and not value.taint:
        return False
    return not value.opaque or value.target is not None


def _same(first: Val, second: Val) -> bool:
    if first.const is not UNKNOWN and second.const is not UNKNOWN:
        return type(first.const) is type(second.const) and bool(first.const == second.const)
    return first.target is not None and first.target is second.target


def _for(state: State, node: ast.For | ast.AsyncFor, after: tuple[Sequence[ast.stmt], ...]) -> None:
    from selc.lint.expr import elements, evaluate

    source = evaluate(state, node.iter)
    _havoc(state, node.body)
    assign(state, node.target, elements(state, node.iter, source), node)
    broken, state.broken = state.broken, CLEAN
    before = {key: held for key, held in state.env.items() if not _is_target(node.target, key)}
    _loop(state, node.body, after)
    if state.broken:
        for name, value in state.env.items():
            if before.get(name) is not value and is_choice(value):
                state.env[name] = tainted(value, state.broken)
    state.broken = broken
    execute(state, node.orelse, after)


def _while(
    state: State,
    node: ast.While,
    test: ast.expr,
    body: Sequence[ast.stmt],
    after: tuple[Sequence[ast.stmt], ...],
) -> None:
    """What a loop changes follows the condition that ends it."""
    from selc.lint.expr import evaluate

    _havoc(state, body)
    cause = step(evaluate(state, test).taint, state.at(node), control=True)
    broken, state.broken = state.broken, cause
    before = dict(state.env)
    _loop(state, body, after)
    for name, value in state.env.items():
        if state.broken and name in before and before[name] is not value and is_choice(value):
            state.env[name] = tainted(value, state.broken)
    state.broken = broken


def _is_target(target: ast.expr, name: str) -> bool:
    return isinstance(target, ast.Name) and target.id == name


def _havoc(state: State, body: Sequence[ast.stmt]) -> None:
    """What a loop assigns has no known constant before it."""
    for each in body:
        for node in ast.walk(each):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                held = state.env.get(node.id)
                if held is not None and held.const is not UNKNOWN:
                    state.env[node.id] = Val(
                        held.taint,
                        rows=held.rows,
                        vec=held.vec,
                        fields=held.fields,
                        items=held.items,
                    )


def _loop(state: State, body: Sequence[ast.stmt], after: tuple[Sequence[ast.stmt], ...]) -> None:
    control = state.control
    before = dict(state.env)
    state.loops += 1
    execute(state, body, after)
    for name, value in before.items():
        now = state.env.get(name)
        if now is not value:
            state.env[name] = join(value, now) if now is not None else value
    if state.loops == 1 and not state.silent:
        execute(state, body, after)
    state.loops -= 1
    state.control = control


def _try(
    state: State, node: ast.Try | ast.TryStar, after: tuple[Sequence[ast.stmt], ...]
) -> str | None:
    before = dict(state.env)
    ended = execute(state, [*node.body, *node.orelse], after)
    whole = state.env
    for handler in node.handlers:
        state.env = dict(before)
        if execute(state, handler.body, after) is None:
            for name, value in state.env.items():
                held = whole.get(name)
                whole[name] = value if held is None else join(held, value)
            ended = None
    state.env = whole
    last = execute(state, node.finalbody, after)
    return last or ended


def _match(state: State, node: ast.Match, after: tuple[Sequence[ast.stmt], ...]) -> str | None:
    from selc.lint.expr import evaluate

    subject = evaluate(state, node.subject)
    cause = step(subject.taint, state.at(node), control=True)
    rest: Sequence[ast.stmt] = ()
    for case in reversed(node.cases[1:]):
        test = ast.copy_location(ast.Constant(value=True), node)
        made = ast.If(test=test, body=list(case.body), orelse=list(rest))
        rest = [ast.copy_location(made, case.body[0])]
    return arms(state, node, cause, node.cases[0].body, rest, after) if node.cases else None


def _nested(state: State, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    """A function in a function is walked where it stands, over the variables it closes over."""
    if state.names.matches("offline", node.name) or state.is_kernel_source(node):
        state.env[node.name] = Val(target=node)
        return
    env, control, returned = dict(state.env), state.control, state.returned
    receiver, loops = state.receiver, state.loops
    state.control, state.returned, state.loops = CLEAN, [], 0
    inner = Function(state.module, node.name, node)
    siblings = [each.arg for each in inner.parameters]
    for each in inner.parameters:
        value = parameter(state, each, -1, siblings, state.offline)
        state.env[each.arg] = value if not _from_call(value) else OPAQUE
    execute(state, node.body, ())
    state.env, state.control, state.returned = env, control, returned
    state.receiver, state.loops = receiver, loops
    state.session.kept.append(inner)
    state.env[node.name] = Val(target=inner)


def _from_call(value: Val) -> bool:
    return any(label[0] != "src" for label in (*value.taint, *value.rows, *value.vec))


_EMPTY = Returned.empty_flow()
