"""The tool around the rules: suppressions, baseline, changes, formats, cache, exit codes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from selc.cli.app import app

BAD = """\
def launch(x, w):
    split_k = 4 if x.shape[0] <= 32 else 1
    gemm_kernel[(8,)](x, w, SPLIT_K=split_k)
"""
CLEAN = "def launch(x, w):\n    gemm_kernel[(8,)](x, w, SPLIT_K=1)\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.py").write_text(BAD, encoding="utf-8")
    return tmp_path


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["lint", *arguments])


def findings(*arguments: str) -> list[dict[str, Any]]:
    result = run(*arguments, "--output-format", "json")
    assert result.exit_code in (0, 1), result.output
    answer = json.loads(result.stdout)
    assert answer["format"] == 1
    found: list[dict[str, Any]] = answer["findings"]
    return found


def test_exit_codes(folder: Path) -> None:
    assert run("bad.py").exit_code == 1
    (folder / "bad.py").write_text(CLEAN, encoding="utf-8")
    assert run("bad.py").exit_code == 0
    assert run("missing.py").exit_code == 2
    assert run("bad.py", "--select", "SEL9").exit_code == 2
    (folder / "selc.toml").write_text("[lint]\nselekt = []\n", encoding="utf-8")
    result = run("bad.py")
    assert result.exit_code == 2
    assert "did you mean `select`" in result.stderr


def test_fail_on(folder: Path) -> None:
    (folder / "bad.py").write_text(
        "def f(x):\n    if x.shape[0] < 8:\n        return gemm_a(x)\n    return gemm_b(x)\n"
    )
    assert run("bad.py").exit_code == 1
    assert run("bad.py", "--fail-on", "error").exit_code == 0


def test_json_has_the_fields_of_the_contract(folder: Path) -> None:
    (found,) = findings("bad.py")
    assert set(found) >= {
        *("code", "name", "level", "message", "path", "line", "column", "end_line", "end_column"),
        *("source", "sink", "trace", "threshold", "help", "fingerprint"),
    }
    assert (found["code"], found["path"], found["line"]) == ("SEL101", "bad.py", 3)
    assert found["source"] == {"text": "x.shape[0]", "line": 1, "path": "bad.py"}
    assert found["sink"] == {"text": "SPLIT_K", "line": 3, "role": "harmful"}
    assert found["threshold"] == "x.shape[0] <= 32"
    assert [step["line"] for step in found["trace"]] == [1, 2, 3]
    assert "selc compile bad.py:launch" in found["help"]


def test_fingerprints_do_not_hold_lines(folder: Path) -> None:
    before = findings("bad.py")[0]["fingerprint"]
    (folder / "bad.py").write_text("import os\n\n\n" + BAD, encoding="utf-8")
    assert findings("bad.py")[0]["fingerprint"] == before


def test_equal_findings_have_fingerprints_of_their_own(folder: Path) -> None:
    twice = BAD + "    gemm_kernel[(8,)](x, w, SPLIT_K=split_k)\n"
    (folder / "bad.py").write_text(twice, encoding="utf-8")
    found = findings("bad.py")
    assert len({each["fingerprint"] for each in found}) == len(found) == 2


@pytest.mark.parametrize(
    "comment", ["# selc: ignore[SEL101] -- measured", "# selc: ignore[batch-moves-reduction]"]
)
def test_suppressions(folder: Path, comment: str) -> None:
    lines = BAD.splitlines()
    on_the_line = "\n".join([*lines[:2], f"{lines[2]}  {comment}"])
    above = "\n".join([*lines[:2], f"    {comment}", lines[2]])
    whole = "\n".join([comment.replace("ignore", "file-ignore"), *lines])
    spread = BAD.replace("SPLIT_K=split_k)", f"SPLIT_K=split_k,\n    )  {comment}")
    for text in (on_the_line, above, whole, spread):
        (folder / "bad.py").write_text(text + "\n", encoding="utf-8")
        assert findings("bad.py") == [], text


def test_suppressions_that_suppress_nothing(folder: Path) -> None:
    (folder / "bad.py").write_text(
        "a = 1  # selc: ignore[SEL101] -- old\nb = 2  # selc: ignore[SEL998]\nc = 3  # selc: ignore\n"
        "text = '# selc: ignore[SEL101]'\n"
    )
    assert [(each["code"], each["line"]) for each in findings("bad.py")] == [
        ("SEL002", 1),
        ("SEL003", 2),
        ("SEL003", 3),
    ]


def test_a_file_that_cannot_be_parsed_is_said(folder: Path) -> None:
    (folder / "bad.py").write_text("zz = (\n", encoding="utf-8")
    (found,) = findings("bad.py")
    assert (found["code"], found["level"], found["line"]) == ("SEL001", "error", 1)


def test_per_file_ignores_and_selection(folder: Path) -> None:
    (folder / "selc.toml").write_text('[lint.per-file-ignores]\n"bad*" = ["SEL101"]\n')
    assert findings("bad.py") == []
    (folder / "selc.toml").write_text('[lint]\nignore = ["SEL1"]\n')
    assert findings("bad.py") == []
    assert [each["code"] for each in findings("bad.py", "--ignore", "SEL2")] == ["SEL101"]


def test_own_names_and_libraries(folder: Path) -> None:
    (folder / "bad.py").write_text(
        "def launch(load, x):\n    wave_cut = 4 if load <= 32 else 1\n    vendor_gemm(x, wave_cut=wave_cut)\n"
    )
    assert findings("bad.py") == []
    (folder / "selc.toml").write_text(
        '[lint]\nsummaries = ["own.toml"]\n[lint.names]\nscalars = ["load"]\n[lint.roles]\nharmful = ["wave_cut"]\n'
    )
    (folder / "own.toml").write_text(
        "[[library]]\ncall = 'vendor_gemm'\nfollows = 'it follows the rows'\npin = 'pin it'\nrule = 'SEL106'\n"
    )
    assert [each["code"] for each in findings("bad.py")] == ["SEL106", "SEL101"]


def test_baseline(folder: Path) -> None:
    assert run("bad.py", "--baseline", "known.json", "--write-baseline").exit_code == 0
    text = (folder / "known.json").read_text()
    assert json.loads(text)["format"] == 1
    (folder / "bad.py").write_text("import os\n\n\n" + BAD, encoding="utf-8")
    assert run("bad.py", "--baseline", "known.json").exit_code == 0
    more = BAD + "\n\ndef other(x, w):\n    gemm_kernel[(8,)](x, w, SPLIT_K=min(8, x.shape[0]))\n"
    (folder / "bad.py").write_text(more, encoding="utf-8")
    assert [each["line"] for each in findings("bad.py", "--baseline", "known.json")] == [7]
    (folder / "bad.py").write_text(CLEAN, encoding="utf-8")
    assert "of the baseline are gone" in run("bad.py", "--baseline", "known.json").stderr
    (folder / "known.json").write_text("[]")
    assert run("bad.py", "--baseline", "known.json").exit_code == 2


def git(folder: Path, *arguments: str) -> None:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def test_only_what_a_change_touches(folder: Path) -> None:
    helper = "def pick(rows_here):\n    return 4 if rows_here < 8 else 1\n"
    caller = "from helper import pick\n\n\ndef launch(x, w):\n    k[(8,)](x, w, SPLIT_K=pick(x.shape[0]))\n"
    (folder / "helper.py").write_text(helper)
    (folder / "caller.py").write_text(caller)
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    assert len(findings(".")) == 3
    assert findings(".", "--diff", "HEAD") == []
    (folder / "helper.py").write_text(helper.replace("< 8", "< 16"))
    assert [each["path"] for each in findings(".", "--diff", "HEAD")] == ["caller.py", "helper.py"]
    (folder / "new.py").write_text(BAD)
    assert {each["path"] for each in findings(".", "--diff", "HEAD")} == {
        "caller.py",
        "helper.py",
        "new.py",
    }
    assert run(".", "--diff", "no-such-revision").exit_code == 2


def test_the_cache_answers_while_nothing_has_changed(folder: Path) -> None:
    from selc.lint.config import Config
    from selc.lint.run import Options, lint

    helper = "def pick(rows_here):\n    return 4 if rows_here < 8 else 1\n"
    caller = "from helper import pick\n\n\ndef launch(x, w):\n    k[(8,)](x, w, SPLIT_K=pick(x.shape[0]))\n"
    (folder / "helper.py").write_text(helper)
    (folder / "caller.py").write_text(caller)
    options = Options((folder / "caller.py",))
    first = lint(Config(folder), options)
    second = lint(Config(folder), options)
    assert (first.cached, second.cached) == (0, 1)
    assert first.findings == second.findings != []
    (folder / "helper.py").write_text("def pick(rows_here):\n    return 4\n")
    third = lint(Config(folder), options)
    assert (third.cached, third.findings) == (0, [])


def test_formats(folder: Path) -> None:
    full = run("bad.py").stdout
    assert "bad.py:3:" in full
    assert "error[SEL101]" in full
    assert "Found 1 error." in full
    assert "the batch enters here" in full or "parameter x" in full
    concise = run("bad.py", "--output-format", "concise").stdout
    assert concise.startswith("bad.py:3:")
    assert concise.count("\n") == 1
    github = run("bad.py", "--output-format", "github").stdout
    assert github.startswith("::error file=bad.py,line=3,")
    assert github.count("\n") == 1


def test_sarif(folder: Path) -> None:
    (folder / "other.py").write_text(
        BAD.replace("split_k)", "split_k)  # selc: ignore[SEL101] -- known")
    )
    log = json.loads(run(".", "--output-format", "sarif").stdout)
    (found,) = log["runs"]
    kept, hidden = found["results"]
    rules = found["tool"]["driver"]["rules"]
    assert rules[kept["ruleIndex"]]["id"] == kept["ruleId"] == "SEL101"
    where = kept["locations"][0]["physicalLocation"]
    assert where["artifactLocation"] == {"uri": "bad.py", "uriBaseId": "%SRCROOT%"}
    assert where["region"]["startLine"] == 3
    steps = kept["codeFlows"][0]["threadFlows"][0]["locations"]
    assert [s["location"]["physicalLocation"]["region"]["startLine"] for s in steps] == [1, 2, 3]
    assert kept["partialFingerprints"] != hidden["partialFingerprints"]
    assert hidden["suppressions"] == [{"kind": "inSource"}]


def test_linting_imports_and_runs_nothing(folder: Path) -> None:
    (folder / "bad.py").write_text("raise SystemExit('was run')\n" + BAD)
    assert [each["code"] for each in findings("bad.py")] == ["SEL101"]


def test_a_mode_switches_off_what_it_guards(folder: Path) -> None:
    guarded = BAD.replace("    gemm", "    if envs.FIXED:\n        split_k = 1\n    gemm")
    (folder / "bad.py").write_text(guarded)
    assert len(findings("bad.py")) == 1
    (folder / "selc.toml").write_text('[lint]\nmodes = ["envs.FIXED"]\n')
    assert findings("bad.py") == []
    audit = findings("bad.py", "--assume-unguarded")
    assert len(audit) == 1
    assert audit[0]["trace"][0]["text"].startswith("asks for the invariant mode")


SERVER = """
from align import Adder, pick

