"""RMS norm on the CPU: right against float64, and invariant to the batch."""

import pytest

from selc.harness.protocol import Kernels, Unsupported, load_kernels
from tests.harness.companies import OWN, companies, others, run

torch = pytest.importorskip("torch")
norm = load_kernels("rms_norm")
SHAPE = {"hidden": 680, "dtype": "float32"}


def block(size, warps=1):
    return {"BLOCK_SIZE": size, "num_warps": warps}


CHOICES = (block(64), block(256, 2), block(1024, 8))


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("magnitude", ["normal", "extreme"])
def test_float64(choice, magnitude):
    assert run(norm, choice, others(9), magnitude=magnitude, **SHAPE)[1] < 1e-6
    half = {**SHAPE, "dtype": "bfloat16"}
    assert run(norm, choice, others(9), magnitude=magnitude, **half)[1] < 4e-3


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("magnitude", ["normal", "extreme"])
def test_company_and_place(choice, magnitude):
    found = []
    for batch, mine in companies((0, 1, 7, 33, 130)):
        output, _ = run(norm, choice, batch, magnitude=magnitude, **SHAPE)
        found.append(output[mine])
    assert all(torch.equal(found[0], other) for other in found[1:])


@pytest.mark.parametrize("other", [block(32), block(512, 1), block(512, 4), block(1024, 8)])
def test_what_orders_a_sum_moves_bits(other):
    batch = others(20)
    one, two = (run(norm, choice, batch, **SHAPE)[0] for choice in (block(64), other))
    assert not torch.equal(one, two)


@pytest.mark.parametrize("choice", [block(48), block(64, 3), block(0)])
def test_not_a_power_of_two(choice):
    assert isinstance(norm, Kernels)
    with pytest.raises(Unsupported):
        run(norm, choice, [OWN], **SHAPE)
