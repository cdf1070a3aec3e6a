"""The main job as `examples/main_job.sh` does it, and the engines' functions that README names."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from selc.driver.check import run as check
from selc.driver.compile import run
from selc.driver.options import CompileOptions
from tests.driver.contract import problems

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = (ROOT / "examples/main_job.sh").read_text(encoding="utf-8")


def shell(command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    settings = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=ROOT, env=settings
    )


def job(out: Path, cache: Path, **environment: str) -> tuple[str, str, str]:
    """The script's two commands: what the compiler said, its warnings, what the user printed."""
    found = re.search(r'"\$bin/selc" (compile .*?-o) build/moe_selector', SCRIPT, re.DOTALL)
    assert found is not None
    arguments = shlex.split(found.group(1).replace("\\\n", " "))
    code = "from selc.cli import main; main()"
    made = shell(
        [sys.executable, "-c", code, *arguments, str(out / "moe_selector")],
        SELC_CACHE_DIR=str(cache),
        **environment,
    )
    assert made.returncode == 0, made.stderr
    used = shell([sys.executable, "-S", "examples/use_moe.py", str(out)], PYTHONPATH="")
    assert used.returncode == 0, used.stderr
    return made.stdout, made.stderr, used.stdout


@pytest.mark.slow
@pytest.mark.native
def test_native(tmp_path: Path) -> None:
    said, warnings, printed = job(tmp_path, tmp_path / "cache")
    assert warnings == ""
    assert "moe.gate_up_k  64, 128     64" in said
    assert printed.startswith("native selector; pins in force: {'moe.gate_up_k': 64}")
    assert "repin refused: not a legal tuple: moe.gate_up_k=128" in printed
    assert "all 16384 batch sizes sum in steps of 64" in printed
    again, _, _ = job(tmp_path, tmp_path / "cache")
    assert "cache    hit; " in again
    assert check(tmp_path / "moe_selector", False).exit_code == 0


@pytest.mark.slow
def test_without_a_compiler(tmp_path: Path) -> None:
    said, warnings, printed = job(tmp_path, tmp_path / "cache", CC="no-such-compiler")
    assert warnings.count("warning[SEL940]") == 1
    assert "Traceback" not in warnings
    assert "no native module" in said
    assert printed.startswith("Python fallback selector; pins in force")
    assert "all 16384 batch sizes sum in steps of 64" in printed


FUSED_MOE = "vllm.model_executor.layers.fused_moe.fused_moe"
PINS = {
    "get_default_config": ("get_default_config.config.BLOCK_SIZE_K", [64, 128]),
    "try_get_optimal_moe_config": ("try_get_optimal_moe_config.config.BLOCK_SIZE_K", [64, 128]),
}


@pytest.mark.slow
@pytest.mark.corpus
@pytest.mark.parametrize("name", PINS)
def test_engine_functions(
    name: str, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SELC_CACHE_DIR", str(tmp_path / "cache"))
    options = CompileOptions(
        target=f"{FUSED_MOE}:{name}",
        facts=(ROOT / f"examples/engines/vllm_{name}.yaml",),
        roots=(corpus,),
        out=tmp_path / "engine_selector",
        emit=("python",),
        native=False,
    )
    outcome = run(options)
    answer: dict[str, Any] = outcome.json
    assert outcome.exit_code == 0
    assert not problems(answer, 0)
    (pin,) = answer["pins"]
    assert (pin["name"], pin["candidates"]) == PINS[name]
    assert pin["legal"] == pin["candidates"]
    assert Path(pin["location"]["path"]).name == "fused_moe.py"
    assert {p["name"]: p["depends_on"] for p in answer["points"]}["BLOCK_SIZE_K"] == ["M"]
    assert answer["legal"]["evidence"] in ("proved", "exhaustive")
    sources = json.loads((tmp_path / "engine_selector/manifest.json").read_text())["sources"]
    assert any(path.endswith("fused_moe.py") for path in sources)
    assert run(options).json["cache"] == "hit"
