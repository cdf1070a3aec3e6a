"""Augmented assignment changes a list, a dict or a set itself: every name of it sees the change."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.unit.frontend.lifting import agree, lift, refusal, write

FACTS = """
selection: {function: "pkg.mod:choose", scope: launch, returns: {result: bits}}
inputs: {m: {kind: runtime, range: [0, 9]}}
"""
SOURCE = """
from dataclasses import dataclass

@dataclass
class Box:
    held: dict

def widen(d, m):
    d |= {"w": m}

def choose(m):
"""
BODIES = {
    "a dict": """
        a = {"w": 4}
        b = a
        b |= {"w": m, "s": 1}
        return a["w"], a["s"], b["w"]
    """,
    "a dict in a helper": """
        a = {"w": 4}
        widen(a, m)
        return a["w"]
    """,
    "a dict in a dict": """
        a = {"w": 4}
        b = {"a": a}
        b["a"] |= {"w": m}
        return a["w"]
    """,
    "a dict in a field": """
        a = {"w": 4}
        b = Box(a)
        b.held |= {"w": m}
        return a["w"]
    """,
    "a dict by pairs": """
        a = {"w": 4}
        b = a
        b |= [("w", m)]
        return a["w"]
    """,
    "a dict by either of two": """
        a = b = {"w": 4}
        b |= {"w": m} if m > 5 else {"w": 1, "s": 2}
        return a["w"]
    """,
    "a new dict": """
        a = {"w": 4}
        b = a
        b = b | {"w": m}
        return a["w"], b["w"]
    """,
    "a list that is repeated": """
        a = b = [m, 1]
        b *= 2
        return len(a), a[2]
    """,
    "a list that grows": """
        a = b = [m]
        b += (1, 2)
        return len(a), a[2]
    """,
    "sets": """
        a = b = {1, 2}
        b |= {3}
        c = d = {1, 2}
        d -= {2}
        e = f = {1, 2}
        f &= {2}
        return len(a), len(c), len(e), m
    """,
    "frozen sets": """
        a = frozenset({1, 2})
        b = c = a.copy()
        c |= {3}
        d = e = a | {4, 5}
        e -= {4}
        return len(a), len(b), len(c), len(d), len(e), m
    """,
    "tuples and numbers": """
        a = b = (m, 1)
        b += (2,)
        c = d = m
        d += 1
        return len(a), len(b), c, d
    """,
}


def _source(body: str) -> str:
    return SOURCE + textwrap.indent(textwrap.dedent(body), "    ")


@pytest.mark.parametrize("name", BODIES)
def test_agrees(name: str, tmp_path: Path) -> None:
    write(tmp_path, {"mod.py": _source(BODIES[name])})
    program = lift(tmp_path, "pkg.mod:choose", FACTS)
    assert agree(tmp_path, program, "pkg.mod:choose", {"m": list(range(10))})


REFUSED = {
    "either of two dicts": """
        a, c = {"w": 1}, {"w": 2, "s": 1}
        b = a if m > 5 else c
        b |= {"w": m}
        return a["w"]
    """,
    "either of two lists": """
        a, c = [1], [2, 3]
        b = a if m > 5 else c
        b += [m]
        return len(a)
    """,
    "a frozen set": """
        a = frozenset({1})
        a.add(m)
        return len(a)
    """,
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, tmp_path: Path) -> None:
    write(tmp_path, {"mod.py": _source(REFUSED[name])})
    assert refusal(tmp_path, "pkg.mod:choose", FACTS).startswith("SEL906")
