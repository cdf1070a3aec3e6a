"""The text form of graphs, programs and residuals; `read` is its inverse for graphs.

One line per node: `v3 = select v1, v2, v0  ; tile.py:14:8-20`. Inputs with their domains come
first. An attribute stands in brackets, a site number after `!`, the source region after `;`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from selc.diag.span import NOWHERE, Span
from selc.ir.bitclass import BitClass
from selc.ir.domain import Domain, Input
from selc.ir.graph import Graph, Node
from selc.ir.literal import format_name, format_value
from selc.ir.op import Op
from selc.ir.program import Guard, Point, Program, Site
from selc.ir.residual import Candidates, Pin, Residual
from selc.ir.value import Value


def dump(graph: Graph, roots: Iterable[Node] | None = None) -> str:
    """The graph as text; only what `roots` read, if given."""
    nodes = graph.nodes if roots is None else graph.cone(roots)
    lines = ["graph", *_inputs(graph, nodes if roots is not None else None)]
    lines += [format_node(n, graph.origin.get(n.id, NOWHERE)) for n in nodes]
    return "\n".join(lines) + "\n"


def dump_program(program: Program, everything: bool = False) -> str:
    """A lowered selection as text: what its points, guards and sites read (or `everything`)."""
    roots = None if everything else [*program_roots(program)]
    lines = [
        f"program {program.target}",
        f"function {program.function}",
        f"family {format_name(program.family)}",
        f"scope {program.scope}",
        *(f"assumption {text}" for text in program.assumptions),
        *(f"setting {format_name(k)} = {format_value(v)}" for k, v in program.settings.items()),
        *(f"offer {format_name(k)} = {format_value(tuple(v))}" for k, v in program.offers.items()),
        "",
    ]
    text = "\n".join(lines) + "\n" + dump(program.graph, roots)
    text += _section("points", (_point(p, p.node) + _over(p) for p in program.points))
    text += _section("guards", (_guard(k, g) for k, g in enumerate(program.guards)))
    text += _section("sites", (line for s in program.sites.values() for line in _site(s)))
    return text + _section("classes", (line for c in program.classes for line in _class(c)))


def dump_residual(residual: Residual, everything: bool = False) -> str:
    """A residual selection as text."""
    roots = None if everything else [*residual_roots(residual)]
    text = f"residual\nscope {residual.scope}\n\n" + dump(residual.graph, roots)
    text += _section("points", (_point(p, n) for p, n in residual.points))
    text += _section("pins", (line for p in residual.pins for line in _pin(p)))
    text += _section("knobs", (format_name(k) for k in residual.knobs))
    text += _section("assumes", (f"{_says(g)} = {n}{_where(g.span)}" for g, n in residual.assumes))
    guards = []
    for g in residual.guards:
        readings = [f"pinned {g.pinned}"]
        readings += [f"adaptive {g.adaptive}"] if g.adaptive is not None else []
        readings += [f"mixed {g.mixed}"] if g.mixed is not None else []
        readings += ["unseen"] if g.unseen else []
        guards.append(f"{_says(g.guard)} = {', '.join(readings)}{_where(g.guard.span)}")
    return text + _section("guards", guards)


def program_roots(program: Program) -> Iterator[Node]:
    """Every node that a program's points, guards and sites refer to."""
    for point in program.points:
        yield point.node
        yield from (n for place in point.places for n in place.marks)
    for guard in program.guards:
        yield from (guard.path, guard.cond)
    for site in program.sites.values():
        for mark in site.marks:
            yield from (mark.node, mark.path)


def residual_roots(residual: Residual) -> Iterator[Node]:
    """Every node that a residual's points, guards and assumes refer to."""
    yield from (n for _, n in residual.points)
    yield from (n for _, n in residual.assumes)
    for guard in residual.guards:
        yield from guard.readings


def format_node(node: Node, origin: Span = NOWHERE) -> str:
    """One node as a line without its end."""
    parts = [f"v{node.id} = {node.op.value}"]
    if node.args:
        parts.append(", ".join(f"v{a.id}" for a in node.args))
    if node.op is Op.CONST:
        parts.append(format_value(node.attr))
    elif node.op is Op.INPUT and isinstance(node.attr, str):
        parts.append(format_name(node.attr))
    elif node.attr is not None:
        parts.append(f"[{format_value(node.attr)}]")
    if node.site:
        parts.append(f"!{node.site}")
    return " ".join(parts) + _where(origin)


