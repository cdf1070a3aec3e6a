"""The dense product on the CPU: right against float64, and invariant to the batch."""

import pytest

from selc.harness.call import Call, Request
from selc.harness.protocol import Kernels, Unsupported, digest_of, load_kernels
from tests.harness.companies import OWN, companies, others, run

torch = pytest.importorskip("torch")
gemm = load_kernels("gemm")
SHAPE = {"n": 160, "k": 320, "dtype": "float32"}
LAYERS = {
    "qkv": (6144, 4096),
    "o": (4096, 4096),
    "gate_up": (28672, 4096),
    "down": (4096, 14336),
}


def tile(m=16, n=64, k=64, split=1, **more):
    names = ("BLOCK_M", "BLOCK_N", "BLOCK_K", "SPLIT_K")
    rest = {"GROUP_M": 8, "num_warps": 4, "num_stages": 3, "padding": 1}
    return {**dict(zip(names, (m, n, k, split), strict=True)), **rest, **more}


CHOICES = (
    tile(),
    tile(64, 128, 128),
    tile(k=32, split=2),
    tile(32, k=64, split=4),
    tile(padding=16),
)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("magnitude", ["normal", "extreme"])
def test_float64(choice, magnitude):
    _, error = run(gemm, choice, others(9), magnitude=magnitude, **SHAPE)
    assert error < 1e-6
    half = {**SHAPE, "dtype": "bfloat16"}
    assert run(gemm, choice, others(9), magnitude=magnitude, **half)[1] < 3e-3


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("magnitude", ["normal", "extreme"])
def test_company_and_place(choice, magnitude):
    found = []
    for batch, mine in companies((0, 1, 7, 33)):
        output, _ = run(gemm, choice, batch, magnitude=magnitude, **SHAPE)
        found.append(output[mine])
    assert all(torch.equal(found[0], other) for other in found[1:])


def test_chunks():
    whole, _ = run(gemm, tile(), [Request(1, 20, 20)], **SHAPE)
    parts = [Request(1, rows, end) for rows, end in ((1, 1), (13, 14), (6, 20))]
    chunked = torch.cat([run(gemm, tile(), [part], **SHAPE)[0] for part in parts])
    assert torch.equal(whole, chunked)


@pytest.mark.parametrize("other", [tile(k=32), tile(k=128), tile(split=2), tile(split=4)])
def test_what_orders_a_sum_moves_bits(other):
    """The control: were the data too tame, nothing could fail above."""
    assert not torch.equal(
        run(gemm, tile(), [OWN], **SHAPE)[0], run(gemm, other, [OWN], **SHAPE)[0]
    )


@pytest.mark.parametrize("other", [tile(32), tile(128), tile(n=128), tile(n=256), tile(padding=64)])
def test_what_does_not_keeps_them(other):
    assert torch.equal(run(gemm, tile(), [OWN], **SHAPE)[0], run(gemm, other, [OWN], **SHAPE)[0])


def test_requests_differ():
    output, _ = run(gemm, tile(), [Request(1, 2, 5), Request(2, 2, 5), Request(1, 1, 5)], **SHAPE)
    assert torch.equal(output[1], output[4])
    assert not torch.equal(output[1], output[3])
    assert not torch.equal(output[0], output[1])


@pytest.mark.parametrize(
    ("linear", "shape"),
    [
        ("qkv", (6144, 4096)),
        ("o", (4096, 4096)),
        ("gate_up", (28672, 4096)),
        ("down", (4096, 14336)),
    ],
)
def test_layers(linear, shape):
    model = {"hidden": 4096, "heads": 32, "kv_heads": 8, "head_dim": 128, "intermediate": 14336}
    facts = {"model": {**model, "element_size": 2}, "parallel": {"tensor": 1}, "linear": linear}
    n, k = LAYERS[linear]
    call = Call("gemm", {"num_tokens": 4}, facts)
    assert gemm.bytes_and_flops(call) == (2 * (4 * k + n * k + 4 * n), 8 * n * k)


def test_protocol():
    assert isinstance(gemm, Kernels)
    assert digest_of(gemm).startswith("sha256:")
    for split in (0, 6):
        with pytest.raises(Unsupported):
            run(gemm, tile(split=split), [OWN], **SHAPE)
