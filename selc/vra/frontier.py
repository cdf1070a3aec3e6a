"""What a guard sees of the inputs: the parameter-free values that it combines with parameters."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from selc.ir.absval import AbsVal, of_values
from selc.ir.domain import Domain
from selc.ir.evaluate import abstract, compile_nodes
from selc.ir.graph import Graph, Node
from selc.ir.op import Op
from selc.ir.value import UNDEF, Value, value_key
from selc.vra.enumerate import Row
from selc.vra.tally import hashes_exactly
from selc.vra.view import View


def frontier(view: View, root: Node, parameters: int) -> list[Node]:
    """The outermost nodes below `root` that read no parameter and are not constants."""
    seen: set[int] = set()
    out: dict[int, Node] = {}
    todo = [root]
    while todo:
        node = todo.pop()
        if node.id in seen:
            continue
        seen.add(node.id)
        if not view.masks[node.id] & parameters:
            if not node.is_const:
                out[node.id] = node
        else:
            todo += node.args
    return [out[k] for k in sorted(out)]


@dataclass(slots=True)
class Faces:
    """The distinct joint values of some nodes, each with the first point at which it was seen."""

    nodes: Sequence[Node]
    exact: bool  # whether keys are the values themselves
    first: dict[Hashable, tuple[Row, Row]] = field(default_factory=dict)  # key -> values, point

    def add(self, columns: Sequence[Sequence[Value]], rows: Sequence[Row]) -> None:
        """Note what is seen at `rows`; one column per node."""
        seen = list(zip(*columns, strict=True)) if columns else [()] * len(rows)
        keys: Sequence[Hashable] = seen if self.exact else [value_key(t) for t in seen]
        new = set(keys) - self.first.keys()
        if new:
            where = dict(zip(reversed(keys), range(len(keys) - 1, -1, -1), strict=True))
            for k in sorted(where[key] for key in new):
                self.first[keys[k]] = (seen[k], rows[k])

    @property
    def shown(self) -> list[tuple[Row, Row]]:
        """Joint values and their points, in the order of the points."""
        return list(self.first.values())


def faces(view: View, nodes: Sequence[Node]) -> Faces:
    """An empty collection for some nodes."""
    return Faces(nodes, all(hashes_exactly(view.facts[n.id].kinds) for n in nodes))


def reduced(
    view: View,
    root: Node,
    axes: Mapping[str, Sequence[Value]],
    names: Sequence[str],
    nodes: Sequence[Node],
    shown: Sequence[Row],
) -> Callable[..., Value]:
    """`root` as a function of parameters `names`, then of the frontier `nodes` (seen as `shown`)."""
    graph = Graph()
    facts: dict[int, AbsVal] = {}
    new: dict[int, Node] = {}
    for k, node in enumerate(nodes):
        column = [row[k] for row in shown]
        defined = [v for v in column if v is not UNDEF]
        leaf = graph.input(f"={k}", "runtime", Domain(values=tuple(defined[:1]) or (None,)))
        complete = len(defined) == len(column)
        facts[leaf.id] = (
            of_values(defined, complete) if defined else AbsVal((), frozenset(), defined=False)
        )
        new[node.id] = leaf
    for node in view.graph.cone([root]):
        if node.id in new:
            continue
        if node.op is Op.INPUT and node.attr in names:
            assert isinstance(node.attr, str)
            new[node.id] = graph.input(node.attr, "pin", Domain(values=tuple(axes[node.attr])))
        elif all(a.id in new for a in node.args) and node.op is not Op.INPUT:
            new[node.id] = graph.add(
                node.op, *(new[a.id] for a in node.args), attr=node.attr, site=node.site
            )
    order = [*names, *(f"={k}" for k in range(len(nodes)))]
    function = compile_nodes(graph, [new[root.id]], order, abstract(graph, facts))
    return lambda *args: function(*args)[0]
