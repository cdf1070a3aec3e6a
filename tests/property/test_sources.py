"""Random selections: CPython, the interpreter on G0, and the interpreter after every pass agree.

Agreement is on whether the run returns, on the points, on the values of all single definitions that
are reached, and on all of that again with some definition overwritten.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from selc.diag.diagnostic import Refused
from selc.ir.dump import dump_program
from selc.ir.interp import Result, run_program
from selc.ir.op import TooWide
from selc.ir.program import Program
from selc.ir.value import same
from tests import adapters
from tests.property.sources import Source, source
from tests.sel_case import simplified

FACTS = (
    "facts: {k: 5}\ninputs:\n  m: {type: int, range: [-3, 12]}\n  n: {type: int, range: [0, 70]}\n"
)
INPUTS = [(m, n) for m in (-3, -1, 0, 1, 2, 5, 12) for n in (0, 1, 2, 3, 63, 64, 70)]


class Observer:
    """Runs the observed text under CPython."""

    def __init__(self, text: str) -> None:
        self.names: dict[str, Any] = {"__name__": "builtins", "_at": self.at}
        exec(compile(text, "observed.py", "exec"), self.names)
        self.seen: dict[str, object] = {}
        self.overwrites: dict[str, object] = {}

    def at(self, site: str, value: object) -> object:
        value = self.overwrites.get(site, value)
        self.seen[site] = value
        return value

    def run(self, m: int, n: int, overwrites: dict[str, object]) -> dict[str, object] | None:
        """The points, or None if it raises."""
        self.seen, self.overwrites = {}, overwrites
        try:
            out = self.names["f"](m, n, 5)
        except (ArithmeticError, AssertionError, LookupError, TypeError, ValueError):
            return None
        return {"first": out.first, "second": out.second}


def agree(who: str, want: dict[str, object] | None, result: Result) -> None:
    """On returning, and on the points."""
    assert (want is not None) == result.returned, (who, want, result)
    for name, value in (want or {}).items():
        assert same(value, result.points[name]), (who, name, value, result.points)


def check(made: Source, program: Program, rng: random.Random) -> None:
    """All inputs, unpinned and with overwrites."""
    observer = Observer(made.observed)
    stages = dict(simplified(program))
    pinnable = [s for s in made.sites if s in program.sites]
    candidates: dict[str, list[object]] = {s: [] for s in pinnable}
    for m, n in INPUTS:
        observer.run(m, n, {})
        for site in pinnable:
            candidates[site] += [observer.seen[site]] if site in observer.seen else []
    for m, n in INPUTS:
        inputs = {k: v for k, v in {"m": m, "n": n}.items() if k in program.graph.inputs}
        want = observer.run(m, n, {})
        result = run_program(program, inputs)
        agree("lower", want, result)
        for site in pinnable:
            assert (site in observer.seen) == (site in result.sites), (site, m, n)
            if site in observer.seen:
                assert same(observer.seen[site], result.sites[site]), (site, m, n)
        for name, stage in stages.items():
            agree(name, want, run_program(stage, inputs))
        overwrites = {
            site: rng.choice(candidates[site])
            for site in rng.sample(pinnable, min(2, len(pinnable)))
            if candidates[site]
        }
        note(f"f({m}, {n}) with {overwrites}")
        agree("lower", observer.run(m, n, overwrites), run_program(program, inputs, overwrites))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32))
def test_sources(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    rng = random.Random(seed)
    made = source(rng)
    folder: Path = tmp_path_factory.mktemp("source")
    path, facts = folder / "case.py", folder / "facts.yaml"
    path.write_text(made.plain, encoding="utf-8")
    facts.write_text(FACTS, encoding="utf-8")
    note(made.plain)
    try:
        program = adapters.lower(path, [facts])
    except adapters.Missing as missing:
        pytest.skip(str(missing))
    except Refused:
        return  # refusing is always right; how often is the concern of other tests
    note(dump_program(program))
    try:
        check(made, program, rng)
    except TooWide:
        return
