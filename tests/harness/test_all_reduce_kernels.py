"""The all-reduce kernels in Triton's interpreter, rank by rank, and compiled for a GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")
ROOT = Path(__file__).resolve().parents[2]

# Steps one after the other, as the interpreter runs programs: all ranks copy, then all add, then
# all gather. Two epochs, so that both halves are used; what is not written stays NaN.
STEPS = """
import torch
from selc.harness.kernels.all_reduce_ranks import Rank, allocation, prepared

HALF = 1 << 16
for dtype in (torch.float16, torch.float32):
    for ranks, count, blocks in ((2, 16, 4), (3, 5000, 3), (4, 4096, 8), (1, 300, 2)):
        for algorithm, phases in (("one_shot", (1, 2)), ("two_shot", (1, 2, 3))):
            memory = [torch.zeros(allocation(ranks, HALF), dtype=torch.uint8) for _ in range(ranks)]
            group = [Rank.over(r, memory, HALF) for r in range(ranks)]
            for epoch in range(2):
                data = torch.randn(ranks, count).to(dtype)
                out = torch.full((ranks, count), float("nan"), dtype=dtype)
                for phase in phases:
                    for me in group:
                        me.state[0] = epoch
                        kernel, grid, arguments, constants = prepared(
                            me, algorithm, blocks, 1, data[me.rank], out[me.rank], phase
                        )
                        kernel[grid](*arguments, **constants)
                total = data[0].float()
                for rank in range(1, ranks):
                    total = total + data[rank].float()
                for rank in range(ranks):
                    assert torch.equal(out[rank], total.to(dtype)), (dtype, ranks, algorithm, rank)
print("equal")
"""

# The kernels themselves, waiting included: every rank is a process of its own that interprets them
# over shared memory, with pauses in places where one rank may get ahead of another. With halves of
# no size both epochs use the same place, which has to show: one rank is always late to read then.
TOGETHER = """
import ctypes, os, random, sys, time
import torch
from selc.harness.kernels import all_reduce_triton as kernels
from selc.harness.kernels.all_reduce_ranks import Rank, allocation

RANKS, HALF, COUNT, LAUNCHES = 3, int(sys.argv[1]), 600, int(sys.argv[2])
memory = [torch.zeros(allocation(RANKS, 1 << 12), dtype=torch.uint8) for _ in range(RANKS)]
data = torch.randn(2, RANKS, COUNT)
wrong = torch.zeros(RANKS, dtype=torch.int64)
for each in (*memory, data, wrong):
    each.share_memory_()
total = (data[:, 0] + data[:, 1]) + data[:, 2]

def flag(address):
    return ctypes.c_int32.from_address(int(address.handle.data.item()))

def tell(address, epoch):
    pause()
    flag(address).value = int(epoch.handle.data.item())

def wait(address, epoch, polls):
    ends = time.monotonic() + 60
    while flag(address).value < int(epoch.handle.data.item()):
        time.sleep(1e-4)
        assert time.monotonic() < ends, "a flag never came"
    if HALF:
        pause()
    elif rank == 0:
        time.sleep(2e-2)

def pause():
    if pauses.random() < 0.3:
        time.sleep(pauses.random() * 4e-3)

children = []
for rank in range(RANKS):
    child = os.fork()
    if child:
        children.append(child)
        continue
    kernels._tell, kernels._await = tell, wait
    me, pauses, common = Rank.over(rank, memory, HALF), random.Random(rank), random.Random(9)
    for _ in range(LAUNCHES):
        algorithm = common.choice(("one_shot", "two_shot") if HALF else ("one_shot",))
        count = common.choice((COUNT, 16, 256, 300))
        blocks, which = common.choice((1, 2, 3)), common.randrange(2)
        out = torch.full((count,), float("nan"))
        me.run(algorithm, blocks, 1, data[which, rank, :count], out)
        wrong[rank] += int((out != total[which, :count]).sum())
    os._exit(0)
assert all(os.waitpid(child, 0)[1] == 0 for child in children)
print(int(wrong.sum()))
"""

COMPILED = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from selc.harness.kernels import all_reduce_triton as kernels

TYPES = {"source": "*bf16", "target": "*bf16", "peers": "*i64", "state": "*i32"}
for kernel in (kernels.one_shot, kernels.two_shot):
    names = kernel.arg_names
    constants = {"RANKS": 2, "BLOCK": 4096, "PHASE": 0, "SLOTS": 128}
    constants = {n: v for n, v in constants.items() if n in names}
    signature = {n: "constexpr" if n in constants else TYPES.get(n, "i32") for n in names}
    aligned = [n for n in names if n not in constants and n not in ("rank", "polls")]
    attrs = {(names.index(n),): [["tt.divisibility", 16]] for n in aligned}
    source = ASTSource(kernel, signature, constexprs=constants, attrs=attrs)
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 8})
    ptx = made.asm["ptx"]
    meetings = 2 if kernel is kernels.two_shot else 1
    assert ptx.count("st.release.sys") == ptx.count("ld.acquire.sys") == 2 * meetings
    assert ptx.count("bar.sync") >= 2 * meetings
    assert "multimem" not in ptx
    assert "ld.global.cg.v4" in ptx and "st.global.v4" in ptx, "16 bytes at a time"
print("compiled")
"""


def run(script: str, *arguments: str, **environment: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **environment}
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip()


def test_steps_add_in_rank_order() -> None:
    assert run(STEPS, TRITON_INTERPRET="1") == "equal"


def test_ranks_meet_and_never_overwrite_early() -> None:
    assert run(TOGETHER, str(1 << 12), "24", TRITON_INTERPRET="1") == "0"


def test_one_half_would_be_overwritten() -> None:
    """The control: without a second half a rank that is ahead spoils what others still read."""
    assert int(run(TOGETHER, "0", "24", TRITON_INTERPRET="1")) > 0


@pytest.mark.slow
def test_compiles_for_hopper(tmp_path: Path) -> None:
    assert run(COMPILED, TRITON_CACHE_DIR=str(tmp_path)) == "compiled"
