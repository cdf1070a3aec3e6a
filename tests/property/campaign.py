"""Many random programs in one go, with a count of what they reached.

    python -m tests.property.campaign --count 10000 --seed 1 --native 25

Each program is checked by `agreement` and by `judged`. A difference is printed with the seed that
makes its program again; the last lines say what was compared and which kinds were reached. With
`--journal FILE` a long campaign can be done in parts (`--seconds`): each appends its counts, and
`--total` prints the sum.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

from selc.diag.diagnostic import Refused
from selc.ir.op import Op, TooWide
from tests import adapters
from tests.property.agreement import Agreement, Disagreement
from tests.property.coverage import Reached
from tests.property.judged import Judge, Unjudged
from tests.property.programs import ENVIRONMENT, Made, program

SLOW = 40.0
"""Seconds of processor time that a program may take."""


class TooSlow(BaseException):
    """A program took longer."""


def one(made: Made, seed: int, native: bool, counts: Counter[str], reached: Reached) -> None:
    """One program by every way.

    Raises:
        Disagreement: two ways differ.
    """
    os.environ.update(ENVIRONMENT)
    with tempfile.TemporaryDirectory(prefix="program-") as name:
        folder = Path(name)
        case, facts = folder / "case.py", folder / "facts.yaml"
        case.write_text(made.text, encoding="utf-8")
        facts.write_text(made.facts_text, encoding="utf-8")
        try:
            lowered = adapters.lower(case, [facts])
        except Refused as refused:
            first = refused.diagnostics[0]
            counts["refused"] += 1
            counts[f"refused: {first.code} {kind(first.message)}"] += 1
            return
        agreement = Agreement(made, lowered, random.Random(seed))
        try:
            agreement.interpreters()
            agreement.overwrites(6)
            agreement.selectors(folder, native)
        except TooWide:
            counts["too wide"] += 1
            return
        except adapters.Missing:
            counts["no native form"] += 1
        report = agreement.report
        counts["agreed"] += 1
        counts.update(calls=report.calls, returned=report.returned, overwritten=report.overwritten)
        counts.update({f"emitted {k}": v for k, v in report.counts.items()})
        reached.program(made.text, lowered)
        judge = Judge(made, random.Random(seed), folder, native)
        try:
            if not judge.compile():
                counts["not compiled"] += 1
                counts[f"not compiled: {kind(judge.reason)}"] += 1
                return
            judge.judge()
        except Unjudged as why:
            counts["not judged"] += 1
            counts[f"not judged: {kind(str(why))}"] += 1
            return
        counts["judged"] += 1
        pins = sum(not p["free"] for p in judge.answer["pins"])
        counts[f"with {pins} pins" if pins else "without pins"] += 1
        counts.update(
            {f"{k} calls" if k == "legal" else f"tuples {k}": v for k, v in judge.counts.items()}
        )


def kind(message: str) -> str:
    """A message without what differs from program to program."""
    message = re.sub(r"admitted input: .*", "admitted input", re.sub(r"`[^`]*`", "`...`", message))
    return re.sub(
        r"(?<=SEL)\d+|choose\S*|\[.*\]|at \{.*",
        lambda m: m[0] if m[0].isdigit() else "...",
        message,
    )[:100]


def main() -> None:
    """Run programs and print a summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--native", type=int, default=0, help="build C for every Nth program")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after this long")
    parser.add_argument("--journal", type=Path, help="append the counts to this file")
    parser.add_argument("--total", action="store_true", help="print the sum of the journal")
    options = parser.parse_args()
    warnings.simplefilter("ignore", SyntaxWarning)
    counts: Counter[str] = Counter()
    reached = Reached()
    if options.total:
        for line in options.journal.read_text(encoding="utf-8").splitlines():
            part = json.loads(line)
            counts.update(part["counts"])
            reached.operations.update(part["operations"])
            reached.syntax.update(part["syntax"])
    else:
        run(options, counts, reached)
        if options.journal:
            part = {"seed": options.seed, "counts": counts}
            part |= {"operations": reached.operations, "syntax": reached.syntax}
            with options.journal.open("a", encoding="utf-8") as journal:
                journal.write(json.dumps(part) + "\n")
    for what, number in sorted(counts.items()):
        print(f"{number:9,} {what}")
    print(reached.text({o.value for o in Op}))


def run(options: argparse.Namespace, counts: Counter[str], reached: Reached) -> None:
    """Every program of a part."""

    def stop(*_: object) -> None:
        raise TooSlow

    signal.signal(signal.SIGPROF, stop)
    end = time.monotonic() + options.seconds
    for seed in range(options.seed, options.seed + options.count):
        if time.monotonic() > end:
            break
        counts["programs"] += 1
        made = program(random.Random(seed))
        try:
            compile(made.text, "case.py", "exec")
        except SyntaxError:
            counts["no program"] += 1
            continue
        native = bool(options.native) and seed % options.native == 0
        signal.setitimer(signal.ITIMER_PROF, SLOW)
        try:
            one(made, seed, native, counts, reached)
        except TooSlow:
            counts["given up: too slow"] += 1
            print(
                f"seed {seed}: {SLOW} s are not enough\n{traceback.format_exc(limit=-6)}",
                flush=True,
            )
        except Disagreement as difference:
            counts["DIFFERENT"] += 1
            print(f"seed {seed}: {difference}", flush=True)
        except Exception:  # noqa: BLE001  # the others shall run
            counts["CRASHED"] += 1
            print(f"seed {seed}: {traceback.format_exc(limit=-4)}", flush=True)
        signal.setitimer(signal.ITIMER_PROF, 0)
    counts["seconds"] += round(time.monotonic() - end + options.seconds)


if __name__ == "__main__":
    main()
