"""Saying why there is no cut."""

from __future__ import annotations

from selc.cut.network import Network
from selc.cut.price import Market
from selc.diag.diagnostic import Diagnostic, Refused
from selc.diag.span import NOWHERE
from selc.ir.op import Op
from selc.ir.program import Program


def no_cut(program: Program, net: Network, market: Market) -> Refused:
    """SEL930 with a path on which nothing can be pinned."""
    closed = {v for v, sites in net.sites.items() if any(not market.barred(s) for s in sites)}
    path = net.path(closed) or net.path(set())
    vertices = {v: i for i, v in net.vertex.items() if i == v}
    names, notes = [], []
    span = NOWHERE
    for v in path:
        node = program.graph.nodes[vertices[v]]
        if node.op is Op.INPUT:
            names.append(f"`{node.attr}`")
        sites = sorted(net.sites.get(v, ()), key=lambda s: (not s.named, s.name))
        if sites:
            site = sites[0]
            span = site.span
            if site.named:
                names.append(f"`{site.name}`")
            notes.append(f"{site.span}: `{site.name}` {market.refusal(site)}")
    point = next(
        (p for p in program.points if path and net.vertex.get(p.node.id) == path[-1]), None
    )
    names.append(f"the choice `{point.name}`" if point is not None else "a choice")
    message = (
        f"the batch reaches a choice and no value on the way can be a pin: {' -> '.join(names)}"
    )
    return Refused(
        Diagnostic(
            "SEL930",
            message,
            span,
            notes=tuple(notes),
            help="mark the field `neutral` if it cannot move a request's bits, narrow the range of "
            "the input, derive the choice from a coarser value, or raise --max-candidates",
        )
    )
