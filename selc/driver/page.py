"""What `--emit html` shows, as plain data: source, sites, the cut, pins, points, guards.

The graph of the page has one vertex per site, input and point. An edge says that a value flows from
one to the other by a path that meets no other site.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from selc.diag.table import listing
from selc.ir.op import Op
from selc.ir.value import to_json
from selc.passes.depend import batch_mask, masks

if TYPE_CHECKING:
    from selc.diag.span import Span
    from selc.driver.pipeline import Decided
    from selc.ir.absval import AbsVal
    from selc.ir.graph import Node

SHOWN_VALUES: Final = 8
LONGEST_FILE: Final = 20_000
"""Lines of a source file that a page takes in."""


def page_data(decided: Decided, answer: Mapping[str, Any]) -> dict[str, Any]:
    """The page of a compilation; `answer` is its JSON object."""
    builder = _Builder(decided)
    vertices = builder.vertices()
    return {
        "title": f"{answer['family']}: {answer['function']}",
        "target": answer["target"],
        "scope": answer["scope"],
        "assumptions": answer["assumptions"],
        "legal": answer["legal"] | {"relation": None},
        "graph": answer["graph"],
        "pins": [_pin(p, builder.parents) for p in answer["pins"]],
        "knobs": answer["knobs"],
        "points": answer["points"],
        "guards": answer["guards"],
        "tuple": answer["tuple"],
        "vertices": vertices,
        "edges": sorted(builder.edges),
        "shown": builder.shown(),
        "sources": _sources(vertices, builder.lines()),
    }


def _pin(entry: Mapping[str, Any], parents: Mapping[str, str | None]) -> dict[str, Any]:
    out = dict(entry)
    out["why"] = list(reversed(_way(f"site {entry['name']}", parents)))
    return out


def _way(vertex: str, parents: Mapping[str, str | None]) -> list[str]:
    """From a vertex back to the batch input that it follows, by the fewest steps."""
    out = [vertex]
    while (before := parents.get(out[-1])) is not None:
        out.append(before)
    return out if out[-1].startswith("input ") else []


class _Builder:
    def __init__(self, decided: Decided) -> None:
        self.decided = decided
        self.program = decided.program
        _, self.reads = masks(self.program.graph)
        self.batch = batch_mask(self.program.graph, self.program.scope)
        self.edges: set[tuple[str, str]] = set()
        self.owners: dict[int, list[str]] = {}
        for site in self.program.sites.values():
            for mark in site.marks:
                self.owners.setdefault(mark.node.id, []).append(f"site {site.name}")
        self._flow()
        self.parents = self._parents()

    def vertices(self) -> dict[str, dict[str, Any]]:
        """Every vertex with its range, its place, and why it follows the batch."""
        out: dict[str, dict[str, Any]] = {}
        pins = {p.name: p for p in self.decided.residual.pins}
        for name, leaf in self.program.graph.inputs.items():
            node = next(
                (n for n in self.program.graph.nodes if n.op is Op.INPUT and n.attr == name), None
            )
            if node is not None:
                follows = leaf.is_batch(self.program.scope)
                out[f"input {name}"] = self._vertex("input", name, [node], None, follows)
        for site in self.program.sites.values():
            nodes = [m.node for m in site.marks]
            if not nodes:
                continue
            pin = pins.get(site.name)
            kind = "site" if pin is None else "free" if pin.free else "pin"
            follows = any(self.reads[n.id] & self.batch for n in nodes)
            out[f"site {site.name}"] = self._vertex(kind, site.name, nodes, site.span, follows)
        for point in self.program.points:
            follows = self.decided.dependence[point.name].batch_dependent
            vertex = self._vertex(point.role, point.name, [point.node], None, follows)
            out[f"point {point.name}"] = vertex
        return out

    def shown(self) -> list[str]:
        """What the page opens with: pins, what they read and fix, and the way from the batch."""
        start = [f"site {p.name}" for p in self.decided.residual.pins]
        moving = self.decided.dependence
        start += [
            f"point {p.name}"
            for p in self.program.points
            if p.role == "bits" and moving[p.name].batch_dependent
        ]
        out = dict.fromkeys(start)
        for vertex in start[:24]:
            out.update(dict.fromkeys(_way(vertex, self.parents)[-12:]))
        return list(out)

    def lines(self) -> dict[tuple[str, int], list[str]]:
        """The source lines on which a value follows the batch, and the names of such values."""
        out: dict[tuple[str, int], list[str]] = {}
        for site in self.program.sites.values():
            whole = site.span.end_line == site.span.line  # a record stands for its whole file
            if not whole or not any(self.reads[m.node.id] & self.batch for m in site.marks):
                continue
            named = out.setdefault((site.span.path, site.span.line), [])
            if site.name not in named:
                named.append(site.name)
        return out

    def _vertex(
        self, kind: str, name: str, nodes: list[Node], span: Span | None, follows: bool
    ) -> dict[str, Any]:
        facts = self.decided.view.facts
        return {
            "kind": kind,
            "name": name,
            "range": " or ".join(dict.fromkeys(_range(facts[n.id]) for n in nodes)),
            "path": span.path if span is not None else None,
            "line": span.line if span is not None else None,
            "column": span.column if span is not None else None,
            "batch": follows,
            "reads": self._inputs(nodes),
        }

    def _inputs(self, nodes: Iterable[Node]) -> list[str]:
        mask = 0
        for n in nodes:
            mask |= self.decided.view.masks[n.id]
        return list(self.decided.view.inputs_of(mask))

    def _flow(self) -> None:
        """Edges between sites: for every node, the nearest vertices that it is made of."""
        sources: list[frozenset[str]] = []
        for node in self.program.graph.nodes:
            if node.op is Op.INPUT:
                near = frozenset([f"input {node.attr}"])
            else:
                near = frozenset().union(*(sources[a.id] for a in node.args))
            mine = self.owners.get(node.id)
            if mine:
                for owner in mine:
                    self.edges.update((s, owner) for s in near if s != owner)
                near = frozenset(mine)
            sources.append(near)
        for point in self.program.points:
            self.edges.update((s, f"point {point.name}") for s in sources[point.node.id])

    def _parents(self) -> dict[str, str | None]:
        """For what follows the batch, the vertex before it on a shortest way from a batch input."""
        after: dict[str, list[str]] = {}
        for a, b in sorted(self.edges):
            after.setdefault(a, []).append(b)
        inputs = self.program.graph.inputs.items()
        found: dict[str, str | None] = {
            f"input {n}": None for n, i in inputs if i.is_batch(self.program.scope)
        }
        todo = list(found)
        for vertex in todo:
            for other in after.get(vertex, []):
                if other not in found:
                    found[other] = vertex
                    todo.append(other)
        return found


def _range(fact: AbsVal) -> str:
    """A set of values in words."""
    if fact.values is not None:
        return "{" + listing([repr(to_json(v)) for v in fact.values], SHOWN_VALUES) + "}"
    if fact.lo is not None and fact.hi is not None and fact.is_integral:
        return f"{fact.lo} to {fact.hi}"
    if fact.real is not None:
        return f"{fact.real[0]!r} to {fact.real[1]!r}"
    return "any " + " or ".join(sorted(fact.kinds))


def _sources(
    vertices: Mapping[str, Mapping[str, Any]], marked: Mapping[tuple[str, int], list[str]]
) -> list[dict[str, Any]]:
    """The files that hold sites, with the lines that follow the batch."""
    out = []
    for path in dict.fromkeys(v["path"] for v in vertices.values() if v["path"]):
        try:
            text = Path(path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        lines = text.splitlines()[:LONGEST_FILE]
        follows = {str(line): names for (p, line), names in marked.items() if p == path}
        out.append({"path": path, "lines": lines, "follows": follows})
    return out
