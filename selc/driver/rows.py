"""Rows of tables: several columns looked up under one key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from selc.diag.span import NOWHERE, Span
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
    return frozenset(s.name for s in program.sites.values() if any(m.node.id in reached for m in s.marks))


def split(program: Program, residual: Residual) -> tuple[str, str, Span] | None:
    """Columns that pins fix while others of the same row follow the batch, if a cut does that."""
    _, read = masks(residual.graph)
    batch = batch_mask(residual.graph, residual.scope)
    moving = {p.name for p, n in residual.points if read[n.id] & batch}
    for group in _columns(program.graph).values():
        fixed: list[str] = []
        adaptive: list[str] = []
        for column in group:
            reached = _below(program.graph, {column.id})
            for point in program.points:
                if point.node.id in reached and point.role != "aux":
                    (adaptive if point.name in moving else fixed).append(point.name)
        if residual.pins and fixed and adaptive:
            span = program.graph.origin.get(group[0].id, NOWHERE)
            return _list(fixed), _list(adaptive), span
    return None


def _list(names: list[str]) -> str:
    return ", ".join(f"`{n}`" for n in dict.fromkeys(names))
