"""How points become nested records."""

from __future__ import annotations

from selc.codegen.names import point_path
from selc.codegen.rt._runtime import record_type
from selc.codegen.tree import shape_of


def build(names: list[str]):
    shape = shape_of([point_path(n) for n in names])
    scope = {c.name: record_type(c.name, c.fields) for c in shape.classes}
    scope |= {f"o{k}": k for k in range(len(names))}
    choice = eval(shape.expression, scope)
    found = []
    for path in shape.access:
        value = choice
        for part in path.split("."):
            value = getattr(value, part)
        found.append(value)
    assert found == list(range(len(names)))
    return choice


def test_nested_records_nest():
    choice = build(["up.K", "down.BLOCK_SIZE_K", "up.deep.x", "path"])
    assert choice.down.BLOCK_SIZE_K == 1
    assert choice.up.deep.x == 2
    assert choice._fields == ("up", "down", "path")
    assert repr(choice.down) == "Choice_down(BLOCK_SIZE_K=1)"


def test_tuples_are_indexed():
    choice = build(["[1]", "[0].x", "[0].y"])
    assert choice[1] == 0
    assert choice._1 == 0
    assert choice[0].y == 2
    pair = build(["[0]", "[1]"])
    assert pair == (0, 1)
    assert pair._fields == ("_0", "_1")


def test_indices_beside_names():
    choice = build(["kernel.BLOCK", "kernel.[0]", "call"])
    assert choice.kernel._0 == 1
    assert choice.call == 2


def test_other_names_and_collisions():
    choice = build(["a b", "a_b", "kernel#2.M", "class", "_x", "count", "result"])
    assert choice.a_b == 0
    assert choice.a_b_2 == 1
    assert choice.kernel_2_M == 2
    assert choice.class_ == 3
    assert choice.x == 4
    assert choice.count == 5


def test_a_point_that_is_also_a_record_stays_flat():
    choice = build(["down", "down.K"])
    assert choice.down == 0
    assert choice.down_K == 1
