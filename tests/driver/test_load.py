"""`selc.load`: one import gives a selector, compiled once and then found."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import selc
from tests.driver.conftest import FACTS

ROOT = Path(__file__).resolve().parents[2]

HIT = """
import sys
import selc
module = selc.load("plan.py", facts=["facts.yaml"], native=False)
heavy = [m for m in ("libcst", "networkx", "z3") if m in sys.modules]
print(module.select(m=7).width, heavy, module.__name__.startswith("selc_selector_"))
"""


def plan(m: int) -> tuple[int, int]:
    return (16 if m <= 64 else 128, 4 if m <= 256 else 2)


def test_load(project: Path) -> None:
    module = selc.load("plan.py", facts=["facts.yaml"], native=False)
    assert module is selc.load("plan.py", facts=["facts.yaml"], native=False)
    choice = module.select(m=7)
    assert (choice.width, choice.stages) == tuple(
        module.pins()[f"plan.{n}"] for n in ("width", "stages")
    )
    assert (module.select_unpinned(m=7).width, module.select_unpinned(m=7).stages) == plan(7)


def test_two_deployments_side_by_side(project: Path) -> None:
    (project / "other.yaml").write_text(FACTS.replace("heads: 8", "heads: 9"))
    one = selc.load("plan.py", facts=["facts.yaml"], native=False)
    two = selc.load("plan.py", facts=["other.yaml"], native=False)
    assert one.select(m=7).pad + 1 == two.select(m=7).pad


def test_a_change_is_seen(project: Path) -> None:
    one = selc.load("plan.py", facts=["facts.yaml"], native=False)
    text = (project / "plan.py").read_text()
    (project / "plan.py").write_text(text.replace("min(m, 32)", "min(m, 16)"))
    two = selc.load("plan.py", facts=["facts.yaml"], native=False)
    assert (one.select(m=100).lanes, two.select(m=100).lanes) == (32, 16)
    (project / "plan.py").write_text(text)
    assert selc.load("plan.py", facts=["facts.yaml"], native=False).select(m=100).lanes == 32


def test_what_cannot_be_compiled(project: Path) -> None:
    with pytest.raises(selc.CompileError, match=r"plan2\.py"):
        selc.load("plan2.py", facts=["facts.yaml"])
    (project / "plan.py").write_text(
        "def plan(m, heads, stride):\n    assert m < 7\n    return m\n"
    )
    with pytest.raises(selc.CompileError, match="SEL") as caught:
        selc.load("plan.py", facts=["facts.yaml"])
    assert caught.value.outcome.exit_code == 2


def test_a_hit_imports_no_solver(project: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    said = [
        subprocess.run(
            [sys.executable, "-c", HIT], env=environment, capture_output=True, text=True, check=True
        ).stdout.split(" ", 1)
        for _ in range(2)
    ]
    assert said[0][0] == said[1][0]
    assert "libcst" in said[0][1]
    assert said[1][1].strip() == "[] True"


def test_eight_processes_compile_once(project: Path) -> None:
    program = """
from pathlib import Path
from selc.driver.compile import run
from selc.driver.options import CompileOptions
import sys
options = CompileOptions(target="plan.py", facts=(Path("facts.yaml"),), emit=("python",),
                         native=False, out=Path(sys.argv[1]))
print(run(options).json["cache"])
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program, f"out{k}"],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for k in range(8)
    ]
    said = sorted(p.communicate()[0].strip() for p in running)
    assert said == ["hit"] * 7 + ["miss"]
