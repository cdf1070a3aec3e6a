"""Use the selector that `main_job.sh` compiled; needs nothing but the folder that it lies in."""

from __future__ import annotations

import sys

sys.path.insert(0, sys.argv[1] if len(sys.argv) > 1 else "build")

from moe_selector import NATIVE, PINS, SelectionError, legal, pins, repin, select, select_unpinned


def row(tokens: int) -> str:
    pinned, free = select(num_tokens=tokens).gate_up, select_unpinned(num_tokens=tokens).gate_up
    tile = f"{pinned.BLOCK_SIZE_M}x{pinned.BLOCK_SIZE_N}x{pinned.BLOCK_SIZE_K}"
    before = f"{free.BLOCK_SIZE_M}x{free.BLOCK_SIZE_N}x{free.BLOCK_SIZE_K}"
    return f"  {tokens:>6}  {tile:<12}  {before}"


print("native" if NATIVE else "Python fallback", "selector; pins in force:", pins())
for name, pin in PINS.items():
    print(f"  {name}: candidates {pin.candidates}, legal {pin.legal}, fixes {', '.join(pin.fixes)}")
print("  tokens  pinned tile   unpinned tile (M x N x K; only K orders a sum)")
for tokens in (1, 32, 40, 64, 1024, 16384):
    print(row(tokens))

print("legal values:", legal())
try:
    repin({"moe.gate_up_k": 128})
except SelectionError as refusal:
    print("repin refused:", refusal)
try:
    select(num_tokens=0)
except SelectionError as refusal:
    print("select refused:", refusal)

steps = {select(num_tokens=m).down.BLOCK_SIZE_K for m in range(1, 16385)}
assert len(steps) == 1, steps
print(f"all 16384 batch sizes sum in steps of {steps.pop()}")
