"""The compilation cache: answers and emitted files by content, verified whenever they are read.

The folder is `$SELC_CACHE_DIR`, else `$XDG_CACHE_HOME/selc`, else `~/.cache/selc`; in it are
`v1/entries/KEY.json`, `v1/blobs/DIGEST`, `v1/native/KEY` and `v1/loaded`. An entry is a JSON object
with a digest over itself; it lists every file that the compilation looked at, and answers only
while all of them are as they were. A Python file may have changed where the compilation did not
look. Files appear by renaming whole ones: no reader sees half of one.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from selc.diag.outcome import Outcome
from selc.driver import loaded
from selc.driver.cachekey import digest

VERSION: Final = "v1"
MAX_ENTRIES: Final = 512
MAX_BYTES: Final = 1 << 30
"""More are dropped, longest unused first, when one is written."""

STALE: Final = 3600.0
"""Seconds after which an unfinished file counts as left behind by a process that was killed."""

FIELDS: Final = frozenset(
    {"exit_code", "answer", "diagnostics", "sources", "files", "reason", "followed", "made"}
)

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
    followed: Mapping[str, Any] = field(default_factory=dict)  # file -> what was read of it


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
    path = top / "entries" / f"{key}.json"
    data = _read(path, key)
    if data is None or not unchanged(data["sources"], data["followed"]):
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # it was of use
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
        followed=data["followed"],
    )


class State(NamedTuple):
    """What an entry is, without the emitted files."""

    digest: str
    exit_code: int
    files: Mapping[str, str]  # name -> digest


def state(key: str) -> State | None:
    """The entry of a key, if it still answers."""
    path = location() / VERSION / "entries" / f"{key}.json"
    data = _read(path, key)
    if data is None or not unchanged(data["sources"], data["followed"]):
        return None
    with contextlib.suppress(OSError):
        os.utime(path)
    return State(digest(_canonical(data)), data["exit_code"], data["files"])


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


def store(key: str, entry: Entry) -> str | None:
    """Keep an entry. A cache that cannot be written is passed over; the reason if so."""
    body = {
        "key": key,
        "made": int(time.time()),
        "exit_code": entry.exit_code,
        "answer": entry.answer,
        "diagnostics": entry.diagnostics,
        "sources": dict(entry.sources),
        "files": {name: digest(content) for name, content in entry.files.items()},
        "reason": entry.reason,
        "followed": dict(entry.followed),
    }
    text = json.dumps({**body, "digest": digest(_canonical(body))})
    kept = False
    with _writing() as top:
        if top is not None:
            for content in entry.files.values():
                _put(top / "blobs" / digest(content), content)
            _put(top / "entries" / f"{key}.json", text.encode(), replace=True)
            kept = True
            _trim(top)
    return None if kept else f"{location()} cannot be written"


def make_room() -> None:
    """Keep to the limits after a package was put beside the entries."""
    with _writing() as top:
        if top is not None:
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


def unchanged(sources: Mapping[str, str], followed: Mapping[str, Any]) -> bool:
    """Whether files are as they were: same content, or still there, or still absent.

    A changed file whose parts that were read are listed may differ in all others.
    """
    for path, said in sources.items():
        if state_of(path, len(said) // 2) == said:
            continue
        if path not in followed:
            return False
        from selc.frontend.followed import holds

        if not holds(path, followed[path]):
            return False
    return True


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
    from selc.lint import cache as lint

    found = sorted(_entries(), key=lambda e: (-e["made"], e["key"]))
    lines = [f"{location()}: {len(found)} entries, {_size() / 1e6:.1f} MB"]
    for each in found:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(each["made"]))
        lines.append(f"  {each['key'][:12]}  {when}  {each['family']:<16} {each['target']}")
    packages = loaded.count(location() / VERSION)
    lines.append(f"  {packages} packages of selc.load")
    results, size = lint.contents()
    lines.append(f"  {results} results of selc lint, {size / 1e6:.1f} MB")
    answer = {
        "format": 1, "directory": str(location()), "bytes": _size(), "entries": found,
        "loaded": packages, "lint": {"results": results, "bytes": size},
    }  # fmt: skip
    return Outcome(0, "\n".join(lines), answer)


def clear() -> Outcome:
    """Remove everything that is cached, by the linter too."""
    from selc.lint import cache as lint

    count = len(_paths("entries"))
    shutil.rmtree(location() / VERSION, ignore_errors=True)
    results = lint.clear()
    answer = {"format": 1, "directory": str(location()), "removed": count, "lint": results}
    text = f"{location()}: {count} entries removed, and {results} results of selc lint"
    return Outcome(0, text, answer)


def verify() -> Outcome:
    """Compare everything with its digest; damaged files are named, and never used anyway."""
    from selc.lint import cache as lint

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
    damaged += [str(p) for p in loaded.damaged(top)]
    results, bad = lint.verify()
    damaged += [str(p) for p in bad]
    answer = {"format": 1, "directory": str(location()), "damaged": damaged, "lint": results}
    text = (
        f"{location()}: {len(_paths('entries'))} entries, {loaded.count(top)} packages of "
        f"selc.load, {results} results of selc lint; {len(damaged)} damaged files"
    )
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
    if not folder.is_dir():
        return []
    return sorted(p for p in folder.iterdir() if p.name[0] != "." and p.is_file())


def _kept() -> int:
    return sum(p.stat().st_size for kind in ("entries", "blobs", "native") for p in _paths(kind))


def _size() -> int:
    return _kept() + loaded.size(location() / VERSION)


# --- files --------------------------------------------------------------------------------------


def _read(path: Path, key: str) -> dict[str, Any] | None:
    try:
        data = json.loads(path.read_bytes())
        body = {k: v for k, v in data.items() if k != "digest"}
        good = data["digest"] == digest(_canonical(body)) and data["key"] == key
        good = good and body.keys() >= FIELDS
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
    import tempfile

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
    """Drop what was killed halfway, then the longest unused beyond the limits with their blobs."""
    _drop_unfinished(top)
    loaded.trim(top, MAX_ENTRIES, MAX_BYTES - _kept())
    entries = sorted(_paths("entries"), key=_used)
    bytes_now = _size()
    if len(entries) <= MAX_ENTRIES and bytes_now <= MAX_BYTES:
        return
    keep = len(entries) if len(entries) <= MAX_ENTRIES else MAX_ENTRIES // 2
    while entries:
        for path in entries[: max(len(entries) - keep, 0)]:
            path.unlink(missing_ok=True)
        entries = entries[max(len(entries) - keep, 0) :]
        _drop_unnamed(top)
        if _size() <= MAX_BYTES or len(entries) <= 1:
            return
        keep = len(entries) // 2


def _drop_unnamed(top: Path) -> None:
    """Remove blobs that no entry names, and built modules older than every entry."""
    named: set[str] = set()
    entries = _paths("entries")
    for path in entries:
        data = _read(path, path.stem)
        named.update(data["files"].values() if data is not None else ())
    for path in _paths("blobs"):
        if path.name not in named:
            path.unlink(missing_ok=True)
    oldest = min((_used(p) for p in entries), default=0)
    for path in _paths("native"):
        if _used(path) < oldest:
            path.unlink(missing_ok=True)


def _drop_unfinished(top: Path) -> None:
    limit = (time.time() - STALE) * 1e9
    for kind in ("entries", "blobs", "native"):
        for path in (top / kind).glob(".*"):
            if _used(path) < limit:
                path.unlink(missing_ok=True)


def _used(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
