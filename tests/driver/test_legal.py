"""`selc legal` against the relation that a brute force over the selection gives."""

from __future__ import annotations

import csv
import io
import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from selc.diag.outcome import Outcome
from selc.driver.legal import Asked, run
from tests.driver.conftest import Compile

WIDTHS, STAGES, STRIDES = (16, 128), (2, 4), (32, 64)


@pytest.fixture
def folder(compiled: Compile, project: Path) -> Path:
    assert compiled().exit_code == 0
    return project / "plan_selector"


def legal_rows() -> set[tuple[int, int, int]]:
    return {(s, w, k) for w, s, k in itertools.product(WIDTHS, STAGES, STRIDES) if w * s <= 256}


def ask(folder: Path, *assignments: str) -> Outcome:
    return run(Asked(folder, assignments))


def test_without_assignments(folder: Path) -> None:
    answer = ask(folder)
    assert answer.exit_code == 0
    assert answer.json["columns"] == ["plan.stages", "plan.width", "stride"]
    assert {tuple(r) for r in answer.json["relation"]} == legal_rows()
    assert answer.json["count"] == len(legal_rows())
    assert answer.json["remaining"] == {
        "plan.stages": [2, 4],
        "plan.width": [16, 128],
        "stride": [32, 64],
    }


@pytest.mark.parametrize("width", WIDTHS)
def test_one_pin(folder: Path, width: int) -> None:
    answer = ask(folder, f"width={width}")
    rows = {r for r in legal_rows() if r[1] == width}
    assert answer.json["count"] == len(rows)
    assert answer.json["remaining"]["plan.stages"] == sorted({r[0] for r in rows})
    assert {tuple(r) for r in answer.json["relation"]} == rows


def test_what_cannot_be(folder: Path) -> None:
    answer = ask(folder, "plan.width=128", "plan.stages=4")
    assert answer.exit_code == 1
    assert answer.json["legal"] is False
    assert answer.json["broken"]["text"] == "width * stages <= 256"
    assert answer.json["broken"]["location"]["line"] == 4
    assert "plan.py:4" in answer.text
    assert answer.text.isascii()


def test_witnesses(folder: Path) -> None:
    def taken(m: int) -> tuple[int, int]:
        return (4 if m <= 256 else 2, 16 if m <= 64 else 128)

    returned = {taken(m) for m in range(1, 4097) if taken(m)[0] * taken(m)[1] <= 256}
    for stages, width in itertools.product(STAGES, WIDTHS):
        answer = ask(folder, f"stages={stages}", f"width={width}")
        if answer.exit_code == 0:
            full = ask(folder, f"stages={stages}", f"width={width}", "stride=32")
            assert full.json["witnessed"] is ((stages, width) in returned)


def test_csv(folder: Path) -> None:
    text = run(Asked(folder, (), "csv")).text
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0] == ["plan.stages", "plan.width", "stride", "witnessed"]
    assert {tuple(map(int, r[:3])) for r in rows[1:]} == legal_rows()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("width", "no assignment"),
        ("widht=16", "no pin or knob"),
        ("width=17", "cannot be 17"),
        ("width=16.0", "cannot be 16.0"),
        ("width=true", "cannot be true"),
    ],
)
def test_questions_that_make_no_sense(folder: Path, text: str, says: str) -> None:
    answer = ask(folder, text)
    assert answer.exit_code == 2
    assert [d.code for d in answer.diagnostics] == ["SEL933"]
    assert says in answer.diagnostics[0].message
    assert ask(folder, "width=16", "plan.width=128").exit_code == 2


def test_no_selector(tmp_path: Path) -> None:
    assert run(Asked(tmp_path)).exit_code == 2


