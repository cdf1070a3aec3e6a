"""`selc check`: an emitted selector against what its manifest claims.

The checks are those of `selc.check`, which uses nothing of the compiler; only `--against-source`
compiles the source again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from selc.check.findings import Finding
from selc.diag.diagnostic import Diagnostic, Refused
from selc.diag.outcome import Outcome
from selc.diag.table import table

FORMAT: Final = 1
NEEDED: Final = ("hash", "seal", "files", "graph", "graph0", "pins", "knobs", "legal", "inputs")
WIDTH: Final = 100


def run(directory: Path, against_source: bool) -> Outcome:
    """Check one folder: exit 0 if everything holds, 1 if something does not, 2 if unreadable."""
    try:
        manifest = read_manifest(directory)
        findings = _findings(directory, manifest, against_source)
    except Refused as refused:
        return Outcome(2, diagnostics=list(refused.diagnostics))
    failed = [f for f in findings if f.result == "failed"]
    answer = {
        "format": FORMAT,
        "directory": str(directory),
        "family": manifest.get("family"),
        "selector": manifest["hash"],
        "ok": not failed,
        "checks": [{"name": f.name, "result": f.result, "detail": f.detail} for f in findings],
    }
    rows = [[f.result, f.name, f.detail] for f in findings]
    lines = [f"{directory}: selector {manifest['hash'][:16]} of {manifest.get('family')}"]
    lines += table(["result", "check", "detail"], rows, WIDTH)
    diagnostics = [
        Diagnostic(
            "SEL935",
            f"{directory}: {f.name}: {f.detail}",
            help="compile the selection again, and use the new folder",
        )
        for f in failed
    ]
    return Outcome(1 if failed else 0, "\n".join(lines), answer, diagnostics)


def read_manifest(directory: Path) -> dict[str, Any]:
    """The manifest of an emitted selector.

    Raises:
        Refused: there is none that this version reads.
    """
    path = directory / "manifest.json"
    try:
        data = json.loads(path.read_bytes())
    except OSError as error:
        raise _unreadable(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise _unreadable(f"{path} is not JSON: {error}") from None
    if not isinstance(data, dict) or any(name not in data for name in NEEDED):
        raise _unreadable(f"{path} is not the manifest of an emitted selector")
    if data.get("format") != FORMAT:
        raise _unreadable(f"{path} has format {data.get('format')!r}; selc reads {FORMAT}")
    return data


def _unreadable(message: str) -> Refused:
    hint = "name a folder that `selc compile` wrote"
    return Refused(Diagnostic("SEL936", message, help=hint))


def _findings(directory: Path, manifest: dict[str, Any], against: bool) -> list[Finding]:
    from selc.check.examine import examine
    from selc.check.values import Unreadable

    try:
        found = examine(manifest, directory)
    except Unreadable as error:
        raise _unreadable(f"{directory / 'manifest.json'}: {error}") from None
    if against:
        from selc.driver.against import source

        found += source(manifest)
    return found
