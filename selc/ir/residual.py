"""The residual selection R: G0 with every pin replaced by a parameter, and what is known of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from selc.ir.graph import Graph, Node
from selc.ir.program import Guard, Point, Site
from selc.ir.value import Value


@dataclass(frozen=True, slots=True)
class Candidates:
    """The values a site takes over D: a list in `sort_key` order, or a range that covers them."""

    values: tuple[Value, ...] | None
    span: tuple[int, int, int] | None = None  # lo, hi, step; only if `values` is None
    exact: bool = True
    witness: Mapping[int, Mapping[str, Value]] = field(
        default_factory=dict
    )  # index -> input taking it
    counts: tuple[int, ...] = ()  # how often each value is taken over D, if D was enumerated


@dataclass(frozen=True, slots=True)
class Pin:
    """A pinned site. `parameter` names its leaf in R; a free pin has none."""

    name: str
    site: Site
    candidates: Candidates
    offered: tuple[Value, ...] = ()
    parameter: str | None = None
    free: bool = False
    constant: Value = None  # of a free pin that does not depend on the request
    at: Mapping[str, Value] | None = None  # the fixed batch point of one that does
    proof: str = ""  # how the batch-independence of a free pin was proved


@dataclass(frozen=True, slots=True)
class ResidualGuard:
    """A guard over inputs and parameters, in its readings (each node: the guard holds).

    `pinned`: with pins overwritten (a). `adaptive`: no pin, points overwritten (b); None if it is
    the same as `pinned`. `mixed`: values between a pin and a point from (a), the rest real; None if
    it does not differ or cannot be built. `unseen`: it could not be built although it should.
    """

    guard: Guard
    pinned: Node
    adaptive: Node | None = None
    mixed: Node | None = None
    unseen: bool = False

    @property
    def readings(self) -> tuple[Node, ...]:
        """All nodes that must hold."""
        return tuple(n for n in (self.pinned, self.adaptive, self.mixed) if n is not None)


@dataclass(slots=True)
class Residual:
    """R after simplification. `assumes` are over actual inputs, in the unpinned program."""

    graph: Graph
    scope: str
    points: list[tuple[Point, Node]]
    guards: list[ResidualGuard]
    assumes: list[tuple[Guard, Node]]
    pins: list[Pin]
    knobs: list[str]

    @property
    def parameters(self) -> list[str]:
        """The parameters (non-free pins, in name order), then the free knobs, in name order."""
        return sorted(p.parameter for p in self.pins if p.parameter is not None) + sorted(
            self.knobs
        )
