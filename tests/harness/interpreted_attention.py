"""Run with TRITON_INTERPRET=1: prints what the Triton kernels of attention did, as JSON."""

import json
import sys
from unittest import mock

import torch

from selc.harness.call import Call, Request
from selc.harness.kernels import attention_triton, paging
from selc.harness.kernels.splits import config_of
from tests.harness import dots

MIXED = (Request(1, 1, 40), Request(2, 9, 9), Request(3, 3, 35), Request(4, 1, 1))
ONE = Request(9, 20, 70)
CHOICES = (
    {"split_stride": 32, "BLOCK_M": 16, "BLOCK_N": 16},
    {"split_stride": 48, "BLOCK_M": 64, "BLOCK_N": 32},
    {"split_stride": 0, "BLOCK_M": 16, "BLOCK_N": 32},
    {"num_splits": 2, "BLOCK_M": 16, "BLOCK_N": 16},
)
MODELS = ((4, 2, 32), (3, 1, 64), (2, 2, 96), (2, 1, 128))


def run(choice, requests, heads=4, kv_heads=2, head_dim=32, **extra):
    model = {"heads": heads, "kv_heads": kv_heads, "head_dim": head_dim, "dtype": "float16"}
    requests = tuple(requests)
    call = Call("attention", {}, {"model": model}, requests, {"page_size": 16, **extra})
    inputs = paging.place(call, "cpu")
    return inputs, attention_triton.launch(config_of(choice), inputs)


def right():
    for index, sizes in enumerate(MODELS):
        extra = {"page_size": 64, "kv_layout": "HND"} if index % 2 else {}
        inputs, out = run(CHOICES[index], MIXED, *sizes, **extra)
        want = paging.reference(inputs)
        if not (out.double() - want).abs().max() < 2e-3 * want.abs().max():
            return f"choice {index} is wrong"
    return ""


def batch():
    for choice in CHOICES[:3]:
        _, alone = run(choice, [ONE], magnitude="extreme")
        for others in ([MIXED[2], ONE, MIXED[3]], [ONE, MIXED[0]]):
            at = sum(r.rows for r in others[: others.index(ONE)])
            _, out = run(choice, others, magnitude="extreme")
            if not torch.equal(out[at : at + ONE.rows], alone):
                return f"{choice} follows the batch"
    return ""


def chunks():
    for choice in CHOICES[:3]:
        _, whole = run(choice, [Request(9, 70, 70)])
        for rows, context in ((1, 70), (1, 32), (23, 66)):
            _, part = run(choice, [MIXED[3], Request(9, rows, context)])
            if not torch.equal(part[1:], whole[context - rows : context]):
                return f"{choice} follows the chunk: {rows} rows to {context}"
    return ""


def pages():
    for choice in CHOICES[1:]:
        _, first = run(choice, [Request(9, 3, 90)])
        for extra in ({"layout": 5, "kv_layout": "HND"}, {"page_size": 64}):
            if not torch.equal(run(choice, [Request(9, 3, 90)], **extra)[1], first):
                return f"{choice} follows {extra}"
    return ""


def serial():
    """One item folds all splits of a tile, or each is an item."""
    requests = [ONE, MIXED[0]]
    _, parallel = run(CHOICES[1], requests)
    with mock.patch.object(attention_triton, "_processors", return_value=0):
        _, folded = run(CHOICES[1], requests)
    return "" if torch.equal(parallel, folded) else "the fold has another order"


def count():
    """The control, which must differ."""
    _, whole = run(CHOICES[3], [Request(9, 90, 90)])
    _, part = run(CHOICES[3], [Request(9, 60, 60)])
    return "" if not torch.equal(part, whole[:60]) else "a fixed count does not move"


if __name__ == "__main__":
    dots.install()
    checks = (right, batch, chunks, pages, serial, count)
    json.dump({each.__name__: each() for each in checks}, sys.stdout)
