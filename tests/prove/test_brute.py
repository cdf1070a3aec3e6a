"""What the compiler calls legal is what CPython, with sites overwritten, finds on every input."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.prove.families import families
from tests.prove.judged import Deployment, judge_case, judge_deployment

SHARED = Path(os.environ.get("SELC_SHARED", Path(__file__).parents[3] / "shared")) / "cases"
FOLDERS = sorted(p for p in SHARED.iterdir() if p.is_dir()) if SHARED.is_dir() else []
SLOW = {("attention_fa3", "h100 gemma-7b-it vllm tp1"), ("gemm", "h100 llama-3.1-70b vllm tp4")}


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(c, marks=pytest.mark.slow if (c.family, c.layers) in SLOW else ())
        for c in families(large=False)
    ],
    ids=lambda c: f"{c.family} {c.layers}".replace(" ", "-"),
)
def test_family(case: Deployment, tmp_path: Path) -> None:
    answer, tally = judge_deployment(case, tmp_path)
    assert tally.differences == []
    assert tally.assignments == answer["legal"]["assignments"]
    assert tally.legal == answer["legal"]["legal"]


@pytest.mark.slow
def test_a_field_without_a_name(tmp_path: Path) -> None:
    tokens = "inputs: {num_tokens: {type: int, range: [1, 1600]}}\n"
    case = Deployment("moe", "h100 qwen3-30b-a3b sglang tp4", tokens)
    _, tally = judge_deployment(case, tmp_path)
    assert tally.differences == []
    assert tally.legal == tally.assignments == 30


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda f: f.name)
def test_case(folder: Path, tmp_path: Path) -> None:
    answer, tally = judge_case(folder, tmp_path / "out")
    assert tally.differences == []
    assert tally.legal == answer["legal"]["legal"]


GUARDED = """\
def choose(m):
    width = 64 if m <= 64 else 128
    tiles = (m + width - 1) // width
    assert tiles <= {most}
    return {{"width": width}}
"""


@pytest.mark.parametrize(("most", "legal"), [(3, 1), (8, 2)])
def test_the_judge_sees_a_wrong_answer(tmp_path: Path, most: int, legal: int) -> None:
    """The judge is told of one row more and one row less than there is, and says so."""
    from tests.prove import judged

    (tmp_path / "selector.py").write_text(GUARDED.format(most=most))
    (tmp_path / "facts.yaml").write_text(
        "selection: {function: choose, scope: launch, returns: {width: bits}}\n"
        "inputs: {m: {kind: runtime, type: int, range: [1, 300]}}\n"
    )
    answer, tally = judge_case(tmp_path, tmp_path / "out")
    assert (tally.differences, tally.legal) == ([], legal)
    held = judged.compiled
    for rows in ([], [[64], [128]]):
        if len(rows) == legal:
            continue
        try:
            judged.compiled = lambda *_, rows=rows: {**answer, "rows": rows}
            _, wrong = judge_case(tmp_path, tmp_path / "out")
        finally:
            judged.compiled = held
        assert wrong.differences
