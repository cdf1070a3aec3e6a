"""Models of what lies outside the source: environment variables, files, library functions."""

from __future__ import annotations

import ast
import hashlib
import json
import math
import os.path
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from selc.frontend import access, arity, expr, iteration, literals, methods, names
from selc.frontend.context import Lowering, snippet
from selc.frontend.state import State
from selc.frontend.values import Choice, DictObj, External, FileV, InstObj, Mask, Ref, V
from selc.ir.graph import Node
from selc.ir.op import Op

if TYPE_CHECKING:
    from selc.frontend.source import ModuleSource


# -- the environment -----------------------------------------------------------------------------


def environ_value(cx: Lowering, st: State, e: ast.AST, name: str) -> str | None:
    """An environment variable as the facts state it."""
    if name not in cx.facts.env:
        cx.need(
            e,
            f"env:\n  {name}: null",
            f"the environment variable `{name}` is read here; null means unset",
        )
    cx.read.add(f"env.{name}")
    return cx.facts.env[name]


def _written(cx: Lowering, st: State, name: str) -> V | None:
    return st.scopes.get(-1, {}).get(name)


def environ_get(cx: Lowering, st: State, e: ast.AST, name: str, default: V) -> V:
    """`os.environ.get(name, default)`."""
    written = _written(cx, st, name)
    if isinstance(written, Choice):
        value = environ_value(cx, st, e, name)
        return names.filled(written, default if value is None else cx.graph.const(value))
    if written is not None:
        return written
    value = environ_value(cx, st, e, name)
    return default if value is None else cx.graph.const(value)


def _variable(cx: Lowering, st: State, e: ast.AST, index: V) -> str:
    key = access.static_key(cx, st, index, e)
    if not isinstance(key, str):
        cx.refuse(e, "SEL901", "an environment variable's name must be a string")
    return key


def environ_item(cx: Lowering, st: State, e: ast.Subscript, index: V) -> V:
    """`os.environ[name]`."""
    name = _variable(cx, st, e, index)
    value = environ_get(cx, st, e, name, cx.none)
    if value is cx.none:
        cx.partial(st, e, cx.false, "KeyError", f"the environment variable `{name}` must be set")
        return cx.graph.add(Op.FAIL)
    return value


def environ_has(cx: Lowering, st: State, e: ast.expr, index: V) -> Node:
    """`name in os.environ`."""
    return cx.graph.const(
        environ_get(cx, st, e, _variable(cx, st, e, index), cx.none) is not cx.none
    )


def environ_store(cx: Lowering, st: State, e: ast.AST, index: V, value: V) -> None:
    """`os.environ[name] = value`: seen by later reads on the same path."""
    st.scopes.setdefault(-1, {})[_variable(cx, st, e, index)] = value


def engine_env(cx: Lowering, st: State, e: ast.expr, source: ModuleSource, name: str) -> V:
    """`envs.NAME` of an engine's env module: its own reader, run on the facts' environment."""
    if _reads(source, name):
        table = names.module_value(cx, State(cx.true), source, "environment_variables", e)
        if isinstance(table, Ref):
            obj = cx.heap.get(st, table)
            if isinstance(obj, DictObj) and name in obj.entries:
                from selc.frontend import calls

                environ_value(cx, st, e, name)
                return calls.invoke(cx, st, e, obj.entries[name].value, (), {})
    value = names.module_value(cx, st, source, name, e)
    if value is not None and name not in cx.facts.env:
        return value
    return literals.from_python(cx, st, environ_value(cx, st, e, name))


def _reads(source: ModuleSource, name: str) -> bool:
    return bool(source.segments_binding("environment_variables")) and f'"{name}"' in source.text


# -- files ---------------------------------------------------------------------------------------


def read_file(cx: Lowering, st: State, e: ast.AST, value: V) -> Path:
    """The path of a file that the program reads, as compile time sees it."""
    known = cx.known(expr.as_node(cx, st, value, e))
    if known is None or not isinstance(known[0], str):
        cx.refuse(e, "SEL901", "a file name that depends on an input is not supported")
    return mapped(cx, known[0])


def mapped(cx: Lowering, text: str) -> Path:
    """A path after the `files:` facts (`pattern: folder`)."""
    path = Path(text)
    for pattern, folder in cx.facts.files.items():
        if path.match(pattern):
            cx.read.add(f"files.{pattern}")
            return Path(folder) / path.name if Path(folder).is_dir() else Path(folder)
    return path


def load_json(cx: Lowering, st: State, e: ast.AST, file: FileV) -> V:
    """`json.load(file)`."""
    try:
        data = file.path.read_bytes()
        document = json.loads(data)
    except (OSError, ValueError) as error:
        cx.refuse(
            e,
            "SEL908",
            f"cannot read `{file.path.name}` as JSON: {error}",
            help="check the file, or state its content under `tables:`",
        )
    cx.sources[str(file.path)] = hashlib.blake2b(data, digest_size=16).hexdigest()
    return literals.from_json(cx, st, document)


