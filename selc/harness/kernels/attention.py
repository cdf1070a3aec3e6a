"""Attention: paged, causal, with grouped heads; chunks, decode and both in one launch."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from selc.harness.call import Call
from selc.harness.kernels import paging
from selc.harness.kernels.splits import PARAMETERS, config_of

SOURCES = (
    "attention.py",
    "attention_cpu.py",
    "attention_triton.py",
    "attention_work.py",
    "data.py",
    "paging.py",
    "splits.py",
)


class Attention:
    """Points: split_stride or num_splits, BLOCK_M, BLOCK_N, num_warps, num_stages."""

    tolerance = 0.02
    graph = True
    parameters = PARAMETERS

    def prepare(self, call: Call, device: str) -> paging.Inputs:
        """Queries and paged keys and values."""
        return paging.place(call, device)

    def launch(self, choice: Mapping[str, Any], inputs: paging.Inputs) -> Any:
        """The output, [rows, heads, head_dim]."""
        config = config_of(choice)
        if inputs.device == "cpu":
            from selc.harness.kernels import attention_cpu

            return attention_cpu.launch(config, inputs)
        from selc.harness.kernels import attention_triton

        return attention_triton.launch(config, inputs)

    def reference(self, inputs: paging.Inputs) -> Any:
        """The right output, in float64."""
        return paging.reference(inputs)

    def bytes_and_flops(self, call: Call) -> tuple[int, int]:
        """What must move and be computed at least."""
        return paging.bytes_and_flops(call)

    def estimate(self, call: Call, choice: Mapping[str, Any]) -> float:
        """About the seconds of a launch, from the work that it does."""
        from selc.harness.kernels import attention_estimate

        shape = paging.shape_of(call)
        return attention_estimate.estimate(
            call,
            paging.batch_of(call),
            config_of(choice),
            shape.group,
            shape.kv_heads,
            shape.head_dim,
        )

    def digest(self) -> str:
        """A hash of the files that the numbers depend on."""
        here = Path(__file__).parent
        text = b"".join((here / name).read_bytes() for name in SOURCES)
        return "sha256:" + hashlib.sha256(text).hexdigest()[:16]


KERNELS = Attention()
