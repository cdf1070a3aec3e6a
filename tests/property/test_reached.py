"""The generator reaches every operation, statement, expression and built-in that is supported."""

from __future__ import annotations

from pathlib import Path

from selc.frontend import builtins_, expr, stmt
from selc.ir.op import Op
from tests.property.coverage import KINDS, NOT_REACHED, reach, wanted

SEEDS = (0, 15, 101, 106, 126, 140, 149, 159, 224, 302, 344, 347, 373, 501, 541, 699, 712)
"""`python -m tests.property.coverage` picks them anew when the generator has changed."""


def test_the_tables_are_those_of_the_front_end() -> None:
    handled = {t.__name__ for t in [*stmt._RULES, *expr._RULES]}
    assert handled == KINDS["statements"] | KINDS["expressions"]
    operators = {t.__name__ for t in [*expr.BINARY, *expr.UNARY, *expr.COMPARE]}
    assert operators < KINDS["parts of expressions"]
    assert set(builtins_._FUNCTIONS) == KINDS["built-ins"] | set(NOT_REACHED)


def test_what_is_not_reached_is_supported_and_says_why() -> None:
    known = {o.value for o in Op}.union(*KINDS.values(), builtins_._FUNCTIONS)
    assert set(NOT_REACHED) <= known
    assert all(NOT_REACHED.values())


def test_what_is_reached(tmp_path: Path) -> None:
    found = set().union(*(reach(seed, tmp_path) for seed in SEEDS))
    assert wanted() - found == set()
