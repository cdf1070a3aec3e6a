"""Variables that hold tuples are pinned as a whole, judged as the shared cases are."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from selc.driver.compile import run
from selc.driver.options import CompileOptions
from tests.cases.test_cases import SHARED

LADDER = """
def pick(m):
    if m <= 4:
        cfg = (1, 2)
    elif m <= 9:
        cfg = (2, 2)
    else:
        cfg = (3, 4)
    a, b = cfg
    return {"x": a, "y": b}
"""
SEARCH = """
TABLE = [(4, 32, 64), (9, 64, 64), (16, 128, 128), (32, 128, 64)]
def pick(m):
    cfg = TABLE[-1]
    for row in TABLE:
        if m <= row[0]:
            cfg = row
            break
    return {"x": cfg[1], "y": cfg[2]}
"""
FIRST = """
TABLE = [(4, 32, 64), (9, 64, 64), (16, 128, 128), (32, 128, 64)]
def pick(m):
    cfg = next(row for row in TABLE if m <= row[0])
    return {"x": cfg[1], "y": cfg[2]}
"""
GUARDED = """
TABLE = [(4, 32, 64), (9, 64, 64), (16, 128, 128), (32, 128, 64)]
def pick(m):
    cfg = next(row for row in TABLE if m <= row[0])
    assert cfg[0] >= m
    assert cfg[1] * cfg[2] <= 20000 or m > 20
    return {"x": cfg[1], "y": cfg[2]}
"""
WHOLE = """
def pick(m, big):
    cfg = (16, 1)
    if m > 6:
        cfg = (32, 2) if big else (32, 1)
    if m > 20:
        cfg = (64, 4)
    assert cfg[0] * cfg[1] * 8 >= m
    return {"cfg": cfg}
"""
CHANGED = """
def pick(m):
    cfg = (1, 1, 1)
    if m > 6:
        cfg = (2, 3, 1)
    if m > 12:
        cfg = (3, 5, 1)
    wide = cfg + (7,)
    low = min(cfg)
    return {"x": wide[0], "y": wide[1], "z": wide[3], "low": low, "same": cfg == (2, 3, 1)}
"""
EDGES = """
def helper(m):
    if m <= 3:
        return 1, 8
    if m <= 7:
        return 2, 16
    return 4, 8
def pick(m):
    tile = helper(m)
    k = tile[1] // tile[0]
    return {"x": tile[0], "y": tile[1], "k": k}
"""

CASES: dict[str, tuple[str, dict[str, str], int, dict[str, list[str]]]] = {
    "ladder": (LADDER, {"x": "bits", "y": "bits"}, 1, {"x": ["m"], "y": ["m"]}),
    "search": (SEARCH, {"x": "bits", "y": "bits"}, 1, {"x": ["m"], "y": ["m"]}),
    "first": (FIRST, {"x": "bits", "y": "bits"}, 1, {"x": ["m"], "y": ["m"]}),
    "guarded": (GUARDED, {"x": "bits", "y": "bits"}, 1, {"x": ["m"], "y": ["m"]}),
    "neutral": (SEARCH, {"x": "neutral", "y": "bits"}, 1, {"x": ["m"], "y": ["m"]}),
    "whole": (WHOLE, {"cfg": "bits"}, 1, {"cfg": ["m"]}),
    "changed": (
        CHANGED,
        {"x": "bits", "y": "bits", "z": "bits", "low": "bits", "same": "bits"},
        1,
        {"x": ["m"], "y": ["m"], "same": ["m"]},
    ),
    "helper": (EDGES, dict.fromkeys("xyk", "bits"), 1, {n: ["m"] for n in "xyk"}),
}


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_case(name: str, native: bool, tmp_path: Path) -> None:
    if not SHARED.is_dir():
        pytest.skip(f"no judge in {SHARED}; SELC_SHARED names its folder")
    source, roles, pins, moved = CASES[name]
    inputs: dict[str, Any] = {"m": {"kind": "runtime", "type": "int", "range": [1, 32]}}
    if "big" in source:
        inputs["big"] = {"kind": "request", "type": "bool"}
    selection = {"function": "pick", "returns": roles}
    facts = {"selection": selection, "inputs": inputs}
    (tmp_path / "selector.py").write_text(source.lstrip(), "utf-8")
    listed = {"big": {**inputs["big"], "values": [False, True]}} if "big" in inputs else {}
    (tmp_path / "facts.yaml").write_text(
        json.dumps({**facts, "inputs": {**inputs, **listed}}), "utf-8"
    )
    expected = {"batch_dependent": moved, "min_pins": pins}
    (tmp_path / "expect.json").write_text(json.dumps(expected), "utf-8")
    options = CompileOptions(
        target=str(tmp_path / "selector.py"),
        facts=(tmp_path / "facts.yaml",),
        out=tmp_path / "out",
        emit=("python", "native", "header") if native else ("python",),
        native=native,
        use_cache=False,
    )
    outcome = run(options)
    assert outcome.exit_code in (0, 1), [d.message for d in outcome.diagnostics]
    answer = tmp_path / "answer.json"
    answer.write_text(json.dumps(outcome.json), "utf-8")
    command = [sys.executable, str(SHARED / "verify.py"), str(tmp_path), str(answer)]
    judged = subprocess.run(command, check=False, capture_output=True, text=True)
    assert judged.returncode == 0, judged.stdout + judged.stderr + str(outcome.json["pins"])
    if outcome.exit_code == 0:
        _runs(tmp_path / "out", native, source, outcome.json)


def _runs(folder: Path, native: bool, source: str, answer: dict[str, Any]) -> None:
    """Every legal tuple is accepted and selects the same for every m."""
    code = (
        "import sys, json; sys.path.insert(0, sys.argv[1]); import out\n"
        "assert out.NATIVE == json.loads(sys.argv[2]), out.NATIVE_REASON\n"
        "names = list(out.PINS)\n"
        "for row in json.loads(sys.argv[3]):\n"
        "    out.repin(dict(zip(names, row)))\n"
        "    seen = {str(out.select(m, *rest)) for m in range(1, 33) for rest in ARGS}\n"
        "    assert len(seen) == len(ARGS) or NEUTRAL, (row, seen)\n"
    )
    code = code.replace("ARGS", "[(False,), (True,)]" if "big" in source else "[()]")
    neutral = any(p["role"] == "neutral" for p in answer["points"])
    code = code.replace("NEUTRAL", str(neutral or "big" in source))
    rows = json.dumps(answer["legal"]["relation"])
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder.parent), json.dumps(native), rows],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