class Server:
    def __init__(self, size):
        self.size = size
        self.set_up()
        made = pick()
        self.adder = made(size)

    def set_up(self):
        if not envs.FIXED:
            self.align = None
            return
        self.align = 64

    def cut(self, num_tokens):
        split_k = 4 if num_tokens > 64 else 1
        gemm(num_tokens, self.{attr}, SPLIT_K=split_k)
"""
PICKED = """
class Adder:
    pass

class Other:
    pass

def pick():
    if envs.FIXED:
        return Adder
    return Other
"""


@pytest.mark.parametrize(("attr", "expected"), [("align", {12}), ("adder", {9}), ("size", set())])
def test_the_mode_comes_through_an_attribute(folder: Path, attr: str, expected: set[int]) -> None:
    """Set in a method that `__init__` calls, or made by a class that the mode picked."""
    (folder / "server.py").write_text(SERVER.replace("{attr}", attr))
    (folder / "align.py").write_text(PICKED)
    (folder / "selc.toml").write_text('[lint]\nmodes = ["envs.FIXED"]\n')
    found = findings("server.py", "--assume-unguarded")
    asked = {
        step["line"]
        for each in found
        for step in each["trace"]
        if step["text"].startswith("asks for the invariant mode: if")
    }
    assert found
    assert asked == expected


def test_an_attribute_with_a_name_of_the_batch_stays_its_source(folder: Path) -> None:
    text = SERVER.replace("{attr}", "size").replace("align", "num_tokens")
    text = text.replace("(self, num_tokens)", "(self)").replace(
        "if num_tokens", "if self.num_tokens"
    )
    (folder / "server.py").write_text(text.replace("gemm(num_tokens", "gemm(1"))
    (folder / "selc.toml").write_text('[lint]\nmodes = ["envs.FIXED"]\n')
    assert [each["code"] for each in findings("server.py", "--assume-unguarded")] == ["SEL101"]
