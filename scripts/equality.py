#!/usr/bin/env python3
"""Every family of the examples in all its forms, compared call by call.

    scripts/equality.py                            a million random calls and all boundaries each
    scripts/equality.py --family moe --calls 10000

CPython running the source, the interpreter of the graphs, the Python selector, the native module
and the C header as C99 at -O0, -O2 and -O3 and as C++17, under the sanitizers for addresses and
for undefined behaviour, without pins and under several legal tuples.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

DEPLOYMENTS = {
    "all_reduce": "h100 llama-3.1-8b vllm tp8",
    "cutlass_fp8": "h100 llama-3.1-8b vllm tp1",
    "moe": "h100 qwen3-30b-a3b vllm tp4",
    "attention_fa3": "h100 llama-3.1-8b vllm tp1",
    "attention_stride": "h100 llama-3.1-8b vllm tp1",
    "gemm": "h100 qwen3-30b-a3b-fp8 vllm tp4",
}


def main() -> int:
    """Compare the families that were asked for; 1 if something differs."""
    from tests.native.equality import Forms, compare

    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--family", choices=DEPLOYMENTS, action="append")
    parser.add_argument("--calls", type=int, default=1_000_000, help="random calls a family")
    parser.add_argument("--few", type=int, default=300, help="calls that CPython and graphs answer")
    parser.add_argument("--tuples", type=int, default=4, help="legal tuples beside the default")
    options = parser.parse_args()
    failed = 0
    for family in options.family or DEPLOYMENTS:
        start = time.perf_counter()
        print(f"{family}  ({DEPLOYMENTS[family]})", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            try:
                forms = Forms(family, tuple(DEPLOYMENTS[family].split()), Path(folder))
                for line in compare(forms, options.calls, options.few, options.tuples):
                    print(f"  {line}")
            except AssertionError as error:
                failed += 1
                print(f"  DIFFERENT: {error}")
        print(f"  {time.perf_counter() - start:.0f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
