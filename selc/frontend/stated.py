"""Calls whose results the facts state: what they give, and what of them still runs."""

from __future__ import annotations

import ast

from selc.frontend import access, expr, literals
from selc.frontend.context import Lowering, snippet
from selc.frontend.facts import FunctionFact
from selc.frontend.state import State
from selc.frontend.tuplesite import unmarked
from selc.frontend.values import V
from selc.ir.domain import Domain
from selc.ir.op import Op


def evaluate(cx: Lowering, st: State, e: ast.Call) -> None:
    """Run the arguments of a call whose result does not depend on them: they may launch or fail."""
    owner(cx, st, e.func)
    expr.elements(cx, st, e.args)
    for keyword in e.keywords:
        expr.lower(cx, st, keyword.value)


def owner(cx: Lowering, st: State, func: ast.expr) -> None:
    """Run the calls that stand inside the text of a callee."""
    if isinstance(func, (ast.Attribute, ast.Subscript)):
        inner = func.value
        if isinstance(inner, ast.Call):
            expr.lower(cx, st, inner)
        else:
            owner(cx, st, inner)


def result(cx: Lowering, st: State, e: ast.Call, fact: FunctionFact, args: tuple[V, ...]) -> V:
    """The result of a call as the facts state it."""
    if fact.is_value:
        return literals.from_python(cx, st, fact.value)
    if fact.kind:
        d = fact.domain
        assert d is not None
        domain = (
            Domain(d.lo or 0, d.hi or 0, d.step)
            if d.values is None
            else Domain(values=tuple(literals.resolve(cx, v) for v in d.values))
        )
        return cx.graph.input(unknown(cx, st, e, args), fact.kind, domain)
    assert fact.table is not None
    nodes = [expr.as_node(cx, st, a, e) for a in args]
    inside, out = cx.false, None
    for row in reversed(fact.table):
        if len(row) != len(nodes) + 1:
            cx.refuse(
                e,
                "SEL911",
                f"the table for `{snippet(e.func)}` has rows of {len(row) - 1} arguments, the "
                f"call passes {len(nodes)}",
            )
        hit = cx.true
        for node, key in zip(nodes, row[:-1], strict=True):
            hit = cx.graph.both(
                hit, cx.graph.fold(Op.EQ, node, cx.graph.const(literals.resolve(cx, key)))
            )
        inside = cx.graph.either(hit, inside)
        value = literals.from_python(cx, st, row[-1])
        if out is None:
            out = value
        else:
            other = out
            out = cx.branch(st, hit, access._give(value), access._give(other))
    assert out is not None
    if cx.known_bool(inside) is not True:
        cx.partial(
            st,
            e,
            inside,
            "KeyError",
            f"the facts' table for `{snippet(e.func)}` must cover this call",
        )
    return out


def unknown(cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...]) -> str:
    """The name of an unknown result: one per callee and arguments, `#2` for the second."""
    name = snippet(e.func) + "()"
    key = tuple(unmarked(n).id for a in args for n in access.flat_nodes(a, cx, st))
    known = cx.unknowns.setdefault(name, [])
    if key not in known:
        known.append(key)
    n = known.index(key) + 1
    return name if n == 1 else f"{name}#{n}"
