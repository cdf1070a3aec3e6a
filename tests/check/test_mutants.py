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
from tests.check.mutants import Mutant, as_range, mutants, resealed, span_of
from tests.check.same import same_function

SHARED = Path(os.environ.get("SELC_SHARED", Path(__file__).parents[3] / "shared"))
CASES = ["H7", "I3", "I23", "I29", "M5", "M16", "M18", "N8"]


PAGES = """\
def choose(t, wide):
    pages = (t + 7) // 8
    one = pages <= 4
    assert not one or pages <= 32
    algo = "oneshot" if one else "twoshot"
    blocks = 16 * pages if pages < 9 else 144
    {returned}
"""

PAGES_FACTS = """\
selection: {function: choose, scope: launch, returns: {'*': bits}}
inputs:
  t: {kind: runtime, type: int, range: [1, 512]}
  wide: {kind: runtime, type: bool, values: [false, true]}
"""
"""Pins `pages` itself where two points follow it, and what is chosen where one does."""


def compiled(case: str, folder: Path) -> dict[str, Any]:
    return compiled_from(SHARED / "cases" / case, folder)


def pages(folder: Path, returned: str) -> dict[str, Any]:
    (folder / "selector.py").write_text(PAGES.replace("{returned}", returned))
    (folder / "facts.yaml").write_text(PAGES_FACTS)
    return compiled_from(folder, folder / "out")


def compiled_from(source: Path, folder: Path) -> dict[str, Any]:
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


def test_a_guard_that_may_be_vacuous_says_so(tmp_path: Path) -> None:
    manifest = pages(tmp_path, "return {'algo': algo}")
    assert [g.get("unseen") for g in manifest["guards"]] == [True]
    made = [m for m in mutants(manifest) if m.kind == "guards: unseen taken away"]
    assert len(made) == 1
    assert not passes(made[0], tmp_path / "out")


TILES = """
def choose(m):
    row = m // 100
    tile = {"w": (16, 64, 128, 256)[row], "s": (8, 4, 2, 1)[row]}
    assert tile["w"] * tile["s"] <= 256
    assert m <= tile["w"] * 3
    return {"tile": tile}
"""
TILES_FACTS = """
selection: {function: choose, scope: launch, returns: {"*": bits}}
inputs: {m: {kind: runtime, type: int, range: [1, 300]}}
"""


def test_no_place_of_a_field_is_dropped(tmp_path: Path) -> None:
    (tmp_path / "selector.py").write_text(TILES)
    (tmp_path / "facts.yaml").write_text(TILES_FACTS)
    manifest = compiled_from(tmp_path, tmp_path / "out")
    original = resealed(manifest)
    assert not [f for f in examine(original, tmp_path / "out") if f.result == "failed"]
    made = [m for m in mutants(manifest) if m.kind == "graph0: place dropped"]
    assert len(made) == 2
    assert not any(passes(m, tmp_path / "out") for m in made)


def test_no_reading_is_dropped_by_calling_a_guard_unseen(tmp_path: Path) -> None:
    manifest = pages(tmp_path, "return {'algo': algo, 'blocks': blocks}")
    assert ", mixed v" in manifest["graph"]
    made = [m for m in mutants(manifest) if m.kind == "guards: unseen put on"]
    assert len(made) == 1
    assert ", mixed v" not in made[0].manifest["graph"]
    assert not passes(made[0], tmp_path / "out")


def test_candidates_as_a_range(tmp_path: Path) -> None:
    manifest = pages(tmp_path, "return {'algo': algo, 'blocks': blocks}")
    folder = tmp_path / "out"
    span = span_of(manifest["pins"][0])
    assert span == (1, 64, 1)
    for exact, kept in ((True, span), (False, span), (False, (-6, 64, 1))):
        base = resealed(as_range(manifest, 0, kept, exact))
        findings = {f.name: f for f in examine(base, folder, run=False)}
        assert [f for f in findings.values() if f.result == "failed"] == []
        assert findings["candidates"].result == ("sampled" if exact else "ok")
    made = [m for m in mutants(manifest) if m.kind.startswith(("pins: range", "pins: bound"))]
    assert {m.kind for m in made} == {
        "pins: range with less", "pins: bound with less", "pins: range with more"
    }  # fmt: skip
    for mutant in made:
        failed = [f.name for f in examine(mutant.manifest, folder, False) if f.result == "failed"]
        assert "candidates" in failed, mutant[:2]
