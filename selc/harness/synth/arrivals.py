"""The requests of a workload, in the order in which they arrive."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from selc.harness.synth.description import Description


@dataclass(frozen=True, slots=True)
class Job:
    """One request. `seed` is that of its data: turns of a conversation have the same."""

    seed: int
    prompt: int
    output: int
    cached: int
    arrival: float = 0.0
    after: int | None = None
    """The place of the request whose end it waits for."""

    @property
    def rows(self) -> int:
        """Tokens that are computed for it: the last one of the output is not fed back."""
        return self.prompt - self.cached + self.output - 1


@dataclass(frozen=True, slots=True)
class Jobs:
    """Requests, and how many of them were cut to the longest context."""

    jobs: tuple[Job, ...]
    cut: int


def make_jobs(what: Description, count: int, seed: int) -> Jobs:
    """All requests, every one of which has arrived (see `spread`)."""
    source = random.Random(f"{seed} lengths")  # noqa: S311  no secret
    make = _conversations if what.process == "turns" else _single
    return make(what, count, source)


def spread(jobs: Sequence[Job], rate: float, seed: int) -> list[Job]:
    """Poisson arrivals, `rate` a second."""
    source = random.Random(f"{seed} arrivals")  # noqa: S311  no secret
    now, out = 0.0, []
    for job in jobs:
        now += source.expovariate(rate)
        out.append(replace(job, arrival=now))
    return out


def _single(what: Description, count: int, source: random.Random) -> Jobs:
    jobs, cut = [], 0
    for number in range(count):
        prompt, output, was_cut = _fit(what, what.prompt.draw(source), what.output.draw(source))
        cut += was_cut
        cached = _cached(what, what.prefix.draw(source), prompt)
        jobs.append(Job(number, prompt, output, cached))
    return Jobs(tuple(jobs), cut)


def _conversations(what: Description, count: int, source: random.Random) -> Jobs:
    """Turns in a random interleaving. One that would not fit starts a conversation of its own."""
    talks: list[list[Job]] = []
    seed = made = cut = 0
    while made < count:
        talk: list[Job] = []
        history = reusable = 0
        for _ in range(min(what.turns.draw(source), count - made)):
            message, answer = what.prompt.draw(source), what.output.draw(source)
            if history and history + message + answer - 1 > what.engine.max_context:
                talks.append(talk)
                talk, seed, history, reusable = [], seed + 1, 0, 0
            prompt, output, was_cut = _fit(what, history + message, answer)
            cut += was_cut
            talk.append(Job(seed, prompt, output, _cached(what, reusable, prompt)))
            history = prompt + output
            reusable = prompt if what.reuse == "prompt" else history - 1
            made += 1
        talks.append(talk)
        seed += 1
    order = [k for k, talk in enumerate(talks) for _ in talk]
    source.shuffle(order)
    out: list[Job] = []
    last: dict[int, int] = {}
    taken = [0] * len(talks)
    for k in order:
        out.append(replace(talks[k][taken[k]], after=last.get(k)))
        last[k] = len(out) - 1
        taken[k] += 1
    return Jobs(tuple(out), cut)


def _fit(what: Description, prompt: int, output: int) -> tuple[int, int, bool]:
    """Lengths that the longest context holds; the output may take half of it."""
    most = min(what.engine.max_context, what.engine.kv_tokens)
    short_output = min(output, max(1, most // 2))
    short_prompt = min(prompt, most - short_output + 1)
    return short_prompt, short_output, (short_prompt, short_output) != (prompt, output)


def _cached(what: Description, found: int, prompt: int) -> int:
    """Whole pages are cached, and a prompt's last token is always computed."""
    page = what.engine.page_size
    return min(found, prompt - 1) // page * page
