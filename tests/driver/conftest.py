"""A small selection with two pins and a guard, and a cache of its own for every test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from selc.diag.outcome import Outcome
from selc.driver import cachekey
from selc.driver.compile import run
from selc.driver.options import CompileOptions

SOURCE = """\
def plan(m, heads, stride):
    width = 16 if m <= 64 else 128
    stages = 4 if m <= 256 else 2
    assert width * stages <= 256
    return {"width": width, "stages": stages, "lanes": min(m, 32), "pad": stride + heads}
"""

FACTS = """\
selection:
  function: plan
  scope: launch
  returns: {width: bits, stages: bits, lanes: neutral, pad: neutral}
facts: {heads: 8}
inputs:
  m: {kind: runtime, type: int, range: [1, 4096]}
  stride: {kind: knob, values: [32, 64]}
knobs: {stride: 64}
"""

Compile = Callable[..., Outcome]


@pytest.fixture(autouse=True)
def private_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test sees what another one cached."""
    monkeypatch.setenv("SELC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cachekey, "own_code", lambda: "as it is")  # it may be edited meanwhile
    monkeypatch.chdir(tmp_path)
    return tmp_path / "cache"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with the selection and its facts."""
    (tmp_path / "plan.py").write_text(SOURCE)
    (tmp_path / "facts.yaml").write_text(FACTS)
    return tmp_path


@pytest.fixture
def compiled(project: Path) -> Compile:
    """Compile the selection, with changed options."""

    def call(**changes: Any) -> Outcome:
        options: dict[str, Any] = {
            "target": "plan.py",
            "facts": (Path("facts.yaml"),),
            "out": project / "plan_selector",
            "emit": ("python",),
            "native": False,
        }
        return run(CompileOptions(**{**options, **changes}))

    return call
