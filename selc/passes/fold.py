"""The algebra of selects and bools; no rule makes the graph larger."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from selc.ir.graph import Graph, Node
from selc.ir.op import Op
from selc.ir.value import Value, same
from selc.passes.peval import constant, known
from selc.passes.rebuild import Booleans, Images, Rule, is_false, is_true, rebuild

_DEPTH: Final = 64
"""How far equal conditions are looked for down a chain of selects."""


def fold(graph: Graph, roots: Sequence[Node], given: Sequence[Node] = ()) -> tuple[Graph, Images]:
    """Simplify selects, bools, and operations on selects of constants.

    Before:

        v1 = select v0, "dot", "gemm"
        v2 = eq v1, "dot"
        v3 = not v0
        v4 = select v3, v7, v8
        v5 = select v0, v4, v7

    After: `v2` is `v0`, `v4` is `select v0, v8, v7` and `v5` is `select v0, v8, v7`.
    """
    return rebuild(graph, roots, selects())


def selects() -> Rule:
    """The rule of this pass, for one graph."""
    booleans: Booleans | None = None

    def rule(new: Graph, node: Node, args: tuple[Node, ...]) -> Node | None:
        nonlocal booleans
        if booleans is None:
            booleans = Booleans(new)
        if node.op is Op.SELECT:
            return select(new, args[0], args[1], args[2], booleans)
        if node.op is Op.NOT:
            return negate(new, args[0], booleans)
        if node.op is Op.TRUTH and args[0] in booleans:
            return args[0]
        if node.op in (Op.CONST, Op.INPUT, Op.MARK, Op.FAIL):
            return None
        return over_select(new, node.op, node.attr, args, booleans)

    return rule


def negate(new: Graph, arg: Node, booleans: Booleans) -> Node:
    """`not arg`, without double negations."""
    if arg.is_const:
        return new.const(not arg.attr)
    if arg.op is Op.NOT and arg.args[0] in booleans:
        return arg.args[0]
    if arg.op is Op.TRUTH:
        return negate(new, arg.args[0], booleans)
    if arg.op is Op.SELECT and arg.args[1].is_const and arg.args[2].is_const:
        return select(
            new,
            arg.args[0],
            new.const(not arg.args[1].attr),
            new.const(not arg.args[2].attr),
            booleans,
        )
    return new.add(Op.NOT, arg)


def select(new: Graph, cond: Node, then: Node, other: Node, booleans: Booleans) -> Node:
    """`then if cond else other`, simplified; a failing arm may give any value."""
    while cond.op is Op.NOT and cond.args[0] in booleans:
        cond, then, other = cond.args[0], other, then
    if cond.is_const:
        return then if cond.attr else other
    if cond.op is Op.FAIL:
        return cond
    then = _assuming(new, cond, True, then)
    other = _assuming(new, cond, False, other)
    if then is other or other.op is Op.FAIL:
        return then
    if then.op is Op.FAIL:
        return other
    if is_true(then) and is_false(other):
        return cond
    if is_false(then) and is_true(other):
        return negate(new, cond, booleans)
    return new.add(Op.SELECT, cond, then, other)


def _assuming(new: Graph, cond: Node, value: bool, arm: Node) -> Node:
    """An arm, where the condition is known."""
    for _ in range(_DEPTH):
        if arm is cond:
            return new.const(value)
        if arm.op is Op.NOT and arm.args[0] is cond:
            return new.const(not value)
        if arm.op is Op.SELECT and arm.args[0] is cond:
            arm = arm.args[1] if value else arm.args[2]
        else:
            break
    return arm


def over_select(
    new: Graph, op: Op, attr: Value, args: tuple[Node, ...], booleans: Booleans
) -> Node | None:
    """An operation moved into the arms of the one argument that is no constant."""
    at = -1
    for k, a in enumerate(args):
        if a.is_const:
            continue
        if at >= 0 or a.op is not Op.SELECT:
            return _of_twins(new, op, attr, args, booleans)
        at = k
    if at < 0:
        return None
    chosen = args[at]

    def apply(arm: Node) -> Node | None:
        """The operation on one arm, if that needs no new node."""
        replaced = (*args[:at], arm, *args[at + 1 :])
        if all(a.is_const for a in replaced):
            return constant(new, op, attr, tuple([a.attr for a in replaced]))
        if arm.op is Op.SELECT:
            return _uniform(new, op, attr, args, at, arm)
        return None if op is Op.OK else known(new, op, attr, replaced)

    then = apply(chosen.args[1])
    if then is None:
        return None
    other = apply(chosen.args[2])
    return None if other is None else select(new, chosen.args[0], then, other, booleans)


def _uniform(
    new: Graph, op: Op, attr: Value, args: tuple[Node, ...], at: int, tree: Node
) -> Node | None:
    """The one constant that the operation gives on every leaf of a tree of selects."""
    found: Node | None = None
    todo, seen = [tree], 0
    while todo:
        node = todo.pop()
        seen += 1
        if node.op is Op.SELECT and seen < _DEPTH:
            todo.extend(node.args[1:])
            continue
        if not node.is_const:
            return None
        values = tuple([a.attr for a in (*args[:at], node, *args[at + 1 :])])
        leaf = constant(new, op, attr, values)
        if (
            leaf is None
            or not leaf.is_const
            or (found is not None and not same(found.attr, leaf.attr))
        ):
            return None
        found = leaf
    return found


def _of_twins(
    new: Graph, op: Op, attr: Value, args: tuple[Node, ...], booleans: Booleans
) -> Node | None:
    """A binary operation on two selects of constants with the same condition."""
    if (
        len(args) != 2
        or any(a.op is not Op.SELECT for a in args)
        or args[0].args[0] is not args[1].args[0]
    ):
        return None
    arms = []
    for k in (1, 2):
        pair = (args[0].args[k], args[1].args[k])
        if not all(a.is_const for a in pair):
            return None
        arm = constant(new, op, attr, (pair[0].attr, pair[1].attr))
        if arm is None:
            return None
        arms.append(arm)
    return select(new, args[0].args[0], arms[0], arms[1], booleans)
