"""Expressions: what of the batch is in a value."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

from selc.lint.choice import check_expressions
from selc.lint.index import Class
from selc.lint.model import Step
from selc.lint.state import State
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

_OWN = ("req", "request", "obj", "recv_req", "item", "seq", "sequence", "new_req", "group", "spec")
_PARTIAL = re.compile(r"prefix|prefill|decode|extend|common")
_QUESTION = re.compile(r"_?(is|has|can|use|should|enable|are|any|all|uniform|needs?|allow)(_|$)")
_PLAIN = ("dtype", "device", "ndim", "is_cuda", "layout", "itemsize", "requires_grad", "is_cpu")


def evaluate(state: State, node: ast.expr) -> Val:
    """The value of an expression."""
    state.tick()
    rule = _RULES.get(type(node))
    return rule(state, node) if rule is not None else _parts(state, node)


def _constant(state: State, node: ast.Constant) -> Val:
    return Val(const=node.value)


def _name(state: State, node: ast.Name) -> Val:
    held = state.env.get(node.id)
    if held is not None:
        return held
    if state.names.is_mode(node.id):
        return _mode(state, node)
    return _global(state, node)


def _global(state: State, node: ast.Name) -> Val:
    value = state.module.constants.get(node.id)
    if value is not None:
        if isinstance(value, ast.Name | ast.Attribute | ast.Call):
            name = dotted(value.func if isinstance(value, ast.Call) else value)
            if state.names.is_mode(name):
                return _mode(state, node)
        if isinstance(value, ast.Dict):
            return NOTHING
    return NOTHING


def _mode(state: State, node: ast.expr) -> Val:
    return Val(const=True if state.session.guarded else UNKNOWN, mode=(state.at(node),))


def _attribute(state: State, node: ast.Attribute) -> Val:
    name = dotted(node)
    held = state.env.get(name)
    if held is not None:
        return held
    if state.names.is_mode(name):
        return _mode(state, node)
    base = evaluate(state, node.value)
    attr = node.attr
    if base.fields is not None and attr in base.fields:
        return base.fields[attr]
    if attr in _PLAIN:
        return NOTHING
    if attr == "shape":
        return Val(shape=step(base.rows, state.at(node))) if base.rows else OPAQUE
    if attr == "nbytes":
        return Val(step(base.rows, state.at(node)))
    if isinstance(base.target, Class):
        known = _known(state, base.target, attr)
        if known is not None:
            state.summary.guards += known.mode
            return known
    if attr in ("T", "mT", "data", "real"):
        return base
    return _named(state, node, base, attr)


def _known(state: State, owner: Class, attr: str) -> Val | None:
    """What the class says of an attribute: its type, and what `__init__` leaves in it."""
    facts = state.session.attributes(owner)
    value = facts.get(attr)
    noted = _attribute_type(state, owner, attr)
    if value is None:
        return Val(target=noted) if noted is not None else None
    if noted is not None and value.target is None:
        return Val(const=value.const, target=noted, mode=value.mode)
    return value


def _attribute_type(state: State, owner: Class, attr: str) -> Class | None:
    """The class of `self.attr`, from an annotation or a constructor call in `__init__`."""
    from selc.lint.attributes import attribute_types

    return attribute_types(state.session, owner).get(attr)


def _named(state: State, node: ast.Attribute, base: Val, attr: str) -> Val:
    """An attribute of something unknown: its name says what it is."""
    if state.offline or _is_config(state, node.value) or _is_own(node.value):
        return OPAQUE
    kind = state.names.kind(attr)
    if kind == "scalar":
        return Val(state.source(dotted(node), state.at(node)))
    if kind == "vector":
        found = state.source(dotted(node), state.at(node))
        return Val(rows=found, vec=found)
    if kind == "rows":
        return Val(rows=state.source(f"{dotted(node)}.shape[0]", state.at(node)))
    return Val(base.taint) if base.taint and only(base.taint, "src") else OPAQUE


def _is_own(node: ast.expr) -> bool:
    """Whether something is one request: its numbers are its own."""
    return isinstance(node, ast.Name) and node.id in _OWN


def _is_config(state: State, node: ast.expr) -> bool:
    while True:
        match node:
            case ast.Attribute(value=inner, attr=name):
                if state.names.matches("configs", name):
                    return True
                node = inner
            case ast.Call(func=inner):
                last = dotted(inner).rsplit(".", 1)[-1]
                if state.names.matches(
                    "configs", last.removeprefix("get_").removeprefix("global_")
                ):
                    return True
                node = inner
            case ast.Name(id=name):
                return state.names.matches("configs", name)
            case _:
                return False


def _subscript(state: State, node: ast.Subscript) -> Val:
    from selc.lint.tables import lookup

    base = evaluate(state, node.value)
    index = node.slice
    if base.shape:
        return _of_shape(base, index)
    if isinstance(index, ast.Slice):
        ends = [evaluate(state, end) for end in (index.lower, index.upper) if end is not None]
        rows = base.rows
        for end in ends:
            rows = merge(rows, end.taint) if base.rows or base.vec else rows
        if base.items is not None and not ends:
            return base
        return Val(rows=rows, vec=base.vec, opaque=base.opaque)
    key = evaluate(state, index)
    const = key.const
    if (
        base.items is not None
        and isinstance(const, int)
        and -len(base.items) <= const < len(base.items)
    ):
        return base.items[const]
    if base.fields is not None and isinstance(const, str) and const in base.fields:
        return base.fields[const]
    if key.taint and (base.taint or not (base.vec or base.rows)):
        return lookup(state, node, base, key)
    if base.vec:
        inner = isinstance(index, ast.Tuple) or bool(key.vec or key.rows)
        return base if inner else Val(base.taint, vec=base.vec)
    if base.rows:
        return Val(base.taint, rows=base.rows)
    return lookup(state, node, base, key)


def _of_shape(base: Val, index: ast.expr) -> Val:
    match index:
        case ast.Constant(value=0):
            return Val(base.shape)
        case ast.Slice(lower=None | ast.Constant(value=0)):
            return Val(shape=base.shape)
        case ast.Constant() | ast.UnaryOp() | ast.Slice():
            return NOTHING
        case _:
            return NOTHING


def _boolean(state: State, node: ast.BoolOp) -> Val:
    stops = isinstance(node.op, ast.Or)
    taint: Taint = CLEAN
    mode: tuple[Step, ...] = ()
    last = NOTHING
    unknown = False
    for value in node.values:
        last = evaluate(state, value)
        mode = mode or last.mode
        known = truth(last)
        if known is stops:
            return Val(CLEAN if not unknown else taint, const=stops, mode=mode)
        if known is None:
            unknown = True
            if not _benign_truth(value, last):
                taint = merge(taint, last.taint)
    return Val(taint, const=UNKNOWN if unknown else last.const, mode=mode, opaque=not taint)


def _benign_truth(node: ast.expr, value: Val) -> bool:
    """`if num_tokens:` asks only whether there is anything."""
    if not isinstance(node, ast.Name | ast.Attribute) or not value.taint:
        return False
    name = node.id if isinstance(node, ast.Name) else node.attr
    if _QUESTION.match(name):
        return False
    return all(not flow.threshold and not flow.control for flow in value.taint.values())


def _unary(state: State, node: ast.UnaryOp) -> Val:
    inner = evaluate(state, node.operand)
    if isinstance(node.op, ast.Not):
        known = truth(inner)
        if _benign_truth(node.operand, inner):
            return Val(mode=inner.mode)
        return Val(
            inner.taint,
            vec=inner.vec,
            const=UNKNOWN if known is None else not known,
            mode=inner.mode,
        )
    const: Any = UNKNOWN
    if isinstance(node.op, ast.USub) and isinstance(inner.const, int | float):
        const = -inner.const
    return Val(inner.taint, rows=inner.rows, vec=inner.vec, const=const)


def _binary(state: State, node: ast.BinOp) -> Val:
    left, right = evaluate(state, node.left), evaluate(state, node.right)
    if left.items is not None and right.items is not None and isinstance(node.op, ast.Add):
        return Val(items=(*left.items, *right.items))
    return Val(
        merge(left.taint, right.taint),
        rows=merge(left.rows, right.rows),
        vec=merge(left.vec, right.vec),
        shape=left.shape or right.shape if isinstance(node.op, ast.Add) else CLEAN,
        opaque=left.opaque and right.opaque,
        mode=left.mode or right.mode,
    )


def _compare(state: State, node: ast.Compare) -> Val:
    operands = [node.left, *node.comparators]
    values = [evaluate(state, each) for each in operands]
    mode = next((value.mode for value in values if value.mode), ())
    if len(operands) == 2:
        known = _decided(node.ops[0], values[0], values[1])
        if known is not None:
            return Val(const=known, mode=mode)
    if _is_benign(node, operands, values):
        return Val(mode=mode)
    taint, vec = CLEAN, CLEAN
    for value in values:
        taint = merge(taint, value.taint)
        vec = merge(vec, value.vec)
        if value.shape and isinstance(node.ops[0], ast.In | ast.NotIn):
            taint = merge(taint, value.shape)
    if not taint and not vec:
        return Val(mode=mode)
    text = ast.unparse(node) if node.end_lineno == node.lineno else state.module.line(node.lineno)
    where = state.at(node)
    return Val(step(taint, where, text), vec=step(vec, where, text), mode=mode)


def _decided(operator: ast.cmpop, left: Val, right: Val) -> bool | None:
    if left.const is UNKNOWN or right.const is UNKNOWN:
        if isinstance(operator, ast.Is | ast.IsNot) and right.const is None and left.mode:
            return None
        return None
    match operator:
        case ast.Is():
            return left.const is right.const
        case ast.IsNot():
            return left.const is not right.const
        case ast.Eq():
            return bool(left.const == right.const)
        case ast.NotEq():
            return bool(left.const != right.const)
        case _:
            return None


def _is_benign(node: ast.Compare, operands: list[ast.expr], values: list[Val]) -> bool:
    """Questions whose answer is not a choice: `is None`, emptiness, equal shapes."""
    if any(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
        return True
    for value in values:
        if isinstance(value.const, str) or value.const is None:
            return not any(isinstance(op, ast.In | ast.NotIn) for op in node.ops)
    if len(operands) != 2:
        return False
    operator = node.ops[0]
    for value, mirrored in ((values[1], False), (values[0], True)):
        if value.const in (0, -1) and not isinstance(value.const, bool):
            return not _is_partial(values) and not any(map(_is_remainder, operands))
        if value.const == 1 and not isinstance(value.const, bool):
            below = (ast.Gt, ast.LtE) if mirrored else (ast.Lt, ast.GtE)
            if isinstance(operator, below):
                return True
    if isinstance(operator, ast.Eq | ast.NotEq):
        if any(_is_arity(each) for each in operands) and not any(value.vec for value in values):
            return True
        return all(_is_dimension(each) for each in operands)
    return False


def _is_arity(node: ast.expr) -> bool:
    """`len(x)`, of what may as well be a tuple."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len"


