"""What a loop goes through while its body changes it.

A loop takes the elements of a list or a dict when it starts. Python asks for each when it is its
turn: where the body changes what is still to come, the two are not the same.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NamedTuple, TypeAlias

from selc.diag.diagnostic import Refused
from selc.frontend import expr
from selc.frontend.context import Lowering, snippet
from selc.frontend.state import State
from selc.frontend.values import Choice, DictObj, ListObj, Ref, V

_LAZY: Final = frozenset({"enumerate", "filter", "iter", "map", "reversed", "zip"})
_VIEWS: Final = frozenset({"items", "keys", "values"})

_PLAIN: Final = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.expr_context)

Elements: TypeAlias = tuple[object, ...]


class Source(NamedTuple):
    """A container that a loop goes through, as it is written."""

    e: ast.expr
    ref: Ref
    backwards: bool


def sources(cx: Lowering, st: State, e: ast.expr, value: V) -> list[Source]:
    """The lists, sets and dicts that are asked for each element when it is its turn.

    `value` is that of the expression that the loop goes through.
    """
    out = [Source(e, r, False) for r in _refs(value)]
    for inner, backwards in () if out else _read(e, False):
        out += [Source(inner, r, backwards) for r in _refs(_seen(cx, st, inner))]
    return out


def _seen(cx: Lowering, st: State, e: ast.expr) -> V:
    """What a name or a part of it is, without a trace."""
    frame = cx.frame
    silent, handlers, guards = frame.silent, cx.handlers, len(cx.guards)
    frame.silent, cx.handlers = True, []
    try:
        with suppress(Refused), cx.tentative():
            return expr.lower(cx, st.fork(st.live), e)
    finally:
        frame.silent, cx.handlers = silent, handlers
        del cx.guards[guards:]
    return cx.none


def _read(e: ast.expr, backwards: bool) -> Iterator[tuple[ast.expr, bool]]:
    if isinstance(e, (ast.Name, ast.Attribute, ast.Subscript)):
        if all(isinstance(n, _PLAIN) for n in ast.walk(e)):
            yield e, backwards
    elif isinstance(e, ast.IfExp):
        yield from _read(e.body, backwards)
        yield from _read(e.orelse, backwards)
    elif isinstance(e, ast.GeneratorExp):
        yield from _read(e.generators[0].iter, backwards)
    elif isinstance(e, ast.Call) and isinstance(e.func, ast.Name) and e.func.id in _LAZY:
        for argument in e.args:
            yield from _read(argument, backwards or e.func.id == "reversed")
    elif isinstance(e, ast.Call) and isinstance(e.func, ast.Attribute) and e.func.attr in _VIEWS:
        yield from _read(e.func.value, backwards)


def _refs(value: V) -> Iterator[Ref]:
    if isinstance(value, Choice):
        yield from _refs(value.then)
        yield from _refs(value.other)
    elif isinstance(value, Ref):
        yield value


def elements(cx: Lowering, st: State, found: list[Source]) -> list[Elements | None]:
    """What these containers hold; None of what is none."""
    return [_elements(cx, st, source.ref) for source in found]


def _elements(cx: Lowering, st: State, ref: Ref) -> Elements | None:
    obj = cx.heap.get(st, ref)
    if isinstance(obj, ListObj):
        return obj.unknown, *obj.items
    return (obj.unknown, *obj.entries.items()) if isinstance(obj, DictObj) else None


def check(
    cx: Lowering, st: State, found: list[Source], before: list[Elements | None], turn: int
) -> None:
    """Refuse a turn (from 0) of a loop after which other elements are to come than before it."""
    for source, old in zip(found, before, strict=True):
        new = _elements(cx, st, source.ref)
        past = 0 if source.backwards else turn + 2
        if old is None or new is old or new is None:
            continue
        if len(old) != len(new) or old[past:] != new[past:]:
            cx.refuse(
                source.e,
                "SEL901",
                f"`{snippet(source.e)}` is changed while a loop goes through it",
                help="go through a copy: `list(...)`",
            )
