"""Calling torch modules, and dicts whose keys hold devices."""

from __future__ import annotations

from pathlib import Path

from selc.ir.interp import run_program
from tests.unit.frontend.lifting import lift, refusal, write

FACTS = """
selection: {function: "pkg.mod:choose", scope: launch}
inputs:
  m: {kind: runtime, range: [1, 4096]}
tensors:
  x: {shape: [m, 64], dtype: torch.bfloat16, device: cuda}
"""

LAYER = """
from torch import nn
import lib

class Base(nn.Module):
    def forward(self, x, tile):
        return lib.gemm(x, tile=tile)

class Layer(Base):
    def pick(self, x):
        return 16 if x.shape[0] < 9 else 64

def choose(layer, x):
    return layer(x, layer.pick(x))
"""


def test_calling_a_torch_module_runs_its_forward(tmp_path: Path) -> None:
    write(tmp_path, {"mod.py": LAYER})
    program = lift(tmp_path, "pkg.mod:choose", FACTS + 'objects: {layer: {class: "pkg.mod:Layer"}}')
    for m, tile in ((8, 16), (9, 64)):
        assert run_program(program, {"m": m}).points["lib.gemm.tile"] == tile
    assert "`Layer` has no hooks: calling it runs its `forward`" in program.assumptions


def test_calling_an_object_of_another_class_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {"mod.py": LAYER.replace("nn.Module", "object")})
    facts = FACTS + 'objects: {layer: {class: "pkg.mod:Layer"}}'
    assert "calling an object" in refusal(tmp_path, "pkg.mod:choose", facts)


KEYED = """
import lib

def choose(x):
    known = {"tile": 16}
    known[(x.device, 64)] = 32
    return lib.gemm(x, tile=%s)
"""


def test_a_key_that_holds_a_device_may_be_any_key(tmp_path: Path) -> None:
    write(tmp_path, {"mod.py": KEYED % "4"})
    program = lift(tmp_path, "pkg.mod:choose", FACTS)
    assert run_program(program, {"m": 1}).points["lib.gemm.tile"] == 4
    write(tmp_path, {"mod.py": KEYED % 'known["tile"]'})
    assert refusal(tmp_path, "pkg.mod:choose", FACTS).startswith("SEL")
