"""docs/harness.md: its example runs word for word, and it names what there is."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from selc.harness import timing, verify
from selc.harness.protocol import METHODS, OURS

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "harness.md").read_text(encoding="utf-8")
FILES = ("mykernels.py", "linear.py", "facts.yaml", "traffic.jsonl")


def blocks() -> list[str]:
    return re.findall(r"^```(?:\w+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


@pytest.fixture
def example(tmp_path: Path) -> Path:
    for name, text in zip(FILES, blocks()[:-1], strict=True):
        (tmp_path / name).write_text(text)
    return tmp_path


def test_the_example_runs_as_it_stands(example: Path) -> None:
    commands = blocks()[-1].splitlines()
    assert len(commands) == 2
    outputs = []
    for command in commands:
        words = command.split()
        assert words[0] == "selc"
        done = subprocess.run(
            [sys.executable, "-m", "selc", *words[1:], "--format", "json"],
            capture_output=True,
            text=True,
            check=False,
            cwd=example,
            env={"PYTHONPATH": str(ROOT), "PATH": str(Path(shutil.which("cc") or "/").parent)},
        )
        assert done.returncode == 0, done.stderr
        outputs.append(json.loads(done.stdout))
    compiled, bench = outputs
    assert compiled["pins"][0]["legal"] == [128, 256]
    (family,) = bench["families"]
    times = {t["name"]: t["seconds"] for t in family["tuples"]}
    assert set(times) == {"stock", "default", "#1"} or set(times) == {"stock", "default", "#2"}
    assert all(times.values())


def test_the_example_is_short(example: Path) -> None:
    code = [x for x in (example / "mykernels.py").read_text().splitlines() if x.strip()]
    assert len(code) <= 41
    for name in METHODS:
        assert sum(f"def {name}(" in line for line in code) == 1
        assert f"`{name}(" in TEXT


def test_the_page_tells_the_numbers_of_the_code() -> None:
    for words in (
        f"| {verify.TOLERANCE} |",
        f"up to {timing.MOST_SETS} times",
        f"shorter than {timing.CUDA_SECONDS * 1e6:.0f} us",
        f"as fill {timing.CPU_SECONDS * 1e3:.0f} ms",
    ):
        assert words in " ".join(TEXT.split()), words
    assert all(f"`{name}`" in TEXT for name in OURS)
