#!/usr/bin/env python3
"""How many legal tuples of the all-reduce bypass the selection's own table, by simplification.

    benchmarks/all_reduce_bypass.py [--json FILE]

The table of the selection says for messages of which size which algorithm was fastest. A tuple
bypasses it if under the tuple no batch gets an algorithm of the table, but only ever what is left
when nothing else admits the message. A cut at the wrong place leaves tuples that differ in pins
and all fall through; the simplifications are what moves the cut. Each is left out in turn.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
FALLBACK = frozenset({"nccl", "none"})
DEPLOYMENTS = tuple(
    ("h100", model, engine, "tp4", "rank-order-kernels")
    for model in ("llama-3.1-70b", "qwen3-30b-a3b")
    for engine in ("vllm", "sglang")
)


class Bypass(NamedTuple):
    """What is found with some simplifications left out."""

    skipped: tuple[str, ...]
    pins: dict[str, int]  # with their numbers of candidates
    legal: int
    bypassing: int
    values: int  # of R

    @property
    def share(self) -> float:
        """The legal tuples that bypass the table, of all legal ones."""
        return self.bypassing / self.legal if self.legal else 0.0


def bypass(layers: tuple[str, ...], skip: frozenset[str] = frozenset()) -> Bypass | None:
    """Count the legal tuples at a deployment; None if there is no cut without what is skipped."""
    from selc.diag.diagnostic import Refused, Sink
    from selc.driver.pipeline import Clock, Plan, decide

    files = tuple(ROOT / "examples/facts" / f"{name}.yaml" for name in layers)
    plan = Plan(str(ROOT / "examples/all_reduce.py"), files, (), skip=skip)
    try:
        decided = decide(plan, None, Sink(), Clock())
    except Refused:
        return None
    residual = decided.residual
    relation = decided.legality.relation or ()
    missed = sum(
        not _uses_table(residual, dict(zip(residual.parameters, row, strict=True)))
        for row in relation
    )
    pins = {p.name: len(p.candidates.values or ()) for p in residual.pins if not p.free}
    return Bypass(
        tuple(sorted(skip)), pins, decided.legality.legal, missed, len(residual.graph.nodes)
    )


def _uses_table(residual: Any, setting: dict[str, Any]) -> bool:
    """Whether some batch gets an algorithm of the table."""
    from selc.ir.interp import run

    (algorithm,) = (n for p, n in residual.points if p.name == "algorithm")
    return any(
        run(residual.graph, [algorithm], {**setting, **batch})[0] not in FALLBACK
        for batch in _batches(residual, setting)
    )


def _batches(residual: Any, setting: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Batches of every size class: powers of two of tokens with their neighbours."""
    inputs = {n: i.domain for n, i in residual.graph.inputs.items() if n not in setting}
    axes = []
    for domain in inputs.values():
        near = {domain[0], domain[len(domain) - 1]}
        near |= {v for k in range(20) for v in ((1 << k) - 1, 1 << k, (1 << k) + 1) if v in domain}
        axes.append(list(domain) if len(domain) <= 64 else sorted(near))
    for values in itertools.product(*axes):
        yield dict(zip(inputs, values, strict=True))


def table(layers: tuple[str, ...]) -> list[tuple[str, Bypass | None]]:
    """With every simplification, without each, and without all."""
    from selc.passes.simplify import PASSES

    names = [p.name for p in PASSES]
    left_out = [("none", frozenset[str]()), *((n, frozenset({n})) for n in names)]
    left_out.append(("all", frozenset(names)))
    return [(name, bypass(layers, skip)) for name, skip in left_out]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--json", metavar="FILE", help="also write everything that was found")
    options = parser.parse_args()
    everything: dict[str, Any] = {}
    for layers in DEPLOYMENTS:
        print(" ".join(layers))
        for name, found in table(layers):
            if found is None:
                print(f"  without {name:<9}  no cut")
                continue
            pins = ", ".join(f"{p} ({n})" for p, n in found.pins.items()) or "none"
            print(
                f"  without {name:<9}  {found.bypassing} of {found.legal} legal tuples "
                f"({found.share:.0%})  R {found.values}  pins {pins}",
                flush=True,
            )
            everything.setdefault(" ".join(layers), {})[name] = found._asdict()
    if options.json:
        Path(options.json).write_text(json.dumps(everything, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
