"""Every facts file of this folder: the function is lifted, and CPython agrees with the graph."""

from __future__ import annotations

from pathlib import Path

import pytest

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
    judge(case_of(path, corpus, decided.program), decided, 200, seed=7)
