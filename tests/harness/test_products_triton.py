"""The Triton kernels of products, experts and norms, under Triton's interpreter."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")
ROOT = Path(__file__).resolve().parent.parent.parent


def interpreted(which):
    env = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-m", "tests.harness.interpreted_products", which]
    ran = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["gemm", "moe", "rms_norm"])
def test_results_and_bits(family):
    found = interpreted(family)
    assert found
    for choice, result in found.items():
        assert result["error"] < 2e-3, choice
        assert result["equal"], choice


@pytest.mark.slow
def test_sorting_by_expert():
    assert interpreted("align") == [True] * 6
