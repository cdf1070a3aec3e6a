"""`selc profile synth`: from a description and selectors to a profile."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from selc.diag.diagnostic import Diagnostic, Refused
from selc.diag.outcome import Outcome
from selc.diag.suggest import did_you_mean
from selc.harness.selector import Selector
from selc.harness.synth.arrivals import Job, Jobs, make_jobs, spread
from selc.harness.synth.compress import Point, compress
from selc.harness.synth.deployed import Asker, within
from selc.harness.synth.description import Cost, Description, Engine, check_load, describe
from selc.harness.synth.placed import CODE, wrong
from selc.harness.synth.simulate import Step, simulate, throughput
from selc.harness.synth.tell import Family, text, told, warnings
from selc.harness.workload import FORMAT, Key, Workload, write_profile

CALLS: Final = 24


@dataclass(frozen=True, slots=True)
class Asked:
    """The options of the command."""

    preset: str | None = None
    description: Path | None = None
    loads: tuple[float, ...] = ()
    requests: int | None = None
    seconds: float | None = None
    seed: int = 0
    calls: int = CALLS


@dataclass(frozen=True, slots=True)
class _Load:
    """One simulation, which gives the same steps whenever it is run."""

    load: float
    jobs: Sequence[Job]
    engine: Engine
    cost: Cost
    until: float

    def steps(self) -> Iterator[Step]:
        return simulate(self.jobs, self.engine, self.cost, self.until)


def synth(directories: Sequence[Path], asked: Asked, out: Path) -> Outcome:
    """Simulate, compress and write; exit 1 where a selector has no legal tuple."""
    try:
        what = describe(asked.preset, asked.description)
        _check(asked, what)
        selectors = [Selector.load(directory) for directory in directories]
        _check_inputs(what, selectors)
        return _synth(selectors, what, asked, out)
    except Refused as refused:
        return Outcome(refused.exit_code, diagnostics=list(refused.diagnostics))


def _check(asked: Asked, what: Description) -> None:
    for load in asked.loads:
        trouble = check_load(load, what.process)
        if trouble:
            raise Refused(
                Diagnostic(
                    CODE, trouble, help="give `--load` a number above 0, whole in a closed loop"
                )
            )
    if asked.seconds is not None and not asked.seconds > 0:
        raise Refused(Diagnostic(CODE, "`--seconds` is not positive", help="give more"))


def _check_inputs(what: Description, selectors: Sequence[Selector]) -> None:
    known = sorted({name for selector in selectors for name in selector.examples})
    for name, place in what.places.items():
        if name not in known:
            hint = did_you_mean(name, known) or f"they have {', '.join(known)}"
            raise wrong(f"no selector has an input `{name}`", place, hint)


def _synth(selectors: Sequence[Selector], what: Description, asked: Asked, out: Path) -> Outcome:
    engine, notes = within(what.engine, selectors)
    what = replace(what, engine=engine)
    made = make_jobs(what, asked.requests or what.requests, asked.seed)
    loads = _loads(what, asked, made)
    notes += [
        f"only {load.engine.max_requests} requests are in flight where {load.load:g} were asked for"
        for load in loads
        if what.process == "closed" and load.load > load.engine.max_requests
    ]
    families = [Family(Asker(s, what.inputs), [], [], Counter()) for s in selectors]
    shown = [_walk(n, load, families, what.cost) for n, load in enumerate(loads)]
    if not any(load["steps"] for load in shown):
        hint = "the first request comes later; give more"
        raise Refused(Diagnostic(CODE, "no step starts within `--seconds`", help=hint))
    lacking = list(warnings(families, made))
    calls: dict[Key, float] = {}
    answers = []
    for family in families:
        chosen = compress(family.points, asked.calls)
        mine = _calls(family, chosen, loads)
        for key, count in mine.items():
            calls[key] = calls.get(key, 0.0) + count
        answers.append(told(family, chosen, len(mine)))
    write_profile(Workload(calls), out)
    answer = {
        "format": FORMAT,
        "written": str(out),
        "seed": asked.seed,
        "engine": asdict(engine),
        "notes": notes,
        "loads": shown,
        "families": answers,
    }
    return Outcome(0, "\n".join(text(answer)), answer, lacking)


def _loads(what: Description, asked: Asked, made: Jobs) -> list[_Load]:
    until = math.inf if asked.seconds is None else asked.seconds
    loads = asked.loads or what.loads
    if what.process == "closed":
        engines = [
            replace(what.engine, max_requests=min(int(n), what.engine.max_requests)) for n in loads
        ]
        return [
            _Load(load, made.jobs, engine, what.cost, until)
            for load, engine in zip(loads, engines, strict=True)
        ]
    most = throughput(made.jobs, what.engine, what.cost)
    return [
        _Load(load, spread(made.jobs, load * most, asked.seed), what.engine, what.cost, until)
        for load in loads
    ]


def _walk(number: int, load: _Load, families: Sequence[Family], cost: Cost) -> dict[str, Any]:
    """Ask every selector for every step of one load; what the load was like."""
    steps = rows = keys = batch = 0
    end = 0.0
    for index, step in enumerate(load.steps()):
        steps, rows, keys = steps + 1, rows + step.rows, keys + step.keys
        batch, end = batch + len(step.requests), step.start + step.seconds
        for family in families:
            _, refusal = family.asker.ask(step.requests)
            if refusal:
                family.left_out[refusal] += 1
                continue
            family.places.append((number, index))
            family.points.append(_point(step, family.asker.reads_lengths))
    prompts = sum(j.prompt for j in load.jobs)
    return {
        "load": load.load,
        "requests": len(load.jobs),
        "prompt_tokens": prompts,
        "cached_tokens": sum(j.cached for j in load.jobs),
        "output_tokens": sum(j.output for j in load.jobs),
        "steps": steps,
        "tokens": rows,
        "keys": keys,
        "mean_batch": batch / max(1, steps),
        "seconds": end,
        "finished": rows == sum(j.rows for j in load.jobs),
    }


def _point(step: Step, lengths: bool) -> Point:
    rows, keys = step.rows, step.keys
    if not lengths:
        return Point((rows,), (rows,), step.seconds)
    longest = max(r.context for r in step.requests)
    most = max(r.rows for r in step.requests)
    return Point((rows, keys, len(step.requests), longest, most), (rows, keys), step.seconds)


def _calls(
    family: Family, chosen: Sequence[tuple[int, int]], loads: Sequence[_Load]
) -> dict[Key, float]:
    """The chosen steps as calls; the simulation is run again for their requests."""
    selector = family.asker.selector
    wanted = {family.places[index]: count for index, count in chosen}
    page = within(loads[0].engine, [selector])[0].page_size
    out: dict[Key, float] = {}
    for number, load in enumerate(loads):
        for index, step in enumerate(load.steps()):
            count = wanted.pop((number, index), None)
            if count is None:
                continue
            inputs, _ = family.asker.ask(step.requests)
            requests = [[r.seed, r.rows, r.context, r.cached] for r in step.requests]
            extra = {"requests": requests, "page_size": page}
            body = json.dumps({"inputs": inputs, "extra": extra}, sort_keys=True)
            key = (selector.family, selector.hash, body)
            out[key] = out.get(key, 0.0) + count
    assert not wanted
    return out
