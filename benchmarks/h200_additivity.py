#!/usr/bin/env python3
"""Whether times add up: the families' own times against one graph that runs them all.

    benchmarks/h200_additivity.py --selectors .h200 --out additivity.jsonl [--budget 90]

A decode step's layers (norm, QKV, attention, output, norm, then either two products or experts),
each launch under the choice of its unpinned selection. Every launch is timed alone, then a graph
of four layers on weights of their own. Then one family's choice is changed: what tuning counts on
is that the graph's time changes by what that family's time does.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import statistics
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

LLAMA = {"hidden": 4096, "heads": 32, "kv_heads": 8, "head_dim": 128, "intermediate": 14336}
QWEN = {"hidden": 2048, "heads": 32, "kv_heads": 4, "head_dim": 128, "experts": 128, "topk": 8}
QWEN |= {"moe_intermediate": 768}
TINY = {"hidden": 256, "heads": 4, "kv_heads": 2, "head_dim": 64, "intermediate": 512}
ATTENTION = ["rms_norm", "gemm qkv", "attention", "gemm o", "rms_norm"]
MODELS = {
    "llama-3.1-8b": (LLAMA, [*ATTENTION, "gemm gate_up", "gemm down"]),
    "qwen3-30b-a3b": (QWEN, [*ATTENTION, "moe"]),
    "tiny": (TINY, [*ATTENTION, "gemm gate_up", "gemm down"]),
}
# Stands in where there is no selector (`tiny`), and as the change of a family.
OTHER: dict[str, dict[str, Any]] = {
    "attention": {"split_stride": 0, "BLOCK_M": 16, "BLOCK_N": 64, "num_warps": 4, "num_stages": 3},
    "gemm": {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64, "GROUP_M": 8, "SPLIT_K": 1}
    | {"num_warps": 4, "num_stages": 3, "padding": 1},
    "rms_norm": {"BLOCK_SIZE": 1024, "num_warps": 4},
}
CELLS = ((1, 8192), (8, 8192), (32, 2048), (64, 2048), (8, 2048), (32, 8192))
LAYERS = 4
ROUNDS = 9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--selectors", type=Path, default=ROOT / ".h200")
    parser.add_argument("--out", type=Path, default=Path("additivity.jsonl"))
    parser.add_argument("--budget", type=float, default=90.0, help="seconds; later cells are left")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"], help="cpu: a dry run")
    args = parser.parse_args()
    began = time.monotonic()

    from selc.harness.device import Device
    from selc.harness.timing import Clock

    device = Device.open(args.device)
    clock = Clock(device)
    cells = [(m, *c) for c in CELLS for m in list(MODELS)[:2]]
    if args.device == "cpu":
        cells = [("tiny", 2, 64)]
    print("model          req    ctx | sum of parts   one graph  ratio | change of  parts    graph")
    with args.out.open("a") as out:
        out.write(json.dumps({"kind": "additivity", **device.describe()}) + "\n")
        for at, (model, batch, context) in enumerate(cells):
            if time.monotonic() - began > args.budget:
                print(f"budget spent: {len(cells) - at} of {len(cells)} cells not run")
                break
            row = cell(clock, args, model, batch, context)
            out.write(json.dumps(row) + "\n")
            out.flush()
            print(line(row), flush=True)
    print(f"{time.monotonic() - began:.0f} s")


def cell(
    clock: Any, args: argparse.Namespace, model: str, batch: int, context: int
) -> dict[str, Any]:
    """One batch of one model."""
    from selc.harness.call import Call, Request
    from selc.harness.protocol import load_kernels

    facts, steps = MODELS[model]
    requests = tuple(Request(i, 1, context) for i in range(batch))
    parts: dict[str, Part] = {}
    for step in dict.fromkeys(steps):
        family, _, linear = step.partition(" ")
        extra = {"page_size": 16, **({"linear": linear} if linear else {})}
        call = Call(family, {}, {"model": facts}, requests, extra)
        kernels = load_kernels(family)
        inputs = kernels.prepare(call, args.device)
        layers = [inputs, *(copy.deepcopy(inputs) for _ in range(LAYERS - 1))]
        parts[step] = Part(kernels, layers, chosen(args.selectors, model, step, requests))
    row: dict[str, Any] = {"kind": "cell", "model": model, "batch": batch, "context": context}
    row["choices"] = {name: part.choice for name, part in parts.items()}
    changed = {k: Part(p.kernels, p.layers, p.choice) for k, p in parts.items()}
    changed["attention"].choice = {**parts["attention"].choice, "split_stride": 0}
    timers = {name: clock.timer(part.launches, True) for name, part in parts.items()}
    timers["changed"] = clock.timer(changed["attention"].launches, True)
    timers["graph"] = clock.timer(lambda _: [lambda: whole(parts, steps)], True)
    timers["changed graph"] = clock.timer(lambda _: [lambda: whole(changed, steps)], True)
    times: dict[str, list[float]] = {name: [] for name in timers}
    source = random.Random(0)
    for _ in range(ROUNDS):
        for name in source.sample(sorted(timers), len(timers)):
            times[name].append(timers[name].run() * 1e6)
    us = {name: statistics.median(found) for name, found in times.items()}
    row["parts_us"] = {name: us[name] for name in parts}
    row["sum_us"] = sum(us[step] for step in steps)
    row["graph_us"] = us["graph"] / LAYERS
    row["change_parts_us"] = us["changed"] - us["attention"]
    row["change_graph_us"] = (us["changed graph"] - us["graph"]) / LAYERS
    row["how"] = {name: timer.how for name, timer in timers.items()}
    return row


class Part:
    """A launch of a layer, on tensors of each layer."""

    def __init__(self, kernels: Any, layers: list[Any], choice: dict[str, Any]) -> None:
        self.kernels, self.layers, self.choice = kernels, layers, choice

    def launch(self, layer: int) -> Any:
        return self.kernels.launch(self.choice, self.layers[layer])

    def launches(self, count: int) -> list[Any]:
        return [lambda i=i: self.launch(i) for i in range(min(count, LAYERS))]


def whole(parts: dict[str, Part], steps: list[str]) -> None:
    """All layers, one launch behind the other."""
    for layer in range(LAYERS):
        for step in steps:
            parts[step].launch(layer)


def chosen(folder: Path, model: str, step: str, requests: Any) -> dict[str, Any]:
    """What the unpinned selection takes; what is usual where no selector was prepared."""
    from selc.harness.call import inputs_of
    from selc.harness.selector import Selector

    family, _, linear = step.partition(" ")
    directory = folder / (f"{family}_{linear}" if linear else family)
    if model == "tiny" or not directory.is_dir():
        return OTHER[family]
    selector = Selector.load(directory)
    return selector.stock(inputs_of(requests, selector.examples))


def line(row: dict[str, Any]) -> str:
    """A row of the table."""
    return (
        f"{row['model']:13} {row['batch']:4} {row['context']:6} | {row['sum_us']:12.1f} "
        f"{row['graph_us']:11.1f} {row['graph_us'] / row['sum_us']:6.3f} | attention "
        f"{row['change_parts_us']:7.1f} {row['change_graph_us']:8.1f}   "
        + " ".join(f"{n} {t:.1f}" for n, t in row["parts_us"].items())
    )


if __name__ == "__main__":
    main()
