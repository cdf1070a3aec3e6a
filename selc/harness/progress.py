"""How far a run is, on stderr: one line that changes on a terminal, else a line now and then."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import Final, TextIO

BAR: Final = 24
EVERY: Final = {True: 0.1, False: 10.0}
"""Seconds between two lines, on a terminal and elsewhere."""


@dataclass(slots=True)
class Progress:
    """A progress line with an estimate of what is left."""

    stream: TextIO = field(default_factory=lambda: sys.stderr)
    budget: float | None = None
    """Seconds after which the run ends in any case."""
    _start: float = field(default_factory=lambda: time.monotonic())
    _began: tuple[str, float, int] = ("", 0.0, 0)
    _last: float = 0.0
    _width: int = 0

    def __call__(self, what: str, done: int, total: int) -> None:
        """Say that `done` of `total` are done."""
        now = time.monotonic()
        if self._began[0] != what:
            self._began = (what, now, done)
        terminal = not self.stream.closed and self.stream.isatty()
        if now - self._last < EVERY[terminal] and not (terminal and done == total):
            return
        if not terminal and not self._last:
            self._last = now
            return
        self._last = now
        line = f"{what}: {done} of {total}{self._left(now, done, total)}"
        if terminal:
            full = round(BAR * done / max(1, total))
            line = f"[{'#' * full}{'.' * (BAR - full)}] {line}"
            self._write("\r" + line.ljust(self._width))
            self._width = len(line)
        else:
            self._write(line + "\n")

    def clear(self) -> None:
        """Remove the line, so that something else can be printed."""
        if self._width:
            self._write("\r" + " " * self._width + "\r")
            self._width = 0

    def _left(self, now: float, done: int, total: int) -> str:
        _, began, before = self._began
        if done <= before or done >= total:
            return ""
        left = (now - began) / (done - before) * (total - done)
        end = "" if self.budget is None else f" of {self.budget:.0f}"
        if self.budget is not None:
            left = min(left, max(0.0, self.budget - (now - self._start)))
        return f", {now - self._start:.0f} s{end}, about {left:.0f} s left"

    def _write(self, text: str) -> None:
        try:
            self.stream.write(text)
            self.stream.flush()
        except (OSError, ValueError):
            pass
