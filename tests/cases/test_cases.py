"""Every folder of the shared cases, judged by their own judge.

The judge runs the selection under CPython over its whole domain, applies pins by rewriting the
source, and compares dependence, pins, candidates and the legal relation with the compiler's answer.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from selc.driver.compile import run
from selc.driver.options import CompileOptions
from tests.driver.contract import problems

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("SELC_SHARED", ROOT.parent / "shared")) / "cases"

EXPECTED_FAILURES: dict[str, str] = {}
"""Case to the reason why it does not pass yet. A case in here that passes is a failure."""

FOLDERS = sorted(p.name for p in SHARED.iterdir() if p.is_dir()) if SHARED.is_dir() else []


def test_the_cases_are_there() -> None:
    if not FOLDERS:
        pytest.skip(f"no shared cases in {SHARED}; SELC_SHARED names their folder")
    assert set(EXPECTED_FAILURES) <= set(FOLDERS)


@pytest.mark.parametrize("name", FOLDERS)
def test_case(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if name in EXPECTED_FAILURES:
        request.applymarker(pytest.mark.xfail(strict=True, reason=EXPECTED_FAILURES[name]))
    folder = SHARED / name
    options = CompileOptions(
        target=str(folder / "selector.py"),
        facts=(folder / "facts.yaml",),
        out=tmp_path / "selector",
        emit=("python",),
        native=False,
        use_cache=False,
    )
    outcome = run(options)
    assert outcome.exit_code in (0, 1), [d.message for d in outcome.diagnostics]
    assert not problems(outcome.json, outcome.exit_code)
    answer = tmp_path / "answer.json"
    answer.write_text(json.dumps(outcome.json), encoding="utf-8")
    command = [sys.executable, str(SHARED / "verify.py"), str(folder), str(answer)]
    judged = subprocess.run(command, check=False, capture_output=True, text=True)
    assert judged.returncode == 0, judged.stdout + judged.stderr
