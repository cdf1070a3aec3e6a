"""Families at deployments: pins as written down, and agreement with CPython, pinned and not."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from selc.driver.pipeline import Decided
from selc.ir.interp import run_program
from tests.examples.deployed import Deployed, residual_points
from tests.sel_case import equal


class Expected(NamedTuple):
    """What is found at a deployment: pins with the number of candidates, legal of all."""

    family: str
    layers: str
    pins: dict[str, int]
    legal: int
    total: int


EXPECTED = (
    Expected("moe", "h100 qwen3-30b-a3b vllm tp4", {"moe.gate_up_k": 2}, 1, 2),
    Expected("moe", "h100 qwen3-30b-a3b sglang tp4", {"moe.row": 18, "moe.reduction": 2}, 36, 36),
    Expected("all_reduce", "h100 llama-3.1-70b vllm tp4", {"all_reduce.algorithm": 4}, 1, 4),
    Expected("all_reduce", "h100 qwen3-30b-a3b sglang tp4", {"all_reduce.algorithm": 4}, 3, 4),
    Expected("all_reduce", "b200 llama-3.1-8b sglang tp1", {}, 1, 1),
    Expected(
        "all_reduce",
        "h100 llama-3.1-70b sglang tp4 rank-order-kernels",
        {"all_reduce.algorithm": 4},
        4,
        4,
    ),
    Expected("cutlass_fp8", "h100 llama-3.1-70b vllm tp4", {"sm90.band": 5}, 5, 5),
    Expected("gemm", "h100 llama-3.1-70b sglang tp4", {}, 4, 4),
    Expected("gemm", "b200 llama-3.1-8b sglang tp1", {}, 4, 4),
)


def name(expected: Expected) -> str:
    return f"{expected.family} {expected.layers}".replace(" ", "-")


@pytest.mark.slow
@pytest.mark.parametrize("expected", EXPECTED, ids=name)
def test_deployment(expected: Expected) -> None:
    deployed = Deployed(expected.family, tuple(expected.layers.split()))
    decided = deployed.decide()
    pins = [p for p in decided.residual.pins if not p.free]
    assert {p.name: len(p.candidates.values or ()) for p in pins} == expected.pins
    found = decided.legality
    assert (found.legal, found.assignments) == (expected.legal, expected.total)
    assert found.evidence in ("proved", "exhaustive")
    assert all(d.decided for d in decided.dependence.values())
    agrees(deployed, decided, 6 if expected.family == "gemm" else 24)


def agrees(deployed: Deployed, decided: Decided, count: int) -> None:
    """G0 and R give what CPython gives: as it stands, and with pins overwritten."""
    rows = deployed.rows(decided, count)
    plain = deployed.cpython(decided, {})
    for row in rows:
        want, got = plain(row), run_program(decided.program, row)
        assert (want is not None) == got.returned, row
        if want is not None:
            assert same_points(dict(got.points), want), row
    draw = random.Random(1)
    legal = {tuple(row) for row in decided.legality.relation or ()}
    tuples = list(itertools.product(*axes(decided)))
    for values in draw.sample(tuples, min(6, len(tuples))):
        setting = dict(zip(decided.residual.parameters, values, strict=True))
        pinned = deployed.cpython(decided, sites(decided, setting))
        for row in rows:
            want = pinned({**row, **{k: setting[k] for k in decided.residual.knobs}})
            got_r = residual_points(decided, {**row, **setting})
            if values in legal:
                assert want is not None, (setting, row)
            if want is None:
                assert got_r is None, (setting, row)
            elif got_r is not None:
                assert same_points(got_r, want), (setting, row)
            else:
                assert values not in legal, (setting, row)


def axes(decided: Decided) -> list[list[Any]]:
    """The values of every parameter of R, in order."""
    by_name = {p.parameter: p for p in decided.residual.pins}
    out = []
    for parameter in decided.residual.parameters:
        pin = by_name.get(parameter)
        out.append(
            list(decided.residual.graph.inputs[parameter].domain)
            if pin is None
            else [*(pin.candidates.values or ()), *pin.offered]
        )
    return out


def sites(decided: Decided, setting: dict[str, Any]) -> dict[str, Any]:
    """What is overwritten where, under an assignment."""
    return {
        p.name: p.constant if p.free else setting[str(p.parameter)] for p in decided.residual.pins
    }


def same_points(got: dict[str, Any], want: dict[str, Any]) -> bool:
    return got.keys() == want.keys() and all(equal(got[k], want[k]) for k in got)


SMALL = (
    ("moe", "h100 qwen3-30b-a3b vllm tp4", (40, 96, 128, 256, 512, 1024, 1280, 1300)),
    ("moe", "h100 qwen3-30b-a3b sglang tp4", (90,)),
    ("moe", "h200 qwen3-30b-a3b-int4 vllm tp2", (60,)),
    ("all_reduce", "h100 llama-3.1-8b vllm tp8", (1100,)),
    ("all_reduce", "h100 llama-3.1-70b sglang tp8", (700,)),
    ("cutlass_fp8", "h100 llama-3.1-8b vllm tp1", (140,)),
)
"""Every batch up to the first number, and those about the others."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "layers", "ends"), SMALL, ids=lambda v: str(v).replace(" ", "-")
)
def test_every_point_of_a_small_domain(
    family: str, layers: str, ends: tuple[int, ...], tmp_path: Path
) -> None:
    """The relation is what trying every batch says, in both readings."""
    more = tmp_path / "small.yaml"
    least, *others = ends
    tokens = [*range(1, least + 1), *(n + d for n in others for d in range(-3, 4))]
    more.write_text(f"inputs: {{num_tokens: {{type: int, values: {tokens}}}}}\n")
    deployed = Deployed(family, tuple(layers.split()), more)
    decided = deployed.decide()
    inputs = decided.program.graph.inputs
    knobs = set(decided.residual.knobs)
    names = [n for n in inputs if n not in knobs]
    rows = [
        dict(zip(names, v, strict=True))
        for v in itertools.product(*(inputs[n].domain for n in names))
    ]
    seen: dict[str, set[Any]] = {p.name: set() for p in decided.residual.pins}
    plain = deployed.cpython(decided, {})
    for row in rows:
        result = run_program(decided.program, row)
        for site in seen.keys() & result.sites.keys():
            seen[site].add(result.sites[site])
        want = plain(row)
        assert (want is not None) == result.returned
    for pin in decided.residual.pins:
        if not pin.free:
            assert set(pin.candidates.values or ()) == seen[pin.name], pin.name
    bits = [p.name for p in decided.program.points if p.role == "bits"]
    legal = {tuple(row) for row in decided.legality.relation or ()}
    for values in itertools.product(*axes(decided)):
        setting = dict(zip(decided.residual.parameters, values, strict=True))
        pinned = deployed.cpython(decided, sites(decided, setting))
        first: dict[str, Any] | None = None
        holds = True
        adaptive: dict[Any, Any] = {}
        for row in rows:
            got = pinned(row)
            if got is None or not real(deployed, decided, adaptive, got, row):
                holds = False
                break
            mine = {k: got[k] for k in bits}
            first = first or mine
            assert mine == first, (setting, row)
        assert holds == (values in legal), setting


def real(
    deployed: Deployed,
    decided: Decided,
    made: dict[Any, Any],
    got: dict[str, Any],
    row: dict[str, Any],
) -> bool:
    """Reading (b): the source with what was chosen written over its own sites."""
    over = {s: got[p.name] for p in decided.program.points if p.role != "aux" for s in p.sites}
    key = tuple(over.items())
    if key not in made:
        made[key] = deployed.cpython(decided, over)
    return made[key](row) is not None
