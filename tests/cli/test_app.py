"""Exit codes, streams and start-up of the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

import selc.driver
from selc.cli import app
from selc.cli.source import spread_facts
from selc.diag.diagnostic import Diagnostic, Refused, Severity
from selc.diag.outcome import Outcome
from selc.diag.rules import all_rules
from selc.diag.span import Span
from selc.driver.options import CompileOptions

ROOT = Path(__file__).resolve().parents[2]
RUN = "import sys; from selc.cli import main; sys.argv[0] = 'selc'; main()"


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def in_shell(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", RUN, *arguments],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **environment},
    )


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A driver that records the options and does as it is told."""
    fake = SimpleNamespace(seen=[], result=Outcome(0, "done", {"format": 1}))

    def run(*options: Any) -> Outcome:
        fake.seen.append(options)
        result: Outcome | BaseException = fake.result
        if isinstance(result, BaseException):
            raise result
        return result

    fake.run = run
    for name in ("compile", "check"):
        monkeypatch.setattr(selc.driver, name, SimpleNamespace(run=run), raising=False)
    caches = SimpleNamespace(list_entries=run, clear=run, verify=run)
    monkeypatch.setattr(selc.driver, "cache", caches, raising=False)
    return fake


def test_help_and_version() -> None:
    result = invoke("--help")
    assert result.exit_code == 0
    for name in ("compile", "check", "explain", "cache"):
        assert name in result.stdout
        assert invoke(name, "--help").exit_code == 0
    assert invoke("--version").stdout.strip() == f"selc {selc.__version__}"


def test_every_option_arrives(driver: SimpleNamespace) -> None:
    arguments = [
        "k.py:f",
        "--facts",
        "a.yaml",
        "b.yml",
        "--facts",
        "c",
        "--root",
        "r",
        "--root",
        "s",
    ]
    arguments += ["-o", "out", "--tuple", "t.yaml", "--profile", "p.jsonl", "--emit", "python,ir"]
    arguments += ["--no-native", "--max-candidates", "9", "--whole-rows", "--skip", "fold"]
    arguments += ["--solver-budget", "7"]
    arguments += ["--require-proof", "--no-cache", "--emit-after", "all", "--format", "json"]
    result = invoke("compile", *arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    (options,) = driver.seen[0]
    assert options == CompileOptions(
        target="k.py:f",
        facts=(Path("a.yaml"), Path("b.yml"), Path("c")),
        roots=(Path("r"), Path("s")),
        out=Path("out"),
        tuple_file=Path("t.yaml"),
        profile=Path("p.jsonl"),
        emit=("python", "ir"),
        native=False,
        max_candidates=9,
        solver_budget=7,
        whole_rows=True,
        skip=("fold",),
        require_proof=True,
        use_cache=False,
        format="json",
        emit_after="all",
    )


def test_the_defaults_are_those_of_the_options(driver: SimpleNamespace) -> None:
    assert invoke("compile", "k.py").exit_code == 0
    assert driver.seen == [(CompileOptions("k.py"),)]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            ["--facts", "a.yaml", "b.yaml", "t.py"],
            ["--facts", "a.yaml", "--facts", "b.yaml", "t.py"],
        ),
        (["--facts=a.yaml", "b.yaml"], ["--facts=a.yaml", "--facts", "b.yaml"]),
        (
            ["t.py", "--facts", "a", "--tuple", "t.yaml"],
            ["t.py", "--facts", "a", "--tuple", "t.yaml"],
        ),
        (["--facts", "a.yaml", "t.py", "b.yaml"], ["--facts", "a.yaml", "t.py", "b.yaml"]),
        (["--facts", "a.yaml", "--", "b.yaml"], ["--facts", "a.yaml", "--", "b.yaml"]),
        (["--facts"], ["--facts"]),
    ],
)
def test_facts_files_in_a_row(given: list[str], expected: list[str]) -> None:
    assert spread_facts(given) == expected


def test_answers_go_to_stdout_and_warnings_to_stderr(driver: SimpleNamespace) -> None:
    warning = Diagnostic("SEL940", "no C compiler", severity=Severity.WARNING)
    driver.result = Outcome(1, "no", {"format": 1, "pins": []}, [warning])
    result = invoke("compile", "k.py")
    assert (result.exit_code, result.stdout) == (1, "no\n")
    assert result.stderr == "warning[SEL940]: no C compiler\n"
    assert json.loads(invoke("compile", "k.py", "--format", "json").stdout) == driver.result.json