def test_the_tuple_in_force(folder: Path) -> None:
    manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    named = [f"{n}={json.dumps(v)}" for n, v in manifest["tuple"].items()]
    named += [f"{k['name']}={json.dumps(k['setting'])}" for k in manifest["knobs"]]
    answer = ask(folder, *named)
    assert (answer.exit_code, answer.json["count"]) == (0, 1)
    assert answer.json["witnessed"] is manifest["witnessed"]


TILES = """\
def pick(m):
    tile = (64, 128) if m <= 64 else (256, 64)
    assert tile[0] * 4 <= 512 + m
    return {"tile": tile}
"""
TILE_FACTS = """\
selection: {function: pick, scope: launch, returns: {tile: bits}}
inputs: {m: {kind: runtime, type: int, range: [1, 1000]}}
"""


def test_values_are_written_as_python_has_them(compiled: Compile, project: Path) -> None:
    (project / "plan.py").write_text(TILES)
    (project / "facts.yaml").write_text(TILE_FACTS)
    assert compiled(target="plan.py:pick").exit_code == 0
    folder = project / "plan_selector"
    for text in ("tile=(64, 128)", "tile=[64, 128]", "tile=(64,128)"):
        assert ask(folder, text).json["assignment"] == {"pick.tile": [64, 128]}
    refused = ask(folder, "tile=(256, 64)")
    assert (refused.exit_code, refused.json["broken"]["inputs"]) == (1, {"m": 1})
    assert "with pick.tile=(256, 64)" in refused.text
    assert "(64, 128)" in ask(folder).text
    assert ask(folder, "tile=(64, {1: 2})").exit_code == 2


def test_a_committed_tuple_under_other_facts(compiled: Compile, project: Path) -> None:
    assert compiled().exit_code == 0
    path, folder = project / "t.yaml", project / "plan_selector"
    hashed = json.loads((folder / "manifest.json").read_text())["hash"]
    pins = "pins: {plan.width: 128, plan.stages: 2}, knobs: {stride: 32}"
    path.write_text(f"{{format: 1, families: {{plan: {{selector: {hashed}, {pins}}}}}}}\n")
    here = run(Asked(folder, (), tuple_file=path))
    assert (here.exit_code, here.json["count"], here.json["made_for"]) == (0, 1, None)
    assert "another selector" not in here.text

    text = (project / "plan.py").read_text()
    (project / "plan.py").write_text(text.replace("<= 256\n    return", "<= 192\n    return"))
    assert compiled().exit_code == 0
    there = run(Asked(folder, (), tuple_file=path))
    assert (there.exit_code, there.json["count"], there.json["made_for"]) == (1, 0, hashed)
    assert there.json["broken"]["text"] == "width * stages <= 192"
    assert "the tuple was made for another selector" in there.text
    both = compiled(tuple_file=path)
    assert (both.exit_code, [d.code for d in both.diagnostics]) == (1, ["SEL933", "SEL937"])

    path.write_text(path.read_text().replace("128", "16"))
    kept = run(Asked(folder, (), tuple_file=path))
    assert (kept.exit_code, kept.json["made_for"]) == (0, hashed)
    (refused,) = compiled(tuple_file=path).diagnostics
    assert (refused.code, "its values are legal here, too" in refused.notes) == ("SEL933", True)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("families: {plan: {pins: {plan.widht: 16}}}", "no pin or knob is named `plan.widht`"),
        ("families: {plan: {pins: {plan.width: 17}}}", "`plan.width` cannot be 17"),
        ("families: {plan: {pins: {plan.stages: 4}}}", "another value on the command line"),
        ("families: {other: {pins: {}}}", "has nothing for the family `plan`"),
    ],
)
def test_a_tuple_file_that_does_not_fit(folder: Path, project: Path, text: str, says: str) -> None:
    (project / "t.yaml").write_text(f"format: 1\n{text}\n")
    answer = run(Asked(folder, ("stages=2",), tuple_file=project / "t.yaml"))
    assert answer.exit_code == 2
    (found,) = answer.diagnostics
    assert says in found.message
    assert found.span.path.endswith("t.yaml")
