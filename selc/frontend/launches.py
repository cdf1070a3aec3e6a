"""Opaque calls: kernels and library operations whose arguments are the choices.

A call that cannot be looked into is a launch. Its constexprs and keyword options are choices, and
so is the callee that a path takes. What has been launched on a path is part of the state, so joins
gate it like any variable.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from selc.frontend import expr, names, reading, tensors, tuning
from selc.frontend.context import Lowering, snippet
from selc.frontend.literals import FROM_FACTS
from selc.frontend.state import State
from selc.frontend.values import (
    Bound,
    Choice,
    Cls,
    DictObj,
    External,
    Func,
    InstObj,
    ListObj,
    Opaque,
    Partial,
    Ref,
    Tup,
    Unbound,
    V,
)
from selc.ir.graph import Node, is_place
from selc.ir.op import Op

if TYPE_CHECKING:
    from selc.frontend.source import ModuleSource

SCOPE: Final = -2
"""The pseudo-scope of a state that holds what has been launched."""

COUNTS: Final = -3
"""The pseudo-scope that counts the launches of each callee."""

ATTRIBUTES: Final = -4
"""The pseudo-scope of assigned attributes: what they hold counts when the function returns."""

CALL: Final = "call"

TENSOR: Final = "<tensor>"
"""What stands for an argument that is no choice by itself, where paths pass different ones."""

QUERIES: Final = ("is_", "has_", "get_", "supports_", "can_", "should_", "current_", "use_")
"""Opaque functions of these names answer questions; they launch nothing."""

QUIET: Final = frozenset(
    {
        "arange",
        "tensor",
        "as_tensor",
        "cat",
        "stack",
        "device",
        "finfo",
        "iinfo",
        "promote_types",
        "result_type",
        "Generator",
        "Size",
        "numel",
        "is_tensor",
        "compile",
        "no_grad",
        "broadcast_shapes",
        "set_default_dtype",
    }
)
"""torch functions that build or describe tensors: what they compute is no kernel's choice."""

TENSOR_METHODS: Final = frozenset(
    {
        "T", "add", "add_", "as_strided", "bfloat16", "bool", "byte", "chunk", "clamp",
        "clamp_", "clone", "contiguous", "copy_", "cpu", "cuda", "data_ptr", "detach", "diff",
        "dim", "div", "div_", "element_size", "eq", "exp", "exp_", "expand", "expand_as",
        "fill_", "flatten", "float", "gather", "ge", "gt", "half", "index_copy_", "index_fill_",
        "index_select", "int", "item", "le", "long", "lt", "masked_fill", "masked_fill_",
        "masked_scatter_", "mT", "mul", "mul_", "narrow", "ndimension", "ne", "neg", "nelement",
        "new_empty", "new_full", "new_ones", "new_tensor", "new_zeros", "nonzero", "numel",
        "numpy", "permute", "pin_memory", "pow", "reciprocal", "record_stream", "repeat",
        "repeat_interleave", "requires_grad_", "reshape", "resize_", "roll", "rsqrt", "scatter",
        "scatter_", "select", "set_", "sigmoid", "sign", "size", "split", "split_with_sizes",
        "sqrt", "square", "squeeze", "squeeze_", "storage_offset", "stride", "sub", "sub_",
        "swapaxes", "t", "t_", "tanh", "tile", "to", "tolist", "transpose", "transpose_",
        "tril", "triu", "type", "type_as", "unbind", "unflatten", "unfold", "unsqueeze",
        "unsqueeze_", "untyped_storage", "view", "view_as", "where", "zero_",
    }
)  # fmt: skip
"""Methods of tensors that move or convert elements, or work on each by itself: no launches."""


NUMBERS: Final = frozenset(
    {
        "item", "tolist", "numel", "nelement", "size", "dim", "ndimension", "element_size",
        "storage_offset", "stride", "numpy",
    }
)  # fmt: skip
"""Methods of tensors that give numbers."""

FIELDS: Final = frozenset({"shape", "ndim", "nbytes", "itemsize"})
"""Attributes of tensors that are numbers."""


# -- what is a launch, and of what ---------------------------------------------------------------


def is_query(name: str) -> bool:
    """Whether a function of this name answers a question and launches nothing."""
    return name.rpartition(".")[2].lstrip("_").startswith(QUERIES)


def is_launch(callee: Opaque, func: ast.expr) -> bool:
    """Whether calling something that cannot be followed is a launch."""
    if callee.made:
        if not isinstance(func, ast.Attribute):
            return True
        return func.attr not in TENSOR_METHODS and not func.attr.startswith(QUERIES)
    return records(callee.text)


