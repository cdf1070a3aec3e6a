"""Selectors, kernels and an executor without a device, over cost models."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from selc.harness.call import Call
from selc.harness.executor import Job, Sample, blocks
from tests.harness.synthetic import Model


class ModelSelector:
    """Pins are the points themselves."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._tuples = model.tuples()
        self.parameters = {
            name: tuple(v for v in values if any(t[name] == v for t in self._tuples))
            for name, values in model.grid.items()
        }

    def legal(self, partial: Mapping[str, Any]) -> Mapping[str, tuple[Any, ...]]:
        fit = [t for t in self._tuples if all(t[n] == v for n, v in partial.items())]
        return {
            n: tuple(v for v in vs if any(t[n] == v for t in fit))
            for n, vs in self.parameters.items()
        }

    def choice(self, commitment: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
        return dict(self.model.points(commitment))

    def stock(
        self, inputs: Mapping[str, Any], commitment: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        return dict(self.model.stock(inputs))


def calls_of(model: Model) -> tuple[Call, ...]:
    return tuple(Call(model.name, inputs) for inputs, _ in model.calls)


def weights_of(model: Model) -> list[float]:
    return [float(count) for _, count in model.calls]


class Noise:
    """Log-normal noise; a share of the times are outliers, several times too long."""

    def __init__(self, scale: float, seed: int = 0, outliers: float = 0.0) -> None:
        self._scale, self._outliers = scale, outliers
        self._random = random.Random(seed)

    def __call__(self, seconds: float) -> float:
        if self._random.random() < self._outliers:
            seconds *= self._random.uniform(2, 10)
        return seconds * math.exp(self._random.gauss(0.0, self._scale))


class TableExecutor:
    """Draws times from a model."""

    def __init__(self, model: Model, noise: Noise, failing: Any = None) -> None:
        self._model, self._noise, self._failing = model, noise, failing
        self.measured: list[str] = []
        self.deadline: float | None = None

    def describe(self) -> dict[str, Any]:
        return {"kind": "cpu", "name": "made up"}

    def measure(self, jobs: Sequence[Job], rounds: int) -> Iterator[Sample]:
        for block in blocks(jobs):
            for job in block:
                self.measured.append(job.key)
                why = self._failing(job) if self._failing else ""
                if why:
                    yield Sample(job, (), why)
                    continue
                true = self._model.seconds(job.call.inputs, job.choice)
                yield Sample(job, tuple(self._noise(true) for _ in range(rounds)))

    def close(self) -> None:
        pass
