"""Which arm of which select needs a node: blocks for text that computes no more than it must."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from selc.ir.graph import Node
from selc.ir.op import Op

MAX_DEPTH: Final = 60
"""Blocks are not nested deeper: Python's own limit is 100 levels of indentation."""


@final
class Scope:
    """A block of statements: the whole function, or an arm of a select inside another block."""

    __slots__ = ("arms", "depth", "lines", "parent")

    def __init__(self, parent: Scope | None) -> None:
        self.parent = parent
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.arms: dict[tuple[int, int], Scope] = {}
        self.lines: list[str] = []

    def arm(self, node: Node, which: int) -> Scope:
        """The block of an arm of a select in this block; this one if it is too deep."""
        if self.depth >= MAX_DEPTH:
            return self
        known = self.arms.get((node.id, which))
        if known is None:
            known = self.arms[node.id, which] = Scope(self)
        return known

    def held(self, node: Node, which: int) -> list[str]:
        """The statements of an arm's block."""
        known = self.arms.get((node.id, which))
        return known.lines if known is not None else []


def common(a: Scope, b: Scope) -> Scope:
    """The innermost block that holds both."""
    while a is not b:
        if a.depth < b.depth:
            a, b = b, a
        assert a.parent is not None
        a = a.parent
    return a


def place(cone: Sequence[Node], roots: Sequence[Node]) -> tuple[dict[int, int], dict[int, Scope]]:
    """How often each node is used, and the innermost block that holds all of its uses.

    Marks count as nothing: a use of one is a use of what it marks.
    """
    top = Scope(None)
    uses = dict.fromkeys((n.id for n in cone), 0)
    scopes: dict[int, Scope] = {}
    for root in roots:
        uses[root.id] += 1
        scopes[root.id] = top
    for node in reversed(cone):
        home = scopes[node.id]
        times = uses[node.id] if node.op is Op.MARK else 1
        for k, a in enumerate(node.args):
            scope = home.arm(node, k - 1) if k and node.op is Op.SELECT else home
            known = scopes.get(a.id)
            scopes[a.id] = scope if known is None else common(known, scope)
            uses[a.id] += times
    return uses, scopes
