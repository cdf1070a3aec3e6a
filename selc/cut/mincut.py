"""The minimum vertex cut by maximum flow: the only module that knows networkx."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class VertexCut:
    """Vertices that separate sources from sinks, and their total weight."""

    vertices: frozenset[int]
    weight: int


def min_vertex_cut(
    edges: Iterable[tuple[int, int]],
    weight: Mapping[int, int],
    sources: Sequence[int],
    sinks: Sequence[int],
) -> VertexCut | None:
    """The cheapest set of weighted vertices on every path from a source to a sink; None if there is none.

    Vertices without a weight cannot be cut. Of all cheapest sets it is the one closest to the
    sinks: the vertices whose far side reaches a sink in the residual network and whose near side
    does not. That set is unique.
    """
    import networkx as nx
    from networkx.algorithms.flow import boykov_kolmogorov

    infinite = sum(weight.values()) + 1
    network = nx.DiGraph()
    vertices: dict[int, None] = {}
    for u, v in edges:
        vertices[u] = vertices[v] = None
        network.add_edge((u, 1), (v, 0), capacity=infinite)
    for v in (*sources, *sinks):
        vertices[v] = None
    for v in vertices:
        network.add_edge((v, 0), (v, 1), capacity=weight.get(v, infinite))
    for v in sources:
        network.add_edge("source", (v, 0), capacity=infinite)
    for v in sinks:
        network.add_edge((v, 1), "sink", capacity=infinite)
    if not sources or not sinks:
        return VertexCut(frozenset(), 0)
    residual = boykov_kolmogorov(network, "source", "sink", capacity="capacity")
    flow = residual.graph["flow_value"]
    if flow >= infinite:
        return None
    behind = {"sink"}
    todo = ["sink"]
    while todo:
        v = todo.pop()
        for u in residual.pred[v]:
            edge = residual[u][v]
            if u not in behind and edge["flow"] < edge["capacity"]:
                behind.add(u)
                todo.append(u)
    cut = frozenset(v for v in vertices if (v, 1) in behind and (v, 0) not in behind)
    return VertexCut(cut, int(flow))
