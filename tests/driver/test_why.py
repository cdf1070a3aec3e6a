"""`selc explain TARGET --value`: paths, pairs and cuts, checked by running the source."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from selc.cli.app import app
from selc.driver.pipeline import Plan
from selc.driver.why import run

SOURCE = """\
def plan(m, r, heads, stride):
    big = m > 64 and r < 7
    width = 128 if big else 16
    stages = 2 if m > 256 else 4
    tiles = width * heads
    odd = 1 if m // 64 < m // 128 else 0
    fixed = 7
    lanes = min(m, 32) + stride
    return {"width": width, "stages": stages, "tiles": tiles, "odd": odd, "fixed": fixed,
            "lanes": lanes, "own": r * 2}
"""
FACTS = {
    "selection": {"function": "plan", "scope": "request", "returns": {"lanes": "neutral"}},
    "facts": {"heads": 8},
    "inputs": {
        "m": {"kind": "runtime", "type": "int", "range": [1, 4096]},
        "r": {"kind": "request", "type": "int", "range": [1, 9]},
        "stride": {"kind": "knob", "values": [32, 64]},
    },
    "knobs": {"stride": 64},
}
PINNED = """\
def plan(m, r, heads, stride, over):
    big = over.get("plan.big", m > 64 and r < 7)
    width = over.get("plan.width", 128 if big else 16)
    stages = over.get("plan.stages", 2 if m > 256 else 4)
    tiles = over.get("plan.tiles", width * heads)
    return {"width": width, "stages": stages, "tiles": tiles}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "plan.py").write_text(SOURCE)
    (tmp_path / "facts.yaml").write_text(json.dumps(FACTS))
    return tmp_path


def explain(folder: Path, name: str, skip: frozenset[str] = frozenset()) -> dict[str, Any]:
    plan = Plan(f"{folder}/plan.py:plan", (folder / "facts.yaml",), (), skip=skip)
    outcome = run(plan, name)
    assert outcome.exit_code == 0, outcome.diagnostics
    assert outcome.text.isascii()
    return outcome.json


def function(text: str = SOURCE) -> Any:
    space: dict[str, Any] = {}
    exec(text, space)
    return space["plan"]


def moved_by_batch(point: str) -> bool:
    """Whether two batches with one request differ, by trying the steps of m."""
    plan = function()
    for r, stride in itertools.product(range(1, 10), (32, 64)):
        ms = [1, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 4096]
        if len({plan(m, r, 8, stride)[point] for m in ms}) > 1:
            return True
    return False


@pytest.mark.parametrize("point", ["width", "stages", "tiles", "odd", "fixed", "lanes", "own"])
def test_the_pair_of_a_point(folder: Path, point: str) -> None:
    answer = explain(folder, point)
    assert answer["batch_dependent"] is moved_by_batch(point)
    if not answer["batch_dependent"]:
        assert (answer["pair"], answer["path"]) == (None, [])
        assert answer["why"]
        return
    pair = answer["pair"]
    first, second = pair["inputs"]
    assert first["r"] == second["r"]
    assert all(1 <= i["m"] <= 4096 for i in (first, second))
    assert abs(first["m"] - second["m"]) == 1
    plan = function()
    got = [plan(**i, heads=8, **pair["knobs"])[point] for i in (first, second)]
    assert got == pair["values"]
    assert got[0] != got[1]
    assert pair["calls"] == [f"select_unpinned(m={i['m']}, r={i['r']})" for i in (first, second)]


def test_the_pair_of_a_variable(folder: Path) -> None:
    answer = explain(folder, "plan.big")
    pair = answer["pair"]
    got = [i["m"] > 64 and i["r"] < 7 for i in pair["inputs"]]
    assert got == pair["values"]
    assert pair["inputs"][0]["r"] == pair["inputs"][1]["r"]


def test_the_path(folder: Path) -> None:
    path = explain(folder, "tiles")["path"]
    assert (path[0]["name"], path[0]["kind"]) == ("m", "runtime")
    named = [s["name"] for s in path if s["kind"] == "variable"]
    assert named == ["plan.big", "plan.width", "plan.tiles"]
    lines = SOURCE.splitlines()
    for step in path[1:]:
        place = step["location"]
        text = lines[place["line"] - 1][place["column"] - 1 :]
        assert text.startswith(step["text"])


