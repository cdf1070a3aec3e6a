"""Guards that cost much are asked once per tuple and inputs; only passes are remembered."""

from __future__ import annotations

import json
import timeit
from pathlib import Path

import pytest

from selc.ir.domain import Domain
from selc.ir.graph import Graph, Node
from selc.ir.op import Op
from tests.native.test_header import HOSTS, run_host
from tests.unit.codegen.selectors import Leaves, Maker, calls, compare, load, outcome, write

pytestmark = pytest.mark.native


def dear(g: Graph, v: Leaves) -> Node:
    """A walk of 130 steps, true unless it ends on a multiple of three."""
    x = v["m"]
    for k in range(130):
        mixed = g.add(Op.ADD, g.add(Op.MUL, x, g.const(5)), g.const(k))
        x = g.add(Op.MOD, g.add(Op.ADD, mixed, v["f.k"]), g.const(1 << 20))
    return g.add(Op.NE, g.add(Op.MOD, x, g.const(3)), g.const(0))


def walked(m: int, pin: int) -> bool:
    x = m
    for k in range(130):
        x = (x * 5 + k + pin) % (1 << 20)
    return x % 3 != 0


def costly(extra: tuple[object, ...] = ("a", None, 0.0, -0.0)) -> Maker:
    maker = Maker(
        {"m": Domain(1, 500), "what": Domain(values=extra)},
        {"f.k": (1, 2, 3)},
    )
    maker.point("k", lambda g, v: g.add(Op.ADD, v["f.k"], g.add(Op.MOD, v["m"], g.const(7))))
    maker.guard("m < 490", lambda g, v: g.add(Op.LT, v["m"], g.const(490)), why="cheap")
    return maker.guard("the walk", dear)


@pytest.fixture(scope="module", name="package")
def _package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(costly().spec(), tmp_path_factory.mktemp("costly"))


def test_the_manifest_says_which(package: Path) -> None:
    runtime = json.loads((package / "manifest.json").read_text())["runtime"]
    assert [g["when"] for g in runtime["guards"]] == ["every call", "once per tuple and inputs"]


def test_native_and_python_and_the_interpreter_agree(package: Path) -> None:
    assert compare(costly().spec(), package, 1000) > 500


def test_every_call_gives_what_the_source_gives(package: Path) -> None:
    module = load(package)
    for pin in (1, 2, 3, 1):
        module.repin({"f.k": pin})
        for _ in range(2):
            for m in (*range(1, 120), *range(485, 501)):
                want: object = (pin + m % 7,)
                if not walked(m, pin):
                    want = "the walk"
                if m >= 490:
                    want = "m < 490"
                assert outcome(module, module.select, (m, None)) == want
                assert outcome(module, module._python_select, (m, None)) == want


def test_a_failure_is_not_remembered_and_a_repin_forgets(package: Path) -> None:
    module = load(package)
    refused = next(m for m in range(1, 400) if walked(m, 1) and not walked(m, 2))
    for select in (module.select, module._python_select):
        module.repin({"f.k": 1})
        select(refused, None)
        assert len(module._python.TUPLES.current.passed) <= 1
        module.repin({"f.k": 2})
        for _ in range(2):
            with pytest.raises(module.SelectionError, match="the walk"):
                select(refused, None)
        assert not module._python.TUPLES.current.passed


def test_inputs_are_told_apart_by_type(tmp_path: Path) -> None:
    values = (False, 0, 0.0, -0.0)
    module = load(write(costly(values).spec(), tmp_path, native=False))
    good = next(m for m in range(1, 400) if walked(m, 1))
    for value in values:
        module._python_select(good, value)
    assert len(module._python.TUPLES.current.passed) == 4


def test_the_table_is_bounded(package: Path) -> None:
    module = load(package)
    from_runtime = module._rt.remember_pass
    table: set[object] = set()
    for k in range(10_000):
        from_runtime(table, k)
    assert 0 < len(table) <= 4096


def test_remembered_is_faster(package: Path) -> None:
    module = load(package)
    good = [m for m in range(1, 400) if walked(m, 1)][:20]

    def once() -> None:
        module._python.TUPLES.current.passed.clear()
        for m in good:
            module._python_select(m, None)

    def again() -> None:
        for m in good:
            module._python_select(m, None)

    again()
    assert min(timeit.repeat(again, number=5)) * 5 < min(timeit.repeat(once, number=5))


@pytest.mark.parametrize("host", ["c++17", "c99-asan"])
def test_the_header_checks_all_of_them(host: str, tmp_path: Path) -> None:
    compiler, standard, flags = HOSTS[host]
    spec = costly().spec()
    done = run_host(spec, tmp_path / "host", compiler, standard, [*flags, "-ffp-contract=off"])
    assert done == len(list(calls(spec, 2000)))
