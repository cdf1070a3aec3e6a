"""The attention kernels on the CPU: right against float64, and invariant to the batch."""

import pytest

from selc.harness.call import Call, Request
from selc.harness.kernels.data import normal
from selc.harness.protocol import load_kernels

torch = pytest.importorskip("torch")
attention = load_kernels("attention")
FACTS = {"model": {"heads": 4, "kv_heads": 2, "head_dim": 64, "dtype": "float32"}}
MIXED = (Request(1, 1, 77), Request(2, 30, 30), Request(3, 7, 50), Request(4, 1, 1))
CHOICES = (
    {"split_stride": 32, "BLOCK_M": 16, "BLOCK_N": 16},
    {"split_stride": 48, "BLOCK_M": 32, "BLOCK_N": 32},
    {"split_stride": 0, "BLOCK_M": 16, "BLOCK_N": 64},
    {"split_stride": 0, "num_splits": 2, "BLOCK_M": 16, "BLOCK_N": 16},
)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def run(choice, requests, facts=FACTS, **extra):
    call = Call("attention", {}, facts, tuple(requests), {"page_size": 16, **extra})
    return attention.launch(choice, attention.prepare(call, "cpu"))


def rows_of(out, requests, index):
    at = sum(r.rows for r in requests[:index])
    return out[at : at + requests[index].rows]


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize(
    ("heads", "kv_heads", "head_dim", "dtype"),
    [
        (4, 2, 64, "float32"),
        (4, 1, 128, "bfloat16"),
        (3, 1, 256, "float16"),
        (2, 2, 96, "float32"),
    ],
)
def test_right_against_float64(choice, heads, kv_heads, head_dim, dtype):
    model = {"heads": heads, "kv_heads": kv_heads, "head_dim": head_dim, "dtype": dtype}
    call = Call("attention", {}, {"model": model}, MIXED, {"page_size": 16})
    inputs = attention.prepare(call, "cpu")
    out = attention.launch(choice, inputs).double()
    right = attention.reference(inputs)
    bound = 1e-5 if dtype == "float32" else 0.01
    assert (out - right).abs().max() < bound * right.abs().max()


def test_reference_is_torchs_own_attention():
    call = Call("attention", {}, FACTS, (Request(5, 9, 40),), {"page_size": 8})
    inputs = attention.prepare(call, "cpu")
    keys = normal(5, 1, 0, 40 * 2 * 64, "cpu").view(40, 2, 64).double()
    values = normal(5, 2, 0, 40 * 2 * 64, "cpu").view(40, 2, 64).double()
    q = normal(5, 0, 31 * 4 * 64, 9 * 4 * 64, "cpu").view(9, 4, 64).double()
    seen = torch.ones(9, 40, dtype=torch.bool).tril(31)
    right = torch.nn.functional.scaled_dot_product_attention(
        q.transpose(0, 1),
        keys.transpose(0, 1).repeat_interleave(2, 0),
        values.transpose(0, 1).repeat_interleave(2, 0),
        attn_mask=seen,
    )
    assert torch.allclose(attention.reference(inputs), right.transpose(0, 1), atol=1e-12)


@pytest.mark.parametrize("choice", CHOICES[:3])
@pytest.mark.parametrize("magnitude", ["normal", "extreme"])
def test_bits_do_not_depend_on_the_batch(choice, magnitude):
    one = Request(9, 40, 90)
    alone = run(choice, [one], magnitude=magnitude)
    others = [[*MIXED, one], [one, *MIXED], [MIXED[1], one, Request(9, 1, 90), MIXED[0]]]
    for batch in others:
        mine = rows_of(run(choice, batch, magnitude=magnitude), batch, batch.index(one))
        assert torch.equal(mine, alone)


@pytest.mark.parametrize("choice", CHOICES[:3])
def test_bits_do_not_depend_on_chunks(choice):
    whole = run(choice, [Request(9, 90, 90)])
    for cuts in ([1] * 90, [33, 1, 6, 50], [64, 26], [7] * 12 + [6]):
        at = 0
        for rows in cuts:
            at += rows
            part = run(choice, [MIXED[0], Request(9, rows, at)])[1:]
            assert torch.equal(part, whole[at - rows : at]), (rows, at)


@pytest.mark.parametrize("choice", CHOICES)
def test_bits_do_not_depend_on_where_pages_lie(choice):
    requests = [Request(9, 5, 90), MIXED[0]]
    first = run(choice, requests, layout=1)
    for extra in ({"layout": 7}, {"layout": 0}, {"page_size": 64}, {"kv_layout": "HND"}):
        assert torch.equal(run(choice, requests, **extra), first)
    cached = [Request(9, 5, 90, 64), MIXED[0]]
    assert torch.equal(run(choice, cached), first)


def test_a_fixed_count_moves_with_the_length():
    """The control: boundaries that follow the length give a row other bits in another chunk."""
    choice = CHOICES[3]
    whole = run(choice, [Request(9, 90, 90)])
    assert not torch.equal(run(choice, [Request(9, 60, 60)]), whole[:60])


def test_the_order_of_sums_is_the_configurations():
    outs = [run(c, [Request(9, 20, 90)]) for c in CHOICES]
    for i, out in enumerate(outs):
        assert not any(torch.equal(out, other) for other in outs[:i])


def test_data_is_the_places():
    whole = normal(3, 1, 0, 100, "cpu")
    assert torch.equal(normal(3, 1, 40, 20, "cpu"), whole[40:60])
    assert not torch.equal(normal(4, 1, 0, 100, "cpu"), whole)
    assert not torch.equal(normal(3, 2, 0, 100, "cpu"), whole)
    many = normal(0, 0, 0, 200_000, "cpu").double()
    assert abs(many.mean()) < 0.01
    assert abs(many.std() - 1) < 0.01
    pairs = many.view(-1, 2)
    assert abs((pairs[:, 0] * pairs[:, 1]).mean()) < 0.01


def test_bytes_and_flops():
    call = Call("attention", {}, FACTS, (Request(0, 2, 5), Request(1, 1, 3)))
    moved, flops = attention.bytes_and_flops(call)
    assert moved == 4 * 64 * (2 * 3 * 4 + 2 * 8 * 2)
    assert flops == 4 * 64 * 4 * (4 + 5 + 3)


def test_choices_outside_the_kernels_are_unsupported():
    from selc.harness.protocol import Unsupported

    for choice in ({"BLOCK_M": 24}, {"BLOCK_N": 8}, {"split_stride": -1}):
        with pytest.raises(Unsupported):
            run(choice, [Request(1, 1, 4)])
