"""Comparisons: chains, equality by content, identity."""

from __future__ import annotations

import ast

from selc.frontend import (
    access,
    enums,
    equality,
    expr,
    iteration,
    launches,
    sequences,
    sets,
    tensors,
)
from selc.frontend.context import Lowering
from selc.frontend.state import State
from selc.frontend.values import (
    Choice,
    Cls,
    External,
    Func,
    ModuleV,
    Opaque,
    Ref,
    Seq,
    Tup,
    V,
)
from selc.ir.graph import Node
from selc.ir.op import Op


def compare(cx: Lowering, st: State, e: ast.expr, op: ast.cmpop, left: V, right: V) -> V:  # noqa: C901  # one case per kind
    """One comparison of any values."""
    if isinstance(op, (ast.Is, ast.IsNot)):
        return _identity(cx, st, e, left, right, isinstance(op, ast.IsNot))
    if isinstance(op, (ast.In, ast.NotIn)):
        inside = access.contains(cx, st, e, left, right)
        return cx.op(st, e, Op.NOT, inside) if isinstance(op, ast.NotIn) else inside
    if isinstance(left, Choice):
        return expr.each(cx, st, left, lambda s, v: compare(cx, s, e, op, v, right))
    if isinstance(right, Choice):
        return expr.each(cx, st, right, lambda s, v: compare(cx, s, e, op, left, v))
    opaque = tensors.is_opaque(cx, st, left) or tensors.is_opaque(cx, st, right)
    if opaque and not (isinstance(left, External) and isinstance(right, External)):
        return launches.derived(cx, e, left, right)
    iteration.operands(cx, e, left, right)
    own = enums.comparison(cx, st, e, op, left, right)
    if own is not None:
        return own
    a, b = expr.sequence(cx, st, left, e), expr.sequence(cx, st, right, e)
    if a is not None and b is not None:
        if a[1] != b[1] and isinstance(op, (ast.Eq, ast.NotEq)):
            return cx.graph.const(isinstance(op, ast.NotEq))
        if isinstance(op, (ast.Eq, ast.NotEq)) and any(isinstance(v, Ref) for v in (*a[0], *b[0])):
            verdicts = [equality.equal(cx, st, e, x, y) for x, y in zip(a[0], b[0], strict=False)]
            same = cx.graph.const(len(a[0]) == len(b[0]))
            for verdict in verdicts:
                same = cx.graph.both(same, verdict)
            return cx.op(st, e, Op.NOT, same) if isinstance(op, ast.NotEq) else same
        if a[1] == b[1]:
            left, right = Tup(a[0]), Tup(b[0])
    if isinstance(left, Seq) or isinstance(right, Seq):
        mask = sequences.masked(cx, e, expr.COMPARE[type(op)], left, right)
        assert mask is not None
        return mask
    compared = sets.comparison(cx, st, e, op, left, right)
    if compared is not None:
        return compared
    equating = isinstance(op, (ast.Eq, ast.NotEq))
    if equating and not _is_data(left) and not _is_data(right):
        return _structural_equality(cx, st, e, left, right, isinstance(op, ast.NotEq))
    if (
        equating
        and (isinstance(left, Ref) != isinstance(right, Ref))
        and (isinstance(left, Node) or isinstance(right, Node))
    ):
        same = equality.equal(cx, st, e, left, right)
        return cx.op(st, e, Op.NOT, same) if isinstance(op, ast.NotEq) else same
    return cx.op(
        st, e, expr.COMPARE[type(op)], expr.as_node(cx, st, left, e), expr.as_node(cx, st, right, e)
    )


def _is_data(value: V) -> bool:
    return isinstance(value, (Node, Tup))