def records(name: str) -> bool:
    """Whether calling a name that cannot be followed is a launch."""
    last = name.rpartition(".")[2]
    if (
        last.startswith(QUERIES)
        or name.split(".")[0] in sys.stdlib_module_names
        or name.startswith(("torch.cuda.", "torch.distributed.get", "numpy.", "torch.testing."))
    ):
        return False
    return not (
        name.startswith("torch.")
        and (last in QUIET or name in tensors.ALLOCATORS or name in tensors.LIKE)
    )


def is_data(callee: Opaque, func: ast.expr, launched: bool) -> bool:
    """Whether a call may give a number: the answer to a question, a tensor's data or size."""
    if callee.made:
        return isinstance(func, ast.Attribute) and (
            func.attr in NUMBERS or func.attr.startswith(QUERIES)
        )
    if launched:
        return False
    last = callee.text.rpartition(".")[2]
    return (
        not callee.text.startswith("torch.")
        or last.startswith(QUERIES)
        or callee.text.startswith("torch.cuda.")
    )


def derived(cx: Lowering, e: ast.AST, *operands: V) -> Opaque:
    """The value of an expression with operands that selc does not look into."""
    data = next((v for v in operands if isinstance(v, Opaque) and v.data), None)
    known = data or next((v for v in operands if isinstance(v, Opaque) and v.query), None)
    return Opaque(snippet(e), query=known.query if known else "", made=True, data=data is not None)


def definition(node: ast.FunctionDef | ast.Lambda, qualname: str, home: str) -> Opaque:
    """A function that is not followed, with what its definition says of its parameters."""
    every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    constexprs = frozenset(
        a.arg
        for a in every
        if a.annotation is not None and "constexpr" in ast.unparse(a.annotation)
    )
    return Opaque(qualname, tuple(a.arg for a in every), constexprs, home=home)


def is_kernel(value: V) -> bool:
    """Whether `value[grid](...)` is a launch."""
    if isinstance(value, Choice):
        return is_kernel(value.then) and is_kernel(value.other)
    return isinstance(value, (Opaque, Func, External)) and value != External("os.environ")


def kernels(value: V) -> V:
    """The kernels that a value may be."""
    if isinstance(value, Choice):
        return Choice(value.cond, kernels(value.then), kernels(value.other))
    if isinstance(value, Func):
        return definition(value.node, value.qualname, value.module.module_name)
    return Opaque(value.name) if isinstance(value, External) else value


def stated(cx: Lowering, st: State, func: ast.expr) -> Opaque:
    """The callee that the facts declare to be the kernel, its parameters read at its definition."""
    text = snippet(func.value if isinstance(func, ast.Subscript) else func)
    if isinstance(func, ast.Subscript):
        func = func.value
    node, bound = _method(cx, st, func)
    if node is None:
        name = names.qualified(cx, st, func)
        node = None if name is None else _defined(cx, names.origin(cx, name))
    if node is None:
        return Opaque(text)
    known = definition(node, text, "")
    skip = 1 if bound and known.parameters else 0
    return Opaque(text, known.parameters[skip:], known.constexprs)


def _method(cx: Lowering, st: State, func: ast.expr) -> tuple[ast.FunctionDef | None, bool]:
    """The method of a local object that a call names, and whether its first parameter is bound."""
    if not isinstance(func, ast.Attribute) or not isinstance(func.value, ast.Name):
        return None, False
    owner = names.local_value(cx, st, func.value.id)
    if not isinstance(owner, Ref):
        return None, False
    obj = cx.heap.get(st, owner)
    if not isinstance(obj, InstObj) or obj.cls is None:
        return None, False
    member = reading.class_member(cx, st, obj.cls, func.attr)
    if isinstance(member, Func) and isinstance(member.node, ast.FunctionDef):
        return member.node, member.flavour != "static"
    return None, False


def _defined(cx: Lowering, name: str) -> ast.FunctionDef | None:
    """The definition of a dotted name, if every definition of it has the same parameters."""
    base, _, last = name.rpartition(".")
    source = cx.finder.find(base) if base else None
    found: list[ast.FunctionDef] = []
    if source is not None:
        found = [n for n in _top(source, last) if isinstance(n, ast.FunctionDef) and n.name == last]
    elif base:
        outer, _, cls = base.rpartition(".")
        source = cx.finder.find(outer) if outer else None
        if source is not None:
            for node in _top(source, cls):
                if isinstance(node, ast.ClassDef) and node.name == cls:
                    found += [
                        n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == last
                    ]
            found = [_unbound(n) for n in found]
    if not found and source is not None:
        target = names.import_target(cx, source, last)
        return (
            _defined(cx, names.origin(cx, target))
            if target is not None and target != name
            else None
        )
    if not found or len({ast.dump(n.args) for n in found}) > 1:
        return None
    return found[0]


