"""A graph as DOT text, the same text for the same graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from selc.ir.graph import Graph, Node
from selc.ir.op import Op
from selc.ir.value import to_json


def dot_text(
    graph: Graph,
    points: Sequence[tuple[str, str, Node]],
    guards: Iterable[tuple[str, Node]] = (),
    sites: Iterable[tuple[str, Node]] = (),
    title: str = "selection",
) -> str:
    """Inputs as boxes on top, points (name, role, node) below, guards and sites by name."""
    guards, sites = list(guards), list(sites)
    roots = [n for _, _, n in points] + [n for _, n in guards]
    named: dict[int, list[str]] = {}
    for name, node in sites:
        named.setdefault(node.id, []).append(name)
    lines = [f"digraph {_quote(title)} {{", "  rankdir=TB;", "  node [fontname=monospace];"]
    for node in graph.cone(roots):
        lines.append(f"  v{node.id} [{_attributes(graph, node, named.get(node.id, []))}];")
        lines += [
            f"  v{arg.id} -> v{node.id}" + (f" [label={_quote(label)}];" if label else ";")
            for arg, label in zip(node.args, _labels(node), strict=True)
        ]
    for k, (name, role, node) in enumerate(points):
        color = {"bits": "red", "neutral": "gray", "aux": "lightgray"}.get(role, "black")
        lines.append(
            f"  point{k} [shape=doubleoctagon, color={color}, label={_quote(f'{name}: {role}')}];"
        )
        lines.append(f"  v{node.id} -> point{k};")
    for k, (text, node) in enumerate(guards):
        lines.append(f"  guard{k} [shape=note, label={_quote(text)}];")
        lines.append(f"  v{node.id} -> guard{k} [style=dashed];")
    return "\n".join([*lines, "}"]) + "\n"


def _labels(node: Node) -> Sequence[str]:
    return ("if", "then", "else") if node.op is Op.SELECT else [""] * len(node.args)


def _attributes(graph: Graph, node: Node, names: Sequence[str]) -> str:
    if node.op is Op.INPUT:
        item = graph.inputs[str(node.attr)]
        return f"shape=box, style=bold, label={_quote(f'{item.name} ({item.kind})')}"
    if node.op is Op.CONST:
        return f"shape=plaintext, label={_quote(repr(to_json(node.attr)))}"
    text = node.op.value
    if node.op in (Op.LOOKUP, Op.HASKEY):
        text += f" of {len(node.attr)} keys"  # type: ignore[arg-type]  # a tuple
    elif node.op is Op.OK and isinstance(node.attr, tuple):
        text += f" {node.attr[0]}"
    elif node.attr is not None and node.op is Op.METHOD:
        text += f" {node.attr}"
    where = graph.origin.get(node.id)
    rows = [text, *names] + ([f"line {where.line}"] if where is not None and where.path else [])
    return f"shape=ellipse, label={_quote(chr(10).join(rows))}" + (", color=blue" if names else "")


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "")
    return f'"{escaped}"'
