"""FlashAttention-3 in vLLM's build, called as vLLM calls it, on the inputs of our attention.

Needs the extension of a vLLM wheel, whole or packed with xz: `_vllm_fa3_C.abi3.so[.xz]` in the
folder that SELC_FA3 names, by default `.kit1` beside the repository's README.

`KERNELS` is an object for `--kernels`, with one point: `splits`, an exact number of splits for
every request, or 0 for what its own schedule takes.
"""

from __future__ import annotations

import lzma
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from selc.harness.call import Call
from selc.harness.kernels import paging

NAME = "_vllm_fa3_C.abi3.so"
MOST_SPLITS = 32  # what vLLM asks of a step that is a captured graph
HERE = Path(__file__).resolve().parent.parent / ".kit1"


def load() -> Any:
    """The operations of the extension."""
    import torch

    if not hasattr(torch.ops._vllm_fa3_C, "fwd"):
        folder = Path(os.environ.get("SELC_FA3", HERE))
        library = folder / NAME
        if not library.exists():
            library = Path(tempfile.gettempdir()) / NAME
            if not library.exists():
                unpacked = lzma.decompress((folder / f"{NAME}.xz").read_bytes())
                part = library.with_suffix(f".{os.getpid()}")
                part.write_bytes(unpacked)
                part.rename(library)
        torch.ops.load_library(str(library))
    return torch.ops._vllm_fa3_C


class Fa3:
    """FlashAttention-3."""

    tolerance = 0.02
    parameters = ("splits",)

    def prepare(self, call: Call, device: str) -> paging.Inputs:
        return paging.place(call, device)

    def launch(self, choice: Mapping[str, Any], inputs: paging.Inputs) -> Any:
        splits = int(choice.get("splits", 0))
        plan = inputs.plans.get(("fa3", splits))
        if plan is None:
            plan = inputs.plans["fa3", splits] = Plan(inputs, splits)
        return plan.run(inputs)

    def reference(self, inputs: paging.Inputs) -> Any:
        return paging.reference(inputs)

    def bytes_and_flops(self, call: Call) -> tuple[int, int]:
        return paging.bytes_and_flops(call)


class Plan:
    """What does not change between the layers of a step: lengths and the schedule."""

    def __init__(self, inputs: paging.Inputs, splits: int) -> None:
        import torch

        shape, requests, device = inputs.shape, inputs.requests, inputs.device
        rows = [r.rows for r in requests]
        self.starts = torch.tensor([0, *rows]).cumsum(0).to(torch.int32).to(device)
        self.lengths = torch.tensor([r.context for r in requests], dtype=torch.int32, device=device)
        self.most_rows, self.longest = max(rows), max(r.context for r in requests)
        self.schedule = load().get_scheduler_metadata(
            len(requests),
            self.most_rows,
            self.longest,
            shape.heads,
            shape.kv_heads,
            shape.head_dim,
            shape.head_dim,
            getattr(torch, shape.dtype),
            self.lengths,
            self.starts,
            None,
            None,
            None,
            None,
            shape.page_size,
            0,
            True,
            -1,
            -1,
            False,
            MOST_SPLITS,
            None,
            0,
        )
        # Rows of four arrays, each as long as the batch rounded up to fours; splits are the second.
        self.at = -(-len(requests) // 4) * 4
        self.count = len(requests)
        if splits:
            self.schedule[self.at : self.at + self.count] = splits

    def splits(self) -> list[int]:
        """The number of splits of each request."""
        return self.schedule[self.at : self.at + self.count].tolist()

    def run(self, inputs: paging.Inputs) -> Any:
        import torch

        out, *_ = load().fwd(
            inputs.q,
            inputs.keys,
            inputs.values,
            None,
            None,
            None,
            torch.empty_like(inputs.q),
            self.starts,
            None,
            None,
            None,
            self.lengths,
            self.most_rows,
            self.longest,
            inputs.table,
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            inputs.shape.scale,
            True,
            -1,
            -1,
            0.0,
            True,
            self.schedule,
            MOST_SPLITS,
            None,
            0,
            None,
            1,
            0,
            None,
        )
        return out


KERNELS = Fa3()
