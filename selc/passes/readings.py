"""The readings of a program under pins, side by side in one graph over inputs and parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from selc.ir.bitclass import places
from selc.ir.domain import Domain
from selc.ir.graph import Graph, Node
from selc.ir.op import Op
from selc.ir.program import Guard, Program, Site
from selc.ir.residual import Pin
from selc.ir.value import value_key

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
        """What reading (b) overwrites: sites and places of choices, and what guards see as results.

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
            named = frozenset().union(*groups)
            found = [(self._made(p.node, named, marks), marks) for marks in groups]
            stops = frozenset(n.id for place in p.places for n in place.ends)
            for place in p.places:
                ends = frozenset(n.id for n in place.ends)
                marks = frozenset(n.id for n in place.marks)
                found.append((self._from(p.node, stops, ends), marks))
            for made, marks in found:
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

    def _made(self, node: Node, named: frozenset[int], marks: frozenset[int]) -> Node | None:
        """Whether (a) takes a choice from one of these marks, None if it always does.

        `named` are the marks of all sites that `return`s name for it. Where it is null, or what
        another `return` computes or names, it says nothing of this site: also where that stands
        for the same value, as `b` does after `b = a`.
        """
        root = _unmarked(node, named)
        if root.id not in named and root.op not in (Op.SELECT, Op.TUPLE):
            above = any(n.id in marks for n in self.program.graph.cone([root]))
            return None if above else self.graph.const(False)
        return self._from(node, named, marks)

    def _from(self, node: Node, marks: frozenset[int], wanted: frozenset[int]) -> Node | None:
        """Whether (a) takes a value, as it is, first from a wanted mark, None if it always does."""
        taken = self._taken(_unmarked(node, marks), marks, wanted)
        return None if taken.is_const and taken.attr is True else taken

    def _taken(self, root: Node, marks: frozenset[int], wanted: frozenset[int]) -> Node:
        found = {root.id: root}
        todo = [root]
        while todo:
            node = todo.pop()
            if node.id not in marks and node.op is Op.SELECT:
                arms = [_unmarked(a, marks) for a in node.args[1:]]
                todo += [a for a in arms if a.id not in found]
                found.update((a.id, a) for a in arms)
        taken: dict[int, Node] = {}
        for i, node in sorted(found.items()):
            if i in marks or node.op is not Op.SELECT:
                taken[i] = self.graph.const(i in wanted)
                if i not in marks and node.op is Op.TUPLE:
                    taken[i] = self._whole(node, marks, wanted)
                continue
            then, other = (taken[_unmarked(a, marks).id] for a in node.args[1:])
            taken[i] = self.graph.select(self.pinned([node.args[0]])[0], then, other)
        return taken[root.id]

    def _whole(self, node: Node, marks: frozenset[int], wanted: frozenset[int]) -> Node:
        """Whether the elements of a tuple are those of one of the wanted marks."""
        cone = [n for n in self.program.graph.cone([node]) if n.op is Op.INDEX]
        parts = frozenset(n.id for n in cone if n.args[0].id in marks)
        mine = frozenset(n.id for n in cone if n.args[0].id in wanted)
        out = self.graph.const(bool(parts))
        for element in node.args if parts else ():
            out = self.graph.both(out, self._taken(_unmarked(element, parts), parts, mine))
        return out


def _unmarked(node: Node, marks: frozenset[int]) -> Node:
    """The node under marks of other sites; an element of a marked tuple is what stands there."""
    while node.id not in marks and node.op in (Op.MARK, Op.INDEX):
        inner = _unmarked(node.args[0], marks)
        place = node.args[-1].attr if node.args[-1].is_const else None
        if node.op is Op.MARK:
            node = inner
        elif inner.id not in marks and inner.op is Op.TUPLE and type(place) is int:
            node = inner.args[place]
        else:
            break
    return node


def tree_of(program: Program, field: str) -> tuple[Node, frozenset[int]]:
    """What a field of a class is chosen from, and the nodes of its sites."""
    point = program.point(field)
    marks = frozenset(m.node.id for s in point.sites for m in program.sites[s].marks)
    return point.node.args[0], places(point.node.args[0], marks)


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
