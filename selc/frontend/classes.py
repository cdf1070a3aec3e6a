"""Classes and their bases in the order in which Python looks them up, and `super()`."""

from __future__ import annotations

import ast

from selc.frontend import bodies, reading
from selc.frontend.context import Lowering, snippet
from selc.frontend.state import State
from selc.frontend.values import Bound, Cls, Func, InstObj, Opaque, Ref, Super, V


def bases(cx: Lowering, cls: Cls) -> list[V]:
    """The values of a class's bases; parameters of generic ones do not count."""
    return [
        bodies.run_class_value(cx, cls, b.value if isinstance(b, ast.Subscript) else b)
        for b in cls.node.bases
    ]


def linear(cx: Lowering, cls: Cls, e: ast.AST) -> tuple[list[Cls], bool]:
    """The followed classes among a class and its ancestors, in method resolution order (C3).

    The second value tells whether there are ancestors that are not followed.
    """
    above = bases(cx, cls)
    followed = [b for b in above if isinstance(b, Cls)]
    hidden = any(not isinstance(b, Cls) and not _plain(b) for b in above)
    chains: list[list[Cls]] = []
    for base in followed:
        chain, outside = linear(cx, base, e)
        chains.append(chain)
        hidden |= outside
    out, chains = [cls], [*chains, followed]
    while chains := [c for c in chains if c]:
        head = next((c[0] for c in chains if not any(_has(d[1:], c[0]) for d in chains)), None)
        if head is None:
            cx.refuse(e, "SEL901", f"the bases of `{cls.qualname}` have no consistent order")
        out.append(head)
        chains = [c[1:] if c[0].node is head.node else c for c in chains]
    return out, hidden


def _plain(base: V) -> bool:
    """Whether a base adds nothing that can be looked up by name."""
    return getattr(base, "name", "") in (
        "builtins.object",
        "typing.Generic",
        "typing.Protocol",
        "abc.ABC",
    )


def _has(chain: list[Cls], cls: Cls) -> bool:
    return any(c.node is cls.node for c in chain)


def called(cx: Lowering, st: State, cls: Cls, e: ast.AST) -> V | None:
    """What calling an object of a class runs: its `__call__`, of a torch module its `forward`."""
    found = reading.class_member(cx, st, cls, "__call__")
    order, _ = linear(cx, cls, e)
    if found is not None or not any(_module(b) for c in order for b in bases(cx, c)):
        return found
    cx.assumptions.append(f"`{cls.qualname}` has no hooks: calling it runs its `forward`")
    return reading.class_member(cx, st, cls, "forward")


def _module(base: V) -> bool:
    return getattr(base, "name", "") in ("torch.nn.Module", "torch.nn.modules.module.Module")


def call(cx: Lowering, st: State, e: ast.Call) -> V:
    """`super()` in a method."""
    scope = cx.frame.scope
    while scope in cx.comprehensions:
        scope = cx.parents[scope] or scope
    known = st.scopes.get(scope, {})
    cls = cx.frame.cls
    if not isinstance(cls, Cls) or not known or e.args:
        cx.refuse(e, "SEL901", "`super` with arguments, or outside a method, is not supported")
    first = next(iter(known.values()))
    if not isinstance(first, (Ref, Cls)):
        cx.refuse(e, "SEL901", "the first parameter of this method is not followed")
    return Super(cls, first)


def attribute(cx: Lowering, st: State, e: ast.expr, value: Super, name: str) -> V:
    """`super().name`: the next class in the object's order that has it."""
    own: V | None = value.self
    if isinstance(own, Ref):
        obj = cx.obj(st, own, e)
        own = obj.cls if isinstance(obj, InstObj) and obj.cls is not None else value.cls
    assert isinstance(own, Cls)
    order, hidden = linear(cx, own, e)
    after = next((i for i, c in enumerate(order) if c.node is value.cls.node), -1)
    for cls in order[after + 1 :]:
        member = reading.own_member(cx, st, cls, name)
        if member is None:
            continue
        if not isinstance(member, Func) or member.flavour == "static":
            return member
        if member.flavour == "property":
            from selc.frontend import calls

            return calls.invoke(cx, st, e, member, (value.self,), {})
        return Bound(member, own if member.flavour == "class" else value.self)
    if hidden or name in ("__init__", "__post_init__"):
        return Opaque(f"super().{name}")
    cx.partial(st, e, cx.false, "AttributeError", f"`{snippet(e)}` is not defined")
    return Opaque(f"super().{name}")
