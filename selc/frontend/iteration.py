"""Iterating over values of known length: loops, comprehensions, `any` and `all` over tests."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import NoReturn

from selc.frontend import access, alive, enums, expr, names, targets
from selc.frontend.context import Lowering, snippet
from selc.frontend.state import State
from selc.frontend.values import (
    Cls,
    DictObj,
    Entry,
    External,
    Func,
    ListObj,
    Ref,
    Tup,
    V,
)
from selc.ir.graph import Node
from selc.ir.op import Op

MAX_ITEMS = 20_000


ITERATORS = frozenset({"enumerate", "iter", "map", "reversed", "zip"})
"""Functions whose results can be gone through once, as generators can."""


def once(cx: Lowering, value: V, e: ast.AST) -> V:
    """Note that a value is used up by its first use."""
    cx.iterators.add(value, e)
    return value


def read(cx: Lowering, e: ast.Name, value: V) -> V:
    """A variable is read; one that holds an iterator is followed through a single reading."""
    if not cx.iterators.name(value):
        _used_up(cx, e)
    return value


def kept(cx: Lowering) -> None:
    """Refuse the iterators that a statement has made and not gone through."""
    for e in cx.iterators.kept():
        cx.refuse(
            e,
            "SEL901",
            f"`{snippet(e)}` is an iterator, which is not gone through where it is made",
            help="take its elements at once: `tuple(...)`",
        )


def operands(cx: Lowering, e: ast.AST, *values: V) -> None:
    """Refuse operators on iterators and views of dicts, which are no tuples."""
    if any(cx.iterators.no_tuple(v) for v in values):
        cx.refuse(
            e,
            "SEL901",
            "an operator on an iterator or on a view of a dict is not supported",
            help="take its elements first: `tuple(...)` or `set(...)`",
        )


def _used_up(cx: Lowering, e: ast.AST) -> NoReturn:
    cx.refuse(
        e,
        "SEL901",
        f"`{snippet(e)}` is an iterator, which its first use uses up, and it is used again",
        help="keep its elements: `tuple(...)`",
    )


def iterate(cx: Lowering, st: State, value: V, e: ast.AST) -> tuple[V, ...]:
    """The elements of a static collection, in order."""
    names.current(cx, st, value)
    if isinstance(value, Tup):
        if not cx.iterators.use(value):
            _used_up(cx, e)
        return value.items
    if isinstance(value, Ref):
        obj = cx.obj(st, value, e)
        if isinstance(obj, (ListObj, DictObj)) and obj.unknown:
            names.refuse_state(cx, e, obj.unknown)
        if isinstance(obj, ListObj):
            if obj.kind == "set" and len(obj.items) > 1:
                cx.refuse(
                    e,
                    "SEL901",
                    "the order of a set is not defined",
                    help="iterate over a tuple or `sorted(...)`",
                )
            return obj.items
        if isinstance(obj, DictObj):
            return tuple(key_value(cx, k) for k in in_order(cx, st, value, e))
    if isinstance(value, Node):
        known = cx.known(value)
        if known is not None and isinstance(known[0], (tuple, str)):
            return tuple(cx.graph.const(v) for v in known[0])
        lengths = {len(v) for v in cx.abs(value).values or () if isinstance(v, (tuple, str))}
        if len(lengths) == 1 and cx.abs(value).kinds <= {"tuple", "str"}:
            return tuple(
                cx.graph.fold(Op.INDEX, value, cx.graph.const(i)) for i in range(lengths.pop())
            )
    if isinstance(value, Cls) and enums.base_of(cx, value) is not None:
        return enums.listed(cx, value)
    cx.refuse(
        e,
        "SEL901",
        f"iterating over {expr.describe(cx, st, value)} needs a length known before serving",
        help="give it as a fact, or as an input with `values:`",
    )


def range_of(cx: Lowering, st: State, e: ast.Call, args: tuple[V, ...], kwargs: dict[str, V]) -> V:
    """`range(...)`, by cases of bounds that can be few values only."""
    values: list[int] = []
    nodes = [expr.as_node(cx, st, a, e) for a in args]
    for node, argument in zip(nodes, e.args, strict=False):
        known = cx.known(node)
        if known is None:
            if cx.abs(node).values:
                return _range_split(cx, st, e, nodes)
            cx.refuse(
                argument,
                "SEL902",
                f"`{snippet(e)}` has a bound that depends on an input",
                help=(
                    "the loop must have a length known before serving: narrow the input, or "
                    "state the result under `functions:`"
                ),
            )
        if not isinstance(known[0], int):
            return _no_range(cx, st, e, "TypeError", f"`{snippet(argument)}` must be an integer")
        values.append(int(known[0]))
    if len(values) == 3 and values[2] == 0:
        return _no_range(cx, st, e, "ValueError", f"the step of `{snippet(e)}` must not be 0")
    steps = range(*values)
    if len(steps) > MAX_ITEMS:
        cx.refuse(
            e,
            "SEL902",
            f"`{snippet(e)}` has {len(steps)} elements, more than {MAX_ITEMS}",
        )
    return Tup(tuple(cx.graph.const(i) for i in steps))


def _no_range(cx: Lowering, st: State, e: ast.Call, exception: str, why: str) -> V:
    cx.partial(st, e, cx.false, exception, why)
    return Tup(())


def _range_split(cx: Lowering, st: State, e: ast.Call, nodes: list[Node]) -> V:
    for i, node in enumerate(nodes):
        if cx.known(node) is None:

            def with_value(s: State, v: object, i: int = i) -> V:
                return range_of(cx, s, e, (*nodes[:i], cx.graph.const(v), *nodes[i + 1 :]), {})

            return expr.split(cx, st, node, e, with_value)
    raise AssertionError


def key_value(cx: Lowering, key: object) -> V:
    """A dict key as a value."""
    if isinstance(key, tuple):
        return Tup(tuple(key_value(cx, k) for k in key))
    return key if isinstance(key, (Cls, Func, External)) else cx.graph.const(key)


def in_order(cx: Lowering, st: State, value: V, e: ast.AST) -> dict[object, Entry]:
    """The entries of a dict whose keys are all certain, and in which order they are."""
    if isinstance(value, Ref):
        known_order(cx, st, value, e)
    return entries_of(cx, st, value, e)


def known_order(cx: Lowering, st: State, ref: Ref, e: ast.AST) -> None:
    """Refuse a dict whose keys are in an order that depends on an input."""
    obj = cx.heap.get(st, ref)
    entries = obj.entries if isinstance(obj, DictObj) else {}
    if len(entries) > 1 and any(entry.loose for entry in entries.values()):
        cx.refuse(
            e,
            "SEL901",
            "in which order this dict has its keys depends on an input",
            help="go through a tuple of the keys",
        )


def entries_of(cx: Lowering, st: State, value: V, e: ast.AST) -> dict[object, Entry]:
    """The entries of a dict whose keys are all certain."""
    if isinstance(value, Ref):
        obj = cx.obj(st, value, e)
        if isinstance(obj, DictObj):
            if obj.unknown:
                names.refuse_state(cx, e, obj.unknown)
            live = {k: v for k, v in obj.entries.items() if cx.known_bool(v.present) is not False}
            if any(cx.known_bool(v.present) is not True for v in live.values()):
                cx.refuse(e, "SEL901", "which keys this dict has depends on an input")
            return live
    cx.refuse(e, "SEL901", f"{expr.describe(cx, st, value)} is used as a dict")


def comprehension(cx: Lowering, st: State, e: ast.expr) -> V:
    """List, set and dict comprehensions and generator expressions over static collections."""
    assert isinstance(e, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp))
    out: list[tuple[V, V]] = []

    def element(s: State, tests: list[ast.expr]) -> None:
        if not _kept(cx, s, tests):
            return
        if isinstance(e, ast.DictComp):
            out.append((expr.lower(cx, s, e.key), expr.lower(cx, s, e.value)))
        else:
            out.append((expr.lower(cx, s, e.elt), cx.none))

    gone: list[V] = []
    heap = dict(st.heap) if isinstance(e, ast.GeneratorExp) else {}
    _generate(cx, st, e, e.generators, element, gone)
    if isinstance(e, ast.DictComp):
        entries = {access.static_key(cx, st, k, e): Entry(cx.true, v) for k, v in out}
        return cx.heap.new(st, DictObj(entries))
    items = tuple(k for k, _ in out)
    if isinstance(e, ast.GeneratorExp):
        alive.unmoved(cx, st, e, heap)
        made = Tup(items)
        cx.iterators.takes(made, gone, False, e)
        return once(cx, made, e)
    return cx.heap.new(st, ListObj(items, kind="set" if isinstance(e, ast.SetComp) else "list"))


def _kept(cx: Lowering, st: State, tests: list[ast.expr]) -> bool:
    """Whether a comprehension keeps an element, which has to be certain."""
    for test in tests:
        cond = cx.known_bool(expr.truth(cx, st, expr.lower(cx, st, test), test))
        if cond is None:
            cx.refuse(
                test,
                "SEL901",
                "which elements a comprehension keeps depends on an input",
                help="use a conditional expression for the element instead of `if`",
            )
        if not cond:
            return False
    return True


def _generate(
    cx: Lowering,
    st: State,
    e: ast.expr,
    generators: list[ast.comprehension],
    element: Callable[[State, list[ast.expr]], None],
    gone: list[V] | None = None,
) -> None:
    """Make the elements of a comprehension; `gone` gets what it goes through."""
    generator = generators[0]
    value = expr.lower(cx, st, generator.iter)
    taken = cx.iterators.of(value)
    if gone is not None:
        gone.append(value)
    items = iterate(cx, st, value, generator.iter)
    bound = frozenset(n.id for n in ast.walk(generator.target) if isinstance(n, ast.Name))
    frame = cx.frame
    outer, iterations = frame.scope, frame.iterations
    scope = cx.new_scope(outer, bound)
    cx.comprehensions.add(scope)
    frame.scope = scope
    st.scopes[scope] = {}
    try:
        for i, item in enumerate(items):
            frame.iterations = f"{iterations}[{i}]"
            was = alive.before(cx, st, taken)
            targets.assign(cx, st, generator.target, item)
            if len(generators) > 1:
                if _kept(cx, st, generator.ifs):
                    _generate(cx, st, e, generators[1:], element, gone)
            else:
                element(st, generator.ifs)
            alive.check(cx, st, generator.iter, taken, was, i, i == len(items) - 1)
    finally:
        frame.scope, frame.iterations = outer, iterations
        st.scopes.pop(scope, None)


def quantifier(cx: Lowering, st: State, e: ast.Call, gen: ast.GeneratorExp, existential: bool) -> V:
    """`any(... for ...)` and `all(...)`, evaluated lazily; tests may use `if`."""
    done: list[Node] = []
    idle = cx.false if existential else cx.true

    def element(s: State, tests: list[ast.expr]) -> None:
        stop = cx.false
        for d in done:
            stop = cx.graph.either(stop, d)

        def one(t: State) -> V:
            return expr.truth(cx, t, expr.lower(cx, t, gen.elt), gen.elt)

        def kept(t: State) -> V:
            return cx.branch(t, all_hold(cx, t, tests), one, lambda _: idle) if tests else one(t)

        value = cx.branch(s, stop, lambda _: idle, kept)
        assert isinstance(value, Node)
        done.append(value if existential else cx.graph.negate(value))

    _generate(cx, st, e, gen.generators, element)
    out = cx.false
    for d in done:
        out = cx.graph.either(out, d)
    result = out if existential else cx.graph.negate(out)
    return expr._sited(cx, st, e, result)


def all_hold(cx: Lowering, st: State, tests: list[ast.expr]) -> Node:
    """Whether all tests of a comprehension hold; a later one runs only if those before it do."""
    cond = expr.truth(cx, st, expr.lower(cx, st, tests[0]), tests[0])
    if len(tests) == 1:
        return cond
    both = cx.branch(st, cond, lambda s: all_hold(cx, s, tests[1:]), lambda _: cx.false)
    assert isinstance(both, Node)
    return both


def first(cx: Lowering, st: State, e: ast.Call, gen: ast.GeneratorExp) -> V:
    """`next(... for ... if ...)`: the first element that is kept, else the default."""
    generator = gen.generators[0]
    value = expr.lower(cx, st, generator.iter)
    taken = cx.iterators.of(value)
    items = iterate(cx, st, value, generator.iter)
    default = expr.lower(cx, st, e.args[1]) if len(e.args) > 1 else None
    frame = cx.frame
    outer, iterations = frame.scope, frame.iterations
    bound = frozenset(n.id for n in ast.walk(generator.target) if isinstance(n, ast.Name))
    scope = cx.new_scope(outer, bound)
    cx.comprehensions.add(scope)
    st.scopes[scope] = {}

    def rest(s: State, i: int) -> V:
        if i == len(items):
            if default is None:
                why = f"`{snippet(e)}` must find an element"
                cx.partial(s, e, cx.false, "StopIteration", why)
            return cx.graph.add(Op.FAIL) if default is None else default
        frame.scope, frame.iterations = scope, f"{iterations}[{i}]"
        was = alive.before(cx, s, taken)
        targets.assign(cx, s, generator.target, items[i])
        kept = all_hold(cx, s, generator.ifs) if generator.ifs else cx.true
        alive.check(cx, s, generator.iter, taken, was, i, i == len(items) - 1)
        return cx.branch(s, kept, lambda t: expr.lower(cx, t, gen.elt), lambda t: rest(t, i + 1))

    try:
        result = rest(st, 0)
    finally:
        frame.scope, frame.iterations = outer, iterations
        st.scopes.pop(scope, None)
    return expr._sited(cx, st, e, result)
