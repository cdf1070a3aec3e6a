"""Where comparisons of the unpinned program change side: the grid for bitwise batteries."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

from selc.ir.evaluate import compile_nodes
from selc.ir.graph import BOOLEAN, Node
from selc.ir.op import Op, TooWide
from selc.ir.program import Program
from selc.ir.value import Value
from selc.vra.enumerate import MAX_POINTS, Row, filter_of
from selc.vra.search import probes
from selc.vra.view import View, of_program

MAX_THRESHOLDS: Final = 4096
"""Per input. A comparison that changes side more often than this is left out."""

MAX_BASES: Final = 16
"""Settings of the other inputs from which an input is varied."""

GRID: Final = 1024
"""Evenly spaced values between which longer domains are bisected."""

EFFORT: Final = 1 << 23
"""Nodes that are computed for one input; a graph too large for it is looked at less often."""

_LEFT_OUT: Final = frozenset({Op.NOT, Op.OK, Op.IS})


def thresholds(
    program: Program, budget: int = MAX_POINTS, view: View | None = None
) -> dict[str, list[Value]]:
    """For each batch input, the values at which a comparison differs from the value before.

    Complete for comparisons of one input with at most `budget` values. Longer domains are bisected
    between `GRID` evenly spaced values, which finds every threshold of monotone quantities; a
    comparison of several inputs is followed from up to `MAX_BASES` admitted settings of the others.
    `EFFORT` bounds the work: on graphs of thousands of nodes, bisection starts from fewer values.
    """
    work = _Work(view or of_program(program), budget)
    out: dict[str, list[Value]] = {}
    for name in work.view.names:
        if work.view.graph.inputs[name].is_batch(program.scope):
            out[name] = work.along(name)
    return out


class _Work:
    def __init__(self, view: View, budget: int) -> None:
        self.view = view
        self.budget = budget
        live = {n.id for n in view.graph.cone(_roots(view))}
        g = view.graph
        compared = []
        for node in list(g.nodes):
            if node.id not in live:
                continue
            if node.op in (Op.MIN2, Op.MAX2):
                compared.append(g.fold(Op.LT if node.op is Op.MIN2 else Op.GT, *node.args[::-1]))
            elif node.op in BOOLEAN and node.op not in _LEFT_OUT:
                compared.append(node)
        view.extend()
        self.compared = [n for n in dict.fromkeys(compared) if not view.facts[n.id].single]

    def along(self, name: str) -> list[Value]:
        """The thresholds of one input."""
        view = self.view
        bit = view.mask_of([name])
        by_mask: dict[int, list[Node]] = {}
        for node in self.compared:
            if view.masks[node.id] & bit:
                by_mask.setdefault(view.masks[node.id], []).append(node)
        domain = view.graph.inputs[name].domain
        found: set[int] = set()
        for mask, nodes in sorted(by_mask.items()):
            names = view.inputs_of(mask)
            k = names.index(name)
            show = compile_nodes(view.graph, nodes, names, view.facts)
            cost = len(view.graph.cone(nodes)) * len(by_mask)
            calls = max(512, min(self.budget, EFFORT // cost))
            bases = [()] if mask == bit else self.bases(names)[: max(2, calls // 256)]
            for base in bases:
                found |= self.changes(show, base, k, domain, len(nodes), calls // len(bases))
        return [domain[i] for i in sorted(found)]

    def bases(self, names: Sequence[str]) -> list[Row]:
        """A few settings of several inputs, admitted as far as they tell."""
        view = self.view
        mask = view.mask_of(names)
        keep = filter_of(view, [n for n in view.admits if not view.masks[n.id] & ~mask], names)
        kept = keep(list(itertools.islice(probes(view, names, 256), 512)))
        return kept[:MAX_BASES]

    def changes(
        self, show: object, base: Row, k: int, domain: object, count: int, budget: int
    ) -> set[int]:
        """Positions at which some comparison differs from the position before."""
        size = len(domain)  # type: ignore[arg-type]  # a Domain

        def at(i: int) -> Row:
            value = domain[i]  # type: ignore[index]  # a Domain
            row = (*base[:k], value, *base[k + 1 :]) if base else (value,)
            return show(*row)  # type: ignore[operator,no-any-return]  # a compiled function

        sides: list[list[int]] = [[] for _ in range(count)]
        try:
            if size <= budget:
                before = at(0)
                for i in range(1, size):
                    now = at(i)
                    if now != before:
                        for c in range(count):
                            if now[c] is not before[c]:
                                sides[c].append(i)
                        before = now
            else:
                count = min(GRID, budget // 2)
                marks = sorted({size * j // count for j in range(count)} | {size - 1})
                self.bisect(at, marks, sides, budget - len(marks))
        except TooWide:
            pass
        return {i for s in sides if len(s) <= MAX_THRESHOLDS for i in s}

    def bisect(self, at: object, marks: Sequence[int], sides: list[list[int]], budget: int) -> None:
        """Narrow every change between two neighbours of `marks` to one position."""
        shown = {i: at(i) for i in marks}  # type: ignore[operator]  # a local function
        todo = list(itertools.pairwise(marks))
        while todo:
            low, high = todo.pop()
            if shown[low] == shown[high]:
                continue
            if high - low == 1:
                for c, (a, b) in enumerate(zip(shown[low], shown[high], strict=True)):
                    if a is not b:
                        sides[c].append(high)
                continue
            if budget <= 0:
                continue
            budget -= 1
            middle = (low + high) // 2
            shown[middle] = at(middle)  # type: ignore[operator]  # a local function
            todo += [(low, middle), (middle, high)]


def _roots(view: View) -> list[Node]:
    return list(view.graph.nodes)
