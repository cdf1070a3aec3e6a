"""The share of legal tuples that bypass the table of the all-reduce, as the benchmark counts it."""

from __future__ import annotations

import pytest

from benchmarks import all_reduce_bypass as benchmark


@pytest.mark.slow
@pytest.mark.parametrize("skip", [(), ("fold",), ("ranges", "context")], ids=str)
def test_share(skip: tuple[str, ...]) -> None:
    layers = ("h100", "llama-3.1-70b", "vllm", "tp4", "rank-order-kernels")
    found = benchmark.bypass(layers, frozenset(skip))
    assert found is not None
    assert found.pins == {"all_reduce.algorithm": 4}
    assert (found.legal, found.bypassing) == (3, 1)  # only NCCL is not in the table


@pytest.mark.slow
def test_everything_falls_through_with_the_engines_own_buffers() -> None:
    found = benchmark.bypass(("h100", "llama-3.1-70b", "vllm", "tp4"))
    assert found is not None
    assert (found.legal, found.share) == (1, 1.0)
