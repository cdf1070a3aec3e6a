"""Partial evaluation: what is known before any call is computed now."""

from __future__ import annotations

from collections.abc import Sequence

from selc.ir.graph import Graph, Node
from selc.ir.op import FAULTS, Op, TooWide, apply
from selc.ir.value import Value
from selc.passes.rebuild import Images, is_false, is_true, rebuild


def peval(graph: Graph, roots: Sequence[Node], given: Sequence[Node] = ()) -> tuple[Graph, Images]:
    """Fold constants, inputs with one value, and what a tuple of known length gives away.

    Before:

        v0 = input "hidden"            # one value: 4096
        v1 = mul v0, 2
        v2 = tuple v1, v7
        v3 = index v2, 1

    After: `v1` is the constant 8192 and `v3` is `v7`.
    """
    return rebuild(graph, roots, constants)


def constants(new: Graph, node: Node, args: tuple[Node, ...]) -> Node | None:
    """The rule of this pass."""
    if node.op is Op.INPUT:
        assert isinstance(node.attr, str)
        domain = new.inputs[node.attr].domain
        return new.const(domain[0]) if len(domain) == 1 else None
    return known(new, node.op, node.attr, args)


def known(new: Graph, op: Op, attr: Value, args: tuple[Node, ...]) -> Node | None:
    """The constant or argument that an operation amounts to, if any."""
    if op is Op.SELECT:
        if args[1] is args[2]:
            return args[1]
        if args[0].is_const:
            return args[1] if args[0].attr else args[2]
        return None
    if op in (Op.CONST, Op.INPUT, Op.MARK, Op.FAIL):
        return args[0] if op is Op.MARK and args[0].op in (Op.CONST, Op.FAIL) else None
    if all(a.is_const for a in args):
        return constant(new, op, attr, tuple([a.attr for a in args]))
    if any(a.op is Op.FAIL for a in args):
        return new.const(True) if op is Op.OK else new.add(Op.FAIL)
    return _of_tuple(new, op, args)


def constant(new: Graph, op: Op, attr: Value, values: tuple[Value, ...]) -> Node | None:
    """The constant that an operation on constants gives; None if it is too wide to compute."""
    try:
        if op is Op.OK:
            assert isinstance(attr, tuple)
            apply(Op(attr[0]), attr[1], values)
            return new.const(True)
        return new.const(apply(op, attr, values))
    except TooWide:
        return None
    except FAULTS:
        return new.const(False) if op is Op.OK else new.add(Op.FAIL)


def _of_tuple(new: Graph, op: Op, args: tuple[Node, ...]) -> Node | None:
    """What is known of a tuple whose elements are nodes."""
    if not args or args[0].op is not Op.TUPLE:
        return None
    items = args[0].args
    if op is Op.INDEX and args[1].is_const and type(args[1].attr) is int:
        i = args[1].attr
        return items[i] if -len(items) <= i < len(items) else new.add(Op.FAIL)
    if op is Op.LEN:
        return new.const(len(items))
    if op is Op.TRUTH:
        return new.const(bool(items))
    if op in (Op.MIN, Op.MAX) and len(items) == 1:
        return items[0]
    if op is Op.ANY and any(is_true(x) for x in items):
        return new.const(True)
    if op is Op.ALL and any(is_false(x) for x in items):
        return new.const(False)
    return None
