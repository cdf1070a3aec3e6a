#!/usr/bin/env python3
"""Recall and precision of `selc lint` on the two engines in .corpus/; writes docs/lint-accuracy.md.

python benchmarks/lint_accuracy.py            measure and write the page
python benchmarks/lint_accuracy.py --sample   print the sample that has no verdict yet
"""

from __future__ import annotations

import ast
import hashlib
import os
import resource
import sys
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "benchmarks"
CORPUS = ROOT / ".corpus"
PAGE = ROOT / "docs" / "lint-accuracy.md"
SEED = 20
SAMPLE = 100
ENGINES = ("vllm", "sglang")

sys.path.insert(0, str(ROOT))

from selc.lint.config import Config  # noqa: E402
from selc.lint.model import Finding  # noqa: E402
from selc.lint.run import Options, Report, lint  # noqa: E402


class Row(NamedTuple):
    """One line of a list: an id, a kind, a file and lines, a name."""

    name: str
    kind: str
    path: str
    first: int
    last: int
    title: str

    def holds(self, path: str, line: int) -> bool:
        """Whether a place lies in it."""
        return path == self.path and self.first <= line <= self.last


class Verdict(NamedTuple):
    """What a reader decided of a finding."""

    true: bool
    reason: str

    @property
    def word(self) -> str:
        """As it is written in a list."""
        return "true" if self.true else "false"


def rows(name: str) -> list[Row]:
    """The rows of a list."""
    out = []
    for line in (HERE / name).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            number, kind, place, *title = line.split(None, 3)
            path, _, lines = place.rpartition(":")
            first, _, last = lines.partition("-")
            out.append(Row(number, kind, path, int(first), int(last or first), "".join(title)))
    return out


def run(audit: bool) -> Report:
    """Lint both engines."""
    os.chdir(CORPUS)
    config = Config(CORPUS, assume_unguarded=audit)
    paths = tuple(Path(engine) for engine in ENGINES)
    return lint(config, Options(paths, use_cache="--no-cache" not in sys.argv, jobs=2))


def function_around(path: str, line: int) -> tuple[int, int]:
    """The lines of the innermost function around a line."""
    tree = ast.parse((CORPUS / path).read_text(encoding="utf-8"))
    best = (line, line)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if node.lineno <= line <= (node.end_lineno or line) and node.lineno >= best[0] - 10_000:
                if best == (line, line) or node.lineno > best[0]:
                    best = (node.lineno, node.end_lineno or line)
    return best


def found_guards(findings: list[Finding], kinds: tuple[str, ...]) -> tuple[list[Row], list[Row]]:
    """Guarded sites of some kinds, and those of them that a finding or its path touches."""
    wanted = [row for row in rows("lint_guards.txt") if row.kind in kinds]
    got = []
    for row in wanted:
        first, last = function_around(row.path, row.first)
        lines = {each.place.line for each in findings if each.place.path == row.path}
        lines |= {s.line for each in findings for s in each.trace if s.path == row.path}
        if any(first <= line <= last for line in lines):
            got.append(row)
    return wanted, got


def key(finding: Finding) -> str:
    """What a verdict is filed under."""
    return f"{finding.place.path}:{finding.place.line}:{finding.code}"


def sample(findings: list[Finding]) -> list[Finding]:
    """The findings that are judged."""
    judged = [f for f in findings if f.level != "note"]
    return sorted(judged, key=lambda f: hashlib.blake2b(f"{SEED} {key(f)}".encode()).digest())[
        :SAMPLE
    ]


def verdicts(name: str) -> dict[str, Verdict]:
    """What one reader decided, by key."""
    out = {}
    path = HERE / name
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        if line and not line.startswith("#"):
            place, verdict, reason = line.split(None, 2)
            if verdict not in ("true", "false"):
                raise SystemExit(f"{name}: {place}: a verdict is true or false, not {verdict}")
            out[place] = Verdict(verdict == "true", reason)
    return out


def catalogue(findings: list[Finding]) -> tuple[list[Row], list[Row], list[Row], list[Row]]:
    """Positives, those found, controls, those flagged."""
    listed = rows("lint_catalogue.txt")

    def flagged(row: Row) -> bool:
        return any(row.holds(f.place.path, f.place.line) for f in findings)

    positives = [row for row in listed if row.kind == "positive"]
    controls = [row for row in listed if row.kind == "control"]
    return (
        positives,
        [r for r in positives if flagged(r)],
        controls,
        [r for r in controls if flagged(r)],
    )


def lines_of(paths: tuple[str, ...]) -> int:
    """Lines of Python under folders."""
    return sum(
        path.read_bytes().count(b"\n")
        for folder in paths
        for path in (CORPUS / folder).rglob("*.py")
    )


