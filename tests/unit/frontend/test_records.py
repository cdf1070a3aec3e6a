"""NamedTuples and mixed results keep what Python knows of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from selc.ir.interp import run_program
from tests.unit.frontend.lifting import agree, lift, write

FACTS = """
selection: {function: "pkg.mod:choose", scope: launch, returns: {result: bits}}
inputs: {m: {kind: runtime, range: [0, 9]}}
"""
RECORDS = """
from typing import NamedTuple

class Span(NamedTuple):
    low: int
    high: int = 8

    def clip(self, m):
        return self._replace(low=min(self.low, m))

    @property
    def width(self):
        return self.high - self.low

    @classmethod
    def of(cls, m):
        return cls(m, 2 * m)

class Other(NamedTuple):
    low: int
    high: int

def choose(m):
    span = Span.of(m) if m > 4 else Span(3)
    return {body}
"""


@pytest.mark.parametrize(
    "body",
    [
        "isinstance(span, Span)",
        "isinstance(span, (Other, tuple))",
        "isinstance(span, Other)",
        "isinstance((1, 2), Span)",
        "span.clip(2)",
        "isinstance(span.clip(2), Span)",
        "span.width + span[0]",
        "span == Other(3, 8)",
    ],
)
def test_named_tuples(tmp_path: Path, body: str) -> None:
    write(tmp_path, {"mod.py": RECORDS.replace("{body}", body)})
    program = lift(tmp_path, "pkg.mod:choose", FACTS)
    assert agree(tmp_path, program, "pkg.mod:choose", {"m": list(range(10))}) == 10


def test_a_scalar_in_place_of_a_record_is_a_point(tmp_path: Path) -> None:
    source = """
        def choose(m):
            if m < 2:
                return None
            if m < 5:
                return m
            return {"a": m, "b": 1}
    """
    write(tmp_path, {"mod.py": source})
    program = lift(tmp_path, "pkg.mod:choose", FACTS.replace(", returns: {result: bits}", ""))
    points = [run_program(program, {"m": m}).points for m in (1, 4, 7)]
    assert points == [
        {"result": None, "a": None, "b": None},
        {"result": 4, "a": None, "b": None},
        {"result": None, "a": 7, "b": 1},
    ]


def test_names_of_the_function_around(tmp_path: Path) -> None:
    source = """
        def choose(m):
            n = 0
            def step(by):
                nonlocal m, n
                m = m + by
                n += m
                return n
            step(2)
            return (step(m), m, n)
    """
    write(tmp_path, {"mod.py": source})
    program = lift(tmp_path, "pkg.mod:choose", FACTS)
    assert agree(tmp_path, program, "pkg.mod:choose", {"m": list(range(10))}) == 10


def test_a_field_that_may_be_absent_is_a_site_only_where_it_is_there(tmp_path: Path) -> None:
    source = """
        def choose(m):
            made = {"a": m}
            if m > 4:
                made["c"] = m + 1
            return made
        """
    write(tmp_path, {"mod.py": source})
    program = lift(tmp_path, "pkg.mod:choose", FACTS.replace(", returns: {result: bits}", ""))
    met = [m for m in range(10) if "choose.made.c" in run_program(program, {"m": m}).sites]
    assert met == [5, 6, 7, 8, 9]
