"""Tensors as shapes: what a selection may know of a tensor is its sizes, strides, dtype and device.

Everything else about a tensor is opaque: it may be passed around, and is refused where it reaches a
choice.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Final

from selc.diag.diagnostic import Diagnostic, Refused
from selc.frontend import expr, iteration, literals, reading
from selc.frontend.context import Lowering, snippet
from selc.frontend.facts import TensorDecl
from selc.frontend.state import State
from selc.frontend.values import Entry, External, InstObj, Method, Opaque, Ref, Tup, V
from selc.ir.graph import Node
from selc.ir.op import Op
from selc.ir.value import Symbol

TENSOR: Final = "tensor"
DEVICE: Final = "device"


def tensor(
    cx: Lowering,
    st: State | None,
    shape: Sequence[Node],
    dtype: Node,
    device: V,
    strides: Sequence[Node] | None,
) -> Ref:
    """A tensor of known shape; `strides` None means contiguous."""
    fields: dict[str, Entry] = {
        "shape": Entry(cx.true, Tup(tuple(shape), size=True)),
        "dtype": Entry(cx.true, dtype),
        "device": Entry(cx.true, device),
    }
    if strides is not None:
        fields["strides"] = Entry(cx.true, Tup(tuple(strides)))
    return cx.heap.new(st, InstObj(None, fields, "a tensor's shape does not change", TENSOR))


def device_of(cx: Lowering, name: str | None) -> V:
    """A torch.device, by name (`cuda`, `cuda:0`, `cpu`)."""
    if name is None:
        return Opaque("device", made=True)
    kind, _, index = name.partition(":")
    fields = {
        "type": Entry(cx.true, cx.graph.const(kind)),
        "index": Entry(cx.true, cx.graph.const(int(index) if index.isdecimal() else None)),
    }
    return cx.heap.new(None, InstObj(None, fields, "a device does not change", DEVICE))


def same_device(cx: Lowering, st: State, left: V, right: V) -> Node | None:
    """Whether two devices are equal; None if these are no devices."""
    objects = [cx.heap.get(st, v) for v in (left, right) if isinstance(v, Ref)]
    known = [o for o in objects if isinstance(o, InstObj) and o.name == DEVICE]
    if len(known) < 2:
        return None
    out = cx.true
    for field in ("type", "index"):
        a, b = (o.fields[field].value for o in known)
        assert isinstance(a, Node)
        assert isinstance(b, Node)
        out = cx.graph.both(out, cx.graph.fold(Op.EQ, a, b))
    return out


def declared(cx: Lowering, st: State, name: str, decl: TensorDecl, scope: dict[str, V]) -> Ref:
    """A tensor as the facts declare it; sizes are expressions over inputs and facts."""
    cx.span_override = decl.span
    try:
        shape = [_size(cx, st, s, decl, scope) for s in decl.shape]
        strides = (
            None if decl.strides is None else [_size(cx, st, s, decl, scope) for s in decl.strides]
        )
    finally:
        cx.span_override = None
    dtype = literals.dtype(decl.dtype.removeprefix("torch."))
    if dtype is None:
        raise Refused(
            Diagnostic(
                "SEL911",
                f"`{decl.dtype}` is no torch dtype",
                decl.span,
                help=f"the tensor `{name}` needs one, such as torch.bfloat16",
            )
        )
    return tensor(
        cx, None, shape, cx.graph.const(dtype), device_of(cx, decl.device or "cuda"), strides
    )


def _size(cx: Lowering, st: State, size: object, decl: TensorDecl, scope: dict[str, V]) -> Node:
    if not isinstance(size, str):
        return cx.graph.const(size)
    e = ast.parse(size.strip(), mode="eval").body
    cx.read.update(f"inputs.{snippet(n)}" for n in ast.walk(e) if isinstance(n, ast.Attribute))
    for name in {n.id for n in ast.walk(e) if isinstance(n, ast.Name)}:
        if name in ("min", "max", "abs"):
            continue
        cx.read.add(f"facts.{name}")
        cx.read.add(f"inputs.{name}")
        if name not in scope:
            raise Refused(
                Diagnostic(
                    "SEL911",
                    f"the size `{size}` reads `{name}`, which is neither an input nor a fact",
                    decl.span,
                    help=f"declare `{name}` under `inputs:` or `facts:`",
                )
            )
    frame_scope = cx.frame.scope
    old = st.scopes.get(frame_scope)
    st.scopes[frame_scope] = dict(scope)
    try:
        return expr.scalar(cx, st, e)
    finally:
        if old is None:
            st.scopes.pop(frame_scope, None)
        else:
            st.scopes[frame_scope] = old


def is_tensor(cx: Lowering, st: State, value: V) -> bool:
    """Whether a value is a tensor of known shape."""
    if not isinstance(value, Ref):
        return False
    obj = cx.heap.get(st, value)
    return isinstance(obj, InstObj) and obj.name == TENSOR


def is_opaque(cx: Lowering, st: State, value: V) -> bool:
    """Whether a value is a tensor or something that selc does not look into."""
    return isinstance(value, (Opaque, External)) or is_tensor(cx, st, value)


def parts(
    cx: Lowering, st: State, ref: Ref
) -> tuple[tuple[Node, ...], Node, V, tuple[Node, ...] | None]:
    """Shape, dtype, device and strides of a tensor."""
    obj = cx.heap.get(st, ref)
    assert isinstance(obj, InstObj)
    shape, dtype = obj.fields["shape"].value, obj.fields["dtype"].value
    assert isinstance(shape, Tup)
    assert isinstance(dtype, Node)
    strides = obj.fields["strides"].value if "strides" in obj.fields else None
    sizes = tuple(n for n in shape.items if isinstance(n, Node))
    known = (
        tuple(n for n in strides.items if isinstance(n, Node)) if isinstance(strides, Tup) else None
    )
    return sizes, dtype, obj.fields["device"].value, known


def product(cx: Lowering, nodes: Sequence[Node]) -> Node:
    """The product of sizes, left to right."""
    out = cx.graph.const(1)
    for node in nodes:
        out = node if out.is_const and out.attr == 1 else cx.graph.fold(Op.MUL, out, node)
    return out


def item_size(cx: Lowering, dtype: Node) -> int | None:
    """Bytes per element, if the dtype is known."""
    known = cx.known(dtype)
    return known[0].size if known is not None and isinstance(known[0], Symbol) else None


def attribute(cx: Lowering, st: State, e: ast.expr, ref: Ref, name: str) -> V:
    """`tensor.name`."""
    shape, dtype, device, _ = parts(cx, st, ref)
    if name == "shape":
        return Tup(shape, size=True)
    if name == "dtype":
        return dtype
    if name == "device":
        return device
    if name in ("ndim",):
        return cx.graph.const(len(shape))
    if name in ("is_cuda", "is_cpu"):
        obj = cx.heap.get(st, device) if isinstance(device, Ref) else None
        if isinstance(obj, InstObj):
            return cx.op(
                st,
                e,
                Op.EQ,
                expr.as_node(cx, st, obj.fields["type"].value, e),
                cx.graph.const(name[3:]),
            )
        return Opaque(snippet(e), made=True)
    size = item_size(cx, dtype)
    if name == "itemsize" and size is not None:
        return cx.graph.const(size)
    if name == "nbytes" and size is not None:
        return cx.op(st, e, Op.MUL, product(cx, shape), cx.graph.const(size))
    if name in ("T", "mT") and len(shape) == 2:
        return _transposed(cx, st, ref, 0, 1)
    if name in _METHODS or name in _SAME_SHAPE:
        return Method(ref, name)
    return Opaque(snippet(e), made=True)


def contiguous_strides(cx: Lowering, shape: Sequence[Node]) -> tuple[Node, ...]:
    """Row-major strides of a shape."""
    return tuple(product(cx, shape[i + 1 :]) for i in range(len(shape)))


def method(
    cx: Lowering,
    st: State,
    e: ast.Call,
    ref: Ref,
    name: str,
    args: tuple[V, ...],
    kwargs: dict[str, V],
) -> V:
    """`tensor.name(...)`."""
    rule = _METHODS.get(name)
    if rule is not None:
        return rule(cx, st, e, ref, args, kwargs)
    if name in _SAME_SHAPE:
        shape, dtype, device, strides = parts(cx, st, ref)
        return tensor(
            cx, st, shape, dtype, device, None if name in ("contiguous", "clone") else strides
        )
    return Opaque(snippet(e), made=True)


_SAME_SHAPE: Final = frozenset(
    {"contiguous", "clone", "detach", "cuda", "zero_", "fill_", "copy_", "requires_grad_"}
)

Rule = Callable[[Lowering, State, ast.Call, Ref, tuple[V, ...], dict[str, V]], V]


def _axis(cx: Lowering, st: State, e: ast.Call, value: V, rank: int) -> int | None:
    known = cx.known(expr.as_node(cx, st, value, e))
    if known is None or not isinstance(known[0], int):
        return None
    i = known[0]
    if not -rank <= i < rank:
        cx.partial(
            st, e, cx.false, "IndexError", f"`{snippet(e)}`: the tensor has {rank} dimensions"
        )
        return None
    return i % rank


def _size_method(
    cx: Lowering, st: State, e: ast.Call, ref: Ref, args: tuple[V, ...], kwargs: dict[str, V]
) -> V:
    shape = parts(cx, st, ref)[0]
    given = args or tuple(kwargs.values())
    if not given:
        return Tup(shape, size=True)
    axis = _axis(cx, st, e, given[0], len(shape))
    return Opaque(snippet(e), made=True) if axis is None else shape[axis]


def _stride(
    cx: Lowering, st: State, e: ast.Call, ref: Ref, args: tuple[V, ...], kwargs: dict[str, V]
) -> V:
    shape, _, _, strides = parts(cx, st, ref)
    known = contiguous_strides(cx, shape) if strides is None else strides
    given = args or tuple(kwargs.values())
    if not given:
        return Tup(known)
    axis = _axis(cx, st, e, given[0], len(shape))
    return Opaque(snippet(e), made=True) if axis is None else known[axis]


def _numel(
    cx: Lowering, st: State, e: ast.Call, ref: Ref, args: tuple[V, ...], kwargs: dict[str, V]
) -> V:
    return product(cx, parts(cx, st, ref)[0])


def _dim(
    cx: Lowering, st: State, e: ast.Call, ref: Ref, args: tuple[V, ...], kwargs: dict[str, V]
) -> V:
    return cx.graph.const(len(parts(cx, st, ref)[0]))


def _element_size(
    cx: Lowering, st: State, e: ast.Call, ref: Ref, args: tuple[V, ...], kwargs: dict[str, V]
) -> V:
    size = item_size(cx, parts(cx, st, ref)[1])
    return Opaque(snippet(e), made=True) if size is None else cx.graph.const(size)


def _is_contiguous(
    cx: Lowering, st: State, e: ast.Call, ref: Ref, args: tuple[V, ...], kwargs: dict[str, V]
) -> V:
    """Row-major; strides of dimensions of size one do not count, an empty tensor always is."""
    shape, _, _, strides = parts(cx, st, ref)
    if strides is None:
        return cx.true
    if args or kwargs:
        return Opaque(snippet(e), made=True)
    one = cx.graph.const(1)
    out = cx.true
    for size, have, want in zip(shape, strides, contiguous_strides(cx, shape), strict=True):
        fits = cx.graph.either(cx.graph.fold(Op.EQ, size, one), cx.graph.fold(Op.EQ, have, want))
        out = cx.graph.both(out, fits)
    for size in shape:
        out = cx.graph.either(cx.graph.fold(Op.EQ, size, cx.graph.const(0)), out)
    return out


def _is_floating_point(
    cx: Lowering, st: State, e: ast.Call, ref: Ref, args: tuple[V, ...], kwargs: dict[str, V]
) -> V:

    return reading.attribute(cx, st, e, parts(cx, st, ref)[1], "is_floating_point")


def _transposed(cx: Lowering, st: State, ref: Ref, i: int, j: int) -> Ref:
    shape, dtype, device, strides = parts(cx, st, ref)
    sizes, steps = list(shape), list(contiguous_strides(cx, shape) if strides is None else strides)
    sizes[i], sizes[j] = sizes[j], sizes[i]
    steps[i], steps[j] = steps[j], steps[i]
    return tensor(cx, st, sizes, dtype, device, steps)


def _t(
    cx: Lowering, st: State, e: ast.Call, ref: Ref, args: tuple[V, ...], kwargs: dict[str, V]
) -> V:
    return (
        _transposed(cx, st, ref, 0, 1)
        if len(parts(cx, st, ref)[0]) == 2
        else Opaque(snippet(e), made=True)
    )


def _transpose(
    cx: Lowering, st: State, e: ast.Call, ref: Ref, args: tuple[V, ...], kwargs: dict[str, V]
) -> V:
    rank = len(parts(cx, st, ref)[0])
    axes = [_axis(cx, st, e, a, rank) for a in args]
    if len(axes) != 2 or axes[0] is None or axes[1] is None:
        return Opaque(snippet(e), made=True)
    return _transposed(cx, st, ref, axes[0], axes[1])


def _view(
    cx: Lowering, st: State, e: ast.Call, ref: Ref, args: tuple[V, ...], kwargs: dict[str, V]
) -> V:
    shape, dtype, device, _ = parts(cx, st, ref)
    sizes: list[Node] = []
    given = args[0].items if len(args) == 1 and isinstance(args[0], Tup) else args
    for a in given:
        if not isinstance(a, Node) or not cx.abs(a).is_integral:
            return Opaque(snippet(e), made=True)
        sizes.append(a)
    known = [cx.known(s) for s in sizes]
    holes = [i for i, k in enumerate(known) if k is not None and k[0] == -1]
    if (
        any(
            k is None and (cx.abs(s).lo is None or (cx.abs(s).lo or 0) < 0)
            for k, s in zip(known, sizes, strict=True)
        )
        or len(holes) > 1
    ):
        return Opaque(snippet(e), made=True)
    total = product(cx, shape)
    if holes:
        rest = product(cx, [s for i, s in enumerate(sizes) if i != holes[0]])
        ok = cx.graph.both(cx.graph.fold(Op.NE, rest, cx.graph.const(0)), _divides(cx, rest, total))
        cx.partial(st, e, ok, "RuntimeError", f"`{snippet(e)}` must keep the number of elements")
        sizes[holes[0]] = cx.graph.fold(Op.FLOORDIV, total, rest)
    else:
        ok = cx.graph.fold(Op.EQ, product(cx, sizes), total)
        cx.partial(st, e, ok, "RuntimeError", f"`{snippet(e)}` must keep the number of elements")
    whole = _is_contiguous(cx, st, e, ref, (), {})
    if isinstance(whole, Node) and cx.known_bool(whole) is True:
        return tensor(cx, st, sizes, dtype, device, None)
    if isinstance(e.func, ast.Attribute) and e.func.attr == "view":
        cx.assumptions.append(
            f"the strides of `{snippet(e.func.value)}` allow `{snippet(e)}` (line "
            f"{cx.span(e).line})"
        )
    return Opaque(snippet(e), made=True)


def _divides(cx: Lowering, divisor: Node, total: Node) -> Node:
    rest = cx.graph.fold(Op.MOD, total, divisor)
    return cx.graph.fold(Op.EQ, rest, cx.graph.const(0))


def _to(
    cx: Lowering, st: State, e: ast.Call, ref: Ref, args: tuple[V, ...], kwargs: dict[str, V]
) -> V:
    shape, dtype, device, strides = parts(cx, st, ref)
    for a in (*args, *[v for k, v in kwargs.items() if k in ("dtype", "device")]):
        if isinstance(a, Node) and cx.abs(a).kinds == {"symbol"}:
            dtype = a
        elif isinstance(a, Ref):
            device = a
    return tensor(cx, st, shape, dtype, device, strides)


def _unsqueeze(
    cx: Lowering, st: State, e: ast.Call, ref: Ref, args: tuple[V, ...], kwargs: dict[str, V]
) -> V:
    shape, dtype, device, strides = parts(cx, st, ref)
    axis = _axis(cx, st, e, (args or tuple(kwargs.values()))[0], len(shape) + 1)
    if axis is None or strides is not None:
        return Opaque(snippet(e), made=True)
    return tensor(cx, st, [*shape[:axis], cx.graph.const(1), *shape[axis:]], dtype, device, None)


def _flatten(
    cx: Lowering, st: State, e: ast.Call, ref: Ref, args: tuple[V, ...], kwargs: dict[str, V]
) -> V:
    shape, dtype, device, strides = parts(cx, st, ref)
    if args or kwargs or strides is not None:
        return Opaque(snippet(e), made=True)
    return tensor(cx, st, [product(cx, shape)], dtype, device, None)


def _new(
    cx: Lowering, st: State, e: ast.Call, ref: Ref, args: tuple[V, ...], kwargs: dict[str, V]
) -> V:
    """`tensor.new_empty(size)` and its kin: the tensor's own dtype and device unless told."""
    _, dtype, device, _ = parts(cx, st, ref)
    assert isinstance(e.func, ast.Attribute)
    filled = e.func.attr == "new_full"
    sizes = _sizes(
        cx,
        st,
        e,
        kwargs["size"] if "size" in kwargs else args[0] if filled or len(args) == 1 else Tup(args),
    )
    own = kwargs.get("dtype", dtype)
    if sizes is None or not isinstance(own, Node):
        return Opaque(snippet(e), made=True)
    return tensor(
        cx, st, sizes, dtype if own is cx.none else own, kwargs.get("device", device), None
    )


