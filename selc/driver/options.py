"""What a command asks of the driver; plain data, cheap to import."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from selc.vra.budget import SOLVER_STEPS

if TYPE_CHECKING:
    from pathlib import Path

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
    solver_budget: int = SOLVER_STEPS
    whole_rows: bool = False
    skip: tuple[str, ...] = ()
    require_proof: bool = False
    use_cache: bool = True
    format: str = "text"
    emit_after: str | None = None
