"""What the harness asks of kernels, and how it finds them."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Protocol, runtime_checkable

from selc.diag.diagnostic import Diagnostic, Refused
from selc.diag.suggest import did_you_mean
from selc.harness.call import Call

NO_KERNELS: Final = "SEL950"
OURS: Final = ("attention", "gemm", "moe", "all_reduce", "rms_norm")
METHODS: Final = ("prepare", "launch", "reference", "bytes_and_flops")


class Unsupported(Exception):
    """A kernel cannot run this choice (too much shared memory, say); others go on."""


@runtime_checkable
class Kernels(Protocol):
    """A family's kernels. Four methods are all that is needed.

    Further attributes are optional:

    - `tolerance`: largest relative error against `reference`, by default 0.02;
    - `graph`: whether a launch can be captured in a CUDA graph, by default true;
    - `timer(choice, inputs)`: how a launch is timed that takes more than this process, whose clock
      would see how the others are told. A function, each call of which has all of them launch
      together and gives one launch's seconds on the device, with a word on how; or None, as where
      there is no such attribute, for the harness's own way;
    - `parameters`: names of the points that the kernels read; a choice that differs elsewhere is
      the same launch and is measured once. By default all points;
    - `estimate(call, choice)`: about the seconds of a launch, from its shape alone, without a
      device. Ratios matter, between choices more than between calls. The tuner starts from it and
      learns how far it is right; one that raises, or is no positive number, is as none;
    - `digest()`: text that changes when the kernels do, by default of the module's source.
    """

    def prepare(self, call: Call, device: str) -> Any:
        """The tensors of a call, on `device` ("cpu", "cuda"); a function of the call alone.

        A request's data may depend only on its seed, so that it is the same in every batch.
        """

    def launch(self, choice: Mapping[str, Any], inputs: Any) -> Any:
        """Run under a choice (points by the manifest's names) and return the output tensor.

        Its first dimension is the rows of all requests, in their order. May not synchronize.

        Raises:
            Unsupported: the kernels cannot run this choice.
        """

    def reference(self, inputs: Any) -> Any:
        """The right output, in float64."""

    def bytes_and_flops(self, call: Call) -> tuple[int, int]:
        """The fewest bytes of device memory that must move, and the floating-point operations."""


def load_kernels(name: str) -> Any:
    """The object that `module:object` names, ours by their family's name alone.

    A module is looked for where Python looks, the working directory included.

    Raises:
        Refused: there is none, or it lacks a method.
    """
    module, _, attribute = name.partition(":")
    if not attribute and module in OURS:
        module, attribute = "selc.harness.kernels", module
    if not attribute:
        hint = did_you_mean(module, OURS) or "write it as `package.module:object`"
        raise no_kernels(f"`{name}` names no kernels", hint)
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found = getattr(importlib.import_module(module), attribute)
    except AttributeError:
        raise no_kernels(f"the module `{module}` has no `{attribute}`") from None
    except Exception as error:  # noqa: BLE001  whatever the user's module does on import
        raise no_kernels(
            f"`{module}` cannot be imported: {type(error).__name__}: {error}",
            "install `selc[bench]` for torch and triton" if "torch" in str(error) else "",
        ) from None
    found = found() if isinstance(found, type) else found
    lacking = [m for m in METHODS if not callable(getattr(found, m, None))]
    if lacking:
        raise no_kernels(
            f"`{name}` has no method `{lacking[0]}`", "kernels have " + ", ".join(METHODS)
        )
    return found


def digest_of(kernels: Any) -> str:
    """A hash that changes when the kernels' source does."""
    own = getattr(kernels, "digest", None)
    if callable(own):
        return str(own())
    module = inspect.getmodule(type(kernels))
    try:
        text = inspect.getsource(module) if module is not None else repr(type(kernels))
    except OSError:
        text = repr(type(kernels))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()[:16]


def no_kernels(message: str, hint: str = "") -> Refused:
    """An error about the kernels that were named."""
    return Refused(Diagnostic(NO_KERNELS, message, help=hint))
