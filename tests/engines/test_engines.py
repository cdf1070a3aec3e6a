"""Every facts file of this folder: the function is lifted, and CPython agrees with the graph."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from scripts.engines_page import HEAD, PAGE, facts_files, not_lifted, row
from selc.diag.diagnostic import Sink
from selc.driver.pipeline import Clock, Plan, decide, load
from tests.engines.judge import judge
from tests.engines.oracle import Case, compare
from tests.engines.oracle_launches import case_of, quiet_calls

KERNELS = {
    "V55_fused_indexer_q": {"IndexerQMxFp4Kernel.compile"},  # compiles a kernel for its arguments
    "V62_cuda_communicator_all_reduce": {"self.NCCL_CHECK"},  # raises for a kernel's status
}
"""Functions of an engine that are stated although they get a value of the batch: all there are."""

FILES = sorted(Path(__file__).parent.glob("*.yaml"))
CURRENT = "docs/engines.md is not current: `python scripts/engines_page.py .corpus`"
RUNS = 1000
PIN_SETS = 16


@pytest.mark.corpus
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_agrees_with_cpython(path: Path, corpus: Path) -> None:
    target = Case(path, corpus).selection["function"]
    _, program = load(Plan(target, (path,), (corpus,)), Sink())
    case = case_of(path, corpus, program)
    tally = compare(case, program, RUNS, PIN_SETS, seed=7)
    assert tally.returned, "the function never returns on these inputs"
    assert tally.stubbed.keys() == KERNELS.get(path.stem, frozenset()), tally.stubbed
    assert tally.silent == set(quiet_calls().get(path.stem, ())), "a call that is no longer made"
    if program.sites:
        assert tally.pin_sets or len(program.sites) == len(set(tally.unplaced)), tally.unplaced


@pytest.mark.corpus
@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_legal_choices_hold(path: Path, corpus: Path) -> None:
    plan = Plan(Case(path, corpus).selection["function"], (path,), (corpus,))
    decided = decide(plan, None, Sink(), Clock())
    assert decided.legality.legal
    assert row(path, decided) in PAGE.read_text(encoding="utf-8").splitlines(), CURRENT
    judge(case_of(path, corpus, decided.program), decided, 200, seed=7)


@pytest.mark.corpus
def test_the_page_lists_every_facts_file_and_what_is_refused(corpus: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text.startswith(HEAD), CURRENT
    assert text.endswith("\n\n" + not_lifted(corpus)), CURRENT
    rows = text.removeprefix(HEAD).partition("\n\n")[0].splitlines()
    assert [r.split()[1] for r in rows] == [p.stem for p in facts_files()], CURRENT


LEAST = {
    r"(num_|orig_|padded_)?num_tokens(_\w+)?|[mM]": 16384,
    r"num_(reqs|seqs?)|batch_size|bs": 1024,
    r"max_(kv_len|seq_len|seqlen_k)|common_prefix_len": 131072,
}
"""The largest value that inputs of these names take at least."""


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_ranges_are_those_of_serving(path: Path) -> None:
    inputs = yaml.safe_load(path.read_text(encoding="utf-8")).get("inputs") or {}
    for name, stated in inputs.items():
        for pattern, least in LEAST.items():
            if "range" in stated and re.fullmatch(pattern, name.rpartition(".")[2]):
                assert stated["range"][1] >= least, name
