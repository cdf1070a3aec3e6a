"""Mixture of experts on the CPU: right against float64, and invariant to the batch."""

import pytest

from selc.harness.call import Call, Request
from selc.harness.protocol import Kernels, Unsupported, load_kernels
from tests.harness.companies import OWN, companies, others, run

torch = pytest.importorskip("torch")
moe = load_kernels("moe")
SHAPE = {"experts": 8, "topk": 3, "hidden": 128, "moe_intermediate": 64, "dtype": "float32"}


def tiles(up=(16, 64, 32), down=(16, 64, 32), assignment="sorted"):
    out = {"expert_assignment": assignment}
    for name, (m, n, k) in (("gate_up", up), ("down", down)):
        sizes = {"BLOCK_SIZE_M": m, "BLOCK_SIZE_N": n, "BLOCK_SIZE_K": k}
        rest = {"GROUP_SIZE_M": 1, "SPLIT_K": 1, "num_warps": 4, "num_stages": 3}
        out |= {f"{name}.{key}": value for key, value in {**sizes, **rest}.items()}
    return out


CHOICES = (tiles(), tiles((32, 128, 64), (32, 64, 64)), tiles(assignment="naive"))


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("magnitude", ["normal", "extreme"])
def test_float64(choice, magnitude):
    _, error = run(moe, choice, others(7), magnitude=magnitude, **SHAPE)
    assert error < 1e-5
    half = {**SHAPE, "dtype": "bfloat16"}
    assert run(moe, choice, others(7), magnitude=magnitude, **half)[1] < 1e-2


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("magnitude", ["normal", "extreme"])
def test_company_and_place(choice, magnitude):
    found = []
    for batch, mine in companies((0, 1, 30)):
        output, _ = run(moe, choice, batch, magnitude=magnitude, **SHAPE)
        found.append(output[mine])
    assert all(torch.equal(found[0], other) for other in found[1:])


@pytest.mark.parametrize(
    "other", [tiles((16, 64, 64)), tiles(down=(16, 64, 16)), tiles((16, 64, 128), (16, 64, 64))]
)
def test_what_orders_a_sum_moves_bits(other):
    assert not torch.equal(run(moe, tiles(), [OWN], **SHAPE)[0], run(moe, other, [OWN], **SHAPE)[0])


@pytest.mark.parametrize(
    "other",
    [tiles((64, 64, 32), (64, 128, 32)), tiles((16, 128, 32)), tiles(assignment="naive")],
)
def test_what_does_not_keeps_them(other):
    assert torch.equal(run(moe, tiles(), [OWN], **SHAPE)[0], run(moe, other, [OWN], **SHAPE)[0])


def test_routing_is_the_requests_own():
    calls = [Call("moe", {}, {}, batch, SHAPE) for batch in ((OWN,), (Request(1, 4, 9), OWN))]
    alone, among = (moe.prepare(call, "cpu") for call in calls)
    assert torch.equal(alone.ids, among.ids[4:])
    assert torch.equal(alone.share, among.share[4:])
    assert all(len(set(row.tolist())) == 3 for row in among.ids)
    assert torch.allclose(among.share.sum(dim=1), torch.ones(7))
    many = moe.prepare(Call("moe", {}, {}, (Request(3, 400, 400),), SHAPE), "cpu")
    counts = torch.bincount(many.ids.flatten().long(), minlength=8)
    assert counts.min() > 100
    assert counts.max() < 200


def test_bytes_count_the_experts_in_use():
    one = Call("moe", {}, {}, (Request(3, 1, 1),), SHAPE)
    weight = 3 * 64 * 128
    assert moe.bytes_and_flops(one) == (4 * (3 * weight + 2 * 128), 2 * 3 * weight)


def test_blocks_of_two_sizes():
    assert isinstance(moe, Kernels)
    with pytest.raises(Unsupported):
        run(moe, tiles((32, 64, 32)), [OWN], **SHAPE)
