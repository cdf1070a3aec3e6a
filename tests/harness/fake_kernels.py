"""Kernels that do what a test asks: work, lie, hang, die.

`tile` of a choice decides; `mode` is read from the call's `extra`.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from selc.harness.call import Call
from selc.harness.protocol import Unsupported


class Sum:
    """Sums rows; a choice's `tile` is how slow it is."""

    parameters = ("tile", "mode")

    def prepare(self, call: Call, device: str) -> dict[str, Any]:
        if call.find("broken_prepare"):
            raise RuntimeError("no such layout")
        rows = [torch.full((r.rows, 8), float(r.seed + 1)) for r in call.requests]
        return {"x": torch.cat(rows), "call": call}

    def launch(self, choice: Mapping[str, Any], inputs: dict[str, Any]) -> torch.Tensor:
        x: torch.Tensor = inputs["x"]
        mode = str(choice.get("mode", ""))
        MODES.get(mode, lambda: None)()
        if mode.startswith("fuse "):
            _fuse(Path(mode[5:]))
        MODES.get(str(inputs["call"].find(f"tile_{choice['tile']}", default="")), lambda: None)()
        time.sleep(choice["tile"] * 4e-4)
        out = torch.empty(len(x), 1)
        out.copy_(x.sum(dim=1, keepdim=True))
        if choice.get("mode") == "wrong":
            out += 1000.0
        if choice.get("mode") == "nan":
            out[0] = float("nan")
        if choice.get("mode") == "unwritten":
            tail = torch.empty(1, 1)  # right by chance, unless memory is poisoned
            out[-1:] = torch.where(tail.isnan(), tail, out[-1:])
        return out

    def warm(self, choice: Mapping[str, Any], inputs: dict[str, Any]) -> None:
        """Leaves a line for every call that a choice is compiled for."""
        if choice["tile"] == 999:
            os._exit(1)
        with Path(inputs["call"].get("warmed")).open("a") as out:
            out.write(f"{choice['tile']} {inputs['call'].inputs['m']}\n")

    def reference(self, inputs: dict[str, Any]) -> torch.Tensor:
        return inputs["x"].double().sum(dim=1, keepdim=True)

    def bytes_and_flops(self, call: Call) -> tuple[int, int]:
        return call.rows * 36, call.rows * 8


class Guesses(Sum):
    """Says what a launch takes, and fails to for some."""

    def estimate(self, call: Call, choice: Mapping[str, Any]) -> float:
        if call.find("no_estimate", default=False):
            raise KeyError("no rate for tile")
        return 4e-4 * int(choice["tile"])


class Product:
    """A matrix product on a GPU."""

    parameters = ("mode",)

    def prepare(self, call: Call, device: str) -> tuple[torch.Tensor, torch.Tensor]:
        source = torch.Generator().manual_seed(call.requests[0].seed)
        left = torch.randn(call.rows, 512, generator=source)
        right = torch.randn(512, 512, generator=source)
        return left.to(device), right.to(device)

    def launch(self, choice: Mapping[str, Any], inputs: Any) -> torch.Tensor:
        left, right = inputs
        if choice["mode"] == "fault":
            return left[torch.full((len(left),), 1 << 30, device=left.device)] @ right
        if choice["mode"] == "unwritten":
            out = torch.empty(len(left), 512, device=left.device)
            torch.mm(left[:-1], right, out=out[:-1])
            return out
        return left @ right * (2 if choice["mode"] == "wrong" else 1)

    def reference(self, inputs: Any) -> torch.Tensor:
        return inputs[0].double() @ inputs[1].double()

    def bytes_and_flops(self, call: Call) -> tuple[int, int]:
        return 4 * 512 * (2 * call.rows + 512), 2 * call.rows * 512 * 512


class Incomplete:
    """Has no `reference`."""

    def prepare(self, call: Call, device: str) -> None: ...
    def launch(self, choice: Mapping[str, Any], inputs: Any) -> None: ...
    def bytes_and_flops(self, call: Call) -> tuple[int, int]:
        return 0, 0


def _exit() -> None:
    print("about to leave", flush=True)
    os._exit(7)


def _segfault() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def _orphan() -> None:
    if os.fork() == 0:
        time.sleep(1000)
    os._exit(8)


def _hang() -> None:
    time.sleep(1000)


def _slow() -> None:
    time.sleep(0.1)


def _memory() -> None:
    raise MemoryError


def _unsupported() -> None:
    raise Unsupported("needs a tile below 64")


def _error() -> None:
    raise ValueError("first line\nsecond line")


def _interrupt() -> None:
    raise KeyboardInterrupt


def _leave() -> None:
    raise SystemExit(3)


def _fuse(path: Path) -> None:
    """Dies once the warm-up is over, and ever after."""
    used = len(path.read_text()) if path.exists() else 0
    path.write_text("x" * (used + 1))
    if used > 5:
        os._exit(9)


MODES = {
    "exit": _exit,
    "segfault": _segfault,
    "orphan": _orphan,
    "hang": _hang,
    "slow": _slow,
    "memory": _memory,
    "unsupported": _unsupported,
    "error": _error,
    "interrupt": _interrupt,
    "leave": _leave,
}

SUM = Sum()
GUESSES = Guesses()
PRODUCT = Product()
INCOMPLETE = Incomplete()
