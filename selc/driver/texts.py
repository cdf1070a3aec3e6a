"""The graphs as text files beside the selector: `--emit ir`, `dot`, `html`, and `--emit-after`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selc.driver.options import CompileOptions
    from selc.driver.pipeline import Decided
    from selc.ir.graph import Graph, Node


def texts(decided: Decided, options: CompileOptions) -> dict[str, str]:
    """File name to text, for what was asked for."""
    out: dict[str, str] = {}
    if "ir" in options.emit:
        from selc.ir.dump import dump_program, dump_residual

        out["graph0.ir"] = dump_program(decided.program)
        out["graph.ir"] = dump_residual(decided.residual)
    if "dot" in options.emit:
        out |= _dot(decided)
    if "html" in options.emit:
        from selc.codegen import html_text
        from selc.driver.describe import answer
        from selc.driver.page import page_data

        out["analysis.html"] = html_text(page_data(decided, answer(decided)))
    if options.emit_after is not None:
        out |= _after(decided, options.emit_after, frozenset(options.skip))
    return out


def _dot(decided: Decided) -> dict[str, str]:
    from selc.codegen import dot_text

    program, residual = decided.program, decided.residual
    below = [(p.name, p.role, p.node) for p in program.points]
    conditions = [(g.text, g.cond) for g in program.guards]
    sites = [(s.name, m.node) for s in program.sites.values() if s.named for m in s.marks]
    pinned = [(p.name, p.role, n) for p, n in residual.points]
    guards = [(g.guard.text, g.pinned) for g in residual.guards]
    return {
        "graph0.dot": dot_text(program.graph, below, conditions, sites, program.family),
        "graph.dot": dot_text(residual.graph, pinned, guards, (), program.family),
    }


def _after(decided: Decided, wanted: str, skip: frozenset[str]) -> dict[str, str]:
    """G1 after a pass (or each), once per round: `g1-03-fold.ir` is the third pass that ran."""
    from selc.ir.dump import dump
    from selc.passes.simplify import simplify

    program = decided.program
    points = [p.node for p in program.points]
    out: dict[str, str] = {}
    ran = 0

    def keep(
        name: str,
        before: Graph,
        roots: Sequence[Node],
        after: Graph,
        images: dict[Node, Node],
    ) -> None:
        nonlocal ran
        ran += 1
        if wanted in ("all", name):
            ends = [images[r] for r in roots]
            named = "".join(
                f"  {p.name}: {p.role} = {n}\n" for p, n in zip(program.points, ends, strict=True)
            )
            out[f"g1-{ran:02}-{name}.ir"] = f"{dump(after, ends)}\npoints:\n{named}"

    simplify(program.graph, points, skip, check=keep)
    return out
