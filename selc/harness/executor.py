"""Who runs launches: the interface that measuring goes through, and the local one."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from selc.harness.call import Call
from selc.harness.compiling import Compilers
from selc.harness.device import Device
from selc.harness.process import OutOfTime, Start, Worker
from selc.harness.protocol import load_kernels
from selc.harness.runner import Answer, Runner, attempt, choice_key


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
    how: str = ""
    """In which way it was timed."""


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
    """Runs on this machine.

    Kernels are objects or, for `isolate`, names that `load_kernels` takes. With `isolate` they run
    in a worker process that may crash or hang: the job has failed then, and the same choice is not
    run again on other calls.
    """

    def __init__(
        self,
        kernels: Mapping[str, Any],
        device: Device | str = "auto",
        *,
        isolate: bool = True,
        timeout: float = 60.0,
        seed: int = 0,
    ) -> None:
        kind = device if isinstance(device, str) else device.kind
        self._station = _Isolated(kernels, kind, timeout) if isolate else _Here(kernels, device)
        self._random = random.Random(seed)  # noqa: S311
        self._lost: dict[tuple[str, str], str] = {}
        self.deadline: float | None = None
        """When to stop, on the monotonic clock: jobs give what they have until then."""

    def describe(self) -> dict[str, Any]:
        """The device and its software."""
        return dict(self._station.ask("describe").value or {})

    def state(self) -> dict[str, str]:
        """Clocks and temperature now, as far as something tells them."""
        return dict(self._station.ask("state").value or {})

    def ceilings(self) -> dict[str, float]:
        """What the device reaches: `copy` in bytes and `matmul` in operations a second."""
        return dict(self._station.ask("ceilings").value or {})

    def measure(self, jobs: Sequence[Job], rounds: int) -> Iterator[Sample]:
        """See `Executor.measure`. An interruption is passed on after what was measured."""
        for block in blocks(jobs):
            if self._over():
                return
            yield from self._block(block, rounds)

    def compile_ahead(self, jobs: Sequence[Job], done: Callable[[int, int], None]) -> None:
        """Compile the jobs' kernels in several processes at once, into the compiler's cache.

        Worth it on a GPU only; a few choices are left to the process that times them.
        """
        self._station.compile_ahead(jobs, done, self.deadline)

    def close(self) -> None:
        """End the worker process."""
        self._station.close()

    def _over(self) -> bool:
        return self.deadline is not None and time.monotonic() >= self.deadline

    def _block(self, block: Sequence[Job], rounds: int) -> Iterator[Sample]:
        run = _Block(self._station, block, self._lost, self.deadline)
        stopped: BaseException | None = None
        try:
            run.check()
            for _ in range(rounds):
                if self._over():
                    break
                run.round(self._random)
        except (OutOfTime, KeyboardInterrupt) as reason:
            stopped = reason
        yield from run.samples()
        if isinstance(stopped, KeyboardInterrupt):
            raise stopped


class _Block:
    """The jobs of one call."""

    def __init__(
        self,
        station: _Isolated | _Here,
        jobs: Sequence[Job],
        lost: dict[tuple[str, str], str],
        deadline: float | None,
    ) -> None:
        self._station = station
        self._jobs = jobs
        self._lost = lost
        self._deadline = deadline
        self._opened = -1
        self._times: list[list[float]] = [[] for _ in jobs]
        self._failures = [""] * len(jobs)
        self._how = [""] * len(jobs)

    def check(self) -> None:
        """Prepare the call, then warm up and check every job."""
        for index, job in enumerate(self._jobs):
            before = self._lost.get((job.family, choice_key(job.choice)))
            if before:
                self._failures[index] = f"not run: on another call {before}"
                continue
            self._how[index] = str(self._do("check", index).value or "")

    def round(self, source: random.Random) -> None:
        """Time every job that has not failed once."""
        order = [i for i, failure in enumerate(self._failures) if not failure]
        source.shuffle(order)
        for index in order:
            answer = self._do("time", index)
            if not answer.failure:
                self._times[index].append(answer.value)

    def samples(self) -> Iterator[Sample]:
        """What there is of jobs that were measured or have failed."""
        for job, times, failure, how in zip(
            self._jobs, self._times, self._failures, self._how, strict=True
        ):
            if times or failure:
                yield Sample(job, tuple(times), failure, how)

    def _do(self, step: str, index: int) -> Answer:
        answer = self._open()
        if not answer.failure:
            answer = self._station.ask(step, index, until=self._deadline)
        if answer.failure:
            self._failures[index] = answer.failure
            job = self._jobs[index]
            if answer.lost:
                self._lost[job.family, choice_key(job.choice)] = answer.failure
        return answer

    def _open(self) -> Answer:
        """Have the call prepared in the process that is there now."""
        if self._opened == self._station.generation:
            return Answer()
        answer = self._station.ask("open", self._jobs, until=self._deadline)
        if answer.failure:
            return Answer(failure=f"preparing the call: {answer.failure}")
        self._opened = self._station.generation
        return answer


class _Here:
    """Steps in this process."""

    generation = 1

    def __init__(self, kernels: Mapping[str, Any], device: Device | str) -> None:
        opened = Device.open(device) if isinstance(device, str) else device
        loaded = {f: load_kernels(k) if isinstance(k, str) else k for f, k in kernels.items()}
        self._runner = Runner(loaded, opened)

    def ask(self, method: str, *arguments: Any, until: float | None = None) -> Answer:
        if until is not None and time.monotonic() >= until:
            raise OutOfTime
        return attempt(getattr(self._runner, method), *arguments)

    def compile_ahead(
        self, jobs: Sequence[Job], done: Callable[[int, int], None], until: float | None
    ) -> None:
        pass

    def close(self) -> None:
        pass


class _Isolated:
    """Steps in a worker process."""

    def __init__(self, kernels: Mapping[str, Any], device: str, timeout: float) -> None:
        self._start = Start.of(kernels, device)
        self._timeout = timeout
        self._worker = Worker(self._start, timeout)
        self._compilers: Compilers | None = None

    @property
    def generation(self) -> int:
        return self._worker.generation

    def ask(self, method: str, *arguments: Any, until: float | None = None) -> Answer:
        return self._worker.ask(method, *arguments, until=until)

    def compile_ahead(
        self, jobs: Sequence[Job], done: Callable[[int, int], None], until: float | None
    ) -> None:
        if self._compilers is None:
            self._compilers = Compilers(self._start, self._timeout)
        self._compilers.run(jobs, done, until)

    def close(self) -> None:
        self._worker.close()
        if self._compilers is not None:
            self._compilers.close()


def blocks(jobs: Sequence[Job]) -> list[list[Job]]:
    """Jobs by call, so that a call's tensors are made once."""
    out: dict[str, list[Job]] = {}
    for job in jobs:
        out.setdefault(job.call.key, []).append(job)
    return list(out.values())
