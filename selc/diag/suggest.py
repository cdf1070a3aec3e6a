"""`did you mean`: the closest known names to a name that is not there."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def closest(name: str, known: Iterable[str], limit: int = 3) -> tuple[str, ...]:
    """Up to `limit` known names that look like `name`, best first; letter case is ignored."""
    by_folded: dict[str, str] = {}
    for candidate in known:
        by_folded.setdefault(candidate.casefold(), candidate)
    found = difflib.get_close_matches(name.casefold(), by_folded, n=limit, cutoff=0.6)
    return tuple(by_folded[folded] for folded in found)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``did you mean `x` or `y`?``, or the empty string if nothing is close."""
    names = [f"`{found}`" for found in closest(name, known)]
    if not names:
        return ""
    head, last = names[:-1], names[-1]
    return f"did you mean {', '.join(head)} or {last}?" if head else f"did you mean {last}?"
