"""Whether two certificates speak of the same functions, by the compiler's reference interpreter."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

from selc.ir.interp import run as run_graph
from selc.ir.interp import run_program
from selc.ir.program import Program
from selc.ir.read_whole import read_program, read_residual
from selc.ir.residual import Residual
from selc.ir.value import value_key

CALLS = 400


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
