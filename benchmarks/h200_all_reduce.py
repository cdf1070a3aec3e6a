#!/usr/bin/env python3
"""All-reduce on GPUs: right, equal in every bit whatever is around, and how fast beside NCCL.

    benchmarks/h200_all_reduce.py streams --out ar.jsonl     two ranks on two streams of one GPU
    benchmarks/h200_all_reduce.py ranks --out ar.jsonl       a process and a GPU for each rank

Both run launches of random algorithms, sizes, blocks and warps one behind the other, without a
wait between them, and compare every element of every result with the sum in the order of the ranks.
`ranks` then times graphs of several all-reduces for messages from 4 KiB to 64 MiB; data stay in the
L2 cache as far as they fit, as they do behind the product that made them.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from multiprocessing import get_context
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

SIZES = [4096 << i for i in range(15)]
BLOCKS = (8, 16, 32, 64, 128)
WARPS = (8, 16)
OURS = ("one_shot", "two_shot")
ELEMENTS = 1 << 23  # of the largest message that is compared
ROUNDS = 7
JOIN_SECONDS = 45


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mode", choices=["streams", "ranks"])
    parser.add_argument("--out", type=Path, default=Path("all_reduce.jsonl"))
    parser.add_argument("--ranks", type=int, default=0, help="default: as many as GPUs, at least 2")
    parser.add_argument("--launches", type=int, default=1500, help="that are compared")
    parser.add_argument("--budget", type=float, default=120.0, help="seconds for timing")
    parser.add_argument("--way", default="symmetric", choices=["symmetric", "ipc"])
    args = parser.parse_args()
    import torch

    began = time.monotonic()
    if args.mode == "streams":
        rows = streams(args)
    else:
        args.ranks = args.ranks or max(2, torch.cuda.device_count())
        rows = ranks(args)
        if args.way == "symmetric" and not any(row["kind"] == "joined" for row in rows):
            print("symmetric memory does not work here; sharing memory by handles of CUDA")
            args.way = "ipc"
            rows = ranks(args)
    with args.out.open("a") as out:
        out.writelines(json.dumps(row) + "\n" for row in rows)
    print(f"{time.monotonic() - began:.0f} s")
    if any(row.get("bad") for row in rows):
        sys.exit(1)


def data(ranks: int, device: str) -> tuple[list[list[Any]], list[Any]]:
    """Some sets of parts, and their sums in the order of the ranks."""
    import torch

    parts, sums = [], []
    for number in range(3):
        source = torch.Generator(device=device).manual_seed(number)
        made = []
        for _ in range(ranks):
            powers = torch.randint(-8, 9, (ELEMENTS,), generator=source, device=device)
            values = torch.randn(ELEMENTS, generator=source, device=device)
            made.append(torch.ldexp(values, powers).bfloat16())
        total = made[0].float()
        for each in made[1:]:
            total = total + each.float()
        parts.append(made)
        sums.append(total.bfloat16())
    return parts, sums


def launches(count: int, algorithms: tuple[str, ...]) -> Any:
    """Random launches: data, algorithm, elements, blocks, warps. The same for every rank."""
    source = random.Random(1)
    for _ in range(count):
        size = int(2 ** source.uniform(3, 23)) // 8 * 8
        yield (
            source.randrange(3),
            source.choice(algorithms),
            max(8, min(size, ELEMENTS)),
            source.choice(BLOCKS[:-1]),
            source.choice(WARPS),
        )


def streams(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Two ranks on one GPU: the meeting of blocks, both halves, replays of graphs."""
    import torch

    from selc.harness.kernels import all_reduce_triton
    from selc.harness.kernels.all_reduce_ranks import Rank, allocation

    all_reduce_triton.POLLS = 1 << 23
    rows = []
    for count in (1, 2, 3):
        parts, sums = data(count, "cuda")
        memory = [
            torch.zeros(allocation(count), dtype=torch.uint8, device="cuda") for _ in range(count)
        ]
        group = [Rank.over(r, memory) for r in range(count)]
        lanes = [torch.cuda.Stream() for _ in range(count)]
        outs = [torch.empty_like(sums[0]) for _ in range(count)]
        bad = torch.zeros(count, dtype=torch.int64, device="cuda")
        torch.cuda.synchronize()
        ran = 0
        for at, algorithm, size, blocks, warps in launches(args.launches, OURS):
            for me, lane, out in zip(group, lanes, outs, strict=True):
                with torch.cuda.stream(lane):
                    me.run(algorithm, blocks, warps, parts[at][me.rank][:size], out[:size])
            for me, lane, out in zip(group, lanes, outs, strict=True):
                with torch.cuda.stream(lane):
                    bad[me.rank] += (out[:size] != sums[at][:size]).sum()
                    out[:size].fill_(float("nan"))
            ran += 1
        torch.cuda.synchronize()
        replays = replayed(group, lanes, parts, sums)
        total = int(bad.sum())
        row = {"kind": "streams", "ranks": count, "launches": ran, "bad": total + replays}
        rows.append(row)
        print(f"{count} ranks on streams of one GPU: {ran} launches, {total} elements differ; "
              f"40 replays, {replays} differ", flush=True)  # fmt: skip
    return rows


