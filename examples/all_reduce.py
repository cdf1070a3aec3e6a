"""The sum over ranks after a sharded layer, as vLLM 0.21.0 and SGLang 0.5.23 choose it.

Both try a list of libraries in order and take the first that admits the message; inside a library
thresholds on bytes, one set per number of ranks, choose the algorithm. The bytes are the batch's
tokens times constants, so all of it moves with the batch, and so does the state that one engine
asks for as well: whether a CUDA graph is being captured.

What is the kernels' duty, and not decided here: that a kernel with fixed parameters adds the ranks'
values of an element in an order that does not depend on the message. Three facts state where that
is known to fail or to need help. `two_shot_in_rank_order`: the two-stage kernel of vLLM, and of
SGLang's first generation, lets the owner of a shard add first, and who owns an element follows from
the size of the message. `nccl_fixed`: NCCL chooses its own algorithm by size unless its environment
names one algorithm, one protocol and a number of channels. `push_bytes` and `pull_bytes`: what is
allocated bounds what may be pinned, whatever the thresholds say.
"""

from __future__ import annotations

from selc.lang import Bits, Neutral, Runtime, assume, record, require, selection

KIB = 1024
MIB = 1024 * 1024
UNLIMITED = 1 << 60


@record
class Device:
    vendor: str  # 'cuda' or 'rocm'
    capability: int  # ten times major plus minor
    num_sms: int
    fully_connected: bool  # every pair of ranks has a direct link
    multicast: bool  # the switch can add


@record
class Model:
    hidden: int
    element_size: int  # bytes of an activation, which is bfloat16 where it is two


@record
class Parallel:
    tensor: int


@record
class Engine:
    batch_invariant: bool
    max_num_batched_tokens: int


@record
class Comm:
    ladder: str  # 'vllm' or 'sglang': whose order of trial
    custom: str | None  # SGLang's generation of custom kernels: 'v1', 'v2-0.5.10', 'v2'
    force: str | None  # a custom algorithm that the environment forces
    custom_bytes: int  # the largest message that the first generation admits
    push_bytes: int  # allocated buffers, per message
    pull_bytes: int
    symm_mem: bool
    nccl_symm_mem: bool
    flashinfer: bool
    quick: int | None  # quick reduce on ROCm: 0 exact, 1 int8, 2 int6, 3 int4
    mscclpp: tuple[tuple[int, int, int], ...] | None  # tuned at start: bytes, threads, blocks
    two_shot_in_rank_order: bool
    nccl_fixed: bool


@record
class Batch:
    num_tokens: Runtime[int]
    capturing: Runtime[bool]


@record
class Launch:
    """One all-reduce.

    `algorithm` names a library and what it does. With one shot every rank adds everything; with two
    each adds a shard and the shards are gathered. Values are pushed into the others' buffers,
    pulled from them, or added by the switch (multicast). How many blocks and threads share the work
    is neutral: a custom kernel adds an element in one thread. `in_place` says that the input itself
    is read, which only a captured graph's addresses allow. Zeros: the library decides.
    """

    algorithm: Bits[str]
    blocks: Neutral[int]
    threads: Neutral[int]
    in_place: Neutral[bool]


# Message sizes up to which SGLang's second generation takes one-shot push, one-shot pull and
# two-shot pull, and the range for the two-shot kernel of the switch; by number of ranks.
Ladder = tuple[int, int, int, tuple[int, int] | None]

