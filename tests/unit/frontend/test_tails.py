"""Functions whose choices end in opaque calls: what is launched, and what is read on the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from selc.ir.interp import run_program
from selc.ir.program import Program
from tests.unit.frontend.lifting import lift, refusal, write

FACTS = """
selection: {function: "pkg.mod:choose", scope: launch}
facts: {hidden: 64}
inputs:
  m: {kind: runtime, range: [1, 4096]}
tensors:
  x: {shape: [m, hidden], dtype: torch.bfloat16}
  w: {shape: [hidden, 32], dtype: torch.bfloat16}
"""


def program(folder: Path, body: str, facts: str = FACTS, **others: str) -> Program:
    write(folder, {"mod.py": body, **{f"{k}.py": v for k, v in others.items()}})
    return lift(folder, "pkg.mod:choose", facts)


def points(lifted: Program, **inputs: object) -> dict[str, object]:
    got = run_program(lifted, inputs)
    assert got.returned
    return dict(got.points)


def test_matrix_products_are_launches(tmp_path: Path) -> None:
    body = """
import torch
from fast import small

def choose(x, w):
    if x.shape[0] <= 16:
        return small(x, w, x.shape[0] // 4)
    y = x @ w
    return y.relu() @ w.T
"""
    lifted = program(tmp_path, body)
    assert points(lifted, m=16) == {"call": "small", "small[2]": 4}
    assert points(lifted, m=17) == {"call": "@ + y.relu + @", "small[2]": None}


def test_matrix_products_of_numbers_are_refused(tmp_path: Path) -> None:
    write(tmp_path, {"mod.py": "def choose(x, w):\n    return x.shape[0] @ w\n"})
    assert refusal(tmp_path, "pkg.mod:choose", FACTS).startswith("SEL901 `@` of this value")


DECORATED = """
from pkg.ops import register

@register("choose", mutates=["x"])
def choose(x, w):
    from fast import kernel
    kernel(x, splits=2 if x.shape[0] > 100 else 1)

@register("other")
def other(x, splits):
    pass
"""


def test_the_selection_runs_as_it_is_written(tmp_path: Path) -> None:
    lifted = program(
        tmp_path, DECORATED, ops="def register(*args, **kwargs):\n    return hidden(args)\n"
    )
    assert lifted.assumptions == [
        "`@register('choose', mutates=['x'])` runs `choose` as it is written"
    ]
    assert points(lifted, m=100)["kernel.splits"] == 1
    assert points(lifted, m=101)["kernel.splits"] == 2


def test_decorators_of_other_functions_hide_them(tmp_path: Path) -> None:
    body = DECORATED.replace("kernel(x, splits=", "other(x, splits=")
    lifted = program(
        tmp_path, body, ops="def register(*args, **kwargs):\n    return hidden(args)\n"
    )
    assert points(lifted, m=101) == {"call": "other", "other.splits": 2}


def test_a_package_binds_the_name_of_its_module(tmp_path: Path) -> None:
    body = "def choose(x, w):\n    from pkg.sub import split\n    return split(x.shape[0])\n"
    write(
        tmp_path,
        {
            "sub/__init__.py": "from pkg.sub.split import split\n",
            "sub/split.py": "def split(m):\n    return m // 128\n",
        },
    )
    lifted = program(tmp_path, body)
    assert points(lifted, m=300) == {"result": 2}


def test_a_package_imports_its_module(tmp_path: Path) -> None:
    body = "def choose(x, w):\n    from pkg.sub import split\n    return split.of(x.shape[0])\n"
    write(
        tmp_path,
        {
            "sub/__init__.py": "from . import split\n",
            "sub/split.py": "def of(m):\n    return m // 64\n",
        },
    )
    lifted = program(tmp_path, body)
    assert points(lifted, m=300) == {"result": 4}


def test_why_an_imported_value_is_not_known(tmp_path: Path) -> None:
    source = (
        "from pkg.platform import fast\n\ndef choose(x, w):\n    return x.shape[0] if fast else 0\n"
    )
    write(
        tmp_path,
        {"mod.py": source, "platform.py": "import torch\n\nfast = torch.cuda.is_available()\n"},
    )
    assert "SEL912 what `torch.cuda.is_available` returns is not known" in refusal(
        tmp_path, "pkg.mod:choose", FACTS
    )
    lifted = lift(
        tmp_path, "pkg.mod:choose", FACTS + 'functions: {"torch.cuda.is_available": true}\n'
    )
    assert points(lifted, m=3) == {"result": 3}


DOTTED = """
selection: {function: "pkg.mod:choose", scope: launch, assume: ["meta.batch <= m"]}
facts: {meta: {heads: 2}}
inputs:
  m: {kind: runtime, range: [1, 4096]}
  meta.batch: {kind: runtime, range: [1, 64]}
tensors:
  x: {shape: [m, meta.batch * meta.heads], dtype: torch.bfloat16}
"""


def test_attributes_that_are_inputs_in_sizes_and_assumptions(tmp_path: Path) -> None:
    lifted = program(tmp_path, "def choose(x, meta):\n    return x.shape[1] + meta.batch\n", DOTTED)
    assert points(lifted, **{"m": 64, "meta.batch": 5}) == {"result": 15}
    assert not run_program(lifted, {"m": 4, "meta.batch": 5}).returned


ARRAYS = """
selection: {function: "pkg.mod:choose", scope: launch}
inputs:
  lens: {kind: runtime, length: [1, 8], element: {range: [0, 100]}}
"""


def test_methods_of_arrays(tmp_path: Path) -> None:
    value = "lens.max().item() - lens.min() if lens.any() else lens.sum()"
    body = f"def choose(lens):\n    return {value}\n"
    lifted = program(tmp_path, body, ARRAYS)
    given = {"max(lens)": 7, "min(lens)": 3, "any(lens)": True, "sum(lens)": 10, "len(lens)": 2}
    assert points(lifted, **given) == {"result": 4}


@pytest.mark.parametrize("body", ["lens.max(0)", "lens.max(dim=0)"])
def test_methods_of_arrays_along_a_dimension(tmp_path: Path, body: str) -> None:
    write(tmp_path, {"mod.py": f"def choose(lens):\n    return {body}\n"})
    assert "along a dimension" in refusal(tmp_path, "pkg.mod:choose", ARRAYS)


def test_lists_have_no_such_methods(tmp_path: Path) -> None:
    write(tmp_path, {"mod.py": "def choose(lens: list[int]):\n    return lens.max()\n"})
    assert "`.max` of `lens`" in refusal(tmp_path, "pkg.mod:choose", ARRAYS)


def test_what_an_array_gives_can_only_be_pinned_as_a_number(tmp_path: Path) -> None:
    body = "def choose(lens):\n    return 1 if lens.max().item() > 50 else 0\n"
    lifted = program(tmp_path, body, ARRAYS)
    assert (
        "choose.L2C17-34" in lifted.sites
    )  # `.item()`: a number of Python, `.max()` is one of the array
    assert "choose.L2C17-27" not in lifted.sites
