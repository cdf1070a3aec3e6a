"""Tiny kernels whose order of sums is known, with faults that can be planted one at a time.

A row is the sum of a request's values up to its token: each block of `stride` tokens is summed,
then the blocks, in order. Every launch writes to one buffer, as kernels in a captured graph do.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from selc.harness.call import Call, Request
from selc.harness.protocol import Unsupported

WIDTH = 16
MOST = 512

SELECTION = """\
def plan(num_tokens, batch_size, max_seqlen_k, capturing):
    if num_tokens <= 20 and batch_size < 6:
        stride = 16
    elif max_seqlen_k > 400:
        stride = 64
    else:
        stride = 32
    warps = 8 if num_tokens > 100 else 4
    return {"stride": stride, "warps": warps}
"""
FACTS = """\
selection:
  function: plan
  scope: launch
  family: toy
  returns: {stride: bits, warps: neutral}
inputs:
  num_tokens: {kind: runtime, type: int, range: [1, 512]}
  batch_size: {kind: runtime, type: int, range: [1, 64]}
  max_seqlen_k: {kind: runtime, type: int, range: [1, 512]}
  capturing: {kind: runtime, type: bool}
"""
KNOB = {
    "def plan(num_tokens, batch_size, max_seqlen_k, capturing)": (
        "def plan(num_tokens, batch_size, max_seqlen_k, capturing, room)"
    ),
    "    return": "    assert stride <= 16 * room\n    return",
}
KNOB_FACTS = """\
  room: {kind: knob, values: [1, 4]}
knobs: {room: 1}
"""


@functools.lru_cache(maxsize=4096)
def table(seed: int, stride: int) -> torch.Tensor:
    """All rows of a request."""
    made = torch.Generator().manual_seed(seed)
    values = torch.randn((MOST, WIDTH), generator=made)
    within = values.view(-1, stride, WIDTH).cumsum(1)
    before = torch.cat([torch.zeros((1, WIDTH)), within[:, -1].cumsum(0)[:-1]])
    return (before[:, None] + within).reshape(MOST, WIDTH)


@dataclass
class Place:
    """Where a request stands in a launch."""

    call: Call
    index: int
    launches: int
    choice: Mapping[str, Any]

    @property
    def request(self) -> Request:
        return self.call.requests[self.index]

    @property
    def others(self) -> list[Request]:
        return [r for i, r in enumerate(self.call.requests) if i != self.index]


def _prefill_beside_decode(p: Place) -> bool:
    return p.request.rows == 1 and any(r.rows > 1 for r in p.others)


FAULTS: dict[str, Callable[[Place], bool]] = {
    "repeat": lambda p: p.launches % 5 == 4,
    "companions": lambda p: any(120 < r.context < 400 for r in p.others),
    "position": lambda p: p.index == len(p.call.requests) - 1 > 6,
    "size": lambda p: len(p.call.requests) == 37,
    "mixed": _prefill_beside_decode,
    "chunk": lambda p: p.request.rows == 7,
    "cached": lambda p: p.request.cached > 0,
    "pages": lambda p: p.call.find("layout", default=0) == 2,
    "lengths": lambda p: any(r.context == MOST for r in p.others),
    "threshold": lambda p: p.call.rows == 21,
    "setting": lambda p: bool(p.call.inputs["capturing"]),
}


@dataclass
class Toy:
    """The kernels. `fault` says when one bit of a request's last row is changed."""

    fault: Callable[[Place], bool] | None = None
    reads: bool = True
    special: tuple[float, float] | None = None  # an element alone, and where the fault is
    unsupported: int = 0
    parameters: tuple[str, ...] = ("stride",)
    launches: int = 0
    buffer: torch.Tensor = field(default_factory=lambda: torch.empty((MOST, WIDTH)))

    def prepare(self, call: Call, device: str) -> Call:
        return call

    def launch(self, choice: Mapping[str, Any], inputs: Call) -> torch.Tensor:
        stride = choice["stride"] if self.reads else 16
        if stride == self.unsupported:
            raise Unsupported(f"no kernel with stride {stride}")
        self.launches += 1
        parts = []
        for index, each in enumerate(inputs.requests):
            rows = table(each.seed, stride)[each.context - each.rows : each.context].clone()
            odd = self.fault is not None and self.fault(Place(inputs, index, self.launches, choice))
            if self.special is not None:
                rows[:, 3] = self.special[odd]
            elif odd:
                rows.view(torch.int32)[-1, 3] ^= 1
            parts.append(rows)
        out = self.buffer[: inputs.rows]
        return torch.cat(parts, out=out)

    def reference(self, inputs: Call) -> torch.Tensor:
        return torch.cat(
            [table(r.seed, 16)[r.context - r.rows : r.context] for r in inputs.requests]
        )

    def bytes_and_flops(self, call: Call) -> tuple[int, int]:
        return 4 * WIDTH * sum(r.context for r in call.requests), 1

    def digest(self) -> str:
        return "sha256:toy"


good = Toy()

PAIR = ("stride", "warps")
pairs = Toy(parameters=PAIR)
part_at_21 = Toy(lambda p: p.choice["warps"] == 8 and p.call.rows == 21, parameters=PAIR)
part_extreme = Toy(
    lambda p: p.choice["warps"] == 8 and p.call.find("magnitude") == "extreme", parameters=PAIR
)
unstable = Toy(lambda p: p.choice["stride"] == 32 and p.launches % 3 == 0, parameters=PAIR)
moving = Toy(
    lambda p: p.choice["stride"] == 32 and p.choice["warps"] == 8 and len(p.call.requests) > 6,
    parameters=PAIR,
)
lacking = Toy(unsupported=64, parameters=PAIR)
nothing = Toy(special=(float("nan"), float("nan")), unsupported=0, parameters=PAIR)
