"""How the batch travels: every way that is followed, and the benign patterns that stay quiet."""

from __future__ import annotations

import pytest

from tests.lint.conftest import Lint

VALID = {
    "early return on empty": """
def gemm(x, w):
    if x.shape[0] == 0:
        return x.new_empty((0, w.shape[0]))
    return run_gemm(x, w)
""",
    "nothing to do": """
def attend(q, num_prefill_rows, metadata):
    if num_prefill_rows > 0:
        run_attention(q, metadata)
    return q
""",
    "assertion on shapes": """
def gemm(x, w, M):
    assert x.shape[0] == M and M <= 4096
    return run_gemm(x, w)
""",
    "buffer size": """
def allocate(num_tokens, block_size, num_experts):
    padded = num_tokens + num_experts * (block_size - 1)
    if num_tokens < num_experts:
        padded = num_tokens * block_size
    return make_buffer(padded)
""",
    "grid that grows with rows": """
def launch(x, w):
    M = x.shape[0]
    grid = (cdiv(M, 64), cdiv(w.shape[0], 64))
    gemm_kernel[grid](x, w, M, BLOCK_K=32, SPLIT_K=1)
""",
    "logging": """
def report(num_tokens, logger):
    if num_tokens > 100:
        logger.info("large batch")
    else:
        logger.debug("small batch")
""",
    "own length of a request": """
def splits(seq_lens):
    return [dict(num_splits=max(1, n // 256)) for n in seq_lens]
""",
    "parts from the vocabulary alone": """
def logp(num_rows, vocab):
    num_splits = min(8, -(-vocab // 32768))
    return {"num_splits": num_splits, "grid": num_rows * num_splits}
""",
    "one BLOCK_K for every size": """
BLOCKS = {4096: 64, 12288: 128}
def config(M, n):
    block_m = 16 if M <= 16 else 64
    return {"BLOCK_M": block_m, "BLOCK_K": BLOCKS[n]}
""",
    "equal arms": """
def pick(num_tokens, x):
    split_k = 4 if num_tokens > 64 else 4
    run_gemm(x, split_k=split_k)
""",
    "parameter that is not read": """
def use_atomic_add(m, n, k, device):
    return n >= 2048 and k < 2048
""",
    "static limits": """
def setup_kernel(max_num_tokens, max_model_len, x):
    split_k = 4 if max_num_tokens > 64 else 1
    run_gemm(x, split_k=split_k)
""",
    "weights": """
def launch(x, weight):
    split_k = 4 if weight.shape[0] > 64 else 1
    run_gemm(x, weight, split_k=split_k)
""",
    "raise": """
def launch(x):
    if x.shape[0] > 65535:
        raise ValueError("too many rows")
    return run_gemm(x)
""",
    "a request's own number": """
def hashes(request, block):
    if request.num_tokens > block:
        return run_attention(request)
    return run_gemm(request)
""",
    "all-gather is free of order": """
def gather(x, comm):
    if x.shape[0] <= 128:
        return comm.all_gather_small(x)
    return comm.all_gather_large(x)
""",
}

