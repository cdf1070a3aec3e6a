"""The passes in their order, repeated until nothing changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from selc.ir.graph import Graph, Node
from selc.ir.value import value_key
from selc.passes.context import conditions, context
from selc.passes.dce import dce
from selc.passes.enumerate import enumerate_points
from selc.passes.fold import fold, selects
from selc.passes.gvn import gvn, number
from selc.passes.peval import constants, peval
from selc.passes.ranges import ranges
from selc.passes.rebuild import Images, Rule, compose, rebuild
from selc.passes.searches import searches
from selc.passes.table import lookups, table

Run = Callable[[Graph, Sequence[Node], Sequence[Node]], tuple[Graph, Images]]
Check = Callable[[str, Graph, Sequence[Node], Graph, Images], None]
"""Called after each pass: its name, the graph and roots before, the graph after, the images."""


class Pass(NamedTuple):
    """A pass and the name by which it can be skipped."""

    name: str
    run: Run


PASSES: Final = (
    Pass("peval", peval),
    Pass("gvn", gvn),
    Pass("fold", fold),
    Pass("table", table),
    Pass("searches", searches),
    Pass("ranges", ranges),
    Pass("context", context),
    Pass("enumerate", enumerate_points),
    Pass("dce", dce),
)
"""In the order in which they run. Each may be left out: the result is only less simple."""

ROUNDS: Final = 3

_LOCAL: Final[dict[str, Callable[[], Rule]]] = {
    "peval": lambda: constants,
    "gvn": lambda: number,
    "fold": selects,
    "table": lambda: lookups,
}
"""Passes that look at one node at a time."""

_LAST: Final = frozenset({"enumerate", "dce"})
"""Run when the others have nothing left to do: they cost more, or tidy up."""


def simplify(
    graph: Graph,
    roots: Sequence[Node],
    skip: frozenset[str] = frozenset(),
    given: Sequence[Node] = (),
    check: Check | None = None,
) -> tuple[Graph, Images]:
    """A simpler graph, and the image of every node that is still read in it.

    On every valuation of the declared domains on which the `given` conditions hold, the image of a
    root has the value of the root wherever that is defined. The image of any other node is equal
    to it where the roots use it. Guards are never premises: an undefined value may become a
    defined one because what guards it is kept apart.
    """
    every = [*roots, *given]
    images: Images = {n: n for n in graph.cone(every)}
    before: list[object] | None = None

    def run(step: Pass) -> None:
        nonlocal graph, images
        now = [images[r] for r in every]
        made, moved = step.run(graph, now, [images[g] for g in given])
        if check is not None:
            check(step.name, graph, now, made, moved)
        images = compose(images, moved)
        graph = made

    steps = _steps(skip, check is not None)
    for _ in range(ROUNDS):
        for step in steps:
            if step.name not in _LAST:
                run(step)
        shape = _shape(graph, [images[r] for r in every])
        if shape == before:
            break
        for step in steps:
            if step.name == "enumerate":
                run(step)
        before = _shape(graph, [images[r] for r in every])
    for step in steps:
        if step.name == "dce":
            run(step)
    return graph, images


def _steps(skip: frozenset[str], apart: bool) -> list[Pass]:
    """The passes to run; unless they are to run apart, the local ones share one walk."""
    steps = [
        Pass("context", conditions) if p.name == "context" and "ranges" in skip else p
        for p in PASSES
        if p.name not in skip
    ]
    if apart:
        return steps
    local = [p.name for p in steps if p.name in _LOCAL]

    def walk(graph: Graph, roots: Sequence[Node], given: Sequence[Node]) -> tuple[Graph, Images]:
        return rebuild(graph, roots, *[_LOCAL[name]() for name in local])

    names = {p.name for p in steps}
    rest = [
        p for p in steps if p.name not in _LOCAL and not (p.name == "ranges" and "context" in names)
    ]
    return [Pass("+".join(local), walk), *rest]


def _shape(graph: Graph, roots: Sequence[Node]) -> list[object]:
    """Equal for equal cones."""
    cone = graph.cone(roots)
    number = {n.id: k for k, n in enumerate(cone)}
    out: list[object] = [
        (n.op, tuple([number[a.id] for a in n.args]), value_key(n.attr) if n.is_const else n.attr)
        for n in cone
    ]
    out.append([number[r.id] for r in roots])
    return out
