"""What changes, and whether the cache still answers: the table of docs/selector.md, made true."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from selc.diag.outcome import Outcome
from selc.driver import cache, cachekey
from tests.driver.conftest import FACTS, Compile

ROOT = Path(__file__).resolve().parents[2]

SOURCE = """\
from lanes import MOST, unused

SCALE = 1
CONFIG = {"extra": 0}


def plan(m, heads, stride):
    width = 16 if m <= 64 else 128
    stages = 4 if m <= 256 else SCALE + 1
    assert width * stages <= 256
    pad = stride + heads + CONFIG["extra"]
    return {"width": width, "stages": stages, "lanes": min(m, most()), "pad": pad}


def most():
    return MOST


def unrelated(count):
    out = []
    for k in range(count):
        out = [*out, k]
    return out


class Unrelated:
    size = 4
"""

TABLES = FACTS + "tables: {CONFIG: extra.json}\n"

LANES = """\
MOST = 32
OTHER = 5


def unused():
    return OTHER
"""


def edit(name: str, old: str, new: str) -> Callable[[Path], dict[str, Any]]:
    def change(folder: Path) -> dict[str, Any]:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new, 1))
        return {}

    return change


def option(**changes: Any) -> Callable[[Path], dict[str, Any]]:
    return lambda folder: changes


def shadow(folder: Path) -> dict[str, Any]:
    (folder / "first" / "lanes.py").write_text(LANES.replace("32", "16"))
    return {}


def touch(folder: Path) -> dict[str, Any]:
    os.utime(folder / "plan.py", (1, 1))
    return {}


CASES: list[tuple[str, Callable[[Path], dict[str, Any]], str]] = [
    ("nothing", option(), "hit"),
    ("the time stamp of a file", touch, "hit"),
    ("the output folder", option(out=Path("elsewhere")), "hit"),
    ("the followed function", edit("plan.py", "m <= 256", "m <= 255"), "miss"),
    ("a function that it calls", edit("plan.py", "return MOST", "return MOST // 2"), "miss"),
    ("a constant that it reads", edit("plan.py", "SCALE = 1", "SCALE = 2"), "miss"),
    ("a constant of another module that it reads", edit("lanes.py", "32", "31"), "miss"),
    ("an unrelated function of the same file", edit("plan.py", "[*out, k]", "[k, *out]"), "hit"),
    ("an unrelated class of the same file", edit("plan.py", "size = 4", "size = 5"), "hit"),
    ("an unrelated function of an imported file",
     edit("lanes.py", "return OTHER", "return OTHER + 1"), "hit"),
    ("a new function at the end", edit("plan.py", "class Unrelated",
                                       "def later():\n    return 1\n\n\nclass Unrelated"), "hit"),
    ("a line more before a followed function", edit("plan.py", "def plan", "\ndef plan"), "miss"),
    ("a second definition of a followed name",
     edit("plan.py", "    size = 4\n", "    size = 4\n\n\ndef most():\n    return 8\n"), "miss"),
    ("an assignment to what may be shared, anywhere in the file",
     edit("plan.py", "    out = []\n", "    out = []\n    out[0] = 1\n"), "miss"),
    ("`global` of a read constant",
     edit("plan.py", "    out = []\n", "    global SCALE; SCALE = 9\n"), "exit 2"),
    ("a fact", edit("facts.yaml", "heads: 8", "heads: 9"), "miss"),
    ("the content of a table", edit("extra.json", "3", "4"), "miss"),
    ("the range of an input", edit("facts.yaml", "4096", "4095"), "miss"),
    ("a module where one was looked for in vain", shadow, "miss"),
    ("`--max-candidates`", option(max_candidates=9), "miss"),
    ("`--solver-budget`", option(solver_budget=9), "miss"),
    ("`--whole-rows`", option(whole_rows=True), "miss"),
    ("`--skip`", option(skip=("fold",)), "miss"),
    ("`--require-proof`", option(require_proof=True), "miss"),
    ("`--emit`", option(emit=("python", "ir")), "miss"),
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("plan.py", SOURCE), ("lanes.py", LANES), ("facts.yaml", TABLES),
                       ("extra.json", '{"extra": 3}')):  # fmt: skip
        (tmp_path / name).write_text(text)
    (tmp_path / "first").mkdir()
    return tmp_path


def said(outcome: Outcome) -> str:
    return f"exit {outcome.exit_code}" if outcome.exit_code else str(outcome.json["cache"])


@pytest.mark.parametrize(("what", "change", "want"), CASES, ids=[c[0] for c in CASES])
def test_the_table(
    what: str,
    change: Callable[[Path], dict[str, Any]],
    want: str,
    compiled: Compile,
    folder: Path,
) -> None:
    for name, text in (("plan.py", SOURCE), ("facts.yaml", TABLES)):
        (folder / name).write_text(text)
    roots = (folder / "first", folder)
    assert said(compiled(roots=roots)) == "miss"
    assert said(compiled(roots=roots)) == "hit"
    options = change(folder)
    warm = compiled(**{"roots": roots, **options})
    assert said(warm) == want
    if want == "hit":  # and the answer is the one that a fresh compilation gives
        fresh = compiled(**{"roots": roots, **options, "use_cache": False})
        for key in ("points", "pins", "legal", "guards", "tuple"):
            assert warm.json[key] == fresh.json[key]


@pytest.mark.parametrize(
    ("what", "target", "value"),
    [
        ("the version of selc", "__version__", "9.9.9"),
        ("the code of selc", "own_code", lambda: "other"),
        ("the version of a solver", "_version", lambda name: f"{name}-0"),
        ("the C compiler", "_compiler", lambda: ["cc"]),
    ],
)
def test_versions(
    what: str, target: str, value: object, compiled: Compile, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = {"native": True, "emit": ("native", "python")}
    compiled(**wanted)
    assert said(compiled(**wanted)) == "hit"
    monkeypatch.setattr(cachekey, target, value)
    assert said(compiled(**wanted)) == "miss"


def test_the_page_says_the_same() -> None:
    page = (ROOT / "docs" / "selector.md").read_text()
    for what, _, want in CASES:
        if not want.startswith("exit"):
            assert f"| {what} | {want} |" in page


def test_a_cache_that_cannot_be_written_is_said(
    compiled: Compile, folder: Path, private_cache: Path
) -> None:
    private_cache.write_text("not a folder")
    outcome = compiled()
    assert outcome.exit_code == 0
    assert "cannot be written" in outcome.text.splitlines()[-1]
    assert str(private_cache) in outcome.json["cache_problem"]


def test_the_bound_on_bytes(compiled: Compile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MAX_BYTES", 150_000)
    for limit in range(9, 17):
        compiled(max_candidates=limit)
    listed = cache.list_entries().json
    assert 1 <= len(listed["entries"]) < 8
    assert listed["bytes"] <= 150_000 or len(listed["entries"]) == 1
    assert said(compiled(max_candidates=16)) == "hit"
    assert cache.verify().exit_code == 0


def test_what_was_killed_halfway_is_no_entry(
    compiled: Compile, private_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled()
    for kind in ("entries", "blobs", "native"):
        (private_cache / "v1" / kind / ".unfinished").write_bytes(b"{")
    assert cache.verify().exit_code == 0
    assert len(cache.list_entries().json["entries"]) == 1
    monkeypatch.setattr(cache, "STALE", -1.0)
    compiled(max_candidates=9)
    assert not list((private_cache / "v1").glob("*/.unfinished"))
