#!/usr/bin/env python3
"""Compile times, cache hits, and what a call costs, on this machine.

    make bench                       all selections (the engines' need `make corpus`)
    benchmarks/run.py --quick        the example alone, fewer calls

Every compilation runs in a process of its own. Times are the best of a few runs: noise
only ever adds to them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / ".corpus"
CODE = "import sys; from selc.cli import main; sys.argv[0] = 'selc'; main()"
STAGES = ("frontend", "passes", "cut", "vra", "codegen", "total")
FUSED_MOE = "vllm.model_executor.layers.fused_moe.fused_moe"


class Selection(NamedTuple):
    name: str
    target: str
    facts: tuple[str, ...]
    corpus: bool


SELECTIONS = (
    Selection(
        "moe",
        "examples/moe.py",
        tuple(f"examples/facts/{n}.yaml" for n in ("h100", "qwen3-30b-a3b", "vllm", "tp4")),
        corpus=False,
    ),
    *(
        Selection(name, f"{FUSED_MOE}:{name}", (f"examples/engines/vllm_{name}.yaml",), corpus=True)
        for name in ("get_default_config", "try_get_optimal_moe_config")
    ),
)

CALLS = """
import sys, time
sys.path.insert(0, sys.argv[1])
import json, importlib
manifest = json.load(open(f"{sys.argv[1]}/{sys.argv[2]}/manifest.json"))
package = importlib.import_module(sys.argv[2])
call = {i["name"]: i["example"] for i in manifest["inputs"]}
(name, value), = call.items()
batches = [1 + (k * 7919) % 16384 for k in range(int(sys.argv[3]))]
best = {}
for what in ("select", "select_unpinned"):
    function = getattr(package, what)
    for _ in range(5):
        begin = time.perf_counter()
        for m in batches:
            function(m)
        took = (time.perf_counter() - begin) / len(batches)
        best[what] = min(best.get(what, 1e9), took)
print(json.dumps({"native": package.NATIVE, **best}))
"""

ORIGINAL = """
import json, sys, time
sys.path.insert(0, ".")
from examples import moe
tables = json.load(open("examples/tables/vllm-0.21.0-moe.json"))
fixed = (moe.Device("NVIDIA H100 80GB HBM3", "cuda", 90, 232448),
         moe.Model(128, 8, 2048, 768, 2, None, None), moe.Parallel(4, 1),
         moe.Engine("vllm", False, 16384))
best = 1e9
for _ in range(3):
    begin = time.perf_counter()
    for k in range(200):
        moe.moe(*fixed, moe.Batch(1 + (k * 7919) % 16384), tables)
    best = min(best, (time.perf_counter() - begin) / 200)
print(json.dumps(best))
"""


def python(code: str, *arguments: str, **environment: str) -> Any:
    """The JSON that some code prints."""
    command = [sys.executable, "-c", code, *arguments]
    settings = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, cwd=ROOT, env=settings
    )
    return json.loads(done.stdout)


def compile_once(selection: Selection, out: Path, cache: Path, *more: str) -> dict[str, Any]:
    facts = [part for path in selection.facts for part in ("--facts", path)]
    roots = ["--root", str(CORPUS)] if selection.corpus else []
    arguments = ["compile", selection.target, *facts, *roots, "-o", str(out), "--format", "json"]
    found: dict[str, Any] = python(CODE, *arguments, *more, SELC_CACHE_DIR=str(cache))
    return found


def measure(selection: Selection, runs: int, calls: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        out, cache = Path(name, "selector"), Path(name, "cache")
        cold = [compile_once(selection, out, cache, "--no-cache") for _ in range(runs)]
        best = min(cold, key=lambda answer: float(answer["timings_ms"]["total"]))
        compile_once(selection, out, cache)
        hits = [compile_once(selection, out, cache) for _ in range(runs)]
        assert all(hit["cache"] == "hit" for hit in hits)
        native = python(CALLS, name, "selector", str(calls))
        fallback = python(CALLS, name, "selector", str(calls), SELC_NO_NATIVE="1")
    return {
        "answer": best,
        "hit": min(hit["timings_ms"]["total"] for hit in hits),
        "native": native["select"] if native["native"] else None,
        "fallback": fallback["select"],
        "unpinned": fallback["select_unpinned"],
        "original": python(ORIGINAL) if selection.name == "moe" else None,
    }


def show(selection: Selection, found: dict[str, Any]) -> None:
    answer = found["answer"]
    pins = [p for p in answer["pins"] if not p["free"]]
    candidates = " x ".join(str(len(p["candidates"])) for p in pins) or "none"
    legal = answer["legal"]
    print(f"{selection.name}")
    print(
        f"  graph {answer['graph']['values']} values, {len(pins)} pins ({candidates} candidates), "
        f"{legal['legal']} of {legal['assignments']} legal, {legal['evidence']}"
    )
    times = answer["timings_ms"]
    print("  cold  " + ", ".join(f"{stage} {times[stage]:.0f}" for stage in STAGES) + " ms")
    print(f"  hit   {found['hit']:.0f} ms")
    for what in ("native", "fallback", "unpinned", "original"):
        if found[what] is not None:
            print(f"  call  {what:<9} {found[what] * 1e9:8.0f} ns  {1 / found[what]:12,.0f} /s")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="the example alone, fewer calls")
    parser.add_argument("--json", metavar="FILE", help="also write everything that was measured")
    options = parser.parse_args()
    everything = {}
    for selection in SELECTIONS:
        if selection.corpus and (options.quick or not CORPUS.is_dir()):
            print(f"{selection.name}: skipped" + ("" if options.quick else "; `make corpus` first"))
            continue
        found = measure(selection, 1 if options.quick else 3, 2_000 if options.quick else 20_000)
        show(selection, found)
        everything[selection.name] = found
    if options.json:
        Path(options.json).write_text(json.dumps(everything, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
