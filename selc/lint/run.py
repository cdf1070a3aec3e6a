"""One run: which files, from the cache or by linting, then suppressions, selection and baseline."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from selc.diag.diagnostic import Diagnostic, Refused
from selc.diag.source_text import decode
from selc.diag.span import Span
from selc.lint import baseline, changes, suppress
from selc.lint.cache import Cache, Digests, trim
from selc.lint.config import EXCLUDED, Config, names_of
from selc.lint.model import LEVELS, Finding
from selc.lint.registry import all_rules, find_rule
from selc.lint.unit import from_json, lint_file, own, session_of

_CHUNK = 60
_PARALLEL_FROM = 40
_MOST_JOBS = 3


@dataclass(slots=True)
class Report:
    """What a run gave."""

    findings: list[Finding] = field(default_factory=list)
    files: int = 0
    cached: int = 0
    suppressed: list[Finding] = field(default_factory=list)
    known: int = 0
    stale: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says beside the configuration."""

    paths: tuple[Path, ...] = ()
    baseline: Path | None = None
    write_baseline: bool = False
    diff: str | None = None
    jobs: int = 0
    use_cache: bool = True


def lint(config: Config, options: Options) -> Report:
    """Lint files and folders."""
    root = Path(os.path.abspath(Path.cwd()))  # noqa: PTH100 links stay as they were named
    files = list(dict.fromkeys(source_files(options.paths or (root,), config)))
    report = Report(files=len(files))
    cache = Cache.open(config.digest + str(root), options.use_cache)
    digests = Digests()
    found: list[Finding] = []
    missing: list[Path] = []
    for path in files:
        entry = cache.load(path, digests)
        if entry is None:
            missing.append(path)
        else:
            report.cached += 1
            found += from_json(entry)
    for path, result, looked in _lint_all(missing, root, config, options.jobs):
        cache.store(path, [Path(each) for each in looked], result, digests)
        found += from_json(result)
    if missing and options.use_cache:
        trim()
    found = _select(config, _unique(found))
    found = _suppressed(config, files, root, found, report)
    if options.diff is not None:
        changed = changes.changed_lines(root, options.diff)
        found = [each for each in found if changes.touches(each, root, changed)]
    found.sort(key=lambda each: (each.place, each.code))
    report.findings = found
    _apply_baseline(config, options, report)
    return report


def source_files(paths: Sequence[Path], config: Config) -> Iterable[Path]:
    """Python files of folders, and files that are named."""
    for path in paths:
        whole = Path(os.path.abspath(path))  # noqa: PTH100
        if whole.is_dir():
            yield from _walk(whole, config)
        elif whole.exists():
            yield whole
        else:
            hint = "name files or folders that exist"
            place = Span(str(path), 0, 0, 0, 0)
            raise Refused(Diagnostic("SEL909", "there is no such file or folder", place, help=hint))


def _walk(folder: Path, config: Config) -> Iterable[Path]:
    for top, folders, names in os.walk(folder):
        folders[:] = sorted(
            name for name in folders if name not in EXCLUDED and not config.excluded(Path(name))
        )
        for name in sorted(names):
            path = Path(top, name)
            if name.endswith(".py") and not (
                config.excluded(path.relative_to(folder)) or config.excluded(Path(name))
            ):
                yield path


def _lint_all(
    files: list[Path], root: Path, config: Config, jobs: int
) -> Iterable[tuple[Path, dict[str, Any], list[str]]]:
    chunks = [files[start : start + _CHUNK] for start in range(0, len(files), _CHUNK)]
    wanted = min(jobs or os.cpu_count() or 1, jobs if jobs else _MOST_JOBS, len(chunks))
    if len(files) < _PARALLEL_FROM or wanted < 2:
        for chunk in chunks:
            yield from lint_chunk((chunk, root, config))
        return
    import multiprocessing

    context = multiprocessing.get_context("fork" if hasattr(os, "fork") else "spawn")
    with context.Pool(wanted) as pool:
        for results in pool.imap(lint_chunk, [(chunk, root, config) for chunk in chunks]):
            yield from results


def lint_chunk(
    task: tuple[list[Path], Path, Config],
) -> list[tuple[Path, dict[str, Any], list[str]]]:
    """Lint some files that probably share modules. Syntax trees have no cycles worth collecting."""
    files, root, config = task
    enabled = gc.isenabled()
    gc.disable()
    try:
        names = names_of(config)
        session = session_of(root, names, config, guarded=False)
        guarded = None
        if config.modes and not config.assume_unguarded:
            guarded = session_of(root, names, config, guarded=True)
        out = []
        for path in files:
            unit = lint_file(path, session, guarded, config)
            out.append((path, unit.as_json(), sorted(str(each) for each in unit.looked)))
    finally:
        if enabled:
            gc.enable()
            if len(files) >= _CHUNK:
                del session, guarded
                gc.collect()
    return out


