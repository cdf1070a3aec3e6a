"""Sequences of the batch: only their length, extremes, sum, `any` and `all` may reach a choice.

Each of these is an input of its own, named as Python would ask for it (`max(lens)`). What the
length and the elements' range say of them together is stated as assumptions, exactly: values of
these inputs that satisfy them are those of some sequence.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from selc.diag.diagnostic import Diagnostic, Refused
from selc.diag.span import Span
from selc.frontend.context import Lowering, snippet
from selc.frontend.state import State
from selc.frontend.values import Mask, Seq, V
from selc.ir.domain import Domain
from selc.ir.graph import Node
from selc.ir.op import Op
from selc.ir.program import Guard, SequenceInput

if TYPE_CHECKING:
    from selc.frontend.facts import InputDecl

AGGREGATES: Final = frozenset({"len", "min", "max", "sum", "any", "all"})
METHODS: Final = frozenset({"min", "max", "sum", "any", "all"})
"""Methods of arrays, which lists do not have."""

ONLY: Final = "only its max, min, sum, len, any and all may reach a choice"


def declare(cx: Lowering, name: str, decl: InputDecl, kind: str, annotation: str) -> Seq:
    """A sequence input; an annotation tells arrays, which compare element by element."""
    assert decl.length is not None
    assert decl.element is not None
    if kind not in ("runtime", "unpinnable", "request"):
        message = f"the sequence input `{name}` cannot be a {kind}"
        raise Refused(
            Diagnostic("SEL911", message, decl.span, help="make it runtime, unpinnable or request")
        )
    if name not in cx.sequences:
        length, element = Domain(*decl.length), Domain(*decl.element)
        cx.sequences[name] = SequenceInput(name, kind, length, element, {}, len(cx.graph.inputs))
    known = "ndarray" in annotation or "Tensor" in annotation
    listed = any(w in annotation for w in ("list", "List", "tuple", "Tuple", "Sequence"))
    return Seq(name, True if known else False if listed else None)


def aggregate(
    cx: Lowering, st: State, e: ast.expr, seq: Seq, how: str, method: bool = False
) -> Node:
    """`how(seq)`, or `seq.how()`, which gives an array's scalar and so is no site itself."""
    declared = cx.sequences[seq.name]
    if declared.length.lo == 0 and how not in ("len", "sum"):
        cx.refuse(
            e,
            "SEL901",
            f"`{snippet(e)}` of a sequence that may be empty is not supported",
            help=f"declare the length of `{seq.name}` from 1 on",
        )
    if how in ("any", "all") and declared.element.lo < 0:
        cx.refuse(
            e,
            "SEL901",
            f"`{snippet(e)}` of numbers that may be negative is not supported",
            help="compare the sequence's max and min instead",
        )
    node = _leaf(cx, declared, how)
    return node if method else sited(cx, st, e, node)


def sited(cx: Lowering, st: State, e: ast.expr, node: Node) -> Node:
    """An input's value as the expression's."""
    if node.is_const or cx.span_override is not None or cx.frame.silent:
        return node
    span = cx.span(e)
    if span.end_line != span.line:
        return node
    return cx.mark(st, f"L{span.line}C{span.column}-{span.end_column}", "expression", node, span)


def _leaf(cx: Lowering, seq: SequenceInput, how: str) -> Node:
    domain = _domain(seq, how)
    if len(domain) == 1:
        return cx.graph.const(domain[0])
    name = f"{how}({seq.name})"
    seq.aggregates[how] = name
    return cx.graph.input(name, seq.kind, domain)


def _domain(seq: SequenceInput, how: str) -> Domain:
    n, x = seq.length, seq.element
    if how == "len":
        return n
    if how == "sum":
        corners = [k * v for k in (n.lo, n.hi) for v in (x.lo, x.hi)]
        return Domain(min(corners), max(corners))
    if how in ("min", "max"):
        return x
    return Domain(values=(False, True)) if x.lo <= 0 <= x.hi else Domain(values=(True,))


def size(cx: Lowering, seq: Seq) -> Node:
    """The length, as the truth of a list asks for it."""
    return _leaf(cx, cx.sequences[seq.name], "len")


def masked(cx: Lowering, e: ast.AST, op: Op, left: V, right: V) -> Mask | None:
    """The elementwise comparison of an array with a number; None if neither side is a sequence."""
    mirror = {Op.LT: Op.GT, Op.LE: Op.GE, Op.GT: Op.LT, Op.GE: Op.LE}
    if isinstance(right, Seq) and isinstance(left, Node):
        left, right, op = right, left, mirror.get(op, op)
    if not isinstance(left, Seq):
        return None
    if not isinstance(right, Node) or left.array is not True:
        cx.refuse(
            e,
            "SEL901",
            f"comparing the sequence `{left.name}` here is not supported: {ONLY}",
            help=(
                "an array (annotated `np.ndarray` or `torch.Tensor`) may be compared with a number"
            ),
        )
    return Mask(left, op, right)


