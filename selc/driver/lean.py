"""The same program with its searches as tables: what asks for values of sites is asked there."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from selc.ir.program import Guard, Mark, Program, Site
from selc.passes.fold import selects
from selc.passes.gvn import number
from selc.passes.peval import constants
from selc.passes.rebuild import Images, compose, rebuild
from selc.passes.searches import LARGE as SEARCH
from selc.passes.searches import searches, works
from selc.passes.table import lookups

LARGE: Final = 1024
"""Nodes from which on it is worth it."""


def lean(program: Program, skip: frozenset[str] = frozenset()) -> Program:
    """The program over a smaller graph, with the sites that are still there.

    Every value that is still there is equal to what it was wherever the guards hold; sites inside a
    search are left out. The program itself if there is no search.
    """
    if len(program.graph.nodes) < LARGE or "searches" in skip:
        return program
    roots = [p.node for p in program.points]
    roots += [n for g in program.guards for n in (g.path, g.cond)]
    work = works(program.graph)
    paths = [m.path for s in program.sites.values() for m in s.marks]
    roots += [n for n in paths if work[n.id] < SEARCH]  # inside a search they are large
    walked, first = rebuild(program.graph, roots, constants, number, selects(), lookups)
    graph, second = searches(walked, [first[n] for n in roots])
    images = compose(first, second)
    if len(graph.nodes) * 2 > len(program.graph.nodes):
        return program
    sites = {}
    for site in program.sites.values():
        if all(m.node in images and m.path in images for m in site.marks):
            marks = [Mark(images[m.node], images[m.path], m.guards_before) for m in site.marks]
            sites[site.name] = Site(site.name, site.kind, site.span, marks)
    return replace(
        program,
        graph=graph,
        points=[replace(p, node=images[p.node], places=()) for p in program.points],
        guards=[_guard(g, images) for g in program.guards],
        sites=sites,
    )


def _guard(guard: Guard, images: Images) -> Guard:
    return replace(guard, path=images[guard.path], cond=images[guard.cond])
