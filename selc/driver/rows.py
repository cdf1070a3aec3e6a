"""Rows of tables: several columns looked up under one key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from selc.diag.span import NOWHERE, Span
from selc.diag.table import listing
from selc.ir.op import Op
from selc.passes.depend import batch_mask, masks

if TYPE_CHECKING:
    from selc.ir.graph import Graph, Node
    from selc.ir.program import Program
    from selc.ir.residual import Residual


def _columns(graph: Graph) -> dict[int, list[Node]]:
    """Lookups by the id of their key, of tables with several columns."""
    out: dict[int, list[Node]] = {}
    for node in graph.nodes:
        if node.op is Op.LOOKUP:
            out.setdefault(node.args[0].id, []).append(node)
    return {k: v for k, v in out.items() if len(v) > 1}


def _below(graph: Graph, nodes: set[int]) -> set[int]:
    reached = set(nodes)
    for node in graph.nodes:
        if any(a.id in reached for a in node.args):
            reached.add(node.id)
    return reached


def below_columns(program: Program) -> frozenset[str]:
    """Sites that see single columns of a row: with whole rows, no pin may stand there."""
    columns = {n.id for group in _columns(program.graph).values() for n in group}
    reached = _below(program.graph, columns)
    return frozenset(
        s.name for s in program.sites.values() if any(m.node.id in reached for m in s.marks)
    )


def split(program: Program, residual: Residual) -> tuple[str, str, Span] | None:
    """Points that pins fix while others from the same row follow the batch.

    None if no row is torn, or if some `require` reads columns of both kinds: it speaks for what
    they use together.
    """
    if not residual.pins:
        return None
    _, read = masks(residual.graph)
    batch = batch_mask(residual.graph, residual.scope)
    moving = {p.name for p, n in residual.points if read[n.id] & batch} - program.virtual
    pinned = {p.name for p in residual.pins}
    moving -= {f for c in program.classes if c.name in pinned for f in c.fields}
    followed = _still_moved(program, residual)
    for key, group in _columns(program.graph).items():
        if key not in followed:
            continue  # the key itself is held: the row is whole, whatever else moves the points
        fixed: dict[str, set[int]] = {}
        adaptive: dict[str, set[int]] = {}
        for column in group:
            reached = _below(program.graph, {column.id})
            for point in program.points:
                if point.name in program.virtual:
                    continue
                if point.node.id in reached and point.role != "aux":
                    side = adaptive if point.name in moving else fixed
                    side.setdefault(point.name, set()).add(column.id)
        if fixed and adaptive and not _covered(program, fixed, adaptive):
            span = program.graph.origin.get(group[0].id, NOWHERE)
            return _list(fixed), _list(adaptive), span
    return None


def _still_moved(program: Program, residual: Residual) -> set[int]:
    """The nodes of G0 that the batch reaches past the pins, by structure."""
    pinned = {m.node.id for p in residual.pins for m in p.site.marks}
    graph = program.graph
    out: set[int] = set()
    for node in graph.nodes:
        if node.id in pinned:
            continue
        if node.op is Op.INPUT:
            if graph.inputs[str(node.attr)].is_batch(program.scope):
                out.add(node.id)
        elif any(a.id in out for a in node.args):
            out.add(node.id)
    return out


def _covered(
    program: Program, fixed: Mapping[str, set[int]], adaptive: Mapping[str, set[int]]
) -> bool:
    """Whether a requirement reads a fixed and a moving column."""
    still = set().union(*fixed.values())
    moves = set().union(*adaptive.values())
    for guard in program.guards:
        if guard.kind == "require":
            seen = {n.id for n in program.graph.cone([guard.path, guard.cond])}
            if seen & (still - moves) and seen & (moves - still):
                return True
    return False


def _list(names: Iterable[str]) -> str:
    return listing([f"`{n}`" for n in names], 4)
