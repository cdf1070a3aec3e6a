"""The text form: what it looks like, and that it reads back as it was."""

from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from selc.diag.span import Span
from selc.ir.domain import Domain
from selc.ir.dump import dump, format_span
from selc.ir.graph import Graph
from selc.ir.literal import LiteralError, format_name, format_value, parse_value
from selc.ir.op import Op
from selc.ir.read import ReadError, read, read_span, same_graph
from selc.ir.value import UNDEF, Symbol, same
from tests.unit.ir.strategies import constants, graphs, spans

EXAMPLE = """\
graph
input m: runtime 1..4096 step 2
input algo: request {"auto", None, 0.5, True}
v0 = input m
v1 = const 64
v2 = floordiv v0, v1  ; tile.py:14:8-20
v3 = input algo
v4 = const "auto"
v5 = eq v3, v4 !3  ; tile.py:15:8-16:4
v6 = const <dtype torch.bfloat16 2>
v7 = select v5, v2, v6
v8 = ok v0, v1 [("floordiv", None)]
v9 = mark v7 ["f.x#1"]
"""


def build() -> Graph:
    g = Graph()
    m = g.input("m", "runtime", Domain(1, 4096, 2))
    algo_domain = Domain(values=("auto", None, 0.5, True))
    tile = g.add(Op.FLOORDIV, m, g.const(64), origin=Span("tile.py", 14, 8, 14, 20))
    algo = g.input("algo", "request", algo_domain)
    auto = g.add(Op.EQ, algo, g.const("auto"), site=3, origin=Span("tile.py", 15, 8, 16, 4))
    value = g.select(auto, tile, g.const(Symbol("dtype", "torch.bfloat16", 2)))
    g.add(Op.OK, m, g.const(64), attr=("floordiv", None))
    g.add(Op.MARK, value, attr="f.x#1")
    return g


def test_example() -> None:
    assert dump(build()) == EXAMPLE
    assert same_graph(read(EXAMPLE), build())


def test_only_what_the_roots_read() -> None:
    g = build()
    assert dump(g, [g.nodes[2]]).split("\n") == [
        "graph",
        "input m: runtime 1..4096 step 2",
        "v0 = input m",
        "v1 = const 64",
        "v2 = floordiv v0, v1  ; tile.py:14:8-20",
        "",
    ]
    assert read(dump(g, [g.nodes[7]])).nodes[-1].op is Op.SELECT


@settings(max_examples=300, deadline=None)
@given(graphs())
def test_round_trip(graph: Graph) -> None:
    text = dump(graph)
    again = read(text)
    assert same_graph(again, graph)
    assert dump(again) == text


@given(st.one_of(constants, st.floats(), st.text().map(lambda s: Symbol(s, s, 4))))
def test_constants_round_trip(value: object) -> None:
    assert same(parse_value(format_value(value)), value)


@pytest.mark.parametrize(
    "value",
    [
        (),
        (1,),
        ((), (None,)),
        -0.0,
        math.inf,
        -math.inf,
        struct.unpack("<d", bytes.fromhex("010000000000f8ff"))[0],
        1 << 60000,
        -(1 << 60000),
        '\ud800 " ; \n',
        UNDEF,
    ],
    ids=lambda v: format_value(v)[:12],
)
def test_constant(value: object) -> None:
    text = format_value(value)
    assert "\n" not in text
    assert same(parse_value(text), value)


def test_one_is_not_true() -> None:
    assert [format_value(v) for v in (1, True, 1.0, "1")] == ["1", "True", "1.0", '"1"']


@pytest.mark.parametrize("name", ["m", "down.x", "[0]", "max(lens)", "None", "", "1a", "é", 'a"b'])
def test_names(name: str) -> None:
    g = Graph()
    g.input(name, "runtime", Domain(0, 1))
    assert same_graph(read(dump(g)), g)
    assert (format_name(name) == name) == (name in ("m", "down.x"))


@given(spans().filter(lambda s: s.line > 0))
def test_spans_round_trip(span: Span) -> None:
    text = format_span(span)
    assert "\n" not in text
    assert read_span(text) == span


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("v0 = frob", "line 3, column 6: no operation 'frob'"),
        ("v0 = input x", "no input 'x' is declared"),
        ("v0 = neg v1", "line 3, column 10: v1 is used before its line"),
        ("v0 = add", "add takes 2 arguments"),
        ("v0 = const 1 2", "unexpected text at the end of the line"),
        ("v0 = const", "expected a constant"),
        ("v0 = const 1 !x", "expected a constant"),
        ("v0 = const 1  ; nowhere", "expected path:line:column-end"),
        ("v0 = const 1\nv1 = const 1", "line 4, column 1: this node is already there"),
        ("what", "expected `vN = operation`"),
    ],
)
def test_errors(line: str, message: str) -> None:
    with pytest.raises(ReadError) as error:
        read(f"graph\ninput m: runtime 0..1\n{line}\n")
    assert message in str(error.value)


def test_no_graph() -> None:
    with pytest.raises(ReadError, match="no line says `graph`"):
        read("v0 = const 1")
    with pytest.raises(LiteralError):
        parse_value("1 2")
