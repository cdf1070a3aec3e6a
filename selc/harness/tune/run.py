"""`selc tune`: measure, decide, write the tuple."""

from __future__ import annotations

import importlib.util
import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from selc.diag.diagnostic import Diagnostic, Refused
from selc.diag.outcome import Outcome
from selc.harness.executor import Executor, LocalExecutor
from selc.harness.journal import Journal, digest
from selc.harness.progress import Progress
from selc.harness.protocol import no_kernels
from selc.harness.setup import NOTHING, Family, calls_of, settings_of, setup
from selc.harness.tune.calls import Stand, representatives
from selc.harness.tune.decide import stories
from selc.harness.tune.family import Tuning, Work
from selc.harness.tune.report import Answer, finish
from selc.harness.tune.search import Settings
from selc.harness.tune.tuplefile import jsonable
from selc.harness.workload import read

INTERRUPTED: Final = 130


@dataclass(frozen=True, slots=True)
class Options:
    """What the command was asked."""

    directories: tuple[Path, ...]
    kernels: tuple[str, ...] = ()
    profiles: tuple[Path, ...] = ()
    weights: tuple[float, ...] = ()
    settings: tuple[str, ...] = ()
    device: str = "auto"
    budget: float = 300.0
    launches: int | None = None
    calls: int = 24
    rounds: int = 3
    journal: Path | None = None
    seed: int = 0
    timeout: float = 60.0
    out: Path | None = None


def run(options: Options) -> Outcome:
    """Tune every family, and say what came of it."""
    started = time.monotonic()
    try:
        if importlib.util.find_spec("numpy") is None:
            raise no_kernels("the search needs numpy", "`pip install 'selc[bench]'` has it")
        families = setup(
            options.directories,
            options.kernels,
            options.profiles,
            options.weights,
            options.settings,
        )
        for family in families.values():
            if family.selector.default is None:
                message = f"no tuple of `{family.selector.family}` is legal"
                return Outcome(1, diagnostics=[Diagnostic(NOTHING, message)])
        works = [_work(family, options) for family in families.values()]
        names = {name: family.name for name, family in families.items()}
        executor = LocalExecutor(names, options.device, timeout=options.timeout, seed=options.seed)
    except Refused as refused:
        return Outcome(refused.exit_code, diagnostics=list(refused.diagnostics))
    try:
        return _Tune(options, works, executor, started).run()
    except Refused as refused:
        return Outcome(refused.exit_code, diagnostics=list(refused.diagnostics))
    finally:
        executor.close()


class _Tune:
    """One run."""

    def __init__(
        self, options: Options, works: Sequence[Work], executor: Executor, started: float
    ) -> None:
        self._options = options
        self._works = works
        self._executor = executor
        self._end = started + options.budget
        self._started = started
        if hasattr(executor, "deadline"):
            executor.deadline = self._end
        self._device = executor.describe()
        self._progress = Progress(budget=options.budget)
        self._journal = Journal.open(options.journal, self._header())

    def run(self) -> Outcome:
        """Search family by family; decide with whatever is there at the end."""
        trouble: list[Diagnostic] = []
        code, unfinished = 0, ""
        try:
            for number, work in enumerate(self._works):
                now = time.monotonic()
                until = now + (self._end - now) / (len(self._works) - number)
                self._family(work).run(now, until)
        except KeyboardInterrupt:
            code, unfinished = INTERRUPTED, "interrupted"
        except Refused as refused:
            trouble, code = list(refused.diagnostics), 2
            unfinished = "ended early"
        finally:
            self._progress.clear()
            self._journal.close()
        answer = Answer(
            self._journal.header,
            stories(self._journal.records),
            time.monotonic() - self._started,
            unfinished,
        )
        return finish(answer, self._options.out, code, trouble)

    def _family(self, work: Work) -> Tuning:
        o = self._options
        settings = Settings(o.rounds, limit=o.launches, seed=o.seed)
        profiles = tuple(str(p) for p in o.profiles)
        return Tuning(work, self._executor, self._journal, self._progress, settings, profiles)

    def _header(self) -> dict[str, Any]:
        calls = [json.dumps([s.call.key, *s.weights]) for work in self._works for s in work.stands]
        targets = [str(p) for p in self._options.profiles]
        return {
            "command": "tune",
            "selectors": {w.problem.family: w.family.selector.hash for w in self._works},
            "kernels": {
                w.problem.family: f"{w.family.name} {w.family.digest}" for w in self._works
            },
            "device": jsonable(self._device),
            "calls": digest(calls),
            "options": {"seed": self._options.seed, "profiles": targets},
        }


def _work(family: Family, options: Options) -> Work:
    selector = family.selector
    values = settings_of(options.settings)
    weights = options.weights or (1.0,) * len(options.profiles)
    rows: dict[str, tuple[Any, list[float]]] = {}
    for number, (path, weight) in enumerate(zip(options.profiles, weights, strict=True)):
        for call, count in calls_of(selector, read([path], [weight]), values):
            row = rows.setdefault(call.key, (call, [0.0] * len(weights)))
            row[1][number] += count
    stands = [Stand(call, tuple(counts)) for call, counts in rows.values()]
    stands.sort(key=lambda s: (-math.fsum(s.weights), s.call.key))
    works = [_least(family.kernels, s.call) for s in stands]
    return Work(family, representatives(stands, works, options.calls), len(stands))


def _least(kernels: Any, call: Any) -> float:
    """About the least time that a call can take; only ratios of these matter."""
    try:
        moved, operations = kernels.bytes_and_flops(call)
        return max(float(moved) / 3e12, float(operations) / 5e14, 1e-9)
    except Refused:
        raise
    except Exception:  # noqa: BLE001  what the user's kernels do; calls then count alike
        return 1.0