def format_span(span: Span) -> str:
    """A source region: `path:line:column-end`, or `-line:end` if it ends on a later line."""
    end = f"{span.end_column}"
    if span.end_line != span.line:
        end = f"{span.end_line}:{end}"
    path = (
        span.path
        if span.path.isprintable() and not span.path.startswith('"')
        else format_value(span.path)
    )
    return f"{path}:{span.line}:{span.column}-{end}"


def format_domain(domain: Domain) -> str:
    """`lo..hi`, `lo..hi step s`, or `{a, b, c}`."""
    if domain.values is not None:
        return "{" + ", ".join(format_value(v) for v in domain.values) + "}"
    step = f" step {domain.step}" if domain.step != 1 else ""
    return f"{domain.lo}..{domain.hi}{step}"


def _inputs(graph: Graph, nodes: Sequence[Node] | None) -> Iterator[str]:
    read = None if nodes is None else {n.attr for n in nodes if n.op is Op.INPUT}
    for each in graph.inputs.values():
        if read is None or each.name in read or each.kind == "knob":
            yield _input(each)


def _input(each: Input) -> str:
    return f"input {format_name(each.name)}: {format_name(each.kind)} {format_domain(each.domain)}"


def _where(span: Span) -> str:
    return "" if span == NOWHERE else f"  ; {format_span(span)}"


def _section(title: str, lines: Iterable[str]) -> str:
    body = "".join(f"  {line}\n" for line in lines)
    return f"\n{title}:\n{body}" if body else ""


def _point(point: Point, node: Node) -> str:
    sites = f"  at {', '.join(format_name(s) for s in point.sites)}" if point.sites else ""
    return f"{format_name(point.name)}: {point.role} = {node}{sites}"


def _over(point: Point) -> str:
    groups = []
    for place in point.places:
        under = ["and", *map(str, place.under)] if place.under else []
        groups.append(" ".join([*map(str, place.ends), *under]))
    return f"  over {', '.join(groups)}" if groups else ""


def _says(guard: Guard) -> str:
    why = f" because {format_value(guard.why)}" if guard.why else ""
    return f"{guard.kind} {guard.origin} {format_value(guard.text)}{why}"


def _guard(index: int, guard: Guard) -> str:
    return f"{index}: {_says(guard)} = {guard.path} implies {guard.cond}{_where(guard.span)}"


def _site(site: Site) -> Iterator[str]:
    yield f"{format_name(site.name)}: {site.kind}{_where(site.span)}"
    for mark in site.marks:
        yield f"  {mark.node} if {mark.path} after {mark.guards_before}"


def _class(cls: BitClass) -> Iterator[str]:
    yield f"{format_name(cls.name)}: {', '.join(format_name(f) for f in cls.fields)}"
    for name, value in cls.given:
        yield f"  & {format_name(name)} = {format_value(value)}"
    for name in cls.unnamed:
        yield f"  * {format_name(name)}"
    for name, member in cls.members:
        yield f"  {format_name(name)} = {format_value(member)}"


def _pin(pin: Pin) -> Iterator[str]:
    head = f"{format_name(pin.name)}: {'free' if pin.free else 'pin'}"
    if pin.parameter is not None:
        head += f" = {format_name(pin.parameter)}"
    yield head + _where(pin.site.span)
    yield f"  candidates {_candidates(pin.candidates)}"
    if pin.offered:
        yield f"  offered {format_value(pin.offered)}"
    if pin.free:
        yield (
            f"  constant {format_value(pin.constant)}"
            if pin.at is None
            else f"  at {_batch(pin.at)}"
        )
        yield f"  proof {format_value(pin.proof)}"


def _candidates(candidates: Candidates) -> str:
    if candidates.values is not None:
        domain = Domain(values=candidates.values)
    else:
        assert candidates.span is not None
        low, high, step = candidates.span
        domain = Domain(low, high, step)
    return format_domain(domain) + ("" if candidates.exact else " at most")


def _batch(point: Mapping[str, Value]) -> str:
    return ", ".join(f"{format_name(k)} = {format_value(v)}" for k, v in sorted(point.items()))
