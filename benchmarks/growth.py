#!/usr/bin/env python3
"""How compilation grows with the size of a selection: time and memory of every stage.

    make bench-growth                programs of about 1,000, 8,000 and 30,000 values
    benchmarks/growth.py 500 2000    other sizes

The programs are generated: blocks of guarded arithmetic over a few inputs, of the kinds that
selections are made of (tiles by thresholds, rounded-up quotients, a search over an unrolled loop),
with a mode that every block reads. Each is compiled in a process of its own, so that its peak
memory is its own. The exponent is that of size in time, between neighbouring sizes: 1 is linear.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SIZES = (1_000, 8_000, 30_000)
STAGES = ("frontend", "passes", "cut", "vra", "total")
BLOCK = 62
"""Values that one block makes."""

FACTS = """
inputs:
  tokens: {type: int, range: [1, 16384]}
  longest: {type: int, range: [1, 131072]}
"""

HEAD = """from selc.lang import Bits, Neutral, Runtime, Unpinnable, record, require, selection


@record
class Batch:
    tokens: Runtime[int]
    longest: Unpinnable[int]


@record
class Launch:
    tile: Bits[int]
    splits: Bits[int]
    work: Neutral[int]


@selection(family="growth", scope="launch")
def choose(batch: Batch) -> Launch:
    m, k = batch.tokens, batch.longest
    mode = 2 if m > 4096 else 1 if m > 512 else 0
    pages = (k + 127) // 128
    splits = 1
    for s in range(1, 9):
        if s * 16 <= pages:
            splits = s
    work = 0
    tile = 16
"""

PART = """    rows_{i} = (m + {a}) // {b}
    width_{i} = 128 if mode == 2 else 64 if rows_{i} > {c} else 32
    if rows_{i} % {d} == 0 and mode != 1:
        cost_{i} = rows_{i} * width_{i} + {a}
    elif pages > {e} or rows_{i} > {c}:
        cost_{i} = min(rows_{i}, {c}) * {b} + pages // {d}
    else:
        cost_{i} = max(rows_{i} - {a}, 1)
    work = max(work, cost_{i} % {f})
    if mode == {g} and splits >= {h}:
        tile = max(tile, width_{i})
"""

TAIL = """    require(tile <= 128, "tiles fit")
    return Launch(tile=tile, splits=splits, work=work)
"""

CODE = """
import json, resource, sys
from pathlib import Path
from selc.diag.diagnostic import Sink
from selc.driver.pipeline import Clock, Plan, decide
clock = Clock()
found = decide(Plan(sys.argv[1], (Path(sys.argv[2]),), ()), None, Sink(), clock)
times = clock.milliseconds()
values = len(found.program.graph.nodes)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
pins = [p.name for p in found.residual.pins if not p.free]
print(json.dumps({"values": values, "times": times, "peak": peak / 1024, "pins": pins}))
"""


def text(blocks: int) -> str:
    """A selection of so many blocks, the same at every run."""
    parts = [
        PART.format(
            i=i, a=i % 7 + 1, b=16 * (i % 4 + 1), c=8 + i % 13, d=2 + i % 5,
            e=10 + i % 50, f=997 + i, g=i % 3, h=1 + i % 6,
        )
        for i in range(blocks)
    ]  # fmt: skip
    return HEAD + "".join(parts) + TAIL


def measure(values: int) -> dict[str, Any]:
    """Compile one program of about so many values."""
    with tempfile.TemporaryDirectory() as folder:
        source, facts = Path(folder, "growth.py"), Path(folder, "facts.yaml")
        source.write_text(text(max(1, values // BLOCK)))
        facts.write_text(FACTS)
        done = subprocess.run(
            [sys.executable, "-c", CODE, str(source), str(facts)],
            check=True, capture_output=True, text=True, cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> int:
    """Measure every size and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("sizes", nargs="*", type=int, default=SIZES, metavar="VALUES")
    parser.add_argument("--json", metavar="FILE", help="also write everything that was measured")
    options = parser.parse_args()
    rows = []
    print(f"{'values':>8} " + " ".join(f"{s:>14}" for s in STAGES) + f" {'peak MiB':>9}  pins")
    for size in options.sizes:
        found = measure(size)
        cells = []
        for stage in STAGES:
            cell = f"{found['times'][stage] / 1000:.2f} s"
            if rows:
                before = rows[-1]
                ratio = max(found["times"][stage], 1) / max(before["times"][stage], 1)
                grown = math.log(found["values"] / before["values"])
                cell += f" ^{math.log(ratio) / grown:.2f}"
            cells.append(f"{cell:>14}")
        pins = ", ".join(found["pins"])
        line = f"{found['values']:>8,} {' '.join(cells)} {found['peak']:>9.0f}  {pins}"
        print(line, flush=True)
        rows.append(found)
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
