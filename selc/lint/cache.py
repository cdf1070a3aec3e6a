"""Results by content: one small file for each linted one, valid while all it read is the same.

Entries are JSON with a digest over themselves and appear by renaming; one that is damaged counts
as not there. A cache that cannot be written is no error.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from selc import __version__

VERSION: Final = "lint-v2"
ABSENT: Final = "absent"
UNFINISHED: Final = ".new-"
STALE: Final = 3600.0
"""Seconds after which an unfinished file counts as left behind by a process that was killed."""

MAX_BYTES: Final = 1 << 28
"""More are dropped, oldest first."""


@dataclass(slots=True)
class Digests:
    """Digests of files, each computed once."""

    known: dict[str, str] = field(default_factory=dict)

    def of(self, path: str) -> str:
        """The digest of a file's bytes."""
        found = self.known.get(path)
        if found is None:
            try:
                data = Path(path).read_bytes()
                found = hashlib.blake2b(data, digest_size=12).hexdigest()
            except OSError:
                found = ABSENT
            self.known[path] = found
        return found


@dataclass(frozen=True, slots=True)
class Cache:
    """The entries of one configuration."""

    folder: Path | None
    config: str

    @classmethod
    def open(cls, config: str, use: bool) -> Cache:
        """The cache, or one that holds nothing."""
        return cls(location() / VERSION if use else None, f"{__version__}:{_code()}:{config}")

    def load(self, path: Path, digests: Digests) -> dict[str, Any] | None:
        """The result for a file, if nothing it depends on has changed."""
        if self.folder is None:
            return None
        try:
            entry = _read(self._file(path))
            needed = entry["needs"]
            if all(digests.of(name) == digest for name, digest in needed.items()):
                result = entry["result"]
                return result if isinstance(result, dict) else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        return None

    def store(
        self, path: Path, needs: Iterable[Path], result: dict[str, Any], digests: Digests
    ) -> None:
        """Keep the result for a file."""
        if self.folder is None:
            return
        entry = {"needs": {str(n): digests.of(str(n)) for n in needs}, "result": result}
        whole = {**entry, "digest": _digest(entry)}
        target = self._file(path)
        with contextlib.suppress(OSError):
            target.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=target.parent, prefix=UNFINISHED)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(whole, file, separators=(",", ":"))
            Path(name).replace(target)

    def _file(self, path: Path) -> Path:
        assert self.folder is not None
        name = hashlib.blake2b(f"{self.config}\0{path}".encode(), digest_size=16).hexdigest()
        return self.folder / name[:2] / f"{name[2:]}.json"


def location() -> Path:
    """The folder of all caches of selc."""
    stated = os.environ.get("SELC_CACHE_DIR")
    if stated:
        return Path(stated)
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "selc"


def contents() -> tuple[int, int]:
    """How many results are kept, and their bytes."""
    sizes = [size for _, size, _ in _kept()]
    return len(sizes), sum(sizes)


def verify() -> tuple[int, list[Path]]:
    """How many results are kept, and those that are damaged."""
    bad = []
    paths = [path for _, _, path in _kept()]
    for path in paths:
        try:
            _read(path)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            bad.append(path)
    return len(paths), bad


def trim() -> None:
    """Drop what was killed halfway and, beyond the limit, the results made first."""
    now = time.time()
    for path in (location() / VERSION).glob(f"*/{UNFINISHED}*"):
        with contextlib.suppress(OSError):
            if path.stat().st_mtime < now - STALE:
                path.unlink()
    kept = sorted(_kept())
    total = sum(size for _, size, _ in kept)
    for _, size, path in kept if total > MAX_BYTES else ():
        with contextlib.suppress(OSError):
            path.unlink()
        total -= size
        if total <= MAX_BYTES // 2:
            break


def clear() -> int:
    """Remove all results; how many there were."""
    count, _ = contents()
    for folder in location().glob("lint-v*"):
        shutil.rmtree(folder, ignore_errors=True)
    return count


def _kept() -> list[tuple[float, int, Path]]:
    """When each result was made, its bytes and its file."""
    out = []
    for path in (location() / VERSION).glob("*/*.json"):
        with contextlib.suppress(OSError):
            found = path.stat()
            out.append((found.st_mtime, found.st_size, path))
    return out


def _read(path: Path) -> dict[str, Any]:
    """An entry that is whole.

    Raises:
        ValueError: it is damaged; other errors if it is not even an entry.
    """
    entry = json.loads(path.read_bytes())
    body = {name: value for name, value in entry.items() if name != "digest"}
    if entry["digest"] != _digest(body):
        raise ValueError(path)
    return body


def _digest(body: dict[str, Any]) -> str:
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def _code() -> str:
    """A digest of the linter itself: results of another version do not count."""
    whole = hashlib.blake2b(digest_size=8)
    for path in sorted(Path(__file__).parent.glob("*.py")):
        whole.update(path.read_bytes())
    return whole.hexdigest()
