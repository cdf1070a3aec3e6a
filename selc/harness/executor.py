"""Who runs launches: the interface that measuring goes through, and the local one."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from selc.harness.call import Call
from selc.harness.device import Device
from selc.harness.runner import Runner


@dataclass(frozen=True, slots=True)
class Job:
    """One launch under one choice. Equal keys are the same launch: see `job_of`."""

    family: str
    call: Call
    choice: Mapping[str, Any]

    @property
    def key(self) -> str:
        """Canonical text."""
        return json.dumps([self.call.key, self.choice], sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Sample:
    """What came of a job."""

    job: Job
    seconds: tuple[float, ...]
    """One launch's time in every round."""
    failure: str = ""
    """In words why there are no times, or no more."""


class Executor(Protocol):
    """Runs jobs somewhere."""

    def describe(self) -> dict[str, Any]:
        """The device and its software."""

    def measure(self, jobs: Sequence[Job], rounds: int) -> Iterator[Sample]:
        """Time every job `rounds` times; one sample for each as soon as its rounds are in.

        Jobs of one call are measured together: each is warmed up and checked against the
        reference once, then every round runs all of them in a fresh random order.
        """

    def close(self) -> None:
        """Give back what the executor holds."""


def job_of(kernels: Any, call: Call, choice: Mapping[str, Any]) -> Job:
    """The launch of a call under a choice, of which only what the kernels read is kept."""
    read = getattr(kernels, "parameters", None)
    kept = choice if read is None else {k: choice[k] for k in read if k in choice}
    return Job(call.family, call, dict(kept))


class LocalExecutor:
    """Runs on this machine."""

    def __init__(
        self,
        kernels: Mapping[str, Any],
        device: Device,
        *,
        isolate: bool = True,
        timeout: float = 60.0,
        seed: int = 0,
    ) -> None:
        self._runner = Runner(kernels, device)
        self._random = random.Random(seed)  # noqa: S311

    def describe(self) -> dict[str, Any]:
        """The device and its software."""
        return self._runner.device.describe()

    def measure(self, jobs: Sequence[Job], rounds: int) -> Iterator[Sample]:
        """See `Executor.measure`."""
        for block in blocks(jobs):
            times: dict[int, list[float]] = {i: [] for i in range(len(block))}
            failures = {i: self._runner.check(job) for i, job in enumerate(block)}
            for _ in range(rounds):
                order = [i for i in times if not failures[i]]
                self._random.shuffle(order)
                for i in order:
                    times[i].append(self._runner.time(block[i]))
            for i, job in enumerate(block):
                yield Sample(job, tuple(times[i]), failures[i])

    def close(self) -> None:
        """Nothing is held."""


def blocks(jobs: Sequence[Job]) -> list[list[Job]]:
    """Jobs by call, so that a call's tensors are made once."""
    out: dict[str, list[Job]] = {}
    for job in jobs:
        out.setdefault(job.call.key, []).append(job)
    return list(out.values())
