"""The Triton kernels of attention in Triton's interpreter, and the work lists they read."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from selc.harness.call import Request
from selc.harness.kernels.attention_work import work_of
from selc.harness.kernels.splits import Config

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def interpreted():
    pytest.importorskip("torch")
    pytest.importorskip("triton")
    env = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    script = Path(__file__).with_name("interpreted_attention.py")
    done = subprocess.run(
        [sys.executable, str(script)], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("check", ["right", "batch", "chunks", "pages", "serial", "count"])
def test_interpreted(interpreted, check):
    assert interpreted[check] == ""


def covered(work, requests, group, config):
    """Which keys every row meets, and in which order its splits are folded."""
    seen = {}
    offsets = [sum(r.rows for r in requests[:i]) for i in range(len(requests))]
    for row, index, position, first, rows, start, stop, stride, partial, *_ in work.items:
        assert row == offsets[index]
        assert stride == config.stride(requests[index].context)
        for at in range(rows):
            token, member = divmod(first + at, group)
            place = position + token
            spans = [(a, min(a + stride, stop)) for a in range(start, stop, stride)]
            mine = [(a, min(b, place + 1)) for a, b in spans if a <= place]
            out = (row + token) * group + member
            if partial < 0:
                assert out not in seen
                seen[out] = mine
            else:
                assert len(spans) == 1
                assert ("part", partial + at) not in seen
                seen["part", partial + at] = mine
    for first, step, splits, out in work.folds:
        assert out not in seen
        seen[out] = [span for i in range(splits) for span in seen["part", first + i * step]]
    return {k: v for k, v in seen.items() if isinstance(k, int)}


@pytest.mark.parametrize("processors", [0, 1, 1000])
@pytest.mark.parametrize("group", [1, 3, 4])
@pytest.mark.parametrize(("stride", "count"), [(0, 1), (32, 1), (0, 3)])
def test_every_row_meets_every_key_once_and_in_order(processors, group, stride, count):
    requests = (Request(0, 1, 100), Request(1, 40, 40), Request(2, 21, 97), Request(3, 1, 1))
    config = Config(stride, count, 32, 16, 4, 2)
    work = work_of(requests, group, 2, config, processors)
    found = covered(work, requests, group, config)
    row = 0
    for request in requests:
        step = config.stride(request.context)
        for token in range(request.rows):
            keys = request.context - request.rows + token + 1
            want = [(a, min(a + step, keys)) for a in range(0, keys, step)]
            for member in range(group):
                assert found.pop((row + token) * group + member) == want
        row += request.rows
    assert not found
    lengths = [item[6] - item[5] for item in work.items]
    assert lengths == sorted(lengths, reverse=True)
    used = [f[0] + i * f[1] for f in work.folds for i in range(f[2])]
    assert max(used, default=-1) < max(work.partial_rows, 1)
