"""What is searched: a family's legal tuples, and the launches that each of them means."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from selc.diag.diagnostic import Refused
from selc.harness.call import Call
from selc.harness.executor import Job, job_of
from selc.harness.runner import choice_key

MOST: Final = 8192
"""Grids of more tuples are sampled, never listed."""

TRIED: Final = 1024
"""Tuples whose knobs are tried for the stock selection."""

Pair = tuple[int, int]
"""A launch: the number of a call, and the number of a choice."""


class Selects(Protocol):
    """What the search asks of a selector."""

    @property
    def parameters(self) -> Mapping[str, tuple[Any, ...]]:
        """The values of every pin and free knob."""

    def legal(self, partial: Mapping[str, Any]) -> Mapping[str, tuple[Any, ...]]:
        """What remains once some are fixed."""

    def choice(self, commitment: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The points under a tuple."""

    def stock(
        self, inputs: Mapping[str, Any], commitment: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """The points without pins, knobs as in a tuple, else in the default one."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A legal tuple: the number of each parameter's value, and of the choice of each call."""

    values: tuple[int, ...]
    choices: tuple[int, ...]


@dataclass(slots=True)
class Problem:
    """One family. Equal choices have equal numbers, and so are one launch."""

    family: str
    selector: Selects
    kernels: Any
    calls: tuple[Call, ...]
    parameters: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    choices: list[Mapping[str, Any]] = field(default_factory=list)
    refused: dict[tuple[int, ...], str] = field(default_factory=dict)
    """Tuples under which a call of the profile breaks a guard."""
    stock_tuple: Mapping[str, Any] | None = None
    """Whose knobs the selection without pins has; None: the default tuple's."""
    _stock: tuple[int, ...] | None = None
    _numbers: dict[str, int] = field(default_factory=dict)
    _made: dict[tuple[int, ...], Candidate] = field(default_factory=dict)
    _expected: list[list[float]] = field(default_factory=list)
    unestimated: str | None = None
    """Why what the kernels estimate is not used; empty if they estimate nothing."""

    def __post_init__(self) -> None:
        self.parameters = dict(self.selector.parameters)
        self._expected = [[] for _ in self.calls]
        if not callable(getattr(self.kernels, "estimate", None)):
            self.unestimated = ""

    def number(self, choice: Mapping[str, Any]) -> int:
        """The number of a choice; new ones get the next."""
        text = choice_key(choice)
        if text not in self._numbers:
            self._numbers[text] = len(self.choices)
            self.choices.append(choice)
        return self._numbers[text]

    def job(self, pair: Pair) -> Job:
        """A launch as the executor takes it."""
        call, choice = pair
        return Job(self.family, self.calls[call], self.choices[choice])

    def expected(self) -> list[list[float]] | None:
        """Logarithms of what the kernels estimate, by call and choice; None if they do not."""
        if self.unestimated is not None:
            return None
        try:
            for row, call in zip(self._expected, self.calls, strict=True):
                for choice in self.choices[len(row) :]:
                    seconds = float(self.kernels.estimate(call, choice))
                    if not 0 < seconds < math.inf:
                        raise ValueError(f"an estimate of {seconds} s")
                    row.append(math.log(seconds))
        except Exception as error:  # noqa: BLE001  the user's kernels; the search goes without
            self.unestimated = f"{type(error).__name__}: {error}"
            return None
        return self._expected

    def stock(self) -> tuple[int, ...]:
        """The choices of the selection without pins; empty if no knobs let it take every call.

        Its knobs are the default tuple's. Where it refuses a call under these, they are those of
        the tuple that is most like the default and under which it refuses none.
        """
        if self._stock is None:
            self._stock = self._unpinned(None) or ()
            start = getattr(self.selector, "default", None)
            if not self._stock and start:
                self._stock = self._with_other_knobs(start)
        return self._stock

    def _with_other_knobs(self, start: Mapping[str, Any]) -> tuple[int, ...]:
        some = itertools.islice(self._tuples({}, list(self.parameters)), TRIED)
        home = self.indices(start)

        def changes(values: tuple[int, ...]) -> int:
            return sum(a != b for a, b in zip(values, home, strict=True))

        for values in sorted(some, key=lambda v: (changes(v), v)):
            knobs = self.assignment(values)
            found = self._unpinned(knobs)
            if found:
                self.stock_tuple = knobs
                return found
        return ()

    def _unpinned(self, knobs: Mapping[str, Any] | None) -> tuple[int, ...] | None:
        try:
            chosen = [self.selector.stock(c.inputs, knobs) for c in self.calls]
        except Refused:
            return None
        return tuple(self._number_of(c, p) for c, p in zip(self.calls, chosen, strict=True))

    def assignment(self, values: Sequence[int]) -> dict[str, Any]:
        """A tuple by name."""
        return {n: v[i] for (n, v), i in zip(self.parameters.items(), values, strict=True)}

    def indices(self, assignment: Mapping[str, Any]) -> tuple[int, ...]:
        """The inverse of `assignment`."""
        return tuple(
            next(i for i, v in enumerate(values) if type(v) is type(w) and v == w)
            for values, w in ((vs, assignment[n]) for n, vs in self.parameters.items())
        )

    def candidate(self, values: tuple[int, ...]) -> Candidate | None:
        """A legal tuple as a candidate; None if it refuses a call of the workload."""
        if values in self._made:
            return self._made[values]
        if values in self.refused:
            return None
        commitment = self.assignment(values)
        try:
            chosen = [self.selector.choice(commitment, call.inputs) for call in self.calls]
        except Refused as refused:
            self.refused[values] = refused.diagnostics[0].message
            return None
        numbers = (self._number_of(c, p) for c, p in zip(self.calls, chosen, strict=True))
        made = self._made[values] = Candidate(values, tuple(numbers))
        return made

    def every(self) -> list[Candidate] | None:
        """All candidates in lexicographic order; None where there are too many to list."""
        found = list(itertools.islice(self._tuples({}, list(self.parameters)), MOST + 1))
        if len(found) > MOST:
            return None
        made = (self.candidate(values) for values in found)
        return [c for c in made if c is not None]

    def sample(self, count: int, source: random.Random) -> list[Candidate]:
        """Some candidates, drawn value by value."""
        out: dict[tuple[int, ...], Candidate] = {}
        for _ in range(count):
            names = list(self.parameters)
            source.shuffle(names)
            found = self._complete({}, names, lambda left: source.choice(left))
            if found is not None:
                out[found.values] = found
        return list(out.values())

    def neighbours(self, at: Candidate) -> list[Candidate]:
        """Candidates that differ in one parameter, or in what one change makes necessary."""
        here = self.assignment(at.values)
        out: dict[tuple[int, ...], Candidate] = {}
        for name, values in self.parameters.items():
            for value in values:
                if type(value) is type(here[name]) and value == here[name]:
                    continue
                rest = [n for n in self.parameters if n != name]
                found = self._complete({name: value}, rest, None, here)
                if found is not None:
                    out[found.values] = found
        return list(out.values())

    def _complete(
        self,
        partial: dict[str, Any],
        names: Iterable[str],
        pick: Any,
        wanted: Mapping[str, Any] | None = None,
    ) -> Candidate | None:
        for name in names:
            left = self.selector.legal(partial)[name]
            if not left:
                return None
            kept = wanted is not None and any(
                type(v) is type(wanted[name]) and v == wanted[name] for v in left
            )
            partial[name] = wanted[name] if kept and wanted else pick(left) if pick else left[0]
        return self.candidate(self.indices(partial))

    def _tuples(self, partial: dict[str, Any], names: Sequence[str]) -> Iterable[tuple[int, ...]]:
        if not names:
            yield self.indices(partial)
            return
        for value in self.selector.legal(partial)[names[0]]:
            yield from self._tuples({**partial, names[0]: value}, names[1:])

    def _number_of(self, call: Call, points: Mapping[str, Any]) -> int:
        return self.number(job_of(self.kernels, call, points).choice)


def distinct(candidates: Iterable[Candidate]) -> list[Candidate]:
    """One candidate for each row of choices: the first."""
    found: dict[tuple[int, ...], Candidate] = {}
    for each in candidates:
        found.setdefault(each.choices, each)
    return list(found.values())


def launches(candidates: Iterable[Candidate]) -> set[Pair]:
    """The launches of some candidates."""
    return set(itertools.chain.from_iterable(enumerate(c.choices) for c in candidates))
