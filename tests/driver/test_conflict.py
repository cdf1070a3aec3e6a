"""Where nothing is legal, the smallest set of guards that conflict is named."""

from __future__ import annotations

from pathlib import Path

from tests.driver.conftest import Compile

SOURCE = """\
def plan(m):
    width = 16 if m <= 64 else 128
    stages = 2 if m <= 100 else 8
    assert stages * m < 100_000
    assert width * stages >= 300
    assert width <= 64 or m < 2
    assert stages <= 7 or m < 4097
    return {"width": width, "stages": stages}
"""

FACTS = """\
selection: {function: plan, scope: launch, returns: {width: bits, stages: bits}}
inputs: {m: {kind: runtime, type: int, range: [1, 4096]}}
"""


def test_two_guards_that_conflict(project: Path, compiled: Compile) -> None:
    (project / "plan.py").write_text(SOURCE)
    (project / "facts.yaml").write_text(FACTS)
    outcome = compiled()
    assert outcome.exit_code == 1
    (found,) = [d for d in outcome.diagnostics if d.code == "SEL931"]
    assert found.notes[0].startswith("these 2 guards conflict")
    assert "`width * stages >= 300` (line 5)" in found.notes[1]
    assert "`width <= 64 or m < 2` (line 6)" in found.notes[2]
    assert found.notes[-1] == "the inputs that matter: m"
    assert outcome.json["tuple"] is None
    assert outcome.json["legal"]["relation"] == []


def test_one_guard_that_nothing_satisfies(project: Path, compiled: Compile) -> None:
    text = SOURCE.replace("width * stages >= 300", "width * stages >= 300 + m // 4096 * 10_000")
    (project / "plan.py").write_text(text)
    (project / "facts.yaml").write_text(FACTS)
    outcome = compiled()
    (found,) = [d for d in outcome.diagnostics if d.code == "SEL931"]
    assert "conflict" not in found.notes[0]
    assert "(line 5) fails" in found.notes[0]
