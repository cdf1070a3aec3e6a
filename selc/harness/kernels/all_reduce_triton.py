# mypy: ignore-errors
# ruff: noqa: N803  # constants of kernels are called as Triton calls them
"""One-shot and two-shot all-reduce over memory that all ranks see.

Every rank owns one allocation: flags, two halves for its message, two for its share of the sum.
A launch has a number, its epoch, and uses the half of its parity. Block `b` of a rank copies its
slice of the message to its own half, tells block `b` of every rank, waits for theirs, and reads
their slices. The next launch writes the other half, and the one after it begins only when every
rank has begun the next: by then all ranks have read this half, so that nothing is overwritten
early. Flags hold epochs, which only grow; a rank that is ahead leaves a larger one.

The epoch is kept on the device (`state`: epoch, blocks that are done), raised by the last block of
a launch, so that a captured launch can be replayed. All blocks of a launch wait for others and
must be resident together.

`PHASE` 0 is the launch. 1, 2 and 3 do one step without waiting: the interpreter, which runs one
program after the other, goes through the ranks step by step.
"""

import triton
import triton.language as tl

MAX_BLOCKS = 128
POLLS = 1 << 26
"""Times that a flag is read, minutes in all, before the launch fails: a rank has died."""


@triton.jit
def _at(peers, rank, offset, like):
    """A rank's memory at an offset in bytes, as elements of the type that `like` points to."""
    address = tl.multiple_of(tl.load(peers + rank) + offset, 16)
    return tl.multiple_of(address.to(tl.pointer_type(like.dtype.element_ty)), 16)


@triton.jit
def _tell(address, epoch):
    """One thread stores a flag; what its block wrote before is seen by who sees the flag."""
    tl.inline_asm_elementwise(
        """
        {
        .reg .pred %other;
        .reg .u32 %thread;
        mov.u32 %thread, %tid.x;
        setp.ne.u32 %other, %thread, 0;
        @!%other st.release.sys.global.u32 [$1], $2;
        mov.u32 $0, 0;
        }
        """,
        "=r,l,r",
        [address, epoch],
        dtype=tl.int32,
        is_pure=False,
        pack=1,
    )


@triton.jit
def _await(address, epoch, polls):
    """One thread reads a flag until it has the epoch or a later one."""
    tl.inline_asm_elementwise(
        """
        {
        .reg .pred %go;
        .reg .u32 %seen;
        .reg .u32 %left;
        mov.u32 %left, $3;
        mov.u32 %seen, %tid.x;
        setp.ne.u32 %go, %seen, 0;
        @%go bra done;
        again:
        ld.acquire.sys.global.u32 %seen, [$1];
        setp.ge.u32 %go, %seen, $2;
        @%go bra done;
        sub.u32 %left, %left, 1;
        setp.ne.u32 %go, %left, 0;
        @%go bra again;
        trap;
        done:
        mov.u32 $0, 0;
        }
        """,
        "=r,l,r,r",
        [address, epoch, polls],
        dtype=tl.int32,
        is_pure=False,
        pack=1,
    )


@triton.jit
def _meet(peers, rank, epoch, slot, polls, RANKS: tl.constexpr):
    """This block of all ranks has come here, and each sees what the others wrote before."""
    tl.debug_barrier()
    for peer in tl.static_range(RANKS):
        _tell(tl.load(peers + peer) + (slot * RANKS + rank) * 4, epoch)
    for peer in tl.static_range(RANKS):
        _await(tl.load(peers + rank) + (slot * RANKS + peer) * 4, epoch, polls)
    tl.debug_barrier()


@triton.jit
def _leave(state, epoch):
    """The last block to leave raises the epoch."""
    if tl.atomic_add(state + 1, 1) == tl.num_programs(0) - 1:
        tl.store(state + 1, 0)
        tl.store(state, epoch)


