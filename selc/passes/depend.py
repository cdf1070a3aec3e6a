"""Structural dependence: which inputs each node reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from selc.ir.graph import Graph, Node
from selc.ir.op import Op


def masks(graph: Graph) -> tuple[tuple[str, ...], list[int]]:
    """The names of the inputs, and for each node one bit per input that it reads."""
    names = tuple(graph.inputs)
    bit = {name: 1 << k for k, name in enumerate(names)}
    out: list[int] = []
    for node in graph.nodes:
        mask = 0
        if node.op is Op.INPUT:
            assert isinstance(node.attr, str)
            mask = bit[node.attr]
        for a in node.args:
            mask |= out[a.id]
        out.append(mask)
    return names, out


def reads(graph: Graph, nodes: Sequence[Node]) -> list[frozenset[str]]:
    """The names of the inputs that each of the nodes reads."""
    names, out = masks(graph)
    return [frozenset(n for k, n in enumerate(names) if out[node.id] >> k & 1) for node in nodes]


def mask_of(graph: Graph, names: Iterable[str]) -> int:
    """The mask of some inputs."""
    wanted = set(names)
    return sum(1 << k for k, name in enumerate(graph.inputs) if name in wanted)


def batch_mask(graph: Graph, scope: str) -> int:
    """The mask of the inputs that the batch determines."""
    return mask_of(graph, [name for name, i in graph.inputs.items() if i.is_batch(scope)])