HOPPER_GRAPH: dict[int, Ladder] = {
    2: (16 * MIB, 128 * MIB, 128 * MIB, None),
    3: (1280 * KIB, 1280 * KIB, 128 * MIB, None),
    4: (384 * KIB, 384 * KIB, 128 * MIB, None),
    5: (192 * KIB, 192 * KIB, 32 * MIB, None),
    6: (128 * KIB, 128 * KIB, 32 * MIB, (8 * MIB, 32 * MIB)),
    7: (128 * KIB, 128 * KIB, 32 * MIB, (1 * MIB, 32 * MIB)),
    8: (128 * KIB, 128 * KIB, 32 * MIB, (512 * KIB, 128 * MIB)),
}
HOPPER_EAGER: dict[int, Ladder] = {
    2: (32 * MIB, 128 * MIB, 128 * MIB, None),
    3: (3 * MIB, 3 * MIB, 16 * MIB, None),
    4: (896 * KIB, 896 * KIB, 32 * MIB, (0, 32 * MIB)),
    5: (384 * KIB, 384 * KIB, 32 * MIB, (0, 32 * MIB)),
    6: (192 * KIB, 192 * KIB, 32 * MIB, (0, 32 * MIB)),
    7: (128 * KIB, 128 * KIB, 32 * MIB, (0, 32 * MIB)),
    8: (128 * KIB, 128 * KIB, 128 * MIB, (0, 128 * MIB)),
}
BLACKWELL_GRAPH: dict[int, Ladder] = {
    2: (8 * MIB, 32 * MIB, 128 * MIB, None),
    3: (4 * MIB, 4 * MIB, 128 * MIB, None),
    4: (2304 * KIB, 2304 * KIB, 128 * MIB, None),
    5: (1536 * KIB, 1536 * KIB, 128 * MIB, None),
    6: (1 * MIB, 1 * MIB, 128 * MIB, None),
    7: (640 * KIB, 640 * KIB, 128 * MIB, None),
    8: (512 * KIB, 512 * KIB, 128 * MIB, (8 * MIB, 128 * MIB)),
    16: (256 * KIB, 256 * KIB, 128 * MIB, (256 * KIB, 128 * MIB)),
}
BLACKWELL_EAGER: dict[int, Ladder] = {
    2: (16 * MIB, 128 * MIB, 128 * MIB, None),
    3: (8 * MIB, 8 * MIB, 32 * MIB, None),
    4: (3 * MIB, 3 * MIB, 32 * MIB, None),
    5: (2 * MIB, 2 * MIB, 32 * MIB, (0, 32 * MIB)),
    6: (1280 * KIB, 1280 * KIB, 64 * MIB, (0, 64 * MIB)),
    7: (1 * MIB, 1 * MIB, 64 * MIB, (0, 64 * MIB)),
    8: (768 * KIB, 768 * KIB, 128 * MIB, (0, 128 * MIB)),
    16: (256 * KIB, 256 * KIB, 128 * MIB, (256 * KIB, 128 * MIB)),
}
OTHER: Ladder = (1 * MIB, 1 * MIB, 16 * MIB, None)

# The same for SGLang 0.5.10: push, then pull with one shot; then two-shot pull to the buffer's end.
OLD_HOPPER: dict[int, tuple[int, int]] = {
    2: (2 * MIB, UNLIMITED),
    3: (512 * KIB, 512 * KIB),
    4: (384 * KIB, 256 * KIB),
    5: (256 * KIB, 256 * KIB),
    6: (192 * KIB, 192 * KIB),
    7: (192 * KIB, 192 * KIB),
    8: (160 * KIB, 160 * KIB),
}
OLD_BLACKWELL: dict[int, tuple[int, int]] = {
    2: (4 * MIB, UNLIMITED),
    3: (4 * MIB, 4 * MIB),
    4: (2 * MIB, 2 * MIB),
    5: (2 * MIB, 2 * MIB),
    6: (1 * MIB, 1 * MIB),
    7: (896 * KIB, 896 * KIB),
    8: (720 * KIB, 720 * KIB),
}

