"""A small vertex cut between inputs and some nodes, by augmenting paths with an early stop."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from selc.ir.graph import Node

INFINITE: Final = 1 << 40


def vertex_cut(
    nodes: Sequence[Node],
    below: Callable[[Node], Sequence[Node]],
    weight: Callable[[Node], int],
    sinks: Sequence[Node],
    limit: int,
) -> list[Node] | None:
    """The lightest set of nodes that every path from a node without `below` to a sink meets.

    None if it weighs more than `limit`. Sinks may not be cut; of equal cuts, the one nearest them.
    """
    place = {n.id: k for k, n in enumerate(nodes)}
    size = len(nodes)
    source, sink = 2 * size, 2 * size + 1  # node k: 2k is its entry, 2k + 1 its exit
    targets: list[list[int]] = [[] for _ in range(2 * size + 2)]
    heads: list[int] = []
    left: list[int] = []

    def edge(a: int, b: int, capacity: int) -> None:
        targets[a].append(len(heads))
        heads.append(b)
        left.append(capacity)
        targets[b].append(len(heads))
        heads.append(a)
        left.append(0)

    last = {n.id for n in sinks}
    for k, node in enumerate(nodes):
        edge(2 * k, 2 * k + 1, INFINITE if node.id in last else weight(node))
        args = [a for a in below(node) if a.id in place]
        if not args:
            edge(source, 2 * k, INFINITE)
        for a in args:
            edge(2 * place[a.id] + 1, 2 * k, INFINITE)
        if node.id in last:
            edge(2 * k + 1, sink, INFINITE)
    total = 0
    while (path := _augmenting(targets, heads, left, source, sink)) is not None:
        step = min(left[e] for e in path)
        total += step
        if total > limit:
            return None
        for e in path:
            left[e] -= step
            left[e ^ 1] += step
    reaching = {sink}
    todo = [sink]
    while todo:
        v = todo.pop()
        for e in targets[v]:
            if left[e ^ 1] > 0 and heads[e] not in reaching:
                reaching.add(heads[e])
                todo.append(heads[e])
    return [n for k, n in enumerate(nodes) if 2 * k + 1 in reaching and 2 * k not in reaching]


def _augmenting(
    targets: Sequence[Sequence[int]],
    heads: Sequence[int],
    left: Sequence[int],
    source: int,
    sink: int,
) -> list[int] | None:
    via: dict[int, int] = {source: -1}
    todo = deque([source])
    while todo:
        v = todo.popleft()
        if v == sink:
            path = []
            while v != source:
                e = via[v]
                path.append(e)
                v = heads[e ^ 1]
            return path
        for e in targets[v]:
            if left[e] > 0 and heads[e] not in via:
                via[heads[e]] = e
                todo.append(heads[e])
    return None
