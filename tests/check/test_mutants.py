"""No change of a certificate that changes its meaning passes the checker, however well sealed.

A survivor among the mutants of a graph has to be the same function: the reference interpreter,
which the checker does not use, compares it with the original on every call of small domains, and on
many of large ones, with and without the pins overwritten.
"""

from __future__ import annotations

import itertools
import json
import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from selc.check.examine import examine
from selc.check.values import Unreadable
from selc.driver.compile import run
from selc.driver.options import CompileOptions
from selc.ir.interp import run as run_graph
from selc.ir.interp import run_program
from selc.ir.program import Program
from selc.ir.read_whole import read_program, read_residual
from selc.ir.residual import Residual
from selc.ir.value import value_key
from tests.check.mutants import Mutant, mutants, resealed

SHARED = Path(os.environ.get("SELC_SHARED", Path(__file__).parents[3] / "shared"))
CASES = ["H7", "I3", "I23", "I29", "M5", "M16", "M18", "N8"]
CALLS = 400


def compiled(case: str, folder: Path) -> dict[str, Any]:
    source = SHARED / "cases" / case
    outcome = run(
        CompileOptions(
            target=str(source / "selector.py"),
            facts=(source / "facts.yaml",),
            out=folder,
            emit=("python",),
            native=False,
            use_cache=False,
        )
    )
    assert outcome.exit_code in (0, 1), outcome.diagnostics
    manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    return manifest


def passes(mutant: Mutant, folder: Path, run: bool = False) -> bool:
    try:
        findings = examine(mutant.manifest, folder, run)
    except Unreadable:
        return False
    return not any(f.result == "failed" for f in findings)


@pytest.mark.skipif(not SHARED.is_dir(), reason="no shared cases; SELC_SHARED names their folder")
@pytest.mark.parametrize("case", CASES)
def test_what_passes_is_the_same(case: str, tmp_path: Path) -> None:
    manifest = compiled(case, tmp_path)
    original = resealed(manifest)
    assert not [f for f in examine(original, tmp_path) if f.result == "failed"]
    made: Counter[str] = Counter()
    for mutant in mutants(manifest):
        made[mutant.kind] += 1
        if passes(mutant, tmp_path):
            graph = mutant.kind.split(":")[0]
            assert graph in ("graph", "graph0"), mutant[:2]
            if not same_function(manifest, mutant.manifest, graph):
                assert not passes(mutant, tmp_path, run=True), mutant[:2]
    assert {"graph: role", "graph0: role", "scope"} <= set(made)


def same_function(a: dict[str, Any], b: dict[str, Any], graph: str) -> bool:
    """Whether two graphs agree on what a certificate speaks of."""
    if graph == "graph":
        left, right = read_residual(a["graph"]), read_residual(b["graph"])
        calls = list(_calls(left))
        return all(_residual(left, c) == _residual(right, c) for c in calls)
    one, other = read_program(a["graph0"]), read_program(b["graph0"])
    pins = [p["name"] for p in a["pins"]]
    draw = random.Random(3)
    for call in _calls(one):
        over = {}
        for pin in a["pins"]:
            listed = pin["candidates"]
            if not pin["free"] and isinstance(listed, list) and draw.random() < 0.5:
                over[pin["name"]] = frozen(draw.choice([*listed, *pin["offered"]]))
        for chosen in ({}, over):
            if _program(one, call, chosen, pins) != _program(other, call, chosen, pins):
                return False
    return True


def frozen(value: Any) -> Any:
    return tuple(map(frozen, value)) if isinstance(value, list) else value


def _calls(of: Program | Residual) -> Iterator[dict[str, Any]]:
    leaves = of.graph.inputs
    size = 1
    for leaf in leaves.values():
        size *= len(leaf.domain)
    if size <= 4 * CALLS:
        for row in itertools.product(*(leaf.domain for leaf in leaves.values())):
            yield dict(zip(leaves, row, strict=True))
        return
    draw = random.Random(7)
    for _ in range(CALLS):
        yield {
            n: leaf.domain[draw.choice((0, len(leaf.domain) - 1, draw.randrange(len(leaf.domain))))]
            for n, leaf in leaves.items()
        }


def _residual(of: Residual, call: dict[str, Any]) -> object:
    points = run_graph(of.graph, [n for _, n in of.points], call)
    readings = [n for g in of.guards for n in g.readings] + [n for _, n in of.assumes]
    held = [v is True for v in run_graph(of.graph, readings, call)]
    return ([value_key(v) for v in points], held)


def _program(of: Program, call: dict[str, Any], over: dict[str, Any], pins: list[str]) -> object:
    result = run_program(of, call, over)
    sites = {n: value_key(v) for n, v in result.sites.items() if n in pins}
    return ({n: value_key(v) for n, v in result.points.items()}, result.failed, sites)
