"""What goes wrong is said, and leaves nothing behind that looks as if it had gone right."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.driver.conftest import Compile

ROOT = Path(__file__).resolve().parents[2]
COMMAND = "import sys; from selc.cli import main; sys.exit(main())"

PAIR = """\
def plan(m, n):
    width = 16 if m * n <= 64 else 128
    assert (m + n - max(m, n)) * width >= 16
    return {"width": width}
"""

PAIR_FACTS = """\
selection: {function: plan, scope: launch, returns: {width: bits}}
inputs:
  m: {kind: runtime, type: int, range: [1, 100000]}
  n: {kind: runtime, type: int, range: [1, 100000]}
"""


@pytest.fixture
def pair(project: Path) -> Path:
    """A guard about how two inputs are related, which only the solver can decide."""
    (project / "plan.py").write_text(PAIR)
    (project / "facts.yaml").write_text(PAIR_FACTS)
    return project


def test_a_budget_that_is_too_small_is_not_an_answer(pair: Path, compiled: Compile) -> None:
    outcome = compiled(solver_budget=1)
    assert outcome.exit_code == 1
    assert outcome.json["legal"]["legal"] == 0
    assert outcome.json["legal"]["relation"] == []
    (guard,) = [g for g in outcome.json["guards"] if g["text"].startswith("(m + n")]
    assert guard["evidence"] == "unknown"
    assert guard["budget"] == "1 solver steps per assignment"
    text = " ".join(outcome.text.split())
    assert "(undecided after 1 solver steps per assignment)" in text
    assert "give more with --solver-budget" in text
    (found,) = [d for d in outcome.diagnostics if d.code == "SEL931"]
    assert "what is undecided is not legal" in " ".join(found.notes)


def test_a_larger_budget_brings_the_proof(pair: Path, compiled: Compile) -> None:
    outcome = compiled(require_proof=True)
    assert (outcome.exit_code, outcome.json["legal"]["legal"]) == (0, 2)
    assert {g["evidence"] for g in outcome.json["guards"]} == {"proved"}


def test_what_has_no_encoding_is_sampled_whatever_the_budget(pair: Path, compiled: Compile) -> None:
    (pair / "plan.py").write_text(PAIR.replace(">= 16", "/ 7.0 != 0.3"))
    for budget in (1, 2_000_000):
        outcome = compiled(solver_budget=budget)
        assert (outcome.exit_code, outcome.json["legal"]["evidence"]) == (0, "sampled")


def interrupted(folder: Path, after: float) -> tuple[int, str]:
    """The command, interrupted after some seconds: its exit code and what it said."""
    running = subprocess.Popen(
        [sys.executable, "-c", COMMAND, "compile", "plan.py:plan", "--facts", "facts.yaml",
         "-o", "plan_selector", "--no-native"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    time.sleep(after)
    running.send_signal(signal.SIGINT)
    _, error = running.communicate(timeout=120)
    return running.returncode, error


def test_an_interrupt_leaves_nothing_half_written(project: Path, private_cache: Path) -> None:
    names = {"plan.py", "facts.yaml", "cache", "plan_selector"}
    facts = (project / "facts.yaml").read_text()
    stopped = 0
    for k in range(8):
        changed = facts.replace("4096]", f"{4096 + k}]")  # no answer is in the cache
        (project / "facts.yaml").write_text(changed)
        code, error = interrupted(project, 0.25 + 0.2 * k)
        assert code in (0, 130, -signal.SIGINT), error
        stopped += code != 0
        if code == 130:
            assert "Traceback" not in error
        assert {p.name for p in project.iterdir()} <= names
        made = project / "plan_selector"
        if made.exists():
            check = subprocess.run(
                [sys.executable, "-c", COMMAND, "check", "plan_selector"],
                check=False,
                cwd=project,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                capture_output=True,
                text=True,
            )
            assert check.returncode == 0, check.stdout + check.stderr
    assert stopped
