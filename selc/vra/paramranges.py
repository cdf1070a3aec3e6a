"""Ranges of nodes for every assignment of the parameters that they read."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Final

from selc.ir.absval import AbsVal, of_values, transfer
from selc.ir.graph import Node
from selc.ir.op import Op
from selc.ir.value import Value
from selc.vra.view import View

MAX_ENTRIES: Final = 1 << 16
"""A node whose parameters have more assignments than this gets no table."""


class ParameterRanges:
    """Tables of abstract values, one entry per assignment of a node's own parameters.

    A node's table is indexed in the order of the product of the axes of `reads(node)`.
    """

    def __init__(self, view: View, axes: Mapping[str, Sequence[Value]]) -> None:
        self.view = view
        self.axes = axes
        self.parameters = view.mask_of(axes)
        self.tables: dict[int, list[AbsVal] | None] = {}
        self.strides: dict[tuple[int, int], list[int]] = {}

    def reads(self, node: Node) -> tuple[str, ...]:
        """The parameters that a node reads."""
        return self.view.inputs_of(self.view.masks[node.id] & self.parameters)

    def count(self, node: Node) -> int:
        """How many assignments its parameters have."""
        return math.prod(len(self.axes[n]) for n in self.reads(node))

    def table(self, root: Node) -> list[AbsVal] | None:
        """The abstract values of a node that reads parameters; None if there are too many."""
        todo = [root]
        wanted: dict[int, Node] = {}
        while todo:
            node = todo.pop()
            if node.id in wanted or node.id in self.tables:
                continue
            wanted[node.id] = node
            todo += [a for a in node.args if self.view.masks[a.id] & self.parameters]
        for key in sorted(wanted):
            self.tables[key] = self._table(wanted[key])
        return self.tables[root.id]

    def facts(self, root: Node, assignment: Sequence[int]) -> list[AbsVal]:
        """The facts of all nodes below a root, for the axis positions of the root's parameters."""
        place = dict(zip(self.reads(root), assignment, strict=True))
        out = list(self.view.facts)
        for node in self.view.graph.cone([root]):
            if self.view.masks[node.id] & self.parameters:
                table = self.tables[node.id]
                index = 0
                for name in self.reads(node):
                    index = index * len(self.axes[name]) + place[name]
                out[node.id] = (
                    table[index]
                    if table is not None
                    else transfer(node, [out[a.id] for a in node.args])
                )
        return out

    def _table(self, node: Node) -> list[AbsVal] | None:
        names = self.reads(node)
        if node.op is Op.INPUT:
            return [of_values((v,)) for v in self.axes[names[0]]]
        if self.count(node) > MAX_ENTRIES:
            return None
        columns: list[Sequence[AbsVal]] = []
        for a in node.args:
            if not self.view.masks[a.id] & self.parameters:
                columns.append((self.view.facts[a.id],))
            else:
                below = self.tables[a.id]
                if below is None:
                    return None
                columns.append(below)
        if all(
            len(c) == 1 or self.reads(a) == names for c, a in zip(columns, node.args, strict=True)
        ):
            size = self.count(node)
            full = [c if len(c) == size else list(c) * size for c in columns]
            return _mapped(node, full)
        picks = [self._positions(names, self.reads(a)) for a in node.args]
        return _mapped(node, [[c[k] for k in p] for c, p in zip(columns, picks, strict=True)])

    def _positions(self, names: tuple[str, ...], own: tuple[str, ...]) -> list[int]:
        """For each assignment of `names`, the index of its projection onto `own`."""
        sizes = [len(self.axes[n]) for n in names]
        weights = dict.fromkeys(names, 0)
        weight = 1
        for name in reversed(own):
            weights[name] = weight
            weight *= len(self.axes[name])
        steps = [
            [k * weights[n] for k in range(size)] for n, size in zip(names, sizes, strict=True)
        ]
        return [sum(c) for c in itertools.product(*steps)]


def _mapped(node: Node, columns: Sequence[Sequence[AbsVal]]) -> list[AbsVal]:
    memo: dict[tuple[int, ...], AbsVal] = {}
    out = []
    for args in zip(*columns, strict=True):
        key = tuple(map(id, args))
        if key not in memo:
            memo[key] = transfer(node, args)
        out.append(memo[key])
    return out
