"""The selections that go with the kernels: every legal tuple runs, and holds what it promises."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from selc.cli import app
from selc.harness.call import Call, requests_of
from selc.harness.protocol import load_kernels
from selc.harness.selector import Selector

torch = pytest.importorskip("torch")
EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples" / "kernels"
FAMILIES = ("gemm", "moe", "rms_norm")
OWN = 8
BATCHES = (8, 20, 70)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module", params=FAMILIES)
def selector(request, tmp_path_factory):
    out = tmp_path_factory.mktemp(request.param) / f"{request.param}_selector"
    target, facts = EXAMPLES / f"{request.param}.py", EXAMPLES / f"{request.param}-small.yaml"
    words = ["compile", str(target), "--facts", str(facts), "-o", str(out), "--no-native"]
    result = CliRunner().invoke(app, [*words, "--no-cache"])
    assert result.exit_code == 0, result.output
    return Selector.load(out)


def launched(selector, choice, tokens):
    """The first rows of a batch, which are always the same request's."""
    inputs = {"num_tokens": tokens}
    others = [[8, tokens - OWN, 500]] if tokens > OWN else []
    recorded = {"requests": [[7, OWN, 33], *others]}
    call = Call(selector.family, inputs, selector.facts, requests_of(inputs, recorded))
    kernels = load_kernels(selector.family)
    prepared = kernels.prepare(call, "cpu")
    output = kernels.launch(choice, prepared)
    if tokens == OWN:
        reference = kernels.reference(prepared)
        assert float((output.double() - reference).norm() / reference.norm()) < 1e-5
    return output[:OWN]


@pytest.mark.slow
def test_every_legal_tuple(selector):
    tuples = [dict(t) for t in selector.tuples()]
    assert 5 <= len(tuples) <= 50
    for commitment in tuples:
        own = []
        for tokens in BATCHES:
            choice = selector.choice(commitment, {"num_tokens": tokens})
            own.append(launched(selector, choice, tokens))
        assert all(torch.equal(own[0], other) for other in own[1:]), commitment


def test_stock_moves_bits(selector):
    """The control."""
    own = [
        launched(selector, selector.stock({"num_tokens": tokens}), tokens)
        for tokens in (*BATCHES, 200, 500)
    ]
    assert not all(torch.equal(own[0], other) for other in own[1:])