@triton.jit
def _added(peers, offset, place, inside, like, RANKS: tl.constexpr):
    """The ranks' elements, added in their order in float32."""
    total = tl.load(_at(peers, 0, offset, like) + place, mask=inside, cache_modifier=".cg").to(
        tl.float32
    )
    for peer in tl.static_range(1, RANKS):
        part = tl.load(_at(peers, peer, offset, like) + place, mask=inside, cache_modifier=".cg")
        total += part.to(tl.float32)
    return total


@triton.jit(do_not_specialize=["rank", "polls"])
def one_shot(
    source,
    target,
    peers,  # addresses of all ranks' allocations
    state,
    count,  # elements
    rank,
    start,  # bytes before the first half
    half,  # bytes of a half
    polls,
    RANKS: tl.constexpr,
    BLOCK: tl.constexpr,
    PHASE: tl.constexpr,
):
    """Every rank adds everything."""
    block = tl.program_id(0)
    epoch = tl.load(state) + 1
    offset = start + (epoch % 2).to(tl.int64) * half
    each = tl.cdiv(tl.cdiv(count, tl.num_programs(0)), BLOCK) * BLOCK
    first = block * each
    last = tl.minimum(first + each, count)
    lanes = tl.arange(0, BLOCK)
    if PHASE < 2:
        mine = _at(peers, rank, offset, source)
        for at in range(first, last, BLOCK):
            place = at + lanes
            inside = place < count
            tl.store(mine + place, tl.load(source + place, mask=inside), mask=inside)
    if PHASE == 0:
        _meet(peers, rank, epoch, block, polls, RANKS)
    if PHASE != 1:
        for at in range(first, last, BLOCK):
            place = at + lanes
            inside = place < count
            total = _added(peers, offset, place, inside, source, RANKS)
            tl.store(target + place, total.to(target.dtype.element_ty), mask=inside)
    if PHASE == 0:
        _leave(state, epoch)


@triton.jit(do_not_specialize=["rank", "polls"])
def two_shot(
    source,
    target,
    peers,
    state,
    count,
    share,  # elements that a rank adds
    rank,
    start,
    half,
    polls,
    RANKS: tl.constexpr,
    BLOCK: tl.constexpr,
    PHASE: tl.constexpr,
    SLOTS: tl.constexpr,  # flags before those of the second meeting
):
    """Every rank adds a share, and all shares are gathered.

    Block `b` has slice `b` of every share, so that it depends on blocks `b` alone.
    """
    block = tl.program_id(0)
    epoch = tl.load(state) + 1
    parity = (epoch % 2).to(tl.int64)
    offset = start + parity * half
    summed = start + (2 + parity) * half
    each = tl.cdiv(tl.cdiv(share, tl.num_programs(0)), BLOCK) * BLOCK
    first = block * each
    last = tl.minimum(first + each, share)
    lanes = tl.arange(0, BLOCK)
    if PHASE < 2:
        mine = _at(peers, rank, offset, source)
        for owner in tl.static_range(RANKS):
            for at in range(first, last, BLOCK):
                place = owner * share + at + lanes
                inside = (at + lanes < share) & (place < count)
                tl.store(mine + place, tl.load(source + place, mask=inside), mask=inside)
    if PHASE == 0:
        _meet(peers, rank, epoch, block, polls, RANKS)
    if PHASE == 0 or PHASE == 2:
        sums = _at(peers, rank, summed, source)
        for at in range(first, last, BLOCK):
            place = rank * share + at + lanes
            inside = (at + lanes < share) & (place < count)
            total = _added(peers, offset, place, inside, source, RANKS)
            tl.store(sums + at + lanes, total.to(source.dtype.element_ty), mask=inside)
    if PHASE == 0:
        _meet(peers, rank, epoch, SLOTS + block, polls, RANKS)
    if PHASE == 0 or PHASE == 3:
        for owner in tl.static_range(RANKS):
            sums = _at(peers, owner, summed, source)
            for at in range(first, last, BLOCK):
                place = owner * share + at + lanes
                inside = (at + lanes < share) & (place < count)
                part = tl.load(sums + at + lanes, mask=inside, cache_modifier=".cg")
                tl.store(target + place, part, mask=inside)
    if PHASE == 0:
        _leave(state, epoch)
