"""Write docs/engines.md: what was lifted from the two engines, with every stub beside the result.

    python scripts/engines_page.py CORPUS [--times]

CORPUS is the folder that `make corpus` fills. Times are left out of the page: they depend on the
machine; `--times` prints them instead of writing. The tests of the engines compare the page with
what they found themselves.
"""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

import yaml

from selc.diag.diagnostic import Refused, Sink
from selc.driver.pipeline import Clock, Decided, Plan, decide, load

ROOT = Path(__file__).resolve().parent.parent
FACTS = ROOT / "tests" / "engines"
PAGE = ROOT / "docs" / "engines.md"
NOT_LIFTED = FACTS / "data" / "not_lifted"
INSTEAD = FACTS / "data" / "not_lifted.yaml"

HEAD = """# What is lifted from the engines

<!-- made by scripts/engines_page.py -->

Functions of vLLM 0.21.0 and SGLang 0.5.10.post1, as they stand in the packages. Each has a facts
file under `tests/engines/`, and a test that runs the function's own text under CPython with stubs
made from the same facts, on boundary and random inputs, unpinned and pinned. The numbers are those
of the facts file: another deployment gives others.

Every function of an engine that gets a value of the batch is followed, down to what is no Python:
`torch.ops`, compiled kernels, libraries. The tests see to it; they name two exceptions, a function
that compiles the kernel of its arguments (V55) and one that raises for a kernel's status (V62).

*Values* are the nodes of G0 and of R. *Pins* gives the number of candidates in parentheses. *Stubs*
is everything that the facts state instead of the source: platform and configuration queries, and
kernels (`opaque`), which are the launches that a selection ends in.

| facts file | function | values | batch-dependent `bits` points | pins | legal | evidence | stubs |
|---|---|---|---|---|---|---|---|
"""


def main() -> int:
    """Write the page, or print the times."""
    corpus = Path(sys.argv[1]).absolute()  # as the tests name it
    rows, spent = [], []
    for path in facts_files():
        begin = time.perf_counter()
        target = yaml.safe_load(path.read_text())["selection"]["function"]
        rows.append(row(path, decide(Plan(target, (path,), (corpus,)), None, Sink(), Clock())))
        spent.append((time.perf_counter() - begin, path.stem))
    if "--times" in sys.argv:
        for seconds, name in sorted(spent):
            print(f"{seconds:7.2f} {name}")
        return 0
    PAGE.write_text(HEAD + "\n".join(rows) + "\n\n" + not_lifted(corpus))
    return 0


def facts_files() -> list[Path]:
    """The facts files of lifted functions, in the order of the page."""
    return sorted(FACTS.glob("*.yaml"), key=_order)


def _order(path: Path) -> tuple[str, int, str]:
    found = re.match(r"([A-Z]+)(\d+)", path.stem)
    return (found.group(1), int(found.group(2)), path.stem) if found else ("", 0, path.stem)


def row(path: Path, found: Decided) -> str:
    """The line of one facts file."""
    stated = yaml.safe_load(path.read_text())
    stubs = [f"`{k}`" for s in ("functions", "env", "globals") for k in (stated.get(s) or {})]
    program, residual = found.program, found.residual
    moving = [
        p.name
        for p in program.points
        if p.role == "bits" and found.dependence[p.name].batch_dependent
    ]
    pins = [
        f"`{p.name}` ({'free' if p.free else len(p.candidates.values or ()) or '?'})"
        for p in residual.pins
    ]
    cells = [
        path.stem,
        f"`{stated['selection']['function']}`",
        f"{len(program.graph.nodes)} / {len(residual.graph.nodes)}",
        _cell(", ".join(f"`{n}`" for n in moving)) or "none",
        _cell(", ".join(pins)) or "none",
        f"{found.legality.legal} of {found.legality.assignments}",
        found.legality.evidence,
        _cell(", ".join(stubs)) or "none",
    ]
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def not_lifted(corpus: Path) -> str:
    """The table of what is refused, as it is refused now."""
    instead = yaml.safe_load(INSTEAD.read_text())
    lines = [
        "## Not lifted", "",
        "What stops the compiler first, with the facts of `tests/engines/data/not_lifted/`, and "
        "what", "to do instead.", "",
        "| id | function | refused at | because | instead |", "|---|---|---|---|---|",
    ]  # fmt: skip
    for path in sorted(NOT_LIFTED.glob("*.yaml"), key=_order):
        target = yaml.safe_load(path.read_text())["selection"]["function"]
        try:
            load(Plan(target, (path,), (corpus,)), Sink())
        except Refused as refused:
            first = refused.diagnostics[0]
            place = ""
            if first.span is not None:
                place = f"`{Path(first.span.path).name}`:{first.span.line}"
            why = _cell(f"{first.code}: {first.message}")
            lines.append(f"| {path.stem} | `{target}` | {place} | {why} | {instead[path.stem]} |")
            continue
        raise SystemExit(f"{path} is lifted: move it to {FACTS}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
