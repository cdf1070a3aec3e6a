"""Names and texts that C, YAML or Python read in a way of their own: native, header and import."""

from __future__ import annotations

import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

from tests.adapters import load
from tests.robust.conftest import HEAD, Try

SOFT = ["match", "case", "type", "_"]
KEYWORDS = ["int", "register", "auto", "double", "template", "typeof", "linux", "NULL", "errno"]
OURS = ["v0", "i0", "p0", "result", "select", "pins", "repin", "record", "_fields", "__class__"]
LETTERS = ["ä", "函数", "ﬁ", "\u017f", "µ", "ǅ", "\U0001d431", "e\u0301", "x\u0660"]


def facts(name: str) -> str:
    return f'{HEAD}inputs:\n  "{name}": {{kind: runtime, range: [1, 200]}}\n'


def compile_header(folder: Path) -> None:
    """The header is C99 and C++17 without a warning."""
    for language, standard in (("c", "c99"), ("c++", "c++17")):
        command = ["cc", "-x", language, f"-std={standard}", "-Wall", "-Wextra", "-Werror"]
        command += ["-fsyntax-only", str(folder / "selector.h")]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        left = [x for x in done.stderr.splitlines() if "error" in x and "pragma once" not in x]
        assert not left, done.stderr


@pytest.mark.native
@pytest.mark.parametrize("name", [*SOFT, *KEYWORDS, *OURS, *LETTERS], ids=ascii)
def test_names(attempt: Try, tmp_path: Path, name: str) -> None:
    """As input, field, variable and function."""
    source = f"def f({name}):\n    {name}x = 16 if {name} <= 64 else 128\n"
    source += f"    return {{'{name}': {name}x}}\n\ndef other():\n    pass\n"
    made = attempt(source, facts(name), "--emit", "native,python,header,ir")
    assert made.code == 0, made.told
    assert made.answer["artifacts"]["native"]
    compile_header(tmp_path / "out")
    spelt = unicodedata.normalize("NFKC", name)
    selector = load(tmp_path / "out/__init__.py", f"selector_{abs(hash(name))}")
    assert selector.NATIVE
    for value, wanted in ((1, 16), (64, 16), (65, 128), (200, 128)):
        assert tuple(selector.select_unpinned(**{spelt: value})) == (wanted,)
    assert [p["name"] for p in made.answer["pins"]] == [f"f.{spelt}x"]


@pytest.mark.parametrize("name", [*SOFT, "int", "函数", "ﬁ"], ids=ascii)
def test_names_of_functions(attempt: Try, tmp_path: Path, name: str) -> None:
    source = f"def {name}(m):\n    return 16 if m <= 64 else 128\n"
    text = facts("m").replace("function: f", f'function: "{name}"')
    made = attempt(source, text)
    assert made.code == 0, made.told
    assert made.answer["function"] == unicodedata.normalize("NFKC", name)
    assert load(tmp_path / "out/__init__.py", "selector_fn").select_unpinned(m=65) == (128,)


TEXTS = [
    "'", '"', "\\", "\n", "\r\n", "\0", "*/", "/*", "//", "??/", "??=", "%s", "{}", "{0}",
    "\\u0041",
    "\ud7ff", "\U0001f600", "é", "e\u0301", "", " ", "\t", "#", ": ", "- x", "null", "true", "1",
]  # fmt: skip


@pytest.mark.native
def test_texts(attempt: Try, tmp_path: Path) -> None:
    """Values that would end a comment, a string or a line if they were pasted as they are."""
    source = f"TEXTS = {TEXTS!r}\n\ndef f(m):\n    text = TEXTS[m % {len(TEXTS)}]\n"
    source += "    return {'text': text, 'ends': text == '*/'}\n"
    made = attempt(source, facts("m"), "--emit", "native,python,header,ir")
    assert made.code == 0, made.told
    compile_header(tmp_path / "out")
    selector = load(tmp_path / "out/__init__.py", "selector_of_texts")
    assert selector.NATIVE
    for m in range(1, 1 + len(TEXTS)):
        wanted = TEXTS[m % len(TEXTS)]
        assert selector.select_unpinned(m=m) == (wanted, wanted == "*/")
    (pin,) = [p for p in made.answer["pins"] if p["name"] == "f.text"]
    assert sorted(pin["candidates"]) == sorted(TEXTS)


@pytest.mark.parametrize("key", ["*/", 'a"b', "a\\b", "a\nb", "??/", "é", "a b", ""], ids=ascii)
def test_fields_of_every_text(attempt: Try, tmp_path: Path, key: str) -> None:
    source = f"def f(m):\n    w = 16 if m <= 64 else 128\n    return {{{key!r}: w, 'other': 1}}\n"
    made = attempt(source, facts("m"), "--emit", "python,header,ir,dot")
    if made.code == 0:
        assert key in [p["name"] for p in made.answer["points"]]
        compile_header(tmp_path / "out")
        selector = load(tmp_path / "out/__init__.py", "selector_of_fields")
        assert tuple(selector.select_unpinned(m=65)) == (128, 1)


def test_the_command_itself(tmp_path: Path) -> None:
    """In a process of its own: exit codes, streams, no traceback, nothing half written."""
    run = "import sys; from selc.cli import main; sys.argv[0] = 'selc'; main()"
    (tmp_path / "k.py").write_text("def f(m:\n    return 1\n")
    (tmp_path / "f.yaml").write_text(facts("m"))
    root = Path(__file__).resolve().parents[2]
    for source, code in (("def f(m:\n    return 1\n", 2), ("def f(m):\n    return 1\n", 0)):
        (tmp_path / "k.py").write_text(source)
        command = [sys.executable, "-c", run, "compile", "k.py", "--facts", "f.yaml", "-o", "out"]
        command += ["--no-native", "--no-cache"]
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, cwd=tmp_path,
            env={"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin"},
        )  # fmt: skip
        assert done.returncode == code
        assert "Traceback" not in done.stdout + done.stderr
        assert (tmp_path / "out").exists() == (code == 0)
        assert (done.stdout == "") == (code == 2)