def _unique(found: list[Finding]) -> list[Finding]:
    """One finding for each rule and place, with the shortest path."""
    best: dict[object, Finding] = {}
    for each in found:
        key = (each.code, each.place)
        if key not in best or len(each.trace) < len(best[key].trace):
            best[key] = each
    return list(best.values())


def _select(config: Config, found: list[Finding]) -> list[Finding]:
    on = selected(config)
    return [
        each
        for each in found
        if each.code in on and not _listed(each, config.per_file(each.place.path))
    ]


def selected(config: Config) -> set[str]:
    """Codes that are on."""
    out = set()
    for each in all_rules():
        on = each.default and (not each.preview or config.preview)
        if config.assume_unguarded and each.code == "SEL107":
            on = True
        if config.select:
            on = any(_names_rule(wanted, each.code) for wanted in config.select)
        if on and not any(_names_rule(wanted, each.code) for wanted in config.ignore):
            out.add(each.code)
    return out


def check_codes(codes: Iterable[str]) -> None:
    """Refuse what names no rule."""
    for code in codes:
        if code.upper() != "ALL" and not any(_names_rule(code, each.code) for each in all_rules()):
            hint = "`selc explain` lists the rules"
            raise Refused(Diagnostic("SEL909", f"there is no rule `{code}`", help=hint))


def _names_rule(wanted: str, code: str) -> bool:
    if wanted.upper() == "ALL" or code.startswith(wanted.upper()):
        return True
    known = find_rule(wanted)
    return known is not None and known.code == code


def _listed(finding: Finding, codes: Sequence[str]) -> bool:
    return any(_names_rule(code, finding.code) for code in codes)


def _suppressed(
    config: Config, files: Sequence[Path], root: Path, found: list[Finding], report: Report
) -> list[Finding]:
    """What comments leave; comments that suppress nothing are findings."""
    on = selected(config)
    by_file: dict[str, list[Finding]] = {}
    for each in found:
        by_file.setdefault(each.place.path, []).append(each)
    out: list[Finding] = []
    linted = {_shown(path, root): path for path in files}
    for shown in dict.fromkeys([*linted, *by_file]):
        path = linted.get(shown) or root / shown
        try:
            data = path.read_bytes()
        except OSError:
            data = b""
        here = by_file.get(shown, [])
        if b"selc:" not in data:
            out += here
            continue
        text = decode(data)
        comments, blank = suppress.read(shown, text)
        whole = suppress.extents(text)
        for finding in here:
            hits = [each for each in comments if each.covers(finding, whole)]
            for comment in hits:
                comment.used = True
            (report.suppressed if hits else out).append(finding)
        if shown in linted:
            out += [each for each in _judged(comments, blank, on) if each.code in on]
    return out


def _judged(
    comments: list[suppress.Suppression], blank: list[Any], on: set[str]
) -> Iterable[Finding]:
    for each in comments:
        known = find_rule(each.code)
        if known is None:
            message = f"there is no rule `{each.code}`: this comment suppresses nothing"
            yield own("SEL003", each.place.path, each.place.line, message, each.place.column)
        elif not each.used and known.code in on:
            message = f"nothing here is reported as {known.code}: this comment suppresses nothing"
            yield own("SEL002", each.place.path, each.place.line, message, each.place.column)
    for place in blank:
        message = "this comment names no rule: it suppresses nothing"
        yield own("SEL003", place.path, place.line, message, place.column)


def _shown(path: Path, root: Path) -> str:
    try:
        return path.relative_to(root).as_posix()
    except ValueError:
        return path.as_posix()


def _apply_baseline(config: Config, options: Options, report: Report) -> None:
    path = options.baseline or config.baseline
    if options.write_baseline:
        if path is None:
            hint = 'add `--baseline FILE`, or `baseline = "..."` to the configuration'
            raise Refused(Diagnostic("SEL909", "there is no name for the baseline", help=hint))
        baseline.write(path, report.findings)
        report.known = len(report.findings)
        report.findings = []
    elif path is not None and (path.exists() or options.baseline is not None):
        fresh, stale = baseline.subtract(report.findings, baseline.read(path))
        report.known = len(report.findings) - len(fresh)
        report.findings = fresh
        linted_all = options.diff is None
        report.stale = stale if linted_all else []


def fails(report: Report, level: str) -> bool:
    """Whether anything is at or above a level."""
    least = LEVELS.index(level)
    return any(LEVELS.index(each.level) >= least for each in report.findings)


def shortened(finding: Finding, steps: int) -> Finding:
    """The same finding with fewer steps, first and last kept."""
    if len(finding.trace) <= steps:
        return finding
    half = steps // 2
    return replace(finding, trace=(*finding.trace[:half], *finding.trace[-half:]))
