"""The packages that `selc.load` imports from, in the cache under the digest of what they hold.

A folder is never changed: another content has another name. A package reads some of its modules
late, so that a process holds every folder it has imported from, by a lock of the operating system
that goes with the process. Only folders that nobody holds make room for others.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from selc.driver.cachekey import digest

fcntl: Any
try:
    import fcntl
except ImportError:  # not on every system; folders then go by age alone
    fcntl = None

FOLDER: Final = "loaded"
PACKAGE: Final = "selector"
LOCK: Final = "in-use"
UNFINISHED: Final = ".new-"
SIZE: Final = 16
"""Bytes of a digest in a name."""

STALE: Final = 3600.0
UNLOCKED: Final = 30 * 86400.0
"""Seconds for which a folder stays where locks do not tell whether a process uses it."""

_HELD: Final[dict[str, int]] = {}
"""Folders held by this process, with the open file that holds each."""


def workplace(top: Path) -> Path:
    """A new folder beside the packages, to write one into.

    Raises:
        OSError: the cache cannot be written.
    """
    import tempfile

    (top / FOLDER).mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(dir=top / FOLDER, prefix=UNFINISHED))


def settle(top: Path, key: str, work: Path) -> Path:
    """The package that was written to `work` in its place, held by this process.

    Raises:
        OSError: the cache cannot be written.
    """
    content = content_of(work / PACKAGE)
    place = _place(top, key, content)
    hold(place)
    package = place / PACKAGE
    if content_of(package) != content:
        with contextlib.suppress(OSError):  # damaged: whoever has it imports the rest in vain
            package.rename(work / "damaged")
        with contextlib.suppress(OSError):  # another process was first
            (work / PACKAGE).rename(package)
    os.utime(place)
    return package


def find(top: Path, key: str, files: Mapping[str, str]) -> Path | None:
    """The package with files of these digests, held by this process; None if it is not there."""
    content = content_by(files)
    place = _place(top, key, content)
    if not place.is_dir():
        return None
    try:
        hold(place)
        if content_of(place / PACKAGE) != content:
            return None
    except OSError:
        return None
    with contextlib.suppress(OSError):
        os.utime(place)
    return place / PACKAGE


def hold(place: Path) -> None:
    """Keep a folder until this process ends; it is made if it is not there.

    Raises:
        OSError: it cannot be made.
    """
    while str(place) not in _HELD:
        place.mkdir(parents=True, exist_ok=True)
        handle = _opened(place / LOCK)
        if fcntl is None:
            os.close(handle)
            return
        fcntl.flock(handle, fcntl.LOCK_SH)
        if _is_there(handle, place / LOCK):
            _HELD[str(place)] = handle
            return
        os.close(handle)  # it made room while this process waited


def content_of(package: Path) -> str:
    """The digest of a package's files, without what Python compiled; empty if it is not there."""
    try:
        files = {p.name: digest(p.read_bytes()) for p in package.iterdir() if p.is_file()}
    except OSError:
        return ""
    return content_by(files)


def content_by(files: Mapping[str, str]) -> str:
    """The digest of files, by their names and digests."""
    lines = "".join(f"{name}\0{content}\n" for name, content in sorted(files.items()))
    return digest(lines.encode(), SIZE)


def damaged(top: Path) -> list[Path]:
    """Packages that do not hold what their name says."""
    return [
        place / PACKAGE
        for place in _places(top)
        if (place / PACKAGE).exists()
        and content_of(place / PACKAGE) != place.name.rpartition("-")[2]
    ]


def count(top: Path) -> int:
    """How many packages there are."""
    return len(_places(top))


def size(top: Path) -> int:
    """The bytes of all of them."""
    return sum(_bytes(place) for place in _places(top))


def trim(top: Path, most: int, room: int) -> None:
    """Drop what was killed halfway, then the longest unused beyond `most` folders or `room` bytes.

    Folders in use stay, whatever they take.
    """
    now = time.time()
    for path in (top / FOLDER).glob(f"{UNFINISHED}*"):
        if _used(path) < now - STALE:
            shutil.rmtree(path, ignore_errors=True)
    places = sorted(_places(top), key=_used)
    sizes = {place: _bytes(place) for place in places}
    number, total = len(places), sum(sizes.values())
    for place in places:
        old = _used(place) < now - UNLOCKED
        if (number > most or total > room or old) and _dropped(place, old):
            number, total = number - 1, total - sizes[place]


def _place(top: Path, key: str, content: str) -> Path:
    return top / FOLDER / f"{key[: 2 * SIZE]}-{content}"


def _dropped(place: Path, old: bool) -> bool:
    """Remove a folder that nobody holds; one whose lock tells nothing only if it is old."""
    if fcntl is None or not (place / LOCK).exists():
        if old:
            shutil.rmtree(place, ignore_errors=True)
        return old
    try:
        handle = os.open(place / LOCK, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(place, ignore_errors=True)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def _opened(path: Path) -> int:
    """The file of a lock; for reading where nothing may be written, which a shared lock can do."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError:
        return os.open(path, os.O_RDONLY)


def _is_there(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except OSError:
        return False


def _places(top: Path) -> list[Path]:
    return sorted(
        p for p in (top / FOLDER).glob("*") if p.is_dir() and not p.name.startswith(UNFINISHED)
    )


def _bytes(place: Path) -> int:
    return sum(_sizes(place))


def _sizes(place: Path) -> Iterator[int]:
    for folder, _, names in os.walk(place):
        for name in names:
            with contextlib.suppress(OSError):
                yield Path(folder, name).stat().st_size


def _used(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
