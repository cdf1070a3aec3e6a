"""Loops over ranges whose bounds depend on an input."""

from __future__ import annotations

from pathlib import Path

import pytest

from selc.ir.interp import run_program
from tests.unit.frontend.lifting import agree, lift, refusal, write

FACTS = """
selection: {function: "pkg.mod:choose", scope: launch, returns: {result: bits}}
inputs:
  m: {kind: runtime, range: [-3, 90]}
  k: {kind: runtime, range: [0, 3]}
"""

LOOPS = {
    "bound": """
        def choose(m, k):
            out = k
            for s in range(1, min(m, 70) + 1):
                out = out * 2 % 1009 + s
            return out
        """,
    "search with an early return": """
        def choose(m, k):
            best = -1
            for s in range(m):
                best = max(best, s * 37 % 101)
            for s in range(m):
                if s * 37 % 101 >= best - 5 * k:
                    return s
            return -1
        """,
    "break, continue and else": """
        def choose(m, k):
            out = 1
            for s in range(m):
                if s % 7 == k:
                    continue
                if s > 60 + k:
                    break
                out += s
            else:
                out = -out
            return out
        """,
    "both ends, downwards": """
        def choose(m, k):
            out = 0
            for s in range(m, k, -2):
                out = out * 3 % 1013 + s
            return out
        """,
    "variable after the loop": """
        def choose(m, k):
            s = -7
            for s in range(k, m, 3):
                pass
            return s
        """,
    "changed bound": """
        def choose(m, k):
            out = 0
            for s in range(m):
                m = 0
                out += s
            return out + m
        """,
    "nested": """
        def choose(m, k):
            out = 0
            for s in range(m % 9):
                for t in range(s, k + 2):
                    out = out * 5 % 997 + s * t
            return out
        """,
    "a bool": """
        def choose(m, k):
            out = 0
            for s in range(m > 4):
                out += s + 1
            return out
        """,
}


@pytest.mark.parametrize("name", LOOPS)
def test_the_loop_runs_as_often_as_in_python(name: str, tmp_path: Path) -> None:
    write(tmp_path, {"mod.py": LOOPS[name]})
    program = lift(tmp_path, "pkg.mod:choose", FACTS)
    arguments = {"m": list(range(-3, 91)), "k": list(range(4))}
    assert agree(tmp_path, program, "pkg.mod:choose", arguments) == 94 * 4


def test_iterations_are_sites(tmp_path: Path) -> None:
    write(tmp_path, {"mod.py": LOOPS["bound"]})
    program = lift(tmp_path, "pkg.mod:choose", FACTS)
    assert {f"choose.out#2[{i}]" for i in range(70)} <= set(program.sites)
    assert "choose.out#2[70]" not in program.sites


def test_what_fails_in_a_late_iteration_fails_there_only(tmp_path: Path) -> None:
    text = """
    def choose(m, k):
        out = 0
        for s in range(m):
            out += 100 // (50 - s)
        return out
    """
    write(tmp_path, {"mod.py": text})
    program = lift(tmp_path, "pkg.mod:choose", FACTS)
    assert run_program(program, {"m": 50, "k": 0}).returned
    assert not run_program(program, {"m": 51, "k": 0}).returned


@pytest.mark.parametrize(
    ("loop", "message"),
    [
        (
            "range(m * 100)",
            "SEL902 `range(m * 100)` has a bound that depends on an input: up to 9000 elements",
        ),
        ("range(0, 9, m + 4)", "SEL902 `range(0, 9, m + 4)` has a bound that depends on an input"),
    ],
)
def test_ranges_that_are_refused(loop: str, message: str, tmp_path: Path) -> None:
    text = f"def choose(m, k):\n    for s in {loop}:\n        k += s\n    return k\n"
    write(tmp_path, {"mod.py": text})
    assert refusal(tmp_path, "pkg.mod:choose", FACTS) == message


@pytest.mark.parametrize(
    "loop", ["range(1, 5, 0)", "range(0, 4, k % 2)", "range(2.0)", "range(k / 2)", "range(None)"]
)
def test_ranges_that_raise(loop: str, tmp_path: Path) -> None:
    text = f"def choose(m, k):\n    for s in {loop}:\n        m += s\n    return m\n"
    write(tmp_path, {"mod.py": text})
    program = lift(tmp_path, "pkg.mod:choose", FACTS)
    assert not run_program(program, {"m": 3, "k": 2}).returned
    assert run_program(program, {"m": 3, "k": 1}).returned is (loop == "range(0, 4, k % 2)")
