"""What forward ranges decide."""

from __future__ import annotations

from collections.abc import Sequence

from selc.ir.absval import AbsVal
from selc.ir.evaluate import abstract
from selc.ir.graph import Graph, Node
from selc.ir.op import Op
from selc.passes.algebra import algebra, by_divisor, divisors
from selc.passes.rebuild import Images, rebuild


def ranges(graph: Graph, roots: Sequence[Node], given: Sequence[Node] = ()) -> tuple[Graph, Images]:
    """Replace what can take one value only, and give integer operations one form.

    Before (`m` in 1..1024):

        v1 = mul v0, 64
        v2 = mod v1, 64
        v3 = gt v0, 2000
        v4 = floordiv v0, 64
        v5 = lt v4, 2
        v6 = min2 v0, 4096

    After: `v2` is 0, `v3` is False, `v5` is `le v0, 127` and `v6` is `v0`.
    """
    facts = abstract(graph)
    of = divisors(graph, facts)

    def rule(new: Graph, node: Node, args: tuple[Node, ...]) -> Node | None:
        return decide(new, node, args, facts[node.id], [facts[a.id] for a in node.args], of)

    return rebuild(graph, roots, rule)


def decide(
    new: Graph,
    node: Node,
    args: tuple[Node, ...],
    fact: AbsVal,
    of_args: Sequence[AbsVal],
    of: Sequence[int],
) -> Node | None:
    """The image of a node, given what it and its arguments can be, and divisors of these."""
    op = node.op
    if op in (Op.CONST, Op.FAIL):
        return None
    if fact.values is not None and len(fact.values) == 1:
        return new.const(fact.values[0])
    if op is Op.SELECT:
        values = of_args[0].values
        if values is not None and len(values) == 1:
            return args[1] if values[0] else args[2]
        return None
    if op in (Op.INPUT, Op.MARK, Op.OK):
        return None
    made = by_divisor(new, op, args, [of[a.id] for a in node.args], of_args)
    return algebra(new, op, args, of_args) if made is None else made
