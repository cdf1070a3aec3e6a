"""All-reduce among buffers of one process: the same sums in the same order as the kernels'.

The work of every rank is done, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

# NCCL left to itself takes its tree for small messages and a ring for large ones.
RING_BYTES: Final = 256 << 10
CHUNK: Final = 1 << 15


def run(algorithm: str, blocks: int, nccl: str | None, parts: Any, sums: Any) -> None:
    """Write each rank's sum of `parts` (ranks x elements) to its row of `sums`."""
    ranks, elements = parts.shape
    if algorithm == "one_shot":
        each = -(-elements // blocks)
        for rank in range(ranks):
            for place in _slices(0, elements, each):
                sums[rank, place] = _total(parts, place)
    elif algorithm == "two_shot":
        _two_shot(blocks, parts, sums)
    elif algorithm == "nccl":
        size = elements * parts.element_size()
        ring = nccl == "ring" or (nccl is None and size > RING_BYTES)
        (_ring if ring else _tree)(parts, sums)
    else:
        sums.copy_(parts)


def _total(parts: Any, place: slice) -> Any:
    """In the order of the ranks, in float32."""
    import torch

    total = parts[0, place].to(torch.float32, copy=True)
    for rank in range(1, len(parts)):
        total += parts[rank, place]
    return total


def _two_shot(blocks: int, parts: Any, sums: Any) -> None:
    ranks, elements = parts.shape
    share = -(-elements // ranks)
    each = max(1, -(-share // blocks))
    for owner in range(ranks):
        for place in _slices(owner * share, min(elements, (owner + 1) * share), each):
            sums[owner, place] = _total(parts, place)
    for owner in range(ranks):
        place = slice(owner * share, min(elements, (owner + 1) * share))
        for rank in range(ranks):
            if rank != owner:
                sums[rank, place] = sums[owner, place]


def _tree(parts: Any, sums: Any) -> None:
    """The tree of one machine is a chain: every rank adds its own and passes the rounded sum on."""
    ranks, elements = parts.shape
    for place in _slices(0, elements, CHUNK):
        _chain(parts, sums, place, range(ranks))


def _ring(parts: Any, sums: Any) -> None:
    """Each share goes round from the rank after its owner: the order moves with the message."""
    ranks, elements = parts.shape
    share = -(-elements // ranks)
    for owner in range(ranks):
        order = [(owner + 1 + step) % ranks for step in range(ranks)]
        for place in _slices(owner * share, min(elements, (owner + 1) * share), CHUNK):
            _chain(parts, sums, place, order)


def _chain(parts: Any, sums: Any, place: slice, order: Any) -> None:
    first, *others = order
    passed = parts[first, place]
    for rank in others:
        passed = passed + parts[rank, place]
    for rank in range(len(parts)):
        sums[rank, place] = passed


def _slices(start: int, stop: int, each: int) -> Iterator[slice]:
    for at in range(start, stop, max(1, each)):
        yield slice(at, min(at + each, stop))
