"""Run with TRITON_INTERPRET=1: prints what the Triton kernels of three families did, as JSON."""

import json
import sys
from unittest import mock

import torch

from selc.harness.call import Call
from selc.harness.kernels import gemm_triton, moe_align, moe_triton, rms_norm_triton
from selc.harness.protocol import load_kernels
from tests.harness import dots
from tests.harness.companies import companies

HALF = {"dtype": "float16"}
MOE = {"experts": 6, "topk": 2, "hidden": 64, "moe_intermediate": 48, **HALF}


def tile(m=16, n=32, k=32, split=1, **more):
    names = ("BLOCK_M", "BLOCK_N", "BLOCK_K", "SPLIT_K")
    rest = {"GROUP_M": 2, "num_warps": 4, "num_stages": 2, "padding": 1}
    return {**dict(zip(names, (m, n, k, split), strict=True)), **rest, **more}


def tiles(m=16, n=32, k=32, **more):
    sizes = {"BLOCK_SIZE_M": m, "BLOCK_SIZE_N": n, "BLOCK_SIZE_K": k, "GROUP_SIZE_M": 2}
    sizes |= {"SPLIT_K": 1, "num_warps": 4, "num_stages": 2}
    return {f"{g}.{name}": v for g in ("gate_up", "down") for name, v in sizes.items()} | more


CASES = {
    "gemm": (gemm_triton, {"n": 80, "k": 104, **HALF}, (1, 8), {
        "plain": tile(),
        "split": tile(split=2),
        "uneven split": tile(split=3),
        "padding": tile(padding=16),
        "swapped": tile(swap_ab=True),
        "swapped and split": tile(swap_ab=True, split=2),
        "walks": tile(persistent=True),
    }),
    "moe": (moe_triton, MOE, (0, 5), {
        "plain": tiles(),
        "swapped": tiles(n=64),
        "naive": tiles(expert_assignment="naive"),
        "rest along K": tiles(k=64),
    }),
    "rms_norm": (rms_norm_triton, {"hidden": 200, **HALF}, (1, 8), {
        "blocks": {"BLOCK_SIZE": 64, "num_warps": 4},
        "whole": {"BLOCK_SIZE": 256, "num_warps": 4},
    }),
}  # fmt: skip


def family(name):
    """By choice: the worst error, and whether a request's bits are the same everywhere."""
    triton, extra, counts, choices = CASES[name]
    kernels, out = load_kernels(name), {}
    for title, choice in choices.items():
        worst, found = 0.0, []
        for batch, mine in companies(counts):
            inputs = kernels.prepare(Call(name, {}, {}, tuple(batch), extra), "cpu")
            output, reference = triton.run(choice, inputs), kernels.reference(inputs)
            worst = max(worst, float((output.double() - reference).norm() / reference.norm()))
            found.append(output[mine])
        out[title] = {"error": worst, "equal": all(torch.equal(found[0], f) for f in found)}
    return out


def align():
    """Whether sorted blocks are those of a plain sort, at once and in several steps."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(0, 5, (37, 2), dtype=torch.int32, generator=generator)
    want_order, want_owners = [], []
    for expert in range(6):
        pairs = torch.nonzero(ids.reshape(-1) == expert)[:, 0].tolist()
        blocks = -(-len(pairs) // 16)
        want_order += pairs + [ids.numel()] * (blocks * 16 - len(pairs))
        want_owners += [expert] * blocks
    out = []
    for at_once in (4096, 32):
        with mock.patch.object(moe_align, "AT_ONCE", at_once):
            order, owners, filled = moe_align.align(ids, 6, 16)
        assert len(order) >= len(want_order)
        out.append(int(filled) == len(want_order))
        out.append(order[: len(want_order)].tolist() == want_order)
        out.append(owners[: len(want_owners)].tolist() == want_owners)
    return out


if __name__ == "__main__":
    dots.install()
    torch.set_num_threads(1)
    which = sys.argv[1]
    print(json.dumps(align() if which == "align" else family(which)))
