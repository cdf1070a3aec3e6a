"""The tuned table of Qwen3 on an H200: one class needs no pin, two made-up ones pin the class."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from examples import moe
from selc.driver.compile import run
from selc.driver.options import CompileOptions
from tests.adapters import load
from tests.examples.test_moe import H200, TABLES, choose
from tests.sel_case import flatten

ROOT = Path(__file__).resolve().parents[2]
LAYERS = ("h200", "qwen3-30b-a3b", "vllm", "tp1")
ROWS = TABLES["E=128,N=768,device_name=NVIDIA_H200"]
FIELDS = [
    *("BLOCK_SIZE_M", "BLOCK_SIZE_N", "BLOCK_SIZE_K", "GROUP_SIZE_M", "num_warps", "num_stages"),
]
GEMMS = ("gate_up", "down")
TOKENS = (1, 2, 3, 4, 5, 8, 17, 28, 29, 64, 200, 384, 385, 768, 1280, 1281, 4096, 16384)


def partition(classes: dict[str, list[list[int]]], fields: list[str]) -> dict[str, Any]:
    """As it was measured: every row at 19 token counts, one seed."""
    return {
        "format": 1,
        "fields": fields,
        "device": "NVIDIA H200",
        "dtype": "bfloat16",
        "kernel": "sha256:0",
        "versions": {"torch": "2.11.0", "triton": "3.6.0"},
        "given": {"SPLIT_K": 1} if fields == FIELDS else {},
        "classes": [
            {"name": n, "members": m, "evidence": "measured", "shapes": [[1, 8192]], "seeds": [0]}
            for n, m in classes.items()
        ],
    }


def rows() -> list[list[int]]:
    found = [[row[f] for f in FIELDS] for row in ROWS.values()]
    return [r for i, r in enumerate(found) if r not in found[:i]]


def compiled(
    folder: Path, classes: dict[str, list[list[int]]], together: bool
) -> tuple[dict[str, Any], Any]:
    """One class for each GEMM, or one for the pair of them."""
    both = [f"{gemm}.{f}" for gemm in GEMMS for f in FIELDS]
    if together:
        pairs = {n: [[*m, *m] for m in members] for n, members in classes.items()}
        (folder / "rows.json").write_text(json.dumps(partition(pairs, both)))
        entries: dict[str, Any] = {"pair": {"fields": both, "file": "rows.json"}}
    else:
        (folder / "rows.json").write_text(json.dumps(partition(classes, FIELDS)))
        entries = {
            gemm: {"fields": [f"{gemm}.{f}" for f in FIELDS], "file": "rows.json"} for gemm in GEMMS
        }
    (folder / "classes.yaml").write_text(json.dumps({"classes": entries}))
    facts = [ROOT / "examples/facts" / f"{name}.yaml" for name in LAYERS]
    outcome = run(
        CompileOptions(
            target=str(ROOT / "examples/moe.py"),
            facts=(*facts, folder / "classes.yaml"),
            out=folder / "moe_selector",
            emit=("python",),
            native=False,
            use_cache=False,
        )
    )
    assert outcome.exit_code == 0, outcome.diagnostics
    return outcome.json, load(folder / "moe_selector/__init__.py", f"moe_{folder.name}")


def plain(tokens: int) -> dict[str, Any]:
    found: dict[str, Any] = flatten(choose(tokens, device=H200, parallel=moe.Parallel(1, 1)))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("together", [False, True])
def test_one_class_needs_no_pin(tmp_path: Path, together: bool) -> None:
    answer, selector = compiled(tmp_path, {"chain": rows()}, together)
    assert len(ROWS) == 18
    assert answer["pins"] == []
    assert answer["graph"]["batch_dependent_points"] == 0
    said = [a for a in answer["assumptions"] if "give equal bits (measured, shapes" in a]
    assert len(said) == (1 if together else 2)
    for tokens in TOKENS:
        assert flatten(selector.select(num_tokens=tokens)) == plain(tokens)
    assert len({flatten(selector.select(num_tokens=t))["gate_up.BLOCK_SIZE_N"] for t in TOKENS}) > 1


PARTS = {"small": [r for r in rows() if r[0] == 16], "large": [r for r in rows() if r[0] > 16]}


@pytest.mark.slow
def test_two_classes_pin_the_class(tmp_path: Path) -> None:
    answer, selector = compiled(tmp_path, PARTS, together=True)
    assert [(p["name"], p["candidates"], p["free"]) for p in answer["pins"]] == [
        ("class.pair", ["large", "small"], False)
    ]
    for wanted, members in PARTS.items():
        selector.repin({"class.pair": wanted})
        taken = set()
        for tokens in TOKENS:
            got, own = flatten(selector.select(num_tokens=tokens)), plain(tokens)
            for gemm in GEMMS:
                row = [got[f"{gemm}.{f}"] for f in FIELDS]
                mine = [own[f"{gemm}.{f}"] for f in FIELDS]
                assert row == (mine if mine in members else members[0])
                taken.add(tuple(row))
        assert len(taken) > 1


@pytest.mark.slow
def test_two_gemms_of_one_row_need_one_pin(tmp_path: Path) -> None:
    """Fewest pins first: the row's place, which both classes follow, and not both classes."""
    answer, selector = compiled(tmp_path, PARTS, together=False)
    (pin,) = [p for p in answer["pins"] if not p["free"]]
    assert not pin["name"].startswith("class.")
    for value in pin["legal"]:
        selector.repin({pin["name"]: value})
        kept = set()
        for tokens in TOKENS:
            got = flatten(selector.select(num_tokens=tokens))
            kept.add(tuple(got[f"{g}.BLOCK_SIZE_M"] == 16 for g in GEMMS))
        assert len(kept) == 1
