"""What a loop goes through while its body changes it.

A loop takes its elements when it starts. Python asks for each when it is its turn: where the body
changes what is still to come, or what that is computed from, the two are not the same.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from selc.frontend.context import Lowering, snippet
from selc.frontend.iterators import Taken
from selc.frontend.sites import stores
from selc.frontend.state import State
from selc.frontend.values import (
    Bound,
    Choice,
    Cls,
    DictObj,
    Func,
    InstObj,
    ListObj,
    Method,
    Partial,
    Ref,
    Super,
    Tup,
    V,
)

Elements: TypeAlias = tuple[object, ...]
Variables: TypeAlias = dict[tuple[int, str], V]


@dataclass(frozen=True, slots=True)
class Before:
    """What the elements of a loop come from, in front of a turn.

    `held`: containers, whether they are gone through from behind, and their elements.
    """

    held: list[tuple[Ref, bool, Elements | None]]
    variables: Variables
    heap: dict[int, object]

    @property
    def refs(self) -> set[Ref]:
        """The containers."""
        return {ref for ref, *_ in self.held}


def before(cx: Lowering, st: State, taken: Taken) -> Before:
    """What is looked at again behind the turn."""
    held = [
        (same, backwards, _elements(cx, st, same))
        for ref, backwards in taken.containers
        for same in cx.heap.related(ref)
    ]
    if not taken.computed:
        return Before(held, {}, {})
    names = _names(st, taken.computed)
    variables = {
        (scope, name): value
        for scope, inside in st.scopes.items()
        for name, value in inside.items()
        if name in names
    }
    reached = _reached(cx, st, variables.values())
    return Before(held, variables, {i: st.heap[i] for i in reached if i in st.heap})


def check(
    cx: Lowering, st: State, e: ast.expr, taken: Taken, was: Before, turn: int, last: bool
) -> None:
    """Refuse a turn (from 0) of a loop after which other elements are to come than before it."""
    for ref, backwards, old in was.held:
        new = _elements(cx, st, ref)
        past = 0 if backwards else turn + 2
        joined = any(r not in was.refs for r in cx.heap.related(ref))
        if old is None or ((new is old or new is None) and not joined):
            continue
        if joined or new is None or len(old) != len(new) or old[past:] != new[past:]:
            _refuse(cx, e, f"`{snippet(e)}` is changed while a loop goes through it")
    if last or not taken.computed:
        return
    moved = any(
        st.scopes.get(scope, {}).get(name) is not value
        for (scope, name), value in was.variables.items()
    )
    if moved or any(st.heap.get(i) is not obj for i, obj in was.heap.items()):
        why = "the elements are computed one by one, and the loop changes what they are made of"
        _refuse(cx, e, f"`{snippet(e)}`: {why}")


def unmoved(cx: Lowering, st: State, e: ast.expr, heap: Mapping[int, object]) -> None:
    """Refuse an iterator whose elements, all computed by now, have changed what `heap` holds.

    Python computes them one by one, and some perhaps never.
    """
    if any(st.heap.get(i) is not obj for i, obj in heap.items()):
        _refuse(cx, e, f"computing the elements of `{snippet(e)}` changes an object")


def _refuse(cx: Lowering, e: ast.expr, message: str) -> None:
    cx.refuse(e, "SEL901", message, help="go through a copy: `list(...)` or `[... for ...]`")


def _elements(cx: Lowering, st: State, ref: Ref) -> Elements | None:
    obj = st.heap.get(ref.oid) or cx.heap.base.get(ref.oid)
    if isinstance(obj, ListObj):
        return obj.unknown, *obj.items
    return (obj.unknown, *obj.entries.items()) if isinstance(obj, DictObj) else None


# -- what computed elements can read --------------------------------------------------------------


def _names(st: State, computed: Iterable[ast.AST]) -> set[str]:
    """The variables that some expressions, and the functions that these can call, read."""
    nodes = [*computed]
    if any(isinstance(n, ast.Call) for e in nodes for n in ast.walk(e)):
        values = [v for inside in st.scopes.values() for v in inside.values()]
        nodes += [body for v in values for body in _bodies(st, v, set())]
    return {name for e in nodes for name in _free(e)}


def _free(node: ast.AST) -> set[str]:
    """The names in a node that are not its own variables; those of functions in it count."""
    once = node.generators[0].iter if isinstance(node, ast.GeneratorExp) else None
    todo, found = [node], set()
    for n in todo:
        found |= {n.id} if isinstance(n, ast.Name) else set()
        todo += (c for c in ast.iter_child_nodes(n) if c is not once)
    if isinstance(node, ast.GeneratorExp):
        return found - {name for g in node.generators for name in stores(g.target)}
    if isinstance(node, (ast.FunctionDef, ast.Lambda)):
        a = node.args
        own = {x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg) if x}
        body = node.body if isinstance(node.body, list) else []
        own.update(name for s in body for name in stores(s))
        outer = (n for n in ast.walk(node) if isinstance(n, (ast.Nonlocal, ast.Global)))
        return found - (own - {name for n in outer for name in n.names})
    return found


def _bodies(st: State, value: object, seen: set[int]) -> Iterator[ast.AST]:
    """The functions and classes that a value is, or holds."""
    if isinstance(value, Ref):
        if value.oid in seen:
            return
        seen.add(value.oid)
        value = st.heap.get(value.oid)
    cls = value.cls if isinstance(value, (Func, InstObj, Super)) else None
    if isinstance(value, (Func, Cls)):
        yield value.node
    if cls is not None:
        yield cls.node
    for inner in _inside(value):
        yield from _bodies(st, inner, seen)


def _reached(cx: Lowering, st: State, values: Iterable[object]) -> set[int]:
    """The objects that some values are, or hold."""
    out: set[int] = set()
    todo = [*values]
    while todo:
        value = todo.pop()
        if isinstance(value, Ref):
            if value.oid in out:
                continue
            out.add(value.oid)
            todo += cx.heap.related(value)
            value = st.heap.get(value.oid)
        todo += _inside(value)
    return out


def _inside(value: object) -> list[object]:
    """What a value or an object holds."""
    if isinstance(value, (Tup, ListObj)):
        return [*value.items]
    if isinstance(value, Choice):
        return [value.then, value.other]
    if isinstance(value, DictObj):
        return [entry.value for entry in value.entries.values()]
    if isinstance(value, InstObj):
        return [entry.value for entry in value.fields.values()]
    if isinstance(value, Bound):
        return [value.func, value.self]
    if isinstance(value, (Method, Super)):
        return [value.self]
    if isinstance(value, Partial):
        return [value.func, *value.args, *value.kwargs.values()]
    if isinstance(value, Func):
        return [*value.defaults, *value.kw_defaults.values()]
    return []
