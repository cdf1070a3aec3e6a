"""Torn rows of tables: a warning where pins hold some columns, none where they hold the key."""

from __future__ import annotations

from pathlib import Path

import pytest

from selc.diag.diagnostic import Sink
from selc.driver.pipeline import Clock, Decided, Plan, _cuttable, decide

SOURCE = """
ROWS = {{1: {{"k": 32, "w": 4}}, 64: {{"k": 64, "w": 8}}, 512: {{"k": 128, "w": 2}}}}


def f(m):
    row = min(ROWS, key=lambda count: abs(count - m))
    tile = ROWS[row]
    k = tile["k"]
    width = tile["w"]
    order = k + width
    return {{"k": k, {extra}"blocks": (m + width - 1) // width}}
"""
FACTS = """
selection:
  function: f
  scope: launch
  returns: {"*": bits, blocks: neutral}
inputs:
  m: {kind: runtime, range: [1, 600]}
"""


def decided(tmp_path: Path, extra: str) -> tuple[Decided, list[str]]:
    source, facts = tmp_path / "f.py", tmp_path / "f.yaml"
    source.write_text(SOURCE.format(extra=extra))
    facts.write_text(FACTS)
    sink = Sink()
    found = decide(Plan(str(source), (facts,), ()), None, sink, Clock())
    return found, [d.code for d in sink]


def test_a_column_is_held(tmp_path: Path) -> None:
    found, codes = decided(tmp_path, "")
    assert [p.name for p in found.residual.pins] == ["f.k"]
    assert "SEL941" in codes  # `blocks` follows the width of the row that the batch chooses


def test_the_key_is_held(tmp_path: Path) -> None:
    found, codes = decided(tmp_path, '"order": order, "w": width, ')
    assert [p.name for p in found.residual.pins] == ["f.row"]
    assert "SEL941" not in codes  # `blocks` follows the batch, but by the width of the held row


def test_only_sites_above_protected_points_are_cut(tmp_path: Path) -> None:
    found, _ = decided(tmp_path, "")
    names = {s.name for s in _cuttable(found.program)}
    assert {"f.k", "f.row"} <= names
    assert not {"f.width", "f.order"} & names


@pytest.mark.parametrize("extra", ["", '"order": order, '])
def test_pins_are_cuttable(tmp_path: Path, extra: str) -> None:
    found, _ = decided(tmp_path, extra)
    names = {s.name for s in _cuttable(found.program)}
    assert {p.name for p in found.residual.pins} <= names
