"""selc makes the kernel selection of an LLM engine independent of the batch.

`selc.load` compiles a selection, or finds it in the cache, and returns its selector.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from selc.driver.load import CompileError as CompileError
    from selc.driver.load import load as load

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name in ("load", "CompileError"):
        from selc.driver import load as module

        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
