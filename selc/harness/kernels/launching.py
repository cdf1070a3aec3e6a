# mypy: disable-error-code="no-untyped-call"
"""Launches of Triton kernels under a choice that may not fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from selc.harness.protocol import Unsupported


def positive(choice: Mapping[str, Any], *names: str) -> tuple[int, ...]:
    """Some positive integers of a choice; tiles, warps and parts are powers of two.

    Raises:
        Unsupported: one is not.
    """
    values = []
    for name in names:
        value = choice.get(name, 1) if name.endswith(("SPLIT_K", "GROUP_M")) else choice[name]
        if type(value) is not int or value < 1:
            raise Unsupported(f"{name} is {value!r}, not a positive integer")
        if ("BLOCK" in name or name.endswith("num_warps")) and value & (value - 1):
            raise Unsupported(f"{name} is {value}, not a power of two")
        values.append(value)
    return tuple(values)


def launch(kernel: Any, grid: tuple[int, ...], *args: Any, **options: Any) -> None:
    """Launch a kernel.

    Raises:
        Unsupported: it cannot be compiled, or needs more of a resource than there is.
    """
    from triton.compiler.errors import CompilationError
    from triton.runtime.errors import OutOfResources, PTXASError

    try:
        kernel[grid](*args, **options)
    except (OutOfResources, PTXASError, CompilationError) as error:
        raise Unsupported(_last_line(error)) from error
    except RuntimeError as error:
        if "PassManager" not in str(error):
            raise
        raise Unsupported(f"Triton cannot compile it: {_last_line(error)}") from error


def _last_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[-1] if lines else type(error).__name__
