"""Cached functions: with equal arguments their body runs once, so it may do nothing but return."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from selc.frontend import bodies, launches
from selc.frontend.context import Lowering
from selc.frontend.sites import Instance
from selc.frontend.state import State
from selc.frontend.values import Func, Obj, V


@dataclass(frozen=True, slots=True)
class Before:
    """What a call may have changed, as it was before the call."""

    scopes: dict[int, dict[str, V]]
    heap: dict[int, Obj]


def before(st: State, own: int) -> Before:
    """Remember the state ahead of a call; `own` is the scope of the call itself."""
    return Before({k: dict(v) for k, v in st.scopes.items() if k != own}, dict(st.heap))


def called(cx: Lowering, func: Func, instance: Instance) -> None:
    """Note a call of a function that remembers its results."""
    kept = func.cached or any(
        ast.unparse(d).endswith("cached_property") for d in getattr(func.node, "decorator_list", ())
    )
    if kept:
        cx.remembered.setdefault(id(func.node), set()).add(instance.key)


def repeated(cx: Lowering, instance: Instance | None) -> bool:
    """Whether a call is, or is made by, one of several calls of a cached function.

    The body of all but the first may not run: what is overwritten in there would not be seen.
    """
    several = {key for keys in cx.remembered.values() if len(keys) > 1 for key in keys}
    while several and instance is not None:
        if instance.key in several:
            return True
        instance = instance.parent
    return False


def settle(
    cx: Lowering, st: State, e: ast.expr, func: Func, value: V, known: Before | None
) -> None:
    """Refuse a cached function that launches or changes something; its result is shared."""
    if known is None:
        return
    outliving = {
        *(known.scopes.keys() & st.scopes.keys()),
        launches.SCOPE,
        cx.module_scope(func.module),
    }
    same = all(st.scopes.get(k, {}) == known.scopes.get(k, {}) for k in outliving)
    kept = {*known.heap, *(oid for oid in st.heap if oid in cx.heap.base)}
    if not same or any(st.heap.get(oid) != known.heap.get(oid) for oid in kept):
        cx.refuse(
            e,
            "SEL906",
            f"`{func.qualname}` is cached and does more than return a value: that happens only in "
            "the first call with these arguments",
            help=f'say so if the call is the kernel: functions: {{"{ast.unparse(e.func)}": opaque}}'
            if isinstance(e, ast.Call)
            else "state what it returns under `functions:`",
        )
    bodies.share(cx, st, value, "a cached result is shared between calls")
