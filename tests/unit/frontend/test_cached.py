"""Cached functions: what is overwritten in a body that may not run would not be seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.frontend.lifting import agree, lift, write

FACTS = """
selection: {function: "pkg.mod:choose", scope: launch, returns: {result: bits}}
inputs: {m: {kind: runtime, range: [0, 9]}}
"""
SOURCE = """
from functools import cached_property, lru_cache

def half(x):
    y = x // 2
    return y

@lru_cache(maxsize=None)
def cached(x):
    y = half(x)
    return y + 1

class Plan:
    def __init__(self, m):
        self.m = m

    @cached_property
    def size(self):
        s = self.m * 2
        return s

def choose(m):
    plan = Plan(m)
    return {body}
"""


@pytest.mark.parametrize(
    ("body", "sites"),
    [
        ("cached(m) + cached(3)", False),
        ("sum(cached(k + m) for k in (1, 2))", False),
        ("half(m) + half(3)", True),
        ("cached(m) + half(3)", True),
        ("plan.size + plan.size", False),
        ("plan.size + 1", True),
    ],
)
def test_sites_in_what_runs_for_every_call_only(tmp_path: Path, body: str, sites: bool) -> None:
    write(tmp_path, {"mod.py": SOURCE.replace("{body}", body)})
    program = lift(tmp_path, "pkg.mod:choose", FACTS)
    agree(tmp_path, program, "pkg.mod:choose", {"m": range(10)})
    inside = [n for n in program.sites if n.startswith(("half.", "cached.", "Plan.size."))]
    assert bool(inside) is sites, inside
