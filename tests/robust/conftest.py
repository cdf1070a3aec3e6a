"""The real command on input of every kind, with what holds of each answer whatever it is."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from selc.cli import app
from selc.driver import cachekey

SOURCE = "def f(m):\n    w = 16 if m <= 64 else 128\n    return {'w': w}\n"
HEAD = "selection: {function: f, scope: launch, returns: {'*': bits}}\n"
FACTS = HEAD + "inputs:\n  m: {kind: runtime, range: [1, 4096]}\n"
INTERNAL = ("Error(", "<class ", "ast.", "object at")
LIMIT = 400  # of an error's text, beside the frame: nobody reads more


@dataclass(frozen=True, slots=True)
class Attempt:
    """What one run of `selc compile` said."""

    code: int
    errors: list[dict[str, Any]]
    answer: dict[str, Any]
    told: str

    @property
    def first(self) -> dict[str, Any]:
        """The first error."""
        return self.errors[0]

    def place(self) -> tuple[str, int, int]:
        """Where the first error is."""
        return Path(self.first["path"]).name, self.first["line"], self.first["column"]


Try = Callable[..., Attempt]


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A selector as an earlier compilation left it."""
    folder = tmp_path_factory.mktemp("earlier")
    (folder / "k.py").write_text(SOURCE)
    (folder / "f.yaml").write_text(FACTS)
    command = ["compile", str(folder / "k.py"), "--facts", str(folder / "f.yaml")]
    command += ["-o", str(folder / "out"), "--no-native", "--no-cache"]
    assert CliRunner().invoke(app, command).exit_code == 0
    return folder / "out"


@pytest.fixture
def attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: Path) -> Try:
    """Compile a source under facts over an earlier selector."""
    monkeypatch.setenv("SELC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cachekey, "own_code", lambda: "as it is")
    monkeypatch.chdir(tmp_path)
    shutil.copytree(written, tmp_path / "out")

    def run(
        source: str | bytes = SOURCE,
        facts: str | bytes = FACTS,
        *more: str,
        target: str = "k.py",
        files: Mapping[str, str] | None = None,
    ) -> Attempt:
        for name, text in {"k.py": source, "f.yaml": facts, **(files or {})}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode() if isinstance(text, str) else text)
        before = contents(tmp_path / "out")
        command = ["compile", target, "--facts", "f.yaml", "-o", "out", "--format", "json"]
        result = CliRunner().invoke(app, [*command, "--emit", "python", "--no-cache", *more])
        assert result.exception is None or isinstance(result.exception, SystemExit)
        assert "Traceback" not in result.output
        answer = json.loads(result.stdout)
        assert answer["format"] == 1
        made = Attempt(result.exit_code, answer.get("errors", []), answer, result.stderr)
        if made.code == 2:
            check_errors(made)
            assert contents(tmp_path / "out") == before, "a refusal changed the folder"
        assert not [p for p in tmp_path.iterdir() if p.name.startswith((".out", "out."))]
        return made

    return run


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def check_errors(made: Attempt) -> None:
    """Every error says what, where and what to do next, in the user's words."""
    assert made.errors, made.told
    for error in made.errors:
        assert set(error) == {"code", "message", "path", "line", "column"}
        assert error["code"].startswith("SEL9")
        assert 0 < len(error["message"]) <= LIMIT
        assert not any(word in error["message"] for word in INTERNAL)
        if error["path"] is not None:
            assert error["line"] >= 1
            assert error["column"] >= 1
            assert f":{error['line']}:{error['column']}: error[{error['code']}]" in made.told
    assert made.told.count("error[") == len(made.errors)