def _top(source: ModuleSource, name: str) -> list[ast.stmt]:
    """Statements of a module, also those inside `if` and `try`, that may define a name."""
    todo: list[ast.stmt] = [n for s in source.segments_binding(name) for n in source.parse(s)]
    out: list[ast.stmt] = []
    while todo:
        node = todo.pop()
        out.append(node)
        if isinstance(node, (ast.If, ast.Try)):
            handlers = [h.body for h in node.handlers] if isinstance(node, ast.Try) else []
            todo += [n for part in (node.body, node.orelse, *handlers) for n in part]
    return out


def _unbound(node: ast.FunctionDef) -> ast.FunctionDef:
    """A method as it is called through its class: a class method without its first parameter."""
    if any(ast.unparse(d).rpartition(".")[2] == "classmethod" for d in node.decorator_list):
        rest = ast.arguments(
            node.args.posonlyargs,
            node.args.args[1:],
            node.args.vararg,
            node.args.kwonlyargs,
            node.args.kw_defaults,
            node.args.kwarg,
            node.args.defaults,
        )
        return ast.FunctionDef(node.name, rest, node.body, [], None)
    return node


# -- recording -----------------------------------------------------------------------------------


def launch(
    cx: Lowering,
    st: State,
    e: ast.Call,
    spelling: str,
    callee: Opaque,
    args: tuple[V, ...],
    kwargs: Mapping[str, V],
) -> None:
    """Note a launch on this path; its result cannot be seen."""
    note(cx, st, _taken(cx, callee) if e in cx.chosen_calls else spelling)
    tuning.note(cx, st, e, callee, args, kwargs)
    parameters, constexprs = callee.parameters, callee.constexprs
    passed: dict[str, tuple[V, str]] = {}
    for i, value in enumerate(args):
        key = parameters[i] if i < len(parameters) else f"[{i}]"
        passed.update(_parts(cx, st, key, value, "bits" if key in constexprs else "aux", e))
    for key, value in kwargs.items():
        plain = key in parameters and key not in constexprs and bool(constexprs)
        passed.update(_parts(cx, st, key, value, "aux" if plain else "bits", e))
    counts = st.scopes.setdefault(COUNTS, {})
    before = counts.get(spelling, cx.graph.const(0))
    known = st.scopes[SCOPE]
    st.scopes[SCOPE] = _recorded(cx, known, spelling, before, passed)
    counts[spelling] = _counted(cx, before)


def _recorded(
    cx: Lowering, known: dict[str, V], spelling: str, count: V, passed: Mapping[str, tuple[V, str]]
) -> dict[str, V]:
    """What has been launched, and the launch after `count` others of this callee."""
    if isinstance(count, Node) and count.is_const:
        n = count.attr + 1 if isinstance(count.attr, int) else 1
        name = spelling if n == 1 else f"{spelling}#{n}"
        out = dict(known)
        for key, (value, role) in passed.items():
            point = f"{name}{key}" if key.startswith("[") else f"{name}.{key}"
            out[point] = value
            if cx.launch_roles.get(point) != "bits":
                cx.launch_roles[point] = role
        return out
    cond, then, other = _cases(cx, count)
    a = _recorded(cx, known, spelling, then, passed)
    b = _recorded(cx, known, spelling, other, passed)
    return {k: _either(cx, cond, a.get(k, Unbound(k)), b.get(k, Unbound(k))) for k in {**a, **b}}


def _cases(cx: Lowering, count: V) -> tuple[Node, V, V]:
    """A count that depends on the path, by its condition; not set means none so far."""
    if isinstance(count, Choice):
        none = cx.graph.const(0)
        return (
            count.cond,
            none if isinstance(count.then, Unbound) else count.then,
            none if isinstance(count.other, Unbound) else count.other,
        )
    assert isinstance(count, Node)
    assert count.op is Op.SELECT
    return count.args[0], count.args[1], count.args[2]


def _counted(cx: Lowering, count: V) -> V:
    if isinstance(count, Node) and count.is_const:
        return cx.graph.const(count.attr + 1 if isinstance(count.attr, int) else 1)
    cond, then, other = _cases(cx, count)
    return _either(cx, cond, _counted(cx, then), _counted(cx, other))


