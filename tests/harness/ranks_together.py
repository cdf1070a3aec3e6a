"""A script: ranks that are processes, on a CPU where a stand-in keeps each device's time.

Everything that is launched goes through the ranks one after the other, and has to be the same on
all of them; a rank that launches something else, or nothing, is found out. Hearing of a launch
takes a rank long, which must not be in what is measured.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from selc.harness.call import Call, Request
from selc.harness.kernels import all_reduce_group
from selc.harness.kernels.all_reduce import KERNELS

RANKS = 3
SECONDS = {"one_shot": 4e-6, "two_shot": 7e-6, "nccl": 9e-6}
PIPE_SECONDS = 0.02
now = 0.0
capturing: list[Any] | None = None


@dataclass
class OnCpu:
    """A rank whose all-reduces meet over gloo."""

    rank: int
    ranks: int
    device: str = "cpu"

    @classmethod
    def join(cls, rank: int, ranks: int, port: int, nccl: str | None, way: str) -> OnCpu:
        store = dist.TCPStore("127.0.0.1", port, ranks, is_master=False)
        dist.init_process_group("gloo", store=store, rank=rank, world_size=ranks)
        return cls(rank, ranks)

    def run(self, algorithm: str, blocks: int, num_warps: int, source: Any, target: Any) -> None:
        def launch() -> None:
            global now
            mine = (algorithm, blocks, num_warps, source.numel(), source is target)
            found: list[Any] = [None] * self.ranks
            dist.all_gather_object(found, mine)
            assert all(each == mine for each in found), found
            target.copy_(source)
            dist.all_reduce(target)
            now += SECONDS[algorithm]

        if capturing is None:
            launch()
        else:
            capturing.append(launch)


class Graph:
    def capture_begin(self, capture_error_mode: str) -> None:
        global capturing
        assert capture_error_mode == "thread_local"
        capturing = []

    def capture_end(self) -> None:
        global capturing
        assert capturing is not None
        self.work, capturing = capturing, None

    def replay(self) -> None:
        for each in self.work:
            each()


class Event:
    def __init__(self, enable_timing: bool) -> None:
        self.at = 0.0

    def record(self) -> None:
        self.at = now

    def synchronize(self) -> None: ...

    def elapsed_time(self, other: Event) -> float:
        return (other.at - self.at) * 1e3


def wait(cycles: int) -> None:
    global now
    now += cycles * 1e-9


class Late:
    """A pipe through which a rank hears late."""

    def __init__(self, pipe: Any, seconds: float) -> None:
        self.pipe, self.seconds = pipe, seconds

    def recv(self) -> Any:
        time.sleep(self.seconds)
        return self.pipe.recv()


def serve(pipe: Any, rank: int, *more: Any) -> None:
    SERVE(Late(pipe, PIPE_SECONDS * rank), rank, *more)


# Here and not in `main`, as every rank's process imports this.
for name, value in {
    "device_count": lambda: RANKS,
    "synchronize": lambda: None,
    "CUDAGraph": Graph,
    "Event": Event,
    "Stream": lambda: None,
    "stream": lambda stream: contextlib.nullcontext(),
    "_sleep": wait,
}.items():
    setattr(torch.cuda, name, value)
SERVE = all_reduce_group.serve
vars(all_reduce_group).update(Rank=OnCpu, serve=serve)


def main() -> None:
    facts = {"model": {"hidden": 64, "element_size": 4}, "parallel": {"tensor": RANKS}}
    timers: dict[tuple[int, int, str], Any] = {}
    for rows, repeat in ((3, 1), (5, 3), (5000, 1)):
        requests = (Request(rows, rows, rows),)
        extra = {"repeat": repeat, "magnitude": "normal"}
        call = Call("all_reduce", {"num_tokens": rows}, facts, requests, extra)
        inputs = KERNELS.prepare(call, "cuda")
        on_cpu = KERNELS.prepare(call, "cpu")
        right = KERNELS.reference(on_cpu)
        for algorithm in SECONDS:
            choice = {"algorithm": algorithm, "blocks": 8, "num_warps": 4}
            if repeat == 1:
                out = KERNELS.launch(choice, inputs).double()
                assert (out - right).norm() < 1e-5 * right.norm()
            made = KERNELS.timer(choice, inputs)
            assert made is not None
            timers[rows, repeat, algorithm] = made
            assert KERNELS.timer(choice, on_cpu) is None
        if repeat == 1:  # what was timed leaves nothing behind
            out = KERNELS.launch({"algorithm": "nccl"}, inputs).double()
            assert (out - right).norm() < 1e-5 * right.norm()
    for _ in range(2):
        for (rows, repeat, algorithm), (seconds, how) in timers.items():
            count = 8 if rows == 5000 else 33 if repeat == 3 else 32
            assert how == f"graph of {count} on {RANKS} ranks", how
            expected = SECONDS[algorithm] * repeat
            assert abs(seconds() - expected) < 1e-9, (rows, repeat, algorithm)
    print("together")
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
