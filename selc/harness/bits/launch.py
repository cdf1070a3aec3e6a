"""Launches for their bits: the rows of one request, or in words why there are none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from selc.diag.diagnostic import Refused
from selc.harness.bits.compare import as_bits, degenerate, dirty
from selc.harness.call import Call
from selc.harness.protocol import Unsupported


class Skip(Exception):
    """A launch that cannot be made here; others go on."""


class Failure(Exception):
    """A launch that should have worked."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Bits of a request's rows, which end at token `context`."""

    bits: Any
    context: int
    trouble: str = ""

    @property
    def first(self) -> int:
        """The token of the first row."""
        return self.context - int(self.bits.shape[0])


@dataclass(slots=True)
class Launcher:
    """A family's kernels on a device."""

    kernels: Any
    device: str
    _prepared: tuple[str, Any] = field(default=("", None))

    def rows(self, choice: Mapping[str, Any], call: Call, at: int) -> Rows:
        """The rows of the request at a place of the batch, copied.

        Raises:
            Skip: the kernels do not support the choice, or memory does not suffice.
            Failure: the kernels failed.
        """
        out = self.output(choice, call)
        start = sum(r.rows for r in call.requests[:at])
        mine = call.requests[at]
        own = out[start : start + mine.rows]
        return Rows(as_bits(own).clone(), mine.context, degenerate(own))

    def output(self, choice: Mapping[str, Any], call: Call) -> Any:
        """All rows of a launch. The next launch may overwrite them.

        Raises:
            Skip: as for `rows`.
            Failure: as for `rows`.
            Refused: the kernels miss something in the call.
        """
        try:
            if self._prepared[0] != call.key:
                self._prepared = ("", None)
                self._prepared = (call.key, self.kernels.prepare(call, self.device))
            dirty(self.device)
            out = self.kernels.launch(choice, self._prepared[1])
            if self.device == "cuda":
                import torch

                torch.cuda.synchronize()
        except Unsupported as error:
            raise Skip(f"the kernels cannot run the choice: {error}") from None
        except Refused:
            raise
        except Exception as error:  # noqa: BLE001  whatever a kernel does
            self._prepared = ("", None)
            text = str(error).strip().splitlines() or [""]
            if isinstance(error, MemoryError) or "out of memory" in str(error):
                self._free()
                raise Skip("out of memory") from None
            raise Failure(f"{type(error).__name__}: {text[0]}") from None
        shape = getattr(out, "shape", None)
        if shape is None or len(shape) == 0 or shape[0] != call.rows:
            got = type(out).__name__ if shape is None else f"shape {tuple(shape)}"
            raise Failure(f"the output is {got}; its first dimension has to be {call.rows} rows")
        return out

    def again(self) -> None:
        """Forget the tensors of the last call: they are made anew."""
        self._prepared = ("", None)

    def _free(self) -> None:
        if self.device == "cuda":
            import torch

            torch.cuda.empty_cache()


def relevant(kernels: Any, choice: Mapping[str, Any]) -> dict[str, Any]:
    """What of a choice the kernels read: equal parts are the same launch."""
    names = getattr(kernels, "parameters", None)
    return {k: v for k, v in choice.items() if names is None or k in names}
