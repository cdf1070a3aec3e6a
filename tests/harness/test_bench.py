"""`selc bench` on fake kernels: what it measures, and every fault that it meets."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from selc.cli import app
from selc.harness.selector import Selector

KERNELS = "tests.harness.fake_kernels:SUM"
ROOT = Path(__file__).resolve().parents[2]


def arguments(folder: Path, profile: Path, *more: Any, kernels: str = KERNELS) -> list[str]:
    start = ["bench", str(folder), "--kernels", kernels, "--profile", str(profile)]
    return [*start, "--device", "cpu", "--rounds", "3", *(str(m) for m in more)]


def bench(*given: Any, **named: Any) -> Result:
    result = CliRunner().invoke(app, arguments(*given, **named))
    assert "Traceback" not in result.output
    return result


def measured(*given: Any, **named: Any) -> dict[str, Any]:
    result = bench(*given, "--format", "json", **named)
    assert result.exit_code == 0, result.output
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def test_tuples_are_ranked_and_files_written(sums, profile, tmp_path: Path) -> None:
    path = profile({1: 100, 2: 50, 64: 30})
    result = bench(sums, path, "-o", tmp_path / "out", "--rounds", "5")
    assert result.exit_code == 0, result.output
    assert (
        "sum: 3 distinct calls, 6 of 6 legal tuples and stock; 18 distinct launches, 5 rounds"
        in (result.stdout)
    )
    assert "of copy" in result.stdout
    written = {p.name for p in (tmp_path / "out").iterdir()}
    plots = {f"sum-{name}.svg" for name in ("time", "stock", "roofline")}
    assert written == {"results.jsonl", "bench.json", "bench.txt", *plots}
    answer = json.loads((tmp_path / "out" / "bench.json").read_text())
    tuples = {t["name"]: t for t in answer["families"][0]["tuples"]}
    by_tile = {
        t["values"]["choose.tile"] * t["values"]["scale"]: t for t in tuples.values() if t["values"]
    }
    assert by_tile[1]["seconds"] < by_tile[8]["seconds"] < by_tile[32]["seconds"]
    assert tuples["stock"]["per_stock"] == tuples["default"]["per_default"] == 1.0
    assert 0.3 < tuples["stock"]["seconds"] / by_tile[1]["seconds"] < 3.5
    lines = [json.loads(x) for x in (tmp_path / "out" / "results.jsonl").read_text().splitlines()]
    assert len(lines) == 7 * 3
    total = sum(x["count"] * x["median"] for x in lines if x["tuple"] == "stock")
    assert total == pytest.approx(tuples["stock"]["seconds"])
    assert all(x["low"] <= x["median"] <= x["high"] and x["rounds"] == 5 for x in lines)


def test_equal_launches_are_measured_once(sums, profile, tmp_path: Path) -> None:
    journal = tmp_path / "j.jsonl"
    family = measured(sums, profile({1: 9}), "--journal", journal)["families"][0]
    samples = [x for x in read(journal) if x["kind"] == "sample"]
    # tile * scale is 1, 2, 4, 8, 16, 32; stock takes 1 here and so does a tuple.
    assert (len(samples), family["launches"], len(family["tuples"])) == (6, 6, 7)


def test_a_selection_of_tuples_and_weights(sums, profile, tmp_path: Path) -> None:
    path = profile({1: 9})
    answer = measured(
        sums, path, "--limit", "2", "--profile", path, "--weight", "1", "--weight", "3"
    )
    names = [t["name"] for t in answer["families"][0]["tuples"]]
    assert sorted(names)[2:] == ["default", "stock"]
    assert len(names) == 4
    Selector.load(sums).package.commit(tmp_path / "mine.yaml", {"choose.tile": 4, "scale": 2})
    answer = measured(sums, path, "--tuple", tmp_path / "mine.yaml")
    tuples = {t["name"]: t["values"] for t in answer["families"][0]["tuples"]}
    assert set(tuples) == {"default", "stock", "mine"}
    assert tuples["mine"] == {"choose.tile": 4, "scale": 2}


def test_failures_are_listed_and_the_rest_is_measured(sums, profile) -> None:
    result = bench(
        sums, profile({1: 9, 2: 1}), "--timeout", "2s", "--format", "json",
        "--set", "tile_1=exit", "--set", "tile_2=hang", "--set", "tile_4=memory",
        "--set", "tile_8=unsupported", "--set", "tile_16=error",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    tuples = json.loads(result.stdout)["families"][0]["tuples"]
    assert [t["name"] for t in tuples if t["seconds"] is not None] == ["#6"]
    failures = {t["failure"] for t in tuples if t["failure"]}
    assert failures == {
        "the worker process ended with status 7 (about to leave)",
        "no answer within 2 s",
        "out of memory",
        "not supported: needs a tile below 64",
        "ValueError: first line",
    }
    assert (
        "warning[SEL956]: 2 of 7 candidates of `sum` failed, as stock: the worker" in result.stderr
    )
    assert result.stderr.count("warning[SEL956]") == 5


def test_nothing_works(sums, profile) -> None:
    tiles = [f"--set=tile_{t}=error" for t in (1, 2, 4, 8, 16, 32)]
    result = bench(sums, profile({1: 9}), *tiles)
    assert result.exit_code == 1
    assert "error[SEL956]: 7 of 7 candidates of `sum` failed" in result.stderr


def test_a_run_goes_on_from_its_journal(sums, profile, tmp_path: Path) -> None:
    journal, path = tmp_path / "j.jsonl", profile({1: 9, 2: 5})
    whole = measured(sums, path, "--journal", journal)["families"][0]
    lines = journal.read_bytes().splitlines(keepends=True)
    samples = [n for n, line in enumerate(lines) if b'"sample"' in line]
    # An interruption in the middle of a line.
    journal.write_bytes(b"".join(lines[: samples[3]]) + lines[samples[3]][:20])
    again = measured(sums, path, "--journal", journal)["families"][0]
    records = [x for x in read(journal) if x["kind"] == "sample"]
    assert len(records) == len(samples) == len({r["key"] for r in records}) == whole["launches"]
    assert again["calls_measured"] == 2
    kept = [json.loads(line)["seconds"] for line in lines if b'"sample"' in line][:3]
    assert [r["seconds"] for r in records[:3]] == kept
    more = measured(sums, path, "--journal", journal, "--rounds", "4")["families"][0]
    assert len(more["tuples"]) == 7
    assert {len(r["seconds"]) for r in read(journal) if r["kind"] == "sample"} == {3, 1}


def test_a_journal_of_another_run(sums, profile, tmp_path: Path) -> None:
    journal, path = tmp_path / "j.jsonl", profile({1: 9})
    measured(sums, path, "--journal", journal)
    head, *rest = read(journal)
    write_lines(journal, [{**head, "selectors": {"sum": "other"}}, *rest])
    result = bench(sums, path, "--journal", journal)
    assert (result.exit_code, "[SEL954]: the journal" in result.stderr) == (2, True)
    assert "was written with other selectors (sum: 'other', now" in result.stderr


def test_a_full_disk(sums, profile, tmp_path: Path) -> None:
    journal, path = tmp_path / "j.jsonl", profile({1: 9, 2: 1, 64: 1})
    command = [sys.executable, "-m", "selc", *arguments(sums, path, "--journal", journal)]
    script = "import resource, os, sys; n = 3000\n"
    script += (
        "resource.setrlimit(resource.RLIMIT_FSIZE, (n, n)); os.execv(sys.argv[1], sys.argv[1:])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *command],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 2, done.stderr
    assert "[SEL954]: the journal" in done.stderr
    assert "can no longer be written: File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert "of 3 distinct calls" in done.stdout
    assert "ended early" in done.stdout
    assert bench(sums, path, "--journal", journal).exit_code == 0


def test_an_interruption_keeps_what_was_measured(sums, profile, tmp_path: Path) -> None:
    journal, path = tmp_path / "j.jsonl", profile({1: 9, 2: 5, 64: 1})
    slow = ["--set", "tile_32=slow", "--set", "tile_16=slow"]
    command = [sys.executable, "-m", "selc", *arguments(sums, path, "--journal", journal, *slow)]
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    )
    until = time.monotonic() + 60
    while time.monotonic() < until and len(whole_lines(journal)) < 5:
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    out, error = running.communicate(timeout=30)
    assert running.returncode == 130, error
    assert "Traceback" not in error
    assert "of 3 distinct calls" in out
    assert "interrupted" in out
    before = [x for x in read(journal) if x["kind"] == "sample"]
    assert 3 <= len(before) < 18
    answer = measured(sums, path, "--journal", journal, *slow)
    assert answer["families"][0]["calls_measured"] == 3


def test_a_budget(sums, profile) -> None:
    more = ("--set", "tile_32=slow", "--rounds", "5000", "--budget", "8s", "--format", "json")
    result = bench(sums, profile({1: 9, 2: 5, 64: 1}), *more)
    answer = json.loads(result.stdout)
    # How much was measured by then is the machine's affair; that it ended and says so is not.
    assert answer["unfinished"] == "the budget of 8 s is spent"
    measured_calls = answer["families"][0]["calls_measured"]
    assert measured_calls < 3
    assert (result.exit_code == 0) == (measured_calls > 0), result.output
    assert ("nothing was measured" in result.stderr) == (not measured_calls)
    assert answer["seconds"] < 16


def test_results_that_cannot_be_written(sums, profile, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    result = bench(
        sums, profile({1: 9}), "--limit", "1", "-o", tmp_path / "out", "--format", "json"
    )
    assert (result.exit_code, "error[SEL915]: results cannot be" in result.stderr) == (2, True)
    answer = json.loads(result.stdout)
    assert answer["errors"][0]["code"] == "SEL915"
    assert answer["families"][0]["tuples"][0]["seconds"] > 0


@pytest.mark.parametrize(
    ("kernels", "words"),
    [
        ("tests.harness.fake_kernels:INCOMPLETE", "has no method `reference`"),
        ("tests.harness.fake_kernels:NOPE", "has no `NOPE`"),
        ("no_such_module:X", "`no_such_module` cannot be imported"),
        ("gem", "`gem` names no kernels"),
        ("other=tests.harness.fake_kernels:SUM", "no selector is of the family `other`"),
    ],
)
def test_kernels_that_cannot_be_used(sums, profile, kernels: str, words: str) -> None:
    result = bench(sums, profile({1: 1}), kernels=kernels)
    assert (result.exit_code, "[SEL950]" in result.stderr) == (2, True)
    assert words in result.stderr


def test_a_family_without_kernels(sums, profile) -> None:
    result = CliRunner().invoke(app, ["bench", str(sums), "--profile", str(profile({1: 1}))])
    assert result.exit_code == 2
    assert "give them with `--kernels sum=module:object`" in result.stderr


@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        ({"calls": {1: 1}, "odd": 1}, "SEL934", "has no field `odd`"),
        ({"calls": {1: 1}, "selector": "another"}, "SEL951", "recorded with another selector"),
        ({"calls": {1: 1, 13: 1}}, "SEL952", "nobody serves thirteen"),
        ({"calls": {1: 1, 65: 1}}, "SEL952", "refuses the call m=65"),
        ({"calls": {1: 1}, "family": "moe"}, "SEL955", "the profile has no call of `sum`"),
        ({"calls": {}}, "SEL955", "the profile has no call of `sum`"),
    ],
)
def test_profiles_that_do_not_fit(sums, profile, given, code: str, words: str) -> None:
    result = bench(sums, profile(**given))
    assert (result.exit_code, f"[{code}]" in result.stderr) == (2, True), result.stderr
    assert words in result.stderr


def test_a_selection_with_nothing_legal(illegal, profile) -> None:
    result = bench(illegal, profile({1: 1}))
    assert result.exit_code == 1
    assert "error[SEL955]: no tuple of `sum` is legal" in result.stderr


def test_wrong_arguments(sums, profile, tmp_path: Path) -> None:
    path = profile({1: 1})
    for more, code, words in (
        (["--weight", "0"], "SEL909", "a weight is not positive"),
        (["--weight", "1", "--weight", "1"], "SEL909", "2 weights for 1 profiles"),
        (["--set", "page"], "SEL909", "`--set page` is not NAME=VALUE"),
        (["--budget", "soon"], "SEL909", "write it as 300s, 5m or 1h"),
        (["--rounds", "0"], "SEL909", "--rounds"),
        (["--tuple", tmp_path / "none.yaml"], "SEL914", "cannot be read"),
        ([tmp_path], "SEL951", "there is no manifest.json in it"),
        ([sums], "SEL909", "two selectors are of the family `sum`"),
    ):
        result = bench(sums, path, *more)
        assert (result.exit_code, f"[{code}]" in result.stderr) == (2, True), result.stderr
        assert words in result.stderr
    (tmp_path / "t.yaml").write_text(
        json.dumps({"format": 1, "families": {"sum": {"selector": "x", "pins": {}}}})
    )
    result = bench(sums, path, "--tuple", tmp_path / "t.yaml")
    assert (result.exit_code, "another selector" in result.stderr) == (2, True)


def test_no_gpu(sums, profile) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is one")
    result = CliRunner().invoke(app, [*arguments(sums, profile({1: 1})), "--device", "cuda"])
    assert (result.exit_code, "[SEL953]: torch sees no CUDA device" in result.stderr) == (2, True)


def test_it_runs_without_what_the_compiler_needs(sums, profile) -> None:
    code = (
        "import sys\n"
        "for name in ('libcst', 'z3', 'msgspec', 'networkx', 'filelock', 'yaml'):\n"
        "    sys.modules[name] = None\n"
        "from selc.cli import main; main()"
    )
    command = [sys.executable, "-c", code, *arguments(sums, profile({1: 1}), "--limit", "1")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_command_imports_no_torch_before_it_must() -> None:
    code = (
        "import sys; from selc.cli import app\n"
        "import selc.harness.bench, selc.harness.worker\n"
        "print(sorted(m for m in ('torch', 'triton', 'matplotlib', 'numpy') if m in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout == "[]\n"


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def whole_lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def write_lines(path: Path, records: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(r) + os.linesep for r in records))