# -- functions of libraries ----------------------------------------------------------------------


Model = Callable[[Lowering, State, ast.Call, tuple[V, ...], dict[str, V]], V]


def _unary(op: Op) -> Model:
    def model(cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]) -> V:
        return cx.op(st, e, op, expr.as_node(cx, st, args[0], e))

    return model


def _fold(function: Callable[..., object]) -> Model:
    """A function of arguments that are known, or one of a few known values each."""

    def model(cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]) -> V:
        if kwargs:
            cx.refuse(e, "SEL901", f"`{snippet(e.func)}` with keyword arguments is not supported")
        nodes = [expr.as_node(cx, st, a, e) for a in args]
        values = []
        for i, node in enumerate(nodes):
            known = cx.known(node)
            if known is None:

                def with_value(s: State, v: object, i: int = i) -> V:
                    return model(cx, s, e, (*nodes[:i], cx.graph.const(v), *nodes[i + 1 :]), {})

                return expr._sited(cx, st, e, expr.split(cx, st, node, e, with_value))
            values.append(known[0])
        try:
            return literals.from_python(cx, st, function(*values))
        except (TypeError, ValueError, ArithmeticError) as error:
            cx.partial(st, e, cx.false, type(error).__name__, f"`{snippet(e)}` must not raise")
            return cx.graph.add(Op.FAIL)

    return model


def _getenv(cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]) -> V:
    default = args[1] if len(args) > 1 else kwargs.get("default", cx.none)
    return environ_get(cx, st, e, _variable(cx, st, e, args[0]), default)


def _exists(cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]) -> V:
    path = read_file(cx, st, e, args[0])
    there = path.exists()
    cx.sources[str(path)] = cx.sources.get(str(path), "exists" if there else "absent")
    return cx.graph.const(there)


def _json_load(
    cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]
) -> V:
    if not isinstance(args[0], FileV):
        cx.refuse(e, "SEL901", "`json.load` of something that is not an open file")
    return load_json(cx, st, e, args[0])


def _next_power_of_2(
    cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]
) -> V:
    """triton.next_power_of_2, by its bit tricks: 0 for 0, else the least power of two >= n."""
    n = expr.as_node(cx, st, args[0], e)
    a = cx.abs(n)
    if not a.is_integral or a.lo is None or a.lo < 0 or a.hi is None or a.hi >= 1 << 62:
        cx.refuse(
            e,
            "SEL901",
            "`next_power_of_2` needs a bounded, non-negative integer",
            help="narrow the input's range",
        )
    one = cx.graph.const(1)
    bits = cx.graph.fold(Op.BIT_LENGTH, cx.graph.fold(Op.SUB, n, one))
    power = cx.graph.fold(Op.LSHIFT, one, cx.graph.fold(Op.MAX2, bits, cx.graph.const(0)))
    zero = cx.graph.fold(Op.LE, n, cx.graph.const(0))
    return cx.op(st, e, Op.SELECT, zero, cx.graph.const(0), power)


def _cdiv(cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]) -> V:
    """triton.cdiv: (a + b - 1) // b."""
    a, b = (expr.as_node(cx, st, v, e) for v in args)
    up = cx.graph.fold(Op.SUB, cx.graph.fold(Op.ADD, a, b), cx.graph.const(1))
    return cx.op(st, e, Op.FLOORDIV, up, b)


def _log2(cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]) -> V:
    return cx.op(st, e, Op.LOG2, expr.as_node(cx, st, args[0], e))


def _prod(cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]) -> V:

    out = expr.as_node(cx, st, kwargs.get("start", cx.graph.const(1)), e)
    for item in iteration.iterate(cx, st, args[0], e):
        out = cx.op(st, e, Op.MUL, out, expr.as_node(cx, st, item, e))
    return out


def _bisect(right: bool) -> Model:
    def model(cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]) -> V:

        items = [expr.as_node(cx, st, v, e) for v in iteration.iterate(cx, st, args[0], e)]
        values = [cx.known(n) for n in items]
        if len(args) > 2 or kwargs or any(v is None for v in values):
            cx.refuse(e, "SEL901", "bisection of a list that depends on an input is not supported")
        known = [v[0] for v in values if v is not None]
        if any(not isinstance(v, (int, float)) for v in known) or known != sorted(known):  # type: ignore[type-var]  # numbers
            cx.refuse(e, "SEL901", "bisection needs a sorted list of numbers")
        x = expr.as_node(cx, st, args[1], e)
        out: Node = cx.graph.const(len(known))
        for i in reversed(range(len(known))):
            stop = cx.graph.fold(Op.LT if right else Op.LE, x, cx.graph.const(known[i]))
            out = cx.graph.select(stop, cx.graph.const(i), out)
        return cx.op(st, e, Op.SELECT, *out.args) if out.op is Op.SELECT else out

    return model


