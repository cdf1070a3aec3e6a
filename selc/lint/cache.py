"""Results by content: one small file for each linted one, valid while all it read is the same.

Entries are JSON, appear by renaming, and are dropped if they do not read back. A cache that
cannot be written is no error.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from selc import __version__

VERSION: Final = "lint-v1"
ABSENT: Final = "absent"


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
            entry = json.loads(self._file(path).read_bytes())
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
        target = self._file(path)
        with contextlib.suppress(OSError):
            target.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=target.parent)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(entry, file, separators=(",", ":"))
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
    sizes = []
    for path in (location() / VERSION).glob("*/*.json"):
        with contextlib.suppress(OSError):
            sizes.append(path.stat().st_size)
    return len(sizes), sum(sizes)


def clear() -> int:
    """Remove all results; how many there were."""
    count, _ = contents()
    shutil.rmtree(location() / VERSION, ignore_errors=True)
    return count


def _code() -> str:
    """A digest of the linter itself: results of another version do not count."""
    whole = hashlib.blake2b(digest_size=8)
    for path in sorted(Path(__file__).parent.glob("*.py")):
        whole.update(path.read_bytes())
    return whole.hexdigest()
