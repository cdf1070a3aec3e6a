"""Reads the text form of a graph: `read(dump(g))` equals `g`.

What follows the graph in the text of a program or a residual (points, guards, sites) is passed
over here; `read_whole` reads it. Node names need not be dense; the nodes are numbered anew in the
order of their lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from selc.diag.span import NOWHERE, Span
from selc.ir.domain import Domain, Input
from selc.ir.graph import Graph, Node
from selc.ir.literal import LiteralError, Reader, parse_value
from selc.ir.op import TABLE, Op
from selc.ir.value import Value, same

_OPS: Final = {op.value: op for op in Op}
_NODE: Final = re.compile(r"v(\d+)\b")
_LINE: Final = re.compile(r"v(\d+) = (\w+)")
_RANGE: Final = re.compile(r" *(-?\d+)\.\.(-?\d+)(?: step (\d+))?")
_SPAN: Final = re.compile(r"(.*):(\d+):(\d+)-(?:(\d+):)?(\d+)\Z", re.DOTALL)


class ReadError(ValueError):
    """The text is not a graph; says the line."""


def read(text: str) -> Graph:
    """The graph that the text describes.

    Raises:
        ReadError: a line is malformed, a node is used before its line, or two lines are equal.
    """
    return read_nodes(text)[0]


def read_nodes(text: str) -> tuple[Graph, dict[int, Node]]:
    """The graph, and its nodes by the numbers that the text gives them.

    Raises:
        ReadError: see `read`.
    """
    graph = Graph()
    names: dict[int, Node] = {}
    for number, line in _graph_lines(text):
        try:
            if line.startswith("input "):
                each = _input(Reader(line, len("input ")))
                graph.inputs[each.name] = each
            else:
                _node(graph, names, line)
        except LiteralError as error:
            raise ReadError(f"line {number}, column {error.at + 1}: {error}: {line}") from error
    return graph, names


def read_span(text: str) -> Span:
    """The region that `format_span` wrote."""
    found = _SPAN.match(text)
    if found is None:
        raise LiteralError("expected path:line:column-end", 0)
    path, line, column, end_line, end_column = found.groups()
    if path.startswith('"'):
        path = str(parse_value(path))
    return Span(path, int(line), int(column), int(end_line or line), int(end_column))


def same_graph(a: Graph, b: Graph) -> bool:
    """Whether two graphs have the same inputs, the same nodes in the same order, and origins."""
    if len(a.nodes) != len(b.nodes) or a.origin != b.origin or list(a.inputs) != list(b.inputs):
        return False
    return all(
        x.op is y.op
        and [n.id for n in x.args] == [n.id for n in y.args]
        and same(x.attr, y.attr)
        and x.site == y.site
        for x, y in zip(a.nodes, b.nodes, strict=True)
    ) and all(_same_input(a.inputs[k], b.inputs[k]) for k in a.inputs)


def _same_input(a: Input, b: Input) -> bool:
    key_a = (a.name, a.kind, a.domain.lo, a.domain.hi, a.domain.step)
    key_b = (b.name, b.kind, b.domain.lo, b.domain.hi, b.domain.step)
    return key_a == key_b and same(a.domain.values, b.domain.values)


def _graph_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines of the graph with their numbers: from `graph` to the next empty line."""
    lines = enumerate(text.split("\n"), start=1)
    for _, line in lines:
        if line.strip() == "graph":
            break
    else:
        raise ReadError("no line says `graph`")
    for number, line in lines:
        if not line.strip():
            return
        yield number, line


def _input(reader: Reader) -> Input:
    name = reader.name()
    reader.expect(":")
    kind = reader.name()
    domain = read_domain(reader)
    _end(reader)
    return Input(name, kind, domain)


def read_domain(reader: Reader) -> Domain:
    """What `format_domain` wrote."""
    found = reader.take(_RANGE)
    if found is not None:
        low, high, step = found.groups()
        return Domain(int(low), int(high), int(step or 1))
    reader.expect("{")
    values: list[Value] = []
    while not reader.accept("}"):
        values.append(reader.value())
        if not reader.accept(","):
            reader.expect("}")
            break
    return Domain(values=tuple(values))


def _node(graph: Graph, names: dict[int, Node], line: str) -> None:
    head = _LINE.match(line)
    if head is None:
        raise LiteralError("expected `vN = operation`", 0)
    op = _OPS.get(head.group(2))
    if op is None:
        raise LiteralError(f"no operation {head.group(2)!r}", head.start(2))
    reader = Reader(line, head.end())
    args = tuple(_arguments(reader, names)) if TABLE[op].arity else ()  # an input may be `v0`
    if TABLE[op].arity not in (-1, len(args)):
        raise LiteralError(f"{op.value} takes {TABLE[op].arity} arguments", head.end())
    attr: Value = None
    if op is Op.CONST:
        attr = reader.value()
    elif op is Op.INPUT:
        attr = reader.name()
        if attr not in graph.inputs:
            raise LiteralError(f"no input {attr!r} is declared", reader.at)
    elif reader.accept("["):
        attr = reader.value()
        reader.expect("]")
    site = 0
    if reader.accept("!"):
        found = reader.value()
        if type(found) is not int:
            raise LiteralError("expected a site number", reader.at)
        site = found
    origin = NOWHERE
    if reader.accept("; "):
        origin = read_span(line[reader.at :])
    else:
        _end(reader)
    number = int(head.group(1))
    count = len(graph.nodes)
    node = graph.add(op, *args, attr=attr, site=site, origin=origin)
    if node.id != count or number in names:
        raise LiteralError("this node is already there", 0)
    names[number] = node


def _arguments(reader: Reader, names: dict[int, Node]) -> Iterable[Node]:
    while True:
        reader.skip()
        at = reader.at
        found = reader.take(_NODE)
        if found is None:
            return
        node = names.get(int(found.group(1)))
        if node is None:
            raise LiteralError(f"v{found.group(1)} is used before its line", at)
        yield node
        if not reader.accept(","):
            return


def _end(reader: Reader) -> None:
    if not reader.done():
        raise LiteralError("unexpected text at the end of the line", reader.at)
