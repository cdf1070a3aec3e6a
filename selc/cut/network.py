"""The flow network of a program: G0's structure without the flows that are proved not to be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from selc.ir.graph import Graph, Node
from selc.ir.op import Op
from selc.ir.program import Program, Site
from selc.passes.depend import batch_mask, mask_of, masks

_SEARCH: Final = 200
"""How many nodes are looked at for an ancestor with the same image."""


@dataclass(frozen=True, slots=True)
class Proved:
    """For each node of G0 an equivalent that is still read, and what that reads."""

    images: Mapping[Node, Node]
    reads: Sequence[int]  # by id of the image
    batch: int
    first: Mapping[Node, int]  # image -> the least id of a node of G0 that has it

    def of(self, node: Node) -> int | None:
        """The inputs that the image of a node reads, if it has one."""
        made = self.images.get(node)
        return None if made is None else self.reads[made.id]


def proved(graph: Graph, images: Mapping[Node, Node], scope: str) -> Proved:
    """Read off a simplified graph what it says about the original."""
    _, reads = masks(graph)
    first: dict[Node, int] = {}
    for node, made in images.items():
        first[made] = min(node.id, first.get(made, node.id))
    return Proved(images, reads, batch_mask(graph, scope), first)


@dataclass(slots=True)
class Network:
    """Vertices are ids of G0's nodes; the marks of a site with several are one vertex."""

    vertex: dict[int, int]  # node id -> vertex
    edges: set[tuple[int, int]] = field(default_factory=set)
    sites: dict[int, list[Site]] = field(default_factory=dict)  # vertex -> sites standing for it
    sources: list[int] = field(default_factory=list)
    sinks: list[int] = field(default_factory=list)
    flows: dict[int, int] = field(default_factory=dict)  # node id -> batch inputs that move it

    def on_paths(self) -> set[int]:
        """The vertices on a path from a source to a sink."""
        ahead: dict[int, list[int]] = {}
        back: dict[int, list[int]] = {}
        for u, v in self.edges:
            ahead.setdefault(u, []).append(v)
            back.setdefault(v, []).append(u)
        return _reach(self.sources, ahead) & _reach(self.sinks, back)

    def trimmed(self) -> None:
        """Leave out everything that is on no path from a source to a sink."""
        keep = self.on_paths()
        self.edges = {(u, v) for u, v in self.edges if u in keep and v in keep}
        self.sources = [v for v in self.sources if v in keep]
        self.sinks = [v for v in self.sinks if v in keep]
        self.sites = {v: s for v, s in self.sites.items() if v in keep}

    def path(self, closed: frozenset[int] | set[int]) -> list[int]:
        """The shortest path from a source to a sink that avoids the closed vertices; [] if none."""
        ahead: dict[int, list[int]] = {}
        for u, v in sorted(self.edges):
            ahead.setdefault(u, []).append(v)
        ends = set(self.sinks) - closed
        came: dict[int, int | None] = {v: None for v in self.sources if v not in closed}
        todo = list(came)
        for v in todo:
            if v in ends:
                out: list[int] = []
                at: int | None = v
                while at is not None:
                    out.append(at)
                    at = came[at]
                return out[::-1]
            for w in ahead.get(v, ()):
                if w not in came and w not in closed:
                    came[w] = v
                    todo.append(w)
        return []


def _reach(starts: Sequence[int], ahead: Mapping[int, Sequence[int]]) -> set[int]:
    seen = set(starts)
    todo = list(starts)
    while todo:
        for w in ahead.get(todo.pop(), ()):
            if w not in seen:
                seen.add(w)
                todo.append(w)
    return seen


