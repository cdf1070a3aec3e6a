#!/usr/bin/env python3
"""What an emitted selector and the cache cost: the numbers of runtime.md.

    benchmarks/runtime.py calls          select and the original function, interleaved
    benchmarks/runtime.py instructions   the same in instructions, counted by callgrind
    benchmarks/runtime.py repin          repin, pins, legal
    benchmarks/runtime.py cache          hits of selc.load and of the command

`calls` writes its runs for `pyperf stats` and `pyperf hist` with --output, where pyperf is
installed. Selectors are compiled on first use, into the folder of --build.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LAYERS = ("h100", "llama-3.1-8b", "vllm", "tp1")
FACTS = [str(ROOT / "examples/facts" / f"{name}.yaml") for name in LAYERS]
SELC = "import sys; from selc.cli import main; sys.argv[0] = 'selc'; main()"

SIX = '''\
def plan(batch, queries, keys, pages, heads, window):
    """Six integers, a pin, and promises that every call checks."""
    splits = 4 if keys > 4096 else 1
    width = 128 if queries > 64 else 64
    assert splits * pages <= 8192
    return {"splits": splits, "width": width, "rows": (queries + 63) // 64, "span": keys // splits}
'''
SIX_FACTS = """\
selection:
  function: plan
  scope: launch
  returns: {splits: bits, width: neutral, rows: neutral, span: neutral}
  assume: ["queries >= batch", "keys >= queries", "pages * 16 >= keys", "window <= keys"]
inputs:
  batch: {kind: runtime, type: int, range: [1, 256]}
  queries: {kind: runtime, type: int, range: [1, 16384]}
  keys: {kind: unpinnable, type: int, range: [1, 131072]}
  pages: {kind: runtime, type: int, range: [1, 2048]}
  heads: {kind: runtime, type: int, range: [1, 64]}
  window: {kind: runtime, type: int, range: [0, 131072]}
