"""Building the native module with the machine's C compiler. Failure is only a warning."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Final

FLAGS: Final = ("-O2", "-std=c99", "-shared", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off")
"""No -fwrapv: ranges prove that nothing overflows, and a sanitized build tests it."""

TIMEOUT: Final = 120.0
SUFFIX: Final = "_native.abi3.so"

Cache = Callable[[str, Callable[[], bytes | None]], bytes | None]
"""Gives the module for a key, by calling the builder if it has none (None: it could not)."""


class BuildError(Exception):
    """There is no native module; the text says why."""


def find_compiler() -> list[str]:
    """The C compiler's command: $CC, the one that built Python, or cc, gcc, clang on PATH.

    Raises:
        BuildError: There is none.
    """
    wanted = os.environ.get("CC")
    names = [wanted] if wanted else [sysconfig.get_config_var("CC") or "", "cc", "gcc", "clang"]
    for name in names:
        command = shlex.split(name) if name else []
        if command and shutil.which(command[0]):
            return command
    where = f"the compiler {wanted!r} of CC was not found" if wanted else "no C compiler was found"
    raise BuildError(where)


def find_include() -> Path:
    """The folder of Python.h.

    Raises:
        BuildError: The headers are not installed.
    """
    include = Path(sysconfig.get_paths()["include"])
    if not (include / "Python.h").is_file():
        raise BuildError(f"Python.h is not in {include}: the Python headers are not installed")
    return include


def native_key(c_text: str) -> str:
    """What a built module depends on: the text with all it includes, compiler, flags, platform."""
    try:
        command = find_compiler()
        path = shutil.which(command[0]) or ""
        stamp = Path(path).resolve().stat() if path else None
        compiler = (
            f"{command} {path} {stamp.st_size if stamp else 0} {stamp.st_mtime_ns if stamp else 0}"
        )
    except BuildError:
        compiler = ""
    parts = [c_text, compiler, " ".join(FLAGS), sysconfig.get_platform(), sys.implementation.name]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def build(source: Path, target: Path, extra: tuple[str, ...] = ()) -> None:
    """Compile `source` (with `selector.h` beside it) into the module `target`.

    Raises:
        BuildError: There is no compiler, or it failed.
    """
    if sys.platform == "win32":
        raise BuildError("native modules are built on Linux and macOS only")
    link = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []
    command = [
        *find_compiler(), *FLAGS, *extra, "-isystem", str(find_include()), "-I", str(source.parent),
        str(source), "-o", str(target), *link, "-lm",
    ]  # fmt: skip
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT, check=False, errors="replace"
        )
    except subprocess.TimeoutExpired:
        raise BuildError(f"the compiler took more than {TIMEOUT:.0f} s") from None
    except OSError as error:
        raise BuildError(f"the compiler could not be started: {error}") from None
    if done.returncode == 0 and not target.is_file():
        raise BuildError(f"{command[0]} made no module")
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        first = next(
            (line for line in lines if "error" in line), lines[0] if lines else "no message"
        )
        raise BuildError(f"{command[0]} failed with exit code {done.returncode}: {first.strip()}")
    if not fits(target):
        target.unlink()
        raise BuildError(f"what {command[0]} made is no module for this machine")


def fits(module: Path) -> bool:
    """Whether a built module is for the same machine as this Python, as far as ELF says it."""
    with module.open("rb") as built, Path(sys.executable).open("rb") as running:
        made, ours = built.read(20), running.read(20)
    if ours[:4] != b"\x7fELF":
        return True
    return len(made) == 20 and made[:6] == ours[:6] and made[18:] == ours[18:]
