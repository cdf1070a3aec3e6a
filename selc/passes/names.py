"""The names of the passes, in their order; cheap to import."""

from __future__ import annotations

from typing import Final

DECISIONS: Final = ("semantic", "cut")
"""What can be left out besides: asking whether the batch really moves a point (what reads the batch
counts as moved then), and the minimum cut (every point is pinned itself)."""

PASS_NAMES: Final = (
    *("peval", "gvn", "fold", "table", "searches", "ranges", "context", "enumerate", "dce"),
)
