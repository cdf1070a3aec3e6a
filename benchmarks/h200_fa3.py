#!/usr/bin/env python3
"""Decode attention beside FlashAttention-3: the same inputs, timed in turn in one process.

    benchmarks/h200_fa3.py --out fa3.jsonl [--quick] [--budget 120]

Llama-3.1-8B's heads, pages of 16. For each number of requests and context: FA3 with the splits that
its schedule takes and with each fixed count, our kernels unsplit and with each stride, all against
the copy bandwidth of the same run. Every output is compared: FA3's with ours, ours with float64.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
import statistics
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

FACTS = {"model": {"heads": 32, "kv_heads": 8, "head_dim": 128}, "parallel": {"tensor": 1}}
BATCHES = (1, 8, 32, 64, 4, 16, 2)
CONTEXTS = (8192, 32768, 1024, 2048, 4096, 16384)
QUICK = ((8, 8192), (1, 32768), (1, 8192), (32, 8192), (64, 2048), (8, 32768))
SPLITS = (0, 1, 2, 4, 8, 16, 32)
STRIDES = (0, 256, 512, 1024, 2048, 4096, 8192)
OURS = {"BLOCK_M": 16, "BLOCK_N": 64, "num_warps": 4, "num_stages": 3}
ROUNDS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("fa3.jsonl"))
    parser.add_argument("--quick", action="store_true", help="six cells")
    parser.add_argument("--budget", type=float, default=120.0, help="seconds; later cells are left")
    parser.add_argument("--ours", type=json.loads, default=OURS, help="the choice beside strides")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"], help="cpu: a dry run")
    args = parser.parse_args()
    began = time.monotonic()

    from selc.harness.device import Device
    from selc.harness.timing import Clock, ceilings

    device = Device.open(args.device)
    clock, ceiling = Clock(device), ceilings(device)
    cells = list(QUICK) if args.quick else [(b, c) for c in CONTEXTS for b in BATCHES]
    cells.sort(key=lambda cell: (cell not in QUICK, cell))
    if args.device == "cpu":
        cells = [(1, 256), (2, 128)]
    print(f"{device.name}; copy {ceiling['copy'] / 1e9:.0f} GB/s")
    print(HEADER)
    with args.out.open("a") as out:
        out.write(json.dumps({"kind": "fa3", **device.describe(), **ceiling}) + "\n")
        for at, (batch, context) in enumerate(cells):
            if time.monotonic() - began > args.budget:
                print(f"budget spent: {len(cells) - at} of {len(cells)} cells not run")
                break
            row = cell(clock, batch, context, args)
            out.write(json.dumps(row) + "\n")
            out.flush()
            print(line(row, ceiling["copy"]), flush=True)
    print(f"{time.monotonic() - began:.0f} s")


def cell(clock: Any, batch: int, context: int, args: argparse.Namespace) -> dict[str, Any]:
    """All variants of one cell."""
    import torch

    from selc.harness.call import Call, Request
    from selc.harness.kernels.attention import KERNELS

    requests = tuple(Request(i, 1, context) for i in range(batch))
    call = Call("attention", {}, FACTS, requests, {"page_size": 16})
    inputs = KERNELS.prepare(call, args.device)
    variants: dict[str, tuple[Any, dict[str, Any]]] = {
        f"stride {s}": (KERNELS, {**args.ours, "split_stride": s}) for s in STRIDES if s < context
    }
    if args.device == "cuda":
        import fa3

        variants |= {f"fa3 {s}": (fa3.KERNELS, {"splits": s}) for s in SPLITS}
    row: dict[str, Any] = {"kind": "cell", "batch": batch, "context": context}
    row["bytes"] = KERNELS.bytes_and_flops(call)[0]
    row["failures"], row["errors"], sets, timers = {}, {}, [inputs], {}
    right = KERNELS.launch({**args.ours, "split_stride": 0}, inputs).double()
    if batch * context <= 1 << 17:
        reference = KERNELS.reference(inputs)
        row["errors"]["float64"] = float((right - reference).norm() / reference.norm())

    def launches(kernels: Any, choice: Any, count: int) -> Any:
        most = 1 if row["bytes"] > 1 << 28 else count
        while len(sets) < most:
            tensors = {n: getattr(inputs, n).clone() for n in ("q", "keys", "values", "table")}
            sets.append(dataclasses.replace(inputs, **tensors, plans={}))
        return [lambda s=s: kernels.launch(choice, s) for s in sets[:most]]

    for name, (kernels, choice) in variants.items():
        try:
            got = kernels.launch(choice, inputs).double()
            error = row["errors"][name] = float((got - right).norm() / right.norm())
            if not error <= 0.02:
                row["failures"][name] = f"wrong result: relative error {error:.3g}"
                continue
            bound = (lambda k, c: lambda n: launches(k, c, n))(kernels, choice)
            timers[name] = clock.timer(bound, True)
        except Exception as problem:
            row["failures"][name] = f"{type(problem).__name__}: {str(problem)[:200]}"
            if "CUDA error" in str(problem):
                raise
    times: dict[str, list[float]] = {name: [] for name in timers}
    source = random.Random(0)
    for _ in range(ROUNDS):
        for name in source.sample(sorted(timers), len(timers)):
            times[name].append(timers[name].run())
    row["us"] = {n: round(1e6 * statistics.median(t), 2) for n, t in times.items()}
    row["spread"] = {n: round((max(t) - min(t)) / min(t), 3) for n, t in times.items()}
    row["how"] = {n: timers[n].how for n in timers}
    plan = inputs.plans.get(("fa3", 0))
    row["splits"] = sorted(set(plan.splits())) if plan else []
    if args.device == "cuda":
        torch.cuda.empty_cache()
    return row


HEADER = (
    "req   ctx |   FA3 (splits)  best fixed |  unsplit    best stride   %copy |"
    " ours/FA3  unsplit/best  worst error"
)


def line(row: dict[str, Any], copy_rate: float) -> str:
    """A row of the table."""
    us = row["us"]
    natural = us.get("fa3 0", float("nan"))
    fixed = min((u, n) for n, u in [("fa3 -", float("inf")), *us.items()] if n[:3] == "fa3")
    ours = min((u, n) for n, u in us.items() if n.startswith("stride"))
    percent = 100 * row["bytes"] / (ours[0] * 1e-6) / copy_rate
    worst = max(row["errors"].values())
    splits = ",".join(map(str, row["splits"]))[:5]
    return (
        f"{row['batch']:3} {row['context']:6} | {natural:8.1f} ({splits:>5}) {fixed[0]:7.1f} "
        f"{fixed[1][4:]:>3} | {us['stride 0']:8.1f} {ours[0]:8.1f} {ours[1][7:]:>5} {percent:6.0f} "
        f"| {ours[0] / min(natural, fixed[0]):8.2f} {us['stride 0'] / ours[0]:9.2f} {worst:13.1e}"
        + "".join(f"\n    {n}: {w}" for n, w in row["failures"].items())
    )


if __name__ == "__main__":
    main()
