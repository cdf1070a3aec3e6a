"""Rows of tuned tables: which sites stand for parts of one, and cuts that split one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from selc.diag.diagnostic import Diagnostic, Severity
from selc.diag.span import NOWHERE
from selc.ir.graph import Graph, Node
from selc.ir.op import Op
from selc.ir.program import Program
from selc.ir.residual import Pin
from selc.ir.value import value_key


@dataclass(frozen=True, slots=True)
class Row:
    """The fields that one key selects together."""

    key: Node
    fields: tuple[Node, ...]


def rows(graph: Graph) -> list[Row]:
    """Lookups of the same key in columns with the same keys, and fields of one looked-up tuple."""
    columns: dict[object, list[Node]] = {}
    for node in graph.nodes:
        if node.op is Op.LOOKUP:
            assert isinstance(node.attr, tuple)
            keys = tuple([value_key(k) for k, _ in node.attr])
            columns.setdefault((node.args[0].id, keys), []).append(node)
        elif node.op is Op.INDEX and (whole := _behind(node.args[0])).op is Op.LOOKUP:
            columns.setdefault(whole.id, []).append(node)
    found = [Row(_key(nodes[0]), tuple(nodes)) for nodes in columns.values()]
    return [r for r in found if len(r.fields) > 1]


def _behind(node: Node) -> Node:
    while node.op is Op.MARK:
        node = node.args[0]
    return node


def _key(field: Node) -> Node:
    return (_behind(field.args[0]) if field.op is Op.INDEX else field).args[0]


def parts(graph: Graph) -> frozenset[int]:
    """Ids of all nodes that are made of fields of rows: with whole rows these are no pins."""
    return frozenset(_below(graph, [f.id for r in rows(graph) for f in r.fields], ()))


def _below(graph: Graph, starts: Iterable[int], stops: Collection[int]) -> set[int]:
    """The nodes that read one of some nodes, themselves included, but not through others."""
    out = set(starts)
    for node in graph.nodes:
        if node.id not in stops and any(a.id in out for a in node.args):
            out.add(node.id)
    return out


def _above(starts: Iterable[Node], stops: Collection[int]) -> set[int]:
    """What some nodes read, themselves included, but not through others."""
    seen: set[int] = set()
    todo = list(starts)
    while todo:
        node = todo.pop()
        if node.id not in seen and node.id not in stops:
            seen.add(node.id)
            todo.extend(node.args)
    return seen


def split_rows(program: Program, pins: Mapping[str, Pin]) -> list[Diagnostic]:
    """SEL941 for every row of which pins fix a part while the batch still moves the rest.

    A `require` that reads a pinned part and a moving one together covers the row.
    """
    graph = program.graph
    marks = {m.node.id: m.node for p in pins.values() if not p.free for m in p.site.marks}
    batch = [
        n.id
        for n in graph.nodes
        if n.op is Op.INPUT and graph.inputs[str(n.attr)].is_batch(program.scope)
    ]
    moving = _below(graph, batch, marks)
    choices = [p for p in program.points if p.role != "aux"]
    adaptive = _above([p.node for p in choices], marks)
    pinned = _above([a for n in marks.values() for a in n.args], ()) | set(marks)
    guards = [_above([g.path, g.cond], ()) for g in program.guards if g.kind == "require"]
    out = []
    for row in rows(graph):
        fixed = {f.id for f in row.fields if f.id in pinned and f.id not in adaptive}
        loose = {f.id for f in row.fields if f.id in adaptive}
        if row.key.id not in moving or not fixed or not loose:
            continue
        below = _below(graph, fixed, ()) & set(marks)
        if any(g & below and g & loose for g in guards):
            continue
        names = sorted(n for n, p in pins.items() if any(m.node.id in below for m in p.site.marks))
        rest = sorted(p.name for p in choices if _above([p.node], marks) & loose)
        out.append(_warning(graph, row, names, rest))
    return out


def _warning(graph: Graph, row: Row, names: list[str], rest: list[str]) -> Diagnostic:
    pinned = ", ".join(f"`{n}`" for n in names)
    moving = ", ".join(f"`{n}`" for n in rest)
    return Diagnostic(
        "SEL941",
        f"the cut splits the row of a table: {pinned} no longer follows the batch, while {moving} "
        "of the same row still does",
        graph.origin.get(row.fields[0].id, NOWHERE),
        severity=Severity.WARNING,
        help="pass --whole-rows to pin the row as a whole, or state what its fields need together "
        "as a `require`",
    )