def quantified(cx: Lowering, st: State, e: ast.Call, mask: Mask, universal: bool) -> Node:
    """`np.all(array == number)` and its kin, in terms of the array's extremes."""
    known = {
        (True, Op.EQ): (("min", Op.EQ), ("max", Op.EQ)),
        (True, Op.LT): (("max", Op.LT),),
        (True, Op.LE): (("max", Op.LE),),
        (True, Op.GT): (("min", Op.GT),),
        (True, Op.GE): (("min", Op.GE),),
        (False, Op.NE): (("min", Op.NE), ("max", Op.NE)),
        (False, Op.LT): (("min", Op.LT),),
        (False, Op.LE): (("min", Op.LE),),
        (False, Op.GT): (("max", Op.GT),),
        (False, Op.GE): (("max", Op.GE),),
    }.get((universal, mask.op))
    if known is None:
        cx.refuse(
            e, "SEL901", f"`{snippet(e)}` cannot be told from the sequence's extremes: {ONLY}"
        )
    declared = cx.sequences[mask.seq.name]
    if declared.length.lo == 0:
        cx.refuse(
            e,
            "SEL901",
            f"`{snippet(e)}` of a sequence that may be empty is not supported",
            help=f"declare the length of `{mask.seq.name}` from 1 on",
        )
    parts = [cx.graph.fold(op, _leaf(cx, declared, how), mask.other) for how, op in known]
    if len(parts) == 1:
        return cx.op(st, e, Op.TRUTH, parts[0]) if not parts[0].is_const else parts[0]
    both = (parts[0], parts[1], cx.false) if universal else (parts[0], cx.true, parts[1])
    return cx.op(st, e, Op.SELECT, *both)


def relate(cx: Lowering) -> None:
    """State what a sequence's aggregates that reach the graph have to do with each other."""
    for seq in cx.sequences.values():
        used = set(seq.aggregates)
        if "any" in used:
            _leaf(cx, seq, "max")
        if "all" in used:
            _leaf(cx, seq, "min")
        if "sum" in used or len(used) > 1:
            _leaf(cx, seq, "len")
        used = set(seq.aggregates)
        if len(used) > 1 or "sum" in used:
            _relations(cx, seq, used)


def _relations(cx: Lowering, seq: SequenceInput, used: set[str]) -> None:
    g = cx.graph
    one, zero = g.const(1), g.const(0)
    n, low, high = (_leaf(cx, seq, h) if h in used else None for h in ("len", "min", "max"))
    n = g.const(seq.length.lo) if n is None else n
    name = seq.name
    if low is not None and high is not None:
        _state(cx, f"min({name}) <= max({name})", g.fold(Op.LE, low, high))
        if seq.length.lo <= 1:
            alone = g.either(g.fold(Op.GT, n, one), g.fold(Op.EQ, low, high))
            _state(cx, f"len({name}) > 1 or min({name}) == max({name})", alone)
    if "any" in used and high is not None:
        some = _leaf(cx, seq, "any")
        _state(
            cx, f"any({name}) == (max({name}) != 0)", g.fold(Op.EQ, some, g.fold(Op.NE, high, zero))
        )
    if "all" in used and low is not None:
        every = _leaf(cx, seq, "all")
        _state(
            cx, f"all({name}) == (min({name}) != 0)", g.fold(Op.EQ, every, g.fold(Op.NE, low, zero))
        )
    if "sum" not in used:
        return
    total = _leaf(cx, seq, "sum")
    least, most = g.const(seq.element.lo), g.const(seq.element.hi)
    rest = g.fold(Op.SUB, n, one)
    a, b = low or least, high or most
    lower = g.fold(Op.MUL, n, a) if high is None else g.fold(Op.ADD, g.fold(Op.MUL, rest, a), high)
    upper = g.fold(Op.MUL, n, b) if low is None else g.fold(Op.ADD, low, g.fold(Op.MUL, rest, b))
    low_text, high_text = (
        f"min({name})" if low else str(seq.element.lo),
        f"max({name})" if high else str(seq.element.hi),
    )
    below = (
        f"len({name}) * {low_text}"
        if high is None
        else f"(len({name}) - 1) * {low_text} + {high_text}"
    )
    above = (
        f"len({name}) * {high_text}"
        if low is None
        else f"{low_text} + (len({name}) - 1) * {high_text}"
    )
    _state(cx, f"{below} <= sum({name})", g.fold(Op.LE, lower, total))
    _state(cx, f"sum({name}) <= {above}", g.fold(Op.LE, total, upper))


def _state(cx: Lowering, text: str, cond: Node) -> None:
    if cond.is_const and cond.attr is True:
        return
    span = cx.facts.spans.get(f"inputs.{text}", Span("", 0, 0, 0, 0))
    for name in cx.sequences:
        if f"({name})" in text and name in cx.facts.inputs:
            span = cx.facts.inputs[name].span
    cx.guards.append(
        Guard("assume", "facts", text, "what holds of every sequence", span, cx.true, cond)
    )


__all__ = ["AGGREGATES", "aggregate", "declare", "masked", "quantified", "relate", "size"]
