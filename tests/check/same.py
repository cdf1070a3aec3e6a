"""Whether two certificates speak of the same functions, by the compiler's reference interpreter."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

from selc.ir.graph import Node
from selc.ir.interp import Result, run_program
from selc.ir.interp import run as run_graph
from selc.ir.program import Program
from selc.ir.read_whole import read_program, read_residual
from selc.ir.residual import Residual
from selc.ir.value import value_key

CALLS = 400


def same_function(a: dict[str, Any], b: dict[str, Any], graph: str) -> bool:
    """Whether two graphs agree on what a certificate speaks of, over the domain of the first."""
    if graph == "graph":
        left, right = read_residual(a["graph"]), read_residual(b["graph"])
        return all(_same_residual(left, right, call) for call in _calls(left))
    one, other = read_program(a["graph0"]), read_program(b["graph0"])
    residual = read_residual(a["graph"])
    pins = {p.name for p in residual.pins}
    draw = random.Random(3)
    for call in _calls(one):
        if not _admitted(one, call):
            if _admitted(other, call):
                return False
            continue
        over = _overwrites(one, residual, call, draw)
        for chosen in ({}, over):
            first, second = (run_program(each, call, chosen) for each in (one, other))
            if not _alike(first, second, pins):
                return False
    return True


def _overwrites(
    program: Program, residual: Residual, call: dict[str, Any], draw: random.Random
) -> dict[str, Any]:
    """A value for every pin: free ones have theirs."""
    over = {}
    for pin in residual.pins:
        if not pin.free:
            axis = (*(pin.candidates.values or ()), *pin.offered)
            over[pin.name] = draw.choice(axis)
    for pin in residual.pins:
        if pin.free and pin.at is None:
            over[pin.name] = pin.constant
        elif pin.free:
            over[pin.name] = run_program(program, {**call, **(pin.at or {})}).sites.get(pin.name)
    return over


def _alike(a: Result, b: Result, pins: set[str]) -> bool:
    """The same points or the same failure; where both reach a site, the same value there.

    Whether a site counts as reached decides which values it is said to take, and nothing else.
    """
    if a.failed != b.failed or a.points.keys() != b.points.keys():
        return False
    both = [(a.points[n], b.points[n]) for n in a.points]
    both += [(v, b.sites[n]) for n, v in a.sites.items() if n in b.sites and n in pins]
    return all(value_key(x) == value_key(y) for x, y in both)


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


def _same_residual(left: Residual, right: Residual, call: dict[str, Any]) -> bool:
    admitted = [_held(each, [n for _, n in each.assumes], call) for each in (left, right)]
    if admitted[0] != admitted[1]:
        return False
    return not all(admitted[0]) or _residual(left, call) == _residual(right, call)


def _residual(of: Residual, call: dict[str, Any]) -> object:
    """The guards up to the first that fails, and the points if none does."""
    held = []
    for guard in of.guards:
        held.append(_held(of, list(guard.readings), call))
        if not all(held[-1]):
            return held
    values = run_graph(of.graph, [n for _, n in of.points], call)
    return held, [value_key(v) for v in values]


def _held(of: Residual, nodes: list[Node], call: dict[str, Any]) -> list[bool]:
    return [v is True for v in run_graph(of.graph, nodes, call)]


def _admitted(of: Program, call: dict[str, Any]) -> bool:
    assumes = [g for g in of.guards if g.kind == "assume"]
    nodes = [n for g in assumes for n in (g.path, g.cond)]
    values = run_graph(of.graph, nodes, call)
    pairs = zip(values[::2], values[1::2], strict=True)
    return all(path is not True or cond is True for path, cond in pairs)