@pytest.mark.parametrize("raised", [True, False])
def test_wrong_input_exits_2(driver: SimpleNamespace, raised: bool) -> None:
    diagnostic = Diagnostic("SEL907", "no such function", Span("k.py", 1, 2, 1, 3))
    driver.result = Refused(diagnostic) if raised else Outcome(2, diagnostics=[diagnostic])
    result = invoke("compile", "k.py")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("k.py:1:2: error[SEL907]: no such function\n")
    as_json = invoke("compile", "k.py", "--format", "json")
    assert as_json.exit_code == 2
    error = {
        "code": "SEL907",
        "message": "no such function",
        "path": "k.py",
        "line": 1,
        "column": 2,
    }
    assert json.loads(as_json.stdout) == {"format": 1, "errors": [error]}


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["compile"],
        ["compile", "k.py", "--emit", "pyton"],
        ["compile", "k.py", "--max-candidates", "0"],
        ["compile", "k.py", "--format", "xml"],
        ["compile", "k.py", "extra"],
        ["compile", "k.py", "--no-such-option"],
        ["explain", "SEL000"],
        ["cache", "burn"],
        ["check"],
    ],
)
def test_usage_errors_exit_2(arguments: list[str]) -> None:
    result = invoke(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "error[SEL909]" in result.stderr
    assert "Traceback" not in result.stderr


def test_usage_errors_as_json() -> None:
    for arguments in (["compile", "--format", "json"], ["compile", "--format=json", "k", "--nope"]):
        result = invoke(*arguments)
        assert result.exit_code == 2
        assert json.loads(result.stdout)["errors"][0]["code"] == "SEL909"


def test_no_command_shows_the_help_and_exits_2() -> None:
    for arguments in ([], ["cache"]):
        result = invoke(*arguments)
        assert result.exit_code == 2
        assert "Usage:" in result.output


def test_a_mistake_inside_selc_exits_3(
    driver: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.delenv("SELC_DEBUG", raising=False)
    driver.result = KeyError("node 7")
    result = invoke("compile", "k.py")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "internal error [SEL990]: KeyError: 'node 7'" in result.stderr
    assert "Traceback" not in result.stderr
    (dump,) = tmp_path.glob("selc-crash-*.txt")
    assert str(dump) in result.stderr
    text = dump.read_text(encoding="utf-8")
    assert "command: selc compile k.py" in text
    assert "Traceback" in text
    monkeypatch.setenv("SELC_DEBUG", "1")
    assert "Traceback" in invoke("compile", "k.py").stderr


def test_what_the_system_refuses_is_no_mistake_of_selc(driver: SimpleNamespace) -> None:
    driver.result = PermissionError(13, "Permission denied", "/out/manifest.json")
    result = invoke("compile", "k.py")
    assert result.exit_code == 2
    assert result.stderr.startswith("/out/manifest.json: error[SEL915]: ")


def test_interruption(driver: SimpleNamespace) -> None:
    driver.result = KeyboardInterrupt()
    result = invoke("compile", "k.py")
    assert (result.exit_code, result.stdout) == (130, "")
    assert result.stderr.strip() == "selc: interrupted"


def test_check_and_cache(driver: SimpleNamespace) -> None:
    assert invoke("check", "out", "--against-source").exit_code == 0
    assert driver.seen == [(Path("out"), True)]
    for name in ("list", "clear", "verify"):
        assert invoke("cache", name).stdout == "done\n"


def test_explain_knows_every_code_and_name() -> None:
    listing = invoke("explain").stdout
    for rule in all_rules():
        by_code, by_name = invoke("explain", rule.code), invoke("explain", rule.name)
        assert by_code.exit_code == 0
        assert by_code.stdout == by_name.stdout
        assert by_code.stdout.startswith(f"{rule.code} ({rule.name}): {rule.title}\n")
        assert "What to do" in by_code.stdout
        assert rule.code in listing
    wrong = invoke("explain", "unbound-loop")
    assert "did you mean `unbounded-loop`?" in wrong.stderr


def test_only_click_is_imported_at_start_up() -> None:
    code = (
        "import sys; before = set(sys.modules)\n"
        "from selc.cli import app\n"
        "app.main(['--help'], standalone_mode=False)\n"
        "new = {name.split('.')[0] for name in set(sys.modules) - before}\n"
        "print(*sorted(new - set(sys.stdlib_module_names)), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT
    )
    assert done.stderr.split() == ["click", "selc"]


def test_in_a_process_of_its_own() -> None:
    done = in_shell("explain", "SEL902")
    assert (done.returncode, done.stderr) == (0, "")
    assert in_shell("explain", "nothing-like-it").returncode == 2
    assert in_shell("compile").returncode == 2


def test_output_survives_a_narrow_encoding(driver: SimpleNamespace) -> None:
    driver.result = Outcome(0, "caf\u00e9")
    result = CliRunner(charset="ascii").invoke(app, ["compile", "k.py"])
    assert (result.exit_code, result.stdout) == (0, "caf\\xe9\n")


def test_a_closed_pipe_is_no_error() -> None:
    command = f'"{sys.executable}" -c "{RUN}" explain | true'
    done = subprocess.run(
        ["bash", "-c", command], check=False, capture_output=True, text=True, cwd=ROOT
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_as_a_module():
    answer = subprocess.run(
        [sys.executable, "-m", "selc", "--version"], capture_output=True, text=True, check=False
    )
    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout.startswith("selc")