def replayed(group: Any, lanes: Any, parts: Any, sums: Any) -> int:
    """Elements that differ after replays of one captured launch for each rank."""
    import torch

    size, graphs, outs = 1 << 18, [], []
    for me in group:
        out = torch.full((size,), float("nan"), dtype=torch.bfloat16, device="cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            me.run("two_shot", 16, 8, parts[0][me.rank][:size], out)
            me.run("one_shot", 32, 8, parts[1][me.rank][:size], out)
        graphs.append(graph)
        outs.append(out)
    bad = 0
    for _ in range(40):
        for graph, lane in zip(graphs, lanes, strict=True):
            with torch.cuda.stream(lane):
                graph.replay()
    torch.cuda.synchronize()
    for out in outs:
        bad += int((out != sums[1][:size]).sum())
    return bad


def ranks(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Start the ranks, and show what rank 0 says."""
    import torch.distributed as dist

    store = dist.TCPStore("127.0.0.1", 0, args.ranks, is_master=True, wait_for_workers=False)
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    children = [
        context.Process(target=serve, args=(theirs if r == 0 else None, r, store.port, args))
        for r in range(args.ranks)
    ]
    for child in children:
        child.start()
    theirs.close()
    rows: list[dict[str, Any]] = []
    ends = time.monotonic() + JOIN_SECONDS
    while not any(child.exitcode for child in children):
        if not ours.poll(1.0):
            if not rows and time.monotonic() > ends:
                break
            continue
        try:
            row = ours.recv()
        except EOFError:
            break
        rows.append(row)
        print(line(row), flush=True)
    for child in children:
        child.join(5 if rows else 1)
        if child.is_alive():
            child.kill()
    ended = [child.exitcode for child in children]
    if any(ended):
        rows.append({"kind": "ended", "status": ended, "bad": 1})
        print(f"ranks ended with status {ended}")
    return rows


def serve(pipe: Any, rank: int, port: int, args: argparse.Namespace) -> None:
    """One rank."""
    from selc.harness.kernels.all_reduce_ranks import Rank

    began = time.monotonic()
    me = Rank.join(rank, args.ranks, port, None, args.way)

    def tell(**row: Any) -> None:
        if pipe is not None:
            pipe.send(row)

    tell(kind="joined", ranks=args.ranks, way=args.way, seconds=time.monotonic() - began, **link())
    compare(me, args, tell)
    measure(me, args, tell)
    import torch.distributed as dist

    dist.barrier()
    dist.destroy_process_group()


def link() -> dict[str, Any]:
    import torch

    found = {"device": torch.cuda.get_device_name(0), "nccl": list(torch.cuda.nccl.version())}
    return {**found, "peer": torch.cuda.can_device_access_peer(0, 1)}


def compare(me: Any, args: argparse.Namespace, tell: Any) -> None:
    """Every element of many launches, on every rank."""
    import torch
    import torch.distributed as dist

    device = f"cuda:{me.rank}"
    parts, sums = data(me.ranks, device)
    out = torch.full_like(sums[0], float("nan"))
    for algorithms in ((*OURS,), ("nccl",), (*OURS, "nccl")):
        bad = torch.zeros(1, dtype=torch.int64, device=device)
        count = 200 if algorithms == ("nccl",) else args.launches
        for at, algorithm, size, blocks, warps in launches(count, algorithms):
            me.run(algorithm, blocks, warps, parts[at][me.rank][:size], out[:size])
            bad += (out[:size] != sums[at][:size]).sum()
            out[:size].fill_(float("nan"))
        dist.all_reduce(bad)
        ours = "nccl" not in algorithms
        tell(kind="compared", algorithms=algorithms, launches=count, differ=int(bad), **(
            {"bad": int(bad)} if ours else {}
        ))  # fmt: skip


def measure(me: Any, args: argparse.Namespace, tell: Any) -> None:
    """Times by size."""
    import torch
    import torch.distributed as dist

    began, device = time.monotonic(), f"cuda:{me.rank}"
    source = torch.randn(SIZES[-1] // 2, device=device).bfloat16()
    target = torch.empty_like(source)
    variants = [(a, b, w) for a in OURS for b in BLOCKS for w in WARPS] + [("nccl", 0, 8)]
    for size in SIZES:
        stop = torch.tensor([float(time.monotonic() - began > args.budget)], device=device)
        dist.all_reduce(stop)
        if stop.item():
            tell(kind="skipped", text=f"budget spent: not timed from {size} bytes up")
            return
        count = size // 2
        repeat = 32 if size <= 1 << 20 else 8
        graphs = {
            each: captured(me, each, source[:count], target[:count], repeat) for each in variants
        }
        times: dict[Any, list[float]] = {each: [] for each in variants}
        order = random.Random(size)
        for _ in range(ROUNDS):
            for each in order.sample(variants, len(variants)):
                times[each].append(timed(graphs[each], source, target) / repeat)
        us = {"/".join(map(str, e)): 1e6 * statistics.median(t) for e, t in times.items()}
        tell(kind="size", bytes=size, ranks=me.ranks, us=us)


def captured(me: Any, variant: Any, source: Any, target: Any, repeat: int) -> Any:
    """A graph of several all-reduces; NCCL's in place, without a copy."""
    import torch
    import torch.distributed as dist

    def run() -> None:
        if variant[0] == "nccl":
            dist.all_reduce(target)
        else:
            me.run(*variant, source, target)

    target.copy_(source)
    run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        for _ in range(repeat):
            run()
    return graph


def timed(graph: Any, source: Any, target: Any) -> float:
    """Seconds of a replay that all ranks begin together."""
    import torch
    import torch.distributed as dist

    target.copy_(source)
    dist.barrier()
    before = torch.cuda.Event(enable_timing=True)
    after = torch.cuda.Event(enable_timing=True)
    before.record()
    graph.replay()
    after.record()
    after.synchronize()
    return float(before.elapsed_time(after)) * 1e-3


def line(row: dict[str, Any]) -> str:
    """A line of the report."""
    if row["kind"] == "joined":
        return (
            f"{row['ranks']} ranks joined in {row['seconds']:.0f} s over {row['way']} memory; "
            f"{row['device']}, NCCL {row['nccl']}, peer access {row['peer']}"
        )
    if row["kind"] == "compared":
        return (
            f"{', '.join(row['algorithms'])}: {row['launches']} launches, "
            f"{row['differ']} elements differ from the sum in the order of the ranks"
        )
    if row["kind"] != "size":
        return str(row.get("text", row))
    us, size = row["us"], row["bytes"]
    best = {a: min((t, n) for n, t in us.items() if n.startswith(a)) for a in (*OURS, "nccl")}
    ours = min(best["one_shot"][0], best["two_shot"][0])
    moved = 2 * (row["ranks"] - 1) / row["ranks"] * size
    return f"{size >> 10:6} KiB  " + "  ".join(
        f"{a} {t:8.2f} us ({n[len(a) + 1 :]:>6})" for a, (t, n) in best.items()
    ) + f"  ours/nccl {ours / best['nccl'][0]:.2f}  bus {moved / ours / 1e3:.0f} GB/s"  # fmt: skip


if __name__ == "__main__":
    main()
