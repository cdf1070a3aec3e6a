"""The sum over tensor-parallel ranks: one shot, two shots, and NCCL.

Every rank holds a partial sum of the batch's rows. With one shot each rank reads all ranks' rows
and adds them; with two each adds a share and the shares are gathered. Both add in the order of the
ranks, in float32, and round once, so that an element's bits depend neither on the size of the
message nor on who adds it. NCCL adds as it likes: in the order of the ranks with a rounding at each
hop where it is held to its tree, in an order that moves with the message in a ring.

On a GPU the ranks are processes (`all_reduce_group`), on the CPU buffers of one process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from selc.harness.call import Call, Request, requests_of
from selc.harness.protocol import Unsupported

# What selections call the algorithms, by what these kernels do.
NAMES: Final = {
    "one_shot": "one_shot",
    "one_shot_push": "one_shot",
    "one_shot_pull": "one_shot",
    "flashinfer_one_shot": "one_shot",
    "two_shot": "two_shot",
    "two_shot_pull": "two_shot",
    "symm_mem_two_shot": "two_shot",
    "flashinfer_two_shot": "two_shot",
    "nccl": "nccl",
    "none": "none",
}
BLOCKS: Final = 32
NUM_WARPS: Final = 8
BUFFER: Final = 64 << 20
FILES: Final = (
    "all_reduce",
    "all_reduce_cpu",
    "all_reduce_group",
    "all_reduce_ranks",
    "all_reduce_timing",
    "all_reduce_triton",
    "values",
)
SALT: Final = 1000


@dataclass(frozen=True, slots=True)
class Message:
    """What is added: everything that a rank needs to make its part of the data."""

    requests: tuple[Request, ...]
    hidden: int
    ranks: int
    dtype: str
    magnitude: str
    nccl: str | None  # what NCCL is held to: 'tree', 'ring' or nothing
    repeat: int  # all-reduces in a launch
    buffer: int  # bytes that a message may have

    @classmethod
    def of(cls, call: Call) -> Message:
        """Read a call."""
        size = call.find("element_size", default=2)
        dtype = str(call.find("dtype", default="float32" if size == 4 else "bfloat16"))
        return cls(
            call.requests or requests_of(call.inputs, call.extra),
            int(call.get("hidden", "hidden_size")),
            int(call.find("ranks", "parallel.tensor", default=2)),
            dtype.removeprefix("torch."),
            str(call.find("magnitude", default="normal")),
            call.find("nccl_algo"),
            int(call.find("repeat", default=1)),
            int(call.find("buffer_bytes", default=BUFFER)),
        )

    @property
    def rows(self) -> int:
        """Rows of all requests."""
        return sum(r.rows for r in self.requests)

    @property
    def bytes(self) -> int:
        """The message's size."""
        return self.rows * self.hidden * (4 if self.dtype == "float32" else 2)


@dataclass(frozen=True, slots=True)
class Local:
    """All ranks' buffers in one process."""

    message: Message
    parts: Any  # ranks x elements
    sums: Any  # the same: what each rank ends with


class AllReduce:
    """The family's kernels."""

    parameters = ("algorithm", "blocks", "num_warps")
    tolerance = 0.02
    graph = False  # the other ranks' processes launch too

    def prepare(self, call: Call, device: str) -> Any:
        """The ranks' partial sums."""
        message = Message.of(call)
        if device == "cpu":
            import torch

            parts = torch.stack([part(message, r, device) for r in range(message.ranks)])
            return Local(message, parts, torch.empty_like(parts))
        from selc.harness.kernels.all_reduce_group import Remote

        return Remote(message)

    def launch(self, choice: Mapping[str, Any], inputs: Any) -> Any:
        """Rank 0's rows of the sum."""
        algorithm, blocks, num_warps = settings(choice)
        if not isinstance(inputs, Local):
            return inputs.launch(algorithm, blocks, num_warps)
        from selc.harness.kernels.all_reduce_cpu import run

        message = inputs.message
        check(message, algorithm)
        for _ in range(message.repeat):
            run(algorithm, blocks, message.nccl, inputs.parts, inputs.sums)
        return inputs.sums[0].view(message.rows, message.hidden)

    def timer(
        self, choice: Mapping[str, Any], inputs: Any
    ) -> tuple[Callable[[], float], str] | None:
        """On GPUs all ranks time together."""
        if isinstance(inputs, Local):
            return None
        made: tuple[Callable[[], float], str] = inputs.timer(*settings(choice))
        return made

    def warm(self, choice: Mapping[str, Any], inputs: Any) -> None:
        """Compile what a launch needs."""
        if isinstance(inputs, Local):
            return
        from selc.harness.kernels.all_reduce_group import warm

        warm(inputs.message, *settings(choice))

    def reference(self, inputs: Any) -> Any:
        """The sum in float64."""
        import torch

        message: Message = inputs.message
        device = "cpu" if isinstance(inputs, Local) else "cuda"
        total = torch.zeros(message.rows * message.hidden, dtype=torch.float64, device=device)
        for rank in range(message.ranks):
            total += part(message, rank, device).double()
        return total.view(message.rows, message.hidden)

    def bytes_and_flops(self, call: Call) -> tuple[int, int]:
        """A rank reads its message once and writes the sum once."""
        message = Message.of(call)
        adds = (message.ranks - 1) * message.rows * message.hidden
        return 2 * message.bytes * message.repeat, adds * message.repeat

    def digest(self) -> str:
        """Of the source of all its files."""
        from selc.harness.kernels.values import digest_of_files

        return digest_of_files(*FILES)


def settings(choice: Mapping[str, Any]) -> tuple[str, int, int]:
    """The algorithm, blocks and warps of a choice.

    Raises:
        Unsupported: the algorithm is none of ours.
    """
    name = str(choice["algorithm"])
    if name not in NAMES:
        raise Unsupported(f"there is no kernel for the algorithm '{name}'")
    # Zero: the library decides.
    return NAMES[name], int(choice.get("blocks") or BLOCKS), int(choice.get("num_warps") or 8)


def check(message: Message, algorithm: str) -> None:
    """What the kernels need of a message.

    Raises:
        Unsupported: it is too large, or not a multiple of 16 bytes.
    """
    if algorithm in ("one_shot", "two_shot"):
        if message.bytes > message.buffer:
            raise Unsupported(f"{message.bytes} bytes do not fit in a buffer of {message.buffer}")
        if message.bytes % 16:
            raise Unsupported("16 bytes are moved at a time")
    if algorithm == "none" and message.ranks > 1:
        raise Unsupported(f"{message.ranks} ranks need an all-reduce")


def part(message: Message, rank: int, device: str) -> Any:
    """A rank's partial sums, flat: of every row a function of the request's seed and its place."""
    import torch

    from selc.harness.kernels.values import normal, row_keys

    return normal(
        row_keys(Call("all_reduce", {}, requests=message.requests)),
        message.hidden,
        salt=SALT + rank,
        scale=1.0,
        dtype=getattr(torch, message.dtype),
        device=device,
        magnitude=message.magnitude,
    ).view(-1)


KERNELS = AllReduce()
