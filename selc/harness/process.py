"""A worker process: it may crash, hang or be killed, and this one goes on."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any, Final

from selc.diag.diagnostic import Diagnostic, Refused
from selc.harness.protocol import no_kernels
from selc.harness.runner import Answer

NO_WORKER: Final = "SEL953"
START_SECONDS: Final = 180.0
LINE: Final = 200
LOOK: Final = 0.5
"""Seconds between two looks whether a process still lives."""


class OutOfTime(Exception):
    """The time for the whole run is over in the middle of a step."""


@dataclass(frozen=True, slots=True)
class Start:
    """What a worker is told first."""

    kernels: Mapping[str, str | bytes]
    """By family: the name that loads them, or the pickled object."""
    device: str

    @classmethod
    def of(cls, kernels: Mapping[str, Any], device: str) -> Start:
        """Kernels by name or as objects that can be pickled.

        Raises:
            Refused: an object cannot be sent to another process.
        """
        sent: dict[str, str | bytes] = {}
        for family, each in kernels.items():
            try:
                sent[family] = each if isinstance(each, str) else pickle.dumps(each)
            except Exception as error:  # noqa: BLE001  pickling runs the object's own code
                raise no_kernels(
                    f"the kernels of `{family}` cannot be sent to a worker process: {error}",
                    "name them as `module:object`",
                ) from None
        return cls(sent, device)


class Worker:
    """Steps of a `Runner` in another process, which is started when it is needed."""

    def __init__(self, start: Start, timeout: float) -> None:
        self._start = start
        self._timeout = timeout
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection | None = None
        self._log: Any = None
        self._greeted = False
        self.generation = 0
        """Moves when a process ends: what it knew is gone."""

    def ask(self, method: str, *arguments: Any, until: float | None = None) -> Answer:
        """Run one step. A process that dies or does not answer in time is replaced at the next.

        Raises:
            Refused: no process can be started.
            OutOfTime: the moment `until` came before the step's own limit.
        """
        self.spawn()
        self._greet()
        assert self._pipe is not None
        ends = time.monotonic() + self._timeout
        try:
            self._pipe.send((method, arguments))
            limit = ends if until is None else min(ends, until)
            if not self._answers(limit):
                self.close()
                if limit < ends:
                    raise OutOfTime
                return Answer(failure=f"no answer within {self._timeout:g} s", lost=True)
            answer: Answer = self._pipe.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return Answer(failure=self._epitaph(), lost=True)
        if answer.lost:
            self.close()
        return answer

    def _answers(self, limit: float) -> bool:
        """Wait for an answer; a process that is gone gives none, whoever else holds its pipe.

        Raises:
            EOFError: the process is gone.
        """
        assert self._pipe is not None
        while not self._pipe.poll(min(LOOK, max(0.0, limit - time.monotonic()))):
            if self._process is None or self._process.poll() is not None:
                if self._pipe.poll():
                    break
                raise EOFError
            if time.monotonic() >= limit:
                return False
        return True

    def kill(self) -> None:
        """End the process while another thread waits for it."""
        process = self._process
        if process is not None:
            _kill(process)

    def close(self) -> None:
        """End the process and all that it started."""
        process, self._process = self._process, None
        self.generation += 1
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None
        if process is not None:
            _kill(process)
        if self._log is not None:
            self._log.close()
            self._log = None

    def spawn(self) -> None:
        """Start a process if there is none. It dies with the thread that starts it."""
        if self._process is not None:
            return
        ours, theirs = Pipe()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  closed with the process
        paths = [str(Path(p or ".").resolve()) for p in sys.path]
        paths.append(str(Path(__file__).resolve().parents[2]))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "selc.harness.worker", str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            pass_fds=[theirs.fileno()],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))},
            start_new_session=True,
        )
        theirs.close()
        self._pipe = ours
        self._greeted = False

    def _greet(self) -> None:
        """Tell a new process what it needs, and wait until it is ready."""
        if self._greeted:
            return
        assert self._pipe is not None
        try:
            self._pipe.send(self._start)
            told: Sequence[Diagnostic] | str = "it does not answer"
            if self._answers(time.monotonic() + START_SECONDS):
                told = self._pipe.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            told = self._epitaph()
        if told:
            self.close()
            if isinstance(told, str):
                told = (Diagnostic(NO_WORKER, f"no worker process can be started: {told}"),)
            raise Refused(*told)
        self._greeted = True

    def _epitaph(self) -> str:
        """How the process ended, with the last line that it printed."""
        process, log = self._process, self._log
        if process is None or log is None:
            return "the worker process ended"
        try:
            status = process.wait(10.0)
        except subprocess.TimeoutExpired:
            status = 0
        words = f"the worker process ended with status {status}"
        if status < 0:
            words = f"the worker process was ended by {_signal(-status)}"
        if status == -signal.SIGKILL:
            words += ", perhaps because the machine's memory ran out"
        log.seek(max(0, log.seek(0, os.SEEK_END) - 4096))
        lines = [x.strip() for x in log.read().decode("utf-8", "replace").splitlines() if x.strip()]
        self.close()
        return words + (f" ({lines[-1][:LINE]})" if lines else "")


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process with its session."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        process.kill()
    process.wait()
