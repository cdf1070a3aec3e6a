# mypy: ignore-errors
"""What a rank launches with: memory that all ranks see, and the kernels on it."""

import os
from dataclasses import dataclass
from typing import Any, Final

from selc.harness.kernels.all_reduce import BUFFER

HOST: Final = "127.0.0.1"
HELD: Final = {
    # The switch never adds: its sums have an order of their own.
    "NCCL_NVLS_ENABLE": "0",
    "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1",
    "NVSHMEM_DISABLE_NVLS": "1",
    # An allocation of symmetric memory is one tensor.
    "TORCH_SYMMMEM_IMPLICIT_POOL": "0",
}
WAYS: Final = ("symmetric", "ipc")
"""How memory is shared: torch's symmetric memory, or handles of CUDA."""


@dataclass(slots=True)
class Rank:
    """What one rank launches with."""

    rank: int
    ranks: int
    peers: Any  # addresses of all ranks' allocations, on the device
    state: Any  # epoch, and blocks that are done
    half: int
    keep: Any = None

    @property
    def device(self) -> Any:
        """Its GPU."""
        return self.peers.device

    @classmethod
    def over(cls, rank: int, allocations: list[Any], half: int = BUFFER) -> "Rank":
        """A rank over allocations that it can reach, all of which are zero."""
        import torch

        device = allocations[rank].device
        addresses = torch.tensor([a.data_ptr() for a in allocations], dtype=torch.int64)
        state = torch.zeros(2, dtype=torch.int32, device=device)
        return cls(rank, len(allocations), addresses.to(device), state, half, allocations)

    @classmethod
    def join(cls, rank: int, ranks: int, port: int, nccl: str | None, way: str) -> "Rank":
        """Join the others. All ranks call this together."""
        os.environ.update(HELD)
        if nccl:
            os.environ["NCCL_ALGO"] = nccl.capitalize()
        import torch
        import torch.distributed as dist

        torch.cuda.set_device(rank)
        device = torch.device("cuda", rank)
        if not dist.is_initialized():
            store = dist.TCPStore(HOST, port, ranks, is_master=False)
            dist.init_process_group(
                "nccl", store=store, rank=rank, world_size=ranks, device_id=device
            )
        shared = (_symmetric if way == "symmetric" else _ipc)(rank, ranks, allocation(ranks))
        me = cls.over(rank, shared)
        torch.cuda.synchronize()
        dist.barrier()
        torch.cuda.synchronize()
        return me

    def run(self, algorithm: str, blocks: int, num_warps: int, source: Any, target: Any) -> None:
        """Launch one all-reduce; the other ranks launch the same."""
        if algorithm in ("one_shot", "two_shot"):
            kernel, grid, arguments, constants = prepared(
                self, algorithm, blocks, num_warps, source, target
            )
            kernel[grid](*arguments, **constants)
            return
        if source is not target:
            target.copy_(source)
        if algorithm == "nccl":
            import torch.distributed as dist

            dist.all_reduce(target)


def prepared(
    me: Rank, algorithm: str, blocks: int, num_warps: int, source: Any, target: Any, phase: int = 0
) -> tuple[Any, tuple[int], tuple[Any, ...], dict[str, int]]:
    """A kernel with its grid, arguments and constants."""
    from selc.harness.kernels import all_reduce_triton as kernels

    count, each = source.numel(), num_warps * 1024 // source.element_size()
    common = (me.rank, head(me.ranks), me.half, kernels.POLLS)
    constants = {"RANKS": me.ranks, "BLOCK": each, "PHASE": phase, "num_warps": num_warps}
    if algorithm == "one_shot":
        grid = (max(1, min(blocks, kernels.MAX_BLOCKS, _up(count, each))),)
        arguments = (source, target, me.peers, me.state, count, *common)
        return kernels.one_shot, grid, arguments, constants
    share = _up(_up(count, me.ranks), 16) * 16
    grid = (max(1, min(blocks, kernels.MAX_BLOCKS, _up(share, each))),)
    arguments = (source, target, me.peers, me.state, count, share, *common)
    return kernels.two_shot, grid, arguments, {**constants, "SLOTS": kernels.MAX_BLOCKS}


def head(ranks: int) -> int:
    """Bytes of the flags, two meetings of all blocks."""
    from selc.harness.kernels.all_reduce_triton import MAX_BLOCKS

    return _up(2 * MAX_BLOCKS * ranks * 4, 4096) * 4096


def allocation(ranks: int, half: int = BUFFER) -> int:
    """Bytes of a rank's allocation: flags, two halves of messages, two of sums."""
    return head(ranks) + 4 * half


def _symmetric(rank: int, ranks: int, size: int) -> list[Any]:
    import torch
    import torch.distributed as dist
    import torch.distributed._symmetric_memory as symmetric

    mine = symmetric.empty(size, dtype=torch.uint8, device=torch.device("cuda", rank))
    mine.zero_()
    torch.cuda.synchronize()
    handle = symmetric.rendezvous(mine, dist.group.WORLD)
    others = [handle.get_buffer(peer, (size,), torch.uint8) for peer in range(ranks)]
    others[rank] = mine
    return [_Mapped(t.data_ptr(), mine.device, (handle, mine, t)) for t in others]


def _ipc(rank: int, ranks: int, size: int) -> list[Any]:
    import torch
    import torch.distributed as dist

    mine = torch.zeros(size, dtype=torch.uint8, device=torch.device("cuda", rank))
    torch.cuda.synchronize()
    handles: list[Any] = [None] * ranks
    dist.all_gather_object(handles, mine.untyped_storage()._share_cuda_())
    out = []
    for peer, handle in enumerate(handles):
        storage = mine.untyped_storage()
        if peer != rank:
            storage = torch.UntypedStorage._new_shared_cuda(*handle)
            # A copy between two devices makes torch enable access from one to the other.
            torch.zeros(1, device=f"cuda:{rank}").copy_(torch.zeros(1, device=f"cuda:{peer}"))
        out.append(_Mapped(storage.data_ptr(), mine.device, (storage, mine)))
    return out


@dataclass(slots=True)
class _Mapped:
    """A rank's allocation as this process sees it."""

    address: int
    device: Any
    keep: Any

    def data_ptr(self) -> int:
        return self.address


def _up(value: int, step: int) -> int:
    """The quotient, rounded up."""
    return -(-value // step)
