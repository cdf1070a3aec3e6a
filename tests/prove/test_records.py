"""Reading (b) overwrites fields of records where they are defined, whatever they are made of."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest

from tests.prove import random_records
from tests.prove.judged import Unjudged, compiled, judge_case

CLASSES = """\
from dataclasses import dataclass, replace
from typing import NamedTuple


@dataclass(frozen=True)
class Tile:
    w: int
    s: int


@dataclass(frozen=True)
class Checked:
    w: int
    m: int

    def __post_init__(self):
        assert self.m <= self.w * 3


class Row(NamedTuple):
    w: int
    s: int


@dataclass
class Wide:
    w: int

    def grow(self, w):
        self.w = w


def make(small, step):
    return Tile(w=16 * step if small else 128, s=step)


def fill(t, w):
    t["w"] = w


"""
FACTS = """\
selection: {function: choose, scope: launch, returns: {"*": bits}}
inputs: {m: {kind: runtime, type: int, range: [1, 300]}}
"""
PROGRAMS = {  # with how many assignments there are, and how many are legal
    # nearly all guards are broken without pins, so that reading (b) has to see what is selected
    # the whole row follows the pin; the real width, which is not selected, would break the guard
    "an expression": (
        """
        row = m // 100
        t = Tile(w=(16, 64, 128, 256)[row], s=(8, 4, 2, 1)[row])
        assert t.w * t.s <= 256
        assert m <= t.w * 3
        return {"tile": t}
        """,
        (4, 2),
    ),
    # the pin stands at the `return`, behind the guard: only reading (b) shows the guard its value
    "returned by name": (
        """
        t = {"w": 16 if m <= 64 else 128}
        assert m <= t["w"] * 4
        return t
        """,
        (2, 1),
    ),
    "another name": (
        """
        t = {"w": 16 if m <= 64 else 128}
        s = t
        assert m <= s["w"] * 3
        return {"tile": t}
        """,
        (2, 1),
    ),
    "two definitions": (
        """
        if m > 64:
            t = Tile(w=128, s=4)
        else:
            t = Tile(w=m // 16 * 4 + 4, s=2)
        assert m <= t.w * 3
        return {"tile": t}
        """,
        (10, 5),
    ),
    "replaced": (
        """
        t = Tile(16 if m <= 64 else 128, 2)
        t = replace(t, s=3)
        r = Row(*(16 if m <= 64 else 128, 2))._replace(s=3)
        assert m <= t.w * t.s and r.w <= m * 16
        return {"tile": t, "row": r}
        """,
        (4, 1),
    ),
    "a copy": (
        """
        t = {"w": 16 if m <= 64 else 128, "s": 2}
        u = {**t, "s": 4 if m > 100 else 2}
        assert m <= u["w"] * u["s"]
        return {"tile": u}
        """,
        (4, 1),
    ),
    # the first guard reads what is written over later: it sees the real value
    "written over": (
        """
        t = {"w": 16 if m <= 64 else 128}
        assert m <= t["w"] * 4
        t["w"] = 64 if m <= 64 else 32
        assert m <= t["w"] * 5
        return {"tile": t}
        """,
        (2, 1),
    ),
    "a helper called twice": (
        """
        small = m <= 64
        a, b = make(small, 1), make(small, 2)
        assert m <= a.w * 3
        assert m <= b.w * 3
        return {"a": a, "b": b}
        """,
        (2, 1),
    ),
    "a list made in a loop": (
        """
        small = m <= 64
        rows = []
        for i in range(2):
            rows.append(Row(16 if small else 128, i))
        assert m <= rows[1].w * 3
        return {"rows": rows}
        """,
        (2, 1),
    ),
    "a constructor that checks": (
        """
        return {"tile": Checked(16 if m <= 64 else 128, m)}
        """,
        (2, 1),
    ),
    # who writes does not matter: the guard stands behind it
    "written by a helper": (
        """
        t = {"w": 8, "s": 1}
        fill(t, 16 if m <= 64 else 128)
        assert m <= t["w"] * 4
        return t
        """,
        (2, 1),
    ),
    "written by a method": (
        """
        t = Wide(8)
        t.grow(16 if m <= 64 else 128)
        assert m <= t.w * 4
        return t
        """,
        (2, 1),
    ),
    "written by a function inside": (
        """
        t = {"w": 8}
        def fill():
            t["w"] = 16 if m <= 64 else 128
        fill()
        assert m <= t["w"] * 4
        return t
        """,
        (2, 1),
    ),
    "written by another name": (
        """
        t = {"w": 8, "s": 1}
        assert m > t["w"] or t["w"] < 9
        u = t
        if m > 64:
            u["w"] = 128
        else:
            u["w"] = 16
        assert m <= t["w"] * 4
        return t
        """,
        (2, 1),
    ),
    "written through what holds it": (
        """
        t = {"w": 8}
        rows = [t, {"w": 4}]
        rows[0]["w"] = 16 if m <= 64 else 128
        assert m <= t["w"] * 4
        return t
        """,
        (2, 1),
    ),
    "one field is no choice": (
        """
        t = {"w": 16 if m <= 64 else 128, "rest": m % 4}
        assert t["rest"] < 4
        assert m <= t["w"] * 4 + t["rest"]
        return t
        """,
        (2, 1),
    ),
    "not on every path": (
        """
        if m > 280:
            return None
        t = Tile(16 if m <= 64 else 128, 2)
        assert m <= t.w * 4
        return t
        """,
        (4, 3),
    ),
    "two returns": (
        """
        t = Tile(16 if m <= 64 else 128, 2)
        if m > 200:
            assert t.w > 16
            return {"tile": t}
        t = replace(t, s=4)
        assert m <= t.w * t.s - 8
        return {"tile": t}
        """,
        (4, 1),
    ),
}


def judged(source: str, facts: str, folder: Path) -> tuple[tuple[int, int], list[str]]:
    """How many assignments there are and are called legal, and where compiler and judge differ.

    What only the mixed reading refuses is no difference: the judge has two readings.
    """
    (folder / "selector.py").write_text(source, encoding="utf-8")
    (folder / "facts.yaml").write_text(facts, encoding="utf-8")
    answer, tally = judge_case(folder, folder / "out")
    differences = tally.differences
    if ", mixed v" in json.loads((folder / "out" / "manifest.json").read_text())["graph"]:
        differences = [d for d in differences if not d.endswith("legal, not called so")]
    return (tally.assignments, answer["legal"]["legal"]), differences


@pytest.mark.parametrize("name", PROGRAMS)
def test_field(name: str, tmp_path: Path) -> None:
    body, counts = PROGRAMS[name]
    source = CLASSES + "def choose(m):\n" + textwrap.indent(textwrap.dedent(body), "    ")
    facts = FACTS
    aux = {"Checked": "tile.m", '"rest"': "rest"}
    for word, point in aux.items():
        if word in body:
            facts = facts.replace('{"*": bits}', f'{{"*": bits, {point}: aux}}')
    assert judged(source, facts, tmp_path) == (counts, [])


@pytest.mark.parametrize("key", ["a.w", "w[0]", "w", ""])
def test_a_key_that_looks_like_a_path(key: str, tmp_path: Path) -> None:
    source = f"""\
def choose(m):
    t = {{{key!r}: 8, "s": 1}}
    t[{key!r}] = 16 if m <= 64 else 128
    assert m <= t[{key!r}] * 4
    return t
"""
    (tmp_path / "selector.py").write_text(source, encoding="utf-8")
    (tmp_path / "facts.yaml").write_text(FACTS, encoding="utf-8")
    answer = compiled(tmp_path / "selector.py", [tmp_path / "facts.yaml"], tmp_path / "out")
    assert answer["rows"] == [[128]]


@pytest.mark.parametrize("seed", range(24))
def test_random(seed: int, tmp_path: Path) -> None:
    source, facts = random_records.program(seed)
    try:
        _, differences = judged(source, facts, tmp_path)
    except Unjudged:
        pytest.skip("refused, or pinned where the judge finds no place")
    assert differences == []
