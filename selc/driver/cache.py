"""The compilation cache: answers and emitted files by content, verified whenever they are read.

The folder is `$SELC_CACHE_DIR`, else `$XDG_CACHE_HOME/selc`, else `~/.cache/selc`; in it are
`v1/entries/KEY.json`, `v1/blobs/DIGEST` and `v1/native/KEY`. An entry is a JSON object with a
digest over itself; it lists every file that the compilation looked at, and answers only while all
of them are as they were. Files appear by renaming whole ones: no reader sees half of one.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from selc.driver.cachekey import digest
from selc.driver.options import Outcome

VERSION: Final = "v1"
MAX_ENTRIES: Final = 512
"""More are dropped, oldest first, when one is written."""


PATIENCE: Final = 600.0
"""Seconds that a process waits for another one that compiles the same."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What one compilation gave."""

    exit_code: int
    answer: dict[str, Any]
    diagnostics: list[dict[str, Any]]
    sources: Mapping[str, str]  # every file looked at -> digest, 'exists' or 'absent'
    files: Mapping[str, bytes]  # the emitted folder
    reason: str | None  # why there is no native module


def location() -> Path:
    """The folder of the cache."""
    stated = os.environ.get("SELC_CACHE_DIR")
    if stated:
        return Path(stated)
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "selc"


def load(key: str) -> Entry | None:
    """The entry of a key, if it is whole and every file it depends on is as it was."""
    top = location() / VERSION
    data = _read(top / "entries" / f"{key}.json", key)
    if data is None or not unchanged(data["sources"]):
        return None
    files: dict[str, bytes] = {}
    for name, blob in data["files"].items():
        content = _blob(top, blob)
        if content is None:
            return None
        files[name] = content
    return Entry(
        exit_code=data["exit_code"],
        answer=data["answer"],
        diagnostics=data["diagnostics"],
        sources=data["sources"],
        files=files,
        reason=data["reason"],
    )


def state(key: str) -> str | None:
    """The digest of an entry that still answers, without reading the emitted files."""
    data = _read(location() / VERSION / "entries" / f"{key}.json", key)
    if data is None or not unchanged(data["sources"]):
        return None
    return digest(_canonical(data))


@contextlib.contextmanager
def building(key: str) -> Iterator[None]:
    """Held by one process at a time for each key: the others wait, and find what it made.

    The lock is the operating system's, and goes with the process that holds it.
    """
    import filelock

    lock = None
    with contextlib.suppress(OSError, filelock.Timeout):
        folder = location() / VERSION / "locks"
        folder.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(folder / key, timeout=PATIENCE)
        lock.acquire()
    try:
        yield
    finally:
        if lock is not None:
            lock.release()


def store(key: str, entry: Entry) -> None:
    """Keep an entry; a cache that cannot be written is passed over."""
    body = {
        "key": key,
        "made": int(time.time()),
        "exit_code": entry.exit_code,
        "answer": entry.answer,
        "diagnostics": entry.diagnostics,
        "sources": dict(entry.sources),
        "files": {name: digest(content) for name, content in entry.files.items()},
        "reason": entry.reason,
    }
    text = json.dumps({**body, "digest": digest(_canonical(body))})
    with _writing() as top:
        if top is None:
            return
        for content in entry.files.values():
            _put(top / "blobs" / digest(content), content)
        _put(top / "entries" / f"{key}.json", text.encode(), replace=True)
        _trim(top)


def native(key: str, make: Callable[[], bytes | None]) -> bytes | None:
    """The built module for a key of the code generator, made if there is none."""
    path = location() / VERSION / "native" / key
    with contextlib.suppress(OSError, ValueError):
        name, content = path.read_bytes().split(b"\n", 1)
        if name.decode() == digest(content):
            return content
    made = make()
    if made is not None:
        with _writing() as top:
            if top is not None:
                _put(path, digest(made).encode() + b"\n" + made, replace=True)
    return made


