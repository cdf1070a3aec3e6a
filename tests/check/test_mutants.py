"""No change of a certificate that changes its meaning passes the checker, however well sealed.

A survivor among the mutants of a graph has to be the same function: the reference interpreter,
which the checker does not use, compares it with the original on every call of small domains, and on
many of large ones, with and without the pins overwritten.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from selc.check.examine import examine
from selc.check.values import Unreadable
from selc.driver.compile import run
from selc.driver.options import CompileOptions
from tests.check.mutants import Mutant, mutants, resealed
from tests.check.same import same_function

SHARED = Path(os.environ.get("SELC_SHARED", Path(__file__).parents[3] / "shared"))
CASES = ["H7", "I3", "I23", "I29", "M5", "M16", "M18", "N8"]


def compiled(case: str, folder: Path) -> dict[str, Any]:
    source = SHARED / "cases" / case
    outcome = run(
        CompileOptions(
            target=str(source / "selector.py"),
            facts=(source / "facts.yaml",),
            out=folder,
            emit=("python",),
            native=False,
            use_cache=False,
        )
    )
    assert outcome.exit_code in (0, 1), outcome.diagnostics
    manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    return manifest


def passes(mutant: Mutant, folder: Path, run: bool = False) -> bool:
    try:
        findings = examine(mutant.manifest, folder, run)
    except Unreadable:
        return False
    return not any(f.result == "failed" for f in findings)


@pytest.mark.skipif(not SHARED.is_dir(), reason="no shared cases; SELC_SHARED names their folder")
@pytest.mark.parametrize("case", CASES)
def test_what_passes_is_the_same(case: str, tmp_path: Path) -> None:
    manifest = compiled(case, tmp_path)
    original = resealed(manifest)
    assert not [f for f in examine(original, tmp_path) if f.result == "failed"]
    made: Counter[str] = Counter()
    for mutant in mutants(manifest):
        made[mutant.kind] += 1
        if passes(mutant, tmp_path):
            graph = mutant.kind.split(":")[0]
            assert graph in ("graph", "graph0"), mutant[:2]
            if not same_function(manifest, mutant.manifest, graph):
                assert not passes(mutant, tmp_path, run=True), mutant[:2]
    assert {"graph: role", "graph0: role", "scope"} <= set(made)
