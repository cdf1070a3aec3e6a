"""`selc tune` on fake kernels: its answer, its journal, and every fault that it meets."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from selc.cli import app
from selc.harness.executor import LocalExecutor
from selc.harness.journal import Journal
from selc.harness.selector import Selector
from selc.harness.tune import run

KERNELS = "tests.harness.fake_kernels:SUM"
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels run in this process, which saves starting another one."""
    monkeypatch.setattr(run, "LocalExecutor", partial(LocalExecutor, isolate=False))


def arguments(folder: Path, profile: Path, *more: Any, kernels: str = KERNELS) -> list[str]:
    start = ["tune", str(folder), "--kernels", kernels, "--profile", str(profile)]
    return [*start, "--device", "cpu", "--budget", "30s", *(str(m) for m in more)]


def tune(*given: Any, **named: Any) -> Result:
    result = CliRunner().invoke(app, arguments(*given, **named))
    assert "Traceback" not in result.output
    return result


def again(*given: Any) -> Result:
    result = CliRunner().invoke(app, ["tune", *(str(g) for g in given)])
    assert "Traceback" not in result.output
    return result


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.usefixtures("here")
def test_the_fastest_tuple_is_found_and_the_selector_takes_it(
    sums: Path, profile: Any, tmp_path: Path
) -> None:
    out, journal = tmp_path / "tuple.yaml", tmp_path / "j.jsonl"
    path = profile({1: 100, 20: 50, 64: 30})
    result = tune(sums, path, "-o", out, "--journal", journal)
    assert result.exit_code == 0, result.output
    selector = Selector.load(sums)
    selector.package.load(out)
    assert selector.package.pins() == {"choose.tile": 1, "scale": 1}  # smaller tiles sleep less
    for text in ("sum: 6 legal tuples", "gain", "price", "runner-up", f"written: {out}"):
        assert text in result.stdout
    answer = json.loads(tune(sums, path, "--format", "json").stdout)
    (found,) = answer["families"][0]["results"]
    assert found["tuple"] == {"choose.tile": 1, "scale": 1}
    assert found["gain"]["low"] <= found["gain"]["value"] <= found["gain"]["high"]
    assert found["gain"]["value"] == pytest.approx(found["default"]["seconds"] / found["seconds"])
    assert found["price"]["value"] < 1.2
    assert answer["families"][0]["measured"]["launches"] == 18


