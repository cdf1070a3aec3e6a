"""The products, experts and RMS norms that come with selc, on one CUDA device.

    python benchmarks/h200_gemm_moe.py --out DIR [--quick] [--part gemm|moe|rms_norm]

Each part runs in a process of its own: results against float64, bits of a request in other company
and other places and under other tiles, then times: a product's best tile against `torch.matmul`,
every row of the tuned table of experts against the nearest row, norms against torch's. Launches are
replayed from a CUDA graph, on tensors that together exceed the L2 cache. Needs torch and triton
alone; DIR gets a table as text and every measurement as JSON lines.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import math
import multiprocessing
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from h200_tiles import (  # noqa: E402
    SHARED,
    Choice,
    gemm_candidates,
    moe_candidates,
    moe_choice,
    short,
    stock,
    table,
    tile,
)

PARTS = ("gemm", "moe", "rms_norm")
LINEARS = {
    "qkv": (6144, 4096),
    "o": (4096, 4096),
    "gate_up": (28672, 4096),
    "down": (4096, 14336),
}
PROBE = (4096, 4096)
SMALL = (1, 16, 32, 64)
LARGE = (128, 256, 512, 1024, 2048, 4096, 8192)
L2 = 60 << 20
DEVICE = "cuda"
DTYPE: dict[str, str] = {}
MODEL = {"experts": 128, "topk": 8, "hidden": 2048, "moe_intermediate": 768}
HIDDEN = 4096


class Out:
    """Where lines and records go."""

    def __init__(self, folder: Path, part: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.lines = (folder / f"{part}.txt").open("w")
        self.records = (folder / f"{part}.jsonl").open("w")
        self.start = time.perf_counter()

    def say(self, text: str) -> None:
        stamped = f"[{time.perf_counter() - self.start:5.1f}] {text}"
        print(stamped, flush=True)
        self.lines.write(stamped + "\n")
        self.lines.flush()

    def put(self, kind: str, **fields: Any) -> None:
        self.records.write(json.dumps({"kind": kind, **fields}) + "\n")
        self.records.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--dry", action="store_true", help="tiny shapes on the CPU, no times")
    parser.add_argument("--part", choices=PARTS)
    parser.add_argument("--seconds", type=float, default=70.0, help="after which a part skips on")
    given = parser.parse_args()
    if given.dry:
        dry()
    os.environ.setdefault("TRITON_CACHE_DIR", str((given.out / "cache").resolve()))
    if given.part is not None:
        part = {"gemm": gemm_part, "moe": moe_part, "rms_norm": rms_part}[given.part]
        part(Out(given.out, given.part), given.quick, given.seconds)
        return 0
    codes = []
    for name in PARTS:
        words = ["--out", str(given.out), "--part", name, "--seconds", str(given.seconds)]
        words += ["--quick"] * given.quick + ["--dry"] * given.dry
        codes.append(subprocess.run([sys.executable, __file__, *words]).returncode)
    print("parts that failed:", [p for p, c in zip(PARTS, codes, strict=True) if c] or "none")
    return max(codes)


def dry() -> None:
    """Shrink everything, to see that the script itself is right."""
    global DEVICE, SMALL, LARGE, HIDDEN, PROBE
    DEVICE, SMALL, LARGE, HIDDEN, PROBE = "cpu", (1, 16), (128, 600), 512, (128, 512)
    LINEARS.clear()
    LINEARS.update(qkv=(128, 512), o=(64, 512))
    DTYPE.update(dtype="float32")
    MODEL.update(experts=8, topk=2, hidden=64, moe_intermediate=32)


# Running


def kernels(family: str) -> Any:
    from selc.harness.protocol import load_kernels

    return load_kernels(family)


def call_of(family: str, requests: Sequence[Any], **extra: Any) -> Any:
    from selc.harness.call import Call

    return Call(family, {}, {}, tuple(requests), {**DTYPE, **extra})


def request(seed: int, rows: int, context: int) -> Any:
    from selc.harness.call import Request

    return Request(seed, rows, context)


def attempt(family: str, choice: Choice, inputs: Any) -> Any:
    """The output, or None where the choice cannot run."""
    from selc.harness.protocol import Unsupported

    try:
        return kernels(family).launch(choice, inputs)
    except Unsupported as error:
        return error


def compile_all(out: Out, family: str, jobs: Sequence[tuple[int, Choice]], extra: Choice) -> None:
    """Fill the compiler's cache from several processes."""
    distinct = {json.dumps(c, sort_keys=True): (m, c) for m, c in jobs}
    work = list(distinct.values())
    random.Random(0).shuffle(work)
    if DEVICE == "cpu":
        return
    count = max(1, min(14, (os.cpu_count() or 2) - 1, len(work) // 4))
    shares = [(family, work[i::count], extra) for i in range(count)]
    with multiprocessing.get_context("spawn").Pool(count) as pool:
        failed = [text for texts in pool.map(compile_some, shares) for text in texts]
    out.say(f"{family}: compiled {len(work)} configurations; {len(failed)} cannot run")
    for text in failed[:4]:
        out.say(f"  {text}")


def compile_some(share: tuple[str, list[tuple[int, Choice]], Choice]) -> list[str]:
    family, work, extra = share
    failed, made = [], {}
    for rows, choice in work:
        if rows not in made:
            call = call_of(family, [request(0, rows, rows)], **extra)
            made[rows] = kernels(family).prepare(call, DEVICE)
        try:
            result = attempt(family, choice, made[rows])
        except Exception as error:  # noqa: BLE001  told below, the others go on
            result = error
        if isinstance(result, Exception):
            failed.append(f"{choice}: {type(result).__name__}: {str(result)[:200]}")
    return failed


def seconds(runs: Sequence[Callable[[], Any]], replays: int = 5) -> float:
    """Median time of one launch, from replays of a graph of all of them."""
    import torch

    for run in runs:
        run()
    if DEVICE == "cpu":
        return 1e-3
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for run in runs:
            run()
    return replayed(graph, len(runs), replays)


def replayed(graph: Any, launches: int, replays: int) -> float:
    import torch

    graph.replay()
    events = [[torch.cuda.Event(enable_timing=True) for _ in "ab"] for _ in range(replays)]
    for before, after in events:
        before.record()
        graph.replay()
        after.record()
    torch.cuda.synchronize()
    return statistics.median(a.elapsed_time(b) for a, b in events) / launches * 1e-3


def times(launches: int, count: int) -> int:
    """How often tensors are gone through, so that a graph is long enough to be timed."""
    return max(1, math.ceil(launches / count))


def measure(
    out: Out, family: str, names: Sequence[tuple[str, Choice]], sets: Sequence[Any], least: int
) -> dict[str, float]:
    """Seconds of each choice that runs, in random order."""
    order = list(names)
    random.Random(1).shuffle(order)
    found: dict[str, float] = {}
    repeat = times(least, len(sets))
    for name, choice in order:
        result = attempt(family, choice, sets[0])
        if isinstance(result, Exception):
            continue
        runs = [
            (lambda choice=choice, each=each: kernels(family).launch(choice, each))
            for each in list(sets) * repeat
        ]
        found[name] = seconds(runs)
    return found


def error_of(output: Any, reference: Any) -> float:
    return float((output.double() - reference).norm() / reference.norm())


def bits(output: Any) -> str:
    import torch

    raw = output.contiguous().view(torch.int16).cpu().numpy().tobytes()
    return hashlib.sha256(raw).hexdigest()[:12]


def company(rows: int, sizes: Sequence[int]) -> Iterator[tuple[str, list[Any], slice]]:
    """One request alone, then with others of so many rows together, first, in the middle, last."""
    own = request(7, rows, 100 + rows)
    yield "alone", [own], slice(0, rows)
    for size in sizes:
        others = [request(1000 + i, 1 + i % 3, 50 + i) for i in range(max(1, size // 2))]
        before = others[: len(others) // 2]
        inside = sum(r.rows for r in before)
        total = sum(r.rows for r in others)
        yield f"first of {size}", [own, *others], slice(0, rows)
        yield (
            f"among {size}",
            [*before, own, *others[len(before) :]],
            slice(inside, inside + rows),
        )
        yield f"last of {size}", [*others, own], slice(total, total + rows)


def check_bits(
    out: Out,
    family: str,
    choices: Mapping[str, Callable[[int], Choice]],
    sizes: Sequence[int],
    extra: Choice,
    own: Sequence[int] = (1, 3),
) -> None:
    """A request's bits in all company, for each way to choose; and which ways agree."""
    for magnitude in ("normal", "extreme"):
        hashes: dict[str, set[str]] = {name: set() for name in choices}
        for rows in own:
            for place, requests, mine in company(rows, sizes):
                call = call_of(family, requests, magnitude=magnitude, **extra)
                inputs = kernels(family).prepare(call, DEVICE)
                for name, choose in choices.items():
                    result = attempt(family, choose(call.rows), inputs)
                    if isinstance(result, Exception):
                        continue
                    digest = f"{rows}:{bits(result[mine])}"
                    hashes[name].add(digest)
                    out.put("bits", family=family, choice=name, place=place, hash=digest)
        broken = [name for name, found in hashes.items() if len(found) > len(own)]
        classes: dict[str, list[str]] = {}
        for name, found in hashes.items():
            if len(found) == len(own):
                classes.setdefault(",".join(sorted(found)), []).append(name)
        sizes_text = "+".join(str(len(c)) for c in sorted(classes.values(), key=len, reverse=True))
        out.say(
            f"{family} bits, {magnitude}: {len(hashes)} ways to choose, {len(broken)} move with "
            f"the batch, the others form {len(classes)} classes ({sizes_text})"
        )
        for name in broken:
            out.say(f"  moves: {name}")
        out.put("classes", family=family, magnitude=magnitude, classes=list(classes.values()))
        for members in list(classes.values())[:8]:
            out.say(f"  class: {'; '.join(members)}"[:300])


def check_result(
    out: Out, family: str, cases: Sequence[tuple[str, Callable[[int], Choice]]], extra: Choice
) -> None:
    """Each choice against float64."""
    worst = 0.0
    for magnitude, rows in itertools.product(("normal", "extreme"), (1, 20, 130)):
        call = call_of(family, [request(3, rows, rows)], magnitude=magnitude, **extra)
        inputs = kernels(family).prepare(call, DEVICE)
        reference = kernels(family).reference(inputs)
        for name, choose in cases:
            result = attempt(family, choose(rows), inputs)
            if isinstance(result, Exception):
                out.say(f"  {family} {name}: {result}")
                continue
            error = error_of(result, reference)
            worst = max(worst, error)
            out.put("error", family=family, choice=name, rows=rows, error=error)
            if not error < 0.02:
                out.say(f"  WRONG {family} {name} rows {rows} {magnitude}: error {error:.2e}")
    out.say(f"{family}: {len(cases)} ways to choose against float64, worst error {worst:.1e}")


# Parts


def gemm_part(out: Out, quick: bool, limit: float) -> None:
    import torch

    every = SMALL + ((128, 2048) if quick else LARGE)
    jobs = [(min(m, 256), c) for m in every for c in gemm_candidates(m, quick)]
    jobs += [
        (m, {**stock("gemm", m, linear), "persistent": False}) for m in every for linear in LINEARS
    ]
    jobs += [(128, {**stock("gemm", 4096), "persistent": True})]
    compile_all(out, "gemm", jobs, {"n": 512, "k": 2048})

    def pinned(block_k: int, split_k: int) -> Callable[[int], Choice]:
        def choose(rows: int) -> Choice:
            chosen = {**stock("gemm", rows), "BLOCK_K": block_k, "SPLIT_K": split_k}
            step = (chosen["BLOCK_M"] + chosen["BLOCK_N"]) * block_k * 2
            return {**chosen, "num_stages": min(4, (SHARED - 34000) // step)}

        return choose

    ways: dict[str, Callable[[int], Choice]] = {"stock (control)": lambda rows: stock("gemm", rows)}
    for k, split in itertools.product((64, 128), (1, 2, 4)):
        ways[f"pinned {k} split {split}"] = pinned(k, split)
    fixed = [
        tile(16, 64, 64, 1, 4, 4),
        tile(16, 64, 64, 1, 4, 4, swap_ab=False),
        tile(16, 32, 256, 1, 4, 4),
        tile(64, 64, 128, 1, 4, 4),
        tile(128, 128, 64, 1, 8, 4),
        tile(128, 256, 64, 1, 8, 3),
        tile(128, 256, 64, 1, 8, 4, persistent=True),
        tile(256, 128, 64, 1, 8, 4, persistent=True),
        tile(16, 64, 128, 2, 4, 4),
        tile(64, 64, 64, 2, 4, 4),
        tile(128, 128, 128, 2, 8, 3),
        tile(128, 128, 128, 2, 8, 3, pdl=True),
    ]
    for choice in fixed:
        ways[short(choice)] = lambda rows, choice=choice: choice
    check_result(out, "gemm", list(ways.items()), dict(zip("nk", PROBE, strict=True)))
    sizes = (2, 30, 200) if quick else (2, 14, 30, 62, 130, 260, 1000, 4000)
    shape = dict(zip("nk", PROBE, strict=True))
    check_bits(out, "gemm", ways, sizes, shape)
    out.say("the same with sums that are not rounded to bfloat16:")
    check_bits(out, "gemm", ways, sizes, {**shape, "out_dtype": "float32"})

    from selc.harness.kernels.gemm import Inputs

    for linear, (n, k) in LINEARS.items():
        copies: list[Any] = []
        for m in every:
            if time.perf_counter() - out.start > limit:
                out.say("out of time: the rest is skipped")
                return
            call = call_of("gemm", [request(1, m, m)], n=n, k=k)
            first = kernels("gemm").prepare(call, DEVICE)
            if not copies:
                count = max(2, min(8, math.ceil(4 * L2 / (n * k * 2))))
                copies = [first.w] + [first.w.clone() for _ in range(count - 1)]
            used = copies if m <= 512 else copies[:2]
            sets = [Inputs(first.x.clone(), w, m, first.out) for w in used]
            least = 8 if m <= 512 else 2

            def library(sets: Any = sets, m: int = m, least: int = least) -> float:
                runs = [lambda s=s: torch.matmul(s.x[:m], s.w.t()) for s in sets]
                return seconds(runs * times(least, len(runs)))

            before = library()
            names = [(json.dumps(c, sort_keys=True), c) for c in gemm_candidates(m, quick)]
            ours = stock("gemm", m, linear)
            label = json.dumps(ours, sort_keys=True)
            found = measure(out, "gemm", [*names, (label, ours)], sets, least)
            finalists = dict(sorted(found.items(), key=lambda item: item[1])[:3])
            chosen = [json.loads(t) for t in finalists]
            chosen += [{**c, "pdl": True} for c in chosen if c["SPLIT_K"] > 1]
            named = [(json.dumps(c, sort_keys=True), c) for c in chosen]
            again = measure(out, "gemm", named, sets, least)
            after = library()
            cublas = (before + after) / 2
            best = min(again, key=lambda t: again[t])
            out.put(
                "gemm",
                linear=linear,
                n=n,
                k=k,
                m=m,
                cublas=[before, after],
                times=found,
                again=again,
            )
            moved = (m * k + n * k + m * n) * 2 / again[best] / 1e12
            speed = 2 * m * n * k / again[best] / 1e12
            rate = f"{moved:.2f} TB/s" if m <= 64 else f"{speed:.0f} TF"
            against = found.get(label, math.nan) / cublas
            out.say(
                f"{linear:8}{m:6} cublas {cublas * 1e6:8.1f} us  best {again[best] * 1e6:8.1f} "
                f"({again[best] / cublas:.2f}x, {rate})  stock {against:.2f}x  "
                f"{short(json.loads(best))}"
            )


def moe_part(out: Out, quick: bool, limit: float) -> None:
    candidates = list(moe_candidates())
    rows = table()
    tokens = (1, 4, 32, 512) if quick else tuple(2**i for i in range(14))
    jobs = [(8, choice) for _, choice in candidates]
    jobs += [(2, {**choice, "expert_assignment": "naive"}) for _, choice in candidates]
    small = {"experts": 128, "topk": 8, "hidden": 256, "moe_intermediate": 256}
    compile_all(out, "moe", jobs, small)

    def nearest(count: int) -> Choice:
        row = rows[min(rows, key=lambda each: abs(each - count))]
        return moe_choice(row, row, naive=4 * count * MODEL["topk"] <= MODEL["experts"])

    ways: dict[str, Callable[[int], Choice]] = {"stock (adaptive)": nearest}
    for name, choice in candidates:
        ways[name] = lambda count, choice=choice: choice
    naive = {**candidates[0][1], "expert_assignment": "naive"}
    ways["row 1 naive"] = lambda count: naive if count <= 64 else candidates[0][1]
    check_result(out, "moe", list(ways.items()), dict(MODEL))
    sizes = (2, 30) if quick else (2, 30, 200, 1000, 4000)
    check_bits(out, "moe", ways, sizes, dict(MODEL))
    for count in tokens:
        if time.perf_counter() - out.start > limit:
            out.say("out of time: the rest is skipped")
            return
        call = call_of("moe", [request(1, count, count)], **MODEL)
        sets = [kernels("moe").prepare(call, DEVICE) for _ in range(3 if count <= 256 else 1)]
        moved, flops = kernels("moe").bytes_and_flops(call)
        names = [*candidates, ("stock", nearest(count))]
        found = measure(out, "moe", names, sets, 2 if count >= 512 else 4)
        out.put("moe", m=count, times=found, bytes=moved, flops=flops)
        base = found["stock"]
        ranked = sorted((v, k) for k, v in found.items() if k != "stock")
        rate = f"{moved / base / 1e12:.2f} TB/s {flops / base / 1e12:.0f} TF"
        listed = ", ".join(f"{name} {value / base:.2f}x" for value, name in ranked[:4])
        worst = f"{ranked[-1][1]} {ranked[-1][0] / base:.2f}x"
        out.say(f"moe {count:6} stock {base * 1e6:8.1f} us ({rate}); {listed}; worst {worst}")


def rms_part(out: Out, quick: bool, limit: float) -> None:
    from torch.nn.functional import rms_norm as norm

    blocks = [(b, w) for b in (512, 1024, 2048, 4096) for w in (1, 2, 4, 8, 16) if b >= 32 * w]
    names = [(f"{b}/{w}", {"BLOCK_SIZE": b, "num_warps": w}) for b, w in blocks]
    compile_all(out, "rms_norm", [(4, choice) for _, choice in names], {"hidden": HIDDEN})
    ways: dict[str, Callable[[int], Choice]] = {
        "stock (control)": lambda rows: stock("rms_norm", rows)
    }
    for name, choice in names:
        ways[name] = lambda rows, choice=choice: choice
    check_result(out, "rms_norm", list(ways.items()), {"hidden": HIDDEN})
    exact = {"hidden": HIDDEN, "out_dtype": "float32"}
    check_bits(out, "rms_norm", ways, (2, 30, 200, 3000), exact, (1, 60))
    for count in (1, 64, 8192) if quick else (1, 8, 32, 128, 512, 2048, 8192):
        if time.perf_counter() - out.start > limit:
            return
        call = call_of("rms_norm", [request(1, count, count)], hidden=HIDDEN)
        sets = [kernels("rms_norm").prepare(call, DEVICE) for _ in range(4)]
        found = measure(out, "rms_norm", [*names, ("stock", stock("rms_norm", count))], sets, 16)
        library = seconds([lambda s=s: norm(s.x, (HIDDEN,), s.weight, s.eps) for s in sets] * 4)
        out.put("rms_norm", m=count, times=found, torch=library)
        base = found["stock"]
        ranked = sorted((v, k) for k, v in found.items() if k != "stock")
        listed = ", ".join(f"{name} {value * 1e6:.1f}" for value, name in ranked[:3])
        out.say(
            f"rms_norm {count:6} torch {library * 1e6:6.1f} us, stock {base * 1e6:6.1f}; "
            f"best {listed}; worst {ranked[-1][1]} {ranked[-1][0] * 1e6:.1f}"
        )


if __name__ == "__main__":
    raise SystemExit(main())
