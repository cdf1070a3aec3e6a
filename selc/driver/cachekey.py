"""What a compilation depends on, apart from the source files that it finds for itself.

The key covers selc itself, the interpreter, the solvers' versions, the target, every option that
can change the answer, and the contents of the files that the options name.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from selc import __version__

if TYPE_CHECKING:
    from selc.driver.options import CompileOptions

SOLVERS: Final = ("z3-solver", "networkx", "libcst")
"""Packages whose version can change an answer."""

SUFFIXES: Final = (".py", ".h", ".c", ".tmpl", ".html")
ELSEWHERE: Final = frozenset({"__pycache__", "cli", "lint", "check", "harness"})
"""Folders of selc that no compilation uses."""


def digest(data: bytes, size: int = 32) -> str:
    """The digest that the cache uses."""
    return hashlib.blake2b(data, digest_size=size).hexdigest()


def key_of(options: CompileOptions) -> str:
    """The name under which the answer is kept."""
    named = [p for p in (*options.facts, options.tuple_file, options.profile) if p is not None]
    parts = {
        "selc": __version__,
        "code": own_code(),
        "python": [sys.implementation.cache_tag, sys.platform, sys.version_info[:3]],
        "solvers": {name: _version(name) for name in SOLVERS},
        "compiler": _compiler() if options.native and "native" in options.emit else None,
        "path": sys.path,
        "folder": str(Path.cwd()),
        "target": options.target,
        "roots": [str(root) for root in options.roots],
        "facts": [str(path) for path in options.facts],
        "tuple": str(options.tuple_file),
        "profile": str(options.profile),
        "files": [_content(path) for path in named],
        "emit": sorted(options.emit),
        "emit_after": options.emit_after,
        "native": options.native,
        "max_candidates": options.max_candidates,
        "solver_budget": options.solver_budget,
        "whole_rows": options.whole_rows,
        "skip": sorted(options.skip),
        "require_proof": options.require_proof,
    }
    return digest(json.dumps(parts, sort_keys=True).encode())


def _content(path: Path) -> str | None:
    try:
        return digest(path.read_bytes())
    except OSError:
        return None


@functools.cache
def own_code() -> str:
    """The digest of selc's own files, once a process: a changed compiler gives no old answers."""
    total = hashlib.blake2b(digest_size=32)
    for path in own_files():
        total.update(f"{path.name}\0".encode())
        total.update(hashlib.blake2b(path.read_bytes()).digest())
    return total.hexdigest()


def own_files() -> Iterator[Path]:
    """Every file of selc that can change an answer or what is emitted, in a fixed order."""
    top = Path(__file__).resolve().parent.parent
    for folder, subfolders, names in os.walk(top, followlinks=True):
        subfolders[:] = sorted(n for n in subfolders if n not in ELSEWHERE)
        yield from (Path(folder, n) for n in sorted(names) if n.endswith(SUFFIXES))


def _version(package: str) -> str:
    """The version of an installed package by the name of its metadata folder."""
    wanted = package.replace("-", "_") + "-"
    for entry in sys.path:
        try:
            found = [p.name for p in Path(entry).glob(f"{wanted}*.dist-info")] if entry else []
        except OSError:
            continue
        if found:
            return max(found)
    return ""


def _compiler() -> list[str]:
    """What tells whether a native module that could not be built then could be now."""
    import sysconfig

    names = [os.environ.get("CC", ""), "cc", "gcc", "clang"]
    header = Path(sysconfig.get_path("include"), "Python.h")
    found = [shutil.which(name.split()[0]) or "" if name.strip() else "" for name in names]
    return [*names[:1], *found, str(header.is_file()), sysconfig.get_platform()]
