"""All-reduce among buffers of one process: the same sums in the same order as the kernels'.

The work of every rank is done. With one shot each of them adds everything, with two a share; what
each block does is one step after the other here. What stands in for NCCL moves whole slots however
little is in them, which costs small messages and is soon made up for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

# NCCL left to itself takes its tree for small messages and a ring for large ones.
RING_BYTES: Final = 256 << 10
SLOT: Final = 1 << 13


def run(algorithm: str, blocks: int, nccl: str | None, parts: Any, sums: Any) -> None:
    """Write each rank's sum of `parts` (ranks x elements) to its row of `sums`."""
    elements = parts.shape[1]
    if algorithm == "one_shot":
        for place in _slices(elements, -(-elements // blocks)):
            sums[:, place] = _total(parts[:, None, place], len(parts))
    elif algorithm == "two_shot":
        _two_shot(blocks, parts, sums)
    elif algorithm == "nccl":
        size = elements * parts.element_size()
        ring = nccl == "ring" or (nccl is None and size > RING_BYTES)
        (_ring if ring else _tree)(parts, sums)
    else:
        sums.copy_(parts)


def _total(parts: Any, rows: int) -> Any:
    """In the order of the ranks, in float32; `rows` of it, of one row each or of as many."""
    import torch

    first = parts[0].expand(rows, -1)
    total = first.to(torch.float32, copy=True, memory_format=torch.contiguous_format)
    for part in parts[1:]:
        total += part
    return total


def _two_shot(blocks: int, parts: Any, sums: Any) -> None:
    ranks, elements = parts.shape
    share = elements // ranks
    even = share * ranks
    # By rank, by owner of the share, by place in the share.
    views = parts[:, :even].view(ranks, ranks, share)
    added = parts.new_empty(elements)
    shares = added[:even].view(ranks, share)
    for place in _slices(share, -(-share // blocks)):
        shares[:, place] = _total(views[:, :, place], ranks)
    if even < elements:
        added[even:] = _total(parts[:, None, even:], 1)[0]
    sums[:] = added


def _tree(parts: Any, sums: Any) -> None:
    """The tree of one machine is a chain: every rank adds its own and passes the rounded sum on."""
    ranks, elements = parts.shape
    for place in _slices(elements, SLOT):
        _chain(parts, sums, place, range(ranks))


def _ring(parts: Any, sums: Any) -> None:
    """Each share goes round from the rank after its owner: the order moves with the message."""
    ranks, elements = parts.shape
    share = -(-elements // ranks)
    for owner in range(ranks):
        order = [(owner + 1 + step) % ranks for step in range(ranks)]
        for place in _slices(elements, SLOT, owner * share, (owner + 1) * share):
            _chain(parts, sums, place, order)


def _chain(parts: Any, sums: Any, place: slice, order: Sequence[int]) -> None:
    count = place.stop - place.start
    slots = parts.new_zeros(2, SLOT)
    slots[0, :count] = parts[order[0], place]
    for rank in order[1:]:
        slots[1, :count] = parts[rank, place]
        slots[0] += slots[1]
    sums[:, place] = slots[0, :count]


def _slices(elements: int, each: int, start: int = 0, stop: int | None = None) -> Iterator[slice]:
    """Of so many elements, from `start` to `stop`."""
    stop = elements if stop is None else min(stop, elements)
    for at in range(start, stop, max(1, each)):
        yield slice(at, min(at + each, stop))