_METHODS: Final[dict[str, Rule]] = {
    "size": _size_method,
    "stride": _stride,
    "numel": _numel,
    "nelement": _numel,
    "dim": _dim,
    "ndimension": _dim,
    "element_size": _element_size,
    "is_contiguous": _is_contiguous,
    "t": _t,
    "transpose": _transpose,
    "view": _view,
    "reshape": _view,
    "to": _to,
    "unsqueeze": _unsqueeze,
    "flatten": _flatten,
    "is_floating_point": _is_floating_point,
    "new_empty": _new,
    "new_zeros": _new,
    "new_ones": _new,
    "new_full": _new,
}


# -- functions that make tensors -----------------------------------------------------------------


ALLOCATORS: Final = frozenset(
    {"torch.empty", "torch.zeros", "torch.ones", "torch.full", "torch.rand", "torch.randn"}
)
LIKE: Final = frozenset(
    {
        "torch.empty_like",
        "torch.zeros_like",
        "torch.ones_like",
        "torch.full_like",
        "torch.rand_like",
    }
)


def allocate(
    cx: Lowering, st: State, e: ast.Call, name: str, args: tuple[V, ...], kwargs: dict[str, V]
) -> V:
    """`torch.empty(...)` and its kin."""
    dtype = kwargs.get("dtype")
    if name in LIKE:
        source = args[0] if args else kwargs.get("input")
        if not isinstance(source, Ref) or not is_tensor(cx, st, source):
            return Opaque(snippet(e), made=True)
        shape, own, device, _ = parts(cx, st, source)
        return tensor(
            cx,
            st,
            shape,
            dtype if isinstance(dtype, Node) else own,
            kwargs.get("device", device),
            None,
        )
    single = name == "torch.full" or len(args) == 1
    sizes = _sizes(
        cx, st, e, kwargs["size"] if "size" in kwargs else args[0] if args and single else Tup(args)
    )
    if sizes is None or not isinstance(dtype, Node) or dtype is cx.none:
        return Opaque(snippet(e), made=True)
    return tensor(cx, st, sizes, dtype, kwargs.get("device", Opaque("device", made=True)), None)


def _sizes(cx: Lowering, st: State, e: ast.Call, value: V) -> list[Node] | None:
    """The sizes that a tensor is made with: a sequence of integers, or one integer."""
    items: tuple[V, ...] = (value,)
    if isinstance(value, Tup) or (isinstance(value, Ref) and not is_tensor(cx, st, value)):
        items = iteration.iterate(cx, st, value, e)
    nodes = [s for s in items if isinstance(s, Node) and cx.abs(s).kinds <= {"int"}]
    return nodes if len(nodes) == len(items) else None
