"""Preparing the readings: what pins, and bit classes that are pinned, overwrite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from selc.ir.bitclass import BitClass, is_class, leaves_of, may_lack
from selc.ir.graph import Graph, Node, is_place
from selc.ir.op import Op
from selc.ir.program import Program, Site
from selc.ir.residual import Pin
from selc.ir.value import Value
from selc.passes.depend import batch_mask, masks
from selc.passes.readings import Copies, Readings, copy, domain_of, site_value, tree_of
from selc.passes.rebuild import empty_like


def read(program: Program, pins: Mapping[str, Pin]) -> Readings:
    """Prepare the readings: one leaf per pin, one constant or fixed cone per free pin."""
    return _read(program, pins, empty_like(program.graph))


def _read(program: Program, pins: Mapping[str, Pin], graph: Graph) -> Readings:
    leaves: Copies = {}
    for name in sorted(pins):
        pin = pins[name]
        if pin.at is not None:
            leaf = _fixed(program, graph, pin.site, pin.at)
        elif pin.free:
            leaf = graph.const(pin.constant)
        else:
            assert pin.parameter is not None
            leaf = graph.input(pin.parameter, "pin", domain_of(pin))
        leaves.update({mark.node.id: leaf for mark in pin.site.marks})
    out = Readings(program, pins, graph, leaves)
    classes = [c for c in program.classes if c.name in pins]
    overwrite_fields(out, {c.name: _chosen(program, pins, c, out) for c in classes})
    return out


def _chosen(
    program: Program, pins: Mapping[str, Pin], cls: BitClass, into: Readings
) -> tuple[Node, ...]:
    """What the fields of a pinned class are overwritten with.

    The program's own choice under all other pins, if it returns one that is in the class, else the
    first member of the class under which every guard holds.
    """
    graph = into.graph
    leaf = into.leaves[program.point(cls.name).node.id]
    own = _read(program, {n: p for n, p in pins.items() if n != cls.name}, graph)
    values = own.pinned([program.point(f).node for f in cls.fields])
    given = own.pinned([program.point(n).node for n, _ in cls.given])
    inside = graph.both(own.returns(), is_class(graph, cls, values, given, leaf))
    fallback = _representative(program, cls, pins[cls.name], leaf, own, values)
    return tuple([graph.select(inside, v, r) for v, r in zip(values, fallback, strict=True)])


def _representative(
    program: Program, cls: BitClass, pin: Pin, leaf: Node, own: Readings, values: Sequence[Node]
) -> list[Node]:
    """The representative of the pinned class for the input; the own choice if there is none."""
    graph = own.graph
    lacking = [may_lack(*tree_of(program, f)) for f in cls.fields]
    known = pin.candidates.values
    if pin.free and pin.at is None:
        wanted: tuple[Value, ...] = (pin.constant,)
    else:
        wanted = cls.names if known is None else (*known, *pin.offered)
    out = list(values)
    for value in wanted:
        members = [
            [graph.const(v) for v in member]
            for member in cls.in_class(value)
            if not any(v is None and lack for v, lack in zip(member, lacking, strict=True))
        ]
        if members:
            wanted_class = graph.const(value)
            first = _first_legal(program, cls, own, members, wanted_class)
            test = graph.fold(Op.EQ, leaf, wanted_class)
            out = [graph.select(test, a, b) for a, b in zip(first, out, strict=True)]
    return out


def _first_legal(
    program: Program, cls: BitClass, own: Readings, members: list[list[Node]], wanted: Node
) -> list[Node]:
    """The first member that gets through to the points and under which every guard holds."""
    points = [program.point(f).node for f in cls.fields]
    others = [program.point(n).node for n, _ in cls.given]
    graph = own.graph
    tried: dict[int, tuple[Node, list[Node]]] = {}
    for member in members:
        trial = Readings(program, own.pins, graph, dict(own.leaves), dict(own.partly))
        overwrite_fields(trial, {cls.name: tuple(member)})
        kept = is_class(graph, cls, trial.pinned(points), trial.pinned(others), wanted)
        holds = graph.both(trial.returns(), kept)
        tried.setdefault(holds.id, (holds, member))
    out = members[0]
    for holds, member in reversed(tried.values()):
        out = [graph.select(holds, a, b) for a, b in zip(member, out, strict=True)]
    return out


def overwrite_fields(readings: Readings, chosen: Mapping[str, Sequence[Node]]) -> None:
    """Overwrite the sites of the fields of some classes, and the fields themselves; pins stay."""
    program, graph = readings.program, readings.graph
    pinned = {m.node.id for p in readings.pins.values() for m in p.site.marks}
    fields = [
        (cls, f, value)
        for cls in program.classes
        if cls.name in chosen
        for f, value in zip(cls.fields, chosen[cls.name], strict=True)
    ]
    for _, f, value in fields:
        tree, marks = tree_of(program, f)
        made = graph.negate(graph.fold(Op.IS, value, graph.const(None)))
        for i in marks - pinned:
            if may_lack(tree, marks):
                readings.partly.setdefault(i, []).append((made, value))
            else:
                readings.leaves[i] = value
    ends = {program.point(f).node.id: _final(readings, cls, f, value) for cls, f, value in fields}
    readings.leaves.update(ends)


def _final(readings: Readings, cls: BitClass, field: str, value: Node) -> Node:
    """What the field is then: null where it is not made, its site's value, or `value`."""
    tree, marks = tree_of(readings.program, field)
    graph, leaves, old = readings.graph, readings.leaves, readings.program.graph
    lack = may_lack(tree, marks)
    ends = leaves_of(tree, marks)
    unnamed = field in cls.unnamed
    if not lack and all(leaves.get(n.id) is value or (unnamed and n.id not in marks) for n in ends):
        return value
    done: Copies = {}

    def real(node: Node) -> Node:
        return copy(old, graph, [node], {}, leaves, readings.partly)[0]

    def end(node: Node) -> Node:
        if node.id in done:
            return done[node.id]
        if is_place(node):
            return end(node.args[0])
        if node.id in marks or (node.op is not Op.SELECT and not unnamed):
            out = real(node)
        elif node.op is Op.SELECT:
            out = graph.select(real(node.args[0]), end(node.args[1]), end(node.args[2]))
        elif lack:
            made = graph.negate(graph.fold(Op.IS, value, graph.const(None)))
            null = node.is_const and node.attr is None
            out = graph.const(None) if null else graph.select(made, value, real(node))
        else:
            out = value
        done[node.id] = out
        return out

    return end(tree)


def _fixed(program: Program, new: Graph, site: Site, at: Mapping[str, Value]) -> Node:
    """The unpinned value of a site with the batch held at one point."""
    over = {
        node.id: new.const(at[node.attr])
        for node in program.graph.nodes
        if node.op is Op.INPUT and isinstance(node.attr, str) and node.attr in at
    }
    done: Copies = {}
    nodes = copy(program.graph, new, [m.node for m in site.marks], done, over)
    paths = copy(program.graph, new, [m.path for m in site.marks], done, over)
    value = site_value(new, site, nodes, paths)
    _, reads = masks(new)
    assert not reads[value.id] & batch_mask(new, program.scope), site.name
    return value
