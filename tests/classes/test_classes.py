"""Bit classes against CPython: pins, legality, what is selected, and that classes are kept."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from selc.diag.outcome import Outcome
from selc.driver import cachekey
from selc.driver.check import run as check
from selc.driver.compile import run
from selc.driver.options import CompileOptions
from tests.adapters import load
from tests.classes.cases import CASES, Case
from tests.classes.judge import Judge, Partition, key, rewritten
from tests.driver.contract import problems

BOUND = {"device": "NVIDIA H200", "dtype": "bfloat16", "kernel": "k", "format": 1}
VERSIONS = {"torch": "2.11.0", "triton": "3.6.0"}


def partition_file(partition: Partition) -> dict[str, Any]:
    classes = [
        {"name": name, "members": [list(m) for m in members], "evidence": "proved"}
        for name, members in partition.classes.items()
    ]
    return {**BOUND, "versions": VERSIONS, "fields": list(partition.fields), "classes": classes}


def write(case: Case, folder: Path) -> list[Path]:
    """The source, facts and partitions of a case, as files."""
    (folder / "plan.py").write_text(case.text)
    entries = {}
    for p in case.partitions:
        name = p.name.removeprefix("class.")
        (folder / f"{name}.json").write_text(json.dumps(partition_file(p)))
        entries[name] = {"fields": list(p.fields), "file": f"{name}.json", "given": dict(p.given)}
    facts = {
        "selection": {"scope": case.scope, "returns": case.roles, "require": case.require},
        "inputs": {
            k: {"kind": kind, "type": "int", "range": list(ends)}
            for k, (kind, ends) in case.inputs.items()
        },
        "classes": entries,
    }
    (folder / "facts.yaml").write_text(json.dumps(facts))
    return [folder / "facts.yaml"]


def compiled(case: Case, folder: Path, native: bool = False) -> Outcome:
    facts = write(case, folder)
    name = rewritten(case.text).name
    emit = ("python", "native") if native else ("python",)
    return run(
        CompileOptions(
            target=f"{folder / 'plan.py'}:{name}",
            facts=tuple(facts),
            out=folder / "selector",
            emit=emit,
            native=native,
            use_cache=False,
        )
    )


def judge_of(case: Case) -> Judge:
    return Judge(
        rewritten(case.text),
        case.partitions,
        case.roles,
        {k: range(lo, hi + 1) for k, (_, (lo, hi)) in case.inputs.items()},
        tuple(k for k, (kind, _) in case.inputs.items() if kind == "request"),
        case.require,
        case.fixed,
    )


def frozen(value: Any) -> Any:
    return tuple(frozen(v) for v in value) if isinstance(value, list) else value


@pytest.fixture(autouse=True)
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SELC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cachekey, "own_code", lambda: "as it is")
    monkeypatch.chdir(tmp_path)


def fixed_point(free: dict[str, Any]) -> bool:
    return "at" in free


@pytest.mark.parametrize("name", CASES)
def test_case(name: str, tmp_path: Path) -> None:
    judged(CASES[name], tmp_path, native=False)


@pytest.mark.native
@pytest.mark.parametrize(
    "name",
    [
        "a tuple outside the partition",
        "the representative breaks a guard, another member does not",
        "two classes of fields",
        "fields read off a row",
    ],
)
def test_native_code(name: str, tmp_path: Path) -> None:
    answer = judged(CASES[name], tmp_path, native=True)
    assert answer["artifacts"]["native"] is not None


def judged(case: Case, tmp_path: Path, native: bool) -> dict[str, Any]:
    """Compile a case and compare everything that is said and selected with brute force."""
    outcome = compiled(case, tmp_path, native)
    answer = outcome.json
    assert outcome.exit_code == (1 if case.nothing else 0), outcome.diagnostics
    assert not problems(answer, outcome.exit_code)
    judge = judge_of(case)
    paid = [p for p in answer["pins"] if not p["free"]]
    free = {
        p["name"]: frozen(p["default"]) for p in answer["pins"] if p["free"] and not fixed_point(p)
    }
    assert not [p["name"] for p in answer["pins"] if fixed_point(p)], "not judged here"
    if case.pins is not None:
        assert [p["name"] for p in paid] == case.pins

    unpinned = [(c, judge.run(c, {}, {})) for c in judge.calls()]
    for pin in paid:
        for partition in case.partitions:
            if partition.name == pin["name"]:
                taken = {key(partition.of(out)) for _, out in unpinned if out is not None}
                assert {key(frozen(v)) for v in pin["candidates"]} == taken

    legal = []
    chosen: dict[Any, list[tuple[dict[str, Any], dict[str, Any]]]] = {}
    axes = [[frozen(v) for v in p["candidates"]] for p in paid]
    for row in itertools.product(*axes):
        values = {**dict(zip([p["name"] for p in paid], row, strict=True)), **free}
        classes = {k: v for k, v in values.items() if k.startswith("class.")}
        pins = {k: v for k, v in values.items() if not k.startswith("class.")}
        tried = [(c, judge.legal(c, pins, classes)) for c in judge.calls()]
        outs = [(c, out) for c, out in tried if out is not None]
        if len(outs) == len(tried):
            legal.append(key(row))
            chosen[key(row)] = outs
    assert {key(frozen(r)) for r in answer["legal"]["relation"]} == set(legal)
    assert case.nothing == (not legal)
    assert case.some_illegal == (0 < len(legal) < len(list(itertools.product(*axes))))

    for outs in chosen.values():
        seen: dict[Any, Any] = {}
        for call, out in outs:
            request = tuple(call[r] for r in judge.request) if case.scope == "request" else ()
            assert seen.setdefault(request, judge.protected(out)) == judge.protected(out)
    if not case.nothing:
        selected(tmp_path, paid, chosen, judge)
    return answer


def selected(folder: Path, paid: list[Any], chosen: dict[Any, Any], judge: Judge) -> None:
    """The emitted selector gives what the judge says, under every legal assignment."""
    module = load(folder / "selector/__init__.py", f"classes_{folder.name}")
    for row in itertools.product(*[p["candidates"] for p in paid]):
        values = {p["name"]: frozen(v) for p, v in zip(paid, row, strict=True)}
        outs = chosen.get(key(frozen(list(row))))
        if outs is None:
            with pytest.raises(module.SelectionError):
                module.repin(values)
            continue
        module.repin(values)
        for call, out in outs:
            assert key(list(module.select(**call)._asdict().items())) == key(list(out.items()))
    for call in judge.calls():
        plain = judge.run(call, {}, {})
        if plain is not None:
            assert module.select_unpinned(**call)._asdict() == plain
    found = check(folder / "selector", against_source=True)
    assert found.exit_code == 0, (found.text, found.diagnostics)


def test_one_class_stays_adaptive(tmp_path: Path) -> None:
    case = CASES["every row is one class"]
    compiled(case, tmp_path)
    module = load(tmp_path / "selector/__init__.py", "classes_one")
    taken = {tuple(module.select(m=m))[:2] for m in range(1, 97)}
    assert taken == set(case.partitions[0].classes["all"])


def test_a_pinned_class_adapts_inside(tmp_path: Path) -> None:
    case = CASES["two classes"]
    compiled(case, tmp_path)
    module = load(tmp_path / "selector/__init__.py", "classes_two")
    for name, members in case.partitions[0].classes.items():
        module.repin({"class.gemm": name})
        taken = {tuple(module.select(m=m))[:2] for m in range(1, 97)}
        assert taken == set(members)
