"""What the compiler calls legal, tried under CPython.

A legal assignment of the pins must let the function return on every admitted input, and under it
the batch must not move any `bits` point.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from tests.engines.oracle import Case, Unplaced, frozen, thawed

if TYPE_CHECKING:
    from selc.driver.pipeline import Decided

BATCH = ("runtime", "unpinnable")
ROWS = 4


def judge(case: Case, decided: Decided, count: int, seed: int) -> int:
    """Try some legal assignments on random and boundary inputs; how many could be tried.

    Raises:
        AssertionError: an assignment that is called legal is not.
    """
    rng = random.Random(seed)
    residual = decided.residual
    samples = case.samples(decided.program, count, rng)
    relation = list(decided.legality.relation or ())
    tried = 0
    for row in rng.sample(relation, min(len(relation), ROWS)):
        chosen = dict(zip(decided.legality.parameters, row, strict=True))
        if any(p.free and p.at is not None for p in residual.pins):
            continue
        pins = {p.name: p.constant if p.free else chosen[str(p.parameter)] for p in residual.pins}
        knobs = {k: thawed(chosen[k]) for k in residual.knobs}
        tried += _holds(case, decided, pins, [{**inputs, **knobs} for inputs in samples])
    return tried


def _holds(
    case: Case, decided: Decided, pins: dict[str, Any], samples: list[dict[str, Any]]
) -> bool:
    """Whether one assignment could be tried; it holds if this returns."""
    program = decided.program
    names = [p.name for p in program.points]
    bits = [p.name for p in program.points if p.role == "bits"]
    kinds = BATCH + (("request",) if program.scope == "launch" else ())
    fixed = [name for name, spec in case.inputs.items() if spec["kind"] not in kinds]
    try:
        function = case.build(program, pins)
    except Unplaced:
        return False
    seen: dict[Any, Any] = {}
    for inputs in samples:
        got = function.points(inputs, names)
        if function.unplaced():
            return False
        assert got is not None, f"{case.path.name}: {pins} is called legal, and {inputs} fails"
        mine = {name: frozen(got[name]) for name in bits}
        first = seen.setdefault(frozen(tuple(inputs[name] for name in fixed)), mine)
        assert first == mine, f"{case.path.name}: with {pins}, the batch moves {mine} at {inputs}"
    return True
