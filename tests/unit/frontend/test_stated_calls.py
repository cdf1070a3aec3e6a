"""What still runs of a call whose result the facts state, and decorators that change nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from selc.ir.interp import run_program
from selc.ir.program import Program
from tests.unit.frontend.lifting import lift, refusal, write

FACTS = """
selection: {function: "pkg.mod:choose", scope: launch}
inputs:
  m: {kind: runtime, range: [0, 4096]}
tensors:
  x: {shape: [m, 64], dtype: torch.bfloat16}
"""


def lifted(folder: Path, body: str, more: str) -> Program:
    write(folder, {"mod.py": "import lib\n" + body})
    return lift(folder, "pkg.mod:choose", FACTS + more)


@pytest.mark.parametrize(
    ("call", "stated"),
    [
        ("check(lib.gemm(x, tile=16))", "check"),
        ("check(status=lib.gemm(x, tile=16))", "check"),
        ("lib.gemm(x, tile=16).check()", "lib.gemm(x, tile=16).check"),
    ],
)
def test_a_launch_inside_a_stated_call_is_made(tmp_path: Path, call: str, stated: str) -> None:
    program = lifted(tmp_path, f"def choose(x):\n    {call}\n", f'functions: {{"{stated}": null}}')
    points = run_program(program, {"m": 3}).points
    assert points["call"] == "lib.gemm"
    assert points["lib.gemm.tile"] == 16


def test_an_argument_of_a_stated_call_may_fail(tmp_path: Path) -> None:
    body = "def choose(x):\n    return check(64 // x.shape[0])\n"
    program = lifted(tmp_path, body, "functions: {check: 1}")
    assert run_program(program, {"m": 1}).returned
    assert not run_program(program, {"m": 0}).returned


DECORATED = """
LEVEL = %d

def watched(function=None, *, name=None):
    if LEVEL == 0:
        return function if function is not None else lambda f: f
    return lib.watch(function)

@watched%s
def tile(x):
    return 16 if x.shape[0] < 9 else 64

def choose(x):
    return lib.gemm(x, tile=tile(x))
"""


@pytest.mark.parametrize("options", ["", '(name="t")'])
def test_a_decorator_that_gives_the_function_back_changes_nothing(
    tmp_path: Path, options: str
) -> None:
    program = lifted(tmp_path, DECORATED % (0, options), "")
    for m, wanted in ((8, 16), (9, 64)):
        points = run_program(program, {"m": m}).points
        assert (points["call"], points["lib.gemm.tile"]) == ("lib.gemm", wanted)


def test_a_decorator_that_is_not_followed_makes_a_kernel(tmp_path: Path) -> None:
    program = lifted(tmp_path, DECORATED % (1, ""), "")
    assert run_program(program, {"m": 8}).points["call"] == "tile + lib.gemm"


def test_an_attribute_that_a_stated_mapping_lacks_is_asked_for(tmp_path: Path) -> None:
    body = "import lib\ndef choose(x, cfg):\n    lib.gemm(x, tile=16 if cfg.big else 64)\n"
    write(tmp_path, {"mod.py": body})
    message = refusal(tmp_path, "pkg.mod:choose", FACTS + "facts: {cfg: {small: 1}}")
    assert message == "SEL912 `cfg.big` is not stated in the facts"


def test_an_attribute_that_a_dict_lacks_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {"mod.py": "def choose(x):\n    c = {'a': 1}\n    return 16 if c.b else 64\n"})
    assert refusal(tmp_path, "pkg.mod:choose", FACTS).startswith("SEL901 `.b` of a dict")
