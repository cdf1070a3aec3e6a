"""The README's example is run: what it shows is what one gets."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    found = re.search(rf"^```{language}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    assert found is not None, language
    return found.group(1)


@pytest.mark.native
def test_the_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SELC_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "attention.py").write_text(block("python"))
    (tmp_path / "facts.yaml").write_text(block("yaml"))
    command, _, shown = block("console").partition("\n")
    arguments = command.removeprefix("$ selc ").split()
    code = "from selc.cli import main; main()"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100"}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        check=False, capture_output=True, text=True, env=environment,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    got = done.stdout.splitlines()
    assert got[:-1] == shown.splitlines()[:-1]
    assert re.fullmatch(r"cache    miss; \d+ ms: frontend \d+, passes .*", got[-1])
    monkeypatch.syspath_prepend(tmp_path / "build")
    test = doctest.DocTestParser().get_doctest(block("pycon"), {}, "README", "README.md", 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    runner.run(test)
    assert runner.failures == 0


def test_links_lead_somewhere() -> None:
    pages = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").glob("*.md"))]
    for page in pages:
        text = re.sub(r"`[^`]*`", "", page.read_text(encoding="utf-8"))  # code holds no links
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_commands_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for name in set(re.findall(r"make ([a-z-]+)", TEXT)):
        assert re.search(rf"^{name}:", makefile, re.MULTILINE), name
