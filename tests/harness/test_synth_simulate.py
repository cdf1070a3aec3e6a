"""The simulated engine: what is computed, when, and what the presets look like."""

from __future__ import annotations

import itertools
import random
import statistics
from collections import defaultdict
from pathlib import Path

import pytest

from selc.harness.call import Request
from selc.harness.synth.arrivals import Job, make_jobs, spread
from selc.harness.synth.description import PRESETS, Cost, Engine, describe
from selc.harness.synth.lengths import Lengths
from selc.harness.synth.simulate import Step, simulate, throughput

SMALL = Engine(chunk_budget=48, max_requests=5, max_context=200, page_size=8)


def follow(jobs: list[Job], steps: list[Step], engine: Engine) -> None:
    """Every token of every request once, in order, within the engine's bounds, never too early."""
    parts: dict[int, list[tuple[float, float, Request]]] = defaultdict(list)
    end = 0.0
    for step in steps:
        assert step.start >= end
        end = step.start + step.seconds
        assert 0 < step.rows <= engine.chunk_budget
        assert 0 < len(step.requests) <= engine.max_requests
        assert len({r.seed for r in step.requests}) == len(step.requests)
        for request in step.requests:
            assert request.rows > 0
            assert request.context <= engine.max_context
            parts[request.seed].append((step.start, end, request))
    finished: dict[int, float] = {}
    at: dict[int, int] = defaultdict(int)
    for number, job in enumerate(jobs):
        mine = parts[job.seed]
        begin = mine[at[job.seed]][0]
        assert begin >= job.arrival
        assert job.after is None or begin >= finished[job.after]
        have, decoded, until = job.cached, 0, 0.0
        while have < job.prompt + job.output - 1:
            _, until, request = mine[at[job.seed]]
            at[job.seed] += 1
            assert request.context - request.rows == have
            assert request.cached == job.cached
            have = request.context
            if have <= job.prompt:
                continue
            decoded += 1
            assert request.rows == 1
        assert have == job.prompt + job.output - 1
        assert decoded == job.output - 1
        finished[number] = until
    assert all(at[seed] == len(found) for seed, found in parts.items())


@pytest.mark.parametrize("seed", range(6))
def test_every_token_once(seed: int) -> None:
    draw = random.Random(seed)
    jobs = []
    for number in range(40):
        prompt = draw.randint(1, 150)
        cached = draw.randrange(0, prompt) // 8 * 8
        output = draw.randint(1, 40)
        jobs.append(Job(number, prompt, output, cached, draw.random() * 0.2))
    steps = list(simulate(jobs, SMALL, Cost()))
    follow(jobs, steps, SMALL)
    assert sum(s.rows for s in steps) == sum(j.rows for j in jobs)
    assert any(len(s.requests) == SMALL.max_requests for s in steps)
    assert any(s.rows == SMALL.chunk_budget for s in steps)


@pytest.mark.parametrize("preset", PRESETS)
def test_every_token_once_in_presets(preset: str) -> None:
    what = describe(preset, None)
    jobs = list(make_jobs(what, 60, 3).jobs)
    if what.process != "closed":
        jobs = spread(jobs, 0.7 * throughput(jobs, what.engine, what.cost), 3)
    follow(jobs, list(simulate(jobs, what.engine, what.cost)), what.engine)


def test_a_decode_is_never_held_up() -> None:
    jobs = [Job(0, 8, 60, 0), *(Job(n, 150, 2, 0, 0.01) for n in range(1, 12))]
    steps = list(simulate(jobs, SMALL, Cost()))
    first = [any(r.seed == 0 for r in s.requests) for s in steps]
    assert first == sorted(first, reverse=True)


def test_memory_bounds_what_is_admitted() -> None:
    engine = Engine(kv_tokens=300, max_context=200)
    jobs = [Job(n, 100, 10, 0) for n in range(9)]
    steps = list(simulate(jobs, engine, Cost()))
    follow(jobs, steps, engine)
    assert max(len(s.requests) for s in steps) == 2
    assert max(s.keys for s in steps) <= 300


