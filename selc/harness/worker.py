"""The process that runs kernels: `python -m selc.harness.worker FD`.

It answers steps over a pipe, one after the other, and ends with the process that started it.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from selc.diag.diagnostic import Refused
from selc.harness.device import Device
from selc.harness.process import Start
from selc.harness.protocol import load_kernels, no_kernels
from selc.harness.runner import Answer, Runner, attempt

STEPS: Final = ("describe", "state", "ceilings", "open", "check", "time", "warm", "release")
DEATH_SIGNAL: Final = 1
"""prctl's PR_SET_PDEATHSIG."""


def main(descriptor: int) -> None:
    """Serve until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _tie_to_parent()
    os.set_inheritable(descriptor, False)
    pipe = Connection(descriptor)
    start: Start = pipe.recv()
    try:
        runner = Runner(_kernels(start), Device.open(start.device))
    except Refused as refused:
        pipe.send(refused.diagnostics)
        return
    pipe.send(())
    while True:
        try:
            method, arguments = pipe.recv()
        except EOFError:
            os._exit(0)
        pipe.send(_answer(runner, method, arguments))


def _answer(runner: Runner, method: str, arguments: tuple[Any, ...]) -> Answer:
    assert method in STEPS
    try:
        return attempt(getattr(runner, method), *arguments)
    except BaseException as error:  # noqa: BLE001  nothing a kernel raises ends the worker
        return Answer(failure=type(error).__name__)


def _kernels(start: Start) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for family, sent in start.kernels.items():
        if isinstance(sent, str):
            out[family] = load_kernels(sent)
            continue
        try:
            out[family] = pickle.loads(sent)  # noqa: S301  from the process that started this one
        except Exception as error:  # noqa: BLE001  unpickling runs the object's own code
            raise no_kernels(
                f"the kernels of `{family}` cannot be loaded in a worker process: {error}",
                "name them as `module:object`",
            ) from None
    return out


def _tie_to_parent() -> None:
    """Die with the parent, and before it where memory runs out; Linux only."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(DEATH_SIGNAL, signal.SIGKILL)
        Path("/proc/self/oom_score_adj").write_text("1000")
    except (OSError, AttributeError):
        pass


if __name__ == "__main__":
    main(int(sys.argv[1]))
