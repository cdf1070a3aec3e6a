"""The compilation cache: when it answers, when it must not, and that it never lies."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from selc.diag.outcome import Outcome
from selc.driver import cache, cachekey
from selc.lint import cache as lint_cache
from selc.lint.config import Config
from selc.lint.run import Options, lint
from tests.driver.conftest import Compile
from tests.driver.contract import problems

ROOT = Path(__file__).resolve().parents[2]


def state(outcome: Outcome) -> str:
    return str(outcome.json["cache"])


def stable(outcome: Outcome) -> dict[str, object]:
    return {k: v for k, v in outcome.json.items() if k not in ("cache", "timings_ms")}


def test_the_second_time(compiled: Compile, project: Path) -> None:
    first, second = compiled(), compiled()
    assert (state(first), state(second)) == ("miss", "hit")
    assert stable(first) == stable(second)
    assert not problems(second.json, 0)
    before, after = first.text.splitlines(), second.text.splitlines()
    assert before[:-1] == after[:-1]
    assert after[-1].startswith("cache    hit; ")


def test_a_hit_writes_what_is_missing(compiled: Compile, project: Path) -> None:
    compiled()
    folder = project / "plan_selector"
    whole = {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}
    (folder / "manifest.json").write_text('{"selc": 0, "hash": 0}')
    (folder / "_python.py").unlink()
    assert state(compiled()) == "hit"
    assert {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()} == whole
    elsewhere = compiled(out=project / "other")
    assert state(elsewhere) == "hit"
    assert elsewhere.json["artifacts"]["module"] == "other"
    assert {p.name: p.read_bytes() for p in (project / "other").iterdir()} == whole


@pytest.mark.native
def test_a_native_module_stays_executable(compiled: Compile, project: Path) -> None:
    wanted = {"native": True, "emit": ("native", "python")}
    assert compiled(**wanted).json["artifacts"]["native"]
    again = compiled(**wanted, out=project / "other")
    assert state(again) == "hit"
    mode = Path(again.json["artifacts"]["native"]).stat().st_mode
    assert mode & stat.S_IXUSR


def test_what_changes_the_answer(
    compiled: Compile, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled()
    assert state(compiled(max_candidates=9)) == "miss"
    assert state(compiled(skip=("fold",))) == "miss"
    assert state(compiled(whole_rows=True)) == "miss"
    assert state(compiled(require_proof=True)) == "miss"
    assert state(compiled(emit=("python", "ir"))) == "miss"
    facts = project / "facts.yaml"
    facts.write_text(facts.read_text().replace("4096", "4095"))
    assert state(compiled()) == "miss"
    source = project / "plan.py"
    text = source.read_text()
    source.write_text(text.replace("m, 32", "m, 33"))
    changed = compiled()
    assert state(changed) == "miss"
    source.write_text(text)
    assert state(compiled()) == "miss"
    assert state(compiled()) == "hit"
    monkeypatch.setattr("selc.driver.cachekey.__version__", "9.9.9")
    assert state(compiled()) == "miss"


def test_another_folder_has_other_files(
    compiled: Compile, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled()
    other = project / "elsewhere"
    other.mkdir()
    for name in ("plan.py", "facts.yaml"):
        (other / name).write_text((project / name).read_text())
    (other / "plan.py").write_text((project / "plan.py").read_text().replace("m, 32", "m, 31"))
    monkeypatch.chdir(other)
    outcome = compiled()
    assert state(outcome) == "miss"


def test_a_module_that_appears_where_it_was_looked_for(compiled: Compile, project: Path) -> None:
    text = (project / "plan.py").read_text()
    (project / "plan.py").write_text("from lanes import most\n" + text.replace("m, 32", "m, most"))
    first, second = project / "first", project / "second"
    for folder, value in ((first, 8), (second, 32)):
        folder.mkdir()
        (folder / "lanes.py").write_text(f"most = {value}\n")
    (first / "lanes.py").rename(first / "later.py")
    roots = (first, second)
    assert state(compiled(roots=roots)) == "miss"
    assert state(compiled(roots=roots)) == "hit"
    (first / "later.py").rename(first / "lanes.py")
    assert state(compiled(roots=roots)) == "miss"


def test_exit_1_is_kept_and_exit_2_is_not(compiled: Compile, project: Path) -> None:
    tuple_file = project / "t.yaml"
    illegal = "    pins: {plan.width: 128, plan.stages: 4}\n"
    tuple_file.write_text(f"format: 1\nfamilies:\n  plan:\n{illegal}")
    first, second = compiled(tuple_file=tuple_file), compiled(tuple_file=tuple_file)
    assert (first.exit_code, second.exit_code, state(second)) == (1, 1, "hit")
    assert second.diagnostics == first.diagnostics
    before = len(list((cache.location() / "v1/entries").iterdir()))
    (project / "plan.py").write_text("def plan(m:\n")
    assert compiled().exit_code == compiled().exit_code == 2
    assert len(list((cache.location() / "v1/entries").iterdir())) == before


def test_without_the_cache(compiled: Compile, private_cache: Path) -> None:
    compiled()
    assert state(compiled(use_cache=False)) == "miss"
    cache.clear()
    compiled(use_cache=False)
    assert not (private_cache / "v1").exists()


@pytest.mark.parametrize("kind", ["entries", "blobs"])
@pytest.mark.parametrize("damage", [b"", b"{}", b"[1]", None])
def test_damage_is_seen_and_repaired(
    compiled: Compile, private_cache: Path, kind: str, damage: bytes | None
) -> None:
    compiled()
    for path in (private_cache / "v1" / kind).iterdir():
        path.write_bytes(path.read_bytes()[:-9] if damage is None else damage)
    assert cache.verify().exit_code == 1
    assert state(compiled()) == "miss"
    assert state(compiled()) == "hit"


def test_the_commands(compiled: Compile, private_cache: Path) -> None:
    assert cache.list_entries().json["entries"] == []
    compiled()
    compiled(skip=("dce",))
    listed = cache.list_entries()
    assert [e["target"] for e in listed.json["entries"]] == ["plan.py", "plan.py"]
    assert listed.json["bytes"] > 1000
    assert "2 entries" in listed.text
    assert (cache.verify().exit_code, cache.verify().json["damaged"]) == (0, [])
    assert cache.clear().json["removed"] == 2
    assert cache.list_entries().json["entries"] == []
    assert private_cache.is_dir()


def test_the_commands_cover_the_linter(private_cache: Path, tmp_path: Path) -> None:
    source = tmp_path / "few.py"
    source.write_text("def few(num_tokens):\n    return num_tokens\n", encoding="utf-8")
    lint(Config(tmp_path), Options((source,)))
    kept = cache.list_entries()
    assert kept.json["lint"]["results"] == 1
    assert kept.json["lint"]["bytes"] > 0
    assert cache.clear().json["lint"] == 1
    assert cache.list_entries().json["lint"] == {"results": 0, "bytes": 0}
    assert not list(private_cache.glob("lint-*"))


def test_damaged_results_of_the_linter_are_named_and_made_anew(
    private_cache: Path, tmp_path: Path
) -> None:
    source = tmp_path / "one.py"
    source.write_text("def f(x):\n    return 64 if x.shape[0] > 128 else 32\n")
    before = lint(Config(tmp_path), Options((source,))).findings
    assert (cache.verify().exit_code, cache.verify().json["lint"]) == (0, 1)
    (path,) = private_cache.glob("lint-*/*/*.json")
    whole = path.read_text()
    for damage in (whole.replace('"needs"', '"deeds"'), whole.replace("64", "65"), whole[:-9], ""):
        if damage == whole:
            continue
        path.write_text(damage)
        told = cache.verify()
        assert (told.exit_code, told.json["damaged"]) == (1, [str(path)])
        again = lint(Config(tmp_path), Options((source,)))
        assert (again.cached, again.findings) == (0, before)
        assert path.read_text() == whole
    assert cache.verify().exit_code == 0


def test_results_of_the_linter_are_bounded(
    private_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lint_cache, "MAX_BYTES", 4000)
    for number in range(30):
        source = tmp_path / f"m{number}.py"
        source.write_text(f"def f(x):\n    return {number}\n")
        lint(Config(tmp_path), Options((source,)))
        assert lint_cache.contents()[1] <= 4000
    assert 1 < lint_cache.contents()[0] < 30
    left = next(private_cache.glob("lint-*/*/*.json")).parent / f"{lint_cache.UNFINISHED}x"
    left.write_bytes(b"{")
    monkeypatch.setattr(lint_cache, "STALE", -1.0)
    lint_cache.trim()
    assert not left.exists()


def test_old_entries_make_room(
    compiled: Compile, private_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "MAX_ENTRIES", 2)
    for limit in (9, 10, 11, 12):
        compiled(max_candidates=limit)
    assert len(cache.list_entries().json["entries"]) <= 2
    assert state(compiled(max_candidates=12)) == "hit"
    assert cache.verify().exit_code == 0


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="needs permissions that bind")
def test_a_folder_that_cannot_be_written(compiled: Compile, private_cache: Path) -> None:
    private_cache.mkdir()
    private_cache.chmod(0o500)
    assert compiled().exit_code == 0


def test_a_file_in_the_place_of_the_cache(compiled: Compile, private_cache: Path) -> None:
    private_cache.write_text("not a folder")
    assert compiled().exit_code == 0
    assert state(compiled()) == "miss"


def test_the_compiler_itself_is_part_of_the_key() -> None:
    names = {path.name for path in cachekey.own_files()}
    assert {"compile.py", "lower.py", "smt.py", "native.c", "runtime.h", "_surface.py"} <= names


def test_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SELC_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert cache.location() == Path("/x/selc")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache.location() == Path.home() / ".cache/selc"


def test_a_hit_imports_no_solver(compiled: Compile, project: Path) -> None:
    compiled()
    code = (
        "import sys\n"
        "from selc.cli import app\n"
        "app.main(['compile', 'plan.py', '--facts', 'facts.yaml', '-o', 'plan_selector',\n"
        "          '--emit', 'python', '--no-native', '--format', 'json'], standalone_mode=False)\n"
        "heavy = ('libcst', 'networkx', 'z3', 'yaml', 'filelock')\n"
        "print([name for name in heavy if name in sys.modules], file=sys.stderr)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code]
    warm = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    assert json.loads(warm.stdout)["cache"] in ("hit", "miss")  # its import path may differ
    assert json.loads(done.stdout)["cache"] == "hit"
    assert done.stderr.strip() == "[]"
