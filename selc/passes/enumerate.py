"""Equalities that only the declared domains prove, found by evaluating every point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Final

from selc.ir.absval import AbsVal, never_fails
from selc.ir.columns import Axis, Column, Columns
from selc.ir.evaluate import abstract
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

_SIMPLE: Final = (bool, int, str, type(None))

Values = Sequence[Value]


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
    grid = _Grid(graph, cluster, setting)
    if cluster.size <= FULL:
        grid.fill(nodes)
        columns = {n.id: tuple(grid.full(n)) for n in nodes}
        suspects = _suspects(
            cluster, nodes, columns, dict.fromkeys((n.id for n in nodes), 0), setting
        )
    else:
        suspects = _sampled(graph, cluster, nodes, setting)
        while wanted := suspects.nodes():
            if grid.cost(wanted) <= WORK:
                break
            suspects = suspects.halved()
        if not wanted:
            return
        grid.fill(wanted)
    _confirm(grid, suspects, setting, findings)


class _Grid:
    """The columns of a cluster's nodes, each over the inputs that it reads."""

    def __init__(self, graph: Graph, cluster: Cluster, setting: _Setting) -> None:
        leaves = {str(n.attr): n for n in graph.nodes if n.op is Op.INPUT}
        self.graph = graph
        self.facts = setting.facts
        self.sizes = [len(d) for d in cluster.domains]
        axes = [
            Axis((leaves[name],), [(v,) for v in domain])
            for name, domain in zip(cluster.names, cluster.domains, strict=True)
        ]
        self.work = Columns(graph, setting.facts, axes)
        self.whole = (1 << len(axes)) - 1
        self.bits = _bits(cluster)
        self.reads = setting.reads
        self.columns: dict[int, Column] = {}

    def own(self, node: Node) -> int:
        """The axes that a node reads."""
        reads = self.reads[node.id]
        return sum(1 << k for k, bit in enumerate(self.bits) if reads & bit)

    def cost(self, nodes: Sequence[Node]) -> int:
        """What evaluating some nodes costs, in plain operations."""
        out = 0
        for node in self.graph.cone(nodes):
            args = [self.facts[a.id] for a in node.args]
            plain = node.op in _PLAIN or (
                all(f.defined for f in args) and never_fails(node.op, node.attr, args)
            )
            out += (1 if plain else _SLOW) * self.work.size(self.own(node))
        return out

    def fill(self, nodes: Sequence[Node]) -> None:
        """Evaluate some nodes.

        Raises:
            TooWide: at some point some node cannot be evaluated.
        """
        self.columns = self.work.run(nodes)
        if any(c.wide for c in self.columns.values()):
            raise TooWide

    def over(self, node: Node, mask: int) -> Column:
        """A node's values over some axes, which include its own."""
        return Column(mask, self.work.spread(self.columns[node.id], mask))

    def full(self, node: Node) -> Sequence[Value]:
        """A node's values at every point."""
        return self.over(node, self.whole).values


def _sampled(graph: Graph, cluster: Cluster, nodes: Sequence[Node], setting: _Setting) -> _Suspects:
    chosen = sample(cluster)
    leaves = {str(n.attr): n for n in graph.nodes if n.op is Op.INPUT}
    work = Columns(
        graph, setting.facts, [Axis(tuple([leaves[n] for n in cluster.names]), chosen.points)]
    )
    found = work.run(nodes)
    columns = {}
    moved = {}
    bits = _bits(cluster)
    pairs: dict[int, tuple[list[int], list[int]]] = {k: ([], []) for k in range(len(bits))}
    for a, b, k in chosen.pairs:
        pairs[k][0].append(a)
        pairs[k][1].append(b)
    for node in nodes:
        column = found[node.id]
        if column.wide:
            raise TooWide
        values = tuple(work.spread(column, 1))
        columns[node.id] = values
        moved[node.id] = 0
        for k, (first, second) in pairs.items():
            if setting.reads[node.id] & bits[k] and not all(
                alike(values[a], values[b]) for a, b in zip(first, second, strict=True)
            ):
                moved[node.id] |= bits[k]
    return _suspects(cluster, nodes, columns, moved, setting)


