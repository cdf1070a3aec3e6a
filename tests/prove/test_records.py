"""Reading (b) overwrites fields of records where they are defined, whatever they are made of."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest

from tests.prove import random_records
from tests.prove.judged import Unjudged, judge_case

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


def make(small, step):
    return Tile(w=16 * step if small else 128, s=step)


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
    facts = FACTS.replace('{"*": bits}', '{"*": bits, tile.m: aux}') if "Checked" in body else FACTS
    assert judged(source, facts, tmp_path) == (counts, [])


@pytest.mark.parametrize("seed", range(24))
def test_random(seed: int, tmp_path: Path) -> None:
    source, facts = random_records.program(seed)
    try:
        _, differences = judged(source, facts, tmp_path)
    except Unjudged:
        pytest.skip("refused, or pinned where the judge finds no place")
    assert differences == []
