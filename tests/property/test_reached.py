"""The generator reaches every operation, statement, expression and built-in that is supported."""

from __future__ import annotations

import ast
import os
import random
import warnings
from pathlib import Path

from selc.diag.diagnostic import Refused
from selc.frontend import builtins_, expr, stmt
from selc.ir.op import Op
from tests import adapters
from tests.property.coverage import KINDS, NOT_REACHED, Reached
from tests.property.programs import ENVIRONMENT, program

SEEDS = range(800)
OPERATIONS = {o.value for o in Op}


def test_the_tables_are_those_of_the_front_end() -> None:
    handled = {t.__name__ for t in [*stmt._RULES, *expr._RULES]}
    assert handled == KINDS["statements"] | KINDS["expressions"]
    operators = {t.__name__ for t in [*expr.BINARY, *expr.UNARY, *expr.COMPARE]}
    assert operators < KINDS["parts of expressions"]
    assert set(builtins_._FUNCTIONS) == KINDS["built-ins"] | {"print"}


def test_what_is_not_reached_is_supported_and_says_why() -> None:
    known = OPERATIONS.union(*KINDS.values())
    assert set(NOT_REACHED) <= known
    assert all(NOT_REACHED.values())


def test_what_is_reached(tmp_path: Path) -> None:
    os.environ.update(ENVIRONMENT)
    reached = Reached()
    case, facts = tmp_path / "case.py", tmp_path / "facts.yaml"
    for seed in SEEDS:
        made = program(random.Random(seed))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            ast.parse(made.text)
        case.write_text(made.text, encoding="utf-8")
        facts.write_text(made.facts_text, encoding="utf-8")
        try:
            reached.program(made.text, adapters.lower(case, [facts]))
        except Refused:
            continue
        if not any(reached.missing(OPERATIONS).values()):
            return
    assert not any(reached.missing(OPERATIONS).values()), reached.missing(OPERATIONS)
