"""Runs single launches in this process: prepare, check, time."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from selc.harness.device import Device
from selc.harness.protocol import Unsupported

TOLERANCE: Final = 0.02


class Runner:
    """Kernels on a device."""

    def __init__(self, kernels: Mapping[str, Any], device: Device) -> None:
        self.kernels = kernels
        self.device = device
        self._inputs: tuple[str, Any] = ("", None)
        self._reference: Any = None

    def check(self, job: Any) -> str:
        """Warm up and compare with the reference: in words why the job cannot be timed, or ""."""
        kernels = self.kernels[job.family]
        try:
            inputs = self._prepared(job)
            out = kernels.launch(job.choice, inputs)
            self.device.synchronize()
            if self._reference is None:
                self._reference = kernels.reference(inputs)
        except Unsupported as error:
            return f"not supported: {error}"
        except Exception as error:  # noqa: BLE001  whatever a kernel does
            return f"{type(error).__name__}: {error}"
        return compare(out, self._reference, getattr(kernels, "tolerance", TOLERANCE))

    def time(self, job: Any) -> float:
        """Seconds of one launch."""
        kernels, inputs = self.kernels[job.family], self._prepared(job)
        self.device.synchronize()
        start = time.perf_counter()
        kernels.launch(job.choice, inputs)
        self.device.synchronize()
        return time.perf_counter() - start

    def _prepared(self, job: Any) -> Any:
        if self._inputs[0] != job.call.key:
            self._reference = None
            inputs = self.kernels[job.family].prepare(job.call, self.device.kind)
            self._inputs = (job.call.key, inputs)
        return self._inputs[1]


def compare(out: Any, reference: Any, tolerance: float) -> str:
    """In words how an output differs from the reference, or ""."""
    import torch

    if tuple(out.shape) != tuple(reference.shape):
        return f"wrong result: shape {tuple(out.shape)} instead of {tuple(reference.shape)}"
    got = out.to(reference.device, torch.float64)
    norm = float(reference.norm())
    error = float((got - reference).norm()) / (norm or 1.0)
    if not error <= tolerance:
        return f"wrong result: relative error {error:.3g}, allowed is {tolerance:g}"
    return ""
