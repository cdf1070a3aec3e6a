"""What a guard sees of the inputs: the parameter-free values that it combines with parameters."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from selc.ir.absval import MAX_SET, AbsVal, of_domain, of_values
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
    """`root` as a function of parameters `names`, then of frontier `nodes` (seen as `shown`)."""
    leaves = [n for n in view.graph.cone([root]) if n.op is Op.INPUT and n.attr in names]
    by_name = {str(n.attr): n for n in leaves}
    inputs = [by_name[n] for n in names]
    columns: list[Sequence[Value]] = [axes[n] for n in names]
    columns += [[row[k] for row in shown] for k in range(len(nodes))]
    function, _ = rebuilt(view, [root], [*inputs, *nodes], columns)
    return lambda *args: function(*args)[0]


def rebuilt(
    view: View,
    roots: Sequence[Node],
    nodes: Sequence[Node],
    columns: Sequence[Sequence[Value] | None],
    fixed: Mapping[int, Value] | None = None,
    fallback: Mapping[int, Value] | None = None,
    known: Sequence[AbsVal] | None = None,
) -> tuple[Callable[..., Row], list[bool]]:
    """`roots` as functions of `nodes`, each of which has the values of its column.

    `fixed` nodes are constants, `fallback` ones where they cannot be computed from `nodes`. `known`
    are facts of the nodes that hold wherever the result is asked for. Also tells which roots could
    be computed; the others are undefined.
    """
    graph = Graph()
    facts: dict[int, AbsVal] = {}
    new: dict[int, Node] = {}
    origin: dict[int, Node] = {}
    for k, node in enumerate(nodes):
        leaf = graph.input(f"={k}", "runtime", Domain(values=(None,)))
        facts[leaf.id] = _column(columns[k] or ())
        origin[leaf.id] = node
        new[node.id] = leaf
    computed = set(new)
    for node in view.graph.cone(roots):
        if node.id in new:
            continue
        if fixed is not None and node.id in fixed:
            new[node.id] = graph.const(fixed[node.id])
        elif node.op is not Op.INPUT and all(a.id in new for a in node.args):
            new[node.id] = graph.add(
                node.op, *(new[a.id] for a in node.args), attr=node.attr, site=node.site
            )
        elif fallback is not None and node.id in fallback:
            new[node.id] = graph.const(fallback[node.id])
            continue
        else:
            continue
        computed.add(node.id)
        origin.setdefault(new[node.id].id, node)
    failing = graph.const(UNDEF)
    shown = [new.get(r.id, failing) for r in roots]
    order = [f"={k}" for k in range(len(nodes))]
    of_all = abstract(graph, facts) if known is None else _carried(graph, facts, origin, known)
    function = compile_nodes(graph, shown, order, of_all)
    return function, [r.id in computed for r in roots]


def _carried(
    graph: Graph,
    own: Mapping[int, AbsVal],
    origin: Mapping[int, Node],
    known: Sequence[AbsVal],
) -> list[AbsVal]:
    """Facts of a rebuilt graph, from those of the nodes that it was made of."""
    out = []
    for node in graph.nodes:
        if node.is_const:
            out.append(of_values((node.attr,)))
        elif node.op is Op.FAIL:
            out.append(AbsVal((), frozenset(), defined=False))
        else:
            out.append(own.get(node.id) or known[origin[node.id].id])
    return out


def _column(values: Sequence[Value]) -> AbsVal:
    if isinstance(values, range) and len(values) > MAX_SET:
        return of_domain(Domain(values[0], values[-1], values.step))
    defined = [v for v in values if v is not UNDEF]
    if not defined:
        return AbsVal((), frozenset(), defined=False)
    return of_values(defined, len(defined) == len(values))
