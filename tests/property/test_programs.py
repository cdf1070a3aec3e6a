"""Random programs of the whole supported subset: a few on every run, many in `campaign`."""

from __future__ import annotations

import random
import warnings
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from tests.property.campaign import one
from tests.property.coverage import Reached
from tests.property.programs import Made, program

NATIVE_EVERY = 25


def check(rng: random.Random, seed: int, native: bool, reached: Reached) -> Counter[str]:
    """One program."""
    return check_made(program(rng, size=6), seed, native, reached)


def check_made(made: Made, seed: int, native: bool, reached: Reached) -> Counter[str]:
    """The same for a program that is made."""
    counts: Counter[str] = Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        try:
            compile(made.text, "case.py", "exec")
        except SyntaxError:
            return counts
        one(made, seed, native, counts, reached)
    return counts


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(rng=st.randoms(use_true_random=False))
def test_programs(rng: random.Random) -> None:
    """Drawn by Hypothesis, so that a failing program is made small."""
    made = program(rng, size=6)
    note(made.text[made.text.index("def choose") :])
    note(made.facts_text)
    check_made(made, 1, False, Reached())


@pytest.mark.native
def test_programs_native() -> None:
    """Fixed seeds, some with the native selector."""
    for seed in range(0, 50, NATIVE_EVERY):
        check(random.Random(seed), seed, True, Reached())
