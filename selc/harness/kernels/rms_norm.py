"""RMS norm of rows: x / sqrt(mean(x^2) + eps) * weight.

The choice is in what blocks a row is summed (`BLOCK_SIZE`, in order) and by how many warps
(`num_warps`), both of which order the sum. What is left of a difference in one sum per row is
mostly rounded away in bfloat16; with `out_dtype` float32 in the call's extra it shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from selc.harness.call import Call
from selc.harness.kernels.values import (
    digest_of_files,
    dtype_of,
    normal,
    out_dtype_of,
    requests,
    row_keys,
    weights,
)

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(slots=True)
class Inputs:
    """A launch's tensors."""

    x: Tensor
    weight: Tensor
    eps: float
    out: Any
    """The result's element type."""

    scratch: dict[Any, Any] = field(default_factory=dict)


class RmsNorm:
    """The family's kernels: Triton on a GPU, torch on the CPU."""

    tolerance = 0.02
    graph = True
    parameters = ("BLOCK_SIZE", "num_warps")

    def prepare(self, call: Call, device: str) -> Inputs:
        """Activations of the call's requests, and a weight around one."""
        hidden, dtype = int(call.get("hidden")), dtype_of(call)
        magnitude = str(call.find("magnitude", default="normal"))
        x = normal(
            row_keys(call),
            hidden,
            salt=2,
            scale=1.0,
            dtype=dtype,
            device=device,
            magnitude=magnitude,
        )
        weight = weights(1, hidden, 21, 0.1, dtype, device)[0] + 1
        eps = float(call.find("rms_norm_eps", default=1e-6))
        return Inputs(x, weight, eps, out_dtype_of(call))

    def launch(self, choice: Mapping[str, Any], inputs: Inputs) -> Tensor:
        """The normed rows under a choice.

        Raises:
            Unsupported: the block does not fit.
        """
        if inputs.x.device.type == "cpu":
            from selc.harness.kernels import rms_norm_cpu

            return rms_norm_cpu.run(choice, inputs)
        from selc.harness.kernels import rms_norm_triton

        return rms_norm_triton.run(choice, inputs)

    def reference(self, inputs: Inputs) -> Tensor:
        """The normed rows in float64."""
        x = inputs.x.double()
        mean = (x * x).mean(dim=1, keepdim=True)
        return x / (mean + inputs.eps).sqrt() * inputs.weight.double()

    def bytes_and_flops(self, call: Call) -> tuple[int, int]:
        """Every row read and written once."""
        hidden, rows = int(call.get("hidden")), sum(r.rows for r in requests(call))
        size: int = dtype_of(call).itemsize
        return (2 * rows + 1) * hidden * size, 4 * rows * hidden

    def digest(self) -> str:
        """Changes with any file that these kernels are made of."""
        return digest_of_files("rms_norm", "rms_norm_cpu", "rms_norm_triton", "launching", "values")


KERNELS = RmsNorm()
