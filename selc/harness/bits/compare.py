"""Outputs compared bit by bit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two outputs first differ, and in how many elements."""

    row: int
    element: int
    count: int
    total: int
    expected: str
    found: str


def as_bits(out: Any) -> Any:
    """A tensor's bits as integers of its elements' size, one row for each of its first dimension.

    Equal NaNs are equal, NaNs of other payloads are not, and neither are the two zeros.
    """
    import torch

    if out.is_complex():
        out = torch.view_as_real(out)
    by_size = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    flat = out.detach().reshape(out.shape[0], -1).contiguous()
    return flat.view(by_size[out.element_size()])


def difference(expected: Any, found: Any) -> Difference | None:
    """How the bits of some rows differ from others; None if they do not."""
    import torch

    if torch.equal(expected, found):
        return None
    odd = (expected != found).nonzero()
    row, element = (int(v) for v in odd[0])
    width = expected.element_size() * 2
    mask = (1 << 4 * width) - 1
    a, b = (int(t[row, element]) & mask for t in (expected, found))
    return Difference(
        row, element, len(odd), expected.numel(), f"0x{a:0{width}x}", f"0x{b:0{width}x}"
    )


def degenerate(rows: Any) -> str:
    """In words why bits of these values cannot show a difference, or ""."""
    import torch

    if rows.numel() == 0:
        return "the output has no elements"
    if rows.is_floating_point() and not bool(torch.isfinite(rows.float()).any()):
        return "no element of the output is finite"
    bits = as_bits(rows)
    if bits.numel() > 1 and bool((bits == bits[0, 0]).all()):
        return "all elements of the output are equal"
    return ""


def dirty(device: str) -> None:
    """Leave NaNs in memory that is free, so that a read of what was never written shows."""
    import torch

    most = 24 if device == "cuda" else 20
    held = [torch.empty(1 << k, dtype=torch.uint8, device=device) for k in range(8, most, 2)]
    for each in held:
        each.fill_(255)
