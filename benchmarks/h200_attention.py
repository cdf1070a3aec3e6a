#!/usr/bin/env python3
"""The attention kernels on a GPU: right, the same bits whatever the batch, and how fast.

    python benchmarks/h200_attention.py --out DIR [--quick] [--only right,bits,decode,prefill]

1. Against float64: head dimensions, types, page sizes, both tiles, chunks with decode.
2. Bits of one request: decode against a whole prefill, companions, chunks, page layouts, a fold in
   one program against many; and two controls that must differ.
3. Decode at 1 to 64 requests and 1k to 32k keys, Llama-3.1-8B's heads: every stride with one
   configuration, then other configurations with the best two strides; beside it no split at all,
   torch's own attention, and the copy bandwidth measured in the same run.
4. Prefill.

Kernels are compiled first, in as many processes as there are cores. Everything that is measured is
a line of DIR/attention.jsonl.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from selc.harness.call import Call, Request
from selc.harness.kernels import paging
from selc.harness.kernels.splits import Config, config_of
from selc.harness.protocol import Unsupported

LLAMA = {"heads": 32, "kv_heads": 8, "head_dim": 128, "dtype": "bfloat16"}
STRIDES = (0, 256, 512, 1024, 2048, 4096, 8192)
BATCHES, CONTEXTS = (1, 2, 4, 8, 16, 32, 64), (1024, 2048, 4096, 8192, 16384, 32768)
QUICK = tuple(itertools.product((1, 8, 32), (2048, 8192, 32768)))
DEFAULT = (16, 64, 4, 3)  # BLOCK_M, BLOCK_N, num_warps, num_stages
DECODE = (
    *((16, 32, w, s) for w in (1, 2, 4) for s in (3, 4)),
    *((16, 64, w, s) for w in (2, 4, 8) for s in (2, 3, 4)),
    *((16, 128, w, s) for w in (4, 8) for s in (2, 3)),
)
PREFILL = (
    *((64, 64, 4, s) for s in (2, 3)),
    (64, 128, 4, 2),
    *((128, 64, 8, s) for s in (2, 3)),
    (128, 128, 8, 2),
)
SHAPES = [(d, t) for d in (64, 96, 128, 256) for t in ("bfloat16", "float16")]
EARLY = ((1, 2048), (1, 8192), (8, 8192))
ROUNDS = 5


@dataclasses.dataclass
class Log:
    """What was measured, as lines of JSON."""

    stream: Any
    failures: list[str] = dataclasses.field(default_factory=list)
    copy: float = 0.0

    def line(self, **record: Any) -> None:
        self.stream.write(json.dumps(record) + "\n")
        self.stream.flush()

    def check(self, good: bool, what: str) -> None:
        if not good:
            self.failures.append(what)
            print("  WRONG:", what, flush=True)


def config(stride: int, tile: Sequence[int], count: int = 1) -> Config:
    names = ("BLOCK_M", "BLOCK_N", "num_warps", "num_stages")
    return config_of(
        {"split_stride": stride, "num_splits": count, **dict(zip(names, tile, strict=True))}
    )


def prepared(requests: Sequence[Request], model: Any = LLAMA, **extra: Any) -> paging.Inputs:
    call = Call("attention", {}, {"model": model}, tuple(requests), extra)
    return paging.place(call, "cuda")


def launch(cfg: Config, inputs: paging.Inputs) -> Any:
    from selc.harness.kernels import attention_triton

    return attention_triton.launch(cfg, inputs)


# Compiling


Variant = tuple[dict[str, Any], int, str, Config, bool]
"""Model, page size, layout of a page, configuration, whether the second kernel starts early."""


def variants() -> list[Variant]:
    """Everything that is compiled."""
    out = []
    for (d, dtype), page, tile in itertools.product(SHAPES, (16, 64, 128), RIGHT_TILES):
        out.append(({**LLAMA, "head_dim": d, "dtype": dtype}, page, "NHD", config(256, tile)))
    for tile in BITS_TILES:
        out += [(LLAMA, page, "NHD", config(256, tile)) for page in (16, 64, 128)]
        out.append((LLAMA, 16, "HND", config(256, tile)))
    for tile in (*DECODE, *PREFILL):
        out += [(LLAMA, page, "NHD", config(256, tile)) for page in (16, 128)]
    out.append((LLAMA, 16, "HND", config(256, DEFAULT)))
    every: list[Variant] = [(*v, False) for v in out]
    every.append((LLAMA, 16, "NHD", config(256, DEFAULT), True))
    return list({repr(v): v for v in every}.values())


RIGHT_TILES = (DEFAULT, (64, 32, 8, 2))
BITS_TILES = (DEFAULT, (16, 128, 8, 2), (64, 64, 4, 2), (128, 64, 8, 2))


def compile_one(variant: Variant) -> str:
    """Compile one variant into Triton's cache; a message if it cannot be."""
    from selc.harness.kernels import attention_triton

    model, page, layout, cfg, attention_triton.PDL = variant
    call = Call("attention", {}, {"model": model}, (Request(0, 1, 1),), {"page_size": page})
    shape = dataclasses.replace(paging.shape_of(call), layout=layout)
    try:
        attention_triton.precompile(cfg, shape)
    except Exception as error:  # noqa: BLE001  told, and the others go on
        return f"{dataclasses.astuple(cfg)} page {page}: {type(error).__name__}: {error}"[:300]
    return ""


