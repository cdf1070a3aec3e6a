"""Fixed sequences of points of large domains, and the search for a point that meets conditions.

Two sequences, both the same on every machine. `lattice` is the Halton sequence (prime bases in the
order of the inputs), each coordinate scaled to its domain: even coverage, used for frequencies.
`probes` is meant to hit edges: all corners first, then seeded draws that mix ends of the domain,
constants of the graph with their neighbours, and small and uniform positions.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from selc.ir.domain import Domain
from selc.ir.evaluate import compile_nodes
from selc.ir.graph import Node
from selc.ir.op import Op, TooWide
from selc.ir.value import Value
from selc.vra.conditions import bare, literals
from selc.vra.enumerate import MAX_POINTS, Row, chunks, filter_of, points
from selc.vra.verdict import Admitted
from selc.vra.view import View

PROBES: Final = 4096
MAX_CORNERS: Final = 256
MAX_LANDMARKS: Final = 96
_SEED: Final = 20250101


def primes() -> Iterator[int]:
    """2, 3, 5, ..."""
    for n in itertools.count(2):
        if all(n % d for d in range(2, int(n**0.5) + 1)):
            yield n


def positions(base: int, size: int, count: int) -> list[int]:
    """The first `count` points of van der Corput's sequence from 1 on, each scaled to 0..size-1.

    The digits of k in `base`, mirrored at the point, are an exact fraction that follows from the
    one of k // base.
    """
    tops, bottoms = [0], [1]
    for k in range(1, count + 1):
        rest, digit = divmod(k, base)
        below = bottoms[rest]
        tops.append(digit * below + tops[rest])
        bottoms.append(below * base)
    return [top * size // bottom for top, bottom in zip(tops[1:], bottoms[1:], strict=True)]


def lattice(view: View, names: Sequence[str], count: int) -> Iterator[Row]:
    """The first `count` points of the Halton sequence over the declared domains."""
    domains = [view.graph.inputs[n].domain for n in names]
    bases = itertools.islice(primes(), len(names))
    columns = [
        [domain[i] for i in positions(base, len(domain), count)]
        for domain, base in zip(domains, bases, strict=True)
    ]
    yield from zip(*columns, strict=True) if columns else itertools.repeat((), count)


def landmarks(view: View) -> list[int]:
    """Integer constants of the graph, with their neighbours."""
    near: dict[int, None] = {}
    for node in view.graph.nodes:
        if node.op is Op.CONST and isinstance(node.attr, int):
            near |= dict.fromkeys(node.attr + d for d in (-1, 0, 1))
    return list(near)


def _inside(domain: Domain, marks: Sequence[int]) -> list[Value]:
    if domain.values is not None:
        return []
    return list(itertools.islice((v for v in marks if v in domain), MAX_LANDMARKS))


def probes(view: View, names: Sequence[str], count: int = PROBES) -> Iterator[Row]:
    """Corners, then `count` draws near edges and constants.

    Inputs that an assume equates with a function of others are set to what it says.
    """
    tie = _tied(view, names)
    domains = [view.graph.inputs[n].domain for n in names]
    ends = [(d[0], d[len(d) - 1]) if len(d) > 1 else (d[0],) for d in domains]
    yield from map(tie, itertools.islice(itertools.product(*ends), MAX_CORNERS))
    marks = landmarks(view)
    near = [_inside(d, marks) for d in domains]
    draw = random.Random(_SEED)  # noqa: S311  # a fixed sequence, not a secret
    for _ in range(count):
        row = []
        for domain, some in zip(domains, near, strict=True):
            size = len(domain)
            how = draw.randrange(4)
            if how == 0:
                row.append(domain[draw.choice((0, size - 1))])
            elif how == 1 and some:
                row.append(draw.choice(some))
            elif how == 2:
                row.append(domain[min(size - 1, int(size ** draw.random()) - 1)])
            else:
                row.append(domain[draw.randrange(size)])
        yield tie(tuple(row))


def walks(view: View, names: Sequence[str], count: int) -> list[Row]:
    """Up to `count` admitted points: probes, then steps from those found, one input at a time.

    Where assumes tie inputs together hardly a draw is admitted; a step from a point that is can be.
    """
    keep = filter_of(view, view.admits, names)
    tie = _tied(view, names)
    found = dict.fromkeys(keep(list(dict.fromkeys(probes(view, names, 4 * count)))))
    if not found:
        point = find(view, view.admits, view.mask_of(names)).example
        if point is not None:
            found = dict.fromkeys(keep([tuple(point[n] for n in names)]))
    draw = random.Random(_SEED)  # noqa: S311  # a fixed sequence, not a secret
    steps = [list(dict.fromkeys(v for (v,) in probes(view, [n], 96))) for n in names]
    for _ in range(8 if view.admits else 0):
        if not 0 < len(found) < count:
            break
        known = list(found)
        tried: dict[Row, None] = {}
        for _ in range(2 * count):
            row = list(draw.choice(known))
            k = draw.randrange(len(row))
            row[k] = draw.choice(steps[k])
            tried[tie(tuple(row))] = None
        found |= dict.fromkeys(keep(list(tried)))
    rows = list(found)
    step = max(1, len(rows) // count)
    return rows[::step][:count]


def _tied(view: View, names: Sequence[str]) -> Callable[[Row], Row]:
    """Sets each input that an assume equates with a function of others to what they say."""
    ties: list[tuple[int, Node]] = []
    within = view.mask_of(names)
    for node, holds in [part for n in view.admits for part in literals(n)]:
        if node.op is not Op.EQ or not holds:
            continue
        for a, b in (node.args, node.args[::-1]):
            leaf = bare(a)
            if (
                leaf.op is Op.INPUT
                and leaf.attr in names
                and not view.masks[b.id] & ~(within & ~view.masks[leaf.id])
            ):
                ties.append((names.index(str(leaf.attr)), b))
                break
    if not ties:
        return lambda row: row
    others = compile_nodes(view.graph, [b for _, b in ties], names, view.facts)

    def tie(row: Row) -> Row:
        out = list(row)
        for (k, _), value in zip(ties, others(*row), strict=True):
            out[k] = value
        domains = view.graph.inputs
        inside = all(out[k] in domains[names[k]].domain for k, _ in ties)
        return tuple(out) if inside else row

    return tie


def components(view: View, conditions: Sequence[Node], mask: int) -> list[int]:
    """The inputs of `mask` in groups that no condition connects, in the order of the inputs."""
    groups = []
    while mask:
        low = mask & -mask
        group = view.closure(low, conditions)
        groups.append(group)
        mask &= ~group
    return groups


def find(view: View, conditions: Sequence[Node], mask: int, budget: int = MAX_POINTS) -> Admitted:
    """A point over `mask` (closed under the conditions) at which every condition holds.

    The first such point of each group of connected inputs, where the group can be enumerated.
    """
    example: dict[str, Value] = {}
    live = [n for n in conditions if not view.certain(n)]
    if any(not view.masks[n.id] for n in live):
        return Admitted(None, decided=True)
    for group in components(view, live, mask):
        names = view.inputs_of(group)
        row, decided = _first(view, live, group, budget)
        if row is None:
            return Admitted(None, decided)
        example.update(zip(names, row, strict=True))
    return Admitted(example, decided=True)


def _first(
    view: View, conditions: Sequence[Node], group: int, budget: int
) -> tuple[Row | None, bool]:
    names = view.inputs_of(group)
    own = [n for n in conditions if view.masks[n.id] & group]
    if not own:
        return tuple(view.first(n) for n in names), True
    try:
        enumerated = points(view, group, own, budget)
        if enumerated is not None:
            return next((chunk[0] for chunk in enumerated if chunk), None), True
        keep = filter_of(view, own, names)
        for chunk in chunks(probes(view, names)):
            if kept := keep(chunk):
                return kept[0], True
    except TooWide:
        pass
    from selc.vra import smt

    return smt.find(view, own, names)


def admitted_example(view: View, budget: int = MAX_POINTS) -> Admitted:
    """An input on which every assume holds, over all inputs."""
    return find(view, view.admits, (1 << len(view.names)) - 1, budget)
