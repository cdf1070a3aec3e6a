"""Enum members are symbols that behave as Python's members do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.frontend.lifting import agree, lift, refusal, write

MODES = """
from enum import Enum, IntEnum, auto

class Mode(IntEnum):
    NULL = 0
    EXTEND = auto()
    DECODE = auto()
    TWICE = 2

    def is_decode(self):
        return self == Mode.DECODE

    @property
    def weight(self):
        return self.value * 10

    @classmethod
    def first(cls, big):
        return cls.EXTEND if big else cls.DECODE

class Algo(Enum):
    ONE = "one"
    TWO = "two"

    def resolve(self, big: bool):
        if self != Algo.ONE:
            return self
        return Algo.TWO if big else Algo.ONE
"""

FACTS = """
selection: {function: "pkg.mod:choose", scope: launch, returns: {result: bits}}
inputs:
  m: {kind: runtime, range: [0, 9]}
  mode: {kind: runtime, values: [Mode.NULL, Mode.EXTEND, Mode.DECODE]}
"""

BODIES = {
    "method": "mode.is_decode()",
    "property": "mode.weight + m",
    "value": "(mode.value, mode.name)",
    "order": "mode > m",
    "max": "max(mode, Mode.EXTEND)",
    "min": "min(Mode.DECODE, mode)",
    "alias": "mode is Mode.TWICE",
    "as a number": "[7, 8, 9][mode] + mode * 2",
    "truth": "'yes' if mode else 'no'",
    "equal to a number": "mode == m or m in (mode, Mode.EXTEND)",
    "membership": "mode in [Mode.NULL, Mode.DECODE]",
    "key": "{Mode.NULL: 1, Mode.EXTEND: 2, Mode.DECODE: 3}[mode]",
    "number key": "{0: 1, 1: 2, 2: 3}.get(mode, m)",
    "text": "f'{mode}'",
    "by value": "Mode(m)",
    "by name": "Mode['EXTEND'] if m > 3 else mode",
    "classmethod": "Mode.first(m > 4)",
    "iterated": "sum(x.value for x in Mode) + len(list(Mode))",
    "sorted": "sorted([Mode.DECODE, Mode.NULL])[0]",
    "instance": "(isinstance(mode, int), isinstance(mode, Mode), isinstance(mode, str))",
    "plain": "Algo.ONE.resolve(m > 4)",
    "plain by value": "Algo('two') if m > 4 else Algo('one')",
    "plain is no number": "(Algo.ONE == 'one', bool(Algo.ONE))",
    "members": "'TWO' in Algo.__members__ and 'SIX' not in Algo.__members__",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=list(BODIES))
def test_members_behave_as_in_python(tmp_path: Path, body: str) -> None:
    write(tmp_path, {"mod.py": MODES + f"\ndef choose(m, mode):\n    return {body}\n"})
    program = lift(tmp_path, "pkg.mod:choose", FACTS)
    arguments: dict[str, list[Any]] = {
        "m": list(range(10)),
        "mode": ["pkg.mod:Mode.NULL", "pkg.mod:Mode.EXTEND", "pkg.mod:Mode.DECODE"],
    }
    assert agree(tmp_path, program, "pkg.mod:choose", arguments)


def test_self_is_a_member(tmp_path: Path) -> None:
    write(tmp_path, {"mod.py": MODES})
    facts = """
    selection: {function: "pkg.mod:Algo.resolve", returns: {result: bits}}
    facts: {self: Algo.ONE}
    inputs: {big: {kind: runtime, type: bool}}
    """
    program = lift(tmp_path, "pkg.mod:Algo.resolve", facts)
    assert (
        agree(
            tmp_path,
            program,
            "pkg.mod:Algo.resolve",
            {"self": ["pkg.mod:Algo.ONE"], "big": [False, True]},
        )
        == 2
    )


def test_wrong_member_of_a_module_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {"mod.py": MODES + "\ndef choose(m, mode):\n    return m\n"})
    facts = FACTS.replace("Mode.NULL", "pkg.mod.Mode.NULLL")
    assert refusal(tmp_path, "pkg.mod:choose", facts).startswith("SEL911")


CDIV = "def cdiv(a, b):\n    return -(a // -b)\n"


def test_star_imports(tmp_path: Path) -> None:
    write(tmp_path, {
        "utils/__init__.py": "from pkg.utils.common import *\n",
        "utils/common.py": CDIV + "def is_cuda():\n    raise OSError\n",
        "mod.py": "from pkg.utils import cdiv, is_cuda\n"
        "_on = is_cuda()\n"
        "def choose(m):\n    return cdiv(m, 8) if _on else 0\n",
    })  # fmt: skip
    facts = """
    selection: {function: "pkg.mod:choose", returns: {result: bits}}
    inputs: {m: {kind: runtime, range: [0, 64]}}
    functions: {"pkg.utils.common.is_cuda": true}
    """
    program = lift(tmp_path, "pkg.mod:choose", facts)
    (tmp_path / "pkg/utils/common.py").write_text(CDIV + "def is_cuda():\n    return True\n")
    assert agree(tmp_path, program, "pkg.mod:choose", {"m": list(range(65))}) == 65


@pytest.mark.parametrize(
    ("exports", "lifted"),
    [("__all__ = ['cdiv']", True), ("__all__ = ['other']", False), ("__all__ = list(x)", False)],
)
def test_star_imports_respect_all(tmp_path: Path, exports: str, lifted: bool) -> None:
    write(tmp_path, {
        "common.py": f"x = ['cdiv']\n{exports}\ndef cdiv(a, b):\n    return -(a // -b)\n",
        "mod.py": "from pkg.common import *\ndef choose(m):\n    return cdiv(m, 8)\n",
    })  # fmt: skip
    facts = """
    selection: {function: "pkg.mod:choose", returns: {result: bits}}
    inputs: {m: {kind: runtime, range: [0, 64]}}
    """
    if lifted:
        program = lift(tmp_path, "pkg.mod:choose", facts)
        assert agree(tmp_path, program, "pkg.mod:choose", {"m": list(range(65))}) == 65
    else:
        assert refusal(tmp_path, "pkg.mod:choose", facts).startswith("SEL90")
