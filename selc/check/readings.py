"""G0 with its pins overwritten, made anew here, beside R: what R has to agree with.

`a` is the source with pinned sites overwritten. `b` is the source with no pin and the choices of
`a` at their own sites. `mixed` takes what stands between a pin and a choice from `a`. `real` is the
source as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from selc.check.certificate import Domain, Guard, Mark, Pin, Text
from selc.check.classes import Classes
from selc.check.dag import TRUE, Dag
from selc.check.values import Unreadable, key


@dataclass
class Readings:
    """Both graphs of a certificate in one `Dag`, under parameters for the pins."""

    g0: Text
    r: Text
    dag: Dag = field(default_factory=Dag)
    real_done: dict[int, int] = field(default_factory=dict)
    a_done: dict[int, int] = field(default_factory=dict)
    b_done: dict[int, int] = field(default_factory=dict)
    mixed_done: dict[int, int] = field(default_factory=dict)
    r_done: dict[int, int] = field(default_factory=dict)
    fixed: dict[str, int] = field(default_factory=dict)  # free pin -> the value it is given
    classes: frozenset[str] = frozenset()  # bit classes that are pinned

    def __post_init__(self) -> None:
        for name, leaf in self.g0.leaves.items():
            self.dag.leaf(name, leaf.domain)
        given = {name: self._given(name, pin) for name, pin in self.r.pins.items()}
        for name, value in given.items():
            self.a_done.update({m.node: value for m in self.site(name)})
        self.classes = frozenset(given) & set(self.g0.classes)
        if self.classes:
            taken = {n: _taken(self.g0, n, self.r.pins[n]) for n in self.classes}
            self.a_done.update(Classes(self.g0, self.dag, given, taken).overwritten(self.classes))
        self._choices()
        self._between()

    def site(self, name: str) -> list[Mark]:
        """The marks of a site."""
        if name not in self.g0.sites:
            raise Unreadable(f"G0 has no site {name}")
        return self.g0.sites[name]

    def in_r(self, node: int) -> int:
        """A node of R."""
        return self.dag.copy(self.r, [node], self.r_done)[0]

    def a(self, node: int) -> int:
        """A node of G0 with the pins overwritten."""
        return self.dag.copy(self.g0, [node], self.a_done)[0]

    def b(self, node: int) -> int:
        """A node of G0 with the choices overwritten."""
        return self.dag.copy(self.g0, [node], self.b_done)[0]

    def mixed(self, node: int) -> int:
        """A node of G0 with the choices and what leads to them overwritten."""
        return self.dag.copy(self.g0, [node], self.mixed_done)[0]

    def real(self, node: int) -> int:
        """A node of G0 as it is."""
        return self.dag.copy(self.g0, [node], self.real_done)[0]

    def holds(self, path: int, cond: int) -> int:
        """Whether a guard holds, given copies of its path and its condition."""
        dag = self.dag
        return dag.add("select", (dag.true(path), dag.true(cond), TRUE))

    def reached(self, marks: list[Mark], done: dict[int, int], leaves: Mapping[str, int]) -> int:
        """The value of a site: that of the last mark that is reached."""
        value = self.dag.add("fail", ())
        for mark in marks:
            node, path = self.dag.copy(self.g0, [mark.node, mark.path], done, leaves)
            value = self.dag.add("select", (self.dag.true(path), node, value))
        return value

    def _given(self, name: str, pin: Pin) -> int:
        if not pin.free:
            leaf = self.r.leaves.get(pin.parameter or "")
            return self.dag.leaf(pin.parameter or "", leaf.domain if leaf else axis(pin))
        if pin.at is None:
            return self.fixed.setdefault(name, self.dag.const(pin.constant))
        leaves = {n: self.dag.const(v) for n, v in pin.at.items()}
        return self.fixed.setdefault(name, self.reached(self.site(name), {}, leaves))

    def _choices(self) -> None:
        """What `b` overwrites. A choice that `a` did not make overwrites nothing."""
        made: dict[int, list[tuple[int | None, int]]] = {}
        fields = {f for c in self.classes for f in self.g0.classes[c].fields}
        for name, point in self.g0.points.items():
            if point.role == "aux":
                continue
            value = self.a(point.node)
            places = [{m.node for m in self.site(site)} for site in point.sites]
            if name in fields and not places:
                places = [Classes(self.g0, self.dag, {}, {}).places(name)]
            named = set().union(*places)
            found = [(self._made(point.node, named, marks), marks) for marks in places]
            stops = {end for ends, _ in point.places for end in ends}
            found += [
                (self._from(point.node, stops, set(ends)), {*ends, *under})
                for ends, under in point.places
            ]
            for when, marks in found:
                for mark in marks:
                    made.setdefault(mark, []).append((when, value))
            for number, node in self.g0.nodes.items():
                if node.op == "mark" and key(node.attr) == key(("result", name)):
                    made[number] = [(None, value)]
        for mark in sorted(made, key=self.g0.position):
            always = [value for when, value in made[mark] if when is None]
            value = always[0] if always else self._real_b(mark)
            for when, chosen in [] if always else reversed(made[mark]):
                assert when is not None
                value = self.dag.add("select", (self.dag.true(when), chosen, value))
            self.b_done[mark] = value

    def _at(self, node: int) -> int | None:
        """The place that a constant index names."""
        fixed = self.g0.nodes[node]
        return fixed.attr if fixed.op == "const" and type(fixed.attr) is int else None

    def _real_b(self, place: int) -> int:
        """What stands at a place in `b` where nothing overwrites it."""
        node = self.g0.nodes[place]
        if node.op == "mark":
            return self.b(node.args[0])
        return self.dag.add(node.op, [self.b(a) for a in node.args], node.attr)

    def _made(self, node: int, named: set[int], marks: set[int]) -> int | None:
        """Whether `a` takes the choice from one of the marks; None if it always does.

        `named` are those of all sites that the point names. Where it is null, or what another
        `return` computes or names, it says nothing of the site.
        """
        root = self._unmarked(node, named)
        if root not in named and self.g0.nodes[root].op not in ("select", "tuple"):
            above = marks & set(self.g0.cone([root]))
            return None if above else self.dag.const(False)
        return self._from(node, named, marks)

    def _from(self, node: int, marks: set[int], wanted: set[int]) -> int | None:
        """Whether `a` takes a value, as it is, first from a wanted mark; None if it always does."""
        taken = self._taken(self._unmarked(node, marks), marks, wanted)
        return None if taken == TRUE else taken

    def _taken(self, root: int, marks: set[int], wanted: set[int]) -> int:
        nodes = self.g0.nodes
        found, todo = {root}, [root]
        while todo:
            n = todo.pop()
            if n not in marks and nodes[n].op == "select":
                arms = {self._unmarked(a, marks) for a in nodes[n].args[1:]} - found
                found |= arms
                todo.extend(arms)
        taken: dict[int, int] = {}
        for n in sorted(found, key=self.g0.position):
            op, args, _ = nodes[n]
            if n in marks or op != "select":
                taken[n] = self.dag.const(n in wanted)
                if n not in marks and op == "tuple":
                    taken[n] = self._whole(args, marks, wanted)
                continue
            then, other = (taken[self._unmarked(a, marks)] for a in args[1:])
            same = then == other
            taken[n] = then if same else self.dag.add("select", (self.a(args[0]), then, other))
        return taken[root]

    def _whole(self, elements: Sequence[int], marks: set[int], wanted: set[int]) -> int:
        """Whether every element of a tuple is read off one of the wanted marks."""
        nodes = self.g0.nodes
        reads = [n for n in self.g0.cone([*elements]) if nodes[n].op == "index"]
        places = {n for n in reads if nodes[n].args[0] in marks}
        mine = {n for n in places if nodes[n].args[0] in wanted}
        out, no = self.dag.const(bool(places)), self.dag.const(False)
        for element in elements if places else ():
            taken = self._taken(self._unmarked(element, places), places, mine)
            out = taken if out == TRUE else self.dag.add("select", (out, taken, no))
        return out

    def _unmarked(self, node: int, marks: set[int]) -> int:
        """The node under marks of other sites, and of tuples that are read again at once."""
        while node not in marks:
            op, args, _ = self.g0.nodes[node]
            if op == "mark":
                node = args[0]
                continue
            if op != "index":
                break
            whole, place = self._unmarked(args[0], marks), self._at(args[1])
            listed = self.g0.nodes[whole]
            if whole in marks or listed.op != "tuple" or place is None:
                break
            node = listed.args[place]
        return node

    def _between(self) -> None:
        """What `mixed` overwrites: the choices, and what lies below a pin and above a choice."""
        nodes = self.g0.nodes
        self.pinned = {
            m.node for name, pin in self.r.pins.items() if not pin.free for m in self.site(name)
        }
        for name in self.classes:
            for f in self.g0.classes[name].fields:
                self.pinned |= Classes(self.g0, self.dag, {}, {}).places(f)
        chosen = set(self.g0.cone([p.node for p in self.g0.points.values() if p.role != "aux"]))
        below: set[int] = set()
        for n, node in nodes.items():
            if any(a in self.pinned or a in below for a in node.args):
                below.add(n)
        self.between = below & chosen
        self.mixed_done = dict(self.b_done)
        for n in self.between:
            self.mixed_done[n] = self.a(n)
        parents = [a for n in self.pinned for a in nodes[n].args]
        self.above = {n for n in self.g0.cone(parents) if not self._plain(n)}

    def _plain(self, n: int) -> bool:
        node = self.g0.nodes[n]
        while node.op == "mark":
            node = self.g0.nodes[node.args[0]]
        return node.op in ("input", "const", "fail")

    def needs_mixed(self, guard: Guard) -> bool:
        """Whether both plain readings may hide what a guard asks.

        So if it reads a value between a pin and a choice, and by another way a value above a pin.
        A partial operation asks nothing of a choice, and that a class is kept nothing of the batch.
        """
        seen = self._seen(guard)
        hidden = (self.pinned | self.above) - self.between
        return bool(seen & self.between) and bool(seen & hidden)

    def unseen(self, guard: Guard) -> bool:
        """Whether a guard may be vacuous in every reading.

        So if it reads what stands above a pin and chooses between alternatives, and nothing that a
        pin or a choice overwrites: it may ask about a choice that was not taken.
        """
        seen = self._seen(guard)
        if seen & (self.between | self.pinned) or not seen & self.above:
            return False
        return any(self.g0.nodes[n].op == "select" for n in seen)

    def _seen(self, guard: Guard) -> set[int]:
        """What a guard reads down to what stands between a pin and a choice; empty if not asked."""
        seen: set[int] = set()
        todo = [] if guard.origin in ("partial", "class") else list(guard.nodes.values())
        while todo:
            n = todo.pop()
            if n not in seen:
                seen.add(n)
                todo.extend(() if n in self.between else self.g0.nodes[n].args)
        return seen


def _taken(g0: Text, name: str, pin: Pin) -> list[Any]:
    """The classes that a pinned one can be."""
    if pin.free:
        return [pin.constant] if pin.at is None else [n for n, _ in g0.classes[name].members]
    return list(axis(pin))


def axis(pin: Pin) -> Domain:
    """What a parameter ranges over: candidates, then offers."""
    if isinstance(pin.candidates, range) and not pin.offered:
        return pin.candidates
    kept = {key(v): v for v in (*pin.candidates, *pin.offered)}
    return tuple(kept.values())
