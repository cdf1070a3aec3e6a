"""Outcomes that are known: slices by few values, imports that fail, facts in other quotes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.unit.frontend.lifting import agree, lift, refusal, write

FACTS = """
selection: {function: "pkg.mod:choose", scope: launch, returns: {result: bits}}
inputs: {m: {kind: runtime, range: [0, 9]}}
"""


def test_slice_bounds_of_few_values(tmp_path: Path) -> None:
    text = """
    def choose(m):
        k = 0 if m < 3 else 2 if m < 6 else -1
        return sum([1, 20, 300][:k]) + len('abcd'[k:])
    """
    write(tmp_path, {"mod.py": text})
    program = lift(tmp_path, "pkg.mod:choose", FACTS)
    assert agree(tmp_path, program, "pkg.mod:choose", {"m": list(range(10))}) == 10


def test_slice_of_an_input_that_may_be_none(tmp_path: Path) -> None:
    text = """
    def choose(m, lens):
        if lens is None:
            return m
        return sum(lens[: m // 4])
    """
    write(tmp_path, {"mod.py": text})
    facts = FACTS.replace(
        "inputs: {", "inputs: {lens: {kind: runtime, values: [null, [1, 2, 3], [10, 20]]}, "
    )
    program = lift(tmp_path, "pkg.mod:choose", facts)
    arguments: dict[str, list[Any]] = {"m": list(range(10)), "lens": [None, (1, 2, 3), (10, 20)]}
    assert agree(tmp_path, program, "pkg.mod:choose", arguments) == 30


def test_slice_steps_of_zero_fail(tmp_path: Path) -> None:
    write(tmp_path, {"mod.py": "def choose(m):\n    return [1, 2, 3][:: 0 if m > 4 else 1][0]\n"})
    program = lift(tmp_path, "pkg.mod:choose", FACTS)
    assert agree(tmp_path, program, "pkg.mod:choose", {"m": list(range(10))}) == 5


IMPORT = """
def choose(m):
    try:
        from absent_package.inner import limit
        return limit(m)
    except ImportError:
        pass
    return m > 4
"""


def test_modules_that_cannot_be_imported(tmp_path: Path) -> None:
    write(tmp_path, {"mod.py": IMPORT})
    assert "import" in refusal(tmp_path, "pkg.mod:choose", FACTS)
    program = lift(tmp_path, "pkg.mod:choose", FACTS + "globals: {absent_package: null}\n")
    assert agree(tmp_path, program, "pkg.mod:choose", {"m": list(range(10))}) == 10


def test_facts_about_calls_in_other_quotes(tmp_path: Path) -> None:
    text = """
    class A:
        pass
    def choose(m, a=None):
        return m if hasattr(a, "x") else -m
    """
    write(tmp_path, {"mod.py": text})
    facts = FACTS + "objects: {a: {class: 'pkg.mod:A'}}\nfunctions: {'hasattr(a, \"x\")': false}\n"
    program = lift(tmp_path, "pkg.mod:choose", facts)
    assert agree(tmp_path, program, "pkg.mod:choose", {"m": list(range(10))}) == 10