def test_other_cuts_are_cuts_of_the_same_size(folder: Path) -> None:
    answer = explain(folder, "width")
    chosen = answer["cut"]["pins"]
    assert len(chosen) == 2
    others = [[p["name"] for p in c["pins"]] for c in answer["other_cuts"]]
    assert others
    assert all(len(c) == len(chosen) and set(c) != set(chosen) for c in others)
    assert len({frozenset(c) for c in others}) == len(others)
    values: dict[str, list[object]] = {
        "plan.big": [False, True],
        "plan.width": [16, 128],
        "plan.stages": [2, 4],
        "plan.tiles": [128, 1024],
    }
    plan = function(PINNED)
    named = [c for c in [chosen, *others] if set(c) <= set(values)]
    assert len(named) >= 2
    for cut in named:
        for row in itertools.product(*[values[n] for n in cut]):
            over = dict(zip(cut, row, strict=True))
            for r in range(1, 10):
                seen = {json.dumps(plan(m, r, 8, 64, over)) for m in (1, 64, 65, 256, 257, 4096)}
                assert len(seen) == 1, (cut, over)
    assert {frozenset(("plan.big", "plan.stages"))} <= {frozenset(c) for c in named}


def test_pins_on_the_value(folder: Path) -> None:
    assert [p["name"] for p in explain(folder, "stages")["pins"]] == ["plan.stages"]
    assert explain(folder, "lanes")["pins"] == []
    assert explain(folder, "fixed")["why"] == "it is always 7"
    assert explain(folder, "own")["why"] == "it reads no batch input"


def test_without_the_semantic_check(folder: Path) -> None:
    answer = explain(folder, "odd", frozenset({"semantic", "enumerate"}))
    assert (answer["batch_dependent"], answer["pair"]) == (None, None)


def test_a_selection_without_a_cut(folder: Path) -> None:
    (folder / "plan.py").write_text("def plan(m):\n    return {'width': m * 2}\n")
    (folder / "facts.yaml").write_text(
        json.dumps({"inputs": {"m": FACTS["inputs"]["m"]}, "selection": {"scope": "launch"}})  # type: ignore[index]
    )
    answer = explain(folder, "width")
    assert "no value on the way can be a pin" in answer["no_cut"]
    assert answer["pair"]["values"][1] - answer["pair"]["values"][0] == 2


def test_sequences_are_shown_as_calls(folder: Path) -> None:
    (folder / "plan.py").write_text(
        "def plan(lens):\n    return {'width': 8 if max(lens) > 100 else 4}\n"
    )
    entry = {"kind": "runtime", "length": [1, 8], "element": {"range": [1, 4096]}}
    (folder / "facts.yaml").write_text(
        json.dumps({"inputs": {"lens": entry}, "selection": {"scope": "launch"}})
    )
    pair = explain(folder, "width")["pair"]
    assert [8 if max(i["lens"]) > 100 else 4 for i in pair["inputs"]] == pair["values"]


def test_the_command(folder: Path) -> None:
    command = ["explain", f"{folder}/plan.py:plan", "--facts", str(folder / "facts.yaml")]
    done = CliRunner().invoke(app, [*command, "--value", "width"])
    assert done.exit_code == 0
    for part in (
        "width (bits) follows the batch",
        "1. m (runtime)",
        "select_unpinned(m=64, r=1)  -> 16",
        "select_unpinned(m=65, r=1)  -> 128",
        "other cuts with as many pins",
        "    width = 128 if big else 16",
    ):
        assert part in done.stdout
    as_json = CliRunner().invoke(app, [*command, "--value", "width", "--format", "json"])
    assert json.loads(as_json.stdout)["value"] == "width"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--value", "widht"], "did you mean `width`?"),
        (["--value", ""], "there is no value ``"),
        ([], "give --value, too"),
    ],
)
def test_what_is_not_there(folder: Path, more: list[str], said: str) -> None:
    command = ["explain", f"{folder}/plan.py:plan", "--facts", str(folder / "facts.yaml")]
    done = CliRunner().invoke(app, [*command, *more])
    assert done.exit_code == 2
    assert said in done.stderr
