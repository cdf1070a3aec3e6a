"""Supersets of the values of a node with too many inputs, through a small interface below it."""

from __future__ import annotations

from collections.abc import Sequence

from selc.ir.graph import Node
from selc.ir.value import Value
from selc.vra.view import View


def values_of(view: View, nodes: Sequence[Node], budget: int) -> Sequence[Value] | None:
    """Every value that one of the nodes takes, or a superset; None if no small interface is found."""
    return None


def joint(view: View, nodes: Sequence[Node], budget: int) -> Sequence[tuple[Value, ...]] | None:
    """Every joint value that the nodes take, or a superset; None if no small interface is found."""
    return None
