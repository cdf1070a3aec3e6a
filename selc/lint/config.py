"""Configuration: `[tool.selc.lint]` of pyproject.toml or `[lint]` of selc.toml, checked."""

from __future__ import annotations

import fnmatch
import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from selc.diag.diagnostic import Diagnostic, Refused
from selc.diag.span import Span
from selc.diag.suggest import did_you_mean
from selc.lint.names import FUNCTION_LISTS, NAME_LISTS, ROLE_LISTS, Names, libraries, union

_DATA = Path(__file__).parent / "data"
_KEYS: Mapping[str, type | tuple[type, ...]] = {
    "select": list,
    "ignore": list,
    "per-file-ignores": dict,
    "exclude": list,
    "modes": list,
    "summaries": list,
    "calls": int,
    "preview": bool,
    "defaults": bool,
    "fail-on": str,
    "baseline": str,
    "names": dict,
    "roles": dict,
    "functions": dict,
    "pins": dict,
}
_LISTS = {"names": NAME_LISTS, "roles": (*ROLE_LISTS, "kernels"), "functions": FUNCTION_LISTS}
TESTS = ("test", "tests", "benchmark", "benchmarks", "test_*.py", "bench_*.py", "conftest.py")
"""What is no serving code: left out below a linted folder, unless `exclude` says otherwise."""
EXCLUDED = (".git", ".venv", "venv", "__pycache__", "node_modules", ".tox", ".mypy_cache", "build")


@dataclass(frozen=True, slots=True)
class Config:
    """What was configured, and where."""

    root: Path
    path: Path | None = None
    table: Mapping[str, Any] = field(default_factory=dict)
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    preview: bool = False
    modes: tuple[str, ...] = ()
    assume_unguarded: bool = False
    calls: int = 2
    fail_on: str = "warning"
    baseline: Path | None = None

    @property
    def digest(self) -> str:
        """What a cached result depends on beside the source."""
        parts = [
            json.dumps(self.table, sort_keys=True, default=str),
            *(path.read_text(encoding="utf-8") for path in self.data_files()),
            repr((self.modes, self.assume_unguarded, self.calls)),
        ]
        return hashlib.blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()

    def data_files(self) -> list[Path]:
        """Files of names and libraries, the shipped ones first."""
        own = [_DATA / "defaults.toml", _DATA / "libraries.toml"]
        given = [self.root / str(name) for name in self.table.get("summaries", [])]
        return [*own, *given] if self.table.get("defaults", True) else given

    def per_file(self, path: str) -> tuple[str, ...]:
        """Codes that are ignored in one file."""
        found: list[str] = []
        for pattern, codes in self.table.get("per-file-ignores", {}).items():
            if fnmatch.fnmatch(path, pattern) or fnmatch.fnmatch(Path(path).name, pattern):
                found += codes
        return tuple(found)

    def excluded(self, path: Path) -> bool:
        """Whether a file found in a folder is left out."""
        shown = path.as_posix()
        return any(
            fnmatch.fnmatch(shown, pattern) or fnmatch.fnmatch(shown, f"*/{pattern}")
            for pattern in self.table.get("exclude", TESTS)
        )


def load_config(start: Path) -> Config:
    """The configuration that applies to a folder: the nearest file that has one."""
    for folder in (start, *start.parents):
        for name, keys in (("selc.toml", ("lint",)), ("pyproject.toml", ("tool", "selc", "lint"))):
            path = folder / name
            if path.is_file():
                table = _table(path, keys)
                if table is not None:
                    return _checked(path, table)
    return Config(start)


def _table(path: Path, keys: tuple[str, ...]) -> Mapping[str, Any] | None:
    try:
        found: Any = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _wrong(path, f"this is no TOML: {error}", "correct the file") from None
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
        if found is None:
            return None
    return found if isinstance(found, dict) else None


