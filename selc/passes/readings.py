"""The readings of a program under pins, side by side in one graph over inputs and parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from selc.ir.bitclass import BitClass, is_class, leaves_of, may_lack, places
from selc.ir.domain import Domain
from selc.ir.graph import Graph, Node
from selc.ir.op import Op
from selc.ir.program import Guard, Program, Site
from selc.ir.residual import Pin
from selc.ir.value import Value, value_key
from selc.passes.depend import batch_mask, masks
from selc.passes.rebuild import empty_like

Copies = dict[int, Node]
"""Node id of G0 -> its copy in one reading."""

Partly = dict[int, list[tuple[Node, Node]]]
"""Node id of G0 -> the values that replace it, each under a condition, the first that holds."""


@dataclass(slots=True)
class Readings:
    """G0 copied once per reading; copies that agree are one node."""

    program: Program
    pins: Mapping[str, Pin]
    graph: Graph
    leaves: Copies
    partly: Partly = field(default_factory=dict)
    _pinned: Copies = field(default_factory=dict)
    _adaptive: Copies = field(default_factory=dict)
    _real: Copies = field(default_factory=dict)

    def pinned(self, nodes: Sequence[Node]) -> list[Node]:
        """Reading (a): every pinned site overwritten."""
        return copy(self.program.graph, self.graph, nodes, self._pinned, self.leaves, self.partly)

    def returns(self) -> Node:
        """Whether every requirement holds in reading (a)."""
        out = self.graph.const(True)
        for g in reversed(self.program.guards):
            if g.kind == "require":
                path, cond = self.pinned([g.path, g.cond])
                out = self.graph.both(self.graph.select(path, cond, self.graph.const(True)), out)
        return out

    def copy_of(self, node: Node) -> Node | None:
        """The copy of a node in reading (a), if it was made."""
        return self._pinned.get(node.id)

    def real(self, nodes: Sequence[Node]) -> list[Node]:
        """The unpinned program on the actual inputs."""
        return copy(self.program.graph, self.graph, nodes, self._real, {})

    def adaptive(self, nodes: Sequence[Node]) -> list[Node]:
        """Reading (b): no pin, but the choices at their own sites are those of (a)."""
        over, partly = self._choices()
        return copy(self.program.graph, self.graph, nodes, self._adaptive, over, partly)

    def mixed(self, nodes: Sequence[Node], between: Sequence[Node]) -> list[Node]:
        """What stands between a pin and a choice, and the choices, from (a), the rest real."""
        over, partly = self._choices()
        over.update(zip([n.id for n in between], self.pinned(between), strict=True))
        return copy(self.program.graph, self.graph, nodes, {}, over, partly)

    def _choices(self) -> tuple[Copies, Partly]:
        """What reading (b) overwrites: the sites of the choices, and what guards see as results.

        A choice that (a) did not make (an argument of a launch that it did not get to) overwrites
        nothing: such sites are overwritten only where it did.
        """
        chosen: dict[str, Node] = {}
        over: Copies = {}
        partly: Partly = {}
        fields = {f for c in self.program.classes if c.name in self.pins for f in c.fields}
        for p in self.program.points:
            if p.role == "aux":
                continue
            chosen[p.name] = value = self.pinned([p.node])[0]
            groups = [
                frozenset(m.node.id for m in self.program.sites[name].marks) for name in p.sites
            ]
            if p.name in fields and not groups:
                groups = [tree_of(self.program, p.name)[1]]
            for marks in groups:
                made = self._made(p.node, marks)
                for i in marks:
                    if made is None:
                        over.setdefault(i, value)
                    else:
                        partly.setdefault(i, []).append((made, value))
        for node in self.program.graph.nodes:
            if node.op is Op.MARK and isinstance(node.attr, tuple) and node.attr[:1] == ("result",):
                value_of = chosen.get(str(node.attr[1]))
                if value_of is not None:
                    over[node.id] = value_of
        return over, {i: made for i, made in partly.items() if i not in over}

    def _made(self, node: Node, marks: frozenset[int]) -> Node | None:
        """Whether (a) takes a choice from one of these marks, None if it always does.

        A choice that is null on some paths is a selection among marks and nulls.
        """
        while node.op is Op.MARK and node.id not in marks:
            node = node.args[0]
        leaves = leaves_of(node, marks)
        absent = [n for n in leaves if n.is_const and n.attr is None]
        if not absent or len(absent) + sum(n.id in marks for n in leaves) < len(leaves):
            return None
        return self._taken(node, marks)

    def _taken(self, node: Node, marks: frozenset[int]) -> Node:
        if node.id in marks or node.op is not Op.SELECT:
            return self.graph.const(node.id in marks)
        cond = self.pinned([node.args[0]])[0]
        then, other = (self._taken(a, marks) for a in node.args[1:])
        return self.graph.select(cond, then, other)


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


def tree_of(program: Program, field: str) -> tuple[Node, frozenset[int]]:
    """What a field of a class is chosen from, and the nodes of its sites."""
    point = program.point(field)
    marks = frozenset(m.node.id for s in point.sites for m in program.sites[s].marks)
    return point.node.args[0], places(point.node.args[0], marks)


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


def domain_of(pin: Pin) -> Domain:
    """What a parameter ranges over: candidates, then offers."""
    found = pin.candidates
    if found.values is None:
        assert found.span is not None
        lo, hi, step = found.span
        inside = Domain(lo, hi, step)
        extra = tuple(v for v in pin.offered if v not in inside)
        return Domain(values=(*inside, *extra)) if extra else inside
    return Domain(values=tuple({value_key(v): v for v in (*found.values, *pin.offered)}.values()))


def copy(
    old: Graph,
    new: Graph,
    nodes: Sequence[Node],
    done: Copies,
    over: Mapping[int, Node],
    partly: Partly | None = None,
) -> list[Node]:
    """Copy the cones of some nodes, with some nodes replaced; marks are looked through."""
    missing = [n for n in nodes if n.id not in done]
    todo = [n for n in missing if n.id not in over]
    wanted: set[int] = {n.id for n in missing}
    seen = set(wanted)
    while todo:
        for a in todo.pop().args:
            if a.id not in seen and a.id not in done:
                seen.add(a.id)
                if a.id not in over:
                    todo.append(a)
    for i in sorted(seen):
        node = old.nodes[i]
        replaced = over.get(i)
        if replaced is not None:
            done[i] = replaced
        elif node.op is Op.MARK:
            done[i] = done[node.args[0].id]
        else:
            done[i] = made = new.add(
                node.op, *[done[a.id] for a in node.args], attr=node.attr, site=node.site
            )
            span = old.origin.get(i)
            if span is not None and node.args:
                new.origin.setdefault(made.id, span)
        for cond, value in reversed((partly or {}).get(i, ())):
            done[i] = new.select(cond, value, done[i])
    return [done[n.id] for n in nodes]


def site_value(graph: Graph, site: Site, nodes: Sequence[Node], paths: Sequence[Node]) -> Node:
    """The value of a site, given copies of its marks: that of the last one that is reached."""
    if len(nodes) == 1:
        return nodes[0]
    value = graph.add(Op.FAIL)
    for node, path in zip(nodes, paths, strict=True):
        value = graph.select(path, node, value)
    return value


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


@dataclass(frozen=True, slots=True)
class Layout:
    """Where G0's nodes stand relative to the pins and the choices."""

    above: frozenset[int]  # strict ancestors of a pin that are no plain inputs
    pins: frozenset[int]
    between: frozenset[int]  # strict descendants of a pin that a bits or neutral point reads

    def hides(self, guard: Guard) -> tuple[bool, bool]:
        """Whether a guard needs the mixed reading, and whether it may be vacuous without one.

        It needs it if it reads a value between pin and point, and by another way a real value that
        a pin hides. Reading only what stands above pins, it may ask about a choice that was not
        taken; a condition without alternatives asks about the real batch alone, whatever was taken.
        """
        if guard.origin in ("partial", "class"):
            # an operation that is reached must not fail, and a class has to be kept: neither asks
            # anything of the real batch
            return False, False
        seen: set[int] = set()
        passes = reaches = above = chooses = False
        todo = [guard.path, guard.cond]
        while todo:
            node = todo.pop()
            if node.id in seen:
                continue
            seen.add(node.id)
            if node.id in self.between:
                passes = True
                continue
            reaches |= node.id in self.pins
            above |= node.id in self.above
            chooses |= node.op is Op.SELECT
            todo.extend(node.args)
        unseen = above and chooses and not passes and not reaches
        return passes and (above or reaches), unseen


def layout(program: Program, pins: Mapping[str, Pin]) -> Layout:
    """Find what stands above the pins, and between them and the choices."""
    graph = program.graph
    marks = {m.node.id: m.node for pin in pins.values() if not pin.free for m in pin.site.marks}
    for cls in program.classes:
        if cls.name in pins:
            for f in cls.fields:
                marks.update({i: graph.nodes[i] for i in tree_of(program, f)[1]})
    above = {n.id for n in graph.cone([a for m in marks.values() for a in m.args]) if not _plain(n)}
    chosen = {n.id for n in graph.cone([p.node for p in program.points if p.role != "aux"])}
    below: set[int] = set()
    for node in graph.nodes:
        if any(a.id in marks or a.id in below for a in node.args):
            below.add(node.id)
    return Layout(frozenset(above), frozenset(marks), frozenset(below & chosen))


def _plain(node: Node) -> bool:
    """Whether the node is an input, a constant, or a name for one."""
    while node.op is Op.MARK:
        node = node.args[0]
    return node.op in (Op.INPUT, Op.CONST, Op.FAIL)
