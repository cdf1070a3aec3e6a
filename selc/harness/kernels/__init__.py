"""The kernels that come with selc, one object for each family, imported when it is asked for.

`selc.harness.kernels:attention` and its neighbours are what `--kernels` takes. Each picks its
backend by the device that `prepare` gets: Triton on a GPU, torch on the CPU.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any, Final

FAMILIES: Final = ("all_reduce", "attention", "gemm", "moe", "rms_norm")


class _Kernels(ModuleType):
    """This package: a family's name is its kernels, also once its module has been imported."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in FAMILIES and isinstance(value, ModuleType):
            value = value.KERNELS
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Kernels


def __getattr__(name: str) -> Any:
    if name not in FAMILIES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}").KERNELS
