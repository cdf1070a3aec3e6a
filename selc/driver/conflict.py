"""The fewest guards that together leave no assignment: why nothing is legal."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from selc.driver.pipeline import Decided
    from selc.vra.verdict import GuardVerdict

WIDEST: Final = 3
"""Sets of up to this many guards are tried from the smallest up."""

TRIES: Final = 200
"""Sets that are tried, each by deciding the legality of its guards alone."""


def conflict(decided: Decided) -> list[GuardVerdict]:
    """Guards whose legal assignments have nothing in common; no part of them does it.

    The smallest such set if it has up to `WIDEST` guards and few sets have to be tried, else one
    from which no guard can be left out (deletion, as in Marques-Silva, *Minimal unsatisfiability*,
    ISMVL 2010, section 3).
    """
    culprits = [v for v in decided.legality.guards if v.refuted or v.unknown]
    for size in range(1, WIDEST + 1):
        if math.comb(len(culprits), size) > TRIES:
            break
        for some in itertools.combinations(culprits, size):
            if _leave_nothing(decided, some):
                return list(some)
    core = list(culprits)
    for verdict in culprits:
        rest = [v for v in core if v is not verdict]
        if _leave_nothing(decided, rest):
            core = rest
    return core


def matter(decided: Decided, verdict: GuardVerdict) -> list[str]:
    """The inputs that a guard reads, pins and knobs aside."""
    residual = decided.residual
    nodes = residual.graph.cone(residual.guards[verdict.index].readings)
    read = {n.attr for n in nodes if n.op.value == "input"}
    return [n for n in residual.graph.inputs if n in read and n not in residual.parameters]


def _leave_nothing(decided: Decided, some: Sequence[GuardVerdict]) -> bool:
    from selc.vra.legality import legality

    if not some:
        return False
    guards = [decided.residual.guards[v.index] for v in some]
    some_alone = replace(decided.residual, guards=guards)
    return legality(some_alone, rlimit=decided.legality.rlimit).legal == 0
