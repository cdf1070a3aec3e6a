"""Write docs/engines.md: what was lifted from the two engines, with every stub beside the result.

    python scripts/engines_page.py CORPUS [--check]

CORPUS is the folder that `make corpus` fills. Times are left out of the page: they depend on the
machine; `--times` prints them instead of writing.
"""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

import yaml

from selc.diag.diagnostic import Refused, Sink
from selc.driver.pipeline import Clock, Plan, decide

ROOT = Path(__file__).resolve().parent.parent
FACTS = ROOT / "tests" / "engines"
PAGE = ROOT / "docs" / "engines.md"
NOT_LIFTED = FACTS / "data" / "not_lifted.yaml"

HEAD = """# What is lifted from the engines

<!-- made by scripts/engines_page.py -->

Functions of vLLM 0.21.0 and SGLang 0.5.10.post1, as they stand in the packages. Each has a facts
file under `tests/engines/`, and a test that runs the function's own text under CPython with stubs
made from the same facts, on boundary and random inputs, unpinned and pinned. The numbers are those
of the facts file: another deployment gives others.

*Values* are the nodes of G0 and of R. *Pins* gives the number of candidates in parentheses. *Stubs*
is everything that the facts state instead of the source: platform and configuration queries, and
kernels (`opaque`), which are the launches that a selection ends in.

| facts file | function | values | batch-dependent `bits` points | pins | legal | evidence | stubs |
|---|---|---|---|---|---|---|---|
"""


def main() -> int:
    """Write the page, or print the times."""
    corpus = Path(sys.argv[1])
    times = "--times" in sys.argv
    rows, spent = [], []
    for path in sorted(FACTS.glob("*.yaml"), key=_order):
        stated = yaml.safe_load(path.read_text())
        begin = time.perf_counter()
        rows.append(_row(path, stated, corpus))
        spent.append((time.perf_counter() - begin, path.stem))
    if times:
        for seconds, name in sorted(spent):
            print(f"{seconds:7.2f} {name}")
        return 0
    text = HEAD + "\n".join(rows) + "\n\n" + _not_lifted()
    PAGE.write_text(text)
    return 0


def _order(path: Path) -> tuple[str, int, str]:
    found = re.match(r"([A-Z]+)(\d+)", path.stem)
    return (found.group(1), int(found.group(2)), path.stem) if found else ("", 0, path.stem)


def _row(path: Path, stated: dict[str, object], corpus: Path) -> str:
    selection = stated["selection"]
    assert isinstance(selection, dict)
    target = str(selection["function"])
    stubs = [f"`{k}`" for s in ("functions", "env", "globals") for k in (stated.get(s) or {})]  # type: ignore[attr-defined]  # YAML
    shown = ", ".join(stubs) or "none"
    try:
        plan = Plan(target, (path,), (corpus / "vllm", corpus / "sglang", corpus))
        found = decide(plan, None, Sink(), Clock())
    except Refused as refused:
        reason = "; ".join(d.message for d in refused.diagnostics)
        return f"| {path.stem} | `{target}` | | | | | refused: {_cell(reason)} | {shown} |"
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
        f"`{target}`",
        f"{len(program.graph.nodes)} / {len(residual.graph.nodes)}",
        _cell(", ".join(f"`{n}`" for n in moving)) or "none",
        _cell(", ".join(pins)) or "none",
        f"{found.legality.legal} of {found.legality.assignments}",
        found.legality.evidence,
        _cell(shown),
    ]
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _not_lifted() -> str:
    listed = yaml.safe_load(NOT_LIFTED.read_text())
    lines = [
        "## Not lifted", "", "What the user sees when trying it, and what to do instead.", "",
        "| id | function | refused because | instead |", "|---|---|---|---|",
    ]  # fmt: skip
    lines += [
        f"| {x['id']} | `{x['function']}` | {_cell(x['reason'])} | {_cell(x['instead'])} |"
        for x in listed
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
