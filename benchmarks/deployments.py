#!/usr/bin/env python3
"""Every family of the examples at every deployment: what is found, and how long it takes.

    benchmarks/deployments.py                       the deployments of the list below
    benchmarks/deployments.py --all                 every combination of layers that makes sense
    benchmarks/deployments.py --family moe --json F

One line per selection: values of G0, G1 and R; protected points that the batch moves, and all
points that it moves; pins with their numbers of candidates; legal assignments; evidence;
milliseconds of a cold compilation without code generation.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
DEVICES = ("h100", "h200", "b200")
ENGINES = ("vllm", "sglang")
RANKS = ("tp1", "tp2", "tp4", "tp8")
DENSE = ("llama-3.1-70b", "llama-3.1-8b", "phi-3.5-mini", "gemma-7b-it")
EXPERTS = ("qwen3-30b-a3b",)
FAMILIES = {
    "attention_fa3": DENSE + EXPERTS,
    "all_reduce": DENSE + EXPERTS,
    "moe": EXPERTS,
    "gemm": DENSE + EXPERTS,
}
# Device, model, ranks; each in both engines.
MAIN = (
    ("h100", "llama-3.1-70b", "tp4"),
    ("h100", "qwen3-30b-a3b", "tp4"),
    ("h100", "llama-3.1-70b", "tp8"),
    ("h100", "llama-3.1-8b", "tp1"),
    ("h100", "llama-3.1-8b", "tp2"),
    ("h100", "phi-3.5-mini", "tp1"),
    ("h100", "gemma-7b-it", "tp1"),
    ("b200", "llama-3.1-8b", "tp1"),
)


class Deployment(NamedTuple):
    family: str
    layers: tuple[str, ...]  # device, model, engine, ranks


def deployments(everything: bool) -> Iterator[Deployment]:
    chosen = itertools.product(DEVICES, DENSE + EXPERTS, RANKS) if everything else iter(MAIN)
    for device, model, ranks in chosen:
        for engine, (family, models) in itertools.product(ENGINES, FAMILIES.items()):
            if model in models and (ROOT / "examples" / f"{family}.py").exists():
                yield Deployment(family, (device, model, engine, ranks))


def measure(deployment: Deployment, skip: frozenset[str] = frozenset()) -> dict[str, Any]:
    """What the compiler says of one deployment."""
    from selc.diag.diagnostic import Refused, Sink
    from selc.driver import describe
    from selc.driver.pipeline import Clock, Plan, decide
    from selc.passes.simplify import simplify

    files = tuple(ROOT / "examples/facts" / f"{name}.yaml" for name in deployment.layers)
    source = str(ROOT / "examples" / f"{deployment.family}.py")
    clock = Clock()
    begin = time.process_time()
    try:
        decided = decide(Plan(source, files, (), skip=skip), None, Sink(), clock)
    except Refused as refused:
        return {"error": [f"{d.code}: {d.message}" for d in refused.diagnostics]}
    spent = clock.milliseconds()
    busy = round((time.process_time() - begin) * 1000)
    answer = describe.answer(decided)
    program = decided.program
    roots = [p.node for p in program.points]
    g1, images = simplify(program.graph, roots, skip)
    pins = [p for p in decided.residual.pins if not p.free]
    return {
        "values": [
            len(program.graph.nodes),
            len(g1.cone([images[n] for n in roots])),
            answer["graph"]["values"],
        ],
        "points": len(roots),
        "moved_bits": answer["graph"]["batch_dependent_points"],
        "moved": sum(p["batch_dependent"] for p in answer["points"]),
        "pins": {p.name: len(p.candidates.values or ()) for p in pins},
        "free": sorted(p.name for p in decided.residual.pins if p.free),
        "legal": answer["legal"]["legal"],
        "assignments": answer["legal"]["assignments"],
        "evidence": answer["legal"]["evidence"],
        "ms": spent["total"],
        "cpu_ms": busy,
        "decided": all(p.get("decided", True) for p in answer["points"]),
    }


def line(deployment: Deployment, found: dict[str, Any]) -> str:
    head = f"{deployment.family:<13} {' '.join(deployment.layers):<34}"
    if "error" in found:
        return f"{head} {'; '.join(found['error'])}"
    values = "/".join(str(n) for n in found["values"])
    pins = ", ".join(f"{name} ({count})" for name, count in found["pins"].items()) or "none"
    free = f" + {len(found['free'])} free" if found["free"] else ""
    return (
        f"{head} {values:<16} {found['moved_bits']} of {found['moved']} moved  {pins}{free}  "
        f"{found['legal']} of {found['assignments']} {found['evidence']}  {found['ms']:.0f} ms"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--all", action="store_true", help="every combination of layers")
    parser.add_argument("--family", choices=FAMILIES, action="append", help="only this family")
    parser.add_argument("--json", metavar="FILE", help="also write everything that was found")
    options = parser.parse_args()
    everything = []
    failed = 0
    for deployment in deployments(options.all):
        if options.family and deployment.family not in options.family:
            continue
        found = measure(deployment)
        failed += "error" in found
        print(line(deployment, found), flush=True)
        everything.append({**deployment._asdict(), **found})
    if options.json:
        Path(options.json).write_text(json.dumps(everything, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
