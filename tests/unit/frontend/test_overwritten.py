"""What is overwritten at a site is what every later read sees."""

from __future__ import annotations

from pathlib import Path

import pytest

from selc.ir.interp import run_program
from tests.unit.frontend.lifting import lift, write

FACTS = """
selection: {function: "pkg.mod:choose", scope: launch, returns: {result: bits}}
facts: {always: true}
inputs: {m: {kind: runtime, range: [0, 9]}}
"""


@pytest.mark.parametrize(
    ("body", "site"),
    [
        ("always and (1 if m <= 4 else 2)", "L2C24-42"),
        ("(1 if m <= 4 else 2) if always else 7", "L2C13-31"),
        ("any((m <= 4 and m > 1) for _ in range(1))", "L2C17-33"),
    ],
)
def test_an_expression_that_is_all_of_another(tmp_path: Path, body: str, site: str) -> None:
    write(tmp_path, {"mod.py": f"def choose(m, always):\n    return {body}\n"})
    program = lift(tmp_path, "pkg.mod:choose", FACTS)
    pins = {name: 5 for name in program.sites if name.startswith(f"choose.{site}")}
    assert pins
    for m in range(10):
        assert run_program(program, {"m": m}, pins).points["result"] in (5, True)
        assert run_program(program, {"m": m}, dict.fromkeys(pins, False)).points["result"] is False


def test_the_arm_that_a_negation_does_not_take(tmp_path: Path) -> None:
    source = """
        def choose(m, always):
            if not (m <= 4):
                r = 1
            else:
                assert m > 2
                r = 2
            return r
    """
    write(tmp_path, {"mod.py": source})
    program = lift(tmp_path, "pkg.mod:choose", FACTS)
    (site,) = [s for s in program.sites if s.startswith("choose.L3C8-")]
    for m in range(10):
        assert run_program(program, {"m": m}, {site: True}).points == {"result": 1}
        assert run_program(program, {"m": m}, {site: False}).returned == (m > 2)
