"""The pieces: joins, cuts, conditions, sequences, thresholds, what a site gives away."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from selc.ir.domain import Domain
from selc.ir.op import Op
from selc.passes.vertexcut import INFINITE, vertex_cut
from selc.vra import interface, smt
from selc.vra.candidates import all_candidates
from selc.vra.conditions import expanded, literals, narrowed
from selc.vra.injective import all_injective
from selc.vra.relation import Join, Table, factors, merge, tables_of
from selc.vra.search import admitted_example, lattice
from selc.vra.thresholds import thresholds
from selc.vra.view import of_program
from tests.unit.vra.build import program


def span(lo, hi, kind="runtime"):
    return (kind, Domain(lo, hi))


@pytest.mark.parametrize("seed", range(12))
def test_join_is_the_filtered_product(seed: int) -> None:
    draw = random.Random(seed)
    sizes = [draw.randrange(1, 5) for _ in range(4)]
    tables = []
    for _ in range(draw.randrange(4)):
        columns = tuple(sorted(draw.sample(range(4), draw.randrange(1, 4))))
        cells = itertools.product(*(range(sizes[c]) for c in columns))
        tables.append(Table(columns, frozenset(c for c in cells if draw.random() < 0.7)))
    want = [
        row
        for row in itertools.product(*map(range, sizes))
        if all(tuple(row[c] for c in t.columns) in t.cells for t in tables)
    ]
    join = Join(sizes, merge(tables))
    assert join.count() == len(want)
    assert list(Join(sizes, merge(tables)).rows()) == want
    names, axes = list("abcd"), [list(range(n)) for n in sizes]
    again = tables_of(factors(merge(tables), names, axes), names, axes)
    assert Join(sizes, again).count() == len(want)


def test_infinite_keys_are_no_integers() -> None:
    def body(b):
        x = b.input("x")
        b.point("a", x.op(Op.LOOKUP, attr=((math.inf, 1), (3.0, 2), (math.nan, 3), (7, 4))))
        b.point("b", b.op(Op.IN, x, (math.inf, 3, -math.inf)))

    p = program(body, {"x": span(0, 10**9)})
    view = of_program(p)
    session = smt.Session(view)
    for point, value, want in ((0, 2, 3), (0, 4, 7), (0, 1, None), (1, True, 3)):
        node = p.points[point].node
        (term,) = session.encoder.encode([node], view.facts)
        known = [] if term.defined is None else [term.defined]
        found, decided = session.solve([*known, session.encoder.equals(term, value)])
        assert decided
        assert found == (None if want is None else {"x": want})


def test_membership_in_a_tuple_never_raises() -> None:
    def body(b):
        b.point("a", b.partial(Op.IN, b.input("x"), (1, "a", None)))

    p = program(body, {"x": span(0, 10**9)})
    view = of_program(p)
    guard = next(g for g in p.guards if g.origin == "partial")
    assert view.facts[guard.cond.id].values == (True,)


def test_cut_is_the_cheapest() -> None:
    def body(b):
        x, y = b.input("x"), b.input("y")
        q = b.site("f.q", x // 100)
        s = b.site("f.s", q + y)
        b.point("s", s.op(Op.MUL, s))

    p = program(body, {"x": span(0, 100_000), "y": span(0, 3)})
    view = of_program(p)
    root = p.points[0].node
    cone = view.graph.cone([root])
    varying = [n for n in cone if not n.is_const]

    def weight(n):
        fact = view.facts[n.id]
        return INFINITE if fact.lo is None else (fact.hi - fact.lo + 1)

    cut = vertex_cut(varying, lambda n: n.args, weight, [root], 1 << 30)
    assert cut is not None
    assert sum(weight(n) for n in cut) == 1004
    assert len(cut) == 1
    assert vertex_cut(varying, lambda n: n.args, weight, [root], 100) is None
    joint = interface.joint(view, [root])
    assert joint is not None
    assert {v for (v,) in joint} == {k * k for k in range(1004)}


def test_conditions_narrow_what_they_compare() -> None:
    def body(b):
        x = b.input("x")
        half = x.op(Op.FLOAT32).op(Op.MUL, 0.5)
        early = b.both(half >= 50.0, x > 10)
        b.site("f.early", early)
        b.point("p", b.if_(early, 0, x * 3))

    p = program(body, {"x": span(1, 1 << 20)})
    view = of_program(p)
    node = p.points[0].node
    cases = expanded(view, literals(node.args[0], False))
    assert len(cases) == 2
    cone = view.graph.cone([node])
    (facts,) = [f for f in (narrowed(view, cone, case) for case in cases) if f is not None]
    assert (facts[node.args[2].id].lo, facts[node.args[2].id].hi) == (3, 297)
    found = interface.cases(view, node, view.graph.const(True))
    assert found is not None
    assert {v for c in found for v in c.values.values()} == {0, *range(3, 300, 3)}


def test_large_candidates_are_exact_through_an_interface() -> None:
    """The splits of a load are chosen by a float loop over products of large inputs."""

    def body(b):
        n, m = b.input("n"), b.input("m")
        b.assume(n * m <= 1 << 20)
        total = b.site("f.total", n * (-(-m // 128)))
        waves = b.site("f.waves", total.op(Op.FLOAT32) / 132)
        best = b.site("f.best", 1)
        for s in range(2, 9):
            eff = (waves * float(s)).op(Op.FLOAT32) / (waves * float(s)).op(Op.CEIL)
            best = b.site("f.best", b.if_(eff > 0.9, s, best))
        b.point("splits", b.site("f.splits", b.if_(total >= 100, 1, best)), sites=["f.splits"])

    p = program(body, {"n": span(1, 1024), "m": span(1, 131_072)})
    got = all_candidates(p, list(p.sites.values()))
    want: set[int] = set()
    for total in range(1, 101):
        waves = total / 132  # exact enough: integers below 2**24 are binary32
        best = 1
        for s in range(2, 9):
            w = waves * s
            if float32(w) / -(-w // 1) > 0.9:
                best = s
        want.add(1 if total >= 100 else best)
    c = got["f.splits"]
    assert c.exact
    assert set(c.values or ()) == want
    for i, point in c.witness.items():
        assert point["n"] * point["m"] <= 1 << 20  # type: ignore[operator]
        assert 0 <= i < len(c.values or ())


def float32(x: float) -> float:
    import struct

    return float(struct.unpack("<f", struct.pack("<f", x))[0])


def test_thresholds() -> None:
    def body(b):
        m, n = b.input("m"), b.input("n")
        b.site("f.a", m > 4096)
        b.site("f.b", (m // 64) <= 3)
        b.site("f.c", m.op(Op.MIN2, 100))
        b.site("f.d", m * n >= 30)
        b.point("p", m > 4096)

    p = program(body, {"m": span(1, 1 << 22), "n": ("request", Domain(1, 3))})
    got = thresholds(p)
    assert set(got["m"]) >= {101, 256, 4097}
    assert set(got["m"]) <= {30, 15, 10, 101, 256, 4097}
    assert {30, 10} <= set(got["m"])
    assert "n" not in got


def test_sites_that_give_an_input_away() -> None:
    def body(b):
        m, u, r = b.input("m"), b.input("u"), b.input("r")
        b.site("f.same", m * 2 + 1)
        b.site("f.half", m // 2)
        b.site("f.pair", m * 4 + u)
        b.site("f.flip", 3 - u)
        b.site("f.small", r * 5)
        b.point("p", m)

    p = program(body, {"m": span(1, 200), "u": ("unpinnable", Domain(0, 3)), "r": span(0, 63)})
    got = all_injective(p, list(p.sites.values()))
    assert got["f.same"] == ("m",)
    assert got["f.half"] == ()
    assert got["f.pair"] == ("m", "u")
    assert got["f.flip"] == ("u",)
    assert got["f.small"] == ()
    assert all_injective(p, list(p.sites.values()), budget=4)["f.same"] == ("m",)


def test_examples_and_lattice() -> None:
    def body(b):
        m, n = b.input("m"), b.input("n")
        b.assume(m * n >= 4000)
        b.assume(n < 50)
        b.point("p", m)

    spec = {"m": span(1, 100), "n": span(1, 100), "k": span(7, 9)}
    view = of_program(program(body, spec))
    found = admitted_example(view)
    assert found.example is not None
    assert found.example["m"] * found.example["n"] >= 4000  # type: ignore[operator]
    assert found.example["k"] == 7
    rows = list(lattice(view, ["m", "n"], 100))
    assert len({m for m, _ in rows}) > 60
    assert rows == list(lattice(view, ["m", "n"], 100))

    def never(b):
        b.assume(b.input("m") > 100)

    none = admitted_example(of_program(program(never, {"m": span(1, 100)})))
    assert none.example is None
    assert none.decided