def _cond(cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]) -> V:
    """torch.cond: one of two functions on the same operands."""
    from selc.frontend import calls

    names_ = ("pred", "true_fn", "false_fn", "operands")
    given = {**dict(zip(names_, args, strict=False)), **kwargs}
    if not set(names_[:3]) <= set(given):
        cx.refuse(e, "SEL901", "`torch.cond` needs a condition and two functions")
    operands = iteration.iterate(cx, st, given["operands"], e) if "operands" in given else ()
    cond = expr.truth(cx, st, given["pred"], e)
    return cx.branch(
        st,
        cond,
        lambda s: calls.invoke(cx, s, e, given["true_fn"], operands, {}),
        lambda s: calls.invoke(cx, s, e, given["false_fn"], operands, {}),
    )


def _typing_cast(
    cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]
) -> V:
    return args[1]


def _replace(cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]) -> V:
    """dataclasses.replace: a new object from the old fields and the given ones."""
    from selc.frontend import access, calls

    if len(args) == 1 and isinstance(args[0], Choice):
        return expr.each(cx, st, args[0], lambda s, v: _replace(cx, s, e, (v,), kwargs))
    obj = cx.obj(st, args[0], e) if len(args) == 1 and isinstance(args[0], Ref) else None
    if not isinstance(obj, InstObj) or obj.cls is None or not calls.is_record_class(cx, obj.cls):
        cx.refuse(e, "SEL901", f"`{snippet(e)}`: only followed dataclasses can be replaced")
    fields = calls.all_fields(cx, obj.cls)
    if any(default is not None and "init=" in ast.unparse(default) for _, default, _ in fields):
        cx.refuse(e, "SEL901", f"`{snippet(e)}`: a field is not set by the constructor")
    old = {
        name: access.entry_value(cx, st, e, obj.fields[name], "AttributeError", name)
        for name, _, _ in fields
        if name in obj.fields and name not in kwargs
    }
    return calls.instantiate(cx, st, e, obj.cls, (), {**old, **kwargs})


def _copy(cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]) -> V:

    return methods.copied(cx, st, e, args[0], deep="deep" in snippet(e.func))


def _logger(cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]) -> V:
    return External("selc.logger")


def _mask(universal: bool) -> Model:
    """numpy.all, torch.any and so on, of a sequence compared with a number."""

    def model(cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]) -> V:
        from selc.frontend import sequences

        if len(args) == 1 and not kwargs and isinstance(args[0], Mask):
            return sequences.quantified(cx, st, e, args[0], universal)
        cx.need(
            e,
            f'functions:\n  "{snippet(e.func)}": ...',
            f"`{snippet(e)}` is a library function that selc does not model here",
        )

    return model


MODELS: Final[dict[str, Model]] = {
    "numpy.all": _mask(True),
    "numpy.any": _mask(False),
    "torch.all": _mask(True),
    "torch.any": _mask(False),
    "os.getenv": _getenv,
    "os.environ.get": _getenv,
    "os.path.exists": _exists,
    "os.path.isfile": _exists,
    "os.path.join": _fold(os.path.join),
    "os.path.dirname": _fold(os.path.dirname),
    "os.path.realpath": _fold(os.path.abspath),
    "os.path.abspath": _fold(os.path.abspath),
    "os.path.basename": _fold(os.path.basename),
    "json.load": _json_load,
    "math.ceil": _unary(Op.CEIL),
    "math.floor": _unary(Op.FLOOR),
    "math.trunc": _unary(Op.TRUNC),
    "math.sqrt": _unary(Op.SQRT),
    "math.log2": _log2,
    "math.prod": _prod,
    "math.gcd": _fold(math.gcd),
    "triton.next_power_of_2": _next_power_of_2,
    "triton.cdiv": _cdiv,
    "bisect.bisect": _bisect(True),
    "bisect.bisect_right": _bisect(True),
    "bisect.bisect_left": _bisect(False),
    "typing.cast": _typing_cast,
    "dataclasses.replace": _replace,
    "torch.cond": _cond,
    "copy.copy": _copy,
    "copy.deepcopy": _copy,
    "logging.getLogger": _logger,
}
"""Library functions that are modelled, by qualified name; `functions:` facts come first."""


def call(
    cx: Lowering, st: State, e: ast.Call, name: str, args: tuple[V, ...], kwargs: dict[str, V]
) -> V:
    """A modelled library function."""
    arity.check(cx, e, arity.FUNCTIONS.get(name), args, kwargs)
    return MODELS[name](cx, st, e, args, kwargs)


ENGINE_MODELS: Final[dict[str, Model]] = {"init_logger": _logger}
"""Engine helpers that are modelled by their last name."""

NO_EFFECT: Final = frozenset({"selc.logger", "warnings.warn", "logging", "builtins.print"})
"""Calls whose effects no selection can see."""
