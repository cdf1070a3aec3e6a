"""Points of small products of domains, in part or in full, and how columns of values compare."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from selc.ir.domain import Domain
from selc.ir.graph import Graph, Node
from selc.ir.op import Op
from selc.ir.value import Value, value_key

MAX_POINTS: Final = 1 << 16
"""The largest product of domains that is enumerated."""

FULL: Final = 256
"""Up to so many points nothing is gained by sampling first."""

_EXACT: Final = frozenset({bool, int, str})
"""Types whose values are equal only if they are of equal bits."""

_BASES: Final = 24
_CLUSTERS: Final = 12

Row = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Cluster:
    """Nodes that read no other inputs than these, whose product of domains is small."""

    mask: int
    names: tuple[str, ...]
    domains: tuple[Domain, ...]
    nodes: tuple[Node, ...]

    @property
    def size(self) -> int:
        """The number of points."""
        return math.prod(len(d) for d in self.domains)

    def points(self) -> Iterator[Row]:
        """Every point, the last input moving fastest."""
        return itertools.product(*self.domains)

    def stride(self, k: int) -> int:
        """How far apart two points are that differ by one step of input `k`."""
        return math.prod(len(d) for d in self.domains[k + 1 :])


def clusters(graph: Graph, cone: Sequence[Node], masks: Sequence[int]) -> list[Cluster]:
    """Group the nodes by the inputs they read; those that read too much are in no group."""
    names = tuple(graph.inputs)
    size: dict[int, int] = {}
    for node in cone:
        mask = masks[node.id]
        if mask and mask not in size:
            size[mask] = math.prod(len(graph.inputs[n].domain) for n in _names(names, mask))
    small = sorted(
        (m for m, s in size.items() if 0 < s <= MAX_POINTS), key=lambda m: (-m.bit_count(), m)
    )
    maximal: list[int] = []
    for mask in small:
        if all(mask & ~m for m in maximal):
            maximal.append(mask)
    members: dict[int, list[Node]] = {m: [] for m in maximal[:_CLUSTERS]}
    home: dict[int, int | None] = {}
    for node in cone:
        mask = masks[node.id]
        if not mask:
            continue
        if mask not in home:
            home[mask] = next((m for m in members if not mask & ~m), None)
        where = home[mask]
        if where is not None:
            members[where].append(node)
    out = []
    for mask, nodes in members.items():
        own = _names(names, mask)
        if any(n.op is not Op.INPUT for n in nodes):
            out.append(Cluster(mask, own, tuple(graph.inputs[n].domain for n in own), tuple(nodes)))
    return out


def _names(names: Sequence[str], mask: int) -> tuple[str, ...]:
    return tuple(n for k, n in enumerate(names) if mask >> k & 1)


@dataclass(frozen=True, slots=True)
class Sample:
    """Some points; `pairs` are indices of two points that differ in input `k` alone."""

    points: list[Row]
    pairs: list[tuple[int, int, int]]


def sample(cluster: Cluster) -> Sample:
    """A fixed choice of points: corners, points spread over the domains, and their neighbours."""
    domains = cluster.domains
    state = 12345
    bases = [tuple(0 for _ in domains), tuple(len(d) - 1 for d in domains)]
    for _ in range(_BASES):
        spread = []
        for d in domains:
            state = (state * 1103515245 + 12345) & 0x7FFFFFFF
            spread.append((state >> 8) % len(d))
        bases.append(tuple(spread))
    points: list[Row] = []
    pairs: list[tuple[int, int, int]] = []
    for base in bases:
        at = len(points)
        points.append(tuple(d[i] for d, i in zip(domains, base, strict=True)))
        for k, d in enumerate(domains):
            state = (state * 1103515245 + 12345) & 0x7FFFFFFF
            others = {0, len(d) - 1, min(base[k] + 1, len(d) - 1), (state >> 8) % len(d)} - {
                base[k]
            }
            for i in sorted(others):
                pairs.append((at, len(points), k))
                points.append((*points[at][:k], d[i], *points[at][k + 1 :]))
    return Sample(points, pairs)


def alike(a: Value, b: Value) -> bool:
    """Not certainly different: a quick test that may take 0.0 and -0.0 for one."""
    return a is b or (type(a) is type(b) and a == b)


def same_column(a: Sequence[Value], b: Sequence[Value]) -> bool:
    """Whether two columns are equal value by value, in type and bits."""
    if not all(map(operator.eq, a, b)) or len(a) != len(b):
        return False
    kinds = set(map(type, a))
    if kinds != set(map(type, b)):
        return False
    if len(kinds) == 1 and kinds <= _EXACT:
        return True
    return list(map(value_key, a)) == list(map(value_key, b))
