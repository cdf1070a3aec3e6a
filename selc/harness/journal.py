"""The record of a run, one JSON object a line: what it resumes from, and what a decision rests on.

The first record says what was measured on what; a journal of another run is refused. Records are
only appended, and each is flushed. What an interruption left of a last line is dropped.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from selc.diag.diagnostic import Diagnostic, Refused
from selc.diag.span import NOWHERE, Span

CODE: Final = "SEL954"
FORMAT: Final = 1
SAYS: Final = {
    "command": "by another command",
    "selectors": "with other selectors",
    "kernels": "with other kernels",
    "device": "on another device or with other software",
    "calls": "for other calls",
    "tuples": "for other tuples",
    "options": "with other options",
}
"""What a difference in a field of the header means."""


@dataclass(slots=True)
class Journal:
    """An open journal, or one in memory alone."""

    header: Mapping[str, Any]
    records: list[dict[str, Any]] = field(default_factory=list)
    """What stood in it before, the header left out, then what was written."""
    path: Path | None = None
    _stream: IO[bytes] | None = None

    @classmethod
    def open(cls, path: Path | None, header: Mapping[str, Any]) -> Journal:
        """Begin a journal, or go on with one of the same header.

        Raises:
            Refused: it is of another run, damaged, in use, or cannot be written.
        """
        header = json.loads(json.dumps({"kind": "header", "format": FORMAT, **header}))
        if path is None:
            return cls(header)
        try:
            stream = path.open("a+b")
        except OSError as error:
            raise _refused(path, f"cannot be opened: {error.strerror}") from None
        try:
            _lock(stream, path)
            stream.seek(0)
            records, end = _records(stream.read(), path)
            stream.truncate(end)
            journal = cls(header, records[1:], path, stream)
            if records:
                _same(records[0], header, path)
            else:
                journal._append(header)
        except BaseException:
            stream.close()
            raise
        return journal

    def write(self, record: Mapping[str, Any]) -> None:
        """Append a record.

        Raises:
            Refused: the disk is full, say. What was written before stays good.
        """
        self.records.append(dict(record))
        self._append(record)

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        """The records of one kind, oldest first."""
        return [r for r in self.records if r["kind"] == kind]

    def close(self) -> None:
        """Give the file back."""
        if self._stream is not None:
            with contextlib.suppress(OSError):
                self._stream.close()
            self._stream = None

    def _append(self, record: Mapping[str, Any]) -> None:
        if self._stream is None or self.path is None:
            return
        line = json.dumps(record, separators=(",", ":"), allow_nan=False).encode() + b"\n"
        try:
            self._stream.write(line)
            self._stream.flush()
        except OSError as error:
            self.close()
            raise _refused(
                self.path,
                f"can no longer be written: {error.strerror}",
                hint="make room and run the command again: it goes on where this run ended",
            ) from None


def read_journal(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A journal's header and records, to look at them.

    Raises:
        Refused: there is none, or it is damaged.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _refused(path, f"cannot be read: {error.strerror}") from None
    records, _ = _records(data, path)
    if not records:
        raise _refused(path, "is empty")
    return records[0], records[1:]


def digest(items: Iterable[str]) -> str:
    """A hash of some texts, whatever their order."""
    whole = hashlib.sha256()
    for item in sorted(items):
        whole.update(item.encode() + b"\0")
    return "sha256:" + whole.hexdigest()[:16]


def _records(data: bytes, path: Path) -> tuple[list[dict[str, Any]], int]:
    """The records, and where the last whole one ends."""
    out: list[dict[str, Any]] = []
    end = 0
    lines = data.splitlines(keepends=True)
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
        except ValueError:
            record = None
        whole = isinstance(record, dict) and isinstance(record.get("kind"), str)
        if not whole or not line.endswith(b"\n"):
            if number == len(lines) and (out or not line.endswith(b"\n")):
                return out, end
            what = "is no journal" if number == 1 else "is damaged in this line"
            raise _refused(path, what, Span(str(path), number, 1, number, 1))
        assert record is not None
        out.append(record)
        end += len(line)
    if out and (out[0]["kind"] != "header" or out[0].get("format") != FORMAT):
        raise _refused(path, "is no journal of this version", Span(str(path), 1, 1, 1, 1))
    return out, end


def _same(before: Mapping[str, Any], header: Mapping[str, Any], path: Path) -> None:
    for name in sorted({*before, *header}, key=lambda n: (n not in SAYS, n)):
        old, new = before.get(name), header.get(name)
        if old == new:
            continue
        parts = [""]
        if isinstance(old, dict) and isinstance(new, dict):
            parts = [
                f" ({k}: {old.get(k)!r}, now {new.get(k)!r})"
                for k in sorted({*old, *new})
                if old.get(k) != new.get(k)
            ]
        said = SAYS.get(name, f"with another `{name}`")
        raise _refused(path, f"was written {said}{parts[0]}")


def _lock(stream: IO[bytes], path: Path) -> None:
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise _refused(path, "is in use by another run") from None
    except OSError:
        return  # a file system without locks


def _refused(path: Path, what: str, place: Span = NOWHERE, hint: str = "") -> Refused:
    return Refused(
        Diagnostic(
            CODE,
            f"the journal `{path}` {what}",
            place,
            help=hint or "name another journal, or remove this one",
        )
    )
