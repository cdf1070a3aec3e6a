"""`check`: a sound folder passes, and each kind of damage or drift is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from selc.check.dag import Dag
from selc.check.decide import Judge, Verdict
from selc.codegen import seal, selector_hash
from selc.driver.check import run
from tests.driver.conftest import Compile


@pytest.fixture
def folder(compiled: Compile, project: Path) -> Path:
    assert compiled().exit_code == 0
    return project / "plan_selector"


def results(folder: Path, against: bool = False) -> dict[str, str]:
    outcome = run(folder, against)
    found = {c["name"]: c["result"] for c in outcome.json["checks"]}
    failed = [name for name, result in found.items() if result == "failed"]
    assert outcome.exit_code == (1 if failed else 0)
    assert outcome.json["ok"] is not failed
    assert [d.code for d in outcome.diagnostics] == ["SEL935"] * len(failed)
    return found


def forge(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the manifest and make its digests fit, as a careful forger would."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    manifest["hash"] = selector_hash(manifest)
    manifest["seal"] = seal(manifest)
    path.write_text(json.dumps(manifest))


def failed(folder: Path, against: bool = False) -> list[str]:
    return [name for name, result in results(folder, against).items() if result == "failed"]


def test_a_sound_folder(folder: Path) -> None:
    plain = results(folder)
    assert {n for n, r in plain.items() if r != "ok"} == {"native", "fallback", "unpinned"}
    assert (plain["native"], plain["fallback"]) == ("skipped", "sampled")
    against = results(folder, True)
    assert (against["source"], against["original"]) == ("ok", "sampled")
    outcome = run(folder, False)
    assert outcome.text.isascii()
    assert "no path in R from 1 batch inputs to 2 bits points" in outcome.text


def test_returns_that_name_different_variables(compiled: Compile, project: Path) -> None:
    (project / "plan.py").write_text(
        "def plan(m, r):\n    v = m // 30\n    if m > 200:\n        return {'a': v}\n"
        "    assert v + 1 > 0\n    return {'a': 'wide' if m > 60 else 'narrow'}\n"
    )
    (project / "facts.yaml").write_text(
        "selection: {function: plan, returns: {'*': bits}}\n"
        "inputs:\n  m: {kind: runtime, type: int, range: [0, 119]}\n"
        "  r: {kind: request, type: int, range: [0, 1]}\n"
    )
    assert compiled().exit_code == 0
    assert results(project / "plan_selector")["guards"] == "ok"


@pytest.mark.parametrize(
    "source",
    [
        # only the last of the values that a site has at a call counts
        "def clamp(x):\n    return x if x < 3 else 3\n\n"
        "def plan(m, r):\n    try:\n        e = m\n        if r < 5:\n"
        "            raise LookupError\n    except LookupError:\n"
        "        e = (m // 40 and m // 30)\n"
        "    else:\n        return {'a': clamp(e)}\n    k = clamp(e)\n    return {'a': k * e}\n",
        # a path from one reading and a lookup from another fit together nowhere
        "def plan(m, r):\n    try:\n        e = {0: 1, 30: 2, 60: 4}[m // 30 * 30]\n"
        "    except KeyError:\n        return {'a': 7}\n"
        "    assert e * (m + 1) != 0\n    return {'a': r}\n",
    ],
)
def test_sound_certificates_pass(source: str, compiled: Compile, project: Path) -> None:
    (project / "plan.py").write_text(source)
    (project / "facts.yaml").write_text(
        "selection: {function: plan, scope: request, returns: {'*': bits}}\n"
        "inputs:\n  m: {kind: runtime, type: int, range: [0, 119]}\n"
        "  r: {kind: request, type: int, range: [0, 1]}\n"
    )
    assert compiled().exit_code == 0
    assert "failed" not in results(project / "plan_selector").values()


def test_a_knob_that_nothing_reads(compiled: Compile, project: Path) -> None:
    path = project / "facts.yaml"
    path.write_text(path.read_text().replace("values: [32, 64]", "values: [64]"))
    assert compiled().exit_code == 0
    assert "failed" not in results(project / "plan_selector").values()


def test_a_value_that_is_too_wide_hides_no_counterexample() -> None:
    dag = Dag()
    x = dag.leaf("x", range(3))
    wide = dag.add("lshift", (dag.const(1), dag.const(1 << 20)))
    small = dag.add("eq", (x, dag.const(1)))
    first = dag.add("eq", (x, dag.const(0)))
    claim = dag.add("select", (first, dag.add("ge", (wide, x)), small))
    assert Judge(dag, [], []).always(claim) == Verdict("refuted", {"x": 2})
    rest = dag.add("select", (first, dag.add("ge", (wide, x)), dag.const(True)))
    assert Judge(dag, [], []).always(rest) == Verdict("sampled")


def test_values_that_are_too_wide_are_not_called_equal() -> None:
    dag = Dag()
    x = dag.leaf("x", range(2))
    one, two = (dag.add("lshift", (dag.const(n), dag.const(1 << 20))) for n in (1, 3))
    wide = dag.add("select", (dag.add("eq", (x, dag.const(0))), one, two))
    assert Judge(dag, [], []).always(dag.same(wide, one)) == Verdict("sampled")


def test_a_choice_on_what_is_undefined_is_undefined() -> None:
    dag = Dag()
    nothing = dag.add("floordiv", (dag.const(1), dag.const(0)))
    x = dag.leaf("x", range(2))
    assert dag.add("select", (nothing, x, dag.const(5))) == nothing


def test_a_refutation_survives_premises_that_hold_seldom() -> None:
    dag = Dag()
    x, a, b = (dag.leaf(name, range(1, 1_000_000)) for name in "xab")
    total = dag.add("add", (dag.add("mul", (a, dag.const(1000))), b))
    rare = dag.add("eq", (total, dag.const(123_456_789)))
    small = dag.true(dag.add("lt", (x, dag.const(500_000))))
    never = dag.true(dag.add("lt", (a, dag.const(1))))
    judge = Judge(dag, [dag.true(rare)], [])
    judge.stated = []  # no help from how the premise is written
    found = judge.always(small)
    assert found.how == "refuted"
    assert found.call is not None
    assert found.call["a"] * 1000 + found.call["b"] == 123_456_789
    assert found.call["x"] >= 500_000
    assert judge.always(small, [never]).how in ("proved", "exhaustive")


def test_a_changed_file(folder: Path) -> None:
    path = folder / "_python.py"
    path.write_text(path.read_text() + "\n")
    assert failed(folder) == ["files"]
    path.unlink()
    assert failed(folder) == ["files"]


def test_a_changed_manifest(folder: Path) -> None:
    path = folder / "manifest.json"
    path.write_text(path.read_text().replace('"scope": "launch"', '"scope": "request"'))
    assert failed(folder) == ["seal", "hash", "entries"]


def test_a_point_that_reads_the_batch(folder: Path) -> None:
    def follow(manifest: dict[str, Any]) -> None:
        manifest["graph"] = manifest["graph"].replace("lanes: neutral", "lanes: bits")

    forge(folder, follow)
    outcome = run(folder, False)
    assert outcome.exit_code == 1
    assert "lanes reads m" in outcome.diagnostics[0].message


def test_a_relation_that_admits_too_much(folder: Path) -> None:
    def admit(manifest: dict[str, Any]) -> None:
        manifest["factors"] = []
        manifest["legal"]["legal"] = 8

    forge(folder, admit)
    assert failed(folder) == ["relation", "legal"]


def test_a_tuple_that_is_not_legal(folder: Path) -> None:
    def commit(manifest: dict[str, Any]) -> None:
        manifest["tuple"] = {"plan.stages": 4, "plan.width": 128}

    forge(folder, commit)
    assert failed(folder) == ["relation", "calls", "fallback"]


def test_a_guard_that_is_gone(folder: Path) -> None:
    def drop(manifest: dict[str, Any]) -> None:
        head, _, _ = manifest["graph"].partition("\nguards:\n")
        manifest["graph"] = head
        manifest["factors"] = []
        manifest["legal"]["legal"] = 8

    forge(folder, drop)
    assert failed(folder) == ["shape", "entries"]


def test_a_pin_with_other_candidates(folder: Path) -> None:
    def widen(manifest: dict[str, Any]) -> None:
        manifest["pins"][0]["candidates"].append(8)

    forge(folder, widen)
    assert failed(folder) == ["pins"]


@pytest.mark.parametrize("name", ["graph", "graph0"])
@pytest.mark.parametrize("text", ["", "graph\nv0 = nothing\n", 7, None])
def test_graphs_that_cannot_be_read(folder: Path, name: str, text: object) -> None:
    forge(folder, lambda manifest: manifest.update({name: text}))
    outcome = run(folder, False)
    assert outcome.exit_code == 2
    assert [d.code for d in outcome.diagnostics] == ["SEL936"]


def test_entries_that_are_malformed(folder: Path) -> None:
    forge(folder, lambda manifest: manifest.update({"pins": [{}], "knobs": [{}]}))
    assert run(folder, False).exit_code == 2


def test_a_source_that_changed(folder: Path, project: Path) -> None:
    source = project / "plan.py"
    text = source.read_text()
    source.write_text(text.replace("m, 32", "m, 33"))
    assert failed(folder, True) == ["sources", "source", "original"]
    source.write_text(text + "\n# a comment\n")
    assert failed(folder, True) == ["sources", "source"]
    source.write_text("def plan(:\n")
    outcome = run(folder, True)
    assert "no longer compiles" in outcome.diagnostics[-1].message


@pytest.mark.parametrize("text", [None, "", "[]", "{}", '{"format": 2, "hash": 1}', "\x00"])
def test_what_is_no_selector(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "manifest.json").write_text(text)
    outcome = run(tmp_path, False)
    assert outcome.exit_code == 2
    assert [d.code for d in outcome.diagnostics] == ["SEL936"]