# vLLM: what its custom kernels admit where symmetric memory could take the rest, and what that
# admits; by capability and number of ranks.
CUSTOM_BYTES: dict[int, dict[int, int]] = {
    90: {2: 64 * MIB, 4: 32 * MIB, 6: 512 * KIB, 8: 256 * KIB},
    100: {2: 2 * MIB, 4: 2 * MIB, 6: 1 * MIB, 8: 1 * MIB},
    103: {2: 4 * MIB, 4: 4 * MIB, 6: 8 * MIB, 8: 4 * MIB},
}
SYMM_MEM_BYTES: dict[int, dict[int, int]] = {
    90: {2: 64 * MIB, 4: 32 * MIB, 6: 64 * MIB, 8: 64 * MIB},
    100: {2: 8 * MIB, 4: 32 * MIB, 6: 128 * MIB, 8: 128 * MIB},
    103: {2: 4 * MIB, 4: 32 * MIB, 6: 32 * MIB, 8: 64 * MIB},
}
FLASHINFER_BYTES: dict[int, dict[int, int]] = {
    90: {2: 64 * MIB, 4: 2 * MIB, 8: 512 * KIB},
    100: {2: 64 * MIB, 4: 32 * MIB, 8: 1 * MIB},
    103: {2: 64 * MIB, 4: 64 * MIB, 8: 2 * MIB},
}
FLASHINFER_ONE_SHOT_MIB: dict[int, int] = {2: 512, 4: 64, 8: 42}
# Smallest message for quick reduce of bfloat16, by its level.
QUICK_MIB: dict[int, tuple[int, int, int, int]] = {
    2: (2, 8, 8, 8),
    4: (8, 64, 64, 16),
    8: (16, 2048, 2048, 2048),
}
QUICK_LARGEST = 2048 * MIB

CUSTOM = ("one_shot_push", "one_shot_pull", "two_shot_pull", "two_shot_multicast")
PULLS = ("one_shot_pull", "two_shot_pull")


@selection(family="all_reduce", scope="launch")
def all_reduce(
    device: Device, model: Model, parallel: Parallel, engine: Engine, comm: Comm, batch: Batch
) -> Launch:
    num_tokens = batch.num_tokens
    assume(num_tokens >= 1, "an empty batch is not launched")
    assume(num_tokens <= engine.max_num_batched_tokens, "the scheduler's token budget")
    ranks = parallel.tensor
    size = num_tokens * model.hidden * model.element_size
    if ranks == 1:
        return Launch("none", 0, 0, False)

    if comm.ladder == "vllm":
        algorithm = vllm_choice(device, model, engine, comm, ranks, num_tokens, size)
    else:
        algorithm = sglang_choice(device, model, engine, comm, ranks, size, batch.capturing)

    check(device, comm, ranks, algorithm, size)
    blocks, threads = grid(device, comm, ranks, algorithm, size)
    in_place = algorithm in PULLS and batch.capturing
    return Launch(algorithm, blocks, threads, in_place)


def vllm_choice(
    device: Device,
    model: Model,
    engine: Engine,
    comm: Comm,
    ranks: int,
    num_tokens: int,
    size: int,
) -> str:
    if comm.nccl_symm_mem and not engine.batch_invariant and nccl_symm_mem_admits(ranks, size):
        return "nccl_symm_mem"
    if device.vendor == "rocm" and comm.quick is not None and quick_admits(comm, ranks, size):
        return "quick"
    if comm.flashinfer and not engine.batch_invariant:
        limit = FLASHINFER_BYTES.get(device.capability, {}).get(ranks, 0)
        if num_tokens <= limit // (model.hidden * model.element_size):
            # The library counts both halves of a double buffer.
            sent = num_tokens * model.hidden * 2 * ranks * model.element_size
            one_shot = sent <= FLASHINFER_ONE_SHOT_MIB[ranks] * MIB
            return "flashinfer_one_shot" if one_shot else "flashinfer_two_shot"
    if not engine.batch_invariant and custom_admits(device, comm, ranks, size):
        return first_generation(device, comm, ranks, size)
    if (
        comm.symm_mem
        and not engine.batch_invariant
        and symm_mem_admits(device, model, comm, ranks, size)
    ):
        return symm_mem_algorithm(device, ranks)
    return "nccl"


