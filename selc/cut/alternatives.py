"""Other cuts with as many pins as the one that was chosen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from selc.cut.network import network, proved
from selc.cut.place import _Search as Search
from selc.cut.price import Market
from selc.ir.program import Program
from selc.ir.residual import Pin, Residual

MAX_CUTS: Final = 10
MAX_SOLVED: Final = 60
"""Cuts that are looked at: each found one is taken apart by forbidding one of its places."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """Pins that would keep the batch out just as well; `free` cost no dimension of the tuple."""

    pins: tuple[Pin, ...]
    free: tuple[Pin, ...]


def alternatives(
    program: Program,
    market: Market,
    residual: Residual,
    skip: frozenset[str] = frozenset(),
    limit: int = MAX_CUTS,
) -> list[Alternative]:
    """Cuts of the same number of pins, each tried on the program with those pins."""
    search = Search(program, market, skip)
    chosen = frozenset(p.name for p in residual.pins if not p.free)
    out: list[Alternative] = []
    seen = {chosen}
    for pins in _cuts(program, search, len(chosen)) if chosen else ():
        names = frozenset(p.name for p in pins)
        if names in seen:
            continue
        seen.add(names)
        step = search.grow_free({p.name: p for p in pins})
        if step is None:
            continue
        free = search.without_idle(step).pins.values()
        paid = sorted((p for p in free if not p.free), key=lambda p: p.name)
        idle = sorted((p for p in free if p.free), key=lambda p: p.name)
        out.append(Alternative(tuple(paid), tuple(idle)))
        if len(out) == limit:
            break
    return out


def _cuts(program: Program, search: Search, size: int) -> Iterator[Sequence[Pin]]:
    """Cuts of the first network with `size` pins that cost a dimension, the cheapest first."""
    now = search.look({}, [g for g in program.guards if g.kind == "assume"])
    known = proved(now.left.graph, now.left.images, program.scope)
    net = network(program, now.leaking, known, frozenset())
    todo: list[frozenset[int]] = [frozenset()]
    tried = set(todo)
    for count, closed in enumerate(todo):
        if count == MAX_SOLVED:
            return
        open_ = {v: s for v, s in net.sites.items() if v not in closed}
        pins = search.solve(replace(net, sites=open_), known, first=True)
        paid = [p for p in pins if not p.free]
        if not pins or len(paid) > size:
            continue
        if len(paid) == size:
            yield paid
        for pin in pins:
            more = closed | {net.vertex[m.node.id] for m in pin.site.marks}
            if more not in tried:
                tried.add(more)
                todo.append(more)
