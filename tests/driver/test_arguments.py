"""Sequences as arguments: where they stand, what is read of them, examples and profiles."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from selc.driver.arguments import AGGREGATES, admits, aggregates_of, sequence_of
from selc.ir.domain import Domain
from selc.ir.program import SequenceInput
from tests.adapters import load
from tests.driver.conftest import Compile

SOURCE = """\
def split(first, lens, heads, widths, last):
    longest = max(lens)
    splits = 8 if longest > 1024 else 1
    grid = min(sum(lens), 64) + first + heads + last + len(widths)
    return {"splits": splits, "grid": grid}
"""

FACTS = """\
selection:
  function: split
  scope: launch
  returns: {splits: bits, grid: neutral}
facts: {heads: 8}
inputs:
  last: {kind: runtime, range: [0, 3]}
  widths: {kind: runtime, length: [1, 4], element: {range: [1, 8]}}
  lens: {kind: runtime, length: [1, 16], element: {range: [1, 4096]}}
  first: {kind: runtime, range: [0, 3]}
"""


@pytest.fixture
def split(project: Path) -> Path:
    (project / "plan.py").write_text(SOURCE)
    (project / "facts.yaml").write_text(FACTS)
    return project


def test_a_selector_over_sequences(compiled: Compile, split: Path) -> None:
    outcome = compiled()
    assert outcome.exit_code == 0
    assert outcome.json["points"][0]["depends_on"] == ["max(lens)"]
    manifest = json.loads((split / "plan_selector/manifest.json").read_text())
    inputs = manifest["inputs"]
    assert [i["name"] for i in inputs] == ["first", "lens", "widths", "last"]
    assert inputs[1]["type"] == "sequence"
    assert {a["name"] for a in inputs[1]["aggregates"]} >= {"max(lens)", "sum(lens)"}
    selector = load(split / "plan_selector/__init__.py", "plan_selector_over_sequences")
    example = {i["name"]: i["example"] for i in inputs}
    assert selector.select(**example) is not None
    assert selector.select(1, [5, 2000], [3, 3], 2).grid == 64 + 1 + 8 + 2 + 2
    assert selector.select_unpinned(1, [5, 2000], [3, 3], 2).splits == 8
    with pytest.raises(selector.SelectionError):
        selector.select(1, [], [3], 2)


def test_a_profile_over_sequences(compiled: Compile, split: Path) -> None:
    def line(lens: object, count: int) -> str:
        inputs = {"first": 1, "lens": lens, "widths": [2], "last": 0}
        return json.dumps({"format": 1, "family": "split", "inputs": inputs, "count": count}) + "\n"

    (split / "p.jsonl").write_text(line([4, 5], 3) + line([4, 2000], 2) + line([5000], 9))
    outcome = compiled(profile=split / "p.jsonl")
    assert [d.code for d in outcome.diagnostics] == ["SEL934"]
    assert outcome.json["tuple"] == {"split.splits": 1}


@given(
    st.lists(st.integers(-5, 20), min_size=1, max_size=6),
    st.sets(st.sampled_from(["len", "min", "max", "sum"]), min_size=1),
)
def test_examples_have_the_aggregates_asked_for(values: list[int], functions: set[str]) -> None:
    if "sum" in functions or len(functions) > 1:
        functions.add("len")  # as in a lowered program
    leaves = {how: f"{how}(x)" for how in sorted(functions)}
    sequence = SequenceInput("x", "runtime", Domain(1, 6), Domain(-5, 20), leaves)
    read = {how: AGGREGATES[how](values) for how in functions}
    made = sequence_of(sequence, read)
    assert admits(sequence, made)
    assert aggregates_of(sequence, made) == {leaves[how]: v for how, v in read.items()}


def test_what_is_no_such_sequence() -> None:
    sequence = SequenceInput("x", "runtime", Domain(1, 2), Domain(0, 9), {})
    for value in ([], [1, 2, 3], [10], [True], "1", None, {1: 1}):
        assert not admits(sequence, value)
