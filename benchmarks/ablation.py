#!/usr/bin/env python3
"""What each part of the analysis is worth: families, passes, and selections without some of them.

    make ablation                        writes the tables of docs/analysis.md
    benchmarks/ablation.py --only moe    one family, printed

Every compilation runs in a process of its own, with a limit of time: without the cut or without
folding some take too long, and the table says so.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import queue
import re
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.deployments import (  # noqa: E402
    FAMILIES,
    Deployment,
    deployments,
    measure,
)

PAGE = ROOT / "docs/analysis.md"
LIMIT = 60
"""Seconds of the processor that one compilation may take."""

CHOSEN = (
    Deployment("attention_fa3", ("h100", "llama-3.1-70b", "sglang", "tp4")),
    Deployment("all_reduce", ("h100", "llama-3.1-70b", "sglang", "tp4")),
    Deployment("moe", ("h100", "qwen3-30b-a3b", "sglang", "tp4")),
)
"""The selections of which parts are left out."""

SAME = {("gemm", m) for m in FAMILIES["gemm"] if m != "llama-3.1-70b"}
"""What is left out of the table of families: other sizes of the same layout search, as slow."""


def apart(work: Callable[..., Any], *args: Any) -> Any:
    """The result of a function in a process of its own; None if it takes too long or dies."""
    context = multiprocessing.get_context("fork")
    answers: Any = context.Queue()
    process = context.Process(target=_answer, args=(answers, work, args))
    process.start()
    try:
        while True:
            try:
                return answers.get(timeout=1.0)
            except queue.Empty:
                if not process.is_alive():
                    return None
    finally:
        process.kill()
        process.join()


def _answer(answers: Any, work: Callable[..., Any], args: tuple[Any, ...]) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT))
    answers.put(work(*args))


def passes_of(deployment: Deployment) -> list[tuple[str, int, int, int, float]]:
    """The passes over one unpinned program, with the values before and after each."""
    from selc.diag.diagnostic import Sink
    from selc.driver.ablation import pass_values
    from selc.driver.pipeline import Plan

    files = tuple(ROOT / "examples/facts" / f"{name}.yaml" for name in deployment.layers)
    source = str(ROOT / "examples" / f"{deployment.family}.py")
    return [tuple(row) for row in pass_values(Plan(source, files, ()), Sink())]


def found_row(found: dict[str, Any] | None) -> list[str]:
    """One measurement as cells."""
    if found is None:
        return ["", "", "", "", "", "", f"over {LIMIT} s"]
    if "error" in found:
        return ["", "", found["error"][0].split(":")[0], "", "", "", ""]
    pins = found["pins"]
    shown = ", ".join(f"{name.split('.', 1)[1]} ({n or 'range'})" for name, n in pins.items())
    free = f" + {len(found['free'])} free" if found["free"] else ""
    return [
        "/".join(str(n) for n in found["values"]),
        f"{found['moved_bits']} of {found['moved']}",
        f"{len(pins)}{free}",
        shown,
        f"{found['assignments']}",
        f"{found['legal']} {found['evidence']}",
        f"{found['cpu_ms']}",
    ]


HEAD = [
    *("values G0/G1/R", "moved bits of points", "pins", "with candidates"),
    *("assignments", "legal", "CPU ms"),
]


def markdown(head: list[str], rows: list[list[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def families_table(family: str | None) -> str:
    rows = []
    for each in deployments(False):
        if family in (None, each.family) and (each.family, each.layers[1]) not in SAME:
            found = apart(measure, each)
            rows.append([each.family, " ".join(each.layers), *found_row(found)])
            print(*rows[-1], sep="  ", file=sys.stderr, flush=True)
    return markdown(["family", "deployment", *HEAD], rows)


def passes_table(family: str | None) -> str:
    parts = []
    for each in [c for c in CHOSEN if family in (None, c.family)]:
        rows = apart(passes_of, each)
        cells = [[n, str(b), str(a), str(m), f"{ms:.1f}"] for n, b, a, m, ms in rows or []]
        head = ["pass", "before", "after", "protected points that read the batch", "ms"]
        title = f"**{each.family}**, {' '.join(each.layers)}"
        parts.append(f"{title}\n\n{markdown(head, cells)}" if cells else f"{title}: too long")
        print(title, file=sys.stderr, flush=True)
    return "\n\n".join(parts)


def ablation_table(family: str | None) -> str:
    from selc.driver.ablation import ABLATIONS

    rows = []
    for each in [c for c in CHOSEN if family in (None, c.family)]:
        for name, skip in ABLATIONS.items():
            found = apart(measure, each, skip)
            cells = found_row(found)
            rows.append([each.family, " ".join(each.layers[1:]), name, *cells])
            print(*rows[-1], sep="  ", file=sys.stderr, flush=True)
    return markdown(["family", "deployment", "left out", *HEAD], rows)


TABLES = {"families": families_table, "passes": passes_table, "ablations": ablation_table}


def put(page: str, name: str, table: str) -> str:
    """The page with a table between its marks."""
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
    if not pattern.search(page):
        raise SystemExit(f"{PAGE} has no place for {name}")
    return pattern.sub(lambda m: f"{m[1]}\n{table}\n\n{m[2]}", page)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", choices=FAMILIES, help="one family, printed and not written")
    parser.add_argument("--table", choices=TABLES, action="append", help="only this table")
    parser.add_argument("--json", metavar="FILE", help="also write the tables as JSON")
    options = parser.parse_args()
    out = {}
    for name in options.table or TABLES:
        out[name] = TABLES[name](options.only)
        if options.only:
            print(out[name], end="\n\n")
        else:
            PAGE.write_text(put(PAGE.read_text(), name, out[name]))
    if options.json:
        Path(options.json).write_text(json.dumps(out, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
