"""The kernels that come with selc, one object for each family, imported when it is asked for.

`selc.harness.kernels:attention` and its neighbours are what `--kernels` takes. Each picks its
backend by the device that `prepare` gets: Triton on a GPU, torch on the CPU.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

FAMILIES: Final = ("all_reduce", "attention", "gemm", "moe", "rms_norm")


def __getattr__(name: str) -> object:
    if name not in FAMILIES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}").KERNELS
