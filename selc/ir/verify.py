"""Checks that a graph is well formed; run between passes by the tests and on request.

Checked of every node: its id is its place; its arguments stand before it and belong to the graph;
their number is right; no equal node exists; its attribute is of the operation's form; a condition
of `select` can be a bool. Checked of a program and a residual: what they refer to is in the graph,
paths and conditions can be bools, guard counts are in range, and every parameter is declared.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from selc.diag.span import NOWHERE, Span
from selc.ir.absval import AbsVal
from selc.ir.dump import format_node, format_span, program_roots, residual_roots
from selc.ir.evaluate import abstract
from selc.ir.graph import Graph, Node, is_place
from selc.ir.op import STRING_METHODS, TABLE, Op
from selc.ir.program import Program
from selc.ir.residual import Residual
from selc.ir.value import is_plain, value_key

_STRUCTURAL = (Op.CONST, Op.INPUT, Op.MARK, Op.SELECT, Op.OK, Op.FAIL)


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with one node (or, without a node, with the whole)."""

    message: str
    node: Node | None = None
    span: Span = NOWHERE

    def __str__(self) -> str:
        if self.node is None:
            return self.message
        where = f"{format_span(self.span)}: " if self.span != NOWHERE else ""
        return f"{where}{self.node}: {self.message}: {format_node(self.node)}"


