"""Recording the calls of a workload: distinct inputs with counts, in bounded memory."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ._files import jsonable
from ._runtime import SelectionError

try:
    import fcntl
except ImportError:  # not on every system; appends of one process stay whole without it
    fcntl = None  # type: ignore[assignment]


class Recorder:
    """Counts distinct calls. `select` selects and counts; `write` appends profile lines.

    At most `limit` distinct calls are kept; with a path, a full table is written out and emptied,
    without one further distinct calls are counted in `dropped`.
    """

    def __init__(
        self,
        identity: tuple[str, str],
        names: tuple[str, ...],
        bind: Callable[..., tuple[object, ...]],
        select: Callable[..., Any],
        path: str | os.PathLike[str] | None = None,
        limit: int = 65536,
    ) -> None:
        self.family, self.selector = identity
        self.names = names
        self.path = None if path is None else os.fspath(path)
        self.limit = limit
        self.dropped = 0
        self._bind = bind
        self._select = select
        self._counts: dict[str, int] = {}
        self._lock = threading.Lock()
        self._process = os.getpid()
        if self.path is not None:
            from multiprocessing import util  # takes milliseconds

            atexit.register(self.close)
            util.register_after_fork(self, _close_with_worker)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)

    def select(self, *args: Any, extra: Mapping[str, Any] | None = None, **inputs: Any) -> Any:
        """Like `select` of the selector; counted only if something was selected."""
        choice = self._select(*args, **inputs)
        self._count(self._bind(*args, **inputs), extra or {}, 1)
        return choice

    def add(
        self, inputs: Mapping[str, Any], extra: Mapping[str, Any] | None = None, count: int = 1
    ) -> None:
        """Count a call without making it."""
        self._count(self._bind(**inputs), extra or {}, count)

    def write(self, path: str | os.PathLike[str] | None = None) -> int:
        """Append what was counted to a profile, one line per distinct call, and start anew.

        Returns:
            The number of lines.
        """
        target = path if path is not None else self.path
        if target is None:
            raise SelectionError("the recorder has no path; give one to write()")
        with self._lock:
            return self._flush(os.fspath(target))

    def close(self) -> None:
        """Write what is left, if there is a path."""
        if self.path is not None and self._counts:
            self.write()

    def __len__(self) -> int:
        return len(self._counts)

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
        if self.path is not None:
            with contextlib.suppress(Exception):
                atexit.unregister(self.close)

    def _count(self, values: tuple[object, ...], extra: Mapping[str, Any], count: int) -> None:
        inputs = {n: _plain(v) for n, v in zip(self.names, values, strict=True)}
        body = json.dumps({"inputs": inputs, "extra": _plain(extra)}, sort_keys=True)
        with self._lock:
            if body not in self._counts and len(self._counts) >= self.limit:
                if self.path is None:
                    self.dropped += count
                    return
                self._flush(self.path)
            self._counts[body] = self._counts.get(body, 0) + count

    def _flush(self, path: str) -> int:
        lines = []
        for body, count in self._counts.items():
            head = {"format": 1, "family": self.family, "selector": self.selector}
            lines.append(json.dumps({**head, **json.loads(body), "count": count}) + "\n")
        with Path(path).open("ab") as out:
            if fcntl is not None:
                fcntl.flock(out, fcntl.LOCK_EX)
            out.write("".join(lines).encode())
        self._counts.clear()
        return len(lines)

    def _forked(self) -> None:
        # what was counted before the fork belongs to the parent, who writes it
        self._lock = threading.Lock()
        self._counts.clear()


def _close_with_worker(recorder: Recorder) -> None:
    # a forked worker of multiprocessing ends without the functions of atexit
    from multiprocessing import util

    util.Finalize(recorder, recorder.close, exitpriority=10)


def _plain(value: Any) -> Any:
    """A value for JSON, deterministic; foreign integers and sequences become plain ones."""
    value = jsonable(value)
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if hasattr(type(value), "__index__"):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if hasattr(type(value), "__iter__") and not isinstance(value, str):
        return [_plain(v) for v in value]
    return str(value)
