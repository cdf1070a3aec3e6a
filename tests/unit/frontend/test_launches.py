"""Launches as points: their names, their order along a path, and what may not be passed over."""

from __future__ import annotations

from pathlib import Path

import pytest

from selc.diag.diagnostic import Sink
from selc.driver.pipeline import Clock, Plan, decide
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


def program(folder: Path, body: str, facts: str = FACTS, **others: str) -> Program:
    write(folder, {"mod.py": body, **{f"{k}.py": v for k, v in others.items()}})
    return lift(folder, "pkg.mod:choose", facts)


def points(
    lifted: Program, pins: dict[str, object] | None = None, **inputs: object
) -> dict[str, object]:
    got = run_program(lifted, inputs, pins or {})
    assert got.returned
    return dict(got.points)


def refused(folder: Path, body: str, facts: str = FACTS) -> str:
    write(folder, {"mod.py": body})
    return refusal(folder, "pkg.mod:choose", facts)


KERNEL = """
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, rows, cols: tl.constexpr, BLOCK: tl.constexpr):
    pass
"""


def test_constexprs_and_options_are_bits(tmp_path: Path) -> None:
    body = (
        KERNEL
        + "def choose(x):\n    kernel[(1,)](x, x.shape[0], 64, BLOCK=16 if x.shape[0] < 9 else 32, "
        + "num_warps=4)\n"
    )
    lifted = program(tmp_path, body)
    assert {p.name: p.role for p in lifted.points} == {
        "call": "bits", "kernel.rows": "aux", "kernel.cols": "bits",
        "kernel.BLOCK": "bits", "kernel.num_warps": "bits",
    }  # fmt: skip
    assert points(lifted, m=9)["kernel.BLOCK"] == 32


def test_an_undecorated_kernel_gives_its_parameters(tmp_path: Path) -> None:
    body = (
        KERNEL.replace("@triton.jit\n", "")
        + "def choose(x):\n    kernel[(1,)](x, x.shape[0], cols=64, BLOCK=16)\n"
    )
    assert [p.name for p in program(tmp_path, body).points] == [
        "call",
        "kernel.rows",
        "kernel.cols",
        "kernel.BLOCK",
    ]


def test_an_opaque_function_gives_its_parameters(tmp_path: Path) -> None:
    body = "from pkg.ops import fast\n\ndef choose(x):\n    fast(x, x.shape[0] // 8, flag=True)\n"
    lifted = program(
        tmp_path,
        body,
        FACTS + "functions: {fast: opaque}\n",
        ops="def fast(x, splits, *, flag):\n    pass\n",
    )
    assert {p.name: p.role for p in lifted.points} == {
        "call": "bits",
        "fast.splits": "aux",
        "fast.flag": "bits",
    }


def test_exclusive_launches_of_a_kernel_are_the_same_launch(tmp_path: Path) -> None:
    body = """
from fast import run

def choose(x):
    m = x.shape[0]
    if m < 16:
        run(x, block=16)
    else:
        if m < 64:
            run(x, block=32, first=True)
        run(x, block=64)
"""
    lifted = program(tmp_path, body)
    assert points(lifted, m=1) == {
        "call": "run",
        "run.block": 16,
        "run.first": None,
        "run#2.block": None,
    }
    assert points(lifted, m=16) == {
        "call": "run + run",
        "run.block": 32,
        "run.first": True,
        "run#2.block": 64,
    }
    assert points(lifted, m=64) == {
        "call": "run",
        "run.block": 64,
        "run.first": None,
        "run#2.block": None,
    }


def test_launches_in_a_loop_are_counted(tmp_path: Path) -> None:
    body = "from fast import run\n\ndef choose(x):\n    for i in (1, 2):\n"
    body += "        run(x, k=i * x.shape[0])\n"
    assert points(program(tmp_path, body), m=3) == {"call": "run + run", "run.k": 3, "run#2.k": 6}


def test_a_kernel_that_the_path_chooses_is_named(tmp_path: Path) -> None:
    body = """
from fast import one, two

def choose(x):
    run = one if x.shape[0] < 16 else two
    run(x, 3)
"""
    lifted = program(tmp_path, body)
    assert points(lifted, m=15) == {"call": "fast.one", "run[1]": 3}
    assert points(lifted, m=16) == {"call": "fast.two", "run[1]": 3}


