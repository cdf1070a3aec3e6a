"""The compiled example: pinned choices do not follow the batch, the others are the program's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from selc.cli import app
from tests.adapters import load
from tests.examples.test_moe import choose
from tests.sel_case import flatten

ROOT = Path(__file__).resolve().parents[2]
LAYERS = ("h100", "qwen3-30b-a3b", "vllm", "tp4")


@pytest.mark.slow
def test_the_example_compiles(tmp_path: Path) -> None:
    facts = [f"--facts={ROOT / 'examples/facts' / name}.yaml" for name in LAYERS]
    out = tmp_path / "moe_selector"
    command = ["compile", str(ROOT / "examples/moe.py"), *facts, "-o", str(out), "--no-cache"]
    done = CliRunner().invoke(
        app, [*command, "--emit", "python", "--no-native", "--format", "json"]
    )
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert [(p["name"], p["candidates"], p["legal"]) for p in told["pins"]] == [
        ("moe.gate_up_k", [64, 128], [64])  # two of 18 rows do not fit in shared memory with 128
    ]
    assert told["graph"]["batch_dependent_points"] == 2
    selector = load(out / "__init__.py", "compiled_moe_selector")
    for tokens in (1, 4, 5, 17, 28, 29, 200, 1280, 1281, 16384):
        got = flatten(selector.select(num_tokens=tokens))
        want = flatten(choose(tokens))
        assert flatten(selector.select_unpinned(num_tokens=tokens)) == want
        pinned = {"gate_up.BLOCK_SIZE_K", "down.BLOCK_SIZE_K"}
        assert {k: v for k, v in got.items() if k not in pinned} == {
            k: v for k, v in want.items() if k not in pinned
        }
        assert {got[k] for k in pinned} == {64}
    with pytest.raises(selector.SelectionError):
        selector.select(num_tokens=16385)
