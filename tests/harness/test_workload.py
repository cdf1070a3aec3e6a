"""Profiles shown, merged and compared, against counts made by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from selc.harness import workload


def write(path: Path, calls: list[tuple[dict[str, Any], int]], family: str = "plan") -> Path:
    lines = [
        json.dumps(
            {"format": 1, "family": family, "selector": "s", "inputs": i, "extra": {}, "count": c}
        )
        for i, c in calls
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_show(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", [({"m": 1}, 50), ({"m": 8}, 40), ({"m": 64}, 10)])
    answer = workload.show([path])
    (family,) = answer.json["families"]
    assert (family["calls"], family["distinct"]) == (100, 3)
    assert family["inputs"]["m"] == {
        "distinct": 3, "min": 1, "p50": 1, "p90": 8, "p99": 64, "max": 64,
    }  # fmt: skip
    assert family["most"][0] == {"inputs": {"m": 1}, "extra": {}, "share": 0.5}
    assert "100 calls, 3 distinct" in answer.text


def test_merge(tmp_path: Path) -> None:
    a = write(tmp_path / "a.jsonl", [({"m": 1}, 5), ({"m": 8}, 1)])
    b = write(tmp_path / "b.jsonl", [({"m": 8}, 3), ({"m": 9}, 1)])
    out = tmp_path / "c.jsonl"
    assert workload.merge([a, b], [], out).exit_code == 0
    merged = {
        json.loads(ln)["inputs"]["m"]: json.loads(ln)["count"]
        for ln in out.read_text().splitlines()
    }
    assert merged == {1: 5, 8: 4, 9: 1}
    assert workload.merge([a, b], [2.0, 0.5], out).exit_code == 0
    merged = {
        json.loads(ln)["inputs"]["m"]: json.loads(ln)["count"]
        for ln in out.read_text().splitlines()
    }
    assert merged == {1: 10, 8: 4, 9: 1}
    assert workload.merge([a, b], [2.0], out).exit_code == 2
    assert workload.merge([a], [-1.0], out).exit_code == 2


def test_diff(tmp_path: Path) -> None:
    a = write(tmp_path / "a.jsonl", [({"m": 1}, 3), ({"m": 8}, 1)])
    b = write(tmp_path / "b.jsonl", [({"m": 1}, 1), ({"m": 9}, 1)])
    same = workload.diff(a, a)
    assert (same.exit_code, same.json["calls"]) == (0, [])
    answer = workload.diff(a, b)
    assert answer.exit_code == 1
    shares = {c["inputs"]["m"]: (c["before"], c["after"]) for c in answer.json["calls"]}
    assert shares == {1: (0.75, 0.5), 8: (0.25, 0.0), 9: (0.0, 0.5)}
    assert answer.json["distance"] == 0.5


@pytest.mark.parametrize(
    "line",
    [
        "{", "[]", "7", '{"format": 2}', '{"format": 1}', '{"format": 1, "family": "plan"}',
        '{"format": 1, "family": "plan", "inputs": {}, "count": 0}',
        '{"format": 1, "family": "plan", "inputs": {}, "count": true}',
        '{"format": 1, "family": "plan", "inputs": {}, "speed": 1}',
        '{"format": 1, "family": 7, "inputs": {}}',
        "[" * 100_000,
    ],
)  # fmt: skip
def test_lines_that_are_no_calls(tmp_path: Path, line: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(line + "\n")
    out = tmp_path / "out.jsonl"
    for answer in (
        workload.show([path]),
        workload.merge([path], [], out),
        workload.diff(path, path),
    ):
        assert answer.exit_code == 2
        (found,) = {d.message for d in answer.diagnostics}
        assert answer.diagnostics[0].span.line == 1
        assert answer.diagnostics[0].help
        assert found
    assert not out.exists()


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert workload.show([tmp_path / "none.jsonl"]).exit_code == 2
