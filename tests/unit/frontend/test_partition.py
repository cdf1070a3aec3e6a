"""Files of bit classes: what is wrong is told at its line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from selc.diag.diagnostic import Sink
from selc.frontend.facts import load_facts
from selc.frontend.facts.partition import read_partition

GOOD: dict[str, Any] = {
    "format": 1,
    "fields": ["a", "b"],
    "device": "d",
    "dtype": "bfloat16",
    "kernel": "k",
    "versions": {"torch": "2.11.0", "triton": "3.6.0"},
    "given": {"split": 1},
    "classes": [
        {"name": "x", "members": [[1, 2], [3, 4]], "evidence": "proved"},
        {"members": [[5, 6]], "evidence": "measured", "shapes": [1], "seeds": [0]},
    ],
}


def told(text: str) -> list[tuple[int, str, str]]:
    sink = Sink()
    made = read_partition(text, "c.json", sink)
    assert (made is None) == bool(sink.items)
    assert all(d.help for d in sink if d.code != "SEL914")
    return [(d.span.line, d.code, d.message) for d in sink]


def test_a_good_file() -> None:
    assert told(json.dumps(GOOD, indent=1)) == []


WRONG: dict[str, tuple[str, str, int, str, str]] = {
    # what is replaced, by what, the line told, the code, the message
    "format": ('"format": 1', '"format": 2', 2, "SEL911", "format 2; selc reads 1"),
    "true": ('"format": 1', '"format": true', 2, "SEL911", "format true; selc"),
    "key": ('"dtype"', '"dtyp"', 8, "SEL910", "unknown key `dtyp`"),
    "fields": ('"b"\n', '"a"\n', 5, "SEL911", "the field `a` is named twice"),
    "device": ('"device": "d"', '"device": 3', 7, "SEL911", "`device` must be text"),
    "versions": (',\n  "triton": "3.6.0"', "", 10, "SEL911", "`versions` lacks triton"),
    "given": ('"split": 1', '"a": 1', 15, "SEL911", "`a` is both a field"),
    "short": ("3,\n     4", "3", 25, "SEL911", "a member has 1 values for 2 fields"),
    "float": ("     4\n", "     4.0\n", 27, "SEL911", "a value of a member is the number 4.0"),
    "twice": ("5,\n     6", "3,\n     4", 34, "SEL911", "(3, 4) stands in the partition twice"),
    "evidence": ('"proved"', '"guessed"', 30, "SEL910", "no evidence `guessed`"),
    "seeds": (',\n   "seeds": [\n    0\n   ]', "", 32, "SEL911", "at which seeds"),
    "name": ('"name": "x"', '"name": "c1"', 32, "SEL911", "`c1` is named twice"),
    "json": ('"format": 1', '"format" 1', 2, "SEL914", "not JSON"),
    "members": ("[\n     5,\n     6\n    ]\n", "\n", 33, "SEL911", "has no members"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_told_at_its_line(name: str) -> None:
    old, new, line, code, message = WRONG[name]
    text = json.dumps(GOOD, indent=1)
    assert text.count(old) == 1
    found = told(text.replace(old, new))
    assert [(n, c, message in m) for n, c, m in found] == [(line, code, True)], found


def test_the_representative_is_a_member() -> None:
    changed = json.loads(json.dumps(GOOD))
    changed["classes"][0]["representative"] = [1, 4]
    assert [m for _, _, m in told(json.dumps(changed))] == [
        "the representative (1, 4) is no member of its class"
    ]


def test_a_facts_file_tells_the_line_of_the_partition(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(json.dumps(GOOD, indent=1).replace('"k"', "[]"))
    (tmp_path / "f.yaml").write_text("classes: {x: {fields: [a, b], file: c.json}}\n")
    sink = Sink()
    load_facts([tmp_path / "f.yaml"], sink)
    assert [(Path(d.span.path).name, d.span.line) for d in sink] == [("c.json", 9)]
