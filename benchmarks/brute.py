#!/usr/bin/env python3
"""Compare what the compiler calls legal with a brute-force judge, on families and cases.

    make bench-brute

The judge runs the source under CPython with sites overwritten, for every assignment and every input
of a domain that is small enough, in both readings, and shares no code with the compiler.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.prove.brute import Tally  # noqa: E402
from tests.prove.families import families  # noqa: E402
from tests.prove.judged import judge_case, judge_deployment  # noqa: E402

SHARED = Path(os.environ.get("SELC_SHARED", ROOT.parent / "shared")) / "cases"
LINE = "| {} | {:,} | {:,} | {:,} | {:,} | {} | {:.0f} |"


def main() -> int:
    """Judge, print a row for each, and sum up."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--small", action="store_true", help="the domains that the tests have")
    options = parser.parse_args()
    print("| selection | assignments | legal | inputs | runs | differences | s |")
    print("|---|---|---|---|---|---|---|")
    total = Tally()
    for case in families(large=not options.small):
        name = f"{case.family}, {case.layers}"
        one(name, lambda folder, case=case: judge_deployment(case, folder), total)
    cases = Tally()
    begin = time.process_time()
    for folder in sorted(p for p in SHARED.iterdir() if p.is_dir()) if SHARED.is_dir() else []:
        with tempfile.TemporaryDirectory() as out:
            add(cases, judge_case(folder, Path(out))[1])
    spent = time.process_time() - begin
    row = (cases.assignments, cases.legal, cases.inputs, cases.runs, len(cases.differences), spent)
    print(LINE.format("the shared cases", *row))
    for difference in [*total.differences, *cases.differences]:
        print(difference, file=sys.stderr)
    return 1 if total.differences or cases.differences else 0


def one(name: str, judge: Callable[[Path], tuple[Any, Tally]], total: Tally) -> None:
    """Judge one selection and print its row."""
    begin = time.process_time()
    with tempfile.TemporaryDirectory() as out:
        _, tally = judge(Path(out))
    add(total, tally)
    spent = time.process_time() - begin
    row = (tally.assignments, tally.legal, tally.inputs, tally.runs, len(tally.differences), spent)
    print(LINE.format(name, *row), flush=True)


def add(total: Tally, one: Tally) -> None:
    """Sum up."""
    total.assignments += one.assignments
    total.legal += one.legal
    total.inputs += one.inputs
    total.runs += one.runs
    total.differences += one.differences


if __name__ == "__main__":
    sys.exit(main())