"""


def environment() -> dict[str, str]:
    """This Python, with selc from here."""
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def compiled(options: argparse.Namespace, name: str) -> str:
    """The package `NAME_selector` under the build folder."""
    folder = Path(options.build)
    target = folder / f"{name}_selector"
    if not (target / "manifest.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        source, facts = str(ROOT / "examples/attention_fa3.py"), FACTS
        if name == "six":
            (folder / "six.py").write_text(SIX)
            (folder / "six.yaml").write_text(SIX_FACTS)
            source, facts = str(folder / "six.py"), [str(folder / "six.yaml")]
        command = [options.selc_python, "-c", SELC, "compile", source, "-o", str(target)]
        command += [f"--facts={path}" for path in facts]
        subprocess.run(command, check=True, env=environment(), stdout=subprocess.DEVNULL)
    return str(target)


# --- the functions that are timed -----------------------------------------------------------------


def loaded(folder: str) -> Any:
    """The package in a folder."""
    import importlib

    sys.path.insert(0, str(Path(folder).parent))
    return importlib.import_module(Path(folder).name)


def original(facts: dict[str, Any]) -> tuple[Callable[..., Any], type]:
    """The function of the example as CPython runs it at a deployment, and its batch."""
    sys.path[:0] = [str(ROOT), str(ROOT / "examples")]
    import attention_fa3  # type: ignore[import-not-found]
    import fa3_inputs  # type: ignore[import-not-found]

    fixed = []
    for part in ("device", "model", "parallel", "engine", "call", "build"):
        cls = getattr(fa3_inputs, part.capitalize())
        given = {k.partition(".")[2]: v for k, v in facts.items() if k.startswith(f"{part}.")}
        given |= facts.get(part, {}) if isinstance(facts.get(part), dict) else {}
        kept = {k: v for k, v in given.items() if k in cls.__dataclass_fields__}
        fixed.append(cls(**{k: tuple(v) if isinstance(v, list) else v for k, v in kept.items()}))

    def call(batch: Any) -> Any:
        return attention_fa3.attention(*fixed, batch)

    return call, fa3_inputs.Batch


def deployment() -> dict[str, Any]:
    """The facts of the attention deployment, merged."""
    import yaml

    out: dict[str, Any] = {}
    for path in FACTS:
        for part, values in (yaml.safe_load(Path(path).read_text()).get("facts") or {}).items():
            if isinstance(values, dict):
                out.setdefault(part, {}).update(values)
            else:
                out[part] = values
    return out


def batches(count: int = 64) -> list[dict[str, int]]:
    """Decoding and prefilling batches that the selector accepts."""
    draw = random.Random(0)
    out = []
    while len(out) < count:
        size = draw.choice((1, 2, 7, 16, 64, 200))
        queries = draw.choice((1, 1, 1, 128, 1000))
        keys = draw.randint(max(queries, 16), 32768)
        out.append(
            {"batch_size": size, "total_q": min(size * queries, 16384),
             "max_seqlen_q": queries, "max_seqlen_k": keys}
        )  # fmt: skip
    return [b for b in out if b["total_q"] >= b["max_seqlen_q"] and b["batch_size"] <= b["total_q"]]


def workload(options: argparse.Namespace) -> dict[str, Callable[[int], None]]:
    """Name -> a loop of so many calls. Loops are written out: a lambda would cost 40 ns."""
    return {**six_loops(loaded(options.six).select), **attention_loops(options)}


def six_loops(select: Callable[..., Any]) -> dict[str, Callable[[int], None]]:
    """Six integers, by keyword and by position."""

    def keywords(n: int) -> None:
        for _ in range(n):
            select(batch=8, queries=64, keys=4000, pages=256, heads=32, window=0)

    def positional(n: int) -> None:
        for _ in range(n):
            select(8, 64, 4000, 256, 32, 0)

    def nothing(n: int) -> None:
        for _ in range(n):
            pass

    return {
        "an empty loop": nothing,
        "six inputs, keywords": keywords,
        "six inputs, positional": positional,
    }


def served(attention: Any, call: Callable[..., Any], batch_type: type) -> list[tuple[Any, ...]]:
    """Batches that the selector and the original accept, where both agree without pins."""
    accepted: list[tuple[Any, ...]] = []
    for row in batches():
        try:
            choice, batch = attention.select(**row), batch_type(**row)
            unpinned = attention.select_unpinned(**row)
            launch = call(batch)
        except (attention.SelectionError, AssertionError):
            continue
        assert all(getattr(launch, n) == v for n, v in attention.points(unpinned).items())
        accepted.append((batch, choice, tuple(row.values())))
    assert len(accepted) > 20, len(accepted)
    return accepted


def attention_loops(options: argparse.Namespace) -> dict[str, Callable[[int], None]]:
    """The selector and the function that it was made from, at batches that both accept."""
    attention = loaded(options.attention)
    call, batch_type = original(json.loads(options.facts))
    accepted = served(attention, call, batch_type)
    b, _, row = accepted[0]
    select = attention.select
    fallback = attention._python_select
    rows = [r for _, _, r in accepted]

    def keywords(n: int) -> None:
        bs, tq, mq, mk = row
        for _ in range(n):
            select(batch_size=bs, total_q=tq, max_seqlen_q=mq, max_seqlen_k=mk)

    def varied(n: int) -> None:
        for k in range(n):
            select(*rows[k % len(rows)])

    def python(n: int) -> None:
        bs, tq, mq, mk = row
        for _ in range(n):
            fallback(bs, tq, mq, mk)

    def source(n: int) -> None:
        for _ in range(n):
            call(b)

    made = [batch for batch, _, _ in accepted]

    def source_varied(n: int) -> None:
        for k in range(n):
            call(made[k % len(made)])

    return {
        "attention, keywords": keywords,
        "attention, batches in turn": varied,
        "attention, fallback in Python": python,
        "attention, original": source,
        "attention, original, batches in turn": source_varied,
    }


def slow(name: str) -> bool:
    """Whether a call takes microseconds."""
    return "original" in name or "fallback" in name


def worker(options: argparse.Namespace) -> None:
    """One process: every loop in turn, again and again; nanoseconds per call as JSON."""
    loops = workload(options)
    found: dict[str, list[float]] = {name: [] for name in loops}
    now = time.perf_counter if options.clock == "wall" else time.thread_time
    for turn in range(options.rounds + 1):
        for name, loop in loops.items():
            count = options.count // 50 if slow(name) else options.count
            start = now()
            loop(count)
            if turn:  # the first round warms up
                found[name].append((now() - start) / count * 1e9)
    print(json.dumps(found))


def child(options: argparse.Namespace, *more: str) -> list[str]:
    return [
        sys.executable, str(Path(__file__)), *more, "--attention", compiled(options, "attention"),
        "--six", compiled(options, "six"), "--count", str(options.count),
        "--rounds", str(options.rounds), "--facts", options.facts, "--clock", options.clock,
    ]  # fmt: skip


def calls(options: argparse.Namespace) -> None:
    """Interleaved times of all loops, over several processes."""
    runs: dict[str, list[list[float]]] = {}
    for _ in range(options.processes):
        done = subprocess.run(
            child(options, "worker"), check=True, capture_output=True, text=True, env=environment()
        )
        for name, values in json.loads(done.stdout).items():
            runs.setdefault(name, []).append(values)
    best = {name: min(min(v) for v in values) for name, values in runs.items()}
    for name, values in runs.items():
        every = [v for run in values for v in run]
        print(
            f"{name:<38} least {best[name]:9.1f} ns   median {statistics.median(every):9.1f} ns   "
            f"({len(every)} values of {len(values)} processes)"
        )
    for tail in ("", ", batches in turn"):
        quick = "attention, keywords" if not tail else f"attention{tail}"
        pairs = zip(runs[f"attention, original{tail}"], runs[quick], strict=True)
        ratios = [a / b for xs, ys in pairs for a, b in zip(xs, ys, strict=True)]
        print(
            f"original{tail} / {quick}: {best[f'attention, original{tail}'] / best[quick]:.1f} by "
            f"the least, {statistics.median(ratios):.1f} by the median of neighbours"
        )
    if options.output:
        write_pyperf(runs, options.output)


def write_pyperf(runs: dict[str, list[list[float]]], path: str) -> None:
    """The runs as a suite of pyperf."""
    import pyperf  # type: ignore[import-not-found]

    def run(name: str, values: list[float]) -> Any:
        metadata = {"name": name, "unit": "second"}
        return pyperf.Run([v * 1e-9 for v in values], metadata=metadata)

    suite = pyperf.BenchmarkSuite(
        [pyperf.Benchmark([run(n, v) for v in values]) for n, values in runs.items()]
    )
    suite.dump(path, replace=True)
    for benchmark in suite:
        mean, spread = benchmark.mean() * 1e9, benchmark.stdev() * 1e9
        print(f"pyperf: {benchmark.get_name():<38} {mean:.1f} +- {spread:.1f} ns")


def instructions(options: argparse.Namespace) -> None:
    """Instructions per call: the difference of two counts over the difference of calls."""
    names = ("six inputs, keywords", "attention, keywords", "attention, original")
    counted: dict[str, float] = {}
    for name in names:
        few, many = (20, 220) if slow(name) else (1000, 21000)
        totals = [callgrind(options, name, n) for n in (few, many)]
        counted[name] = (totals[1] - totals[0]) / (many - few)
        print(f"{name:<38} {counted[name]:10.0f} instructions", flush=True)
    print(f"original / selector: {counted['attention, original'] / counted[names[1]]:.1f}")


def callgrind(options: argparse.Namespace, name: str, count: int) -> int:
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    command += [*child(options, "loop"), "--loop", name, "--calls", str(count)]
    hashed = {**environment(), "PYTHONHASHSEED": "0"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=hashed)
    match = re.search(r"Collected : (\d+)", done.stderr)
    assert match is not None, done.stderr[-500:]
    return int(match[1])


def repin(options: argparse.Namespace) -> None:
    """Microseconds of what changes or shows the tuple."""
    package = loaded(compiled(options, "attention"))
    names = list(package.pins())
    left = package.legal()
    moved = next(n for n in names if len(left[n]) > 1)
    start = package.pins()
    two = []
    for value in left[moved]:
        try:
            package.repin({moved: value})
            two.append({moved: value})
        except package.SelectionError:
            continue
    package.repin(start)
    assert len(two) > 1

    def change() -> None:
        package.repin(two[0])
        package.repin(two[1])

    for name, function, share in (
        ("repin", change, 2), ("pins", package.pins, 1), ("legal", package.legal, 1),
    ):  # fmt: skip
        times = []
        for _ in range(200):
            began = time.perf_counter()
            function()
            times.append((time.perf_counter() - began) / share * 1e6)
        print(f"{name:<8} least {min(times):8.1f} us   median {statistics.median(times):8.1f} us")


LOAD = """
import sys, time
began = time.perf_counter()
import selc
imported = time.perf_counter()
kind = dict(facts=sys.argv[2:])
selc.load(sys.argv[1], **kind)
first = time.perf_counter()
times = []
for _ in range(30):
    start = time.perf_counter()
    selc.load(sys.argv[1], **kind)
    times.append(time.perf_counter() - start)