def _either(cx: Lowering, cond: Node, a: V, b: V) -> V:
    if a is b:
        return a
    return (
        cx.graph.select(cond, a, b)
        if isinstance(a, Node) and isinstance(b, Node)
        else Choice(cond, a, b)
    )


def note(cx: Lowering, st: State, text: str) -> None:
    """Add a callee to those that this path has taken."""
    known = st.scopes.setdefault(SCOPE, {})
    known[CALL] = _after(cx, known.get(CALL), text)
    cx.launch_roles.setdefault(CALL, "bits")


def _taken(cx: Lowering, callee: Opaque) -> str:
    """A name for a callee that its source text at the call does not tell."""
    if cx.kernel_homes.setdefault(callee.text, callee.home) == callee.home:
        return callee.text
    return f"{callee.home}.{callee.text}"


def _after(cx: Lowering, before: V | None, text: str) -> V:
    """The callees so far, and one more."""
    if isinstance(before, Choice):
        return Choice(before.cond, _after(cx, before.then, text), _after(cx, before.other, text))
    return _extended(cx, before, text, {}) if isinstance(before, Node) else cx.graph.const(text)


def _extended(cx: Lowering, before: Node, text: str, done: dict[int, Node]) -> Node:
    if before.id not in done:
        if before.op is Op.SELECT:
            cond, a, b = before.args
            done[before.id] = cx.graph.select(
                cond, _extended(cx, a, text, done), _extended(cx, b, text, done)
            )
        else:
            done[before.id] = cx.graph.fold(Op.ADD, before, cx.graph.const(" + " + text))
    return done[before.id]


# -- arguments as choices ------------------------------------------------------------------------


def returned(cx: Lowering, st: State, value: V, name: str, e: ast.AST) -> dict[str, Node]:
    """The choices among what a function with an opaque tail returns; tensors are none."""
    if isinstance(value, Choice):
        leaves = _leaves(value)
        for leaf in leaves:
            if isinstance(leaf, Opaque) and leaf.data:
                expr.needed(cx, e, leaf)
        if not any(isinstance(v, (Tup, Ref)) and not tensors.is_tensor(cx, st, v) for v in leaves):
            if all(v is cx.none or tensors.is_opaque(cx, st, v) for v in leaves):
                return {}
            return {name or "result": _null(cx, _choice(cx, st, value))}
        a, b = returned(cx, st, value.then, name, e), returned(cx, st, value.other, name, e)
        return {
            k: cx.graph.select(value.cond, a.get(k, cx.none), b.get(k, cx.none)) for k in {**a, **b}
        }
    if isinstance(value, Node):
        return {} if value is cx.none else {name or "result": value}
    if isinstance(value, Opaque) and value.data:
        expr.needed(cx, e, value)
    parts: list[tuple[str, V]] = []
    if isinstance(value, Tup):
        names_ = [f"{name}.{f}" if name else f for f in value.fields] or [
            f"{name}[{i}]" for i in range(len(value.items))
        ]
        parts = list(zip(names_, value.items, strict=True))
    elif isinstance(value, Ref) and not tensors.is_tensor(cx, st, value):
        obj = cx.heap.get(st, value)
        if isinstance(obj, ListObj):
            parts = [(f"{name}[{i}]", v) for i, v in enumerate(obj.items)]
        elif obj.frozen != FROM_FACTS:
            entries = obj.entries if isinstance(obj, DictObj) else obj.fields
            parts = [(f"{name}.{k}" if name else str(k), x.value) for k, x in entries.items()]
    return {k: v for part, inner in parts for k, v in returned(cx, st, inner, part, e).items()}


