"""R: the program with parameters for pins, simplified for all their values at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from selc.ir.graph import Graph, Node
from selc.ir.program import Guard, Program
from selc.ir.residual import Pin, Residual, ResidualGuard
from selc.passes.overwrites import read
from selc.passes.readings import Readings, layout
from selc.passes.rebuild import Images, empty_like
from selc.passes.simplify import simplify


@dataclass(frozen=True, slots=True)
class PointsOnly:
    """The `bits` points of R alone, and what became of G0's nodes on the way to them."""

    graph: Graph
    points: tuple[Node, ...]
    images: Mapping[Node, Node]  # node of G0 -> node of `graph`, for what is still read


def residual_points(
    program: Program,
    pins: Mapping[str, Pin],
    skip: frozenset[str] = frozenset(),
    given: Sequence[Guard] = (),
) -> PointsOnly:
    """The `bits` points under pins, simplified (with the assumes in `given` as premises)."""
    readings = read(program, pins)
    nodes = [p.node for p in program.points if p.role == "bits"]
    copies = readings.pinned(nodes)
    premises = [_holds(readings.graph, *readings.real([g.path, g.cond])) for g in given]
    graph, images = simplify(readings.graph, copies, skip, premises)
    moved = {}
    for node in program.graph.cone(nodes):
        copied = readings.copy_of(node)
        if copied is not None and copied in images:
            moved[node] = images[copied]
    return PointsOnly(graph, tuple([images[c] for c in copies]), moved)


def residualize(
    program: Program, pins: Mapping[str, Pin], skip: frozenset[str] = frozenset()
) -> Residual:
    """Build R.

    Before (G0, `plan.a` pinned):

        v1 = floordiv v0, 64
        v2 = mark v1              # plan.a
        v3 = lt v2, 2             # point "wide"
        v4 = le v2, 8             # guard

    After:

        v0 = input "plan.a"       # a parameter over the candidates
        v1 = le v0, 1             # point "wide"
        v2 = le v0, 8             # guard, reading (a)
        v3 = input "m"
        v4 = le v3, 575           # guard, reading (b)

    The points that must not follow the batch are simplified apart from the others and from the
    guards: what a guard reads is read without any condition, and would hide what the points know.
    """
    readings = read(program, pins)
    graph = readings.graph
    groups = [
        [p.node for p in program.points if p.role == "bits"],
        [p.node for p in program.points if p.role != "bits"],
    ]
    guards = _guards(program, pins, readings)
    assumes = [
        (g, _holds(graph, *readings.real([g.path, g.cond])))
        for g in program.guards
        if g.kind == "assume"
    ]
    copies = [readings.pinned(group) for group in groups]
    copies.append([n for g in guards for n in g.readings] + [n for _, n in assumes])
    merged = empty_like(graph)
    images: Images = {}
    for roots in copies:
        made, moved = simplify(graph, roots, skip)
        _pour(merged, made, roots, moved, images)
    points = {p.name: readings.pinned([p.node])[0] for p in program.points}
    return Residual(
        graph=merged,
        scope=program.scope,
        points=[(p, images[points[p.name]]) for p in program.points],
        guards=[_distinct(g, images) for g in guards],
        assumes=[(g, images[n]) for g, n in assumes],
        pins=[pins[name] for name in sorted(pins)],
        knobs=sorted(n for n, i in program.graph.inputs.items() if i.kind == "knob"),
    )


def _guards(program: Program, pins: Mapping[str, Pin], readings: Readings) -> list[ResidualGuard]:
    """Every `require` in all readings that it needs, before simplification."""
    where = layout(program, pins)
    between = [n for n in program.graph.nodes if n.id in where.between]
    out = []
    for g in program.guards:
        if g.kind == "assume":
            continue
        both = [g.path, g.cond]
        mixes, unseen = where.hides(g)
        out.append(
            ResidualGuard(
                g,
                _holds(readings.graph, *readings.pinned(both)),
                _holds(readings.graph, *readings.adaptive(both)),
                _holds(readings.graph, *readings.mixed(both, between)) if mixes else None,
                unseen,
            )
        )
    return out


def _holds(graph: Graph, path: Node, cond: Node) -> Node:
    """`path` implies `cond`."""
    return graph.select(path, cond, graph.const(True))


def _distinct(guard: ResidualGuard, images: Images) -> ResidualGuard:
    """The guard on simplified nodes, without readings that say nothing new."""
    pinned = images[guard.pinned]
    adaptive = None if guard.adaptive is None else images[guard.adaptive]
    mixed = None if guard.mixed is None else images[guard.mixed]
    return ResidualGuard(
        guard.guard,
        pinned,
        None if adaptive is pinned else adaptive,
        None if mixed is pinned or mixed is adaptive else mixed,
        guard.unseen,
    )


def _pour(merged: Graph, made: Graph, roots: Sequence[Node], moved: Images, images: Images) -> None:
    """Copy what some roots became into the graph that holds all."""
    ends = [moved[r] for r in roots]
    done: dict[int, Node] = {}
    for node in made.cone(ends):
        done[node.id] = new = merged.add(node.op, *[done[a.id] for a in node.args], attr=node.attr)
        span = made.origin.get(node.id)
        if span is not None and node.args:
            merged.origin.setdefault(new.id, span)
    for r, end in zip(roots, ends, strict=True):
        images.setdefault(r, done[end.id])