def _bits(cluster: Cluster) -> list[int]:
    """The mask bit of each input of the cluster, in its order."""
    return [1 << k for k in range(cluster.mask.bit_length()) if cluster.mask >> k & 1]


def _suspects(
    cluster: Cluster,
    nodes: Sequence[Node],
    columns: Mapping[int, Values],
    moved: Mapping[int, int],
    setting: _Setting,
) -> _Suspects:
    out = _Suspects()
    seen: dict[Values, Node] = {}
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


def _confirm(grid: _Grid, suspects: _Suspects, setting: _Setting, findings: _Findings) -> None:
    """Keep of the suspects what holds on every point."""
    seen = _Premises(grid, setting)
    if seen.never:
        return
    for node in suspects.constants:
        column, chosen = seen.column(node)
        values = column.values if chosen is None else list(compress(column.values, chosen))
        if _constant(values) and (node.op is not Op.OK or all(values)):
            findings.constants[node.id] = next((v for v in values if v is not UNDEF), UNDEF)
    for node, other in suspects.pairs:
        if node.id not in findings.constants and _same(grid, node, other, seen):
            findings.merged[node.id] = other
    for node, killed in suspects.drops:
        if node.id not in findings.constants and node.id not in findings.merged:
            idle = _idle_inputs(grid, killed, *seen.column(node))
            if idle:
                findings.dropped[node.id] = idle


def _same(grid: _Grid, node: Node, other: Node, seen: _Premises) -> bool:
    """Whether two nodes are equal wherever it counts for the first."""
    column, chosen = seen.column(node)
    mine, theirs = column.values, grid.over(other, column.mask).values
    if chosen is not None:
        mine, theirs = list(compress(mine, chosen)), list(compress(theirs, chosen))
    return same_column(mine, theirs)


def _idle_inputs(grid: _Grid, killed: int, column: Column, admitted: Sequence[bool] | None) -> int:
    """Which of some inputs can be held at their first values without changing a column."""
    out = 0
    for k, bit in enumerate(grid.bits):
        if not killed & bit:
            continue
        stride = grid.work.size(column.mask >> (k + 1) << (k + 1))
        if not column.mask >> k & 1 or _idle(column.values, stride, grid.sizes[k], admitted):
            out |= bit
            if admitted is not None:
                break  # with points left out, two idle inputs need not be idle together
    return out


class _Premises:
    """At which points the premises on a cluster's inputs hold."""

    def __init__(self, grid: _Grid, setting: _Setting) -> None:
        self.grid = grid
        self.themselves = {n.id for n in grid.graph.cone(setting.given)}
        whole = sum(grid.bits)
        given = [g for g in setting.given if not setting.reads[g.id] & ~whole]
        self.flags: Column | None = None
        self.never = False
        if given:
            found = grid.work.run(given)
            mask = 0
            for column in found.values():
                mask |= column.mask
            spread = [grid.work.spread(c, mask) for c in found.values()]
            flags = [all(v is True for v in row) for row in zip(*spread, strict=True)]
            self.flags = Column(mask, flags)
            self.never = not any(flags)

    def column(self, node: Node) -> tuple[Column, list[bool] | None]:
        """A node's values and which of them count; a premise does not simplify itself."""
        grid = self.grid
        own = grid.own(node)
        if self.flags is None or node.id in self.themselves:
            return grid.over(node, own), None
        own |= self.flags.mask
        return grid.over(node, own), [v is True for v in grid.work.spread(self.flags, own)]


def _constant(values: Sequence[Value]) -> bool:
    """Whether there are no two different defined values."""
    if not values:
        return True
    first = values[0]
    if first is not UNDEF and type(first) in _SIMPLE and values.count(first) == len(values):
        return set(map(type, values)) == {type(first)}
    known = {value_key(v) for v in values if v is not UNDEF}
    return len(known) <= 1


def _idle(column: Values, stride: int, count: int, admitted: Sequence[bool] | None) -> bool:
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
