"""Evaluating a node of a `Dag`: at given calls, or at every call of a product of domains."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from selc.check.certificate import Domain
from selc.check.dag import Dag
from selc.check.meaning import column

CHUNK: Final = 4096
"""Calls evaluated together."""


def at(dag: Dag, root: int, calls: Sequence[Mapping[str, Any]]) -> Sequence[Any]:
    """The values of a node for some calls."""
    done: dict[int, Sequence[Any]] = {}
    for n in dag.cone(root):
        op, args, attr = dag.nodes[n]
        if op == "input":
            done[n] = [call[attr] for call in calls]
        else:
            done[n] = column(op, attr, [done[a] for a in args], len(calls))
    return done[root]


def work(dag: Dag, root: int) -> float:
    """How many operations it takes to evaluate a node everywhere."""
    sizes = {name: len(dag.domains[name]) for name in dag.reads(root)}
    reads: dict[int, frozenset[str]] = {}
    total = 0.0
    for n in dag.cone(root):
        node = dag.nodes[n]
        own = frozenset([node.attr]) if node.op == "input" else frozenset[str]()
        reads[n] = own.union(*(reads[a] for a in node.args))
        total += math.prod(float(sizes[name]) for name in reads[n])
    return total


def everywhere(dag: Dag, root: int) -> Iterator[tuple[dict[str, Any], Any]]:
    """Every call over the leaves that a node reads, with its value.

    Each node is evaluated over the leaves that it reads itself, and spread over those of its users.
    """
    names = sorted(dag.reads(root), key=lambda name: len(dag.domains[name]))
    if not names:
        yield {}, at(dag, root, [{}])[0]
        return
    widest = names[-1]
    others = math.prod(len(dag.domains[name]) for name in names[:-1])
    step = max(1, CHUNK // others)
    whole = dag.domains[widest]
    for start in range(0, len(whole), step):
        domains = {name: dag.domains[name] for name in names}
        domains[widest] = whole[start : start + step]
        yield from _over(dag, root, names, domains)


def _over(
    dag: Dag, root: int, names: Sequence[str], domains: Mapping[str, Domain]
) -> Iterator[tuple[dict[str, Any], Any]]:
    axes: dict[int, tuple[str, ...]] = {}
    done: dict[int, Sequence[Any]] = {}
    spread: dict[tuple[tuple[str, ...], tuple[str, ...]], list[int]] = {}
    for n in dag.cone(root):
        op, args, attr = dag.nodes[n]
        if op == "input":
            axes[n], done[n] = (attr,), list(domains[attr])
            continue
        read = {name for a in args for name in axes[a]}
        axes[n] = mine = tuple(name for name in names if name in read)
        columns = []
        for a in args:
            if axes[a] == mine:
                columns.append(done[a])
                continue
            pair = (axes[a], mine)
            if pair not in spread:
                spread[pair] = _places(axes[a], mine, domains)
            given = done[a]
            columns.append([given[i] for i in spread[pair]])
        done[n] = column(op, attr, columns, math.prod(len(domains[name]) for name in mine))
    for i, value in enumerate(done[root]):
        yield _call(i, axes[root], domains), value


def _places(
    few: tuple[str, ...], many: tuple[str, ...], domains: Mapping[str, Domain]
) -> list[int]:
    """For each row over `many`, the row over `few` that it extends."""
    out = [0]
    for name in many:
        size = len(domains[name])
        if name in few:
            out = [i * size + k for i in out for k in range(size)]
        else:
            out = [i for i in out for _ in range(size)]
    return out


def _call(row: int, names: Sequence[str], domains: Mapping[str, Domain]) -> dict[str, Any]:
    call: dict[str, Any] = {}
    for name in reversed(names):
        row, place = divmod(row, len(domains[name]))
        call[name] = domains[name][place]
    return call
