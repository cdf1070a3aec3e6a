"""Sets of known values, dataclasses that replace fields, and records written out in facts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.frontend.lifting import agree, lift, refusal, write

FACTS = """
selection: {function: "pkg.mod:choose", scope: launch, returns: {result: bits}}
inputs: {m: {kind: runtime, range: [0, 9]}}
"""
SOURCE = """
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

class Mode(Enum):
    NONE = 0
    PART = 1
    FULL = 2

@dataclass(frozen=True)
class Key:
    size: int
    count: int | None = None
    uniform: bool = False

    def __post_init__(self):
        assert self.size < 8

def modes():
    return frozenset({Mode.NONE, Mode.FULL})

KEYS = {Key(1), Key(2), Key(4, 4)}

def choose(m):
    return {body}
"""


@pytest.mark.parametrize(
    "body",
    [
        "modes() <= {Mode.NONE}",
        "{Mode.NONE} < modes()",
        "(len(modes()), len({1, 2, True}), len(set(modes())))",
        "{1, 2} == {2, 1} and {1, 2} != {1} and {1, 2, 3} >= {1}",
        "Key(m) in KEYS",
        "replace(Key(m, 4), count=None) in KEYS",
        "replace(Key(4), count=m).count",
        "replace(Key(4), size=m).size",
        "Key(4, 4) == replace(Key(m), count=m)",
    ],
)
def test_agrees(tmp_path: Path, body: str) -> None:
    write(tmp_path, {"mod.py": SOURCE.replace("{body}", body)})
    program = lift(tmp_path, "pkg.mod:choose", FACTS)
    assert agree(tmp_path, program, "pkg.mod:choose", {"m": list(range(10))})


@pytest.mark.parametrize("body", ["{m, 1} <= {1, 2}", "len({m, 1})", "[x for x in modes()]"])
def test_refused(tmp_path: Path, body: str) -> None:
    write(tmp_path, {"mod.py": SOURCE.replace("{body}", body)})
    assert "set" in refusal(tmp_path, "pkg.mod:choose", FACTS)


STATED = """
facts:
  table:
    Mode.PART:
      - {class: "pkg.mod:Key", attrs: {size: 3}}
      - {class: "pkg.mod:Key", attrs: {size: 5, count: 1}}
    Mode.FULL: []
"""


def test_records_and_members_in_facts(tmp_path: Path) -> None:
    source = SOURCE.replace("choose(m)", "choose(m, table)")
    write(
        tmp_path,
        {
            "mod.py": source.replace(
                "{body}", "(Key(m) in table[Mode.PART], Key(3) in table[Mode.FULL])"
            )
        },
    )
    program = lift(tmp_path, "pkg.mod:choose", FACTS + STATED)
    write(
        tmp_path,
        {"mod.py": SOURCE.replace("{body}", "(Key(m) in {Key(3), Key(5, 1)}, Key(3) in set())")},
    )
    assert agree(tmp_path, program, "pkg.mod:choose", {"m": list(range(10))})


@pytest.mark.parametrize("name", ["pkg.mod:Mode", "pkg.mod:Nothing", "pkg.none:Key"])
def test_only_records_are_written_out(tmp_path: Path, name: str) -> None:
    write(
        tmp_path,
        {"mod.py": SOURCE.replace("choose(m)", "choose(m, table)").replace("{body}", "table")},
    )
    assert "no dataclass or NamedTuple" in refusal(
        tmp_path, "pkg.mod:choose", FACTS + STATED.replace("pkg.mod:Key", name)
    )