def page() -> str:
    """Measure everything and say it."""
    started = time.perf_counter()
    audit = run(audit=True)
    seconds = time.perf_counter() - started
    plain = run(audit=False)
    own = [f for f in audit.findings if f.code != "SEL107"]
    positives, found, controls, flagged = catalogue(own)
    parts = [
        "# How accurate the linter is\n",
        "Written by `make lint-accuracy`: the linter on vLLM 0.21.0 and SGLang 0.5.10.post1, unmodified, from "
        "their text alone. The lists of functions and guards are in `benchmarks/`.\n",
        "## Recall\n",
        "| list | found | of | |\n|---|---|---|---|",
        f"| functions whose choice follows the batch | {len(found)} | {len(positives)} | a finding's line lies in the function |",
        f"| control functions flagged | {len(flagged)} | {len(controls)} | {_names(flagged)} |",
    ]
    for engine in ENGINES:
        for kinds, words in (
            (("S1",), "visible in Python"),
            (("S1", "S2"), "with library summaries"),
        ):
            everything = own if kinds == ("S1",) else audit.findings
            wanted, got = found_guards(everything, kinds)
            wanted = [row for row in wanted if row.path.startswith(engine)]
            got = [row for row in got if row.path.startswith(engine)]
            missed = _names([row for row in wanted if row not in got])
            parts.append(
                f"| guarded sites of {engine}, {words} | {len(got)} | {len(wanted)} | missed: {missed} |"
            )
    missed_functions = [row for row in positives if row not in found]
    parts += [
        "",
        "Functions that are missed: "
        + ", ".join(f"{row.name} `{row.title}`" for row in missed_functions)
        + ".\n",
        "A guarded site counts as found if a finding or a step of its path lies in the function that holds the guard; "
        "the guard's effect is ignored (`--assume-unguarded`).\n",
    ]
    parts += _precision(plain)
    parts += _cost(plain, seconds)
    return "\n".join(parts) + "\n"


def _names(listed: list[Row]) -> str:
    return ", ".join(f"{row.name} {row.title}".strip() for row in listed) or "none"


def _precision(report: Report) -> list[str]:
    counts = Counter((f.code, f.level) for f in report.findings)
    chosen = sample(report.findings)
    first, second = verdicts("lint_verdicts.txt"), verdicts("lint_second.txt")
    judged = [f for f in chosen if key(f) in first]
    true = sum(first[key(f)].true for f in judged)
    lines = lines_of(ENGINES)
    out = [
        "## Precision\n",
        f"{len(report.findings)} findings at level error and warning in {lines:,} lines "
        f"({1000 * len(report.findings) / lines:.2f} for each thousand).\n",
        "| rule | level | findings |\n|---|---|---|",
        *(f"| {code} | {level} | {number} |" for (code, level), number in sorted(counts.items())),
        "",
        f"Of a random sample of {len(chosen)} (seed {SEED}), {len(judged)} have a verdict: **{true} true**, "
        f"{len(judged) - true} not. A finding is true if a quantity of the batch does reach the choice it names, and "
        "the choice is one between kernels, their configurations, or the shapes they run at.\n",
        *_second([key(f) for f in judged if key(f) in second], first, second),
        "| finding | first | second | reason of the first |\n|---|---|---|---|",
    ]
    for each in map(key, judged):
        other = second[each].word if each in second else "-"
        out.append(f"| `{each}` | {first[each].word} | {other} | {first[each].reason} |")
    return [*out, ""]


def _second(both: list[str], first: dict[str, Verdict], second: dict[str, Verdict]) -> list[str]:
    """How far the second reader agrees, and where not."""
    if not both:
        return ["One reader judged them; a second, blind reading has not been made yet.\n"]
    apart = [each for each in both if first[each].true != second[each].true]
    pairs = Counter((first[each].true, second[each].true) for each in both)
    lowest, number = pairs[True, True], len(both)
    highest = number - pairs[False, False]
    return [
        f"A second reader judged {number} of them from the rule and the source, without seeing the first "
        "verdict or the path that the linter prints: "
        f"{sum(second[each].true for each in both)} true. The two agree on {number - len(apart)} "
        f"({lowest} true, {pairs[False, False]} not). Of those judged twice, {lowest} are true for both readers and "
        f"{highest} for at least one: **precision on the sample is between {100 * lowest / number:.0f} % and "
        f"{100 * highest / number:.0f} %** depending on how the disagreements are settled. They are not settled here:\n",
        "| disagreement | first | second |\n|---|---|---|",
        *(f"| `{each}` | {_said(first[each])} | {_said(second[each])} |" for each in apart),
        "",
    ]


def _said(verdict: Verdict) -> str:
    return f"{verdict.word}: {verdict.reason}"


def _cost(report: Report, seconds: float) -> list[str]:
    if "--no-cache" not in sys.argv:
        return [
            "## Cost\n",
            "`benchmarks/lint_accuracy.py --no-cache` measures it on this machine.",
        ]
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return [
        "## Cost\n",
        f"The audit of both engines ({report.files} files), cold, with two processes: {seconds:.0f} s, of which "
        f"{used.ru_utime:.0f} s of processor time in both together; the largest process used "
        f"{used.ru_maxrss // 1024} MiB.",
    ]


def main(arguments: list[str]) -> int:
    """Measure and write, or print what is to be judged."""
    if not (CORPUS / "vllm").is_dir():
        print("no engines in .corpus/; `make corpus` fetches them", file=sys.stderr)
        return 1
    if "--sample" in arguments:
        known = verdicts("lint_verdicts.txt")
        for finding in sample(run(audit=False).findings):
            if key(finding) not in known:
                print(key(finding), finding.message, finding.trace)
        return 0
    text = page()
    PAGE.write_text(text, encoding="utf-8")
    print(text.split("## Precision")[0])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
