"""`selc bench`: what each tuple costs on a workload."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from selc.diag.diagnostic import Diagnostic, Refused, Severity
from selc.diag.outcome import Outcome
from selc.diag.render_json import errors_object
from selc.harness.bench_report import Run, as_json, as_text, warnings, write_all
from selc.harness.candidates import pick
from selc.harness.executor import Job, LocalExecutor, job_of
from selc.harness.journal import Journal, digest
from selc.harness.progress import Progress
from selc.harness.protocol import no_kernels
from selc.harness.setup import NOTHING, Family, setup
from selc.harness.summary import Plan, Times, summarize

INTERRUPTED: Final = 130


@dataclass(frozen=True, slots=True)
class Options:
    """What the command was asked."""

    directories: tuple[Path, ...]
    kernels: tuple[str, ...] = ()
    profiles: tuple[Path, ...] = ()
    weights: tuple[float, ...] = ()
    settings: tuple[str, ...] = ()
    tuples: tuple[Path, ...] = ()
    device: str = "auto"
    rounds: int = 20
    budget: float | None = None
    limit: int = 64
    journal: Path | None = None
    seed: int = 0
    timeout: float = 60.0
    out: Path | None = None


def run(options: Options) -> Outcome:
    """Measure, and say what came of it."""
    started = time.monotonic()
    try:
        families = setup(
            options.directories,
            options.kernels,
            options.profiles,
            options.weights,
            options.settings,
        )
        plans = [_plan(f, options) for f in families.values()]
    except Refused as refused:
        return Outcome(refused.exit_code, diagnostics=list(refused.diagnostics))
    names = {name: family.name for name, family in families.items()}
    executor = LocalExecutor(names, options.device, timeout=options.timeout, seed=options.seed)
    if options.budget is not None:
        executor.deadline = started + options.budget
    try:
        return _Bench(options, families, plans, executor, started).run()
    except Refused as refused:
        return Outcome(2, diagnostics=list(refused.diagnostics))
    finally:
        executor.close()


class _Bench:
    """One run: its journal, and the times so far."""

    def __init__(
        self,
        options: Options,
        families: Mapping[str, Family],
        plans: Sequence[Plan],
        executor: LocalExecutor,
        started: float,
    ) -> None:
        self._options = options
        self._plans = plans
        self._executor = executor
        self._started = started
        self._progress = Progress(budget=options.budget)
        self._device = executor.describe()
        self._times: dict[str, Times] = {}
        self._clocks: dict[str, Mapping[str, str]] = {}
        self._journal = Journal.open(options.journal, self._header(families))
        for record in self._journal.of_kind("sample"):
            self._keep(record["key"], record["seconds"], record["failure"], record["how"])

    def run(self) -> Outcome:
        """Measure what is missing; report whatever is there at the end."""
        trouble: list[Diagnostic] = []
        ceilings: Mapping[str, float] = {}
        unfinished, code = "", 0
        try:
            ceilings = self._executor.ceilings()
            self._clocks["before"] = self._executor.state()
            self._journal.write({"kind": "ceilings", **ceilings, "clocks": self._clocks["before"]})
            self._measure()
            self._clocks["after"] = self._executor.state()
        except KeyboardInterrupt:
            if not self._times:
                raise
            unfinished, code = "interrupted", INTERRUPTED
        except Refused as refused:
            trouble, code = list(refused.diagnostics), 2
            unfinished = "ended early"
        finally:
            self._progress.clear()
            self._journal.close()
        return self._outcome(ceilings, unfinished, code, trouble)

    def _measure(self) -> None:
        jobs = [job for plan in self._plans for job in plan.distinct()]
        missing: dict[int, list[Job]] = {}
        for job in jobs:
            rounds = self._missing(job)
            if rounds:
                missing.setdefault(rounds, []).append(job)
        left = sum(len(m) for m in missing.values())
        if self._device["kind"] == "cuda":
            every = [job for some in missing.values() for job in some]
            self._executor.compile_ahead(every, lambda n, of: self._progress("compiling", n, of))
        done = len(jobs) - left
        for rounds, some in missing.items():
            for sample in self._executor.measure(some, rounds):
                done += 1
                self._progress("measuring launches", done, len(jobs))
                self._keep(sample.job.key, sample.seconds, sample.failure, sample.how)
                self._journal.write(
                    {
                        "kind": "sample",
                        "key": sample.job.key,
                        "seconds": list(sample.seconds),
                        "failure": sample.failure,
                        "how": sample.how,
                    }
                )

    def _keep(self, key: str, seconds: Sequence[float], failure: str, how: str) -> None:
        times = self._times.setdefault(key, Times())
        times.seconds.extend(seconds)
        times.failure = times.failure or failure
        times.how = how or times.how

    def _outcome(
        self,
        ceilings: Mapping[str, float],
        unfinished: str,
        code: int,
        trouble: Sequence[Diagnostic],
    ) -> Outcome:
        if not unfinished and any(self._missing(job) for p in self._plans for job in p.distinct()):
            unfinished = f"the budget of {self._options.budget:g} s is spent"
        seconds = time.monotonic() - self._started
        summaries = tuple(summarize(plan, self._times) for plan in self._plans)
        answer = Run(
            self._device,
            self._clocks,
            ceilings,
            self._options.rounds,
            seconds,
            summaries,
            unfinished,
        )
        failed = warnings(answer)
        worked = any(line.total is not None for s in summaries for line in s.lines)
        text, json = as_text(answer), as_json(answer)
        if self._options.out is not None and worked:
            written, told = write_all(answer, self._options.out)
            trouble = [*trouble, *told]
            text += f"\n\nwritten to {self._options.out}: {', '.join(written)}" if written else ""
            json["written"] = written
        errors = [d for d in trouble if d.severity is Severity.ERROR]
        if not worked and not failed and not errors:
            errors = [Diagnostic(NOTHING, f"nothing was measured: {unfinished}")]
            trouble = [*trouble, *errors]
        if code == 0:
            code = 1 if not worked else 2 if errors else 0
        if errors:
            json |= {"errors": errors_object(errors)["errors"]}
        return Outcome(code, text, json, [*failed, *trouble])

    def _missing(self, job: Job) -> int:
        """Rounds that a launch lacks."""
        times = self._times.get(job.key, Times())
        return 0 if times.failure else max(0, self._options.rounds - len(times.seconds))

    def _header(self, families: Mapping[str, Family]) -> dict[str, Any]:
        jobs = [job.key for plan in self._plans for job in plan.distinct()]
        counts = [f"{call.key} {n}" for plan in self._plans for call, n in plan.calls]
        return {
            "command": "bench",
            "selectors": {name: f.selector.hash for name, f in families.items()},
            "kernels": {name: f"{f.name} {f.digest}" for name, f in families.items()},
            "device": self._device,
            "calls": digest(counts),
            "tuples": digest(jobs),
            "options": {"seed": self._options.seed},
        }


def _plan(family: Family, options: Options) -> Plan:
    selector = family.selector
    assert selector.default is not None
    picked = pick(selector, selector.default, options.tuples, options.limit)
    jobs: list[tuple[Job, ...]] = []
    refused: dict[str, str] = {}
    for candidate in picked.candidates:
        try:
            chosen = [(call, candidate.choice(selector, call.inputs)) for call, _ in family.calls]
        except Refused as refusal:
            if candidate.commitment is not None:
                raise
            refused[candidate.name] = refusal.diagnostics[0].message
            chosen = []
        jobs.append(tuple(job_of(family.kernels, call, choice) for call, choice in chosen))
    work = tuple(_work(family, call) for call, _ in family.calls)
    return Plan(
        selector.family,
        family.calls,
        work,
        picked.candidates,
        picked.legal,
        tuple(jobs),
        refused,
    )


def _work(family: Family, call: Any) -> tuple[int, int]:
    try:
        moved, operations = family.kernels.bytes_and_flops(call)
        return int(moved), int(operations)
    except Refused:
        raise
    except Exception as error:  # noqa: BLE001  whatever the user's kernels do
        raise no_kernels(
            f"`bytes_and_flops` of the kernels of `{call.family}` failed: "
            f"{type(error).__name__}: {error}"
        ) from None