def sglang_choice(
    device: Device,
    model: Model,
    engine: Engine,
    comm: Comm,
    ranks: int,
    size: int,
    capturing: bool,
) -> str:
    if comm.nccl_symm_mem:
        return "nccl_symm_mem"
    if engine.batch_invariant:
        return "nccl"
    if comm.custom == "v2":
        choice = second_generation(device, comm, ranks, size, capturing)
        if choice is not None:
            return choice
    elif comm.custom == "v2-0.5.10":
        if size % 16 == 0 and device.fully_connected and size <= comm.pull_bytes:
            return old_second_generation(device, comm, ranks, size)
    elif comm.custom == "v1" and custom_admits(device, comm, ranks, size):
        return first_generation(device, comm, ranks, size)
    if device.vendor == "rocm" and comm.quick is not None and quick_admits(comm, ranks, size):
        return "quick"
    if comm.mscclpp is not None and ranks in (8, 16):
        fits = size <= comm.mscclpp[-1][0]
        if capturing and fits:
            return "mscclpp"
    if comm.symm_mem and symm_mem_admits(device, model, comm, ranks, size):
        return symm_mem_algorithm(device, ranks)
    return "nccl"


def first_generation(device: Device, comm: Comm, ranks: int, size: int) -> str:
    """The custom kernels of vLLM, and the first ones of SGLang."""
    if comm.force is not None:
        one_shot = comm.force in ("1stage", "oneshot")
    elif ranks == 2:
        one_shot = True
    else:
        one_shot = size < 512 * KIB if ranks <= 4 else size < 256 * KIB
    return "one_shot_pull" if one_shot else "two_shot_pull"


def custom_admits(device: Device, comm: Comm, ranks: int, size: int) -> bool:
    if ranks not in (2, 4, 6, 8) or size % 16 != 0:
        return False
    if ranks != 2 and not device.fully_connected:
        return False
    if comm.ladder == "sglang":
        return size <= comm.custom_bytes
    limit = comm.custom_bytes
    if comm.symm_mem:
        limit = min(limit, CUSTOM_BYTES.get(device.capability, {}).get(ranks, limit))
    return size < limit


def second_generation(
    device: Device, comm: Comm, ranks: int, size: int, capturing: bool
) -> str | None:
    """SGLang's second generation, with thresholds for captured graphs and for eager calls."""
    if size % 16 != 0 or not device.fully_connected:
        return None
    push, pull, two_shot, multicast = ladder(device, ranks, capturing)
    if size <= min(push, comm.push_bytes):
        return "one_shot_push"
    if size <= min(pull, comm.pull_bytes):
        return "one_shot_pull"
    if multicast is not None and device.multicast:
        low, high = multicast[0], min(multicast[1], comm.pull_bytes)
        if low <= size <= high:
            return "two_shot_multicast"
    if size <= min(two_shot, comm.pull_bytes):
        return "two_shot_pull"
    return None


def ladder(device: Device, ranks: int, capturing: bool) -> Ladder:
    if device.capability == 90:
        graph, eager = HOPPER_GRAPH.get(ranks, OTHER), HOPPER_EAGER.get(ranks, OTHER)
    elif device.capability // 10 == 10:
        graph, eager = BLACKWELL_GRAPH.get(ranks, OTHER), BLACKWELL_EAGER.get(ranks, OTHER)
    else:
        graph, eager = OTHER, OTHER
    return graph if capturing else eager


def old_second_generation(device: Device, comm: Comm, ranks: int, size: int) -> str:
    table = OLD_BLACKWELL if device.capability // 10 == 10 else OLD_HOPPER
    push, pull = table[ranks]
    if size <= push:
        return "one_shot_push"
    return "one_shot_pull" if size <= pull else "two_shot_pull"


def nccl_symm_mem_admits(ranks: int, size: int) -> bool:
    if ranks == 4:
        return size <= 16 * KIB or size >= 512 * KIB
    if ranks == 8:
        return size <= 16 * KIB or size >= 128 * KIB
    return ranks > 8


