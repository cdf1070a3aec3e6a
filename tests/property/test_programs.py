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


def check(made: Made, native: bool) -> Counter[str]:
    """One program by every way; what was compared."""
    counts: Counter[str] = Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        try:
            compile(made.text, "case.py", "exec")
        except SyntaxError:
            return counts
        one(made, 1, native, counts, Reached())
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
    check(made, False)


@pytest.mark.native
def test_programs_native() -> None:
    """Every 25th program of a campaign, with the native selector."""
    counts: Counter[str] = Counter()
    for seed in range(0, 200, 25):
        counts += check(program(random.Random(seed)), True)
    assert counts["emitted native"] >= 4
