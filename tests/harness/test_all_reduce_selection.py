"""The selection that goes with the all-reduce kernels, compiled, against CPython's run of it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from selc.cli import app
from selc.diag.diagnostic import Refused
from selc.harness.selector import Selector

FOLDER = Path(__file__).resolve().parents[2] / "examples/kernels"


def source() -> ModuleType:
    spec = importlib.util.spec_from_file_location("_all_reduce_source", FOLDER / "all_reduce.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compiled(out: Path, *facts: Path, status: int = 0) -> Selector:
    words = [f"--facts={f}" for f in facts]
    command = ["compile", str(FOLDER / "all_reduce.py"), *words, "-o", str(out)]
    done = CliRunner().invoke(app, [*command, "--no-native", "--no-cache"])
    assert done.exit_code == status, done.output
    return Selector.load(out)


def ran(facts: dict[str, Any], num_tokens: int) -> dict[str, Any]:
    module = source()
    records = {
        name: getattr(module, name.capitalize())(**facts[name])
        for name in ("model", "parallel", "comm")
    }
    batch = module.Batch(num_tokens=num_tokens)
    launch = module.all_reduce(*records.values(), batch)
    return {n: getattr(launch, n) for n in ("algorithm", "blocks", "num_warps")}


def test_small(tmp_path: Path) -> None:
    path = FOLDER / "all_reduce-small.yaml"
    selector = compiled(tmp_path / "small", path)
    facts = yaml.safe_load(path.read_text())["facts"]
    seen = set()
    for tokens in (1, 15, 16, 17, 31, 32, 33, 127, 128, 129, 511, 512):
        want = ran(facts, tokens)
        assert selector.stock({"num_tokens": tokens}) == want
        seen.add(want["algorithm"])
    assert seen == {"one_shot", "two_shot", "nccl"}
    tuples = list(selector.tuples())
    assert len(tuples) == 12
    for setting in tuples:
        algorithms = {
            selector.choice(setting, {"num_tokens": n})["algorithm"] for n in (1, 40, 512)
        }
        assert algorithms == {setting["all_reduce.algorithm"]}


def test_two_gpus(tmp_path: Path) -> None:
    selector = compiled(tmp_path / "two", FOLDER / "all_reduce-h200x2.yaml")
    assert len(list(selector.tuples())) == 36
    one = {"all_reduce.algorithm": "one_shot", "blocks": 64, "num_warps": 16}
    assert selector.choice(one, {"num_tokens": 8192})["blocks"] == 64
    assert selector.choice(one, {"num_tokens": 1})["blocks"] == 1


def test_no_ring_among_four(tmp_path: Path) -> None:
    """NCCL's order moves with the message there: it may not be pinned, nor taken."""
    more = tmp_path / "ring.yaml"
    more.write_text("facts: {comm: {nccl_algo: ring}}\n")
    selector = compiled(tmp_path / "ring", FOLDER / "all_reduce-small.yaml", more)
    assert selector.parameters["all_reduce.algorithm"] == ("one_shot", "two_shot")
    with pytest.raises(Refused):
        selector.stock({"num_tokens": 512})


def test_buffers_bound_what_may_be_pinned(tmp_path: Path) -> None:
    more = tmp_path / "small_buffers.yaml"
    more.write_text("facts: {comm: {buffer_bytes: 32768}}\n")
    selector = compiled(tmp_path / "bounded", FOLDER / "all_reduce-small.yaml", more)
    assert selector.parameters["all_reduce.algorithm"] == ("nccl",)
