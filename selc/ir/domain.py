"""Declared domains of inputs, pins and knobs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from selc.ir.value import Value, kind_of, value_key


@dataclass(frozen=True, slots=True)
class Domain:
    """Either the integers lo, lo+step, ..., hi, or a list of distinct values."""

    lo: int = 0
    hi: int = 0
    step: int = 1
    values: tuple[Value, ...] | None = None

    def __len__(self) -> int:
        if self.values is not None:
            return len(self.values)
        return (self.hi - self.lo) // self.step + 1

    def __iter__(self) -> Iterator[Value]:
        return iter(
            self.values if self.values is not None else range(self.lo, self.hi + 1, self.step)
        )

    def __contains__(self, value: object) -> bool:
        if self.values is not None:
            key = value_key(value)
            return any(value_key(v) == key for v in self.values)
        return (
            type(value) is int
            and self.lo <= value <= self.hi
            and (value - self.lo) % self.step == 0
        )

    def __getitem__(self, i: int) -> Value:
        return self.values[i] if self.values is not None else self.lo + i * self.step

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of value it holds."""
        return (
            frozenset(kind_of(v) for v in self.values)
            if self.values is not None
            else frozenset({"int"})
        )


@dataclass(frozen=True, slots=True)
class Input:
    """A named leaf of the graph.

    `kind` is `runtime`, `unpinnable`, `request` (inputs), `knob`, or `pin` (a parameter of the
    residual graph).
    """

    name: str
    kind: str
    domain: Domain

    def is_batch(self, scope: str) -> bool:
        """Whether the batch determines it, under the given scope."""
        return self.kind in ("runtime", "unpinnable") or (
            scope == "launch" and self.kind == "request"
        )
