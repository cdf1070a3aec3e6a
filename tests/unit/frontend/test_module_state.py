"""Module-level objects that are changed under another name, or read between two definitions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.frontend.lifting import agree, lift, refusal, write

FACTS = """
selection: {function: "pkg.mod:choose", scope: launch, returns: {result: bits}}
inputs: {m: {kind: runtime, range: [0, 9]}}
"""


@pytest.mark.parametrize(
    ("top", "read"),
    [
        ("L = [1]\n    M = L\n    M.append(2)", "len(L)"),
        ("L = [1]\n    M = L\n    M += [2]", "len(L)"),
        ("L = [3, 1]\n    L.sort()", "L[0]"),
        ("L = [1]\n    T = (L, 1)\n    T[0].append(2)", "len(L)"),
        ("L = [1]\n    add = L.append\n    add(2)", "len(L)"),
        ("D = {1: {'x': 1}}\n    r = D[1]\n    r['x'] = 5", "D[1]['x']"),
        ("D = {1: {'x': 1}}\n    for r in D.values():\n        r['x'] = 5", "D[1]['x']"),
        ("D = {1: [1]}\n    D[1].append(2)", "len(D[1])"),
        ("D = {1: 2}\n    def put(d): d[3] = 4\n    put(D)", "len(D)"),
        ("T = ({'x': 1},)\n    T[0]['x'] = 2", "T[0]['x']"),
        ("A = 1\n    B = A\n    A = 2", "B"),
        ("A = 1\n    def g(): return A\n    B = g()\n    A = 2", "B"),
        ("def g(): return 1\n    h = g\n    def g(): return 2", "h()"),
    ],
)
def test_what_a_module_changes_is_state(tmp_path: Path, top: str, read: str) -> None:
    write(tmp_path, {"mod.py": f"\n    {top}\n    def choose(m):\n        return {read} + m\n"})
    assert "is changed while" in refusal(tmp_path, "pkg.mod:choose", FACTS)


def test_a_changed_copy_leaves_the_original(tmp_path: Path) -> None:
    text = """
    CONFIGS = {1: {"x": 1}}
    DEFAULT = CONFIGS[1]
    COPY = dict(CONFIGS)
    COPY[3] = 4
    def choose(m):
        return CONFIGS[1]["x"] + DEFAULT["x"] + m
    """
    write(tmp_path, {"mod.py": text})
    program = lift(tmp_path, "pkg.mod:choose", FACTS)
    assert agree(tmp_path, program, "pkg.mod:choose", {"m": list(range(10))}) == 10


SHARED = {
    "one of a table": """
    ROWS = [{"x": 1}, {"x": 2}]
    def choose(m):
        row = ROWS[m // 5]
        row["x"] += m
        return row["x"]
    """,
    "one of two": """
    ROW = {"x": 1}
    def choose(m):
        row = ROW if m > 4 else {"x": 2}
        row["x"] += m
        return row["x"]
    """,
    "remembered": """
    kept = {}
    def make(m):
        if m not in kept:
            kept[m] = {"x": m + 1}
        return kept[m]
    def choose(m):
        row = make(m)
        row["x"] += 1
        return row["x"]
    """,
    "inside what is remembered": """
    kept = {}
    def make(m):
        if m not in kept:
            kept[m] = ({"x": [m]}, 1)
        return kept[m]
    def choose(m):
        make(m)[0]["x"][0] += 1
        return make(m)[0]["x"][0]
    """,
    "remembered on one path": """
    kept = {}
    def make(m):
        if m > 4:
            if "row" not in kept:
                kept["row"] = {"x": 7}
            return kept["row"]
        return {"x": 3}
    def choose(m):
        row = make(m)
        row["x"] += m
        return row["x"]
    """,
}


@pytest.mark.parametrize("name", SHARED)
def test_what_the_next_call_finds_is_not_changed(tmp_path: Path, name: str) -> None:
    write(tmp_path, {"mod.py": SHARED[name]})
    assert refusal(tmp_path, "pkg.mod:choose", FACTS).startswith(
        "SEL906 this object is shared between calls"
    )


def test_a_copy_of_what_is_remembered(tmp_path: Path) -> None:
    text = """
    ROWS = [{"x": 1}, {"x": 2}]
    kept = {}
    def make(m):
        if m not in kept:
            row = dict(ROWS[m // 5])
            row["x"] += m
            kept[m] = row
        return kept[m]
    def choose(m):
        row = dict(make(m))
        row["x"] += 1
        return row["x"] * 100 + make(m)["x"]
    """
    write(tmp_path, {"mod.py": text})
    program = lift(tmp_path, "pkg.mod:choose", FACTS)
    assert agree(tmp_path, program, "pkg.mod:choose", {"m": list(range(10))}) == 10