def _is_remainder(node: ast.expr) -> bool:
    """`a % b`, `a & b`: zero is one of several answers, not emptiness."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod | ast.BitAnd)


def _is_partial(values: list[Val]) -> bool:
    """Whether zero says which kinds of requests are in the batch, not that it is empty."""
    return any(
        label[0] == "src" and _PARTIAL.search(str(label[1]))
        for value in values
        for label in value.taint
    )


def _is_dimension(node: ast.expr) -> bool:
    """`a.shape[0]`, `a.size(0)`, `a.shape`, `len(a)`."""
    match node:
        case ast.Subscript(value=ast.Attribute(attr="shape")) | ast.Attribute(attr="shape"):
            return True
        case (
            ast.Call(func=ast.Attribute(attr="size" | "numel")) | ast.Call(func=ast.Name(id="len"))
        ):
            return True
        case _:
            return False


def _conditional(state: State, node: ast.IfExp) -> Val:
    test = evaluate(state, node.test)
    known = truth(test)
    if test.mode:
        state.summary.guards += test.mode
    if known is not None:
        return evaluate(state, node.body if known else node.orelse)
    cause = step(test.taint, state.at(node), control=True)
    if _benign_truth(node.test, test):
        cause = CLEAN
    if cause:
        check_expressions(state, node, cause)
    body, orelse = evaluate(state, node.body), evaluate(state, node.orelse)
    joined = join(body, orelse)
    if test.mode and not joined.mode:
        joined = join(joined, Val(const=joined.const, mode=test.mode))
    if ast.dump(node.body) == ast.dump(node.orelse):
        return joined
    from selc.lint.walk import is_choice

    if is_choice(body) and is_choice(orelse):
        return tainted(joined, cause)
    if not joined.rows and not joined.vec:
        pickable = _is_pickable(node.body) and _is_pickable(node.orelse)
        return tainted(joined, cause) if pickable else joined
    return joined


def _is_pickable(node: ast.expr) -> bool:
    """Names and attributes can stand for functions and objects that are picked."""
    return isinstance(node, ast.Name | ast.Attribute | ast.Constant | ast.Subscript)


def _sequence(state: State, node: ast.Tuple | ast.List | ast.Set) -> Val:
    items = [evaluate(state, each) for each in node.elts]
    taint: Taint = CLEAN
    for item in items:
        taint = merge(taint, item.taint)
    if any(isinstance(each, ast.Starred) for each in node.elts):
        return Val(taint, rows=items[0].rows if items else CLEAN)
    return Val(taint, items=tuple(items))


def _dict(state: State, node: ast.Dict) -> Val:
    from selc.lint.sinks import check_field

    fields: dict[str, Val] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        held = evaluate(state, value)
        match key:
            case ast.Constant(value=str(name)):
                fields[name] = held
                check_field(state, value, name, held, "", "a configuration")
            case None:
                fields.update(held.fields or {})
            case _:
                evaluate(state, key)
    return Val(fields=fields)


def _comprehension(
    state: State, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
) -> Val:
    from selc.lint.walk import assign

    saved = dict(state.env)
    vec: Taint = CLEAN
    rows: Taint = CLEAN
    for generator in node.generators:
        source = evaluate(state, generator.iter)
        vec = merge(vec, source.vec)
        rows = merge(rows, merge(source.rows, source.taint))
        target = ast.copy_location(ast.Assign([generator.target], generator.iter), node)
        assign(state, generator.target, elements(state, generator.iter, source), target)
        for test in generator.ifs:
            held = evaluate(state, test)
            vec = merge(vec, merge(held.vec, held.taint))
    if isinstance(node, ast.DictComp):
        evaluate(state, node.key)
        element = evaluate(state, node.value)
        state.env = saved
        return Val(vec=merge(element.vec, element.taint))
    element = evaluate(state, node.elt)
    state.env = saved
    return Val(element.taint, vec=merge(vec, element.vec), rows=rows)


def elements(state: State, node: ast.expr, source: Val) -> Val:
    """One element of what is iterated over: a request's own number, not the batch's."""
    match node:
        case ast.Call(func=ast.Name(id="range")):
            return NOTHING
        case ast.Call(func=ast.Name(id="enumerate"), args=[inner, *_]):
            held = evaluate(state, inner)
            return Val(items=(NOTHING, elements(state, inner, held)))
        case ast.Call(func=ast.Name(id="zip"), args=several):
            parts = [elements(state, each, evaluate(state, each)) for each in several]
            return Val(items=tuple(parts))
        case _:
            pass
    if source.items is not None and source.items and not source.vec:
        whole = source.items[0]
        for item in source.items[1:]:
            whole = join(whole, item)
        return Val(
            whole.taint, rows=whole.rows, vec=whole.vec, items=whole.items, target=whole.target
        )
    return Val(vec=source.vec) if source.vec else Val()


def _lambda(state: State, node: ast.Lambda) -> Val:
    return Val(target=node)


def run_lambda(state: State, node: ast.Lambda, arguments: list[Val]) -> Val:
    """The body of a lambda, for given arguments."""
    saved = dict(state.env)
    for number, each in enumerate([*node.args.posonlyargs, *node.args.args]):
        state.env[each.arg] = arguments[number] if number < len(arguments) else NOTHING
    result = evaluate(state, node.body)
    state.env = saved
    return result


def _walrus(state: State, node: ast.NamedExpr) -> Val:
    from selc.lint.walk import assign

    value = evaluate(state, node.value)
    made = ast.copy_location(ast.Assign([node.target], node.value), node)
    assign(state, node.target, value, made)
    return state.env.get(node.target.id, value)


def _starred(state: State, node: ast.Starred) -> Val:
    return evaluate(state, node.value)


def _text(state: State, node: ast.JoinedStr) -> Val:
    taint: Taint = CLEAN
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            taint = merge(taint, evaluate(state, part.value).taint)
    return Val(taint)


def _call(state: State, node: ast.Call) -> Val:
    from selc.lint.calls import call

    return call(state, node)


def _await(state: State, node: ast.Await) -> Val:
    return evaluate(state, node.value)


def _parts(state: State, node: ast.expr) -> Val:
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.expr):
            evaluate(state, inner)
    return OPAQUE


_RULES: dict[type[ast.expr], Callable[..., Val]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.BoolOp: _boolean,
    ast.UnaryOp: _unary,
    ast.BinOp: _binary,
    ast.Compare: _compare,
    ast.IfExp: _conditional,
    ast.Tuple: _sequence,
    ast.List: _sequence,
    ast.Set: _sequence,
    ast.Dict: _dict,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.DictComp: _comprehension,
    ast.Lambda: _lambda,
    ast.NamedExpr: _walrus,
    ast.Starred: _starred,
    ast.JoinedStr: _text,
    ast.Call: _call,
    ast.Await: _await,
}
