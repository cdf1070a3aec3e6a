"""What a command asks of the driver and what it gets back; plain data, cheap to import."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pathlib import Path

    from selc.diag.diagnostic import Diagnostic

ARTIFACTS: Final = ("native", "python", "header", "ir", "dot", "html")
"""What `--emit` can name."""

DEFAULT_ARTIFACTS: Final = ("native", "python", "header")
"""What a compilation writes when `--emit` is not given; the manifest is always written."""


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """One compilation, as asked for on the command line."""

    target: str
    facts: tuple[Path, ...] = ()
    roots: tuple[Path, ...] = ()
    out: Path | None = None
    tuple_file: Path | None = None
    profile: Path | None = None
    emit: tuple[str, ...] = DEFAULT_ARTIFACTS
    native: bool = True
    max_candidates: int = 1024
    whole_rows: bool = False
    skip: tuple[str, ...] = ()
    require_proof: bool = False
    use_cache: bool = True
    format: str = "text"
    emit_after: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command has to say: the exit code, both forms of the answer, and what to warn of."""

    exit_code: int
    text: str = ""
    json: dict[str, Any] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)
