"""How much is spent on a question before it stays open."""

from __future__ import annotations

from typing import Final

SOLVER_STEPS: Final = 2_000_000
"""The default budget of one question to Z3, in its own steps (`rlimit`): about half a second."""