def _parts(
    cx: Lowering,
    st: State,
    key: str,
    value: V,
    role: str,
    e: ast.AST,
    inside: frozenset[int] = frozenset(),
) -> dict[str, tuple[V, str]]:
    """The choices in an argument: itself, or the entries of a dict or of an object made here."""
    if role == "bits":
        for leaf in _leaves(value):
            if isinstance(leaf, Opaque) and leaf.data:
                expr.needed(cx, e, leaf)
            if isinstance(leaf, Ref) and not tensors.is_tensor(cx, st, leaf):
                held = cx.obj(st, leaf, e)
                if isinstance(held, (ListObj, DictObj)) and held.unknown:
                    names.refuse_state(cx, e, held.unknown)
    if isinstance(value, Ref) and not tensors.is_tensor(cx, st, value):
        obj = cx.heap.get(st, value)
        made_here = isinstance(obj, DictObj) or (
            isinstance(obj, InstObj) and obj.name != tensors.DEVICE
        )
        if made_here and obj.frozen != FROM_FACTS and not isinstance(obj, ListObj):
            if value.oid in inside:
                return {}
            within = inside | {value.oid}
            out: dict[str, tuple[V, str]] = {}
            entries = obj.entries if isinstance(obj, DictObj) else obj.fields
            for name, entry in entries.items():
                found = _parts(cx, st, f"{key}.{name}", entry.value, role, e, within)
                for inner, (v, r) in found.items():
                    out[inner] = (
                        _either(cx, entry.present, v, Unbound(inner))
                        if cx.known_bool(entry.present) is not True
                        else v,
                        r,
                    )
            return out
    return {key: (_choice(cx, st, value), role)} if _is_choice(cx, st, value) else {}


def _is_choice(cx: Lowering, st: State, value: V) -> bool:
    """Whether an argument is one: numbers and names are, tensors are not."""
    if isinstance(value, Choice):
        passed = [v for v in _leaves(value) if not isinstance(v, Unbound)]
        return any(_is_choice(cx, st, v) for v in passed)
    if isinstance(value, (Node, Unbound, External, Func, Cls, Bound, Partial)):
        return True
    if isinstance(value, Opaque):
        return not value.made
    items = _items(cx, st, value)
    return items is not None and (not items or any(_is_choice(cx, st, v) for v in items))


def _leaves(value: V) -> list[V]:
    return [*_leaves(value.then), *_leaves(value.other)] if isinstance(value, Choice) else [value]


def _items(cx: Lowering, st: State, value: V) -> tuple[V, ...] | None:
    """The elements of a tuple or list."""
    if isinstance(value, Tup):
        return value.items
    if isinstance(value, Ref) and not tensors.is_tensor(cx, st, value):
        obj = cx.heap.get(st, value)
        if isinstance(obj, ListObj) and not obj.unknown:
            return obj.items
    return None


def _choice(cx: Lowering, st: State, value: V) -> V:
    """An argument as a scalar; what is no choice by itself is the same everywhere."""
    match value:
        case Node() | Unbound():
            return value
        case Choice():
            then, other = _choice(cx, st, value.then), _choice(cx, st, value.other)
            return _either(cx, value.cond, then, other)
        case External():
            return cx.graph.const(value.name)
        case Func() | Cls():
            return cx.graph.const(value.qualname)
        case Bound():
            return cx.graph.const(value.func.qualname)
        case Partial():
            return _choice(cx, st, Tup((value.func, *value.args, *value.kwargs.values())))
        case Opaque() if not value.made:
            return cx.graph.const(value.text)
        case _:
            pass
    items = _items(cx, st, value)
    if items is not None and _is_choice(cx, st, value):
        return cx.graph.fold(Op.TUPLE, *[_null(cx, _choice(cx, st, v)) for v in items])
    return cx.graph.const(TENSOR)


def assigned(cx: Lowering, st: State, point: str, value: V, e: ast.AST) -> None:
    """An attribute of an object that outlives the call is a choice too."""
    st.scopes.setdefault(ATTRIBUTES, {})[point] = value
    cx.assigned_at[point] = e


def site_of(cx: Lowering, value: Node) -> str | None:
    """The key of the site whose value a choice is: the variable it names, else the expression."""
    keys: set[str | None] = set()
    todo = [value]
    while todo:
        node = todo.pop()
        if node.op is Op.SELECT and not node.site:
            todo += node.args[1:]
        elif is_place(node):
            todo += node.args
        elif not (node.is_const and node.attr is None):
            keys.add(cx.key_of(node))
    return keys.pop() if len(keys) == 1 else None


def points(cx: Lowering, st: State) -> dict[str, Node]:
    """Every recorded choice; null on paths that do not make it."""
    out = {name: _null(cx, value) for name, value in st.scopes.get(SCOPE, {}).items()}
    for point, value in st.scopes.get(ATTRIBUTES, {}).items():
        for name, (found, _) in _parts(cx, st, point, value, "bits", cx.assigned_at[point]).items():
            out[name] = _null(cx, found)
            cx.launch_roles[name] = "bits"
    return out


def _null(cx: Lowering, value: V) -> Node:
    if isinstance(value, Choice):
        return cx.graph.select(value.cond, _null(cx, value.then), _null(cx, value.other))
    return value if isinstance(value, Node) else cx.none
