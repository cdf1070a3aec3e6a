"""What each pass does to a selection, and the usual ways of leaving some of them out."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from selc.passes.names import PASS_NAMES

if TYPE_CHECKING:
    from selc.diag.diagnostic import Sink
    from selc.driver.pipeline import Plan
    from selc.ir.graph import Graph, Node
    from selc.passes.rebuild import Images

ABLATIONS: Final[Mapping[str, frozenset[str]]] = {
    "everything": frozenset(),
    "folding only": frozenset(PASS_NAMES) - {"peval", "dce"} | {"semantic"},
    "no select algebra": frozenset({"fold"}),
    "no ranges": frozenset({"ranges"}),
    "no path conditions": frozenset({"context"}),
    "no semantic check": frozenset({"enumerate", "semantic"}),
    "no cut": frozenset({"cut"}),
}
"""Names for sets of `--skip`. All give right answers; some with more pins or fewer proofs."""


class Measured(NamedTuple):
    """One run of one pass: how many values there were before and after it."""

    name: str
    before: int
    after: int
    moving: int  # bits points that read a batch input afterwards
    milliseconds: float


def pass_values(plan: Plan, sink: Sink) -> list[Measured]:
    """The passes over the unpinned program in the order in which they ran, one by one.

    The first row is the lowered program itself.

    Raises:
        Refused: the input is wrong or not supported.
    """
    from selc.driver.pipeline import load
    from selc.passes.depend import batch_mask, masks
    from selc.passes.simplify import simplify

    _, program = load(plan, sink)
    bits = [p.node for p in program.points if p.role == "bits"]
    others = [p.node for p in program.points if p.role != "bits"]

    def moving(graph: Graph, nodes: Sequence[Node]) -> int:
        _, reads = masks(graph)
        batch = batch_mask(graph, program.scope)
        return sum(bool(reads[n.id] & batch) for n in nodes)

    every = [*bits, *others]
    size = len(program.graph.cone(every))
    out = [Measured("lowered", size, size, moving(program.graph, bits), 0.0)]
    last = time.perf_counter()

    def note(name: str, before: Graph, roots: Sequence[Node], after: Graph, images: Images) -> None:
        nonlocal last
        spent = (time.perf_counter() - last) * 1000
        ends = [images[r] for r in roots]
        count = moving(after, ends[: len(bits)])
        row = Measured(name, len(before.cone(roots)), len(after.cone(ends)), count, round(spent, 2))
        out.append(row)
        last = time.perf_counter()

    simplify(program.graph, every, plan.skip, check=note)
    return out
