"""Runs launches in this process: prepares calls, checks results, times.

Failures are raised; `attempt` puts them in words.
"""

from __future__ import annotations

import copy
import json
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from selc.harness.call import Call
from selc.harness.device import Device
from selc.harness.protocol import Unsupported
from selc.harness.timing import MOST_SETS, Clock, Timer, ceilings
from selc.harness.verify import TOLERANCE, difference, poisoned, size_of

CPU_MEMORY: Final = 2 << 30
"""Bytes of prepared calls that are kept at a time on the CPU."""
SHARE: Final = 0.4
"""The same on a GPU, as a share of its memory."""
WORDS: Final = 300


class Answer(NamedTuple):
    """What came of a step."""

    value: Any = None
    failure: str = ""
    """In words; "" if there is none."""
    lost: bool = False
    """Whether the process that ran it is of no more use."""


class Wrong(Exception):
    """A result differs from the reference."""


@dataclass(slots=True)
class _Prepared:
    """A call's tensors: several sets of the same values, and what comes of them."""

    sets: list[Any]
    size: int
    reference: Any = None
    timers: dict[str, Timer] = field(default_factory=dict)
    single: bool = False
    """Whether the inputs cannot be copied."""


class Runner:
    """Kernels on a device. Jobs are opened by call, then named by their place."""

    def __init__(self, kernels: Mapping[str, Any], device: Device) -> None:
        self._kernels = kernels
        self._device = device
        self._clock = Clock(device)
        self._prepared: OrderedDict[str, _Prepared] = OrderedDict()
        self._jobs: Sequence[Any] = ()
        cuda = device.kind == "cuda"
        self._limit = int(SHARE * device.memory_bytes) if cuda else CPU_MEMORY

    def describe(self) -> dict[str, Any]:
        """The device and its software."""
        return self._device.describe()

    def state(self) -> dict[str, str]:
        """Clocks and temperature now."""
        return self._device.state()

    def ceilings(self) -> dict[str, float]:
        """What the device reaches."""
        return ceilings(self._device)

    def open(self, jobs: Sequence[Any]) -> None:
        """Prepare the one call of all these jobs, and its reference if a job is unchecked."""
        self._jobs = jobs
        call, kernels = jobs[0].call, self._kernels[jobs[0].family]
        found = self._ready(call, kernels)
        if found.reference is None and any(choice_key(j.choice) not in found.timers for j in jobs):
            found.reference = kernels.reference(found.sets[0])
            self._device.synchronize()

    def warm(self, job: Any) -> None:
        """Have a job's kernels compiled. What cannot stand in a graph is not launched ahead."""
        kernels = self._kernels[job.family]
        if not getattr(kernels, "graph", True):
            return
        if job.call.key not in self._prepared:
            self.release()  # other processes need the memory too
        found = self._ready(job.call, kernels)
        own = getattr(kernels, "warm", None)
        (own or kernels.launch)(job.choice, found.sets[0])
        self._device.synchronize()

    def check(self, index: int) -> str:
        """Warm up, compare with the reference, and say how the job will be timed."""
        job, kernels, found = self._job(index)
        key = choice_key(job.choice)
        if key not in found.timers:
            tolerance = getattr(kernels, "tolerance", TOLERANCE)
            for surroundings in (None, poisoned):
                out = self._launched(kernels, job.choice, found.sets[0], surroundings)
                told = difference(out, found.reference, tolerance)
                if told:
                    raise Wrong(told)
                del out
            found.timers[key] = self._timer(job, kernels, found)
        return found.timers[key].how

    def time(self, index: int) -> float:
        """Seconds of one launch. A job that was checked in another process is not checked again."""
        job, kernels, found = self._job(index)
        key = choice_key(job.choice)
        if key not in found.timers:
            self._launched(kernels, job.choice, found.sets[0], None)
            found.timers[key] = self._timer(job, kernels, found)
        return found.timers[key].run()

    def release(self) -> None:
        """Hold no tensors any more."""
        self._prepared.clear()
        self._jobs = ()
        _give_back()

    def _job(self, index: int) -> tuple[Any, Any, _Prepared]:
        job = self._jobs[index]
        kernels = self._kernels[job.family]
        return job, kernels, self._ready(job.call, kernels)

    def _ready(self, call: Call, kernels: Any) -> _Prepared:
        key = call.key
        if key in self._prepared:
            self._prepared.move_to_end(key)
            return self._prepared[key]
        held = sum(p.size * len(p.sets) for p in self._prepared.values())
        while self._prepared and held > self._limit // 2:
            _, gone = self._prepared.popitem(last=False)
            held -= gone.size * len(gone.sets)
            del gone
        inputs = kernels.prepare(call, self._device.kind)
        self._device.synchronize()
        self._prepared[key] = _Prepared([inputs], size_of(inputs))
        return self._prepared[key]

    def _launched(self, kernels: Any, choice: Any, inputs: Any, surroundings: Any) -> Any:
        if surroundings is None:
            out = kernels.launch(choice, inputs)
        else:
            with surroundings():
                out = kernels.launch(choice, inputs)
        self._device.synchronize()
        return out

    def _timer(self, job: Any, kernels: Any, found: _Prepared) -> Timer:
        own = getattr(kernels, "timer", None)
        made = own(job.choice, found.sets[0]) if own is not None else None
        if made is not None:
            return Timer(*made)

        def launches(count: int) -> list[Callable[[], Any]]:
            self._copies(found, count)
            return [_bound(kernels.launch, job.choice, s) for s in found.sets[:count]]

        return self._clock.timer(launches, bool(getattr(kernels, "graph", True)))

    def _copies(self, found: _Prepared, count: int) -> None:
        """Have up to `count` sets of a call's tensors, as far as memory goes."""
        while len(found.sets) < min(count, MOST_SETS) and not found.single:
            if found.size * (len(found.sets) + 1) > self._limit // 2:
                return
            try:
                found.sets.append(copy.deepcopy(found.sets[0]))
            except Exception:  # noqa: BLE001  inputs may hold what cannot be copied
                found.single = True


def choice_key(choice: Mapping[str, Any]) -> str:
    """A choice as canonical text."""
    return json.dumps(choice, sort_keys=True, separators=(",", ":"))


def attempt(step: Callable[..., Any], *arguments: Any) -> Answer:
    """Run a step; its failure in words."""
    try:
        with _inference():
            return Answer(step(*arguments))
    except Wrong as error:
        return Answer(failure=f"wrong result: {error}")
    except Unsupported as error:
        return Answer(failure=f"not supported: {_first_line(error)}")
    except (Exception, SystemExit) as error:  # noqa: BLE001  whatever a kernel does
        return _failed(error)


def _failed(error: BaseException) -> Answer:
    name, text = type(error).__name__, _first_line(error)
    if isinstance(error, MemoryError) or name == "OutOfMemoryError":
        _give_back()
        return Answer(failure=f"out of memory{': ' * bool(text)}{text}")
    if name == "OutOfResources":
        return Answer(failure=f"not supported: {text}")
    sticky = name == "AcceleratorError" or "CUDA error" in text
    return Answer(failure=f"{name}: {text}" if text else name, lost=sticky)


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:WORDS] if lines else ""


def _give_back() -> None:
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()


@contextmanager
def _inference() -> Iterator[None]:
    import torch

    with torch.no_grad():
        yield


def _bound(launch: Callable[..., Any], choice: Any, inputs: Any) -> Callable[[], Any]:
    return lambda: launch(choice, inputs)