def compile_all(log: Log) -> None:
    began = time.monotonic()
    work = variants()
    count = max(1, min(len(work), (os.cpu_count() or 2) - 2))
    with multiprocessing.get_context("spawn").Pool(count) as pool:
        messages = [m for m in pool.imap_unordered(compile_one, work) if m]
    for message in messages:
        log.check(False, "compile: " + message)
    print(f"compiled {len(work)} variants in {time.monotonic() - began:.0f} s", flush=True)


# 1. Right


def right(log: Log) -> None:
    requests = (Request(1, 1, 700), Request(2, 130, 130), Request(3, 33, 517), Request(4, 1, 1))
    worst: dict[str, float] = {}
    for (d, dtype), page in itertools.product(SHAPES, (16, 64, 128)):
        model = {**LLAMA, "head_dim": d, "dtype": dtype}
        inputs = prepared(requests, model, page_size=page)
        reference = paging.reference(inputs)
        for tile, (stride, count) in itertools.product(
            RIGHT_TILES, ((256, 1), (0, 1), (96, 1), (0, 3))
        ):
            name = f"{dtype} d={d} page={page} tile={tile} stride={stride} count={count}"
            try:
                out = launch(config(stride, tile, count), inputs).double()
            except Unsupported as error:
                print("  unsupported:", name, error)
                continue
            error = float((out - reference).norm() / reference.norm())
            largest = float((out - reference).abs().max() / reference.abs().max())
            log.line(kind="right", name=name, error=error, largest=largest)
            log.check(error < (5e-3 if dtype == "bfloat16" else 1e-3), f"{name}: error {error:.2e}")
            worst[dtype] = max(worst.get(dtype, 0.0), error)
    print("1. worst relative error", {k: f"{v:.1e}" for k, v in worst.items()}, flush=True)


# 2. Bits


