"""The files that facts are read from, each with the digest of its bytes."""

from __future__ import annotations

import errno
import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from selc.diag.diagnostic import Diagnostic, Sink
from selc.diag.span import Span

UNREADABLE: Final = "SEL914"
MAX_BYTES: Final = 64 * 1024 * 1024


@dataclass(slots=True)
class Files:
    """The files read so far, with their digests."""

    sink: Sink
    digests: dict[str, str] = field(default_factory=dict)

    def read(self, path: Path, what: str, place: Span | None = None) -> str | None:
        """The text of a UTF-8 file, or an error at `place` (by default the file itself)."""
        name = str(path)
        at = place or Span(name, 1, 1, 1, 1)
        try:
            with path.open("rb") as stream:
                data = stream.read(MAX_BYTES + 1)
        except OSError as e:
            words, hint = _why(e, name, what)
            self._unreadable(at, words, hint)
            return None
        if len(data) > MAX_BYTES:
            message = f"{what} `{name}` is larger than {MAX_BYTES >> 20} MiB"
            self._unreadable(at, message, "name a smaller file")
            return None
        self.digests[name] = hashlib.blake2b(data, digest_size=32).hexdigest()
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as e:
            line = data.count(b"\n", 0, e.start) + 1
            column = e.start - data.rfind(b"\n", 0, e.start)
            span = Span(name, line, column, line, column + 1)
            self._unreadable(span, f"{what} is not UTF-8", "save it as UTF-8")
            return None

    def _unreadable(self, at: Span, words: str, hint: str) -> None:
        self.sink.add(Diagnostic(UNREADABLE, words, at, help=hint))


def _why(e: OSError, name: str, what: str) -> tuple[str, str]:
    words = {
        errno.ENOENT: ("does not exist", "check the path"),
        errno.EISDIR: ("is a directory", "name a file"),
        errno.EACCES: ("may not be read", "check its permissions"),
        errno.ENOTDIR: ("does not exist", "check the path"),
    }
    told, hint = words.get(e.errno or 0, (f"cannot be read: {e.strerror}", "check the path"))
    return f"{what} `{name}` {told}", hint
