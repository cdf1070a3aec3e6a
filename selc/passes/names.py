"""The names of the passes, in their order; cheap to import."""

from __future__ import annotations

from typing import Final

PASS_NAMES: Final = ("peval", "gvn", "fold", "table", "ranges", "context", "enumerate", "dce")
