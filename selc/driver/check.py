"""`selc check`: an emitted selector against what its manifest claims.

Checked: digests and seal; that R is well formed and its bits points read no batch input; that the
legal relation comes out the same when it is decided anew on R; that the tuple is in it; and, on
sampled calls, that R agrees with G0 under the same pins. The decision procedures are those of the
compiler: this finds damage and drift, it is no second opinion on them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from selc.diag.diagnostic import Diagnostic, Refused
from selc.driver import checks
from selc.driver.checks import Finding
from selc.driver.options import Outcome
from selc.driver.table import table

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
    from selc.ir.read import ReadError
    from selc.ir.read_whole import read_program, read_residual
    from selc.ir.verify import InvalidGraph, verify_program, verify_residual

    found = checks.digests(directory, manifest)
    try:
        residual, program = read_residual(manifest["graph"]), read_program(manifest["graph0"])
        verify_residual(residual)
        verify_program(program)
    except (ReadError, InvalidGraph, TypeError, AttributeError) as error:
        first = str(error).splitlines()[0]
        return [*found, Finding("graphs", "failed", f"not well formed: {first}")]
    found.append(Finding("graphs", "ok", "G0 and R read back and are well formed"))
    found.append(checks.noninterference(residual))
    try:
        found.append(checks.parameters(residual, manifest))
        if found[-1].result == "ok":
            found += checks.legality(residual, manifest)
            found.append(checks.agreement(program, residual))
        if against:
            found += checks.source(manifest)
    except (LookupError, TypeError, AttributeError) as error:
        found.append(Finding("manifest", "failed", f"an entry is missing or malformed: {error!r}"))
    return found
