"""Iterators: what can be gone through once, and only when it is asked for.

Here the elements of an iterator are computed where it is made. That is what Python computes if it
is gone through at once: in the statement that makes it. One that is kept is refused: it would see
later changes of what it reads, raise later or not at all, and be used up by its first use.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from selc.frontend.values import Choice, Ref, Tup


@dataclass(frozen=True, slots=True)
class Taken:
    """Where elements come from that are asked for one by one."""

    containers: tuple[tuple[Ref, bool], ...] = ()  # lists and dicts; True: from behind
    computed: tuple[ast.AST, ...] = ()  # what computes them

    def and_(self, other: Taken) -> Taken:
        """What comes from either."""
        return Taken(self.containers + other.containers, self.computed + other.computed)


@dataclass(frozen=True, slots=True)
class View:
    """Where a view of a dict was made, and what the dict, and its other names, held then."""

    e: ast.AST
    held: Mapping[int, object]


@dataclass(slots=True)
class Iterators:
    """Those of one lowering: where they were made, and what became of them."""

    made: dict[Tup, ast.AST] = field(default_factory=dict)
    open: dict[Tup, ast.AST] = field(default_factory=dict)  # not gone through so far
    read: set[Tup] = field(default_factory=set)  # by a name
    views: dict[Tup, View] = field(default_factory=dict)  # of dicts that may change later
    shown: set[Tup] = field(default_factory=set)  # all views of dicts
    taken: dict[Tup, Taken] = field(default_factory=dict)

    def add(self, value: object, e: ast.AST) -> None:
        """Note an iterator; it may be one already."""
        if isinstance(value, Tup):
            self.made[value] = e
            self.open[value] = e

    def takes(
        self, result: object, values: Iterable[object], backwards: bool, *computed: ast.AST
    ) -> None:
        """Note that an iterator or a view takes its elements from some values, one by one."""
        if isinstance(result, Tup):
            found = self.taken.get(result, Taken()).and_(Taken((), computed))
            for value in values:
                inner = self.of(value)
                turned = tuple((ref, way or backwards) for ref, way in inner.containers)
                found = found.and_(Taken(turned, inner.computed))
            self.taken[result] = found

    def of(self, value: object) -> Taken:
        """Where the elements come from that a loop over a value asks for."""
        if isinstance(value, Choice):
            return self.of(value.then).and_(self.of(value.other))
        if isinstance(value, Ref):
            return Taken(((value, False),))
        return self.taken.get(value, Taken()) if isinstance(value, Tup) else Taken()

    def joined(self, result: Tup, *values: object) -> None:
        """Note that a tuple stands for one of some values."""
        if any(isinstance(v, Tup) and v in self.taken for v in values):
            self.takes(result, values, False)
        if any(isinstance(v, Tup) and v in self.shown for v in values):
            self.shown.add(result)
        views = [self.views[v] for v in values if isinstance(v, Tup) and v in self.views]
        if views:
            held = {oid: obj for view in views for oid, obj in view.held.items()}
            self.views[result] = View(views[0].e, held)

    def no_tuple(self, value: object) -> bool:
        """Whether a value is an iterator or a view of a dict, and not the tuple it is here."""
        return isinstance(value, Tup) and (value in self.made or value in self.shown)

    def __contains__(self, value: object) -> bool:
        return isinstance(value, Tup) and value in self.made

    def use(self, value: Tup) -> bool:
        """Go through an iterator; False if that was done before."""
        return value not in self.made or self.open.pop(value, None) is not None

    def name(self, value: object) -> bool:
        """Read a variable; False if it holds an iterator that was read or used before."""
        if not isinstance(value, Tup) or value not in self.made:
            return True
        fresh = value in self.open and value not in self.read
        self.read.add(value)
        return fresh

    def kept(self) -> list[ast.AST]:
        """Where those were made that nothing has gone through; they are told once."""
        places = list(self.open.values())
        self.open.clear()
        return places