def quick_admits(comm: Comm, ranks: int, size: int) -> bool:
    if ranks not in QUICK_MIB or comm.quick is None or size % 16 != 0:
        return False
    return QUICK_MIB[ranks][comm.quick] * MIB <= size <= QUICK_LARGEST


def symm_mem_admits(device: Device, model: Model, comm: Comm, ranks: int, size: int) -> bool:
    return model.element_size == 2 and size % 4 == 0 and size < symm_mem_bytes(device, comm, ranks)


def symm_mem_bytes(device: Device, comm: Comm, ranks: int) -> int:
    if comm.ladder == "sglang":
        if device.capability not in (90, 100) or ranks not in (2, 4, 6, 8):
            return 0
        return 64 * MIB if ranks <= 4 else 128 * MIB
    return SYMM_MEM_BYTES.get(device.capability, {}).get(ranks, 0)


def symm_mem_algorithm(device: Device, ranks: int) -> str:
    switched = ranks in (4, 6, 8) if device.capability == 90 else ranks in (6, 8)
    return "symm_mem_multimem" if switched and device.multicast else "symm_mem_two_shot"


def check(device: Device, comm: Comm, ranks: int, algorithm: str, size: int) -> None:
    """What the algorithm needs of the real message, whatever is pinned."""
    if algorithm in CUSTOM:
        require(size % 16 == 0, "the custom kernels move 16 bytes at a time")
        require(ranks == 2 or device.fully_connected, "every rank reaches every other")
        buffer = comm.push_bytes if algorithm == "one_shot_push" else comm.pull_bytes
        require(size <= buffer, "the message fits in the buffer")
    if algorithm == "two_shot_pull" and ranks > 2:
        require(comm.two_shot_in_rank_order, "the order of a sum is that of the ranks")
    if algorithm == "two_shot_multicast":
        require(multicast_blocks(device, ranks) > 0, "the switch adds for this many ranks")
    if algorithm in ("symm_mem_two_shot", "symm_mem_multimem"):
        require(size % 4 == 0, "symmetric memory moves 4 bytes at a time")
        require(size < symm_mem_bytes(device, comm, ranks), "the message fits in the buffer")
    if algorithm in ("flashinfer_one_shot", "flashinfer_two_shot"):
        limit = FLASHINFER_BYTES.get(device.capability, {}).get(ranks, 0)
        require(size <= limit, "the message fits in the workspace")
    if comm.mscclpp is not None and algorithm == "mscclpp":
        require(size <= comm.mscclpp[-1][0], "the message fits in the scratch buffer")
    if algorithm == "nccl":
        require(comm.nccl_fixed, "NCCL is held to one algorithm")


def grid(device: Device, comm: Comm, ranks: int, algorithm: str, size: int) -> tuple[int, int]:
    """Blocks and threads; zeros where the library decides."""
    if comm.mscclpp is not None and algorithm == "mscclpp":
        for largest, threads, blocks in comm.mscclpp:
            if size <= largest:
                return blocks, threads
    if algorithm not in CUSTOM:
        return 0, 0
    if comm.ladder == "vllm" or comm.custom == "v1":
        packs = size // 16
        return min(16 if device.vendor == "rocm" else 36, (packs + 511) // 512), 512
    if algorithm == "two_shot_multicast":
        return multicast_blocks(device, ranks), 512
    if algorithm == "one_shot_push":
        return device.num_sms, 512
    return pull_blocks(device, ranks), 512


def pull_blocks(device: Device, ranks: int) -> int:
    if device.capability == 90:
        return 64
    if device.capability // 10 == 10:
        return device.num_sms if ranks == 2 else 96
    return device.num_sms


def multicast_blocks(device: Device, ranks: int) -> int:
    """Zero where the switch does not help."""
    if not device.multicast:
        return 0
    if device.capability == 90:
        return 128 // ranks if ranks >= 4 else 0
    if device.capability // 10 == 10:
        return {5: 64, 6: 48, 7: 48, 8: 32, 16: 32}.get(ranks, 0)
    return 0
