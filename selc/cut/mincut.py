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
    """The cheapest weighted vertices that meet every path from a source to a sink, or None.

    Vertices without a weight cannot be cut. Of all cheapest sets it is the one closest to the
    sinks: the vertices whose far side reaches a sink in the residual network and whose near side
    does not. That set is unique.
    """
    import networkx as nx
    from networkx.algorithms.flow import boykov_kolmogorov

    infinite = sum(weight.values()) + 1
    network: nx.DiGraph[object] = nx.DiGraph()
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
    behind: set[object] = {"sink"}
    todo: list[object] = ["sink"]
    while todo:
        at = todo.pop()
        for before in residual.pred[at]:
            edge = residual[before][at]
            if before not in behind and edge["flow"] < edge["capacity"]:
                behind.add(before)
                todo.append(before)
    cut = frozenset(v for v in vertices if (v, 1) in behind and (v, 0) not in behind)
    return VertexCut(cut, int(flow))
