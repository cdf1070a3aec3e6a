"""What a pinned bit class does to the source, made anew here.

A class is a partition of the values of some points. One that is pinned overwrites the sites of
those points: with what the source chooses under all other pins, if it returns and that is in the
class; else with the first member that gets through to the points with every requirement kept, else
with the first. What is returned without a name is overwritten where it is returned; sites that are
pinned themselves keep their pin; a choice that is null because it is not made stays so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from selc.check.certificate import BitClass, Text, is_place
from selc.check.dag import TRUE, Dag
from selc.check.values import key

TRIED: Final = 16
"""So many members of a class may stand for it."""


@dataclass
class Classes:
    """G0 under pins and classes. `pins` maps pinned sites to the values that they are given."""

    g0: Text
    dag: Dag
    pins: Mapping[str, int]
    values: Mapping[str, Sequence[Any]]  # class -> what it may be pinned to
    _done: dict[frozenset[str], dict[int, int]] = field(default_factory=dict)

    def overwritten(self, classes: frozenset[str]) -> dict[int, int]:
        """The nodes of G0 that other values stand for, where these classes are pinned."""
        if classes not in self._done:
            chosen: dict[str, int] = {}
            for name in self.g0.classes:
                if name in classes:
                    chosen.update(self._chosen(name, classes))
            self._done[classes] = self._placed(classes, chosen)
        return self._done[classes]

    def _base(self, classes: frozenset[str]) -> dict[int, int]:
        given = {n: v for n, v in self.pins.items() if n not in self.g0.classes or n in classes}
        return {m.node: v for n, v in given.items() for m in self.g0.sites[n]}

    def _chosen(self, name: str, classes: frozenset[str]) -> dict[str, int]:
        """What the fields of a pinned class are overwritten with."""
        cls, dag = self.g0.classes[name], self.dag
        without = classes - {name}
        own = dict(self.overwritten(without))
        wanted = self.pins[name]
        mine = dag.copy(self.g0, [self.g0.points[f].node for f in cls.fields], own)
        inside = dag.both([*self._returns(own), self._is(cls, own, wanted)])
        other = list(mine)
        others = self._fields(without)
        for value in self.values[name]:
            members = [m for m in _members(cls, value) if not self._absent(cls, m)]
            if not members:
                continue
            fallback = [dag.const(v) for v in members[0]]
            for member in reversed(members):
                constants = [dag.const(v) for v in member]
                placed = {**others, **dict(zip(cls.fields, constants, strict=True))}
                trial = self._placed(without, placed)
                fine = dag.both([*self._returns(trial), self._is(cls, trial, dag.const(value))])
                fallback = [
                    dag.add("select", (fine, v, rest))
                    for v, rest in zip(constants, fallback, strict=True)
                ]
            test = dag.same(wanted, dag.const(value))
            other = [dag.add("select", (test, a, b)) for a, b in zip(fallback, other, strict=True)]
        return {
            f: dag.add("select", (inside, a, b))
            for f, a, b in zip(cls.fields, mine, other, strict=True)
        }

    def _fields(self, classes: frozenset[str]) -> dict[str, int]:
        out: dict[str, int] = {}
        for name in self.g0.classes:
            if name in classes:
                out.update(self._chosen(name, classes))
        return out

    def _returns(self, done: Mapping[int, int]) -> list[int]:
        """Every requirement, with some nodes overwritten."""
        out = []
        copies = dict(done)
        for guard in self.g0.guards:
            if guard.kind == "require":
                path, cond = self.dag.copy(self.g0, list(guard.nodes.values()), copies)
                fine = (self.dag.true(path), self.dag.true(cond), TRUE)
                out.append(self.dag.add("select", fine))
        return out

    def _is(self, cls: BitClass, done: Mapping[int, int], wanted: int) -> int:
        """Whether the fields are in a class: one that has a name, or one of their values alone."""
        dag, copies = self.dag, dict(done)
        values = dag.copy(self.g0, [self.g0.points[f].node for f in cls.fields], copies)
        given = dag.copy(self.g0, [self.g0.points[f].node for f in cls.given], copies)
        out = dag.same(dag.add("tuple", values), wanted)
        measured = [
            dag.same(g, dag.const(v)) for g, v in zip(given, cls.given.values(), strict=True)
        ]
        for name, member in cls.members:
            equal = [dag.same(v, dag.const(m)) for v, m in zip(values, member, strict=True)]
            test = dag.both([*equal, *measured])
            out = dag.add("select", (test, dag.same(dag.const(name), wanted), out))
        return out

    def _placed(self, classes: frozenset[str], chosen: Mapping[str, int]) -> dict[int, int]:
        """Overwrite sites of fields, and the fields."""
        g0, dag = self.g0, self.dag
        done = self._base(classes)
        pinned = set(done)
        at: dict[int, list[tuple[int, bool]]] = {}
        for f, value in chosen.items():
            for mark in self.places(f) - pinned:
                at.setdefault(mark, []).append((value, self._lacks(f)))
        for mark in sorted(at, key=g0.position):
            for value, lacks in at[mark]:
                if lacks:
                    real = dag.copy(g0, [mark], dict(done))[0]
                    made = dag.add("not", (dag.same(value, dag.const(None)),))
                    done[mark] = dag.add("select", (made, value, real))
                else:
                    done[mark] = value
        ends = {g0.points[f].node: self._end(f, value, done) for f, value in chosen.items()}
        return {**done, **ends}

    def _end(self, name: str, value: int, done: Mapping[int, int]) -> int:
        g0, dag = self.g0, self.dag
        marks, lacks = self.places(name), self._lacks(name)
        unnamed = any(name in c.unnamed for c in g0.classes.values())
        copies = dict(done)

        def end(n: int) -> int:
            op, args, attr = g0.nodes[n]
            if is_place(g0.nodes[n]):
                return end(args[0])
            if n in marks or (op != "select" and not unnamed):
                return dag.copy(g0, [n], copies)[0]
            if op == "select":
                test = dag.true(dag.copy(g0, [args[0]], copies)[0])
                return dag.add("select", (test, end(args[1]), end(args[2])))
            if lacks and op == "const" and attr is None:
                return dag.const(None)
            if not lacks:
                return value
            made = dag.add("not", (dag.same(value, dag.const(None)),))
            return dag.add("select", (made, value, dag.copy(g0, [n], copies)[0]))

        return end(g0.nodes[g0.points[name].node].args[0])

    def places(self, name: str) -> set[int]:
        """Where a field is overwritten: at its sites; without one, a row's column is its place."""
        nodes, point = self.g0.nodes, self.g0.points[name]
        found = {m.node for s in point.sites for m in self.g0.sites[s]}
        if found:
            return found
        todo = [nodes[point.node].args[0]]
        for n in todo:
            arms = nodes[n].args[1:] if nodes[n].op == "select" else ()
            arms = nodes[n].args if is_place(nodes[n]) else arms
            todo.extend(a for a in arms if a not in todo)
        return {n for n in todo if nodes[n].op == "lookup"}

    def _lacks(self, name: str) -> bool:
        """Whether the field is null on paths on which it is not chosen."""
        marks = self.places(name)
        todo = [self.g0.nodes[self.g0.points[name].node].args[0]]
        nulls = others = False
        seen: set[int] = set()
        while todo:
            n = todo.pop()
            op, args, attr = self.g0.nodes[n]
            if n in seen:
                continue
            seen.add(n)
            if is_place(self.g0.nodes[n]):
                todo.extend(args)
            elif op == "select" and n not in marks:
                todo.extend(args[1:])
            elif op == "const" and attr is None:
                nulls = True
            else:
                others = True
        return nulls and others

    def _absent(self, cls: BitClass, member: Sequence[Any]) -> bool:
        """Whether a member has a null for what can only be null by not being made."""
        return any(v is None and self._lacks(f) for f, v in zip(cls.fields, member, strict=True))


def _members(cls: BitClass, value: Any) -> list[tuple[Any, ...]]:
    if isinstance(value, tuple):
        return [value]
    return [m for name, m in cls.members if key(name) == key(value)][:TRIED]
