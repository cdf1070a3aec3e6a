#!/usr/bin/env python3
"""Legality: by what means assignments are judged, of a large grid, at deployments, and of 10^12.

    make bench-vra

The plan of FlashAttention-3 is pinned at five sites at once, with more values than it takes itself:
128 split counts, TMA or not, packed or not, causal or not, and seven tile widths make 7,168
assignments. Every guard is judged over the pins that it reads; an assignment counts as judged with
proof if its evidence is `proved` or `exhaustive`.

Then come attention, all-reduce and the experts at the deployments of `benchmarks/deployments.py`,
as they are compiled; and a generated selection whose relation is too large for a list.
"""

from __future__ import annotations

import argparse
import math
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.deployments import Deployment, deployments  # noqa: E402
from selc.diag.diagnostic import Sink  # noqa: E402
from selc.driver import compile as compiling  # noqa: E402
from selc.driver import legal as asking  # noqa: E402
from selc.driver.options import CompileOptions  # noqa: E402
from selc.driver.pipeline import Clock, Plan, decide, load  # noqa: E402
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


MEANS = ("ranges", "corners", "enumeration", "interface", "solver", "samples")
FAMILIES = ("attention_fa3", "all_reduce", "moe")
STAGES = 20
"""Pins of the generated selection: four values each, and a guard between any two neighbours."""


def main() -> int:
    """Judge the grid, the deployments and the large relation."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", choices=("grid", "deployments", "large"))
    options = parser.parse_args()
    good = True
    if options.only in (None, "grid"):
        good = grid() and good
    if options.only in (None, "deployments"):
        good = all(list(each_deployment())) and good
    if options.only in (None, "large"):
        good = large() and good
    return 0 if good else 1


def grid() -> bool:
    """The attention plan on H100, Llama-3.1-70B, four ranks, through the key-value cache."""
    with tempfile.TemporaryDirectory() as folder:
        engine = Path(folder, "engine.yaml")
        engine.write_text(ENGINE)
        names = ("h100", "llama-3.1-70b", "tp4")
        facts = [ROOT / "examples" / "facts" / f"{name}.yaml" for name in names]
        source = str(ROOT / "examples" / "attention_fa3.py")
        _, program = load(Plan(source, (*facts, engine), ()), Sink())
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
    return found.evidence in ("proved", "exhaustive")


def each_deployment() -> Iterator[bool]:
    """One row for each deployment: how its projected assignments are decided."""
    titles = ("family", "deployment", "assignments", "legal", *MEANS, "solver calls", "ms")
    print("\n| " + " | ".join(titles) + " |\n|" + "---|" * len(titles))
    for each in deployments(False):
        if each.family in FAMILIES:
            yield deployed(each)


def deployed(each: Deployment) -> bool:
    """Decide a deployment, then its legality once more with a record of how."""
    files = tuple(ROOT / "examples/facts" / f"{name}.yaml" for name in each.layers)
    source = str(ROOT / "examples" / f"{each.family}.py")
    decided = decide(Plan(source, files, ()), None, Sink(), Clock())
    effort = Effort()
    begin = time.process_time()
    found = legality(decided.residual, effort=effort)
    spent = 1000 * (time.process_time() - begin)
    assert (found.legal, found.evidence) == (decided.legality.legal, decided.legality.evidence)
    assert set(effort.settled) <= set(MEANS), effort.settled
    how = [effort.settled.get(means, 0) or "" for means in MEANS]
    legal = f"{found.legal} {found.evidence}"
    row = [each.family, " ".join(each.layers), found.assignments, legal, *how]
    print(
        "| " + " | ".join(map(str, [*row, effort.solver_calls, f"{spent:.0f}"])) + " |", flush=True
    )
    return found.evidence in ("proved", "exhaustive")


def large() -> bool:
    """A selection of many stages, compiled whole, and asked about afterwards."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "stages.py").write_text(stages())
        (folder / "facts.yaml").write_text(
            "selection: {function: stages, scope: launch, returns: {'*': bits}}\n"
            "inputs: {m: {kind: runtime, type: int, range: [1, 16384]}}\n"
        )
        out = folder / "stages_selector"
        begin = time.perf_counter()
        outcome = compiling.run(
            CompileOptions(
                str(folder / "stages.py"),
                (folder / "facts.yaml",),
                out=out,
                emit=("python",),
                native=False,
                use_cache=False,
            )
        )
        made = time.perf_counter()
        legal = outcome.json["legal"]
        answer = asking.run(asking.Asked(out, ("stages.tile_3=64", "stages.tile_4=128")))
        end = time.perf_counter()
    spent = outcome.json["timings_ms"]["vra"]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(
        f"\n{legal['assignments']:,} assignments of {STAGES} pins, {legal['legal']:,} legal: "
        f"{legal['evidence']}; compiled in {made - begin:.1f} s (legality {spent / 1000:.1f} s); "
        f"`selc legal` with two pins given: {answer.json['count']:,} left, {end - made:.2f} s; "
        f"at most {peak} MiB"
    )
    return bool(legal["evidence"] in ("proved", "exhaustive"))


def stages() -> str:
    """The source: each stage has a tile of its own, and two stages that meet must fit together."""
    lines = ["def stages(m):"]
    for i in range(STAGES):
        a, b, c = 100 + 37 * i, 1200 + 91 * i, 5000 + 53 * i
        lines.append(
            f"    tile_{i} = 16 if m <= {a} else 32 if m <= {b} else 64 if m <= {c} else 128"
        )
    lines += [f"    assert tile_{i} * tile_{i + 1} <= 8192" for i in range(STAGES - 1)]
    fields = ", ".join(f"'tile_{i}': tile_{i}" for i in range(STAGES))
    return "\n".join([*lines, f"    return {{{fields}}}", ""])


if __name__ == "__main__":
    sys.exit(main())
