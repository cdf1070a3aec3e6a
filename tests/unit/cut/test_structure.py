"""A cut at a join that G1 sees past: fewer pins than at the conditions it was made of."""

from __future__ import annotations

from pathlib import Path

import pytest

from selc.cut import place
from selc.diag.diagnostic import Sink
from selc.driver.pipeline import Clock, Plan, decide

SOURCE = """
def f(m):
    if m <= 16:
        band = 0
    elif m <= 64:
        band = 1
    else:
        band = 2
    if band == 0:
        deep, swap = 256, True
    elif band == 1:
        deep, swap = 256, False
    else:
        deep, swap = 128, False
    return {"deep": deep, "swap": swap}
"""
FACTS = """
selection: {function: f, scope: launch, returns: {"*": bits}}
inputs:
  m: {kind: runtime, range: [1, 200]}
"""


@pytest.mark.parametrize(("structure", "pins"), [(True, ["f.band"]), (False, None)])
def test_the_join_is_pinned(
    structure: bool, pins: list[str] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, facts = tmp_path / "f.py", tmp_path / "f.yaml"
    source.write_text(SOURCE)
    facts.write_text(FACTS)
    if not structure:
        monkeypatch.setattr(place._Search, "by_structure", lambda self, found: found)
    found = decide(Plan(str(source), (facts,), ()), None, Sink(), Clock())
    names = [p.name for p in found.residual.pins if not p.free]
    if pins is None:
        assert len(names) == 2
    else:
        assert names == pins
        assert found.legality.legal == 3
