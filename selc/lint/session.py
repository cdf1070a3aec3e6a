"""What one run shares: the index, the names, and summaries of functions by level of calls.

A summary of level n follows n more levels of calls; each level has its own, so that an answer does
not depend on who asked first.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import NamedTuple

from selc.lint.index import Class, Function, Index
from selc.lint.model import Place, Step
from selc.lint.names import Names
from selc.lint.values import NOTHING, Flow, Label, Val

BUDGET = 60_000


class Hit(NamedTuple):
    """A label that reaches a choice."""

    code: str
    level: str
    place: Place
    function: str
    label: Label
    flow: Flow
    sink: str
    role: str
    what: str
    help: str
    text: str
    guards: tuple[Step, ...] = ()
    """Where the invariant mode is asked on the way."""


@dataclass(slots=True)
class Summary:
    """What a call of a function gives and reaches."""

    returns: Val = NOTHING
    hits: list[Hit] = field(default_factory=list)
    guards: list[Step] = field(default_factory=list)


@dataclass(slots=True)
class Session:
    """One run over one project."""

    index: Index
    names: Names
    levels: int = 2
    guarded: bool = False
    """Whether the invariant mode counts as on: what it switches off is not followed."""
    budget: int = field(default_factory=lambda: BUDGET)
    """Steps that one function may take."""
    exceeded: dict[str, Place] = field(default_factory=dict)
    summaries: dict[tuple[int, int], Summary] = field(default_factory=dict)
    active: set[int] = field(default_factory=set)
    facts: dict[int, dict[str, Val]] = field(default_factory=dict)
    kept: list[Function] = field(default_factory=list)
    """Functions inside functions: summaries go by identity, which must not be used twice."""
    computing: dict[int, bool] = field(default_factory=dict)
    types: dict[int, dict[str, Class]] = field(default_factory=dict)

    def summary(self, function: Function, level: int) -> Summary:
        """The summary of a function, computed once; nothing for a recursive call."""
        key = (id(function), level)
        found = self.summaries.get(key)
        if found is not None:
            return found
        if id(function) in self.active:
            return Summary(Val(opaque=True))
        from selc.lint.walk import walk_function

        self.active.add(id(function))
        try:
            found = walk_function(self, function, level)
        finally:
            self.active.discard(id(function))
        self.summaries[key] = found
        return found

    def attributes(self, owner: Class) -> dict[str, Val]:
        """What `__init__` leaves in attributes: constants and the mode, nothing of the batch."""
        found = self.facts.get(id(owner))
        if found is None:
            self.facts[id(owner)] = {}
            from selc.lint.constructor import walk_constructor

            found = self.facts[id(owner)] = walk_constructor(self, owner)
        return found

    def computes(self, function: Function) -> bool:
        """Whether its own text calls a kernel or launches one."""
        found = self.computing.get(id(function))
        if found is None:
            from selc.lint.choice import calls_kernel

            found = self.computing[id(function)] = calls_kernel(self.names, function.node)
        return found


def place(path: str, node: ast.expr | ast.stmt) -> Place:
    """Where a node stands; columns count bytes where `ast` does, which for code is characters."""
    return Place(
        path,
        node.lineno,
        node.col_offset + 1,
        node.end_lineno or node.lineno,
        (node.end_col_offset or node.col_offset) + 1,
    )