def test_turns_wait_for_each_other_and_share_their_beginning() -> None:
    what = describe("w-a", None)
    jobs = make_jobs(what, 200, 1).jobs
    before: dict[int, Job] = {}
    for number, job in enumerate(jobs):
        last = before.get(job.seed)
        if last is None:
            assert job.after is None
            assert job.cached == 0
        else:
            assert job.after is not None
            assert jobs[job.after] is last
            assert job.after < number
            assert job.prompt > last.prompt + last.output
            assert job.cached == last.prompt // 16 * 16
        before[job.seed] = job


def test_a_closed_loop_keeps_so_many_in_flight() -> None:
    what = describe("w-b-c", None)
    jobs = make_jobs(what, 64, 0).jobs
    for flight in (1, 8):
        engine = Engine(max_requests=flight)
        steps = list(simulate(jobs, engine, what.cost))
        assert max(len(s.requests) for s in steps) == flight
        whole = [s for s in steps[: len(steps) // 2] if s.rows < engine.chunk_budget]
        assert all(len(s.requests) == flight for s in whole)


def test_presets_are_what_they_are_named_after() -> None:
    for seed in range(5):
        chats = make_jobs(describe("w-a", None), 600, seed).jobs
        prompts = sum(j.prompt for j in chats)
        assert 0.60 <= sum(j.cached for j in chats) / prompts <= 0.68
        assert 140 <= len({j.seed for j in chats}) <= 185
        assert prompts / len(chats) < 1200
        computed = sum(j.prompt - j.cached for j in chats)
        decoded = sum(j.output for j in chats)
        assert 0.5 < decoded / computed < 2
        documents = make_jobs(describe("w-b", None), 200, seed).jobs
        assert 7300 <= statistics.mean(j.prompt for j in documents) <= 8700
        assert all(j.cached == 0 for j in documents)


def test_load_is_a_share_of_the_throughput() -> None:
    what = describe("w-b", None)
    jobs = make_jobs(what, 200, 0).jobs
    most = throughput(jobs, what.engine, what.cost)
    batches = []
    for load in what.loads:
        arriving = spread(jobs, load * most, 0)
        rate = len(jobs) / arriving[-1].arrival
        assert 0.85 < rate / (load * most) < 1.15
        steps = list(simulate(arriving, what.engine, what.cost))
        batches.append(statistics.mean(len(s.requests) for s in steps))
    assert batches == sorted(batches)
    assert batches[-1] > 3 * batches[0]


def test_stopping_keeps_what_came_before() -> None:
    jobs = make_jobs(describe("w-b", None), 20, 0).jobs
    whole = list(simulate(jobs, Engine(), Cost()))
    until = whole[len(whole) // 2].start
    assert list(simulate(jobs, Engine(), Cost(), until)) == [s for s in whole if s.start < until]


@pytest.mark.parametrize(
    ("lengths", "mean"),
    [
        (Lengths("constant", 7), 7),
        (Lengths("uniform", least=3, most=9), 6),
        (Lengths("lognormal", 100, 0.7), 100),
        (Lengths("geometric", 4.0), 4),
        (Lengths("geometric", 1.0), 1),
        (Lengths("empirical", values=(1, 2, 2, 11)), 4),
    ],
    ids=lambda v: getattr(v, "shape", None),
)
def test_distributions_have_their_means(lengths: Lengths, mean: float) -> None:
    source = random.Random(5)
    drawn = [lengths.draw(source) for _ in range(20_000)]
    assert abs(statistics.mean(drawn) / mean - 1) < 0.03
    assert all(lengths.least <= v <= lengths.most for v in drawn)


def test_what_does_not_fit_is_cut_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "d.yaml"
    path.write_text("engine: {max_context: 64, page_size: 4}\n")
    for preset in PRESETS:
        what = describe(preset, path)
        made = make_jobs(what, 50, 0)
        assert made.cut > 0
        assert all(j.prompt + j.output - 1 <= 64 and j.cached < j.prompt for j in made.jobs)
        assert all(j.prompt >= 1 and j.output >= 1 for j in made.jobs)


def test_cost_grows_with_everything() -> None:
    cost = Cost()
    for rows, keys in itertools.pairwise(
        [(1, 10), (1, 10_000), (4096, 10_000), (4096, 10_000_000)]
    ):
        assert cost.seconds(*rows, 0.0) < cost.seconds(*keys, 0.0)
    assert cost.seconds(8192, 8192, 3e7) < cost.seconds(8192, 32768, 3e8)
