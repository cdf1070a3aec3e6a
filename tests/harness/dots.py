"""Triton's interpreter with products of tiles whose rows have the same bits wherever they lie.

On a device a row of `dot` does not depend on its place in the tile. The interpreter leaves it to
the BLAS of the machine, where on some processors it does: rows at the edge of a panel are added in
another order. Here every element is one sum over K, and K is all that orders it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from triton.runtime import interpreter


def in_order(a: Any, b: Any, dtype: Any) -> Any:
    """The product of two matrices, K by K."""
    a, b = a.astype(dtype), b.astype(dtype)
    total = np.zeros((*a.shape[:-1], b.shape[-1]), dtype)
    for k in range(a.shape[-1]):
        total += a[..., k, None] * b[..., k, None, :]
    return total


class _Numpy:
    matmul = staticmethod(lambda a, b, dtype: in_order(a, b, dtype))

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


def install() -> None:
    """Make the interpreter of this process use it."""
    assert interpreter.np is np
    interpreter.np = _Numpy()
