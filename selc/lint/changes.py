"""What changed since a revision, by git: lines of files, and files that are new."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from selc.diag.diagnostic import Diagnostic, Refused
from selc.lint.model import Finding

_HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")


def changed_lines(folder: Path, revision: str) -> dict[Path, set[int] | None]:
    """Changed lines of each file (None: the whole file is new), by absolute path."""
    top = Path(_git(folder, revision, "rev-parse", "--show-toplevel").strip())
    text = _git(
        top, revision, "diff", "-U0", "--no-color", "--no-ext-diff", "--no-prefix", revision, "--"
    )
    out: dict[Path, set[int] | None] = {}
    lines: set[int] | None = None
    for row in text.split("\n"):
        if row.startswith("+++ "):
            name = row[4:].split("\t")[0].strip('"')
            lines = set() if name != "/dev/null" else None
            if lines is not None:
                out[top / name] = lines
        elif lines is not None and (match := _HUNK.match(row)):
            first, count = int(match[1]), int(match[2] or 1)
            lines.update(range(first, first + count) if count else (first, first + 1))
    for name in _git(top, revision, "ls-files", "--others", "--exclude-standard").split("\n"):
        if name:
            out[top / name] = None
    return out


def touches(finding: Finding, root: Path, changed: dict[Path, set[int] | None]) -> bool:
    """Whether the change touches the choice or its path."""
    places = [
        (finding.place.path, n) for n in range(finding.place.line, finding.place.end_line + 1)
    ]
    places += [(step.path, step.line) for step in finding.trace]
    for path, line in places:
        lines = changed.get(root / path, set())
        if lines is None or line in lines:
            return True
    return False


def _git(folder: Path, revision: str, *arguments: Sequence[str] | str) -> str:
    command = ["git", "-C", str(folder), *map(str, arguments)]
    try:
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    except FileNotFoundError:
        raise _refused("`--diff` needs git, which is not there", "install git") from None
    except subprocess.TimeoutExpired:
        raise _refused("git did not answer within a minute", "try again without `--diff`") from None
    except subprocess.CalledProcessError as error:
        words = error.stderr.strip().split("\n")[0] or "git failed"
        raise _refused(f"git: {words}", f"is `{revision}` a revision of this repository?") from None
    return done.stdout


def _refused(message: str, hint: str) -> Refused:
    return Refused(Diagnostic("SEL909", message, help=hint))
