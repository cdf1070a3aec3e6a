"""Indexing tensors: integers, slices, `None`, `...` have known shapes, all else is opaque."""

from __future__ import annotations

import ast

from selc.frontend import expr, tensors
from selc.frontend.context import Lowering, snippet
from selc.frontend.state import State
from selc.frontend.values import Opaque, Ref, V
from selc.ir.graph import Node
from selc.ir.op import Op


def item(cx: Lowering, st: State, e: ast.Subscript, ref: Ref) -> V:
    """`tensor[...]`."""
    parts = e.slice.elts if isinstance(e.slice, ast.Tuple) else [e.slice]
    bounds = [_lowered(cx, st, p) for p in parts]
    shape, dtype, device, strides = tensors.parts(cx, st, ref)
    steps = list(tensors.contiguous_strides(cx, shape) if strides is None else strides)
    if not any(b == [Ellipsis] for b in bounds):
        bounds.append([Ellipsis])
    taken = sum(1 for b in bounds if b != [Ellipsis] and b != [None])
    if taken > len(shape):
        cx.partial(
            st, e, cx.false, "IndexError", f"`{snippet(e)}`: the tensor has {len(shape)} dimensions"
        )
        return Opaque(snippet(e), made=True)
    sizes: list[Node] = []
    kept: list[Node] = []
    axis = 0
    for bound in bounds:
        if bound == [Ellipsis]:
            rest = len(shape) - taken
            sizes += shape[axis : axis + rest]
            kept += steps[axis : axis + rest]
            axis += rest
        elif bound == [None]:
            sizes.append(cx.graph.const(1))
            kept.append(cx.graph.const(1))
        elif isinstance(bound, tuple):
            size = _length(cx, bound, shape[axis])
            if size is None:
                return Opaque(snippet(e), made=True)
            sizes.append(size)
            kept.append(steps[axis])
            axis += 1
        else:
            index = bound[0]
            if not isinstance(index, Node) or not cx.abs(index).kinds <= {"int"}:
                return Opaque(snippet(e), made=True)
            size = shape[axis]
            low = cx.graph.fold(Op.GE, index, cx.graph.fold(Op.NEG, size))
            inside = cx.graph.both(low, cx.graph.fold(Op.LT, index, size))
            cx.partial(st, e, inside, "IndexError", f"`{snippet(e)}` must be in range")
            axis += 1
    return tensors.tensor(cx, st, sizes, dtype, device, kept)


def _lowered(cx: Lowering, st: State, e: ast.expr) -> list[object] | tuple[object, object, bool]:
    """An index as `[value]`, `[None]` or `[Ellipsis]`; a slice as (start, stop, has a step)."""
    if isinstance(e, ast.Slice):
        start, stop = (None if b is None else expr.lower(cx, st, b) for b in (e.lower, e.upper))
        if e.step is not None:
            expr.lower(cx, st, e.step)
        return _none(cx, start), _none(cx, stop), e.step is not None
    if isinstance(e, ast.Constant) and e.value is Ellipsis:
        return [Ellipsis]
    return [_none(cx, expr.lower(cx, st, e))]


def _none(cx: Lowering, value: V | None) -> V | None:
    return None if value is cx.none else value


def _length(cx: Lowering, bound: tuple[object, ...], size: Node) -> Node | None:
    """The length of a slice of a dimension, as Python's slices have it."""
    start, stop, stepped = bound
    if stepped:
        return None
    ends: list[Node] = []
    for value, default in ((start, cx.graph.const(0)), (stop, size)):
        if value is None:
            ends.append(default)
            continue
        if not isinstance(value, Node) or not cx.abs(value).kinds <= {"int"}:
            return None
        lo, hi = cx.abs(value).lo, cx.abs(value).hi
        if lo is not None and lo >= 0:
            ends.append(cx.graph.fold(Op.MIN2, value, size))
        elif hi is not None and hi < 0:
            ends.append(
                cx.graph.fold(Op.MAX2, cx.graph.fold(Op.ADD, size, value), cx.graph.const(0))
            )
        else:
            return None
    if start is None:
        return ends[1]
    return cx.graph.fold(Op.MAX2, cx.graph.fold(Op.SUB, ends[1], ends[0]), cx.graph.const(0))
