"""A graph prepared for analysis: abstract values, inputs read, conditions that must hold.

The graph is a fork: nodes are shared with the original, new ones are added only here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from selc.ir.absval import AbsVal, of_domain, of_values, transfer
from selc.ir.graph import Graph, Node
from selc.ir.op import Op
from selc.ir.program import Program
from selc.ir.residual import Residual
from selc.ir.value import Value


def fork(graph: Graph) -> Graph:
    """A graph with the same nodes, to which nodes can be added without the original seeing them."""
    copy = Graph()
    copy.nodes = list(graph.nodes)
    copy.inputs = dict(graph.inputs)
    copy._interned = dict(graph._interned)
    return copy


@dataclass(slots=True)
class View:
    """A forked graph with side tables by node id.

    `masks[id]` has one bit per input read, in the order of `names`. `admits` are the assumes that
    are not certain to hold: an input is admitted iff all of them are True. `holds` are a program's
    guards, in order (assumes and certain ones are None).
    """

    graph: Graph
    scope: str
    names: tuple[str, ...]
    facts: list[AbsVal]
    masks: list[int]
    admits: tuple[Node, ...] = ()
    holds: tuple[Node | None, ...] = ()
    pieces: dict[tuple[str, ...], object] = field(default_factory=dict)  # of `sweep`

    def extend(self) -> None:
        """Fill the tables for nodes added since."""
        bit = {name: 1 << k for k, name in enumerate(self.names)}
        for node in self.graph.nodes[len(self.facts) :]:
            if node.op is Op.INPUT:
                assert isinstance(node.attr, str)
                self.facts.append(of_domain(self.graph.inputs[node.attr].domain))
                self.masks.append(bit[node.attr])
                continue
            self.facts.append(
                of_values((node.attr,))
                if node.op is Op.CONST
                else transfer(node, [self.facts[a.id] for a in node.args])
            )
            mask = 0
            for a in node.args:
                mask |= self.masks[a.id]
            self.masks.append(mask)

    def certain(self, node: Node) -> bool:
        """Whether the node is True on every input, by ranges."""
        fact = self.facts[node.id]
        return fact.single and fact.values == (True,)

    def inputs_of(self, mask: int) -> tuple[str, ...]:
        """The names of the bits of a mask."""
        return tuple(name for k, name in enumerate(self.names) if mask >> k & 1)

    def mask_of(self, names: Iterable[str]) -> int:
        """The mask of some names."""
        wanted = set(names)
        return sum(1 << k for k, name in enumerate(self.names) if name in wanted)

    def mask(self, nodes: Iterable[Node]) -> int:
        """The inputs that any of the nodes reads."""
        out = 0
        for node in nodes:
            out |= self.masks[node.id]
        return out

    def closure(self, mask: int, links: Sequence[Node]) -> int:
        """A set of inputs with everything that `links` connect to it."""
        grown = True
        while grown:
            grown = False
            for node in links:
                other = self.masks[node.id]
                if other & mask and other & ~mask:
                    mask |= other
                    grown = True
        return mask

    def size(self, mask: int) -> int:
        """The number of points of the product of the domains of some inputs."""
        out = 1
        for name in self.inputs_of(mask):
            out *= len(self.graph.inputs[name].domain)
        return out

    def first(self, name: str) -> Value:
        """The first declared value of an input."""
        return self.graph.inputs[name].domain[0]


def _view(graph: Graph, scope: str) -> View:
    view = View(fork(graph), scope, tuple(graph.inputs), [], [])
    view.extend()
    return view


def of_program(program: Program) -> View:
    """The view of an unpinned program, with the conditions of its guards."""
    view = _view(program.graph, program.scope)
    g = view.graph
    conditions = [g.fold(Op.SELECT, x.path, x.cond, g.const(True)) for x in program.guards]
    view.extend()
    live = [None if view.certain(n) else n for n in conditions]
    view.admits = tuple(
        n for x, n in zip(program.guards, live, strict=True) if x.kind == "assume" and n is not None
    )
    view.holds = tuple(
        n if x.kind == "require" else None for x, n in zip(program.guards, live, strict=True)
    )
    return view


def of_residual(residual: Residual) -> View:
    """The view of a residual program."""
    view = _view(residual.graph, residual.scope)
    view.admits = tuple(n for _, n in residual.assumes if not view.certain(n))
    return view
