"""What pinning a site costs, and which sites cannot be pinned."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from selc.ir.domain import Input
from selc.ir.graph import Node
from selc.ir.op import Op
from selc.ir.program import Program, Site
from selc.ir.residual import Candidates
from selc.ir.value import Value

LARGE_INPUT: Final = 64
"""A batch input with more values than this is never a pin itself."""

BatchPoint = Callable[[], Mapping[str, Value] | None]


@dataclass(frozen=True, slots=True)
class Least:
    """What is known of a site without asking: so many values at least, moved by the batch."""

    values: int = 0
    moved: bool = False


@dataclass(slots=True)
class Market:
    """What the driver can tell about sites, asked once each, and only if it may matter."""

    program: Program
    candidates: Callable[[Site], Candidates]
    is_injective: Callable[[Site], bool]
    batch_point: BatchPoint
    max_candidates: int
    least: Callable[[Site], Least] = lambda site: Least()
    _found: dict[str, Candidates] = field(default_factory=dict)
    _reasons: dict[str, str] = field(default_factory=dict)

    def asked(self, site: Site) -> bool:
        """Whether everything about a site is known."""
        return site.name in self._reasons

    def barred(self, site: Site) -> bool:
        """Whether it is clear without asking that a site cannot be a pin."""
        if self.asked(site):
            return bool(self._reasons[site.name])
        return self.least(site).values > self.max_candidates or bool(self._named(site))

    def of(self, site: Site) -> Candidates:
        """The candidates of a site."""
        if site.name not in self._found:
            self._found[site.name] = self.candidates(site)
        return self._found[site.name]

    def count(self, site: Site) -> int | None:
        """How many values a site takes; None if there is no finite set."""
        found = self.of(site)
        if found.values is not None:
            return len(found.values)
        if found.span is not None:
            lo, hi, step = found.span
            return (hi - lo) // step + 1
        return None

    def constant(self, site: Site) -> tuple[Value] | None:
        """The only value that a site takes, if the candidates are exact and it is one."""
        found = self.of(site)
        if found.exact and found.values is not None and len(found.values) == 1:
            return (found.values[0],)
        return None

    def refusal(self, site: Site) -> str:
        """Why a site cannot be a pin; '' if it can."""
        if site.name not in self._reasons:
            self._reasons[site.name] = self._refusal(site)
        return self._reasons[site.name]

    def _named(self, site: Site) -> str:
        """Why a site that is another name for an input cannot be a pin."""
        entry = _input_of(self.program, site)
        if entry is not None and entry.is_batch(self.program.scope):
            if entry.kind == "unpinnable":
                return f"is the input `{entry.name}`, which is declared unpinnable"
            if len(entry.domain) > LARGE_INPUT:
                return f"is the batch input `{entry.name}` with {len(entry.domain):,} values"
        return ""

    def _refusal(self, site: Site) -> str:
        named = self._named(site)
        if named:
            return named
        if self.is_injective(site):
            return "tells a batch input apart value by value"
        count = self.count(site)
        if count is None:
            return "has no finite set of candidates"
        if count > self.max_candidates:
            return f"takes {count:,} values, more than --max-candidates {self.max_candidates:,}"
        return "is never reached" if count == 0 else ""


def _input_of(program: Program, site: Site) -> Input | None:
    """The input that a site is another name for."""
    names = {_leaf(m.node) for m in site.marks}
    name = names.pop() if len(names) == 1 else None
    return None if name is None else program.graph.inputs[name]


def _leaf(node: Node) -> str | None:
    while node.op is Op.MARK:
        node = node.args[0]
    return str(node.attr) if node.op is Op.INPUT else None


def weight(count: int, named: bool, free: bool, sites: int) -> int:
    """Pins first, then the size of the grid, then values without a name, then how many."""
    grid = 0 if free else round(1024 * math.log2(count))
    low = sites + 1
    return least_weight(0 if free else 1, sites) + (grid * low + (0 if named else 1)) * low + 1


def least_weight(pins: int, sites: int) -> int:
    """What so many pins weigh at least; fewer weigh less, whatever their grid."""
    low = sites + 1
    return pins * low * (round(1024 * math.log2(1 << 20)) + 1) * low * low