def test_entries_of_a_dict_are_points(tmp_path: Path) -> None:
    body = """
from fast import run

def choose(x):
    config = {"BLOCK": 16, "warps": [4, 8]}
    if x.shape[0] > 100:
        config["STAGES"] = 3
    run(x, config=config, sizes=[x.shape[0], 1])
"""
    lifted = program(tmp_path, body)
    wanted = {
        "call": "run",
        "run.config.BLOCK": 16,
        "run.config.warps": (4, 8),
        "run.config.STAGES": None,
        "run.sizes": (7, 1),
    }
    assert points(lifted, m=7) == wanted
    assert points(lifted, m=101)["run.config.STAGES"] == 3


def test_a_tensor_or_none_is_a_choice(tmp_path: Path) -> None:
    body = """
import torch
from fast import run

def choose(x):
    y = torch.empty_like(x)
    run(a=x, b=x if x.shape[0] < 16 else y, c=x if x.shape[0] < 16 else None)
"""
    lifted = program(tmp_path, body)
    assert points(lifted, m=1) == {"call": "run", "run.c": "<tensor>"}
    assert points(lifted, m=16) == {"call": "run", "run.c": None}


def test_numbers_among_what_is_returned(tmp_path: Path) -> None:
    body = """
from fast import run

def choose(x):
    y = run(x)
    return y, {"splits": x.shape[0] // 128}, None
"""
    assert points(program(tmp_path, body), m=300) == {"call": "run", "[1].splits": 2}


@pytest.mark.parametrize(
    ("body", "asked"),
    [
        ("run(x, k=x.max().item())", "x.max().item"),
        ("run(x, k=hidden(x).shape[0])", "hidden(x).shape"),
        ("run(x, k=get_splits(x))", "get_splits"),
        ("return run(x), os.getpid() + 1", "os.getpid"),
    ],
)
def test_numbers_that_are_not_known_are_asked_for(tmp_path: Path, body: str, asked: str) -> None:
    text = f"import os\nfrom fast import get_splits, hidden, run\n\ndef choose(x):\n    {body}\n"
    assert f"SEL912 what `{asked}` returns is not known" in refused(tmp_path, text)


def test_an_assert_about_opaque_values_is_assumed(tmp_path: Path) -> None:
    body = "from fast import run\n\ndef choose(x):\n    y = run(x)\n"
    body += "    assert y.dim() == 2\n    return y\n"
    assert program(tmp_path, body).assumptions == [
        "`y.dim() == 2` holds: selc does not see into its operands (line 5)"
    ]


def test_an_opaque_result_is_unpacked(tmp_path: Path) -> None:
    body = "from fast import quant, run\n\ndef choose(x):\n"
    body += "    q, s = quant(x)\n    return run(q, s, 2)\n"
    assert points(program(tmp_path, body), m=1) == {"call": "quant + run", "run[2]": 2}


def test_torch_cond_takes_a_branch(tmp_path: Path) -> None:
    body = """
import torch
from fast import one, two

def choose(x):
    def small(x, n):
        return one(x, n)

    def large(x, n):
        return two(x, n)

    return torch.cond(x.shape[0] < 32, small, large, (x, x.shape[0] * 2))
"""
    lifted = program(tmp_path, body)
    assert points(lifted, m=31) == {"call": "one", "one[1]": 62, "two[1]": None}
    assert points(lifted, m=32) == {"call": "two", "one[1]": None, "two[1]": 64}