def _structural_equality(
    cx: Lowering, st: State, e: ast.expr, left: V, right: V, negated: bool
) -> V:
    if isinstance(left, (Cls, Func)) and isinstance(right, (Cls, Func)):
        same = same_definition(cx, e, left, right)
    elif isinstance(left, (External, ModuleV)) and isinstance(right, (External, ModuleV)):
        same = left == right
        outside = [
            v
            for v in (left, right)
            if isinstance(v, External) and not v.name.startswith("builtins.")
        ]
        if not same and outside:
            cx.need(
                e,
                f'functions:\n  "{outside[0].name}": ...',
                f"whether `{outside[0].name}` is the same as the other is not known",
            )
    elif (devices := tensors.same_device(cx, st, left, right)) is not None:
        return cx.graph.negate(devices) if negated else devices
    elif isinstance(left, Ref) and isinstance(right, Ref):
        equal = equality.equal(cx, st, e, left, right)
        return cx.op(st, e, Op.NOT, equal) if negated else equal
    else:
        cx.refuse(
            e, "SEL901", "comparing these objects is not supported", help="compare their fields"
        )
    return cx.graph.const(same != negated)


def _classes(left: V, right: V) -> bool:
    """Whether both are built-in names or torch's classes: there is one of each."""
    own = ("builtins.", "torch.Tensor", "torch.Size")
    return all(isinstance(v, External) and v.name.startswith(own) for v in (left, right))


def _identity(cx: Lowering, st: State, e: ast.expr, left: V, right: V, negated: bool) -> V:
    if isinstance(left, Choice):
        return expr.each(cx, st, left, lambda s, v: _identity(cx, s, e, v, right, negated))
    if isinstance(right, Choice):
        return expr.each(cx, st, right, lambda s, v: _identity(cx, s, e, left, v, negated))
    if isinstance(left, Node) and isinstance(right, Node):
        kinds = cx.abs(left).kinds & cx.abs(right).kinds
        if kinds & {"int", "float", "str", "tuple"}:
            cx.refuse(
                e,
                "SEL901",
                "`is` between numbers or strings depends on the interpreter",
                help="write `==`",
            )
        return (
            cx.op(st, e, Op.IS, left, right)
            if not negated
            else cx.op(st, e, Op.NOT, cx.graph.fold(Op.IS, left, right))
        )
    for side in (left, right):
        expr.needed(cx, e, side)
        if (
            isinstance(side, External)
            and not side.name.startswith("builtins.")
            and not _classes(left, right)
        ):
            if left == right:
                return cx.graph.const(not negated)
            cx.need(
                e,
                f'functions:\n  "{side.name}": ...',
                f"what `{side.name}` is in the deployment is not known; null means None",
            )
    if isinstance(left, Opaque) or isinstance(right, Opaque):
        cx.refuse(
            e,
            "SEL905",
            "whether an object that selc cannot see is the same as another is not known",
            help="state it under `objects:` or `functions:`; null means None",
        )
    if isinstance(left, Ref) and isinstance(right, Ref):
        if left == right:
            return cx.graph.const(not negated)
        cx.refuse(
            e, "SEL901", "`is` between two objects is not supported", help="compare their contents"
        )
    _no_tuples(cx, e, left, right)
    same = type(left) is type(right) and left == right
    if isinstance(left, (Cls, Func)) and isinstance(right, (Cls, Func)):
        same = same_definition(cx, e, left, right)
    return cx.graph.const(same != negated)


def _no_tuples(cx: Lowering, e: ast.AST, *sides: V) -> None:
    """Refuse identity of two tuples."""
    if all(
        "tuple" in cx.abs(v).kinds if isinstance(v, Node) else isinstance(v, Tup) for v in sides
    ):
        cx.refuse(
            e,
            "SEL901",
            "`is` between tuples is not supported: which of them are one object is not followed",
            help="write `==`",
        )


def same_definition(cx: Lowering, e: ast.AST, left: Cls | Func, right: Cls | Func) -> bool:
    """Whether two classes or functions are one object."""
    if left is right:
        return True
    if left.node is not right.node:
        return False
    if isinstance(left, Func) and left.scope is not None:
        cx.refuse(
            e,
            "SEL901",
            "whether two functions of one inner definition are the same object is not followed",
        )
    return True
