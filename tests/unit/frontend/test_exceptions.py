"""Exceptions as control flow: which handler takes them, and what `finally` may see."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.frontend.lifting import agree, lift, refusal, write

FACTS = """
selection: {function: "pkg.mod:choose", scope: launch, returns: {result: bits}}
inputs: {m: {kind: runtime, range: [0, 9]}}
"""


@pytest.mark.parametrize("caught", ["Shape", "Tile, KeyError", "ValueError", "Exception"])
def test_a_handler_takes_what_derives_from_its_class(tmp_path: Path, caught: str) -> None:
    text = f"""
    class Shape(Exception): pass
    class Mixed(Shape, ValueError): pass
    class Tile(Mixed): pass
    def choose(m):
        try:
            if m > 5:
                raise Tile("x")
            k = 1
        except ({caught}):
            k = 2
        except BaseException:
            k = 3
        return k
    """
    write(tmp_path, {"mod.py": text})
    program = lift(tmp_path, "pkg.mod:choose", FACTS)
    assert agree(tmp_path, program, "pkg.mod:choose", {"m": list(range(10))}) == 10


def test_what_is_raised_again_must_be_certain(tmp_path: Path) -> None:
    text = """
    def choose(m):
        try:
            try:
                if m == 1: raise KeyError
                if m == 2: raise IndexError
            except LookupError:
                raise
        except KeyError:
            return 1
        except IndexError:
            return 2
        return 0
    """
    write(tmp_path, {"mod.py": text})
    assert "SEL901" in refusal(tmp_path, "pkg.mod:choose", FACTS)


@pytest.mark.parametrize(
    "body",
    [
        "try:\n            k = 8 // m\n        finally:\n            x = 2",
        "for _ in (1, 2):\n            try:\n                k = 8 // m\n"
        "            except ZeroDivisionError:\n                continue\n"
        "            finally:\n                x += 1",
    ],
)
def test_finally_that_an_outer_handler_or_a_jump_would_see(tmp_path: Path, body: str) -> None:
    text = f"""
    def choose(m):
        x = 1
        try:
            {body.replace(chr(10), chr(10) + "    ")}
        except ZeroDivisionError:
            pass
        return x
    """
    write(tmp_path, {"mod.py": text})
    assert "SEL901" in refusal(tmp_path, "pkg.mod:choose", FACTS)
