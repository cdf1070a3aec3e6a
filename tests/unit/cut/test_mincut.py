"""The cut is the cheapest there is, and of the cheapest the one nearest the sinks."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from selc.cut.mincut import min_vertex_cut
from selc.cut.price import weight


def separated(edges, sources, sinks, cut) -> bool:
    seen = {v for v in sources if v not in cut}
    todo = list(seen)
    while todo:
        u = todo.pop()
        for a, b in edges:
            if a == u and b not in seen and b not in cut:
                seen.add(b)
                todo.append(b)
    return not seen & set(sinks)


def reachable_from(edges, sources, cut) -> set[int]:
    seen = set(sources)
    todo = [v for v in sources if v not in cut]
    while todo:
        u = todo.pop()
        for a, b in edges:
            if a == u and b not in seen:
                seen.add(b)
                if b not in cut:
                    todo.append(b)
    return seen


@st.composite
def networks(draw: st.DrawFn):
    n = draw(st.integers(2, 9))
    pairs = st.tuples(st.integers(0, n - 2), st.integers(1, n - 1)).filter(lambda e: e[0] < e[1])
    edges = sorted(set(draw(st.lists(pairs, max_size=18))))
    prices = {v: draw(st.integers(1, 5)) for v in range(n) if draw(st.integers(0, 3))}
    return edges, prices, [0], [n - 1]


@settings(max_examples=150, deadline=None)
@given(networks())
def test_cheapest_and_nearest(net) -> None:
    edges, prices, sources, sinks = net
    found = min_vertex_cut(edges, prices, sources, sinks)
    options = [
        set(c)
        for k in range(len(prices) + 1)
        for c in itertools.combinations(prices, k)
        if separated(edges, sources, sinks, set(c))
    ]
    if found is None:
        assert not options
        return
    least = min(sum(prices[v] for v in c) for c in options)
    assert found.weight == least == sum(prices[v] for v in found.vertices)
    cheapest = [c for c in options if sum(prices[v] for v in c) == least]
    assert set(found.vertices) in cheapest
    for c in cheapest:  # no other one has anything beyond it
        assert reachable_from(edges, sources, c) <= reachable_from(edges, sources, found.vertices)


def test_pins_then_grid_then_names() -> None:
    sites = 5000
    one_large = weight(1024, False, False, sites)
    assert one_large < 2 * weight(1, True, False, sites)
    assert weight(3, False, False, sites) < weight(4, True, False, sites)
    assert sites * weight(1024, False, True, sites) < weight(1, True, False, sites)
    assert weight(2, True, False, sites) < weight(2, False, False, sites)


def test_nothing_to_cut() -> None:
    found = min_vertex_cut([(0, 1)], {}, [0], [2])
    assert found is not None
    assert not found.vertices
