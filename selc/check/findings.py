"""One line of the checker's answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Finding(NamedTuple):
    """A check: `ok`, `failed`, `sampled` (nothing found against it, not proved) or `skipped`."""

    name: str
    result: str
    detail: str


def shown(call: Mapping[str, Any] | None) -> str:
    """A call for a message."""
    return ", ".join(f"{name}={value!r}" for name, value in (call or {}).items())


def summed(name: str, verdicts: Mapping[str, int], what: str, wrong: list[str]) -> Finding:
    """One finding for many verdicts, counted by how they were reached."""
    if wrong:
        more = f" (and {len(wrong) - 3} more)" if len(wrong) > 3 else ""
        return Finding(name, "failed", "; ".join(wrong[:3]) + more)
    counts = ", ".join(f"{n} {how}" for how, n in sorted(verdicts.items()) if n)
    result = "sampled" if verdicts.get("sampled") else "ok"
    return Finding(name, result, f"{what}: {counts or 'none'}")
