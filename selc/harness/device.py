"""The device that kernels run on, and what is recorded of it."""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import dataclass
from typing import Any, Final, Literal

from selc.diag.diagnostic import Diagnostic, Refused

NO_DEVICE: Final = "SEL953"
KINDS: Final = ("auto", "cpu", "cuda")
QUERY: Final = ("driver_version", "clocks.sm", "clocks.mem", "temperature.gpu", "power.draw")


@dataclass(frozen=True, slots=True)
class Device:
    """A device of this machine."""

    kind: Literal["cpu", "cuda"]
    name: str
    cache_bytes: int = 0
    """Size of the last-level cache that is flushed between runs; 0 where none is."""
    memory_bytes: int = 0

    @classmethod
    def open(cls, kind: str = "auto", threads: int = 1) -> Device:
        """The device of a kind; "auto" takes a GPU where there is one.

        On the CPU, torch is fixed to `threads` threads.

        Raises:
            Refused: torch is missing, or there is no such device.
        """
        try:
            import torch
        except ImportError as error:
            raise no_device(f"torch cannot be imported: {error}") from None
        found = kind != "cpu" and torch.cuda.is_available()
        if kind == "cuda" and not found:
            raise no_device("torch sees no CUDA device")
        if found:
            properties = torch.cuda.get_device_properties(0)
            cache = int(getattr(properties, "L2_cache_size", 0) or 64 << 20)
            return cls("cuda", properties.name, cache, properties.total_memory)
        torch.set_num_threads(threads)
        return cls("cpu", _processor())

    def describe(self) -> dict[str, Any]:
        """What identifies the device and the software on it: equal for runs that compare."""
        import torch

        out: dict[str, Any] = {"kind": self.kind, "name": self.name}
        out |= {"python": platform.python_version(), "torch": str(torch.__version__)}
        out["triton"] = _version("triton")
        if self.kind == "cuda":
            out |= {"cuda": str(torch.version.cuda), "driver": self.state().get("driver_version")}
        else:
            out["threads"] = torch.get_num_threads()
        return out

    def state(self) -> dict[str, str]:
        """Clocks, temperature and power now; empty where nothing tells them."""
        if self.kind != "cuda":
            return {}
        fields = ",".join(QUERY)
        index = (os.environ.get("CUDA_VISIBLE_DEVICES") or "0").split(",")[0]
        command = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader", "-i", index]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
        except (OSError, subprocess.SubprocessError):
            return {}
        values = [v.strip() for v in done.stdout.strip().splitlines()[0].split(",")]
        return dict(zip(QUERY, values, strict=False))

    def synchronize(self) -> None:
        """Wait until the device has nothing left to do."""
        if self.kind == "cuda":
            import torch

            torch.cuda.synchronize()


def no_device(message: str) -> Refused:
    """An error about the device that was asked for."""
    return Refused(Diagnostic(NO_DEVICE, message))


def _version(package: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:  # noqa: PTH123
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
