# mypy: ignore-errors
"""Ranks that add up their messages: one process and one GPU each.

Rank 0 is the process that measures. The others are its children, started at the first launch; each
is told over a pipe what to prepare and launch, and does what rank 0 does, in the same order.

    rank 0   ("prepare", n, message)   both make their part of the data
             ("launch", n, algorithm, blocks, num_warps), then its own launch
             ("time", n, algorithm, blocks, num_warps), then times as `all_reduce_timing` does
    others   the same, on their GPU

A launch is asynchronous everywhere: rank 0 sends and goes on, and the kernels meet on the devices.
With `repeat` in the call a launch replays a graph of as many all-reduces, as a step of a model has
them.

The children end with the pipe, so with the process. A kernel that waits in vain for minutes traps.
"""

import os
import sys
import weakref
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Any

from selc.harness.kernels.all_reduce import BUFFER, Message, check, part
from selc.harness.kernels.all_reduce_ranks import HOST, Rank, prepared
from selc.harness.kernels.all_reduce_timing import Replay, in_graph
from selc.harness.protocol import Unsupported


@dataclass(slots=True)
class Part:
    """A rank's part of a call."""

    me: Rank
    message: Message
    source: Any = None
    target: Any = None
    graphs: dict[Any, Any] = field(default_factory=dict)
    replays: dict[Any, Replay] = field(default_factory=dict)

    def __post_init__(self) -> None:
        import torch

        self.source = part(self.message, self.me.rank, str(self.me.device))
        self.target = torch.empty_like(self.source)

    def launch(self, algorithm: str, blocks: int, num_warps: int) -> Any:
        """Launch on this rank."""
        run = (algorithm, blocks, num_warps)
        self.target.fill_(float("nan"))  # what no kernel writes is seen
        if self.message.repeat == 1:
            self.me.run(*run, self.source, self.target)
        else:
            if run not in self.graphs:
                self.graphs[run] = capture(self.me, run, self.message.repeat, self)
            self.graphs[run].replay()
        return self.target.view(self.message.rows, self.message.hidden)

    def seconds(self, *run: Any) -> float:
        """How long a launch takes on this rank's device, while all ranks do this."""
        repeat = self.message.repeat
        if run not in self.replays:
            count = in_graph(self.message.bytes, repeat)
            self.replays[run] = Replay.of(self.me, run, self.source, self.target, count)
        return self.replays[run].seconds() * repeat


def capture(me: Rank, run: tuple[str, int, int], repeat: int, tensors: Any) -> Any:
    """A graph of some all-reduces, after one launch that compiles and connects."""
    import torch

    me.run(*run, tensors.source, tensors.target)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        for _ in range(repeat):
            me.run(*run, tensors.source, tensors.target)
    return graph


class Group:
    """Rank 0 and its children."""

    def __init__(self, ranks: int, nccl: str | None, way: str = "symmetric") -> None:
        import torch
        import torch.distributed as dist

        if torch.cuda.device_count() < ranks:
            raise Unsupported(f"{ranks} ranks need as many GPUs; {torch.cuda.device_count()} here")
        self.ranks, self.nccl = ranks, nccl
        self._number = 0
        self._store = dist.TCPStore(HOST, 0, ranks, is_master=True, wait_for_workers=False)
        port, context = self._store.port, get_context("spawn")
        self._pipes, self._children = [], []
        for rank in range(1, ranks):
            ours, theirs = context.Pipe()
            child = context.Process(
                target=serve, args=(theirs, rank, ranks, port, nccl, way), daemon=True
            )
            child.start()
            theirs.close()
            self._pipes.append(ours)
            self._children.append(child)
        self.me = Rank.join(0, ranks, port, nccl, way)

    def part(self, message: Message) -> tuple[int, Part]:
        """Have every rank make its part of a call."""
        self._number += 1
        self.send("prepare", self._number, message)
        return self._number, Part(self.me, message)

    def send(self, *words: Any) -> None:
        """Tell the children."""
        for rank, (pipe, child) in enumerate(zip(self._pipes, self._children, strict=True), 1):
            if not child.is_alive():
                raise RuntimeError(f"CUDA error: the process of rank {rank} has ended")
            pipe.send(words)

    def free(self, number: int) -> None:
        """Have the children forget a call."""
        try:
            self.send("free", number)
        except (RuntimeError, OSError):
            return


@dataclass(slots=True, weakref_slot=True)
class Remote:
    """A call's inputs as rank 0 has them; the other ranks are started when it is launched."""

    message: Message
    number: int = 0
    part: Part | None = None

    def launch(self, algorithm: str, blocks: int, num_warps: int) -> Any:
        """Launch on all ranks."""
        return self._told("launch", algorithm, blocks, num_warps).launch(
            algorithm, blocks, num_warps
        )

    def timer(self, algorithm: str, blocks: int, num_warps: int) -> tuple[Any, str]:
        """What times a launch on all ranks, and how it does."""

        def seconds() -> float:
            return self._told("time", algorithm, blocks, num_warps).seconds(
                algorithm, blocks, num_warps
            )

        seconds()  # all ranks capture
        count = in_graph(self.message.bytes, self.message.repeat)
        return seconds, f"graph of {count} on {self.message.ranks} ranks"

    def _told(self, word: str, algorithm: str, blocks: int, num_warps: int) -> Part:
        """Tell the other ranks what to do, for this one to do it then."""
        check(self.message, algorithm)
        if self.message.buffer > BUFFER:
            raise Unsupported(f"the buffers of these kernels have {BUFFER} bytes")
        group = group_of(self.message.ranks, self.message.nccl)
        if self.part is None:
            self.number, self.part = group.part(self.message)
            weakref.finalize(self, group.free, self.number)
        group.send(word, self.number, algorithm, blocks, num_warps)
        return self.part


_group: Group | None = None


def group_of(ranks: int, nccl: str | None) -> Group:
    """This process's group, of which there can be one: NCCL reads its settings once."""
    global _group
    if _group is None:
        _group = Group(ranks, nccl)
    if (_group.ranks, _group.nccl) != (ranks, nccl):
        raise Unsupported(f"this process has {_group.ranks} ranks, with NCCL held to {_group.nccl}")
    return _group


def warm(message: Message, algorithm: str, blocks: int, num_warps: int) -> None:
    """Compile the kernel of a launch, without the other ranks."""
    if algorithm not in ("one_shot", "two_shot"):
        return
    import torch

    source = torch.empty(message.rows * message.hidden, dtype=getattr(torch, message.dtype))
    source = source.cuda()
    own = torch.empty(1, dtype=torch.uint8, device="cuda")
    me = Rank.over(0, [own] * message.ranks)
    kernel, grid, arguments, constants = prepared(me, algorithm, blocks, num_warps, source, source)
    kernel.warmup(*arguments, grid=grid, **constants)


def serve(pipe: Any, rank: int, ranks: int, port: int, nccl: str | None, way: str) -> None:
    """What a child does."""
    me = Rank.join(rank, ranks, port, nccl, way)
    held: dict[int, Part] = {}
    while True:
        try:
            word, number, *more = pipe.recv()
        except (EOFError, OSError):
            os._exit(0)
        try:
            if word == "prepare":
                held[number] = Part(me, *more)
            elif word == "launch":
                held[number].launch(*more)
            elif word == "time":
                held[number].seconds(*more)
            elif word == "free":
                held.pop(number, None)
        except Exception as error:  # noqa: BLE001  the process of rank 0 sees that this one ends
            sys.stderr.write(f"rank {rank}: {type(error).__name__}: {error}\n")
            os._exit(1)
