"""Sequences reach the graph through what may be asked of them, related exactly."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from selc.ir.interp import run_program
from selc.ir.program import Program
from tests.unit.frontend.lifting import imported, lift, refusal, write

FACTS = """
selection: {{function: "pkg.mod:choose", scope: launch, returns: {{result: bits}}}}
inputs:
  lens: {{kind: runtime, length: [{0}, {1}], element: {{range: [{2}, {3}]}}}}
"""
ASKS: dict[str, Any] = {"len": len, "min": min, "max": max, "sum": sum, "any": any, "all": all}
BODIES = {
    "sum": "sum(lens) > 4",
    "extremes": "max(lens) - min(lens)",
    "all three": "sum(lens) * 2 > len(lens) * max(lens) + min(lens)",
    "average": "sum(lens) // len(lens)",
    "zeros": "(any(lens), all(lens))",
    "any and sum": "any(lens) and sum(lens) > 2",
    "least and length": "min(lens) if len(lens) == 2 else -1",
    "truth": "1 if lens else 0",
}


def program(
    folder: Path, body: str, bounds: tuple[int, ...], annotation: str = "list[int]"
) -> Program:
    write(folder, {"mod.py": f"def choose(lens: {annotation}):\n    return {body}\n"})
    return lift(folder, "pkg.mod:choose", FACTS.format(*bounds))


def asked(program: Program, lens: tuple[int, ...]) -> dict[str, Any]:
    given = {
        name: ASKS[how](lens)
        for s in program.sequences.values()
        for how, name in s.aggregates.items()
    }
    assert set(given) == set(program.graph.inputs)
    return given


@pytest.mark.parametrize("bounds", [(1, 3, 0, 3), (2, 3, 1, 3), (3, 3, 0, 2)], ids=str)
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_agrees_and_is_exact(tmp_path: Path, body: str, bounds: tuple[int, ...]) -> None:
    made = program(tmp_path, body, bounds)
    low, high, first, last = bounds
    some = set()
    with imported(tmp_path):
        from pkg.mod import choose  # type: ignore[import-not-found]  # written above

        for count in range(low, high + 1):
            for lens in itertools.product(range(first, last + 1), repeat=count):
                given = asked(made, lens)
                some.add(tuple(given.items()))
                got = run_program(made, given)
                assert got.returned, (lens, got.guard)
                assert got.points["result"] == choose(list(lens))
    domains = {n: list(i.domain) for n, i in made.graph.inputs.items()}
    for values in itertools.product(*domains.values()):
        given = dict(zip(domains, values, strict=True))
        assert run_program(made, given).returned == (tuple(given.items()) in some), given


@pytest.mark.parametrize(
    "test",
    [
        "np.all(lens == 1)",
        "np.any(1 < lens)",
        "(lens != 2).any()",
        "np.all(lens <= 2)",
        "(lens >= 1).all()",
    ],
)
def test_arrays_compare_element_by_element(tmp_path: Path, test: str) -> None:
    source = f"def choose(lens: np.ndarray):\n    return 1 if {test} else 2\n"
    write(tmp_path, {"mod.py": f"import numpy as np\n\n{source}"})
    made = lift(tmp_path, "pkg.mod:choose", FACTS.format(1, 3, 0, 3))
    compared = test.replace("np.", "").strip("()")
    for count in (1, 2, 3):
        for lens in itertools.product(range(4), repeat=count):
            each = {
                "all(lens == 1)": all(x == 1 for x in lens),
                "any(1 < lens": any(x > 1 for x in lens),
                "lens != 2).any": any(x != 2 for x in lens),
                "all(lens <= 2": all(x <= 2 for x in lens),
                "lens >= 1).all": all(x >= 1 for x in lens),
            }
            want = next(v for k, v in each.items() if compared.startswith(k.rstrip(")")))
            assert run_program(made, asked(made, lens)).points["result"] == (1 if want else 2), lens


@pytest.mark.parametrize(
    ("body", "bounds", "words"),
    [
        ("lens[0]", (1, 3, 0, 3), "indexing"),
        ("max(lens)", (0, 3, 0, 3), "may be empty"),
        ("all(lens)", (1, 3, -1, 3), "may be negative"),
        ("lens == 2", (1, 3, 0, 3), "comparing the sequence"),
        ("[x for x in lens]", (1, 3, 0, 3), "iterating"),
    ],
)
def test_nothing_else(tmp_path: Path, body: str, bounds: tuple[int, ...], words: str) -> None:
    write(tmp_path, {"mod.py": f"def choose(lens: list[int]):\n    return {body}\n"})
    assert words in refusal(tmp_path, "pkg.mod:choose", FACTS.format(*bounds))


@pytest.mark.parametrize("kind", ["Runtime", "Unpinnable", "Request"])
def test_the_kind_may_stand_in_the_program(kind: str, tmp_path: Path) -> None:
    source = f"""from selc.lang import Bits, Request, Runtime, Unpinnable, record, selection

@record
class Batch:
    lens: {kind}[list[int]]

@record
class Launch:
    most: Bits[int]

@selection(family="toy", scope="launch")
def in_record(batch: Batch) -> Launch:
    return Launch(most=max(batch.lens))

@selection(family="toy", scope="launch")
def bare(lens: {kind}[list[int]]) -> Launch:
    return Launch(most=max(lens))
"""
    write(tmp_path, {"mod.py": source})
    for name in ("in_record", "bare"):
        facts = "inputs: {lens: {length: [1, 9], element: {range: [1, 64]}}}"
        made = lift(tmp_path, f"pkg.mod:{name}", facts)
        (sequence,) = made.sequences.values()
        assert (sequence.kind, list(sequence.aggregates)) == (kind.lower(), ["max"])
