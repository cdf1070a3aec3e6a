"""What an emitted selector is made from: everything the driver decided, in one record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from selc.diag.span import NOWHERE, Span
from selc.ir.domain import Domain
from selc.ir.program import Program
from selc.ir.residual import Residual
from selc.ir.value import Value, value_key

SETTLED: Final = frozenset({"proved", "exhaustive"})
"""Evidence that lets a guard be left out of the call: it holds for every legal tuple on D."""

AGGREGATES: Final = ("max", "min", "sum", "len", "any", "all")
"""What of a sequence may reach the graph."""


@dataclass(frozen=True, slots=True)
class Sequence:
    """A sequence argument: its lengths, its integer elements, and what the graph reads of it.

    `aggregates` maps a function of `AGGREGATES` to the name of the graph's input.
    """

    length: Domain
    element: Domain
    aggregates: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of `select`: a graph input of the same name, or a sequence of integers."""

    name: str
    kind: str  # 'runtime' | 'unpinnable' | 'request'
    domain: Domain | None = None
    sequence: Sequence | None = None

    @property
    def leaves(self) -> tuple[tuple[str, str | None], ...]:
        """The graph inputs that it feeds, each with the aggregate that computes it."""
        if self.sequence is None:
            return ((self.name, None),)
        return tuple((leaf, how) for how, leaf in self.sequence.aggregates)


@dataclass(frozen=True, slots=True)
class PinSpec:
    """A pin as the user sees it. `parameter` names its leaf in R; a free pin has none."""

    name: str
    parameter: str | None
    type: str
    candidates: tuple[Value, ...]
    legal: tuple[Value, ...]
    offered: tuple[Value, ...] = ()
    default: Value = None
    free: bool = False
    location: Span = NOWHERE
    fixes: tuple[str, ...] = ()

    @property
    def values(self) -> tuple[Value, ...]:
        """Everything that the parameter ranges over."""
        return tuple({value_key(v): v for v in self.candidates + self.offered}.values())


@dataclass(frozen=True, slots=True)
class KnobSpec:
    """A free knob: the settings it can have, and the initial one."""

    name: str
    choices: tuple[Value, ...]
    setting: Value = None


@dataclass(frozen=True, slots=True)
class Factor:
    """A condition on some parameters: their values together must be one of `rows`.

    `guards` are indices into the residual's guards: those that the condition stands for.
    """

    parameters: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    guards: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SelectorSpec:
    """One selector. A tuple is legal iff it satisfies every factor.

    `evidence` has one entry per guard of the residual, in order. `default` gives every parameter
    (by the names in `Residual.parameters`) its value, or is None where nothing is legal.
    `paths` overrides how a point's name is nested. `texts` are further files to write, by name.
    """

    program: Program
    residual: Residual
    arguments: tuple[Argument, ...]
    pins: tuple[PinSpec, ...]
    knobs: tuple[KnobSpec, ...]
    evidence: tuple[str, ...]
    factors: tuple[Factor, ...]
    default: Mapping[str, Value] | None
    manifest: Mapping[str, object] = field(default_factory=dict)
    header: str = ""
    paths: Mapping[str, tuple[str | int, ...]] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)

    @property
    def checked(self) -> tuple[int, ...]:
        """The guards of the residual that are evaluated on every call, by index."""
        return tuple(i for i, e in enumerate(self.evidence) if e not in SETTLED)

    def parameter_values(self, name: str) -> tuple[Value, ...]:
        """What the parameter `name` of R ranges over."""
        for pin in self.pins:
            if pin.parameter == name:
                return pin.values
        for knob in self.knobs:
            if knob.name == name:
                return knob.choices
        raise KeyError(name)

    def public_name(self, parameter: str) -> str:
        """The name under which the user knows a parameter of R."""
        return next((p.name for p in self.pins if p.parameter == parameter), parameter)


@dataclass(frozen=True, slots=True)
class Artifacts:
    """What was written; paths are absolute. `reason` says why there is no native module."""

    directory: str
    module: str
    manifest: str
    native: str | None
    header: str | None
    reason: str | None
    hash: str
    files: tuple[str, ...] = ()
