"""What the source asks of the world around it, and how facts answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.frontend.lifting import agree, lift, refusal, write

FACTS = """
selection: {function: "pkg.mod:choose", scope: launch, returns: {result: bits}}
inputs:
  m: {kind: runtime, values: [12, 18, 27, 64]}
  n: {kind: runtime, values: [1, 16, 24]}
"""


def test_library_functions_of_a_few_values(tmp_path: Path) -> None:
    source = "def choose(m, n):\n    return math.gcd(m, n) + math.gcd(m, 8)\n"
    write(tmp_path, {"mod.py": f"import math\n\n{source}"})
    program = lift(tmp_path, "pkg.mod:choose", FACTS)
    assert (
        agree(tmp_path, program, "pkg.mod:choose", {"m": [12, 18, 27, 64], "n": [1, 16, 24]}) == 12
    )


def test_library_functions_of_many_values(tmp_path: Path) -> None:
    write(tmp_path, {"mod.py": "import math\n\ndef choose(m, n):\n    return math.gcd(m, n)\n"})
    wide = FACTS.replace("values: [12, 18, 27, 64]", "range: [1, 9999]")
    assert "one of a few known values" in refusal(tmp_path, "pkg.mod:choose", wide)


GUARDED = """
def choose(m, n):
    try:
        from pkg.fast import pick, reason
        best = pick(m)
        assert best > 12
    except (ImportError, AssertionError):
        return 0
    return best
"""


def test_guarded_imports_are_taken_to_succeed_if_stated(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "mod.py": GUARDED,
            "fast.py": "def pick(m):\n    return 13\n\ndef reason():\n    return ''\n",
        },
    )
    stated = FACTS + 'functions: {"pick": 13, "pkg.fast.reason": ""}\n'
    program = lift(tmp_path, "pkg.mod:choose", stated)
    assert agree(tmp_path, program, "pkg.mod:choose", {"m": [12, 64], "n": [1]}) == 2


@pytest.mark.parametrize("stated", ["", 'functions: {"pick": 13}\n'])
def test_guarded_imports_are_refused_otherwise(tmp_path: Path, stated: str) -> None:
    write(tmp_path, {"mod.py": GUARDED})
    missing = "reason" if stated else "pick"
    assert f"the import of `{missing}` succeeds" in refusal(
        tmp_path, "pkg.mod:choose", FACTS + stated
    )


def test_imports_whose_failure_nothing_catches(tmp_path: Path) -> None:
    source = GUARDED.replace("ImportError, AssertionError", "ValueError, AssertionError")
    write(
        tmp_path,
        {
            "mod.py": source,
            "fast.py": "def pick(m):\n    return m\n\ndef reason():\n    return ''\n",
        },
    )
    program = lift(tmp_path, "pkg.mod:choose", FACTS)
    assert agree(tmp_path, program, "pkg.mod:choose", {"m": [12, 18], "n": [1]}) == 2


def test_attributes_that_facts_list_are_there(tmp_path: Path) -> None:
    source = "def choose(m, n, props):\n    return props.size if hasattr(props, 'size') else 0\n"
    write(tmp_path, {"mod.py": source})
    facts = FACTS + "facts: {props: {size: 7}}\n"
    assert lift(tmp_path, "pkg.mod:choose", facts).points[0].node.attr == 7
    missing = FACTS + "facts: {props: {width: 7}}\n"
    assert "is not known before serving" in refusal(tmp_path, "pkg.mod:choose", missing)
