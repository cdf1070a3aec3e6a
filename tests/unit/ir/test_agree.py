"""Every operation, by every evaluator: the rows of the table, the interpreter, compiled functions.

And what is believed of a node before running it (its abstract value) holds of what it then is.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from selc.ir import interp
from selc.ir.absval import check_sound
from selc.ir.dump import dump
from selc.ir.evaluate import abstract, compile_nodes
from selc.ir.graph import Graph
from selc.ir.op import Op, TooWide, evaluate
from selc.ir.value import same
from selc.ir.verify import verify
from tests.unit.ir.strategies import bindings, graphs

COMPUTED = [op for op in Op if op not in (Op.CONST, Op.INPUT)]


def check_graph(graph: Graph, inputs: dict[str, object]) -> None:
    """All evaluators agree on every node."""
    verify(graph, graph.nodes)
    try:
        values = interp.run(graph, graph.nodes, inputs)
    except TooWide:
        return
    facts = abstract(graph)
    for node, value, fact in zip(graph.nodes, values, facts, strict=True):
        assert check_sound(node, value, fact), (node, value, fact, dump(graph))
        if node.op in COMPUTED:
            args = tuple(values[a.id] for a in node.args)
            assert same(evaluate(node.op, node.attr, args), value), (node, dump(graph))
    compiled = compile_nodes(graph, graph.nodes, list(inputs))(*inputs.values())
    for node, value, other in zip(graph.nodes, values, compiled, strict=True):
        assert same(value, other), (node, value, other, dump(graph))


@pytest.mark.parametrize("op", COMPUTED, ids=lambda op: op.value)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_op(op: Op, data: st.DataObject) -> None:
    graph = data.draw(graphs(size=2, last=op))
    check_graph(graph, data.draw(bindings(graph)))


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_graph(data: st.DataObject) -> None:
    graph = data.draw(graphs())
    check_graph(graph, data.draw(bindings(graph)))


def test_every_operation_has_a_meaning() -> None:
    structural = {Op.CONST, Op.INPUT, Op.SELECT, Op.OK, Op.FAIL}
    assert set(interp._MEANING) == set(Op) - structural
