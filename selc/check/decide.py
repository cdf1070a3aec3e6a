"""Whether a claim holds at every call: computed, enumerated, proved by Z3, or else sampled."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from selc.check.dag import TRUE, Dag
from selc.check.grid import at, everywhere, work
from selc.check.integers import NotEncoded, refute
from selc.check.values import WIDE

WORK: Final = 3_000_000
"""Operations that an enumeration may take before Z3 is asked; ten times that after it."""

SAMPLES: Final = 1024


class Verdict(NamedTuple):
    """`proved`, `exhaustive`, `sampled` (nothing found against it) or `refuted` by a call."""

    how: str
    call: dict[str, Any] | None = None

    @property
    def holds(self) -> bool:
        """Whether nothing speaks against it."""
        return self.how != "refuted"


class Judge:
    """Decides claims over one `Dag`. `premises` are what every call of the domain satisfies."""

    def __init__(self, dag: Dag, premises: Sequence[int], seeds: Sequence[dict[str, Any]]) -> None:
        self.dag = dag
        self.premises = list(premises)
        self.seeds = list(seeds)
        self.draw = random.Random(1)  # noqa: S311  # a fixed sequence, not a secret
        self.stated = list(self._stated())
        self.counts = {"computed": 0, "enumerated": 0, "solved": 0, "sampled": 0}

    def always(self, claim: int, under: Sequence[int] = ()) -> Verdict:
        """Whether the claim is True at every call of the domain at which `under` is True."""
        verdict = self._decide(claim)
        if verdict.how in ("proved", "exhaustive"):
            return verdict
        premises = [*under, *self.premises]
        near = self._near(claim, premises)
        if near:
            verdict = self._decide(self.dag.implies(near, claim))
        if verdict.call is None:
            return verdict
        return self._completed(verdict.call, [p for p in premises if p not in near])

    def each(
        self, claims: Sequence[int], under: Sequence[Sequence[int]] | None = None
    ) -> list[Verdict]:
        """`always` for many claims: together if they hold, else one by one.

        `under` has the further premises of each claim, tried where it fails without.
        """
        together = self._decide(self.dag.both(claims))
        if together.how in ("proved", "exhaustive"):
            return [Verdict("proved") if c == TRUE else together for c in claims]
        out = []
        for k, claim in enumerate(claims):
            verdict = self.always(claim)
            if not verdict.holds and under is not None:
                verdict = self.always(claim, under[k])
            out.append(verdict)
        return out

    def calls(self, count: int) -> list[dict[str, Any]]:
        """Calls with ends of domains, the given seeds, small and random values mixed.

        An input that a premise states in terms of others is computed from them.
        """
        names = sorted(self.dag.domains)
        out = []
        for k in range(count):
            base = self.seeds[k % len(self.seeds)] if self.seeds and k % 3 else {}
            call = {}
            for name in names:
                domain = self.dag.domains[name]
                if name in base and self.draw.random() < 0.8:
                    call[name] = base[name]
                else:
                    call[name] = domain[self._place(len(domain))]
            out.append(call)
        for name, term in self.stated:
            domain = self.dag.domains[name]
            for call, value in zip(out, at(self.dag, term, out), strict=True):
                if type(value) is int and value in domain:
                    call[name] = value
        return out

    def _place(self, size: int) -> int:
        """A position in a domain: an end, a small one, or any."""
        kind = self.draw.random()
        if kind < 0.25:
            return self.draw.choice((0, size - 1))
        if kind < 0.65:
            return min(int(size ** self.draw.random()) - 1, size - 1)
        return self.draw.randrange(size)

    def _stated(self) -> Iterator[tuple[str, int]]:
        """Premises of the form `input == term`, the term over other inputs."""
        for premise in self.premises:
            for n in self.dag.cone(premise):
                node = self.dag.nodes[n]
                if node.op != "eq":
                    continue
                for leaf, term in (node.args, node.args[::-1]):
                    name = self.dag.nodes[leaf].attr
                    if self.dag.nodes[leaf].op == "input" and name not in self.dag.reads(term):
                        yield name, term
                        break

    def admitted(self, count: int) -> list[dict[str, Any]]:
        """Some calls of the domain."""
        calls = self.calls(count)
        kept = at(self.dag, self.dag.both(self.premises), calls)
        return [c for c, ok in zip(calls, kept, strict=True) if ok is True]

    def _near(self, claim: int, premises: Sequence[int]) -> list[int]:
        """The premises that share leaves with the claim, directly or through others."""
        reached = set(self.dag.reads(claim))
        waiting = {p: set(self.dag.reads(p)) for p in premises if p != TRUE}
        near: list[int] = []
        while True:
            found = [p for p, reads in waiting.items() if reads & reached or not reads]
            if not found:
                return near
            for p in found:
                reached |= waiting.pop(p)
                near.append(p)

    def _completed(self, call: dict[str, Any], premises: Sequence[int]) -> Verdict:
        """Refuted by the call, with values for all other leaves under which the premises hold.

        No premise reads a leaf of the call. Those that share leaves are satisfied together.
        """
        whole = dict(call)
        left = [p for p in premises if p != TRUE]
        while left:
            group = self._near(left[0], left)
            left = [p for p in left if p not in group]
            holds = self.dag.both(group)
            found = self._decide(self.dag.add("not", (holds,)))
            if found.how in ("proved", "exhaustive"):
                return found  # no call is admitted, so that every claim holds
            part = found.call or self._drawn(holds)
            if part is None:
                return Verdict("sampled")
            whole.update(part)
        whole = {**{n: d[0] for n, d in self.dag.domains.items()}, **whole}
        return Verdict("refuted", whole)

    def _drawn(self, holds: int) -> dict[str, Any] | None:
        """Some call at which a node is True, over the leaves that it reads."""
        calls = self.calls(SAMPLES)
        for call, value in zip(calls, at(self.dag, holds, calls), strict=True):
            if value is True:
                return {n: call[n] for n in self.dag.reads(holds)}
        return None

    def _decide(self, claim: int) -> Verdict:
        if claim == TRUE:
            self.counts["computed"] += 1
            return Verdict("proved")
        cost = work(self.dag, claim)
        if cost <= WORK:
            return self._enumerate(claim)
        against = self._sample(claim)
        if against is not None:
            return against
        try:
            how, call = refute(self.dag, claim)
        except NotEncoded:
            how, call = "unknown", {}
        if how == "proved":
            self.counts["solved"] += 1
            return Verdict("proved")
        if how == "refuted":
            self.counts["solved"] += 1
            return Verdict("refuted", call)
        if cost <= 10 * WORK:
            return self._enumerate(claim)
        self.counts["sampled"] += 1
        return Verdict("sampled")

    def _enumerate(self, claim: int) -> Verdict:
        self.counts["enumerated"] += 1
        how = "exhaustive"
        for call, value in everywhere(self.dag, claim):
            if value is WIDE:
                how = "sampled"
            elif value is not True:
                return Verdict("refuted", call)
        return Verdict(how)

    def _sample(self, claim: int) -> Verdict | None:
        calls = self.calls(SAMPLES)
        for call, value in zip(calls, at(self.dag, claim, calls), strict=True):
            if value is not True and value is not WIDE:
                return Verdict("refuted", {n: call[n] for n in self.dag.reads(claim)})
        return None
