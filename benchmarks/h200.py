#!/usr/bin/env python3
"""Visits to a GPU machine: what a stage runs, each step within its time, tables printed.

    benchmarks/h200.py STAGE --out DIR [--budget SECONDS] [--list]

Stages: smoke, fa3, additivity, bits, classes, tune, holdout (one GPU) and all_reduce (two).
`h200_prepare.sh` makes what they need, elsewhere. A step is a command; it is stopped at its limit,
and a step that no longer fits in the budget is named and left out. What steps print and measure is
packed after each of them into DIR/STAGE.tar.gz.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
HELD = {  # the switch between GPUs never adds
    "NCCL_NVLS_ENABLE": "0",
    "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1",
    "NVSHMEM_DISABLE_NVLS": "1",
}
LEAST = 8.0  # seconds in which a step may come to something


@dataclass(frozen=True)
class Step:
    """A command with the seconds it may take; `{left}` in it is what it gets.

    `{whole}` is nearly all of it, for what ends to the second and has written all before.
    """

    name: str
    command: list[str]
    limit: float


def script(name: str, limit: float, *arguments: str) -> Step:
    return Step(name, [f"benchmarks/h200_{name}.py", *arguments], limit)


def selc(name: str, limit: float, *arguments: str) -> Step:
    return Step(name, ["-m", "selc", *arguments], limit)


def stages(s: str, out: str) -> dict[str, list[Step]]:
    """The steps of every stage; `s` is the folder of selectors, `out` where files go."""
    bits = [
        selc(f"bits {f}", 160, "bits", f"{s}/{f}", "--budget", "{left}",
             "-o", f"{out}/bits_{f}.jsonl")
        for f in ("attention", "attention_d64", "gemm_qkv", "gemm_down", "moe")
    ]  # fmt: skip
    classes = [
        selc(f"classes {name}", 200, "bits", f"{s}/{f}", "--classes", "--magnitudes",
             "--budget", "{left}",
             "--configs", f"{s}/configs/{name}.json", "--fields", fields(s, name),
             "-o", f"{out}/classes_{name}.json")
        for name, f in (("moe", "moe"), ("gemm", "gemm_down"), ("attention", "attention"),
                        ("attention_d64", "attention_d64"))
    ]  # fmt: skip
    reduced = f"{out}/all_reduce.jsonl"
    return {
        "smoke": [
            Step("device", ["benchmarks/h200.py", "device"], 60),
            Step("streams", ["benchmarks/h200_all_reduce.py", "streams", "--out", reduced], 60),
            script("attention", 120, "--quick", "--out", out, "--budget", "{left}"),
            script("gemm_moe", 90, "--quick", "--out", out, "--part", "gemm", "--seconds", "70"),
            script("gemm_moe", 70, "--quick", "--out", out, "--part", "moe", "--seconds", "50"),
            script("gemm_moe", 40, "--quick", "--out", out, "--part", "rms_norm"),
        ],
        "fa3": [script("fa3", 150, "--out", f"{out}/fa3.jsonl", "--budget", "{left}")],
        "additivity": [
            script("additivity", 120, "--selectors", s, "--out", f"{out}/additivity.jsonl",
                   "--budget", "{left}"),
        ],
        "bits": bits,
        "classes": classes,
        "tune": [
            Step("tuner", ["benchmarks/tuner_grid.py", "--selectors", s, "--out", out,
                           "--budget", "{whole}"], 560),
        ],
        "holdout": [
            Step("tuner", ["benchmarks/tuner_grid.py", "--set", "holdout", "--selectors", s,
                           "--out", out, "--rounds", "4", "--budget", "{whole}"], 560),
        ],
        "all_reduce": [
            Step("device", ["benchmarks/h200.py", "device"], 60),
            Step("ranks", ["benchmarks/h200_all_reduce.py", "ranks", "--out", reduced,
                           "--budget", "{left}"], 150),
            selc("bits all_reduce", 70, "bits", f"{s}/all_reduce", "--quick", "--budget", "{left}",
                 "-o", f"{out}/bits_all_reduce.jsonl"),
            selc("bench all_reduce", 90, "bench", f"{s}/all_reduce", "--profile",
                 f"{s}/all_reduce.jsonl", "--rounds", "7", "--budget", "{left}",
                 "-o", f"{out}/bench_all_reduce"),
        ],
    }  # fmt: skip


TOGETHER = ("bits", "classes")
"""Stages that time nothing: their steps run at the same time."""


def fields(selectors: str, name: str) -> str:
    """The fields of the configurations that are compared."""
    path = ROOT / selectors / "configs" / f"{name}.json"
    return ",".join(json.loads(path.read_text())[0]) if path.exists() else "?"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stage", nargs="+", help="one or more; `device` tells what is here")
    parser.add_argument("--out", type=Path, default=Path("h200"), help="a folder")
    parser.add_argument("--selectors", default=".h200")
    parser.add_argument("--budget", type=float, default=540.0, help="seconds for all of it")
    parser.add_argument("--only", action="append", help="steps by name; may be repeated")
    parser.add_argument("--list", action="store_true", help="print the commands and run none")
    args = parser.parse_args()
    if args.stage == ["device"]:
        device()
        return
    with tempfile.TemporaryDirectory() as files:
        work(args, parser, Path(files))


def work(args: argparse.Namespace, parser: argparse.ArgumentParser, files: Path) -> None:
    """Run the stages that were asked for."""
    known = stages(args.selectors, str(files))
    unknown = [stage for stage in args.stage if stage not in known]
    if unknown:
        parser.error(f"no stage {unknown[0]!r}; there are {', '.join(known)}")
    groups = [
        [step for step in known[stage] if not args.only or step.name in args.only]
        for stage in args.stage
    ]
    if args.list:
        for step in itertools.chain(*groups):
            print(f"{step.limit:4.0f} s  {' '.join(step.command)}")
        return
    args.out.mkdir(parents=True, exist_ok=True)
    name, ends = "-".join(args.stage), time.monotonic() + args.budget
    visit = Visit(files, args.out / f"{name}.tar.gz", ends)
    told: list[str] = []
    for stage, steps in zip(args.stage, groups, strict=True):
        if stage in TOGETHER:
            with ThreadPoolExecutor(len(steps) or 1) as pool:
                told += pool.map(functools.partial(visit.run, quiet=True), steps)
        else:
            told += [visit.run(step) for step in steps]
    print("\n" + "\n".join(told))


@dataclass(frozen=True)
class Visit:
    """Where results go, and until when."""

    files: Path
    archive: Path  # of all files so far
    ends: float
    lock: Any = field(default_factory=threading.Lock)

    def run(self, step: Step, quiet: bool = False) -> str:
        """Run a step, passing on what it prints, at its end if `quiet`; how it went, in a line."""
        left = min(step.limit, self.ends - time.monotonic())
        if left < LEAST:
            return f"{step.name}: left out, the budget is spent"
        title = f"\n== {step.name} (at most {left:.0f} s)"
        if not quiet:
            print(title, flush=True)
        began, printed = time.monotonic(), []
        process = self._start(step, left)
        stop = threading.Timer(left, _end, [process])
        stop.start()
        assert process.stdout is not None
        for line in process.stdout:
            printed.append(line)
            if not quiet:
                print(line, end="", flush=True)
        status = process.wait()
        stopped = not stop.is_alive()
        stop.cancel()
        _end(process)
        took = time.monotonic() - began
        with self.lock:
            if quiet:
                print(title + "\n" + "".join(printed), flush=True)
            log = self.files / f"{step.name.replace(' ', '_')}.log"
            with log.open("a", encoding="utf-8") as out:
                out.writelines(printed)
            part = self.archive.with_suffix(".part")
            with tarfile.open(part, "w:gz") as packed:
                packed.add(self.files, arcname=".")
            part.rename(self.archive)
        how = "stopped at its limit" if stopped else "done" if not status else f"status {status}"
        return f"{step.name}: {how} after {took:.0f} s"

    def _start(self, step: Step, left: float) -> subprocess.Popen[str]:
        # A step that knows its budget stops by itself, a little before it is stopped.
        given = {"left": int(left * 0.85 - 4), "whole": int(left - 6)}
        command = [word.format(**given) for word in step.command]
        cache = str(Path(tempfile.gettempdir()) / "selc-triton")
        environment = {"TRITON_CACHE_DIR": cache, **os.environ, **HELD}
        environment |= {"PYTHONUNBUFFERED": "1", "PYTHONPATH": _path()}
        return subprocess.Popen(
            [sys.executable, *command],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )


def _path() -> str:
    return os.pathsep.join(p for p in (str(ROOT), os.environ.get("PYTHONPATH", "")) if p)


def _end(process: subprocess.Popen[str]) -> None:
    """End a step and what it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def device() -> None:
    """What is here."""
    sys.path[:0] = [str(ROOT)]
    import torch

    from selc.harness.device import Device
    from selc.harness.timing import ceilings

    found = Device.open()
    for name, value in {**found.describe(), **found.state()}.items():
        print(f"{name:16} {value}")
    if found.kind == "cuda":
        print(f"{'GPUs':16} {torch.cuda.device_count()}")
    rates = ceilings(found)
    print(f"copy {rates['copy'] / 1e9:.0f} GB/s, product {rates['matmul'] / 1e12:.0f} TFLOP/s")


if __name__ == "__main__":
    main()
