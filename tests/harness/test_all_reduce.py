"""All-reduce on the CPU: against float64, and bits that do and do not follow the batch."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import pytest

from selc.harness.call import Call, Request
from selc.harness.kernels.all_reduce import KERNELS, Message, part
from selc.harness.protocol import Kernels, Unsupported

torch = pytest.importorskip("torch")
torch.set_num_threads(1)
FACTS = {"model": {"hidden": 64, "element_size": 2}, "parallel": {"tensor": 4}}
ORDERED = ("one_shot", "two_shot", "nccl")


def call(*requests: Request, **extra: Any) -> Call:
    rows = sum(r.rows for r in requests)
    return Call("all_reduce", {"num_tokens": rows}, FACTS, requests, {"nccl_algo": "tree", **extra})


def run(choice: Mapping[str, Any], made: Call) -> Any:
    return KERNELS.launch(choice, KERNELS.prepare(made, "cpu"))


def batches(watched: Request) -> list[tuple[tuple[Request, ...], int]]:
    """Batches that hold a request, and its place among their rows."""
    out: list[tuple[tuple[Request, ...], int]] = [((watched,), 0)]
    for count in (1, 2, 3, 7, 30, 63):
        others = tuple(Request(100 + i, 1 + i % 5, 9 + i) for i in range(count))
        before = sum(r.rows for r in others)
        out += [((watched, *others), 0), ((*others, watched), before)]
    return out


def bits(choice: Mapping[str, Any], **extra: Any) -> set[bytes]:
    """Of one request's rows, over all batches."""
    watched = Request(7, 3, 12)
    found = set()
    for requests, at in batches(watched):
        rows = run(choice, call(*requests, **extra))[at : at + watched.rows]
        found.add(rows.contiguous().view(torch.int16).numpy().tobytes())
    return found


def test_protocol() -> None:
    assert isinstance(KERNELS, Kernels)
    moved, adds = KERNELS.bytes_and_flops(call(Request(1, 5, 5), Request(2, 1, 90)))
    assert (moved, adds) == (2 * 6 * 64 * 2, 3 * 6 * 64)


@pytest.mark.parametrize("algorithm", ORDERED)
@pytest.mark.parametrize("nccl", ["tree", "ring", None])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_sum(algorithm: str, nccl: str | None, dtype: str) -> None:
    made = call(
        Request(1, 5, 5), Request(2, 1, 90), Request(3, 32, 70), dtype=dtype, nccl_algo=nccl
    )
    inputs = KERNELS.prepare(made, "cpu")
    reference = KERNELS.reference(inputs)
    assert reference.dtype == torch.float64
    assert reference.shape == (38, 64)
    inputs.sums.fill_(float("nan"))
    out = KERNELS.launch({"algorithm": algorithm, "blocks": 8}, inputs)
    error = (out.double() - reference).norm() / reference.norm()
    assert error < (1e-6 if dtype == "float32" else 1e-2)
    for rank in range(1, 4):
        assert torch.equal(inputs.sums[rank].view_as(out), out), "ranks differ"


def test_rounds_once_in_rank_order() -> None:
    """The ordered sums, from the definition, element by element."""
    made = call(Request(1, 5, 5), magnitude="extreme")
    inputs = KERNELS.prepare(made, "cpu")
    rows = inputs.parts.float()
    expected = (((rows[0] + rows[1]) + rows[2]) + rows[3]).bfloat16().view(5, 64)
    for algorithm in ("one_shot", "two_shot"):
        assert torch.equal(run({"algorithm": algorithm}, made), expected)
    hops = rows[0].bfloat16()
    for rank in range(1, 4):
        hops = (hops.float() + rows[rank]).bfloat16()
    assert torch.equal(run({"algorithm": "nccl"}, made), hops.view(5, 64))
    assert not torch.equal(expected, hops.view(5, 64))


@pytest.mark.parametrize("magnitude", ["normal", "extreme"])
def test_bits_do_not_follow_the_batch(magnitude: str) -> None:
    for algorithm, blocks in itertools.product(ORDERED, (8, 64)):
        assert len(bits({"algorithm": algorithm, "blocks": blocks}, magnitude=magnitude)) == 1


def test_ring_follows_the_batch() -> None:
    """The control: where the order of addition moves with the message the bits do too."""
    assert len(bits({"algorithm": "nccl"}, nccl_algo="ring")) > 1
    assert len(bits({"algorithm": "nccl"}, nccl_algo="ring", ranks=2)) == 1, "there is one order"


def test_blocks_are_neutral() -> None:
    made = call(Request(1, 33, 40), magnitude="extreme")
    for algorithm in ("one_shot", "two_shot"):
        outs = [run({"algorithm": algorithm, "blocks": b}, made) for b in (1, 3, 8, 64, 10_000)]
        assert all(torch.equal(outs[0], out) for out in outs)


def test_data_is_the_requests() -> None:
    whole = part(Message.of(call(Request(5, 20, 20))), 1, "cpu").view(20, 64)
    tail = part(Message.of(call(Request(6, 2, 2), Request(5, 3, 20, cached=17))), 1, "cpu")
    assert torch.equal(tail.view(5, 64)[2:], whole[17:])
    other = part(Message.of(call(Request(5, 20, 20))), 2, "cpu").view(20, 64)
    assert not torch.equal(whole, other), "ranks hold different parts"
    assert whole.double().mean().abs() < 0.1
    assert 0.9 < whole.double().std() < 1.1
    assert len(set(whole.flatten().tolist())) > 200


def test_unsupported() -> None:
    with pytest.raises(Unsupported, match="do not fit"):
        run({"algorithm": "one_shot"}, call(Request(1, 5, 5), buffer_bytes=512))
    with pytest.raises(Unsupported, match="no kernel"):
        run({"algorithm": "quick"}, call(Request(1, 5, 5)))
    with pytest.raises(Unsupported, match="16 bytes"):
        run({"algorithm": "two_shot"}, call(Request(1, 1, 5), hidden=12))
    with pytest.raises(Unsupported, match="4 ranks"):
        run({"algorithm": "none"}, call(Request(1, 5, 5)))
    alone = call(Request(1, 5, 5), ranks=1)
    assert torch.equal(run({"algorithm": "none"}, alone), run({"algorithm": "one_shot"}, alone))


def test_names_of_engines() -> None:
    made = call(Request(1, 5, 5))
    for name in ("one_shot_push", "two_shot_pull", "symm_mem_two_shot"):
        choice = {"algorithm": name, "blocks": 0, "num_warps": 0}
        assert torch.equal(run(choice, made), run({"algorithm": "one_shot"}, made))


def test_repeats() -> None:
    made = call(Request(1, 5, 5), repeat=3)
    assert torch.equal(run({"algorithm": "one_shot"}, made), run({"algorithm": "two_shot"}, made))
    assert KERNELS.bytes_and_flops(made)[0] == 3 * 2 * 5 * 64 * 2
