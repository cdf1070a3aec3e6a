"""Noninterference: no path in R from the batch to a protected point."""

from __future__ import annotations

from selc.check.certificate import Text
from selc.check.findings import Finding


def noninterference(r: Text) -> Finding:
    """Search R backward from every `bits` point."""
    batch = r.batch()
    protected = {name: p.node for name, p in r.points.items() if p.role == "bits"}
    wrong = [
        f"{name} reads {', '.join(sorted(found))}"
        for name, node in protected.items()
        if (found := r.reads(node) & batch)
    ]
    detail = f"no path in R from {len(batch)} batch inputs to {len(protected)} bits points"
    return Finding("noninterference", "failed" if wrong else "ok", "; ".join(wrong[:3]) or detail)
