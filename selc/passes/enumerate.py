"""Equalities that only the declared domains prove, found by evaluating every point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Final

from selc.ir.absval import AbsVal, never_fails
from selc.ir.evaluate import abstract, compile_nodes
from selc.ir.graph import Graph, Node
from selc.ir.op import Op, TooWide
from selc.ir.value import UNDEF, Value, value_key
from selc.passes.depend import masks
from selc.passes.peval import known
from selc.passes.rebuild import Images, keep, rebuild
from selc.passes.sample import FULL, Cluster, alike, clusters, same_column, sample

WORK: Final = 4_000_000
"""Plain operations that one cluster may cost."""

_SLOW: Final = 40
"""An operation that may fail, or may see a failed value, in plain operations."""

_MAX_NODES: Final = 4000
_MAX_DROPS: Final = 64
_PLAIN: Final = frozenset({Op.CONST, Op.INPUT, Op.MARK, Op.FAIL, Op.SELECT, Op.LOOKUP})
_LEAVES: Final = frozenset({Op.CONST, Op.INPUT, Op.FAIL})

Column = Sequence[Value]


def enumerate_points(
    graph: Graph, roots: Sequence[Node], given: Sequence[Node] = ()
) -> tuple[Graph, Images]:
    """Merge nodes that are equal on every point of the declared domains.

    Before (`m` in 1..1024):

        v1 = floordiv v0, 64
        v2 = floordiv v0, 128
        v3 = lt v1, v2
        v4 = select v3, 1, v9

    After: `v3` is False and `v4` is `v9`. A value that reads an input without being moved by it is
    made of the same operations with that input at its first value. Groups of nodes whose inputs
    have small domains are looked at apart. A sample of points tells what could be equal; only that
    is evaluated on all points.
    """
    cone = graph.cone(roots)
    _, reads = masks(graph)
    findings = _Findings()
    facts = abstract(graph)
    for cluster in clusters(graph, cone, reads):
        if len(cluster.nodes) <= _MAX_NODES:
            try:
                _look(
                    graph,
                    cluster,
                    _Setting(reads, facts, frozenset(r.id for r in roots), given),
                    findings,
                )
            except TooWide:
                continue
    if findings.empty:
        return rebuild(graph, roots)
    return rebuild(graph, roots, _Rewrite(graph, reads, findings).rule)


@dataclass(frozen=True, slots=True)
class _Setting:
    reads: Sequence[int]
    facts: Sequence[AbsVal]
    roots: frozenset[int]
    given: Sequence[Node]


@dataclass(slots=True)
class _Findings:
    constants: dict[int, Value] = field(default_factory=dict)
    merged: dict[int, Node] = field(default_factory=dict)
    dropped: dict[int, int] = field(default_factory=dict)  # node id -> inputs that do not move it

    @property
    def empty(self) -> bool:
        return not (self.constants or self.merged or self.dropped)


@dataclass(slots=True)
class _Suspects:
    """What the sample could not rule out."""

    constants: list[Node] = field(default_factory=list)
    pairs: list[tuple[Node, Node]] = field(default_factory=list)
    drops: list[tuple[Node, int]] = field(default_factory=list)

    def nodes(self) -> list[Node]:
        """Everything that has to be evaluated, by id."""
        out = {n.id: n for n in self.constants}
        out.update({n.id: n for n, _ in self.drops})
        out.update({n.id: n for pair in self.pairs for n in pair})
        return [out[k] for k in sorted(out)]

    def halved(self) -> _Suspects:
        """The more promising half: what reads no input stops the most flow."""
        if self.pairs:
            return _Suspects(self.constants, self.pairs[: len(self.pairs) // 2], self.drops)
        return _Suspects(
            self.constants[: len(self.constants) // 2], [], self.drops[: len(self.drops) // 2]
        )


def _look(graph: Graph, cluster: Cluster, setting: _Setting, findings: _Findings) -> None:
    nodes = [n for n in cluster.nodes if n.op is not Op.CONST]
    if cluster.size <= FULL:
        evaluate = compile_nodes(graph, nodes, cluster.names, setting.facts)
        rows = [evaluate(*p) for p in cluster.points()]
        columns = dict(zip([n.id for n in nodes], zip(*rows, strict=True), strict=True))
        suspects = _suspects(
            cluster, nodes, columns, dict.fromkeys((n.id for n in nodes), 0), setting
        )
    else:
        suspects = _sampled(graph, cluster, nodes, setting)
        columns = {}
        while wanted := suspects.nodes():
            if _cost(graph, wanted, setting.facts) * cluster.size <= WORK:
                break
            suspects = suspects.halved()
        if not wanted:
            return
        evaluate = compile_nodes(graph, wanted, cluster.names, setting.facts)
        rows = [evaluate(*p) for p in cluster.points()]
        columns = dict(zip([n.id for n in wanted], zip(*rows, strict=True), strict=True))
    _confirm(graph, cluster, suspects, columns, setting, findings)


def _cost(graph: Graph, nodes: Sequence[Node], facts: Sequence[AbsVal]) -> int:
    """What evaluating some nodes at one point costs, in plain operations."""
    out = 0
    for node in graph.cone(nodes):
        args = [facts[a.id] for a in node.args]
        plain = node.op in _PLAIN or (
            all(f.defined for f in args) and never_fails(node.op, node.attr, args)
        )
        out += 1 if plain else _SLOW
    return out


def _sampled(graph: Graph, cluster: Cluster, nodes: Sequence[Node], setting: _Setting) -> _Suspects:
    chosen = sample(cluster)
    evaluate = compile_nodes(graph, nodes, cluster.names, setting.facts)
    rows = [evaluate(*p) for p in chosen.points]
    columns = dict(zip([n.id for n in nodes], zip(*rows, strict=True), strict=True))
    bits = _bits(cluster)
    moved = [0] * len(nodes)
    for a, b, k in chosen.pairs:
        bit = bits[k]
        for j, (x, y) in enumerate(zip(rows[a], rows[b], strict=True)):
            if x is not y and not moved[j] & bit and not alike(x, y):
                moved[j] |= bit
    return _suspects(
        cluster, nodes, columns, {n.id: m for n, m in zip(nodes, moved, strict=True)}, setting
    )


def _bits(cluster: Cluster) -> list[int]:
    """The mask bit of each input of the cluster, in its order."""
    return [1 << k for k in range(cluster.mask.bit_length()) if cluster.mask >> k & 1]


def _suspects(
    cluster: Cluster,
    nodes: Sequence[Node],
    columns: Mapping[int, Column],
    moved: Mapping[int, int],
    setting: _Setting,
) -> _Suspects:
    out = _Suspects()
    seen: dict[Column, Node] = {}
    for node in nodes:
        column = columns[node.id]
        first = seen.setdefault(column, node)
        if node.op in _LEAVES:
            continue
        if column.count(column[0]) == len(column) or UNDEF in column:
            out.constants.append(node)
        if first is not node and not setting.reads[first.id] & ~setting.reads[node.id]:
            out.pairs.append((node, first))
        killed = idle = setting.reads[node.id] & ~moved[node.id]
        if cluster.size > FULL and node.id not in setting.roots:
            killed = 0
            for a in node.args:
                killed |= idle & moved.get(a.id, 0)
        if killed:
            out.drops.append((node, killed))
    out.drops.sort(key=lambda d: (d[0].id not in setting.roots, -d[0].id))
    del out.drops[_MAX_DROPS:]
    return out


def _confirm(
    graph: Graph,
    cluster: Cluster,
    suspects: _Suspects,
    columns: Mapping[int, Column],
    setting: _Setting,
    findings: _Findings,
) -> None:
    """Keep of the suspects what holds on every point."""
    admitted = _admitted(graph, cluster, setting)
    if admitted is not None and not any(admitted):
        return
    themselves = {n.id for n in graph.cone(setting.given)}

    def flags(node: Node) -> list[bool] | None:
        """The points that count for a node; a premise does not simplify itself."""
        return None if node.id in themselves else admitted

    def column(node: Node, chosen: list[bool] | None) -> Column:
        full = columns[node.id]
        return full if chosen is None else tuple(compress(full, chosen))

    for node in suspects.constants:
        values = column(node, flags(node))
        defined = [v for v in values if v is not UNDEF]
        if _constant(defined) and (node.op is not Op.OK or all(values)):
            findings.constants[node.id] = defined[0] if defined else UNDEF
    for node, other in suspects.pairs:
        chosen = flags(node)
        if node.id not in findings.constants and same_column(
            column(node, chosen), column(other, chosen)
        ):
            findings.merged[node.id] = other
    for node, killed in suspects.drops:
        if node.id not in findings.constants and node.id not in findings.merged:
            idle = _idle_inputs(cluster, columns[node.id], killed, flags(node))
            if idle:
                findings.dropped[node.id] = idle


def _idle_inputs(
    cluster: Cluster, column: Column, killed: int, admitted: Sequence[bool] | None
) -> int:
    """Which of some inputs can be held at their first values without changing a column."""
    out = 0
    for k, bit in enumerate(_bits(cluster)):
        if killed & bit and _idle(column, cluster.stride(k), len(cluster.domains[k]), admitted):
            out |= bit
            if admitted is not None:
                break  # with points left out, two idle inputs need not be idle together
    return out


def _admitted(graph: Graph, cluster: Cluster, setting: _Setting) -> list[bool] | None:
    """For every point whether the premises on these inputs hold; None if there are none."""
    given = [g for g in setting.given if not setting.reads[g.id] & ~cluster.mask]
    if not given:
        return None
    holds = compile_nodes(graph, given, cluster.names, setting.facts)
    wanted = (True,) * len(given)
    return [holds(*p) == wanted for p in cluster.points()]


def _constant(values: Sequence[Value]) -> bool:
    if not values:
        return True
    first = value_key(values[0])
    return all(v is values[0] or value_key(v) == first for v in values)


def _idle(column: Column, stride: int, count: int, admitted: Sequence[bool] | None) -> bool:
    """Whether setting one input to its first value changes nothing on the admitted points."""
    block = stride * count
    for start in range(0, len(column), block):
        first = column[start : start + stride]
        for at in range(start + stride, start + block, stride):
            here = column[at : at + stride]
            if admitted is not None:
                flags = admitted[at : at + stride]
                if not same_column(tuple(compress(first, flags)), tuple(compress(here, flags))):
                    return False
            elif not same_column(first, here):
                return False
    return True


class _Rewrite:
    """Applies the findings while the graph is rebuilt."""

    def __init__(self, graph: Graph, reads: Sequence[int], findings: _Findings) -> None:
        self.graph = graph
        self.reads = reads
        self.findings = findings
        self.images: dict[int, Node] = {}
        self.fixed: dict[tuple[int, int], Node] = {}

    def rule(self, new: Graph, node: Node, args: tuple[Node, ...]) -> Node:
        """The image of one node."""
        made = self._image(new, node, args)
        self.images[node.id] = made
        return made

    def _image(self, new: Graph, node: Node, args: tuple[Node, ...]) -> Node:
        found = self.findings
        if node.id in found.constants:
            return new.const(found.constants[node.id])
        if node.id in found.merged:
            return self.images[found.merged[node.id].id]
        if node.id in found.dropped:
            return self._without(new, node, found.dropped[node.id])
        made = known(new, node.op, node.attr, args)
        return keep(new, node, args) if made is None else made

    def _without(self, new: Graph, root: Node, idle: int) -> Node:
        """The node with the idle inputs at their first values."""
        for node in self.graph.cone([root]):
            key = (node.id, idle)
            if key in self.fixed:
                continue
            if not self.reads[node.id] & idle:
                self.fixed[key] = self.images[node.id]
            elif node.op is Op.INPUT:
                assert isinstance(node.attr, str)
                self.fixed[key] = new.const(self.graph.inputs[node.attr].domain[0])
            else:
                args = tuple([self.fixed[a.id, idle] for a in node.args])
                made = known(new, node.op, node.attr, args)
                self.fixed[key] = keep(new, node, args) if made is None else made
        return self.fixed[root.id, idle]
