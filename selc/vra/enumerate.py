"""Exact enumeration of declared domains, restricted to the inputs that matter."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from selc.ir.domain import Domain
from selc.ir.evaluate import compile_nodes
from selc.ir.graph import Node
from selc.ir.value import Value
from selc.vra.view import View

MAX_POINTS: Final = 1 << 18
"""The default budget of an enumeration, in points of the product domain."""

CHUNK: Final = 4096

Row = tuple[Value, ...]


def axis(domain: Domain) -> Sequence[Value]:
    """A domain as a sequence."""
    if domain.values is not None:
        return domain.values
    return range(domain.lo, domain.hi + 1, domain.step)


def chunks(rows: Iterator[Row]) -> Iterator[list[Row]]:
    """Rows in lists of at most `CHUNK`."""
    while chunk := list(itertools.islice(rows, CHUNK)):
        yield chunk


def filter_of(
    view: View, conditions: Sequence[Node], names: Sequence[str]
) -> Callable[[list[Row]], list[Row]]:
    """A function that keeps the rows over `names` on which every condition is True."""
    if not conditions:
        return lambda rows: rows
    test = compile_nodes(view.graph, conditions, names, view.facts)
    wanted = (True,) * len(conditions)
    return lambda rows: [row for row in rows if test(*row) == wanted]


def grid(view: View, names: Sequence[str]) -> Iterator[Row]:
    """Every point of the product of the declared domains."""
    return itertools.product(*(axis(view.graph.inputs[n].domain) for n in names))


def points(
    view: View, mask: int, conditions: Sequence[Node], budget: int = MAX_POINTS
) -> Iterator[list[Row]] | None:
    """Points over the inputs of `mask` on which `conditions` hold, in chunks; None if over budget.

    The conditions may read no other inputs. Points come in the order of the product of the domains,
    and a chunk may be empty.
    """
    if view.size(mask) > budget:
        return None
    names = view.inputs_of(mask)
    keep = filter_of(view, conditions, names)
    return (keep(chunk) for chunk in chunks(grid(view, names)))


def inside(view: View, conditions: Sequence[Node], mask: int) -> list[Node]:
    """The conditions that read only inputs of `mask`, and at least one of them (or none at all)."""
    return [n for n in conditions if not view.masks[n.id] & ~mask]
