"""Reads the text of a program or a residual: the inverse of `dump_program` and `dump_residual`.

What the text does not hold comes back empty: the path and sources of a program, the marks of a
residual's sites, witnesses and counts of candidates.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeVar

from selc.diag.span import NOWHERE, Span
from selc.ir.bitclass import BitClass
from selc.ir.graph import Node
from selc.ir.literal import LiteralError, Reader
from selc.ir.program import Guard, Mark, Place, Point, Program, Site
from selc.ir.read import ReadError, read_domain, read_nodes, read_span
from selc.ir.residual import Candidates, Pin, Residual, ResidualGuard
from selc.ir.value import Value

_VALUE: Final = re.compile(r" *v(\d+)\b")
_COUNT: Final = re.compile(r" *(\d+)")
_TITLE: Final = re.compile(r"(\w+):\Z")

Nodes = Mapping[int, Node]
T = TypeVar("T")


def read_residual(text: str) -> Residual:
    """The residual selection that the text describes.

    Raises:
        ReadError: a line is malformed.
    """
    graph, nodes = read_nodes(text)
    head, sections = _split(text)
    return Residual(
        graph=graph,
        scope=head.get("scope", "request"),
        points=[_line(row, _point, nodes) for row in sections.get("points", [])],
        guards=[_line(row, _residual_guard, nodes) for row in sections.get("guards", [])],
        assumes=[_line(row, _assume, nodes) for row in sections.get("assumes", [])],
        pins=[_pin(rows) for rows in _blocks(sections.get("pins", []))],
        knobs=[
            _line(row, lambda reader, _: reader.name(), nodes) for row in sections.get("knobs", [])
        ],
    )


def read_program(text: str) -> Program:
    """The lowered selection that the text describes.

    Raises:
        ReadError: a line is malformed.
    """
    graph, nodes = read_nodes(text)
    head, sections = _split(text)
    sites = [_site(rows, nodes) for rows in _blocks(sections.get("sites", []))]
    program = Program(
        graph=graph,
        target=head.get("program", ""),
        function=head.get("function", ""),
        family=_line(head.get("family", "selection"), lambda reader, _: reader.name(), nodes),
        scope=head.get("scope", "request"),
        path="",
        points=[_line(row, _point, nodes)[0] for row in sections.get("points", [])],
        guards=[_line(row, _guard, nodes) for row in sections.get("guards", [])],
        sites={site.name: site for site in sites},
        classes=[_class(rows) for rows in _blocks(sections.get("classes", []))],
    )
    for line in text.split("\n\n", 1)[0].splitlines():
        word, _, rest = line.partition(" ")
        if word == "assumption":
            program.assumptions.append(rest)
        elif word == "setting":
            name, value = _line(rest, _binding, nodes)
            program.settings[name] = value
        elif word == "offer":
            name, values = _line(rest, _binding, nodes)
            if not isinstance(values, tuple):
                raise ReadError(f"expected a tuple of offers: {line}")
            program.offers[name] = values
    return program


# --- lines --------------------------------------------------------------------------------------


def _split(text: str) -> tuple[dict[str, str], dict[str, list[str]]]:
    """The first word of each line before the graph with the rest; the sections after it."""
    head: dict[str, str] = {}
    sections: dict[str, list[str]] = {}
    current: list[str] | None = None
    before = True
    for line in text.split("\n"):
        if line == "graph":
            before = False
        elif before:
            word, _, rest = line.partition(" ")
            head.setdefault(word, rest)
        elif (title := _TITLE.match(line)) is not None:
            current = sections.setdefault(title.group(1), [])
        elif current is not None and line.strip():
            current.append(line.removeprefix("  "))
    return head, sections


def _blocks(lines: list[str]) -> Iterator[list[str]]:
    """Lines with the indented ones that follow each."""
    block: list[str] = []
    for line in lines:
        if block and not line.startswith("  "):
            yield block
            block = []
        block.append(line)
    if block:
        yield block


def _line(text: str, parse: Callable[[Reader, Nodes], T], nodes: Nodes) -> T:
    reader = Reader(text)
    try:
        found = parse(reader, nodes)
        if not reader.done():
            raise LiteralError("unexpected text at the end of the line", reader.at)
    except LiteralError as error:
        raise ReadError(f"column {error.at + 1}: {error}: {text}") from error
    return found


def _node(reader: Reader, nodes: Nodes) -> Node:
    found = reader.take(_VALUE)
    node = nodes.get(int(found.group(1))) if found is not None else None
    if node is None:
        raise LiteralError("expected a node of the graph", reader.at)
    return node


def _span(reader: Reader) -> Span:
    if not reader.accept("; "):
        return NOWHERE
    span = read_span(reader.text[reader.at :])
    reader.at = len(reader.text)
    return span


def _binding(reader: Reader, _: Nodes) -> tuple[str, Value]:
    name = reader.name()
    reader.expect("=")
    return name, reader.value()


def _point(reader: Reader, nodes: Nodes) -> tuple[Point, Node]:
    name = reader.name()
    reader.expect(":")
    role = reader.name()
    reader.expect("=")
    node = _node(reader, nodes)
    sites = []
    if reader.accept("at "):
        sites.append(reader.name())
        while reader.accept(","):
            sites.append(reader.name())
    places = []
    if reader.accept("over "):
        places.append(_place(reader, nodes))
        while reader.accept(","):
            places.append(_place(reader, nodes))
    return Point(name, role, node, tuple(sites), tuple(places)), node


def _place(reader: Reader, nodes: Nodes) -> Place:
    ends = _group(reader, nodes)
    return Place(ends, _group(reader, nodes) if reader.accept("and ") else ())


def _group(reader: Reader, nodes: Nodes) -> tuple[Node, ...]:
    group = [_node(reader, nodes)]
    while reader.text.startswith(" v", reader.at):
        group.append(_node(reader, nodes))
    return tuple(group)


def _says(reader: Reader) -> tuple[str, str, str, str]:
    """Kind, origin, text and why of a guard."""
    kind, origin, text = reader.name(), reader.name(), reader.value()
    why = reader.value() if reader.accept("because ") else ""
    reader.expect("=")
    return kind, origin, str(text), str(why)


def _guard(reader: Reader, nodes: Nodes) -> Guard:
    if reader.take(_COUNT) is None:
        raise LiteralError("expected the number of the guard", reader.at)
    reader.expect(":")
    says = _says(reader)
    path = _node(reader, nodes)
    reader.expect("implies")
    cond = _node(reader, nodes)
    return Guard(*says, _span(reader), path, cond)


def _assume(reader: Reader, nodes: Nodes) -> tuple[Guard, Node]:
    says = _says(reader)
    node = _node(reader, nodes)
    return Guard(*says, _span(reader), node, node), node


def _residual_guard(reader: Reader, nodes: Nodes) -> ResidualGuard:
    says = _says(reader)
    readings: dict[str, Node] = {}
    unseen = False
    while True:
        word = reader.name()
        if word == "unseen":
            unseen = True
        else:
            readings[word] = _node(reader, nodes)
        if not reader.accept(","):
            break
    if "pinned" not in readings or not readings.keys() <= {"pinned", "adaptive", "mixed"}:
        raise LiteralError("expected the readings of the guard", reader.at)
    pinned = readings["pinned"]
    guard = Guard(*says, _span(reader), pinned, pinned)
    return ResidualGuard(guard, pinned, readings.get("adaptive"), readings.get("mixed"), unseen)


# --- pins and sites -----------------------------------------------------------------------------


def _site(rows: list[str], nodes: Nodes) -> Site:
    def first(reader: Reader, _: Nodes) -> Site:
        name = reader.name()
        reader.expect(":")
        return Site(name, reader.name(), _span(reader))

    def mark(reader: Reader, known: Nodes) -> Mark:
        node = _node(reader, known)
        reader.expect("if ")
        path = _node(reader, known)
        reader.expect("after ")
        count = reader.take(_COUNT)
        if count is None:
            raise LiteralError("expected a number of guards", reader.at)
        return Mark(node, path, int(count.group(1)))

    site = _line(rows[0], first, nodes)
    site.marks.extend(_line(row, mark, nodes) for row in rows[1:])
    return site


def _class(rows: list[str]) -> BitClass:
    def first(reader: Reader, _: Nodes) -> tuple[str, tuple[str, ...]]:
        name = reader.name()
        reader.expect(":")
        fields = [reader.name()]
        while reader.accept(","):
            fields.append(reader.name())
        return name, tuple(fields)

    name, fields = _line(rows[0], first, {})
    given: list[tuple[str, Value]] = []
    unnamed: list[str] = []
    members = []
    for row in rows[1:]:
        text = row.strip()
        if text.startswith("& "):
            given.append(_line(text.removeprefix("& "), _binding, {}))
            continue
        if text.startswith("* "):
            unnamed.append(_line(text.removeprefix("* "), lambda reader, _: reader.name(), {}))
            continue
        of, member = _line(text, _binding, {})
        if not isinstance(member, tuple) or len(member) != len(fields):
            raise ReadError(f"expected one value for each field: {row}")
        members.append((of, member))
    return BitClass(name, fields, tuple(members), tuple(given), tuple(unnamed))


def _pin(rows: list[str]) -> Pin:
    def first(reader: Reader, _: Nodes) -> tuple[str, str, str | None, Span]:
        name = reader.name()
        reader.expect(":")
        kind = reader.name()
        parameter = reader.name() if reader.accept("=") else None
        return name, kind, parameter, _span(reader)

    name, kind, parameter, span = _line(rows[0], first, {})
    found: dict[str, Value] = {}
    candidates = Candidates(None)
    at: dict[str, Value] | None = None
    for row in rows[1:]:
        word, _, rest = row.strip().partition(" ")
        if word == "candidates":
            candidates = _line(rest, _candidates, {})
        elif word == "at":
            at = _line(rest, _batch, {})
        else:
            found[word] = _line(rest, lambda reader, _: reader.value(), {})
    offered = found.get("offered", ())
    return Pin(
        name=name,
        site=Site(name, "variable", span),
        candidates=candidates,
        offered=offered if isinstance(offered, tuple) else (offered,),
        parameter=parameter,
        free=kind == "free",
        constant=found.get("constant"),
        at=at,
        proof=str(found.get("proof", "")),
    )


def _candidates(reader: Reader, _: Nodes) -> Candidates:
    domain = read_domain(reader)
    exact = not reader.accept("at most")
    if domain.values is not None:
        return Candidates(domain.values, exact=exact)
    return Candidates(None, (domain.lo, domain.hi, domain.step), exact)


def _batch(reader: Reader, nodes: Nodes) -> dict[str, Value]:
    out = dict([_binding(reader, nodes)])
    while reader.accept(","):
        out.update([_binding(reader, nodes)])
    return out
