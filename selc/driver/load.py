"""`selc.load`: compile from Python, or find the selector in the cache, and import it.

The packages lie in the cache, and are imported under names of their own: two deployments of one
selection can be loaded side by side, and one that was loaded before a change stays what it was.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final

from selc.driver import cache, loaded
from selc.driver.cachekey import key_of
from selc.driver.options import CompileOptions
from selc.vra.budget import SOLVER_STEPS

if TYPE_CHECKING:
    import os

    from selc.diag.outcome import Outcome

    StrPath = str | os.PathLike[str]

_LOADED: Final[dict[str, tuple[str, ModuleType]]] = {}
"""Key of a compilation -> the digest of its entry, and the module."""


class CompileError(Exception):
    """There is no selector; the text says why, and `outcome` holds the diagnostics."""

    def __init__(self, outcome: Outcome) -> None:
        from selc.diag.render_text import render_all

        super().__init__(render_all(outcome.diagnostics))
        self.outcome = outcome


def load(
    target: str,
    facts: Iterable[StrPath] = (),
    roots: Iterable[StrPath] = (),
    *,
    tuple_file: StrPath | None = None,
    native: bool = True,
    max_candidates: int = 1024,
    solver_budget: int = SOLVER_STEPS,
    whole_rows: bool = False,
    require_proof: bool = False,
) -> ModuleType:
    """The selector of a selection under some facts, compiled if it is not in the cache.

    Args:
        target: `path.py`, `path.py:function` or `package.module:function`; never imported.
        facts: facts files; later ones win.
        roots: folders that contain packages to read, beside the installed ones.
        tuple_file: the assignment to start with.
        native: build the native module where there is a compiler.
        max_candidates: values with more candidates cannot be pins.
        solver_budget: solver steps for one assignment of a guard; what is undecided is not legal.
        whole_rows: pin rows of tables as a whole.
        require_proof: fail unless every guard is proved or exhaustively checked.

    Returns:
        The generated package: `select`, `repin`, `PINS` and the others are its attributes.

    Raises:
        CompileError: The input is wrong or not supported, or nothing is legal.
    """
    options = CompileOptions(
        target=str(target),
        facts=tuple(Path(p) for p in facts),
        roots=tuple(Path(p) for p in roots),
        tuple_file=Path(tuple_file) if tuple_file is not None else None,
        native=native,
        emit=("native", "python"),
        max_candidates=max_candidates,
        solver_budget=solver_budget,
        whole_rows=whole_rows,
        require_proof=require_proof,
    )
    key = key_of(options)
    state = cache.state(key)
    known = _LOADED.get(key)
    if state is not None and known is not None and known[0] == state.digest:
        return known[1]
    top = cache.location() / cache.VERSION
    if state is not None and state.exit_code == 0:
        package = loaded.find(top, key, state.files)
        if package is not None:
            return _imported(key, package, state)
    return _made(key, options, top)


def _made(key: str, options: CompileOptions, top: Path) -> ModuleType:
    """Compile, or take what the cache has, and put the package in its place."""
    try:
        work = loaded.workplace(top)
    except OSError as error:
        return _without_cache(key, options, error)
    import shutil

    try:
        _compiled(options, work)
        directory = loaded.settle(top, key, work)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    cache.make_room()
    return _imported(key, directory, cache.state(key))


def _imported(key: str, directory: Path, state: cache.State | None) -> ModuleType:
    name = f"selc_selector_{key[:12]}_{directory.parent.name[-12:]}"
    module = sys.modules.get(name) or _module(name, directory)
    if state is not None:
        _LOADED[key] = (state.digest, module)
    return module


def _without_cache(key: str, options: CompileOptions, error: OSError) -> ModuleType:
    """A selector for this process alone, in a folder that goes when it ends."""
    import atexit
    import shutil
    import tempfile
    import warnings

    why = (
        f"{cache.location()} cannot be written ({error.strerror}): compiled for this process alone"
    )
    warnings.warn(why, RuntimeWarning, stacklevel=4)
    work = Path(tempfile.mkdtemp(prefix="selc-"))
    atexit.register(shutil.rmtree, work, ignore_errors=True)
    return _module(f"selc_selector_{key[:12]}_{work.name[5:]}", _compiled(options, work))


def _compiled(options: CompileOptions, work: Path) -> Path:
    from dataclasses import replace

    from selc.driver.compile import run

    outcome = run(replace(options, out=work / loaded.PACKAGE))
    if outcome.exit_code != 0:
        raise CompileError(outcome)
    return work / loaded.PACKAGE


def _module(name: str, directory: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        name, directory / "__init__.py", submodule_search_locations=[str(directory)]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