def bits(log: Log) -> None:
    import torch

    from selc.harness.kernels import attention_triton

    mine, length = 9, 1500
    others = (Request(1, 1, 700), Request(2, 130, 130), Request(3, 1, 4000), Request(4, 1, 1))
    cells = bad = 0
    kept: dict[str, paging.Inputs] = {}
    for magnitude, tile, stride in itertools.product(
        ("normal", "extreme"), BITS_TILES, (256, 0, 1024)
    ):
        cfg = config(stride, tile)
        extra = {"page_size": 16, "magnitude": magnitude}

        def run(
            requests: Sequence[Request], cfg: Config = cfg, base: Any = extra, **more: Any
        ) -> Any:
            extra = {**base, **more}
            key = repr((requests, extra))
            if key not in kept:
                kept[key] = prepared(requests, **extra)
            return launch(cfg, kept[key])

        whole = run([Request(mine, length, length)])
        found: dict[str, bool] = {}
        found["again"] = torch.equal(run([Request(mine, length, length)]), whole)
        for at in (1, 63, 64, 65, 255, 256, 257, 1024, 1025, 1499, 1500):
            out = run([Request(mine, 1, at), *others])
            found[f"decode at {at}"] = torch.equal(out[0], whole[at - 1])
        for rows, end in ((17, 300), (500, 1100), (128, 1500), (5, 260)):
            out = run([*others, Request(mine, rows, end)])
            found[f"chunk of {rows} to {end}"] = torch.equal(out[-rows:], whole[end - rows : end])
        one = Request(mine, 3, 1400)
        for name, more in {
            "layout": {"layout": 7},
            "in order": {"layout": 0},
            "pages of 64": {"page_size": 64},
            "pages of 128": {"page_size": 128},
            "heads first": {"kv_layout": "HND"},
        }.items():
            found[name] = torch.equal(run([one, *others], **more)[:3], whole[1397:1400])
        cached = Request(mine, 3, 1400, 1280)
        found["cached"] = torch.equal(run([others[0], cached])[1:4], whole[1397:1400])
        crowd = [Request(100 + i, 1, 40 * i + 1) for i in range(63)]
        found["63 others"] = torch.equal(run([*crowd, one])[-3:], whole[1397:1400])
        real = attention_triton._processors
        for name, count in (("one program folds", 0), ("many programs", 1 << 20)):
            attention_triton._processors = lambda _, count=count: count
            fresh = prepared([Request(mine, length, length)], **extra)
            found[name] = torch.equal(launch(cfg, fresh), whole)
        attention_triton._processors = real
        log.line(kind="bits", tile=tile, stride=stride, magnitude=magnitude, found=found)
        cells += len(found)
        for name, same in found.items():
            bad += not same
            log.check(same, f"bits: {tile} stride {stride} {magnitude}: {name}")
    short, long = ([Request(mine, n, n)] for n in (900, length))
    moved = [launch(config(0, DEFAULT, 3), prepared(r, page_size=16))[:900] for r in (short, long)]
    log.check(not torch.equal(*moved), "control: a fixed count gives equal bits at other lengths")
    one = prepared([Request(mine, 1, length)], page_size=16)
    strides = [launch(config(s, DEFAULT), one) for s in (0, 256)]
    log.check(not torch.equal(*strides), "control: two strides give equal bits")
    widths = [launch(config(0, t), one) for t in (DEFAULT, (16, 128, 4, 3), (16, 64, 8, 3))]
    print(
        f"2. {cells - bad} of {cells} cells bit-equal; controls differ; bits of other widths / "
        f"warps equal: {torch.equal(*widths[:2])} / {torch.equal(widths[0], widths[2])}",
        flush=True,
    )


# Timing


