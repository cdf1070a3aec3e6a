"""Dense products of linear layers: y = x @ w.T with w as [N, K].

The choice is that of a tile (`BLOCK_M`, `BLOCK_N`, `BLOCK_K`, `GROUP_M`, `num_warps`,
`num_stages`), in how many parts the sum over K is cut (`SPLIT_K`; the parts are added in their
order), and to what the rows are filled up (`padding`). It may hold more: whether the weights are
the matrix unit's first operand (`swap_ab`, by default for tiles of few rows), whether programs go
on to further tiles (`persistent`, by default where tiles are large and many), and whether the
kernel that adds the parts is started before the first one ends (`pdl`).

The layer is `linear` (qkv, o, gate_up, down) of the facts' model, or `n` and `k` of the call's
extra. With `out_dtype` float32 there, sums are not rounded once more, which shows every difference
between two orders.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

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

PADDING: Final = 128
"""Zero rows that may follow those of the batch."""

FILES: Final = ("gemm", "gemm_cpu", "gemm_triton", "blocked_cpu", "launching", "values")
SALTS: Final = {"qkv": 11, "o": 12, "gate_up": 13, "down": 14}


@dataclass(slots=True)
class Inputs:
    """A launch's tensors; `scratch` keeps what a choice needs besides."""

    x: Tensor
    w: Tensor
    rows: int
    out: Any
    """The result's element type."""

    scratch: dict[Any, Any] = field(default_factory=dict)


class Gemm:
    """The family's kernels: Triton on a GPU, torch on the CPU."""

    tolerance = 0.02
    graph = True
    parameters = (
        "BLOCK_M",
        "BLOCK_N",
        "BLOCK_K",
        "GROUP_M",
        "SPLIT_K",
        "num_warps",
        "num_stages",
        "padding",
        "swap_ab",
        "persistent",
        "pdl",
    )

    def prepare(self, call: Call, device: str) -> Inputs:
        """Activations of the call's requests, and the layer's weights, in memory of their own."""
        n, k = sizes(call)
        dtype = dtype_of(call)
        keys = row_keys(call)
        x = normal(
            keys,
            k,
            salt=1,
            scale=1.0,
            dtype=dtype,
            device=device,
            magnitude=str(call.find("magnitude", default="normal")),
            out_rows=-(-len(keys) // PADDING) * PADDING,
        )
        salt = SALTS.get(str(call.find("linear", default="qkv")), 15)
        w = weights(n, k, salt, k**-0.5, dtype, device).clone()
        return Inputs(x, w, len(keys), out_dtype_of(call))

    def launch(self, choice: Mapping[str, Any], inputs: Inputs) -> Tensor:
        """The product under a choice.

        Raises:
            Unsupported: the tile does not fit.
        """
        if inputs.x.device.type == "cpu":
            from selc.harness.kernels import gemm_cpu

            return gemm_cpu.run(choice, inputs)
        from selc.harness.kernels import gemm_triton

        return gemm_triton.run(choice, inputs)

    def reference(self, inputs: Inputs) -> Tensor:
        """The product in float64."""
        return inputs.x[: inputs.rows].double() @ inputs.w.double().t()

    def bytes_and_flops(self, call: Call) -> tuple[int, int]:
        """Every operand read once, the result written once."""
        n, k = sizes(call)
        m = sum(r.rows for r in requests(call))
        size: int = dtype_of(call).itemsize
        return (m * k + n * k + m * n) * size, 2 * m * n * k

    def estimate(self, call: Call, choice: Mapping[str, Any]) -> float:
        """About the seconds of a launch, from its shape."""
        from selc.harness.kernels import gemm_estimate

        rows = sum(r.rows for r in requests(call))
        return gemm_estimate.estimate(call, choice, rows, *sizes(call))

    def digest(self) -> str:
        """Changes with any file that these kernels are made of."""
        return digest_of_files(*FILES)


def sizes(call: Call) -> tuple[int, int]:
    """Columns and depth of the product."""
    if call.find("n") is not None and call.find("k") is not None:
        return int(call.get("n")), int(call.get("k"))
    linear = str(call.find("linear", default="qkv"))
    ranks = int(call.find("parallel.tensor", "tensor", default=1))
    hidden = int(call.get("hidden"))
    if linear in ("qkv", "o"):
        heads, head_dim = int(call.get("heads")), int(call.get("head_dim"))
        if linear == "o":
            return hidden, heads * head_dim // ranks
        both = max(int(call.get("kv_heads")) // ranks, 1)
        return (heads // ranks + 2 * both) * head_dim, hidden
    width = int(call.get("intermediate")) // ranks
    return (2 * width, hidden) if linear == "gate_up" else (hidden, width)


KERNELS = Gemm()