INVALID = {
    "boolean kept in a variable": (
        "SEL102",
        """
def attend(q, max_seqlen_q, num_seqs, threshold):
    use_3d = not (max_seqlen_q > 1 or num_seqs > threshold)
    if use_3d:
        attention_3d_kernel[(1,)](q)
    else:
        attention_2d_kernel[(1,)](q)
""",
    ),
    "tuple and arithmetic": (
        "SEL101",
        """
def launch(x, w):
    M, K = x.shape
    waves, rest = M // 64, K // 64
    gemm_kernel[(8,)](x, w, SPLIT_K=max(1, min(waves, 8)))
""",
    ),
    "one level of calls": (
        "SEL101",
        """
def launch(x, w):
    gemm(x, w, x.shape[0])

def gemm(x, w, grid_size):
    split_k = max(1, 132 // grid_size)
    gemm_kernel[(8,)](x, w, SPLIT_K=split_k)
""",
    ),
    "a callee's answer": (
        "SEL102",
        """
def reduce(x, comm):
    if fits(x):
        return custom_all_reduce(x)
    return nccl_all_reduce(x)

def fits(tensor):
    return tensor.numel() * tensor.element_size() < 8192
""",
    ),
    "attribute of a class": (
        "SEL102",
        """
class Custom:
    def small(self, inp):
        return inp.numel() < 8192

class Group:
    def __init__(self):
        self.comm = Custom()

    def all_reduce(self, input_):
        if self.comm.small(input_):
            return self.comm.custom_all_reduce(input_)
        return torch_all_reduce(input_)
""",
    ),
    "longest length of the batch": (
        "SEL101",
        """
def decode(q, seq_lens):
    num_kv_splits = max(1, max(seq_lens) // 512)
    decode_attention(q, num_kv_splits=num_kv_splits)
""",
    ),
    "loop that is left early": (
        "SEL101",
        """
def launch(x, w, E):
    for block_k in [32, 64, 128]:
        if x.shape[0] / E < block_k:
            break
    gemm_kernel[(8,)](x, w, BLOCK_K=block_k)
""",
    ),
    "configuration as a whole": (
        "SEL101",
        """
def launch(x, w, M):
    config = {"BLOCK_K": 64}
    if M <= 16:
        config = {"BLOCK_K": 128}
    gemm_kernel[(8,)](x, w, **config)
""",
    ),
    "partial": (
        "SEL103",
        """
import functools

def rows(configs, M):
    return configs[min(configs, key=lambda m: abs(m - M))]

def launch(hidden_states, configs):
    pick = functools.partial(rows, configs)
    return pick(hidden_states.shape[0])
""",
    ),
    "next larger size": (
        "SEL103",
        """
import bisect

def pad(capture_bs, raw_bs):
    return capture_bs[bisect.bisect_left(capture_bs, raw_bs)]
""",
    ),
    "returned under a branch": (
        "SEL105",
        """
class Experts:
    def _select_experts(self, hidden_states):
        if hidden_states.shape[0] <= 8:
            return self.triton
        return self.cutlass
""",
    ),
    "zero prefixes in the whole batch": (
        "SEL105",
        """
def handle_attention(forward_batch):
    if sum(forward_batch.extend_prefix_lens_cpu) == 0:
        return Method.MHA
    return Method.MLA
""",
    ),
}


@pytest.mark.parametrize("name", VALID)
def test_valid(project: Lint, name: str) -> None:
    assert [finding.message for finding in project(VALID[name])] == []


@pytest.mark.parametrize("name", INVALID)
def test_invalid(project: Lint, name: str) -> None:
    code, text = INVALID[name]
    assert code in [finding.code for finding in project(text)]


def test_a_call_in_another_module(project: Lint) -> None:
    files = {
        "package/__init__.py": "",
        "package/model.py": (
            "from package.ops.gemm import gemm\n\n\n"
            "def forward(x, w):\n    return gemm(x, w, x.shape[0])\n"
        ),
        "package/ops/__init__.py": "",
        "package/ops/gemm.py": (
            "def gemm(x, w, rows_here):\n"
            "    split_k = 4 if rows_here < 64 else 1\n"
            "    return kernel[(8,)](x, w, SPLIT_K=split_k)\n"
        ),
    }
    found = project(files, paths=["package/model.py"])
    assert [(f.code, f.place.path, f.place.line) for f in found] == [
        ("SEL101", "package/ops/gemm.py", 3)
    ]
    steps = [(step.path, step.line) for step in found[0].trace]
    assert ("package/model.py", 5) in steps
    assert steps[-1] == ("package/ops/gemm.py", 3)
    assert found[0].threshold == "rows_here < 64"


def test_a_function_that_is_too_large_is_said(
    project: Lint, monkeypatch: pytest.MonkeyPatch
) -> None:
    from selc.lint import session

    monkeypatch.setattr(session, "BUDGET", 10)
    body = "".join(f"    a{n} = num_tokens + {n}\n" for n in range(100))
    found = project(f"def long(num_tokens):\n{body}")
    assert "SEL004" in [finding.code for finding in found]