class Clock:
    """Times launches: a graph of several on tensors of their own, the cache flushed before."""

    def __init__(self) -> None:
        import torch

        self.flush = torch.empty(128 << 20, dtype=torch.uint8, device="cuda")
        self.pool = torch.cuda.graph_pool_handle()

    def time(self, launches: Sequence[Callable[[], Any]], rounds: int = ROUNDS) -> float:
        """Microseconds of one launch."""
        import torch

        launches[0]()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool):
            for each in launches:
                each()
        times = []
        for _ in range(rounds + 1):
            before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            self.flush.zero_()
            before.record()
            graph.replay()
            after.record()
            after.synchronize()
            times.append(before.elapsed_time(after) * 1e3 / len(launches))
        return sorted(times[1:])[rounds // 2]


def copies(inputs: paging.Inputs) -> list[paging.Inputs]:
    """The same launch on tensors of its own, as many as defeat the cache; one plan for all."""
    size = 2 * inputs.keys.numel() * inputs.keys.element_size()
    count = max(1, min(16, (256 << 20) // size))
    out = [inputs]
    while len(out) < count:
        fresh = {n: getattr(inputs, n).clone() for n in ("q", "keys", "values")}
        out.append(dataclasses.replace(inputs, **fresh))
    return out


def sdpa(clock: Clock, batch: int, context: int) -> float | None:
    """The attention that torch has, on keys that are not paged."""
    import torch

    size = batch * 8 * context * 128 * 4
    if size > 20 << 30:
        return None
    sets = []
    for _ in range(max(1, min(8, (256 << 20) // size))):
        q = torch.randn(batch, 32, 1, 128, dtype=torch.bfloat16, device="cuda")
        k, v = (
            torch.randn(batch, 8, context, 128, dtype=torch.bfloat16, device="cuda")
            for _ in range(2)
        )
        sets.append((q, k, v))
    function = torch.nn.functional.scaled_dot_product_attention
    return clock.time([lambda s=s: function(*s, enable_gqa=True) for s in sets])


def timed(clock: Clock, cfg: Config, sets: Sequence[paging.Inputs]) -> float | None:
    try:
        return clock.time([lambda s=s: launch(cfg, s) for s in sets])
    except Unsupported:
        return None


# 3. Decode


def decode(log: Log, clock: Clock, cells: Sequence[tuple[int, int]], deadline: float) -> None:
    print("3. decode, bfloat16, 32/8 heads of 128, pages of 16; us, and GB/s of the best")
    head = f"  {'n':>2} {'context':>8} {'unsplit':>9} {'best':>9} {'stride':>7}  {'tile':16} "
    print(head + "  GB/s  of copy  x unsplit    sdpa page128     HND")
    for batch, context in cells:
        if time.monotonic() > deadline:
            print("   out of time; the other cells were not measured")
            return
        requests = [Request(i, 1, context) for i in range(batch)]
        call = Call("attention", {}, {"model": LLAMA}, tuple(requests))
        moved = paging.bytes_and_flops(call)[0]
        sets = copies(prepared(requests, page_size=16))
        found: dict[Config, float] = {}
        for stride in (s for s in STRIDES if s < context):
            us = timed(clock, config(stride, DEFAULT), sets)
            if us is not None:
                found[config(stride, DEFAULT)] = us
        unsplit = found[config(0, DEFAULT)]
        ranked = sorted({c.split_stride: us for c, us in found.items()}.items(), key=lambda p: p[1])
        for tile, (stride, _) in itertools.product(DECODE, ranked[:2]):
            us = timed(clock, config(stride, tile), sets)
            if us is not None:
                found[config(stride, tile)] = us
        best = min(found, key=lambda c: found[c])
        rate = moved / found[best] * 1e6
        beside: dict[str, float | None] = {"sdpa": sdpa(clock, batch, context)}
        del sets
        for name, extra in (("page128", {"page_size": 128}), ("HND", {"kv_layout": "HND"})):
            cfg = best if name == "page128" else config(best.split_stride, DEFAULT)
            sets = copies(prepared(requests, **extra))
            beside[name] = timed(clock, cfg, sets)
            del sets
        log.line(
            kind="decode",
            batch=batch,
            context=context,
            bytes=moved,
            copy=log.copy,
            **beside,
            times=[[*dataclasses.astuple(c), us] for c, us in found.items()],
        )
        tile = (best.block_m, best.block_n, best.num_warps, best.num_stages)
        print(
            f"  {batch:2d} {context:8d} {unsplit:9.1f} {found[best]:9.1f} {best.split_stride:7d}  "
            f"{tile!s:16} {rate / 1e9:6.0f} {rate / log.copy:8.1%} {unsplit / found[best]:10.1f} "
            + " ".join("      -" if v is None else f"{v:7.1f}" for v in beside.values()),
            flush=True,
        )


# 4. Prefill


def prefill(log: Log, clock: Clock) -> None:
    print("4. prefill: us and TFLOP/s of every tile (BLOCK_M, BLOCK_N, warps, stages)")
    for rows, context, batch in ((2048, 2048, 1), (8192, 8192, 1), (512, 8192, 1), (256, 4096, 8)):
        requests = [Request(i, rows, context) for i in range(batch)]
        inputs = prepared(requests, page_size=16)
        flops = paging.bytes_and_flops(Call("attention", {}, {"model": LLAMA}, tuple(requests)))[1]
        for stride in (0, 1024):
            found = {t: timed(clock, config(stride, t), [inputs]) for t in PREFILL}
            log.line(
                kind="prefill",
                rows=rows,
                context=context,
                batch=batch,
                stride=stride,
                times=[[*t, us] for t, us in found.items()],
            )
            text = "  ".join(
                f"{t}: {us:.0f} {flops / us / 1e6:.0f}" for t, us in found.items() if us
            )
            print(f"  {batch} x {rows} of {context}, stride {stride}: {text}", flush=True)


# 5. The second kernel started while the first one ends


def early(log: Log, clock: Clock) -> None:
    import torch

    from selc.harness.kernels import attention_triton

    for (batch, context), stride in zip(EARLY, (256, 256, 512), strict=True):
        sets = copies(prepared([Request(i, 1, context) for i in range(batch)], page_size=16))
        cfg = config(stride, DEFAULT)
        plain, out = timed(clock, cfg, sets), launch(cfg, sets[0])
        attention_triton.PDL = True
        us = timed(clock, cfg, sets)
        same = torch.equal(launch(cfg, sets[0]), out)
        attention_triton.PDL = False
        log.check(same, f"started early: {batch} x {context}")
        log.line(kind="early", batch=batch, context=context, stride=stride, plain=plain, early=us)
        print(f"5. {batch} x {context}, stride {stride}: {plain:.1f} us, started early {us:.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="a folder for attention.jsonl")
    parser.add_argument("--quick", action="store_true", help="nine cells of decode")
    parser.add_argument("--only", default="right,bits,decode,prefill")
    parser.add_argument("--budget", type=float, default=150.0, help="seconds; later cells are left")
    args = parser.parse_args()
    began = time.monotonic()
    args.out.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("TRITON_CACHE_DIR", str(Path("/tmp/selc-triton")))
    parts = set(args.only.split(","))
    rest = [] if args.quick else itertools.product(BATCHES, CONTEXTS)
    cells = list(dict.fromkeys((*QUICK, *rest)))
    with (args.out / "attention.jsonl").open("w") as stream:
        log = Log(stream)
        for name, part in stages(log, parts, cells, began + args.budget):
            start = time.monotonic()
            part()
            print(f"   ({name}: {time.monotonic() - start:.0f} s)", flush=True)
    print(f"{time.monotonic() - began:.0f} s; {len(log.failures)} failures")
    sys.exit(1 if log.failures else 0)


def stages(
    log: Log, parts: set[str], cells: Sequence[tuple[int, int]], deadline: float
) -> Iterator[tuple[str, Callable[[], None]]]:
    yield "compile", lambda: compile_all(log)
    import torch
    import triton

    from selc.harness.device import Device
    from selc.harness.timing import ceilings

    name = torch.cuda.get_device_name()
    log.line(kind="device", name=name, torch=torch.__version__, triton=triton.__version__)
    if "right" in parts:
        yield "right", lambda: right(log)
    if "bits" in parts:
        yield "bits", lambda: bits(log)
    if parts & {"decode", "prefill"}:
        clock = Clock()
        log.copy = ceilings(Device.open("cuda"))["copy"]
        print(f"{name}: copy {log.copy / 1e9:.0f} GB/s")
        if "decode" in parts:
            yield "decode", lambda: decode(log, clock, cells, deadline - 15)
        if "prefill" in parts and time.monotonic() < deadline - 10:
            yield "prefill", lambda: prefill(log, clock)
        if "decode" in parts and time.monotonic() < deadline - 5:
            yield "early", lambda: early(log, clock)  # last: what is captured may not be supported


if __name__ == "__main__":
    main()
