"""Candidates that are asked of the program with tables are those of the program without."""

from __future__ import annotations

import textwrap
from pathlib import Path

from selc.driver.lean import lean
from selc.vra.candidates import all_candidates
from tests.unit.frontend.lifting import lift, write

SEARCH = """
    def split(m, n):
        if m > 40:
            return 1
        best = 0
        for i in range(n):
            best = max(best, (m * (i + 1)) % 47)
        for i in range(n):
            if (m * (i + 1)) % 47 * 100 >= 85 * best:
                return i + 1
        return 1


    def choose(m, k):
        n = min(60, (k + 15) // 16)
        splits = split((m + 63) // 64, n)
        return splits
"""
FACTS = """
selection: {function: "pkg.mod:choose", scope: launch, returns: {result: bits}}
inputs:
  m: {kind: unpinnable, range: [1, 8192]}
  k: {kind: unpinnable, range: [1, 4096]}
"""


def test_the_values_of_a_search_are_exact(tmp_path: Path) -> None:
    write(tmp_path, {"mod.py": SEARCH})
    program = lift(tmp_path, "pkg.mod:choose", FACTS)
    thin = lean(program)
    assert len(thin.graph.nodes) * 4 < len(program.graph.nodes)
    assert {"choose.splits", "choose.n", "split.return"} <= set(thin.sites)
    found = all_candidates(thin, [thin.sites["choose.splits"]])["choose.splits"]
    names: dict[str, object] = {}
    exec(textwrap.dedent(SEARCH), names)
    choose = names["choose"]
    assert callable(choose)
    every = {choose(m, k) for m in range(1, 64 * 42, 64) for k in range(1, 4097, 16)}
    assert found.exact
    assert set(found.values or ()) == every
    for i, point in found.witness.items():
        assert choose(**point) == (found.values or ())[i]


def test_a_program_without_searches_is_itself(tmp_path: Path) -> None:
    write(tmp_path, {"mod.py": "def choose(m, k):\n    return m // 64 + k\n"})
    program = lift(tmp_path, "pkg.mod:choose", FACTS)
    assert lean(program) is program
