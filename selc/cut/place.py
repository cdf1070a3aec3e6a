"""Where the pins go: cut, rebuild R, cut what R still lets through, until nothing gets through."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from selc.cut.mincut import VertexCut, min_vertex_cut
from selc.cut.network import Network, Proved, network, proved
from selc.cut.price import BatchPoint, Least, Market, weight
from selc.cut.report import no_cut
from selc.ir.graph import Graph, Node
from selc.ir.program import Guard, Program, Site
from selc.ir.residual import Candidates, Pin, Residual
from selc.ir.value import Value, value_key
from selc.passes.depend import batch_mask, mask_of, masks
from selc.passes.readings import site_value, tree_of
from selc.passes.rebuild import Images
from selc.passes.residual import PointsOnly, residual_points, residualize
from selc.passes.simplify import simplify

MAX_ROUNDS: Final = 64
"""How often pins may be added before the cut of the unpruned program is taken instead."""


_SMALL: Final = 600
"""Up to so many nodes it is always tried whether fewer pins do."""


def choose_pins(
    program: Program,
    candidates: Callable[[Site], Candidates],
    is_injective: Callable[[Site], bool],
    batch_point: BatchPoint = lambda: None,
    max_candidates: int = 1024,
    skip: frozenset[str] = frozenset(),
    least: Callable[[Site], Least] = lambda site: Least(),
    leaks: Callable[[Sequence[Site]], bool] = lambda sites: False,
) -> Residual:
    """Choose the pins of a program and build R.

    `candidates` and `is_injective` tell about one site; `batch_point` gives values of all batch
    inputs that are admitted with every request, if there are such. `least` tells at no cost what a
    site has been seen to take: only sites that may be in the cut are asked about. `leaks` tells
    whether the batch has been seen to get past some sites.

    Raises:
        Refused: SEL930, every cut contains a value that cannot be a pin.
    """
    market = Market(program, candidates, is_injective, batch_point, max_candidates, least)
    search = _Search(program, market, skip, leaks)
    pins = search.pins()
    residual = residualize(program, pins, skip)
    _, reads = masks(residual.graph)
    batch = batch_mask(residual.graph, residual.scope)
    moved = [p.name for p, n in residual.points if p.role == "bits" and reads[n.id] & batch]
    assert not moved, f"the batch still moves {', '.join(moved)}"
    return residual


@dataclass(slots=True)
class _Step:
    """One set of pins with what it leaves of the program."""

    pins: dict[str, Pin]
    left: PointsOnly
    leaking: list[Node]  # bits points of G0 that the batch still moves


@dataclass(slots=True)
class _Search:
    program: Program
    market: Market
    skip: frozenset[str]
    leaks: Callable[[Sequence[Site]], bool] = lambda sites: False
    _free: dict[str, Pin | None] = field(default_factory=dict)
    _alone: tuple[Graph, Images, dict[str, Node]] | None = None
    _seen: dict[frozenset[tuple[str, bool]], _Step] = field(default_factory=dict)
    _reads: tuple[tuple[str, ...], list[int]] | None = None
    _moved: list[Node] = field(default_factory=list)
    paid_rounds: int = 0

    def pins(self) -> dict[str, Pin]:
        """The fewest pins that were found to be enough."""
        found = self.grow()
        if found is None:
            found = self.last_resort()
        elif self.paid_rounds > 1 or (
            _paid(found.pins) > 1 and len(found.left.graph.nodes) <= _SMALL
        ):
            found = self.fewer(found)
        if self.grid(found.pins) > 2 and "cut" not in self.skip:
            found = self.by_structure(found)
        return self.without_idle(found).pins

    def step(self, pins: Mapping[str, Pin]) -> _Step:
        """What the batch still moves under some pins."""
        key = frozenset((n, p.free) for n, p in pins.items())
        if key not in self._seen:
            self._seen[key] = self.look(pins, ())
        return self._seen[key]

    def look(self, pins: Mapping[str, Pin], given: Sequence[Guard]) -> _Step:
        """Simplify the choices under pins and see which still read the batch."""
        left = residual_points(self.program, pins, self.skip, given)
        _, reads = masks(left.graph)
        batch = batch_mask(left.graph, self.program.scope)
        bits = [p.node for p in self.program.points if p.role == "bits"]
        leaking = [n for n, e in zip(bits, left.points, strict=True) if reads[e.id] & batch]
        return _Step(dict(pins), left, leaking)

    def grow(self) -> _Step | None:
        """Add pins until the batch moves no choice; None if some choice cannot be protected so.

        The first cut is made where the assumes hold; R has to be right without them.
        """
        assumes = [g for g in self.program.guards if g.kind == "assume"]
        now = self.look({}, assumes)
        self._moved = now.leaking
        first = bool(now.leaking)
        if not first:
            now = self.step({})
        for _ in range(MAX_ROUNDS):
            if not now.leaking:
                return now
            more = self.cut(now, first)
            if not more:
                return None
            self.paid_rounds += any(not p.free for p in more)
            now = self.step({**now.pins, **{p.name: p for p in more}})
            first = False
        return None

    def cut(self, now: _Step, first: bool = False) -> list[Pin]:
        """Sites that stop what still gets through, by what R proves, or else by structure."""
        still = frozenset(m.node.id for p in now.pins.values() for m in p.site.marks)
        known = proved(now.left.graph, now.left.images, self.program.scope)
        for knowledge in (known, None):
            net = network(self.program, now.leaking, knowledge, still, self.ties(now.pins))
            found = self.at_points(net, known, first) if "cut" in self.skip else []
            found = found or self.solve(net, known, first)
            if found:
                return found
        return []

    def at_points(self, net: Network, known: Proved | None, first: bool) -> list[Pin]:
        """No cut: every choice that still moves is pinned itself, if it can be."""
        out: list[Pin] = []
        for v in net.sinks:
            out += self.solve(
                replace(net, sinks=[v], sites={v: net.sites.get(v, [])}), known, first
            )
        return out

    def ties(self, pins: Mapping[str, Pin]) -> dict[int, list[Node]]:
        """What each field of a pinned class reads besides: all fields, and what must be given."""
        program = self.program
        out: dict[int, list[Node]] = {}
        for cls in program.classes:
            if cls.name in pins:
                fields = [program.point(f) for f in cls.fields]
                read = [p.node.args[0] for p in fields]
                read += [program.point(n).node for n, _ in cls.given]
                ends = [p.node.id for p in fields]
                ends += [i for f in cls.fields for i in tree_of(program, f)[1]]
                out.update(dict.fromkeys(ends, read))
        return out

    def solve(
        self, net: Network, known: Proved | None, first: bool, most: int | None = None
    ) -> list[Pin]:
        """The pins of one minimum cut; [] if there is none, or none lighter than `most`."""
        if not net.sinks:
            return []
        for own_requests in (False, True):
            found = self.cheapest(net, known, own_requests, first, most)
            if found:
                return found
            if self.program.scope == "launch":
                break
        return []

    def cheapest(
        self,
        net: Network,
        known: Proved | None,
        own_requests: bool,
        first: bool,
        most: int | None = None,
    ) -> list[Pin]:
        """A minimum cut; [] if there is none, or none lighter than `most`.

        What is not known of a site is taken at its cheapest. The sites of a cut are then asked
        about, until the cut is one of which everything is known: no other can be cheaper, for it
        costs no less than it was taken for.
        """
        edges = sorted(net.edges)
        while True:
            offers = self.priced(net, known, own_requests, first)
            prices = {v: w for v, (_, w) in offers.items()}
            found: VertexCut | None = min_vertex_cut(edges, prices, net.sources, net.sinks)
            if found is None or not found.vertices:
                return []
            if most is not None and found.weight >= most:
                return []
            chosen = [offers[v][0] for v in sorted(found.vertices)]
            if all(self.settled(site, first) for site in chosen):
                return [self.pin(site, first) for site in chosen]
            for site in chosen:
                self.ask(site, first)

    def priced(
        self, net: Network, known: Proved | None, own_requests: bool, first: bool
    ) -> dict[int, tuple[Site, int]]:
        """For every vertex that may be pinned the best site and (at least) its weight."""
        out: dict[int, tuple[Site, int]] = {}
        for v in sorted(net.sites):
            best: tuple[int, str, Site] | None = None
            for site in net.sites[v]:
                if site.kind == "class" and known is None:
                    continue  # pinning a class adds flows: structure alone does not speak for it
                cost = self.cost(site, known, own_requests, first)
                if cost is not None and (best is None or (cost, site.name) < best[:2]):
                    best = (cost, site.name, site)
            if best is not None:
                out[v] = (best[2], best[0])
        return out

    def cost(self, site: Site, known: Proved | None, own_requests: bool, first: bool) -> int | None:
        """What pinning a site costs, or at least costs; None if it cannot be a pin."""
        market = self.market
        asked = self.settled(site, first)
        least = market.least(site)
        if asked:
            free = self.for_nothing(site, first) is not None
        else:
            free = not least.moved and (least.values < 2 or not first)
        if not free:
            if market.refusal(site) if asked else market.barred(site):
                return None
            if not own_requests and self.reads_request(site, known):
                return None
        count = (market.count(site) if asked else least.values) or 1
        return weight(count, site.named, free, len(self.program.sites))

    def settled(self, site: Site, first: bool) -> bool:
        """Whether everything about a site is known."""
        return self.market.asked(site) and (first or site.name in self._free)

    def ask(self, site: Site, first: bool) -> None:
        """Find everything out about a site."""
        self.market.refusal(site)
        if not first:
            self.free(site)

    def for_nothing(self, site: Site, first: bool) -> Pin | None:
        """A site as a free pin, if it can be one."""
        return self.single(site) if first else self.free(site)

    def pin(self, site: Site, first: bool) -> Pin:
        """A site as a pin, a free one if possible."""
        return self.for_nothing(site, first) or self.paid(site)

    def reads_request(self, site: Site, known: Proved | None) -> bool:
        """Whether a site's value depends on a request that is not batch."""
        if self.program.scope == "launch":
            return False
        names, reads = self.structure()
        request = mask_of(self.program.graph, [n for n in names if self.is_request(n)])
        for mark in site.marks:
            proven = None if known is None else known.of(mark.node)
            if (reads[mark.node.id] if proven is None else proven) & request:
                return True
        return False

    def is_request(self, name: str) -> bool:
        """Whether an input is the request's own."""
        return self.program.graph.inputs[name].kind == "request"

    def structure(self) -> tuple[tuple[str, ...], list[int]]:
        """What each node of G0 reads, proved or not."""
        if self._reads is None:
            self._reads = masks(self.program.graph)
        return self._reads

    def paid(self, site: Site) -> Pin:
        """A site as a pin of its own."""
        offers = self.program.offers
        offered = offers.get(site.name, offers.get(site.name.partition(".")[2], ()))
        found = self.market.of(site)
        known = {value_key(v) for v in found.values or ()}
        extra = tuple(v for v in offered if value_key(v) not in known)
        taken = self.program.graph.inputs
        parameter = site.name if site.name not in taken else f"pin {site.name}"
        return Pin(site.name, site, found, extra, parameter)

    def single(self, site: Site) -> Pin | None:
        """A site with one candidate, as a free pin."""
        only = None if self.market.refusal(site) else self.market.constant(site)
        return None if only is None else _free(site, only[0], "its only candidate")

    def free(self, site: Site) -> Pin | None:
        """A site that the batch does not move in the unpinned program, as a free pin."""
        if site.name not in self._free:
            self._free[site.name] = self._free_pin(site)
        return self._free[site.name]

    def _free_pin(self, site: Site) -> Pin | None:
        if self.market.least(site).moved:
            return None
        graph, images, values = self.alone()
        value = values.get(site.name)
        image = None if value is None else images.get(value)
        if image is not None and image.is_const:
            return _free(site, image.attr, "simplification")
        single = self.single(site)
        if single is not None or image is None:
            return single
        _, reads = masks(graph)
        if reads[image.id] & batch_mask(graph, self.program.scope):
            return None
        at = self.market.batch_point()
        if at is None:
            return None
        return Pin(
            site.name, site, self.market.of(site), free=True, at=dict(at), proof="simplification"
        )

    def alone(self) -> tuple[Graph, Images, dict[str, Node]]:
        """Every site's value by itself, simplified under the assumes."""
        if self._alone is None:
            graph, copies = _fork(self.program.graph)
            values = {
                s.name: site_value(
                    graph,
                    s,
                    [copies[m.node.id] for m in s.marks],
                    [copies[m.path.id] for m in s.marks],
                )
                for s in self.program.sites.values()
                if s.marks
            }
            given = [
                graph.select(copies[g.path.id], copies[g.cond.id], graph.const(True))
                for g in self.program.guards
                if g.kind == "assume"
            ]
            made, images = simplify(graph, list(values.values()), self.skip, given)
            self._alone = (made, images, values)
        return self._alone

    def fewer(self, found: _Step) -> _Step:
        """Try whether a pin can be left out once the others are there."""
        pins = dict(found.pins)
        costly = sorted(
            (p for p in pins.values() if not p.free),
            key=lambda p: (p.site.named, -(self.market.count(p.site) or 0), p.name),
        )
        for pin in costly:
            rest = {n: p for n, p in pins.items() if n != pin.name}
            if self.leaks([p.site for p in rest.values()]):
                continue
            step = self.grow_free(rest)
            if step is not None:
                pins, found = step.pins, step
        return found

    def by_structure(self, found: _Step) -> _Step:
        """A cut of G0 as it stands, where that takes fewer pins or a smaller grid.

        What is proved may lead a flow past a join, to the conditions that the join was made of: of
        `band = 0 if m <= 16 else 1 if m <= 64 else 2`, read as `band == 0` and `band == 1`, G1
        knows that the batch gets in by `m <= 16` and `m <= 64`. Pinning `band` is enough.
        """
        price = self.price(found.pins)
        net = network(self.program, self._moved, None, frozenset())
        pins = self.solve(net, None, True, price)
        if not pins:
            return found
        other = self.grow_free({p.name: p for p in pins})
        return other if other is not None and self.price(other.pins) < price else found

    def price(self, pins: Mapping[str, Pin]) -> int:
        """What the pins that are not free weigh together."""
        total = len(self.program.sites)
        paid = [p.site for p in pins.values() if not p.free]
        return sum(weight(self.market.count(s) or 1, s.named, False, total) for s in paid)

    def grid(self, pins: Mapping[str, Pin]) -> int:
        """How many assignments there are."""
        return math.prod(self.market.count(p.site) or 1 for p in pins.values() if not p.free)

    def grow_free(self, pins: Mapping[str, Pin]) -> _Step | None:
        """Add free pins alone; None if that is not enough."""
        now = self.step(pins)
        while now.leaking:
            more = self.cut(now)
            if not more or not all(p.free for p in more):
                return None
            now = self.step({**now.pins, **{p.name: p for p in more}})
        return now

    def without_idle(self, found: _Step) -> _Step:
        """Leave out free pins that the others made unnecessary."""
        for name in sorted(n for n, p in found.pins.items() if p.free):
            rest = {n: p for n, p in found.pins.items() if n != name}
            if rest and not (step := self.step(rest)).leaking:
                found = step
        return found

    def last_resort(self) -> _Step:
        """A cut of the unpruned program."""
        sinks = [p.node for p in self.program.points if p.role == "bits"]
        net = network(self.program, sinks, None, frozenset())
        found = self.solve(net, None, first=True)
        if found:
            step = self.step({p.name: p for p in found})
            if not step.leaking:
                return step
        raise no_cut(self.program, net, self.market)


def _free(site: Site, value: Value, proof: str) -> Pin:
    return Pin(site.name, site, Candidates((value,)), free=True, constant=value, proof=proof)


def _paid(pins: Mapping[str, Pin]) -> int:
    return sum(not p.free for p in pins.values())


def _fork(graph: Graph) -> tuple[Graph, list[Node]]:
    """The same nodes, by id, in a graph to which others can be added."""
    out = Graph()
    out.inputs.update(graph.inputs)
    made: list[Node] = []
    for node in graph.nodes:
        args = [made[a.id] for a in node.args]
        made.append(out.add(node.op, *args, attr=node.attr, site=node.site))
    return out, made
