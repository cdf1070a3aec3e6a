"""Dead code elimination: only what the roots read stays."""

from __future__ import annotations

from collections.abc import Sequence

from selc.ir.graph import Graph, Node
from selc.passes.rebuild import Images, rebuild


def dce(graph: Graph, roots: Sequence[Node], given: Sequence[Node] = ()) -> tuple[Graph, Images]:
    """Drop every node that no root reads.

    Before (the only root is `v2`):

        v0 = input "m"
        v1 = mul v0, 2
        v2 = le v0, 64

    After:

        v0 = input "m"
        v1 = le v0, 64
    """
    return rebuild(graph, roots)