@pytest.mark.usefixtures("here")
def test_the_decision_follows_from_the_journal_alone(
    sums: Path, profile: Any, tmp_path: Path
) -> None:
    first, second, journal = tmp_path / "a.yaml", tmp_path / "b.yaml", tmp_path / "j.jsonl"
    done = tune(sums, profile({1: 9, 20: 3}), "-o", first, "--journal", journal)
    assert done.exit_code == 0, done.output
    code = (
        "import sys; from selc.cli import app\n"
        f"app.main(['tune', '--replay', '--journal', {str(journal)!r}, '-o', {str(second)!r}],"
        " standalone_mode=False)\n"
        "assert 'torch' not in sys.modules and 'numpy' not in sys.modules"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert first.read_bytes() == second.read_bytes()
    told = [line for line in done.stdout.splitlines() if "written" not in line and " s" not in line]
    assert all(line in ran.stdout for line in told)
    data = tmp_path / "c.json"
    assert again("--replay", "--journal", journal, "-o", data).exit_code == 0
    selector = Selector.load(sums)
    selector.package.load(data)


@pytest.mark.usefixtures("here")
def test_ties_go_to_the_first_tuple(sums: Path, profile: Any, tmp_path: Path) -> None:
    """Times are made equal: whoever reads the journal takes the same tuple."""
    journal, out = tmp_path / "j.jsonl", tmp_path / "t.yaml"
    assert tune(sums, profile({1: 9}), "--journal", journal).exit_code == 0
    lines = records(journal)
    for line in lines:
        if line["kind"] == "sample":
            line["seconds"] = [1.0] * len(line["seconds"])
    journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert again("--replay", "--journal", journal, "-o", out).exit_code == 0
    assert '"choose.tile": 1\n' in out.read_text()
    assert '"scale": 1\n' in out.read_text()


@pytest.mark.usefixtures("here")
def test_several_workloads_and_what_each_tuple_costs_on_the_others(
    sums: Path, profile: Any, tmp_path: Path
) -> None:
    one = profile({1: 100}).rename(tmp_path / "one.jsonl")
    two = profile({20: 7, 1: 1}).rename(tmp_path / "two.jsonl")
    result = tune(sums, one, "--profile", two, "--weight", "1", "--weight", "3", "--format", "json")
    assert result.exit_code == 0, result.output
    (family,) = json.loads(result.stdout)["families"]
    assert [r["workload"] for r in family["results"]] == ["all", str(one), str(two)]
    matrix = family["matrix"]["cost"]
    assert [matrix[0][0], matrix[1][1]] == [1.0, 1.0]
    assert all(cell > 0.5 for row in matrix for cell in row)


@pytest.mark.usefixtures("here")
def test_goes_on_from_its_journal(sums: Path, profile: Any, tmp_path: Path) -> None:
    journal, path = tmp_path / "j.jsonl", profile({1: 9, 20: 3})
    assert tune(sums, path, "--journal", journal).exit_code == 0
    before = records(journal)
    keep = [line for line in before if line["kind"] not in ("end",) and line.get("compare") is None]
    journal.write_text("".join(json.dumps(line) + "\n" for line in keep) + '{"kind": "samp')
    assert tune(sums, path, "--journal", journal).exit_code == 0
    after = records(journal)
    assert after[: len(keep)] == keep
    searched = [
        (r["call"], r["choice"]) for r in after if r["kind"] == "sample" and r["compare"] is None
    ]
    assert len(searched) == len(set(searched))
    assert [r["kind"] for r in after].count("problem") == 1


@pytest.mark.usefixtures("here")
def test_a_journal_of_another_run_is_refused(sums: Path, profile: Any, tmp_path: Path) -> None:
    journal = tmp_path / "j.jsonl"
    assert tune(sums, profile({1: 9}), "--journal", journal).exit_code == 0
    result = tune(sums, profile({1: 10}), "--journal", journal)
    assert result.exit_code == 2
    assert "error[SEL954]" in result.stderr
    assert "for other calls" in result.stderr
    assert tune(sums, profile({1: 9}), "--journal", journal, "--seed", "1").exit_code == 2
    result = again("--replay", "--journal", tmp_path / "none.jsonl")
    assert (result.exit_code, "error[SEL954]" in result.stderr) == (2, True)
    journal.write_text(json.dumps({"kind": "header", "format": 1, "command": "bench"}) + "\n")
    result = again("--show", journal)
    assert result.exit_code == 2
    assert "is not one of `selc tune`" in result.stderr


@pytest.mark.usefixtures("here")
def test_show_reports_and_draws(sums: Path, profile: Any, tmp_path: Path) -> None:
    journal = tmp_path / "j.jsonl"
    assert tune(sums, profile({1: 9, 20: 3}), "--journal", journal).exit_code == 0
    result = again("--show", journal, "-o", tmp_path / "plots")
    assert result.exit_code == 0, result.output
    assert "tuned - stock" in result.stdout
    names = {p.name for p in (tmp_path / "plots").iterdir()}
    assert names == {"sum-pins.svg", "sum-batch.svg", "sum-loss.svg"}
    answer = json.loads(again("--show", journal, "--format", "json").stdout)
    losses = [row["loss"] for row in answer["by_call"]["sum"]]
    assert losses == sorted(losses, reverse=True)


def test_crashes_and_hangs_are_out(sums: Path, profile: Any, tmp_path: Path) -> None:
    result = tune(
        sums, profile({1: 9, 20: 1}), "--timeout", "2s", "--format", "json",
        "--set", "tile_1=exit", "--set", "tile_2=hang", "--set", "tile_4=memory",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    (found,) = json.loads(result.stdout)["families"][0]["results"]
    assert found["tuple"] == {"choose.tile": 4, "scale": 2}  # the smallest tile that is left
    assert "warning[SEL956]: a kernel of `sum` failed" in result.stderr


@pytest.mark.usefixtures("here")
def test_nothing_works(sums: Path, profile: Any, tmp_path: Path) -> None:
    tiles = [f"--set=tile_{t}=error" for t in (1, 2, 4, 8, 16, 32)]
    out = tmp_path / "t.yaml"
    result = tune(sums, profile({1: 9}), *tiles, "-o", out)
    assert result.exit_code == 1
    assert "ValueError: first line" in result.stderr
    assert "no tuple of `sum` was measured on every call" in result.stderr
    assert not out.exists()


def test_nothing_is_legal(illegal: Path, profile: Any) -> None:
    result = tune(illegal, profile({1: 9}))
    assert result.exit_code == 1
    assert "error[SEL955]" in result.stderr


def test_profiles_that_do_not_fit(sums: Path, profile: Any) -> None:
    result = tune(sums, profile({1: 9}, speed=3))
    assert result.exit_code == 2
    assert "has no field `speed`" in result.stderr
    result = tune(sums, profile({1: 9}, selector="0" * 64))
    assert result.exit_code == 2
    assert "error[SEL951]" in result.stderr
    result = tune(sums, profile({13: 9}))
    assert result.exit_code == 2
    assert "error[SEL952]" in result.stderr
    assert "m=13" in result.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
@pytest.mark.usefixtures("here")
def test_the_disk_is_full(
    sums: Path, profile: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, written = Journal._append, []

    def full(self: Journal, record: Any) -> None:
        written.append(record)
        if len(written) == 16:
            monkeypatch.setattr(self, "_stream", Path("/dev/full").open("wb"))  # noqa: SIM115
        append(self, record)

    monkeypatch.setattr(Journal, "_append", full)
    out, journal = tmp_path / "t.yaml", tmp_path / "j.jsonl"
    result = tune(sums, profile({1: 9, 20: 3}), "--journal", journal, "-o", out)
    assert result.exit_code == 2
    assert "can no longer be written: No space left on device" in result.stderr
    assert "this is the best so far" in result.stdout
    assert out.exists()
    assert len(records(journal)) == 15


@pytest.mark.usefixtures("here")
def test_a_tuple_that_cannot_be_written(sums: Path, profile: Any, tmp_path: Path) -> None:
    result = tune(sums, profile({1: 9}), "-o", tmp_path / "no" / "such" / "t.yaml")
    assert result.exit_code == 2
    assert "the tuple cannot be written" in result.stderr


def test_the_budget_is_hard(sums: Path, profile: Any, tmp_path: Path) -> None:
    started = time.monotonic()
    result = tune(sums, profile({1: 9, 20: 5, 40: 1}), "--budget", "1.5s", "--set", "tile_1=slow")
    assert time.monotonic() - started < 8
    assert result.exit_code in (0, 1)
    assert "ended: " in result.stdout


def test_an_interruption_gives_the_best_so_far(sums: Path, profile: Any, tmp_path: Path) -> None:
    out, journal = tmp_path / "t.yaml", tmp_path / "j.jsonl"
    path = profile({1: 9, 20: 5, 40: 1})
    slow = [f"--set=tile_{t}=slow" for t in (1, 2, 4, 8, 32)]
    command = arguments(sums, path, "-o", out, "--journal", journal, *slow)
    process = subprocess.Popen(
        [sys.executable, "-m", "selc", *command], cwd=ROOT, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    wanted = 6  # the default and the stock selection are measured by then
    for _ in range(600):
        time.sleep(0.05)
        if journal.exists() and journal.read_text().count('"sample"') >= wanted:
            break
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
    assert "this is the best so far" in stdout
    assert out.exists()


def test_what_is_missing_is_said() -> None:
    result = again()
    assert result.exit_code == 2
    assert "DIR" in result.stderr
    result = again("--replay")
    assert result.exit_code == 2
    assert "--journal" in result.stderr


@pytest.mark.usefixtures("here")
def test_an_estimate_that_fails_is_told(sums: Path, profile: Any) -> None:
    kernels, path = "tests.harness.fake_kernels:GUESSES", profile({1: 9, 20: 5})
    for more, estimated in (((), True), (("--set", "no_estimate=yes"), False)):
        result = tune(sums, path, "--format", "json", *more, kernels=kernels)
        assert result.exit_code == 0, result.output
        (family,) = json.loads(result.stdout)["families"]
        assert family["measured"]["estimated"] is estimated
        assert ("fail to estimate: KeyError: 'no rate for tile'" in result.stderr) is not estimated