class InvalidGraph(Exception):
    """A graph is malformed: a defect of the compiler, never of its input."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(str(p) for p in problems))
        self.problems = tuple(problems)


def verify(graph: Graph, roots: Iterable[Node] = ()) -> None:
    """Check a graph and that `roots` belong to it.

    Raises:
        InvalidGraph: with every problem found.
    """
    _raise(graph_problems(graph, roots))


def verify_program(program: Program) -> None:
    """Check a lowered selection.

    Raises:
        InvalidGraph: with every problem found.
    """
    problems = graph_problems(program.graph, program_roots(program))
    if not problems:
        facts = abstract(program.graph)
        problems += _program_problems(program, facts)
    _raise(problems)


def verify_residual(residual: Residual) -> None:
    """Check a residual selection.

    Raises:
        InvalidGraph: with every problem found.
    """
    graph = residual.graph
    problems = graph_problems(graph, residual_roots(residual))
    if not problems:
        facts = abstract(graph)
        for guard in residual.guards:
            for node in guard.readings:
                problems += _must_be_bool(graph, node, facts, "a guard")
        for _, node in residual.assumes:
            problems += _must_be_bool(graph, node, facts, "an assumption")
    for pin in residual.pins:
        if pin.free == (pin.parameter is not None):
            problems.append(Problem(f"pin {pin.name}: a pin has a parameter unless it is free"))
        elif pin.parameter is not None:
            leaf = graph.inputs.get(pin.parameter)
            if leaf is not None and leaf.kind != "pin":
                problems.append(Problem(f"pin {pin.name}: its parameter is of kind {leaf.kind}"))
    _raise(problems)


def graph_problems(graph: Graph, roots: Iterable[Node] = ()) -> list[Problem]:
    """Everything that is wrong with a graph."""
    problems: list[Problem] = []
    seen: dict[Hashable, Node] = {}
    for place, node in enumerate(graph.nodes):
        where = graph.origin.get(node.id, NOWHERE)
        found = [*_node_problems(graph, place, node)]
        key = (node.op, tuple(id(a) for a in node.args), value_key(node.attr), node.site)
        if (other := seen.setdefault(key, node)) is not node:
            found.append(f"equal to {other}")
        problems += [Problem(text, node, where) for text in found]
    for root in roots:
        if not _belongs(graph, root):
            problems.append(Problem("a root that is not in the graph", root))
    if not problems:
        facts = abstract(graph)
        for node in graph.nodes:
            if node.op is Op.SELECT and not _can_be_bool(facts[node.args[0].id]):
                where = graph.origin.get(node.id, NOWHERE)
                kinds = "/".join(sorted(facts[node.args[0].id].kinds))
                problems.append(Problem(f"the condition is of kind {kinds}", node, where))
    return problems


def _node_problems(graph: Graph, place: int, node: Node) -> Iterator[str]:
    if node.id != place:
        yield f"its place is {place}"
    for arg in node.args:
        if not _belongs(graph, arg):
            yield f"{arg} is not in the graph"
        elif arg.id >= place:
            yield f"{arg} does not stand before it"
    arity = TABLE[node.op].arity
    if arity not in (-1, len(node.args)):
        yield f"{len(node.args)} arguments instead of {arity}"
    if node.site < 0:
        yield "the site number is negative"
    problem = _attribute_problem(graph, node)
    if problem:
        yield problem


def _attribute_problem(graph: Graph, node: Node) -> str:
    attr = node.attr
    if not is_plain(attr):
        return "the attribute is not a constant"
    if node.op is Op.INPUT:
        return "" if isinstance(attr, str) and attr in graph.inputs else "no such input is declared"
    if node.op is Op.OK:
        return _ok_problem(node)
    if node.op is Op.LOOKUP:
        pairs = isinstance(attr, tuple) and all(isinstance(p, tuple) and len(p) == 2 for p in attr)
        return "" if pairs else "the attribute is not a tuple of pairs"
    if node.op is Op.HASKEY:
        return "" if isinstance(attr, tuple) else "the attribute is not a tuple of keys"
    if node.op is Op.METHOD:
        return "" if attr in STRING_METHODS and node.args else "no such method"
    if attr is not None and node.op not in (Op.CONST, Op.MARK, Op.FAIL):
        return "it takes no attribute"
    return ""


def _ok_problem(node: Node) -> str:
    attr = node.attr
    if not (isinstance(attr, tuple) and len(attr) == 2 and isinstance(attr[0], str)):
        return "the attribute is not (operation, attribute)"
    if attr[0] not in {op.value for op in Op if op not in _STRUCTURAL}:
        return f"no partial operation {attr[0]}"
    arity = TABLE[Op(attr[0])].arity
    return "" if arity in (-1, len(node.args)) else f"{attr[0]} takes {arity} arguments"


def _program_problems(program: Program, facts: Sequence[AbsVal]) -> Iterator[Problem]:
    graph = program.graph
    for guard in program.guards:
        yield from _must_be_bool(graph, guard.path, facts, "the path of a guard")
        yield from _must_be_bool(graph, guard.cond, facts, "the condition of a guard")
    for name, site in program.sites.items():
        if site.name != name:
            yield Problem(f"site {name} calls itself {site.name}")
        if not site.marks:
            yield Problem(f"site {name} has no mark")
        for mark in site.marks:
            yield from _must_be_bool(graph, mark.path, facts, f"the path of site {name}")
            if not 0 <= mark.guards_before <= len(program.guards):
                yield Problem(f"site {name} stands after guard {mark.guards_before}", mark.node)
    for point in program.points:
        for missing in (s for s in point.sites if s not in program.sites):
            yield Problem(f"point {point.name} names no site: {missing}", point.node)
        for node in (n for place in point.places for n in place.marks):
            if not _belongs(graph, node) or not is_place(node):
                yield Problem(f"point {point.name} is overwritten at {node}", point.node)


def _must_be_bool(
    graph: Graph, node: Node, facts: Sequence[AbsVal], what: str
) -> Iterator[Problem]:
    if not _can_be_bool(facts[node.id]):
        kinds = "/".join(sorted(facts[node.id].kinds))
        yield Problem(f"{what} is of kind {kinds}", node, graph.origin.get(node.id, NOWHERE))


def _can_be_bool(fact: AbsVal) -> bool:
    return not fact.kinds or "bool" in fact.kinds


def _belongs(graph: Graph, node: Node) -> bool:
    return 0 <= node.id < len(graph.nodes) and graph.nodes[node.id] is node


def _raise(problems: Sequence[Problem]) -> None:
    if problems:
        raise InvalidGraph(problems)