def _checked(path: Path, table: Mapping[str, Any]) -> Config:
    for key, value in table.items():
        kind = _KEYS.get(key)
        if kind is None:
            hint = did_you_mean(key, _KEYS) or f"known keys: {', '.join(sorted(_KEYS))}"
            raise _wrong(path, f"there is no setting `{key}`", hint)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            word = kind.__name__ if isinstance(kind, type) else "value"
            raise _wrong(path, f"`{key}` must be a {word}", f"write `{key} = ...` as a {word}")
        for inner in value if key in _LISTS and isinstance(value, dict) else ():
            if inner not in _LISTS[key]:
                hint = did_you_mean(inner, _LISTS[key]) or f"known: {', '.join(_LISTS[key])}"
                raise _wrong(path, f"there is no list `{key}.{inner}`", hint)
    if table.get("fail-on", "warning") not in ("note", "warning", "error"):
        raise _wrong(path, "`fail-on` must be note, warning or error", "use one of the three")
    _compiles(path, table)
    baseline = table.get("baseline")
    return Config(
        path.parent,
        path,
        table,
        select=tuple(table.get("select", ())),
        ignore=tuple(table.get("ignore", ())),
        preview=bool(table.get("preview", False)),
        modes=tuple(table.get("modes", ())),
        calls=int(table.get("calls", 2)),
        fail_on=str(table.get("fail-on", "warning")),
        baseline=path.parent / baseline if baseline else None,
    )


def _compiles(path: Path, table: Mapping[str, Any]) -> None:
    for key in _LISTS:
        for name, patterns in table.get(key, {}).items():
            for pattern in patterns if isinstance(patterns, list) else []:
                try:
                    re.compile(pattern)
                except (re.error, TypeError) as error:
                    message = f"`{key}.{name}`: `{pattern}` is no regular expression: {error}"
                    raise _wrong(path, message, "correct the pattern") from None


def _wrong(path: Path, message: str, hint: str) -> Refused:
    return Refused(Diagnostic("SEL909", message, Span(str(path), 0, 0, 0, 0), help=hint))


def names_of(config: Config) -> Names:
    """All patterns: the shipped ones, the configured ones, and files of summaries."""
    lists: dict[str, list[str]] = {name: [] for name in (*NAME_LISTS, *ROLE_LISTS, *FUNCTION_LISTS)}
    kernels: list[tuple[re.Pattern[str], tuple[tuple[re.Pattern[str], str], ...]]] = []
    pins: dict[str, str] = {}
    rows: list[Mapping[str, Any]] = []
    modes = list(config.modes)
    tables: list[Mapping[str, Any]] = []
    for path in config.data_files():
        try:
            tables.append(tomllib.loads(path.read_text(encoding="utf-8")))
        except (OSError, tomllib.TOMLDecodeError) as error:
            raise _wrong(
                path, f"cannot read this file of summaries: {error}", "see docs/lint.md"
            ) from None
    for table in [config.table, *reversed(tables)]:
        for key in _LISTS:
            for name, patterns in table.get(key, {}).items():
                if key == "roles" and name == "kernels":
                    kernels += _kernels(patterns)
                elif name in lists:
                    lists[name] += patterns
        pins.update({k: str(v) for k, v in table.get("pins", {}).items()})
        rows += table.get("library", [])
        if config.assume_unguarded and table is not config.table:
            modes += table.get("modes", {}).get("names", [])
    compiled = {name: union(tuple(patterns)) for name, patterns in lists.items()}
    return Names(compiled, tuple(kernels), pins, libraries(rows), tuple(modes))


def _kernels(
    patterns: Mapping[str, Any],
) -> list[tuple[re.Pattern[str], tuple[tuple[re.Pattern[str], str], ...]]]:
    return [
        (
            re.compile(callee),
            tuple((re.compile(name), str(role)) for name, role in fields.items()),
        )
        for callee, fields in patterns.items()
    ]


def with_options(config: Config, **changes: Any) -> Config:
    """The configuration with what the command line says on top."""
    return replace(config, **{key: value for key, value in changes.items() if value is not None})