heavy = [m for m in ("libcst", "networkx", "z3") if m in sys.modules]
print(f"{(imported - began) * 1e3:.2f} {(first - imported) * 1e3:.2f} {min(times) * 1e3:.3f} "
      f"{sorted(times)[15] * 1e3:.3f} {heavy}")
"""


def hits(options: argparse.Namespace) -> None:
    """Milliseconds of hits: in a warm process, in a fresh one, and of the whole command."""
    source = str(ROOT / "examples/attention_fa3.py")
    python = options.selc_python
    target = str(Path(options.build).absolute() / "hit" / "attention_selector")
    command = [python, "-c", SELC, "compile", source, *(f"--facts={f}" for f in FACTS)]
    command += ["-o", target, "--format", "json"]
    for _ in range(2):
        subprocess.run([python, "-c", LOAD, source, *FACTS], check=True, env=environment(),
                       capture_output=True)  # fmt: skip
        subprocess.run(command, check=True, env=environment(), capture_output=True)
    rows = []
    for _ in range(5):
        done = subprocess.run([python, "-c", LOAD, source, *FACTS], check=True, text=True,
                              env=environment(), capture_output=True)  # fmt: skip
        rows.append(done.stdout.split(" ", 4))
        assert rows[-1][4].strip() == "[]"
    for k, name in enumerate(("import selc", "the first selc.load of a process, a hit",
                              "a further selc.load", "a further selc.load, median")):  # fmt: skip
        print(f"{name:<42} least {min(float(r[k]) for r in rows):8.3f} ms")
    for name, words in (("selc compile, a hit", command), ("selc --help", [*command[:3], "--help"]),
                        ("python -c pass", [python, "-c", "pass"])):  # fmt: skip
        times = []
        for _ in range(11):
            start = time.perf_counter()
            done = subprocess.run(words, check=True, env=environment(), capture_output=True)
            times.append((time.perf_counter() - start) * 1e3)
        if name.endswith("hit"):
            assert json.loads(done.stdout)["cache"] == "hit"
        print(f"{name:<42} least {min(times):8.1f} ms   median {statistics.median(times):8.1f} ms")


def one_loop(options: argparse.Namespace) -> None:
    workload(options)[options.loop](options.calls)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    what = {
        "calls": calls, "instructions": instructions, "repin": repin, "cache": hits,
        "worker": worker, "loop": one_loop,
    }  # fmt: skip
    parser.add_argument("what", choices=what)
    parser.add_argument("--build", default=str(ROOT / "build"), help="where selectors are")
    parser.add_argument("--selc-python", default=sys.executable, help="a Python that runs selc")
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--count", type=int, default=20000, help="calls in a value")
    parser.add_argument("--clock", choices=("cpu", "wall"), default="cpu",
                        help="cpu leaves out what other processes took")  # fmt: skip
    parser.add_argument("--output", help="also a file for pyperf")
    for hidden in ("--attention", "--six", "--loop", "--facts"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--calls", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.facts is None and options.what in ("calls", "instructions"):
        options.facts = json.dumps(deployment())
    what[options.what](options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
