"""`selc compile`: from options to an answer, an exit code, and a folder with the selector.

A selector is written only where the answer is yes. On exit 1 the folder holds the manifest alone,
so that nobody imports a selector that the latest compilation does not stand for.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from selc.diag.diagnostic import Diagnostic, Refused, Sink
from selc.diag.outcome import Outcome
from selc.diag.suggest import did_you_mean
from selc.driver import cache, messages
from selc.driver.cachekey import key_of
from selc.driver.options import CompileOptions
from selc.driver.pipeline import Clock, Decided, Plan, decide
from selc.passes.names import DECISIONS, PASS_NAMES

if TYPE_CHECKING:
    from selc.codegen.spec import SelectorSpec

RECURSION: Final = 20_000
_SPLIT: Final = "compile its parts as selections of their own, or narrow the inputs' ranges"
MANIFEST: Final = "manifest.json"
NATIVE: Final = "_native.abi3.so"
HEADER: Final = "selector.h"


def run(options: CompileOptions) -> Outcome:
    """Compile, or repeat what an equal compilation said."""
    with deep():
        return _run(options)


@contextmanager
def deep() -> Iterator[None]:
    """Room for walks as deep as a selection of some thousand choices."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, RECURSION))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def _run(options: CompileOptions) -> Outcome:
    clock = Clock()
    problem = None
    try:
        check_options(options)
        key = key_of(options) if options.use_cache else ""
        entry = cache.load(key) if key else None
        if entry is not None:
            return _outcome(entry, _install(entry, options), "hit", clock)
        with cache.building(key) if key else nullcontext():
            entry = cache.load(key) if key else None
            if entry is not None:
                return _outcome(entry, _install(entry, options), "hit", clock)
            entry, directory = _compile(options, clock)
            if key:
                problem = cache.store(key, entry)
    except Refused as refused:
        if not refused.diagnostics:
            raise AssertionError("refused without a reason") from refused
        return Outcome(2, diagnostics=list(refused.diagnostics))
    except RecursionError:
        message = "the selection is too deep to be analysed: too many choices build on each other"
        return Outcome(2, diagnostics=[Diagnostic("SEL901", message, help=_SPLIT)])
    return _outcome(entry, directory, "miss", clock, problem)


def check_options(options: CompileOptions) -> None:
    """Refuse what is asked for and does not exist.

    Raises:
        Refused: an artifact or a pass of that name is not there.
    """
    for name in (*options.skip, *((options.emit_after,) if options.emit_after else ())):
        known = (*PASS_NAMES, *DECISIONS) if name in options.skip else (*PASS_NAMES, "all")
        if name not in known:
            hint = did_you_mean(name, known) or f"the passes are: {', '.join(known)}"
            raise _wrong(f"there is no pass `{name}`", hint)


def _wrong(message: str, hint: str) -> Refused:
    return Refused(Diagnostic("SEL909", message, help=hint))


# --- a compilation ------------------------------------------------------------------------------


def _compile(options: CompileOptions, clock: Clock) -> tuple[cache.Entry, Path]:
    sink = Sink()
    plan = Plan(
        options.target, options.facts, options.roots, options.max_candidates,
        options.whole_rows, frozenset(options.skip), options.solver_budget,
    )  # fmt: skip
    try:
        decided = decide(plan, options.profile, sink, clock)
        with clock.stage("codegen"):
            return _written(decided, plan, options, sink)
    except Refused as refused:
        raise Refused(*sink, *(d for d in refused.diagnostics if d not in sink.items)) from None


def _written(
    decided: Decided, plan: Plan, options: CompileOptions, sink: Sink
) -> tuple[cache.Entry, Path]:
    """Judge, write the folder, and say what there is to keep."""
    from selc.codegen import emit, emit_manifest
    from selc.driver import describe, verdict
    from selc.driver.manifest import manifest
    from selc.driver.selector import specification
    from selc.driver.texts import texts

    whole = manifest(decided, describe.answer(decided), plan)
    reasons: list[Diagnostic] = []
    if options.tuple_file is not None:
        spec = specification(decided, whole, {})
        reasons += _commit(decided, options.tuple_file, spec)
    reasons += verdict.nothing_legal(decided)
    reasons += verdict.unproved(decided) if options.require_proof else []
    answer = describe.answer(decided)
    spec = specification(
        decided,
        {**whole, "tuple": answer["tuple"], "knobs": answer["knobs"]},
        texts(decided, options),
    )
    directory = options.out or default_folder(decided.program.family)
    if reasons:
        written = emit_manifest(spec, directory)
    else:
        wanted = frozenset(options.emit) & {"native", "python", "header"}
        keep = cache.native if options.use_cache else None
        written = emit(spec, directory, wanted, options.native, sink, keep)
    directory = Path(written.directory)
    diagnostics = [*sink, *reasons]
    answer["diagnostics"] = messages.public(diagnostics)
    entry = cache.Entry(
        exit_code=1 if reasons else 0,
        answer=answer,
        diagnostics=messages.dump(diagnostics),
        sources=decided.program.sources,
        files={name: (directory / name).read_bytes() for name in written.files},
        reason=written.reason,
        followed={} if "html" in options.emit else decided.program.followed,  # it shows whole files
    )
    return entry, directory


def _commit(decided: Decided, path: Path, spec: SelectorSpec) -> list[Diagnostic]:
    """Put a tuple file's values in force; why not, if it does not hold here."""
    from selc.codegen import hash_of
    from selc.driver.tuples import read_tuple
    from selc.driver.verdict import wrong_tuple

    committed = read_tuple(path, decided)
    found = wrong_tuple(decided, committed, hash_of(spec))
    if not found and decided.legality.legal:
        decided.chosen = committed.values
    return found


def default_folder(family: str) -> Path:
    """Where a selector goes unless -o says otherwise."""
    from selc.codegen.names import identifier

    return Path("build", f"{identifier(family)}_selector")


def _install(entry: cache.Entry, options: CompileOptions) -> Path:
    """Put the files of a cached compilation in place, unless they are there."""
    directory = options.out or default_folder(entry.answer["family"])
    try:
        there = {p.name: p.read_bytes() for p in directory.iterdir() if p.is_file()}
    except OSError:
        there = {}
    if there == dict(entry.files):
        return directory.absolute()
    from selc.codegen import install

    return install(directory, entry.files, executable=frozenset({NATIVE}))


# --- the answer ---------------------------------------------------------------------------------


def _outcome(
    entry: cache.Entry, directory: Path, state: str, clock: Clock, problem: str | None = None
) -> Outcome:
    from selc.driver.report import report

    answer = {
        **entry.answer,
        "artifacts": artifacts(entry, directory),
        "cache": state,
        "timings_ms": clock.milliseconds(),
    }
    text = report(answer, sorted(entry.files), entry.reason)
    if problem is not None:
        answer["cache_problem"] = problem
        text += f"\n         not kept: {problem}; $SELC_CACHE_DIR names another folder"
    return Outcome(entry.exit_code, text, answer, messages.read(entry.diagnostics))


def artifacts(entry: cache.Entry, directory: Path) -> dict[str, Any]:
    """The paths of what was written; null for what was not."""

    def there(name: str) -> str | None:
        return str(directory / name) if name in entry.files else None

    return {
        "dir": str(directory),
        "module": directory.name if entry.exit_code == 0 else None,
        "native": there(NATIVE),
        "header": there(HEADER),
        "manifest": there(MANIFEST),
    }