def test_slices_of_tensors(tmp_path: Path) -> None:
    body = """
def choose(x):
    y = x[1 : x.shape[0] // 2, None, ..., -3:]
    return y.shape, y[:, 0].numel(), x[:-1].size(0), x.shape[:-1].numel(), y.is_contiguous()
"""
    lifted = program(tmp_path, body)
    for m in (0, 1, 5, 4096):
        rows = max(min(m // 2, m) - min(1, m), 0)
        wanted = {
            "[0][0]": rows,
            "[0][1]": 1,
            "[0][2]": 3,
            "[1]": 3 * rows,
            "[2]": max(m - 1, 0),
            "[3]": m,
            "[4]": rows <= 1,
        }
        assert points(lifted, m=m) == wanted


def test_views_keep_the_number_of_elements(tmp_path: Path) -> None:
    lifted = program(tmp_path, "def choose(x):\n    return x.view(-1, 128).shape[0]\n")
    assert points(lifted, m=4) == {"result": 2}
    assert not run_program(lifted, {"m": 3}).returned


PARTS = """
selection: {function: "pkg.mod:choose", scope: launch}
facts: {layer: {factor: 2}}
inputs:
  layer.meta.longest: {kind: runtime, range: [1, 64]}
tensors:
  layer.weight: {shape: [8, layer.meta.longest], dtype: torch.int8}
"""


def test_an_object_that_is_declared_by_its_parts(tmp_path: Path) -> None:
    body = (
        "def choose(layer):\n    return layer.weight.numel() * layer.factor + layer.meta.longest\n"
    )
    inputs: dict[str, object] = {"layer.meta.longest": 3}
    assert points(program(tmp_path, body, PARTS), None, **inputs) == {"result": 51}


SELF = """
selection: {function: "pkg.mod:Tuned.choose", scope: launch}
facts: {self: {limit: 3}}
inputs:
  m: {kind: runtime, range: [0, 4096]}
"""


def test_super_follows_the_order_of_the_bases(tmp_path: Path) -> None:
    body = """
class Base:
    def choose(self, m):
        return m // self.limit

class Left(Base):
    def choose(self, m):
        return super().choose(m) + 1

class Right(Base):
    def choose(self, m):
        return super().choose(m) * 10

class Tuned(Left, Right):
    def choose(self, m):
        return super().choose(m)
"""
    write(tmp_path, {"mod.py": body})
    assert points(lift(tmp_path, "pkg.mod:Tuned.choose", SELF), m=9) == {"result": 31}


def test_attributes_that_are_set_are_points(tmp_path: Path) -> None:
    body = """
class Tuned:
    def choose(self, m):
        self.splits = 2 if m > 100 else self.limit
        if m > 200:
            self.big = True
"""
    write(tmp_path, {"mod.py": body})
    lifted = lift(tmp_path, "pkg.mod:Tuned.choose", SELF)
    assert points(lifted, m=100) == {"self.splits": 3, "self.big": None}
    assert points(lifted, m=201) == {"self.splits": 2, "self.big": True}


def test_the_entry_function_is_there(tmp_path: Path) -> None:
    body = """
try:
    from aiter import run
    if run.tuned():
        from aiter import tuned_run

    def choose(x):
        tuned_run(x, big=x.shape[0] > 8)
except ImportError:
    run = None
"""
    lifted = program(tmp_path, body, FACTS + 'functions: {"run.tuned": true}\n')
    assert points(lifted, m=9) == {"call": "tuned_run", "tuned_run.big": True}


def test_equality_of_dicts_and_objects(tmp_path: Path) -> None:
    body = """
from dataclasses import dataclass

@dataclass
class Kind:
    bits: int
    names: dict

FOUR = Kind(4, {"a": [1]})

def choose(x):
    mine = Kind(4 if x.shape[0] < 9 else 8, {"a": [1]})
    return mine in [Kind(2, {}), FOUR], mine == FOUR, {"k": x.shape[0]} != {"k": 7}, [mine] == [1]
"""
    lifted = program(tmp_path, body)
    for m in (7, 9):
        assert points(lifted, m=m) == {"[0]": m < 9, "[1]": m < 9, "[2]": m != 7, "[3]": False}


def test_sets_are_joined_and_cut(tmp_path: Path) -> None:
    body = "A = {1, 2}\nB = A | {5}\n\ndef choose(x):\n"
    body += "    return x.shape[0] in B, x.shape[0] in B - A, x.shape[0] in B & A\n"
    lifted = program(tmp_path, body)
    assert points(lifted, m=5) == {"[0]": True, "[1]": True, "[2]": False}
    assert points(lifted, m=2) == {"[0]": True, "[1]": False, "[2]": True}


def test_functions_made_at_module_level_see_what_they_close_over(tmp_path: Path) -> None:
    body = """
def scaled(factor):
    def apply(n):
        return n * factor
    return apply

double = scaled(2)

def choose(x):
    return double(x.shape[0])
"""
    assert points(program(tmp_path, body), m=5) == {"result": 10}


# -- sites ---------------------------------------------------------------------------------------


def test_an_inner_choice_is_pinned_under_a_known_condition(tmp_path: Path) -> None:
    body = (
        "def choose(x):\n    m = x.shape[0]\n    return 1 if True and (m > 8 and m < 64) else 0\n"
    )
    lifted = program(tmp_path, body)
    assert points(lifted, {"choose.L3C27-43": True}, m=1) == {"result": 1}


def test_a_chain_of_comparisons_is_one_site(tmp_path: Path) -> None:
    body = "def choose(x):\n    return 1 if 0 <= x.shape[0] <= 4 else 0\n"
    lifted = program(tmp_path, body)
    assert "choose.L2C17-37" in lifted.sites
    assert points(lifted, {"choose.L2C17-37": False}, m=1) == {"result": 0}


def test_a_call_that_is_folded_counts_in_the_names_of_the_other(tmp_path: Path) -> None:
    body = """
def half(n):
    return n // 2

def choose(x):
    return half(64) + half(x.shape[0])
"""
    assert [n for n in program(tmp_path, body).sites if n.startswith("half")] == [
        "half.n@L6C23",
        "half.L3C12-18@L6C23",
    ]


HIDDEN = """
from fast import run

def choose(x):
    m = x.shape[0]
    fits = m <= 128
    algo = 1 if fits else 2
    lanes = 3 if fits else 4
    if m > 8:
        run(x, algo=algo, lanes=lanes)
    assert GUARD
"""


@pytest.mark.parametrize(
    ("guard", "legal"),
    [
        ("algo in (1, 2)", [(False, False), (False, True), (True, False), (True, True)]),
        ("algo == 2 or fits", [(False, False), (True, False)]),
    ],
)
def test_launched_choices_are_judged_on_the_real_batch(
    tmp_path: Path, guard: str, legal: list[tuple[bool, bool]]
) -> None:
    write(tmp_path, {"mod.py": HIDDEN.replace("GUARD", guard)})
    facts = tmp_path / "facts.yaml"
    facts.write_text(FACTS)
    decided = decide(Plan("pkg.mod:choose", (facts,), (tmp_path,)), None, Sink(), Clock())
    assert [p.name for p in decided.program.points if p.sites] == ["run.algo", "run.lanes"]
    assert [p.name for p in decided.residual.pins] == ["choose.L9C8-13", "choose.fits"]
    assert sorted(decided.legality.relation or ()) == legal


CACHED = """
from functools import cache
import lib

SEEN = {}

@cache
def made(coarse):
    return lib.build(coarse=coarse)

@cache
def noted(coarse):
    global COUNT
    COUNT = coarse
    return coarse

COUNT = 0
"""


@pytest.mark.parametrize(
    "body",
    [
        "def choose(x):\n    made(1)\n    return made(1 if x.shape[0] < 9 else 4)(x)\n",
        "def choose(x):\n    return noted(1 if x.shape[0] < 9 else 4) + COUNT\n",
    ],
)
def test_what_a_cached_function_does_besides_returning_is_refused(
    tmp_path: Path, body: str
) -> None:
    message = refused(tmp_path, CACHED + body)
    assert message.startswith("SEL906")
    assert "is cached" in message


def test_a_cached_call_may_be_the_kernel(tmp_path: Path) -> None:
    body = CACHED + "def choose(x):\n    return made(1 if x.shape[0] < 9 else 4)(x)\n"
    lifted = program(tmp_path, body, FACTS + "functions: {made: opaque}\n")
    assert points(lifted, m=3)["made.coarse"] == 1
    assert points(lifted, m=9)["made.coarse"] == 4


ASSIGNED = """
class Holder:
    def choose(self, x):
        self.tiles = [0, 0]
        self.more = {"a": 1}
        if x.shape[0] < 9:
            self.tiles[0] = 16
        self.tiles[1] = 64
        self.more["b"] = 2 if x.shape[0] < 9 else 3
"""


def test_an_assigned_attribute_counts_as_it_is_left(tmp_path: Path) -> None:
    write(tmp_path, {"mod.py": ASSIGNED})
    facts = FACTS.replace("mod:choose", "mod:Holder.choose") + "facts: {self: {}}\n"
    lifted = lift(tmp_path, "pkg.mod:Holder.choose", facts)
    assert points(lifted, m=3) == {"self.tiles": (16, 64), "self.more.a": 1, "self.more.b": 2}
    assert points(lifted, m=9) == {"self.tiles": (0, 64), "self.more.a": 1, "self.more.b": 3}


def test_a_list_of_unknown_length_is_no_option(tmp_path: Path) -> None:
    body = (
        "import lib\n"
        "def choose(x):\n"
        "    tiles = [1]\n"
        "    if x.shape[0] < 9:\n"
        "        tiles.append(2)\n"
        "    lib.gemm(x, tiles=tiles)\n"
    )
    assert refused(tmp_path, body).startswith("SEL906")


def test_a_list_of_the_facts(tmp_path: Path) -> None:
    body = "import lib\ndef choose(x, sizes):\n    lib.gemm(x, sizes=sizes + [x.shape[0]])\n"
    stated = FACTS + "facts: {sizes: %s}\n"
    lifted = program(tmp_path, body, stated % "{class: list, items: [1, 2]}")
    assert points(lifted, m=3)["lib.gemm.sizes"] == (1, 2, 3)
    assert refused(tmp_path, body, stated % "[1, 2]").startswith("SEL")