def unchanged(sources: Mapping[str, str]) -> bool:
    """Whether files are as they were: same content, or still there, or still absent."""
    return all(state_of(path, len(said) // 2) == said for path, said in sources.items())


def state_of(path: str, size: int = 32) -> str:
    """The digest of a file, `exists` for what is not a file, or `absent`.

    A file that was only asked for (`exists`) has no digest of that size, and counts as there.
    """
    target = Path(path)
    try:
        if size in (16, 32) and target.is_file():
            return digest(target.read_bytes(), size)
        return "exists" if target.exists() else "absent"
    except OSError:
        return "absent"


# --- the commands -------------------------------------------------------------------------------


def list_entries() -> Outcome:
    """What is cached, newest first."""
    found = sorted(_entries(), key=lambda e: (-e["made"], e["key"]))
    lines = [f"{location()}: {len(found)} entries, {_size() / 1e6:.1f} MB"]
    for each in found:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(each["made"]))
        lines.append(f"  {each['key'][:12]}  {when}  {each['family']:<16} {each['target']}")
    answer = {"format": 1, "directory": str(location()), "bytes": _size(), "entries": found}
    return Outcome(0, "\n".join(lines), answer)


def clear() -> Outcome:
    """Remove everything that is cached."""
    count = len(_paths("entries"))
    shutil.rmtree(location() / VERSION, ignore_errors=True)
    answer = {"format": 1, "directory": str(location()), "removed": count}
    return Outcome(0, f"{location()}: {count} entries removed", answer)


def verify() -> Outcome:
    """Compare everything with its digest; damaged files are named, and never used anyway."""
    top = location() / VERSION
    damaged: list[str] = []
    for path in _paths("entries"):
        data = _read(path, path.stem)
        if data is None or any(_blob(top, blob) is None for blob in data["files"].values()):
            damaged.append(str(path))
    damaged += [str(p) for p in _paths("blobs") if digest(p.read_bytes()) != p.name]
    for path in _paths("native"):
        name, _, content = path.read_bytes().partition(b"\n")
        if name.decode("ascii", "replace") != digest(content):
            damaged.append(str(path))
    answer = {"format": 1, "directory": str(location()), "damaged": damaged}
    text = f"{location()}: {len(_paths('entries'))} entries, {len(damaged)} damaged files"
    lines = [text, *(f"  damaged: {path}" for path in damaged)]
    if damaged:
        lines.append("  `selc cache clear` removes them; until then they are passed over")
    return Outcome(1 if damaged else 0, "\n".join(lines), answer)


def _entries() -> Iterator[dict[str, Any]]:
    for path in _paths("entries"):
        data = _read(path, path.stem)
        if data is not None:
            answer = data["answer"]
            yield {
                "key": data["key"], "made": data["made"], "target": answer["target"],
                "family": answer["family"], "exit_code": data["exit_code"],
            }  # fmt: skip


def _paths(kind: str) -> list[Path]:
    folder = location() / VERSION / kind
    return sorted(p for p in folder.iterdir() if p.is_file()) if folder.is_dir() else []


def _size() -> int:
    return sum(p.stat().st_size for kind in ("entries", "blobs", "native") for p in _paths(kind))


# --- files --------------------------------------------------------------------------------------


def _read(path: Path, key: str) -> dict[str, Any] | None:
    try:
        data = json.loads(path.read_bytes())
        body = {k: v for k, v in data.items() if k != "digest"}
        good = data["digest"] == digest(_canonical(body)) and data["key"] == key
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return body if good else None


def _blob(top: Path, name: str) -> bytes | None:
    try:
        content = (top / "blobs" / name).read_bytes()
    except OSError:
        return None
    return content if digest(content) == name else None


def _canonical(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, sort_keys=True, separators=(",", ":")).encode()


@contextlib.contextmanager
def _writing() -> Iterator[Path | None]:
    """The folder to write to, held by this process alone; None if it cannot be had."""
    import filelock

    top = location() / VERSION
    try:
        for kind in ("entries", "blobs", "native"):
            (top / kind).mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(top / "lock", timeout=10)
        lock.acquire()
    except (OSError, filelock.Timeout):
        yield None
        return
    try:
        with contextlib.suppress(OSError):
            yield top
    finally:
        lock.release()


def _put(path: Path, content: bytes, replace: bool = False) -> None:
    """Make a file appear whole; one with the right content stays."""
    if not replace and _is(path, content):
        return
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(content)
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise


def _is(path: Path, content: bytes) -> bool:
    try:
        return path.read_bytes() == content
    except OSError:
        return False


def _trim(top: Path) -> None:
    """Drop the oldest entries beyond the limit, and the blobs that nothing names any more."""
    entries = sorted(_paths("entries"), key=lambda p: p.stat().st_mtime_ns)
    if len(entries) <= MAX_ENTRIES:
        return
    for path in entries[: len(entries) - MAX_ENTRIES // 2]:
        path.unlink(missing_ok=True)
    used: set[str] = set()
    for path in _paths("entries"):
        data = _read(path, path.stem)
        used.update(data["files"].values() if data is not None else ())
    for path in (top / "blobs").iterdir():
        if path.name not in used:
            path.unlink(missing_ok=True)
