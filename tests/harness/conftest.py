"""Small emitted selectors that the harness works on."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from selc.cli import app

HERE = Path(__file__).parent
FACTS = "inputs:\n  m: {kind: runtime, type: int, range: [1, 64]}\n"
NOTHING = """
@selection(family="sum", scope="launch")
def choose(batch: Batch) -> Launch:
    tile = 1 if batch.m < 8 else 4
    require(tile > batch.m, "room")
    return Launch(tile=tile, mode="")
"""

Write = Callable[..., Path]


def compiled(source: str, folder: Path, exit_code: int = 0) -> Path:
    """A selector of a text with one input `m`."""
    folder.mkdir()
    (folder / "selection.py").write_text(source)
    (folder / "facts.yaml").write_text(FACTS)
    out = folder / "made_selector"
    result = CliRunner().invoke(
        app,
        ["compile", str(folder / "selection.py"), "--facts", str(folder / "facts.yaml"),
         "-o", str(out), "--no-native", "--no-cache"],
    )  # fmt: skip
    assert result.exit_code == exit_code, result.output
    return out


@pytest.fixture(scope="session")
def sums(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A selector with six legal tuples: `tile` by batch, doubled by the knob `scale`."""
    source = (HERE / "sum_selection.py").read_text()
    return compiled(source, tmp_path_factory.mktemp("sums") / "a")


@pytest.fixture(scope="session")
def illegal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is emitted where nothing is legal."""
    head = (HERE / "sum_selection.py").read_text().split("@selection")[0]
    head = head.replace("assume, knob", "knob, require")
    return compiled(head + NOTHING, tmp_path_factory.mktemp("illegal") / "a", exit_code=1)


@pytest.fixture
def profile(tmp_path: Path) -> Write:
    """Writes a profile: calls of `m` with counts."""

    def write(
        calls: Mapping[int, int], selector: str = "", family: str = "sum", **more: Any
    ) -> Path:
        path = tmp_path / "profile.jsonl"
        head = {"format": 1, "family": family, "selector": selector, "extra": {}}
        lines = [{**head, "inputs": {"m": m}, "count": n, **more} for m, n in calls.items()]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return path

    return write
