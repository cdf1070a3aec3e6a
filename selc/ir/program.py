"""A lowered selection (G0): its graph with the sites, points and guards that refer to it."""

from __future__ import annotations

from dataclasses import dataclass, field

from selc.diag.span import Span
from selc.ir.bitclass import BitClass
from selc.ir.domain import Domain
from selc.ir.graph import Graph, Node


@dataclass(frozen=True, slots=True)
class Mark:
    """One place where a site's value comes to be.

    The program gets here iff `path` is true and the first `guards_before` guards hold.
    """

    node: Node
    path: Node
    guards_before: int


@dataclass(slots=True)
class Site:
    """A pinnable source definition or expression occurrence.

    Pinning it replaces the node of every mark by a constant. If several marks are reached in one
    run, the last one tells the site's value.
    """

    name: str
    kind: (
        str  # 'variable' | 'definition' | 'parameter' | 'field' | 'return' | 'expression' | 'class'
    )
    span: Span
    marks: list[Mark] = field(default_factory=list)

    @property
    def named(self) -> bool:
        """Whether the source gives it a name."""
        return self.kind != "expression"


@dataclass(frozen=True, slots=True)
class Guard:
    """`path` implies `cond`. Guards stand in program order."""

    kind: str  # 'require' | 'assume'
    origin: str  # 'assert' | 'raise' | 'partial' | 'facts' | 'call' | 'class'
    text: str
    why: str
    span: Span
    path: Node
    cond: Node


@dataclass(frozen=True, slots=True)
class Place:
    """Marks of the field of a record, which are no sites.

    They are overwritten where a point takes its value from one of `ends`; `under` stand below.
    """

    ends: tuple[Node, ...]
    under: tuple[Node, ...] = ()

    @property
    def marks(self) -> tuple[Node, ...]:
        """What is overwritten."""
        return (*self.ends, *self.under)


@dataclass(frozen=True, slots=True)
class Point:
    """One field of the returned record.

    `sites` names the sites that reading (b) overwrites: the variables or record fields that the
    `return` statements name. `places` are marks that it overwrites besides: fields of records that
    are returned inside others, or by name, at the definitions of the record.
    """

    name: str
    role: str  # 'bits' | 'neutral' | 'aux'
    node: Node
    sites: tuple[str, ...] = ()
    places: tuple[Place, ...] = ()  # one for each way in which it is returned


@dataclass(frozen=True, slots=True)
class SequenceInput:
    """A sequence of integers; the graph reads aggregates of it: function (`max`, ...) -> input.

    `place` counts the inputs that stand before it among the parameters.
    """

    name: str
    kind: str
    length: Domain
    element: Domain
    aggregates: dict[str, str]
    place: int = 0


@dataclass(slots=True)
class Program:
    """Everything later stages know of the source."""

    graph: Graph
    target: str
    function: str
    family: str
    scope: str
    path: str
    points: list[Point]
    guards: list[Guard]
    sites: dict[str, Site]
    assumptions: list[str] = field(default_factory=list)
    offers: dict[str, tuple[object, ...]] = field(default_factory=dict)
    settings: dict[str, object] = field(default_factory=dict)  # knob -> initial setting, if given
    facts: dict[str, object] = field(default_factory=dict)  # the facts that were read
    sources: dict[str, str] = field(default_factory=dict)  # file -> digest
    followed: dict[str, object] = field(default_factory=dict)  # file -> what was read of it
    parameters: dict[str, str] = field(default_factory=dict)  # input -> source parameter path
    aux_by_default: list[str] = field(default_factory=list)
    sequences: dict[str, SequenceInput] = field(default_factory=dict)
    classes: list[BitClass] = field(default_factory=list)

    def point(self, name: str) -> Point:
        """The point of a name."""
        return next(p for p in self.points if p.name == name)

    @property
    def virtual(self) -> frozenset[str]:
        """The points that the source does not return: bit classes."""
        return frozenset(c.name for c in self.classes)
