"""On the engines: the pre-filter misses nothing, recall and quiet controls, work for one file."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from selc.lint.config import Config, names_of
from selc.lint.run import Options, lint, source_files
from selc.lint.unit import lint_file, may_matter, session_of
from tests.calls import counted_calls

pytestmark = [pytest.mark.corpus, pytest.mark.slow]
LISTS = Path(__file__).resolve().parents[2] / "benchmarks"


def test_the_prefilter_misses_nothing(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = Config(corpus, assume_unguarded=True)
    names = names_of(config)
    left_out = [
        path
        for path in source_files((corpus / "vllm", corpus / "sglang"), config)
        if not may_matter(path.read_text(encoding="utf-8"), names)
    ]
    assert len(left_out) > 300
    monkeypatch.setattr("selc.lint.unit.may_matter", lambda text, names: True)
    session = session_of(corpus, names, config, guarded=False)
    for path in left_out:
        assert lint_file(path, session, None, config).findings == [], path


def test_recall_and_controls(corpus: Path) -> None:
    """Of the files that the catalogue names; `make lint-accuracy` lints all files."""
    config = Config(corpus, assume_unguarded=True)
    rows = [
        row.split(None, 3)
        for row in (LISTS / "lint_catalogue.txt").read_text().splitlines()
        if row and not row.startswith("#")
    ]
    named = sorted({corpus / place.partition(":")[0] for _, _, place, _ in rows})
    found = lint(config, Options(tuple(named), jobs=1)).findings
    lines: dict[str, set[int]] = {}
    for each in found:
        if each.code != "SEL107":
            whole = corpus.parent / each.place.path
            lines.setdefault(whole.relative_to(corpus).as_posix(), set()).add(each.place.line)
    counts = {"positive": [0, 0], "control": [0, 0]}
    for _, kind, place, _ in rows:
        path, _, span = place.partition(":")
        first, last = map(int, span.split("-"))
        counts[kind][0] += any(first <= line <= last for line in lines.get(path, ()))
        counts[kind][1] += 1
    assert counts["positive"][1] == 114
    assert counts["positive"][0] >= 105
    assert counts["control"][0] == 0


@pytest.mark.parametrize(
    "name",
    ["vllm/model_executor/layers/fused_moe/fused_moe.py", "sglang/srt/models/deepseek_v2.py"],
)
def test_the_work_for_one_large_file(corpus: Path, name: str) -> None:
    """Python calls, not seconds, for each node of its syntax: 35 and 63, imports followed."""
    options = Options((corpus / name,), use_cache=False)
    with counted_calls() as calls:
        assert lint(Config(corpus), options).findings
    text = (corpus / name).read_text(encoding="utf-8")
    assert calls.made < 90 * sum(1 for _ in ast.walk(ast.parse(text)))
