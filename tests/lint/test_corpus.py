"""On the engines: the pre-filter misses nothing, recall and quiet controls, time for one file."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from selc.lint.config import Config, names_of
from selc.lint.run import Options, lint, source_files
from selc.lint.unit import lint_file, may_matter, session_of

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
    config = Config(corpus, assume_unguarded=True)
    found = lint(config, Options((corpus / "vllm", corpus / "sglang"), jobs=2)).findings
    lines: dict[str, set[int]] = {}
    for each in found:
        if each.code != "SEL107":
            whole = corpus.parent / each.place.path
            lines.setdefault(whole.relative_to(corpus).as_posix(), set()).add(each.place.line)
    counts = {"positive": [0, 0], "control": [0, 0]}
    for row in (LISTS / "lint_catalogue.txt").read_text().splitlines():
        if row and not row.startswith("#"):
            _, kind, place, _ = row.split(None, 3)
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
def test_one_large_file_costs_no_more_than_its_compilations(corpus: Path, name: str) -> None:
    """As many as 60 of CPython's, the best of a few of each: 10 to 35 are, imports followed."""
    text = (corpus / name).read_text(encoding="utf-8")
    options = Options((corpus / name,), use_cache=False)
    assert lint(Config(corpus), options).findings

    def best(work: Callable[[], object], times: int) -> float:
        spent = []
        for _ in range(times):
            started = time.process_time()
            work()
            spent.append(time.process_time() - started)
        return min(spent)

    linting = best(lambda: lint(Config(corpus), options), 3)
    assert linting < 60 * best(lambda: compile(text, name, "exec"), 5)
