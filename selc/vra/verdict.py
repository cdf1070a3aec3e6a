"""What the analyses answer: evidence, dependence, legality and the default tuple."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from selc.ir.value import Value
from selc.vra.budget import SOLVER_STEPS

Evidence = Literal["proved", "exhaustive", "sampled", "refuted", "unknown"]

WEAKNESS: Final[dict[str, int]] = {
    "proved": 0,
    "exhaustive": 1,
    "sampled": 2,
    "unknown": 3,
    "refuted": 4,
}
"""Evidence from strong to weak, as far as a verdict `holds` is concerned."""


def weakest(first: Evidence, second: Evidence) -> Evidence:
    """The weaker of two."""
    return first if WEAKNESS[first] >= WEAKNESS[second] else second


@dataclass(frozen=True, slots=True)
class Admitted:
    """An input on which all conditions hold; `decided` tells an empty set from a failed search."""

    example: Mapping[str, Value] | None
    decided: bool


@dataclass(frozen=True, slots=True)
class PointDependence:
    """What moves one selection point.

    `depends_on` asks over the product of the declared domains, `batch_dependent` over D. What could
    not be decided counts as dependent, and `decided` is False.
    """

    depends_on: tuple[str, ...]
    batch_dependent: bool
    decided: bool = True


@dataclass(frozen=True, slots=True)
class Counterexample:
    """Parameters and a full admitted input on which a guard does not hold."""

    parameters: Mapping[str, Value]
    inputs: Mapping[str, Value]
    reading: str  # 'pinned' | 'adaptive' | 'mixed'


@dataclass(frozen=True, slots=True)
class GuardVerdict:
    """How a guard was decided.

    `evidence` is the weakest method among the projected assignments that stay legal for it: if none
    does, `refuted` or `unknown`. `points` counts sampled points, `budget` names what was spent on
    the assignments that stayed unknown.
    """

    index: int  # into Residual.guards
    evidence: Evidence
    parameters: tuple[str, ...] = ()
    refuted: int = 0  # projected assignments
    unknown: int = 0
    points: int = 0
    budget: str = ""
    counterexample: Counterexample | None = None


@dataclass(frozen=True, slots=True)
class Factor:
    """The rows that one or more guards allow over the parameters they read."""

    parameters: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]


@dataclass(slots=True)
class Effort:
    """By what means projected assignments were settled, and what was asked of the solver."""

    settled: dict[str, int] = field(default_factory=dict)
    solver_calls: int = 0

    def note(self, means: str, count: int = 1) -> None:
        """Count some assignments."""
        if count:
            self.settled[means] = self.settled.get(means, 0) + count


@dataclass(frozen=True, slots=True)
class PinFreeFailure:
    """A guard that no parameter can change and that is false at an admitted input."""

    index: int  # into Residual.guards
    inputs: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Legality:
    """The relation over `Residual.parameters`, factored, and materialised where it is small."""

    parameters: tuple[str, ...]
    axes: tuple[tuple[Value, ...], ...]
    assignments: int
    legal: int
    evidence: Evidence
    relation: tuple[tuple[Value, ...], ...] | None
    factors: tuple[Factor, ...]
    guards: tuple[GuardVerdict, ...]
    pin_free_failures: tuple[PinFreeFailure, ...] = ()
    projections: tuple[tuple[Value, ...], ...] = ()  # the legal values of each parameter
    rlimit: int = SOLVER_STEPS  # of each question to the solver


@dataclass(frozen=True, slots=True)
class DefaultTuple:
    """A legal assignment of all parameters; `witnessed`: one input produces all pins' values."""

    values: Mapping[str, Value]
    witnessed: bool
    source: str  # 'profile' | 'domain' | 'lattice' | 'marginal'
    count: int = 0  # on how many of the points looked at