def network(
    program: Program,
    sinks: Sequence[Node],
    known: Proved | None,
    still: frozenset[int],
    ties: Mapping[int, Sequence[Node]] | None = None,
) -> Network:
    """The flows from the batch into some nodes.

    `known` leaves out what is proved not to flow (None: nothing is proved). `still` are ids of
    nodes that the batch does not move whatever the structure says: those of pinned sites. `ties`
    are flows that pins add: a pinned class makes each of its fields depend on all of them.
    """
    graph = program.graph
    ties = ties or {}
    cone = graph.cone([*sinks, *(n for nodes in ties.values() for n in nodes)])
    inside = {n.id for n in cone}
    vertex = _vertices(program, inside)
    out = Network(vertex)
    members: dict[int, set[int]] = {}
    for i, v in vertex.items():
        members.setdefault(v, set()).add(i)
    for site in program.sites.values():
        here = {m.node.id for m in site.marks if m.node.id in inside}
        standing = {vertex[i] for i in here}
        if len(standing) == 1 and pinnable(site) and members[min(standing)] == here:
            out.sites.setdefault(standing.pop(), []).append(site)
    before = -1
    while before != len(out.edges):  # ties may point backwards
        before = len(out.edges)
        out.sources.clear()
        for node in cone:
            _connect(program, node, out, known, still, ties.get(node.id, ()))
        if not ties:
            break
    out.sinks = sorted({vertex[n.id] for n in sinks if out.flows[n.id]})
    out.trimmed()
    return out


def pinnable(site: Site) -> bool:
    """Whether overwriting its nodes overwrites nothing else."""
    return bool(site.marks) and not any(
        m.node.op in (Op.CONST, Op.FAIL, Op.INPUT) for m in site.marks
    )


def _vertices(program: Program, inside: set[int]) -> dict[int, int]:
    """One vertex per node, but one for all marks of a site."""
    parent = {i: i for i in inside}

    def find(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    for site in program.sites.values():
        marks = [m.node.id for m in site.marks if m.node.id in inside] if pinnable(site) else []
        for i in marks[1:]:
            a, b = sorted((find(marks[0]), find(i)))
            parent[b] = a
    return {i: find(i) for i in inside}


def _connect(
    program: Program,
    node: Node,
    out: Network,
    known: Proved | None,
    still: frozenset[int],
    tied: Sequence[Node],
) -> None:
    """Add the edges into a node from whatever moves it."""
    graph = program.graph
    flows = 0
    if node.id in still:
        out.flows[node.id] = 0
        return
    if node.op is Op.INPUT:
        assert isinstance(node.attr, str)
        if graph.inputs[node.attr].is_batch(program.scope):
            out.flows[node.id] = mask_of(graph, [node.attr])
            out.sources.append(out.vertex[node.id])
        else:
            out.flows[node.id] = 0
        return
    feeding = list(node.args) if known is None else _feeding(node, known)
    for a in (*feeding, *tied):
        if out.flows.get(a.id):
            flows |= out.flows[a.id]
            u, v = out.vertex[a.id], out.vertex[node.id]
            if u != v:
                out.edges.add((u, v))
    out.flows[node.id] = flows


def _feeding(node: Node, known: Proved) -> list[Node]:
    """The nodes from which the batch gets into a node."""
    reads = known.of(node)
    if reads is None:
        return list(node.args)
    if not reads & known.batch:
        return []
    image = known.images[node]
    same = [a for a in node.args if known.images.get(a) is image]
    if same:
        return same
    twin = _twin(node, image, known)
    if twin is not None:
        return [twin]
    through = _through(image, known, [known.images[a] for a in node.args if a in known.images])
    if through is not None:
        return [a for a in node.args if known.images.get(a) in through]
    out = []
    for a in node.args:
        read = known.of(a)
        if read is None or read & reads & known.batch:
            out.append(a)
    return out


def _through(image: Node, known: Proved, arguments: Sequence[Node]) -> set[Node] | None:
    """The images of arguments by which the batch gets into `image`; None if by others too."""
    if image.op is Op.INPUT:
        return None
    stops = set(arguments)
    found: set[Node] = set()
    seen = {image}
    todo = [image]
    while todo:
        for a in todo.pop().args:
            if a in stops:
                found.add(a)
            elif known.reads[a.id] & known.batch and a not in seen:
                if a.op is Op.INPUT or len(seen) > _SEARCH:
                    return None
                seen.add(a)
                todo.append(a)
    return found


def _twin(node: Node, image: Node, known: Proved) -> Node | None:
    """An ancestor with the same image, if one is near."""
    if known.first[image] == node.id:
        return None
    todo = list(node.args)
    seen = set(todo)
    for a in todo:
        if known.images.get(a) is image:
            return a
        for b in a.args:
            if len(seen) < _SEARCH and b not in seen:
                seen.add(b)
                todo.append(b)
    return None
