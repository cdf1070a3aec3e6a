"""Which configurations give equal bits: refuted by example, never proved."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from selc.diag.diagnostic import Diagnostic, Refused
from selc.harness.bits.compare import as_bits, degenerate, difference
from selc.harness.bits.configurations import Member, Shape, typed
from selc.harness.bits.launch import Failure, Launcher, Rows, Skip
from selc.harness.call import Call

FAILED: Final = "SEL956"
LOST: Final = ("CUDA error", "device-side assert", "illegal memory access")
"""What a device says after which it runs nothing."""


@dataclass(frozen=True, slots=True)
class Case:
    """A launch that every configuration makes: the batch, and its watched request alone."""

    shape: Shape
    seed: int
    magnitude: str
    call: Call
    alone: Call
    base: Mapping[str, Any]
    """What the tuple chooses for the batch; fields and given points are overwritten."""
    alone_base: Mapping[str, Any]

    @property
    def text(self) -> str:
        """In words."""
        inputs = ", ".join(f"{k}={v!r}" for k, v in self.shape.inputs.items())
        return f"{inputs}, seed {self.seed}, magnitude {self.magnitude}"


@dataclass(slots=True)
class Found:
    """What came out. Members are in their order, whatever the order they were tried in."""

    classes: list[list[Member]] = field(default_factory=list)
    left_out: dict[Any, tuple[Member, str]] = field(default_factory=dict)
    """Could not be run on some batch that others could run."""
    unfit: dict[Any, tuple[Member, str]] = field(default_factory=dict)
    """Give other bits when run again, or bits that move with the batch: in no class."""
    tried: list[Case] = field(default_factory=list)
    dropped: dict[str, str] = field(default_factory=dict)
    """Cases that no configuration could run, with why."""
    late: int = 0
    """Cases that the budget left no time for."""
    launches: int = 0
    comparisons: int = 0
    dtype: str = ""


@dataclass(slots=True)
class Refinement:
    """Tries every configuration on every case. Equal so far is one class; one difference parts."""

    launcher: Launcher
    fields: Sequence[str]
    given: Mapping[str, Any]
    members: Sequence[Member]
    found: Found = field(default_factory=Found)
    _signs: dict[Any, list[int]] = field(default_factory=dict)
    _alone: dict[tuple[str, Any], Rows] = field(default_factory=dict)

    def run(
        self,
        cases: Sequence[Case],
        budget: float | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Found:
        """The classes. Cases that come after the budget are not tried, and counted.

        Raises:
            Refused: a configuration made the device unusable.
        """
        self._signs = {typed(m): [] for m in self.members}
        start = time.monotonic()
        for done, case in enumerate(cases):
            if budget is not None and time.monotonic() - start > budget:
                self.found.late = len(cases) - done
                break
            self._case(case)
            if progress is not None:
                progress(done + 1, len(cases))
        groups: dict[tuple[int, ...], list[Member]] = {}
        for member in sorted(self._left(), key=typed):
            if self._signs[typed(member)]:
                groups.setdefault(tuple(self._signs[typed(member)]), []).append(member)
        self.found.classes = sorted(groups.values(), key=lambda g: typed(g[0]))
        return self.found

    def _left(self) -> list[Member]:
        known = {*self.found.left_out, *self.found.unfit}
        return [m for m in self.members if typed(m) not in known]

    def _case(self, case: Case) -> None:
        left = self._left()
        troubles: dict[Any, tuple[Member, str]] = {}
        for member in left:
            key = (case.alone.key, typed(member))
            if key in self._alone:
                continue
            try:
                self._alone[key] = self._rows(member, case.alone_base, case.alone, 0)[0]
            except (Skip, Failure) as error:
                troubles[typed(member)] = (member, str(error))
        seen: list[Any] = []
        signs: dict[Any, int] = {}
        for member in left:
            if typed(member) in troubles:
                continue
            try:
                signs[typed(member)] = self._one(member, case, seen)
            except (Skip, Failure) as error:
                troubles[typed(member)] = (member, str(error))
        if len(troubles) == len(left):
            self.found.dropped[case.text] = next((why for _, why in troubles.values()), "")
            return
        for member, why in troubles.values():
            self.found.left_out[typed(member)] = (member, f"{why} ({case.text})")
        self.found.tried.append(case)
        for key, sign in signs.items():
            self._signs[key].append(sign)

    def _one(self, member: Member, case: Case, seen: list[Any]) -> int:
        """The number of the configuration's output among those of the case."""
        mine, whole = self._rows(member, case.base, case.call, case.shape.at)
        again = as_bits(self._output(member, case.base, case.call))
        self.found.comparisons += 2
        if difference(whole, again) is not None:
            self._part(member, f"other bits when it ran again ({case.text})")
        alone = self._alone[case.alone.key, typed(member)]
        first, last = max(alone.first, mine.first), min(alone.context, mine.context)
        a = alone.bits[first - alone.first : last - alone.first]
        b = mine.bits[first - mine.first : last - mine.first]
        if a.shape != b.shape or difference(a, b) is not None:
            self._part(member, f"the bits of a request move with its batch ({case.text})")
        for number, other in enumerate(seen):
            self.found.comparisons += 1
            if other.shape == whole.shape and difference(other, whole) is None:
                return number
        seen.append(whole)
        return len(seen) - 1

    def _part(self, member: Member, why: str) -> None:
        self.found.unfit.setdefault(typed(member), (member, why))

    def _rows(
        self, member: Member, base: Mapping[str, Any], call: Call, at: int
    ) -> tuple[Rows, Any]:
        out = self._output(member, base, call)
        self.found.dtype = str(out.dtype).removeprefix("torch.")
        whole = as_bits(out).clone()
        start = sum(r.rows for r in call.requests[:at])
        mine = call.requests[at]
        trouble = degenerate(out)
        if trouble:
            raise Skip(trouble)
        return Rows(whole[start : start + mine.rows], mine.context), whole

    def _output(self, member: Member, base: Mapping[str, Any], call: Call) -> Any:
        choice = {**base, **self.given, **dict(zip(self.fields, member, strict=True))}
        self.found.launches += 1
        try:
            return self.launcher.output(choice, call)
        except Failure as failure:
            if any(sign in str(failure) for sign in LOST):
                shown = ", ".join(f"{f}={v!r}" for f, v in zip(self.fields, member, strict=True))
                raise Refused(
                    Diagnostic(
                        FAILED,
                        f"{shown} left the device unusable: {failure}",
                        help="run again without it, with `--configs FILE.json`",
                    )
                ) from None
            raise
