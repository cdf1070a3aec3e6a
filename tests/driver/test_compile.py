"""`compile`: exit codes, what is written, tuple files, profiles, texts of the graphs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from selc.driver.check import run as check
from selc.passes.names import PASS_NAMES
from selc.passes.simplify import PASSES
from tests.adapters import load
from tests.driver.conftest import FACTS, Compile
from tests.driver.contract import problems

ROOT = Path(__file__).resolve().parents[2]


def codes(outcome: object) -> list[str]:
    return [d.code for d in outcome.diagnostics]  # type: ignore[attr-defined]


def committed(path: Path, text: str) -> Path:
    path.write_text(f"format: 1\nfamilies:\n  plan:\n{text}")
    return path


def test_the_answer(compiled: Compile, project: Path) -> None:
    outcome = compiled()
    answer = outcome.json
    assert (outcome.exit_code, codes(outcome)) == (0, [])
    assert not problems(answer, 0)
    assert [p["name"] for p in answer["pins"]] == ["plan.stages", "plan.width"]
    assert answer["legal"]["relation"] == [
        [2, 16, 32], [2, 16, 64], [2, 128, 32], [2, 128, 64], [4, 16, 32], [4, 16, 64],
    ]  # fmt: skip
    assert answer["tuple"] == {"plan.stages": 2, "plan.width": 128}
    assert answer["knobs"] == [{"name": "stride", "choices": [32, 64], "setting": 64}]
    assert answer["artifacts"]["dir"] == str(project / "plan_selector")
    assert answer["artifacts"]["module"] == "plan_selector"
    selector = load(project / "plan_selector/__init__.py", "plan_selector_of_test")
    assert selector.select(m=1) == (128, 2, 1, 72)
    assert selector.select_unpinned(m=1).width == 16
    with pytest.raises(selector.SelectionError, match="width \\* stages <= 256"):
        selector.repin({"plan.stages": 4})
    assert list(selector.PINS) == ["plan.stages", "plan.width"]


def test_the_report(compiled: Compile) -> None:
    text = compiled().text
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= 100
    for part in (
        "2 of 2 protected points follow the batch; 2 pins cut it off",
        "plan.width   16, 128     all    128       proved    plan.py:2",
        "stride  64       32, 64",
        "rules out plan.stages=4, plan.width=128: fails for m=1",
        "from plan_selector import select, repin, PINS",
        "cache    miss; ",
    ):
        assert part in text or part in " ".join(text.split())


def test_the_default_folder(compiled: Compile, project: Path) -> None:
    outcome = compiled(out=None)
    assert outcome.json["artifacts"]["dir"] == str(project / "build/plan_selector")
    assert "written  build/plan_selector: Python" in outcome.text


def test_the_manifest_holds_what_the_contract_names(compiled: Compile, project: Path) -> None:
    compiled()
    manifest = json.loads((project / "plan_selector/manifest.json").read_text())
    for name in (
        *("format", "inputs", "points", "sites", "graph0", "graph", "cut", "pins", "knobs"),
        *("guards", "evidence", "relation", "tuple", "thresholds", "assumptions", "versions"),
        *("sources", "hash"),
    ):
        assert name in manifest, name
    (m,) = manifest["inputs"]
    assert (m["name"], m["kind"], m["type"], m["range"]) == ("m", "runtime", "int", [1, 4096])
    assert 1 <= m["example"] <= 4096
    assert {64, 65, 256, 257} & set(manifest["thresholds"]["m"])
    assert sorted(Path(p).name for p in manifest["sources"]) == ["facts.yaml", "plan.py"]


# --- exit 1 -------------------------------------------------------------------------------------


def test_nothing_legal(compiled: Compile, project: Path) -> None:
    compiled()
    text = (project / "plan.py").read_text().replace("<= 256", "<= 4 * 2 - m % 2")
    (project / "plan.py").write_text(text.replace("16 if", "32 if"))
    outcome = compiled()
    assert (outcome.exit_code, codes(outcome)) == (1, ["SEL931"])
    assert not problems(outcome.json, 1)
    assert (outcome.json["tuple"], outcome.json["legal"]["relation"]) == (None, [])
    (told,) = outcome.diagnostics
    assert told.span.line == 4
    assert told.notes[0].endswith("fails for m=1")
    left = [p.name for p in (project / "plan_selector").iterdir()]
    assert left == ["manifest.json"]
    assert "nothing there can be imported" in outcome.text
    assert check(project / "plan_selector", False).exit_code == 1


def test_a_knob_whose_setting_leaves_nothing(compiled: Compile, project: Path) -> None:
    facts = FACTS.replace("returns:", "require: ['stride == 32']\n  returns:")
    (project / "facts.yaml").write_text(facts)
    outcome = compiled()
    assert (outcome.exit_code, codes(outcome)) == (1, ["SEL931"])
    assert (
        "with the knobs at their initial settings (`stride` = 64)" in outcome.diagnostics[0].message
    )
    assert outcome.json["legal"]["legal"] == 3


def test_a_required_proof(compiled: Compile) -> None:
    assert compiled(require_proof=True).exit_code == 0


def test_a_proof_that_is_missing(compiled: Compile, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from selc.vra import legality

    decide = legality.legality

    def weaker(*args: object, **options: object) -> object:
        found = decide(*args, **options)  # type: ignore[arg-type]
        guards = tuple(replace(g, evidence="sampled", points=7) for g in found.guards)
        return replace(found, guards=guards, evidence="sampled")

    monkeypatch.setattr(legality, "legality", weaker)
    outcome = compiled(require_proof=True, use_cache=False)
    assert (outcome.exit_code, codes(outcome)) == (1, ["SEL932"])
    (note,) = outcome.diagnostics[0].notes
    assert note == "`width * stages <= 256` (line 4): sampled at 7 points"
    kept = compiled(use_cache=False)
    assert kept.exit_code == 0
    assert "SAMPLED" in kept.text


# --- tuple files --------------------------------------------------------------------------------


def test_a_tuple_file(compiled: Compile, project: Path) -> None:
    text = "    pins: {plan.width: 16, plan.stages: 4}\n    knobs: {stride: 32}\n"
    outcome = compiled(tuple_file=committed(project / "t.yaml", text))
    assert outcome.exit_code == 0
    assert outcome.json["tuple"] == {"plan.stages": 4, "plan.width": 16}
    assert outcome.json["knobs"][0]["setting"] == 32
    assert [p["default"] for p in outcome.json["pins"]] == [2, 128]
    selector = load(project / "plan_selector/__init__.py", "plan_selector_committed")
    assert selector.select(4000) == (16, 4, 32, 40)
    assert selector.pins() == {"plan.stages": 4, "plan.width": 16, "stride": 32}


def test_a_committed_tuple_returns(compiled: Compile, project: Path) -> None:
    compiled()
    first = load(project / "plan_selector/__init__.py", "plan_selector_first")
    first.commit(project / "t.yaml", {"plan.width": 16})
    again = compiled(tuple_file=project / "t.yaml")
    assert again.exit_code == 0
    assert again.json["tuple"] == {"plan.stages": 2, "plan.width": 16}
    second = load(project / "plan_selector/__init__.py", "plan_selector_second")
    assert second._python.HASH == first._python.HASH
    (project / "plan.py").write_text((project / "plan.py").read_text().replace("m, 32", "m, 33"))
    other = compiled(tuple_file=project / "t.yaml")
    assert (other.exit_code, codes(other)) == (1, ["SEL933"])
    assert "was made for another selector" in other.diagnostics[0].message


def test_an_illegal_tuple(compiled: Compile, project: Path) -> None:
    text = "    pins: {plan.width: 128, plan.stages: 4}\n"
    outcome = compiled(tuple_file=committed(project / "t.yaml", text))
    assert (outcome.exit_code, codes(outcome)) == (1, ["SEL937"])
    assert not problems(outcome.json, 1)
    (note,) = outcome.diagnostics[0].notes
    assert note.startswith("`width * stages <= 256` (line 4) fails with plan.stages = 4")
    assert note.endswith("for m=1")
    assert [p.name for p in (project / "plan_selector").iterdir()] == ["manifest.json"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("    pins: {plan.width: 128}\n", "no value for `plan.stages`"),
        ("    pins: {plan.width: 128, plan.stage: 2}\n", "has no pin `plan.stage`"),
        ("    pins: {plan.width: true, plan.stages: 2}\n", "`plan.width` cannot be True"),
        ("    pins: {plan.width: 32, plan.stages: 2}\n", "`plan.width` cannot be 32"),
        ("    pins: {plan.width: 16, plan.stages: 2}\n    knobs: {strid: 32}\n", "no knob `strid`"),
        ("    pins: [1]\n", "`pins` must be a mapping"),
        ("    pin: {}\n", "unknown key `pin`"),
    ],
)
def test_a_tuple_file_that_does_not_fit(
    compiled: Compile, project: Path, text: str, message: str
) -> None:
    outcome = compiled(tuple_file=committed(project / "t.yaml", text))
    assert outcome.exit_code == 2
    assert message in outcome.diagnostics[0].message
    assert outcome.diagnostics[0].span.path == str(project / "t.yaml")
    assert not (project / "plan_selector").exists()


@pytest.mark.parametrize(
    "text",
    ["", "[]", "format: 2\nfamilies: {plan: {}}", "format: 1", "format: 1\nfamilies: []",
     "format: 1\nfamilies: {plans: {}}"],
)  # fmt: skip
def test_no_tuple_file(compiled: Compile, project: Path, text: str) -> None:
    (project / "t.yaml").write_text(text)
    outcome = compiled(tuple_file=project / "t.yaml")
    assert outcome.exit_code == 2
    assert outcome.diagnostics


# --- profiles -----------------------------------------------------------------------------------


def line(m: object, count: int = 1, family: str = "plan") -> str:
    return json.dumps({"format": 1, "family": family, "inputs": {"m": m}, "count": count}) + "\n"


def test_a_profile_chooses_the_default(compiled: Compile, project: Path) -> None:
    text = line(3, 5) + line(1000, 2) + line(9, 100, "other") + "\n"
    (project / "p.jsonl").write_text(text)
    outcome = compiled(profile=project / "p.jsonl")
    assert (outcome.exit_code, codes(outcome)) == (0, [])
    assert outcome.json["tuple"] == {"plan.stages": 4, "plan.width": 16}
    assert outcome.json["legal"]["witnessed"] is True


def test_calls_outside_the_domain_are_left_out(compiled: Compile, project: Path) -> None:
    (project / "p.jsonl").write_text(line(3) + line(5000, 40))
    outcome = compiled(profile=project / "p.jsonl")
    assert (outcome.exit_code, codes(outcome)) == (0, ["SEL934"])
    assert "40 recorded calls lie outside" in outcome.diagnostics[0].message
    assert outcome.json["tuple"] == {"plan.stages": 4, "plan.width": 16}


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]\n", line(9, 1, "other"), line(3).replace('"m"', '"n"'), line(3, 0),
     line(3).replace(": 1,", ": 2,", 1), line(5000), line("3")],
)  # fmt: skip
def test_a_profile_that_does_not_fit(compiled: Compile, project: Path, text: str) -> None:
    (project / "p.jsonl").write_text(text)
    outcome = compiled(profile=project / "p.jsonl")
    assert (outcome.exit_code, codes(outcome)) == (2, ["SEL934"])


def test_files_that_are_not_there(compiled: Compile, project: Path) -> None:
    for changes in ({"profile": Path("no.jsonl")}, {"tuple_file": Path("no.yaml")},
                    {"facts": (Path("no.yaml"),)}, {"target": "no.py"}):  # fmt: skip
        outcome = compiled(**changes)
        assert outcome.exit_code == 2, changes
        assert outcome.diagnostics


# --- options ------------------------------------------------------------------------------------


def test_the_names_of_the_passes() -> None:
    assert tuple(p.name for p in PASSES) == PASS_NAMES


@pytest.mark.parametrize("name", PASS_NAMES)
def test_any_pass_can_be_left_out(compiled: Compile, name: str) -> None:
    outcome = compiled(skip=(name,))
    assert outcome.exit_code == 0
    assert outcome.json["legal"]["legal"] >= 6


def test_what_does_not_exist(compiled: Compile) -> None:
    for changes, message in (
        ({"skip": ("fol",)}, "no pass `fol`"),
        ({"skip": ("all",)}, "no pass `all`"),
        ({"emit_after": "fld"}, "no pass `fld`"),
    ):
        outcome = compiled(**changes)
        assert (outcome.exit_code, codes(outcome)) == (2, ["SEL909"])
        assert message in outcome.diagnostics[0].message
        assert outcome.diagnostics[0].help


def test_texts_of_the_graphs(compiled: Compile, project: Path) -> None:
    outcome = compiled(emit=("ir", "dot"), emit_after="fold")
    folder = project / "plan_selector"
    assert (folder / "graph0.ir").read_text().startswith("program plan.py\nfunction plan\n")
    assert (folder / "graph.ir").read_text().startswith("residual\nscope launch\n")
    assert (folder / "graph0.dot").read_text().startswith('digraph "plan"')
    after = sorted(p.name for p in folder.glob("g1-*.ir"))
    assert after[0] == "g1-03-fold.ir"
    assert all("-fold" in name for name in after)
    assert "graph0.ir" in outcome.text
    assert check(folder, False).exit_code == 0


def test_after_every_pass(compiled: Compile, project: Path) -> None:
    compiled(emit_after="all")
    names = {p.name.split("-", 2)[2] for p in (project / "plan_selector").glob("g1-*.ir")}
    assert names == {f"{name}.ir" for name in PASS_NAMES}


def test_a_folder_of_somebody_else_stays(compiled: Compile, project: Path) -> None:
    (project / "mine").mkdir()
    (project / "mine/notes.txt").write_text("keep")
    outcome = compiled(out=project / "mine")
    assert outcome.exit_code == 2
    assert [p.name for p in (project / "mine").iterdir()] == ["notes.txt"]


@pytest.mark.native
def test_a_compiler_that_is_not_there(compiled: Compile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    outcome = compiled(native=True, emit=("native", "python", "header"))
    assert (outcome.exit_code, codes(outcome)) == (0, ["SEL940"])
    assert outcome.json["artifacts"]["native"] is None
    assert "no native module (the compiler 'no-such-compiler'" in outcome.text
    monkeypatch.delenv("CC")
    again = compiled(native=True, emit=("native", "python", "header"))
    assert (again.json["cache"], codes(again)) == ("miss", [])
    assert again.json["artifacts"]["native"]


def test_the_command_line(project: Path) -> None:
    command = [sys.executable, "-c", "from selc.cli import main; main()", "compile", "plan.py"]
    command += ["--facts", "facts.yaml", "--no-native", "--format", "json"]
    environment = {"PYTHONPATH": str(ROOT), "SELC_CACHE_DIR": str(project / "c"), "PATH": ""}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert not problems(json.loads(done.stdout), 0)
    wrong = subprocess.run(
        [*command, "--skip", "nothing"],
        check=False,
        capture_output=True,
        text=True,
        env=environment,
    )
    assert wrong.returncode == 2
    assert not problems(json.loads(wrong.stdout), 2)
