#!/usr/bin/env python3
"""Legality of a large grid: by what means assignments of the attention plan are judged.

    make bench-vra

The plan of FlashAttention-3 is pinned at five sites at once, with more values than it takes itself:
128 split counts, TMA or not, packed or not, causal or not, and seven tile widths make 7,168
assignments. Every guard is judged over the pins that it reads; an assignment counts as judged with
proof if its evidence is `proved` or `exhaustive`.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from selc.diag.diagnostic import Sink  # noqa: E402
from selc.driver.pipeline import Plan, load  # noqa: E402
from selc.ir.residual import Candidates, Pin  # noqa: E402
from selc.ir.value import Value  # noqa: E402
from selc.passes.residual import residualize  # noqa: E402
from selc.vra.legality import legality  # noqa: E402
from selc.vra.verdict import Effort  # noqa: E402

GRID: dict[str, tuple[Value, ...]] = {
    "attention.num_splits": tuple(range(1, 129)),
    "attention.PagedKVNonTMA": (False, True),
    "attention.PackGQA": (False, True),
    "attention.Is_causal": (False, True),
    "attention.kBlockN": (64, 80, 96, 112, 128, 176, 192),
}

ENGINE = """
layer: benchmark
facts:
  engine: {flash_attention: upstream, call: kv-cache, max_num_batched_tokens: 16384, page_size: 128,
           max_model_len: 131072}
inputs:
  batch_size: {type: int, range: [1, 1024]}
  total_q: {type: int, range: [1, 16384]}
  max_seqlen_q: {type: int, range: [1, 32768]}
  max_seqlen_k: {type: int, range: [1, 131072]}
"""


def main() -> int:
    """Pin, judge and report."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--source", default=str(ROOT / "examples" / "attention_fa3.py"))
    parser.add_argument("--facts", nargs="*", default=["h100", "llama-3.1-70b", "tp4"])
    options = parser.parse_args()
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        engine = Path(folder, "engine.yaml")
        engine.write_text(ENGINE)
        facts = [ROOT / "examples" / "facts" / f"{name}.yaml" for name in options.facts]
        _, program = load(Plan(options.source, (*facts, engine), ()), Sink())
    pins = {
        name: Pin(name, program.sites[name], Candidates(values), parameter=name)
        for name, values in GRID.items()
    }
    begin = time.perf_counter()
    residual = residualize(program, pins)
    made = time.perf_counter()
    effort = Effort()
    found = legality(residual, effort=effort)
    end = time.perf_counter()
    assert found.assignments == math.prod(map(len, GRID.values()))
    readings = sum(len(g.readings) for g in residual.guards)
    print(f"{len(residual.graph.nodes)} values, {len(residual.guards)} guards, {readings} readings")
    print(f"{found.assignments:,} assignments, {found.legal:,} legal: {found.evidence}")
    print(f"residual program {made - begin:.2f} s, judged in {end - made:.2f} s")
    for means, count in effort.settled.items():
        print(f"  {count:>8,} projected assignments by {means}")
    print(f"  {effort.solver_calls:>8,} calls of the solver")
    return 0 if found.evidence in ("proved", "exhaustive") else 1


if __name__ == "__main__":
    sys.exit(main())
