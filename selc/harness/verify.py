"""Whether a kernel's result is right, and whether all of it was written."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Any, Final

TOLERANCE: Final = 0.02
ROW: Final = 8
"""A single row may differ by this many times the tolerance: it averages over fewer values."""
FLOOR: Final = 1e-3
"""Rows count as at least this share of the mean row."""


def difference(out: Any, reference: Any, tolerance: float = TOLERANCE) -> str:
    """In words how an output differs from the reference by more than a tolerance, or "".

    The error is relative in the Frobenius norm: of the whole, and of every row, so that one wrong
    row among thousands is seen. NaN never passes.
    """
    import torch

    if not isinstance(out, torch.Tensor):
        return f"the kernel returned a {type(out).__name__}, not a tensor"
    if tuple(out.shape) != tuple(reference.shape):
        return f"its shape is {tuple(out.shape)}, the reference's {tuple(reference.shape)}"
    if not reference.numel():
        return ""
    reference = reference.to(torch.float64)
    got = out.to(reference.device, torch.float64)
    bad = int((~torch.isfinite(got) & torch.isfinite(reference)).sum())
    if bad:
        return f"{bad} of {got.numel()} values are NaN, infinite or were never written"
    error, norm = float((got - reference).norm()), float(reference.norm())
    if not error <= tolerance * (norm or 1.0):
        return f"its relative error is {error / (norm or 1.0):.3g}, allowed is {tolerance:g}"
    return _rows(got, reference, tolerance)


def _rows(got: Any, reference: Any, tolerance: float) -> str:
    if reference.dim() < 2:
        return ""
    sizes = reference.flatten(1).norm(dim=1)
    errors = (got - reference).flatten(1).norm(dim=1)
    errors /= sizes.clamp_min(FLOOR * float(sizes.mean()) or 1.0)
    worst = int(errors.argmax())
    if float(errors[worst]) <= ROW * tolerance:
        return ""
    return (
        f"row {worst} of {len(sizes)} has a relative error of {float(errors[worst]):.3g}, "
        f"allowed is {ROW * tolerance:g}"
    )


@contextmanager
def poisoned() -> Iterator[None]:
    """Memory that is allocated here and not written reads as NaN."""
    import torch

    before = torch.get_deterministic_debug_mode()
    filling = torch.utils.deterministic.fill_uninitialized_memory
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.set_deterministic_debug_mode("warn")
            torch.utils.deterministic.fill_uninitialized_memory = True
            yield
    finally:
        torch.set_deterministic_debug_mode(before)
        torch.utils.deterministic.fill_uninitialized_memory = filling


def size_of(value: Any, _depth: int = 6) -> int:
    """Bytes of the tensors in a value, as far as mappings, sequences and fields lead to them."""
    size = getattr(value, "nbytes", None)
    if type(size) is int:
        return size
    if _depth == 0 or isinstance(value, (str, bytes, int, float, type(None))):
        return 0
    parts: Any = ()
    if isinstance(value, Mapping):
        parts = value.values()
    elif isinstance(value, (list, tuple, set)):
        parts = value
    elif is_dataclass(value):
        parts = [getattr(value, f.name) for f in fields(value)]
    elif hasattr(value, "__dict__"):
        parts = vars(value).values()
    return sum(size_of(p, _depth - 1) for p in parts)
