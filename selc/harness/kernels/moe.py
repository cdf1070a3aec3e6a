"""A layer of a mixture of experts: two grouped products and a sum over a token's experts.

The choice is a tile for each product, by the names that tuned tables use (`gate_up.BLOCK_SIZE_M`,
`down.num_stages`), and how rows are given to blocks (`expert_assignment`: "sorted" fills blocks
with rows of one expert, "naive" gives each row a block). To which experts a token goes, and with
what shares, is a function of its request's seed and position.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import Tensor

from selc.harness.call import Call
from selc.harness.kernels.values import (
    GOLDEN,
    digest_of_files,
    dtype_of,
    mix,
    normal,
    requests,
    row_keys,
    weights,
)

TILE: Final = (
    "BLOCK_SIZE_M",
    "BLOCK_SIZE_N",
    "BLOCK_SIZE_K",
    "GROUP_SIZE_M",
    "SPLIT_K",
    "num_warps",
    "num_stages",
    "swap_ab",
)


FILES: Final = (
    "moe",
    "moe_cpu",
    "moe_triton",
    "moe_align",
    "blocked_cpu",
    "launching",
    "values",
)


@dataclass(slots=True)
class Inputs:
    """A launch's tensors; `scratch` keeps what a choice needs besides."""

    x: Tensor
    up: Tensor
    """Gate and up projections, (experts, 2 * width, hidden)."""

    down: Tensor
    """(experts, hidden, width)."""

    ids: Tensor
    """The experts of each row."""

    share: Tensor
    scratch: dict[Any, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Shape:
    """What the facts say of the layer on one rank."""

    experts: int
    topk: int
    hidden: int
    width: int


class Moe:
    """The family's kernels: Triton on a GPU, torch on the CPU."""

    tolerance = 0.02
    graph = True
    parameters = (
        *(f"gate_up.{name}" for name in TILE),
        *(f"down.{name}" for name in TILE),
        "expert_assignment",
    )

    def prepare(self, call: Call, device: str) -> Inputs:
        """Activations, routing, and the layer's weights in memory of their own."""
        shape, dtype, keys = shape_of(call), dtype_of(call), row_keys(call)
        x = normal(
            keys,
            shape.hidden,
            salt=3,
            scale=1.0,
            dtype=dtype,
            device=device,
            magnitude=str(call.find("magnitude", default="normal")),
        )
        experts, hidden, width = shape.experts, shape.hidden, shape.width
        up = weights(experts * 2 * width, hidden, 31, hidden**-0.5, dtype, device)
        down = weights(experts * hidden, width, 32, width**-0.5, dtype, device)
        ids, share = routing(keys, shape)
        return Inputs(
            x,
            up.clone().view(experts, 2 * width, hidden),
            down.clone().view(experts, hidden, width),
            ids.to(device, torch.int32),
            share.to(device),
        )

    def launch(self, choice: Mapping[str, Any], inputs: Inputs) -> Tensor:
        """The layer's output under a choice.

        Raises:
            Unsupported: a tile does not fit, or the two do not go together.
        """
        if inputs.x.device.type == "cpu":
            from selc.harness.kernels import moe_cpu

            ids = inputs.ids.long()
            return moe_cpu.run(choice, inputs.x, inputs.up, inputs.down, ids, inputs.share)
        from selc.harness.kernels import moe_triton

        return moe_triton.run(choice, inputs)

    def reference(self, inputs: Inputs) -> Tensor:
        """The output in float64."""
        x, ids, share = inputs.x.double(), inputs.ids, inputs.share.double()
        width = inputs.down.shape[2]
        out = torch.zeros_like(x)
        for expert in range(len(inputs.up)):
            row, place = torch.nonzero(ids == expert, as_tuple=True)
            if len(row) == 0:
                continue
            both = x[row] @ inputs.up[expert].double().t()
            active = torch.nn.functional.silu(both[:, :width]) * both[:, width:]
            result = active @ inputs.down[expert].double().t()
            out.index_add_(0, row, result * share[row, place][:, None])
        return out

    def bytes_and_flops(self, call: Call) -> tuple[int, int]:
        """Each routed expert's weights read once; the products, without the rest."""
        shape = shape_of(call)
        rows = sum(r.rows for r in requests(call))
        used = len(torch.unique(routing(row_keys(call), shape)[0]))
        size: int = dtype_of(call).itemsize
        weight = 3 * shape.width * shape.hidden
        moved = (used * weight + 2 * rows * shape.hidden) * size
        return moved, 2 * rows * shape.topk * weight

    def estimate(self, call: Call, choice: Mapping[str, Any]) -> float:
        """About the seconds of a launch, from its shape, for routing that is even on average."""
        from selc.harness.kernels import moe_estimate

        s, rows = shape_of(call), sum(r.rows for r in requests(call))
        return moe_estimate.estimate(call, choice, rows, (s.experts, s.topk, s.hidden, s.width))

    def digest(self) -> str:
        """Changes with any file that these kernels are made of."""
        return digest_of_files(*FILES)


def shape_of(call: Call) -> Shape:
    """The layer on one rank."""
    ranks = int(call.find("parallel.tensor", "tensor", default=1))
    return Shape(
        experts=int(call.get("experts")) // int(call.find("parallel.expert", default=1)),
        topk=int(call.get("topk")),
        hidden=int(call.get("hidden")),
        width=int(call.get("moe_intermediate")) // ranks,
    )


def routing(keys: Tensor, shape: Shape) -> tuple[Tensor, Tensor]:
    """The experts of each row, most wanted first, and their shares, on the CPU."""
    wanted = mix(keys[:, None] + torch.arange(7, 7 + shape.experts) * GOLDEN)
    ids = torch.argsort(wanted, dim=1, stable=True)[:, : shape.topk]
    drawn = (mix(keys[:, None] + torch.arange(1, 1 + shape.topk) * GOLDEN + 5) & 0xFFFF).double()
    drawn = drawn + 4096.0
    total = drawn[:, 0].clone()
    for index in range(1, shape.topk):
        total += drawn[:, index]
    return ids, (drawn / total[:, None]).float()


KERNELS = Moe()
