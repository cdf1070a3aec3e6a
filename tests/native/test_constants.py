"""`commit` to a module or a header: constants for production, equal to the tuple."""

from __future__ import annotations

import runpy
import subprocess
from pathlib import Path

import pytest

from selc.ir.domain import Domain
from selc.ir.op import Op
from selc.ir.value import Symbol
from tests.native.kit import attention
from tests.unit.codegen.selectors import Maker, load, write

pytestmark = pytest.mark.native

STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic"]


def odd() -> Maker:
    half, single = Symbol("dtype", "torch.half", 2), Symbol("dtype", "torch.float", 4)
    pins = {
        "f.kind": ('a\\b"*/??/', None),
        "f.dtype": (single, half),
        "f.scale": (0.5, -0.0, float("inf")),
        "g.k": (-(1 << 63), 1 << 40, 7),
        "f.k": (True, False),
    }
    maker = Maker({"m": Domain(1, 9)}, pins, family="odd one")
    maker.point("scale", lambda g, v: v["f.scale"]).point("kind", lambda g, v: v["f.kind"])
    return maker.point("n", lambda g, v: g.add(Op.ADD, v["m"], v["m"]))


def host(folder: Path, symbol: str, prefix: str, body: str, std: str) -> str:
    name = "host.cc" if "++" in std else "host.c"
    (folder / name).write_text(f"""
#include <math.h>
#include "selector.h"
#include "constants.h"
int main(void) {{
    struct {symbol}_pins pins;
    memset(&pins, 0, sizeof pins);
    {prefix}_SET_PINS(&pins);
    if ({symbol}_check_pins(&pins) != 0) return 1;
    {body}
    return 0;
}}
""")
    compiler = "g++" if "++" in std else "gcc"
    command = [compiler, f"-std={std}", *STRICT, name, "-o", "host", "-lm"]
    built = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    done = subprocess.run(["./host"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0
    return done.stdout


@pytest.mark.parametrize("std", ["c99", "c++17"])
def test_a_header(std: str, tmp_path: Path) -> None:
    package = write(attention().spec(), tmp_path)
    module = load(package)
    module.repin({"attention.num_splits": 2, "split_stride": 512})
    module.commit(package / "constants.h")
    said = host(
        package, "selc_attention", "SELC_ATTENTION",
        'printf("%d %d %d %s", SELC_ATTENTION_NUM_SPLITS, SELC_ATTENTION_PACK, '
        "SELC_ATTENTION_SPLIT_STRIDE, SELC_ATTENTION_SELECTOR);"
        "if (strcmp(SELC_ATTENTION_SELECTOR, SELC_ATTENTION_HASH) != 0) return 2;",
        std,
    )  # fmt: skip
    assert said == f"2 0 512 {module._python.HASH}"


def test_values_of_every_type(tmp_path: Path) -> None:
    package = write(odd().spec(), tmp_path)
    module = load(package)
    for change in ({}, {"f.scale": float("inf"), "g.k": 1 << 40, "f.kind": None, "f.k": False},
                   {"f.scale": -0.0, "g.k": 7, "f.dtype": "torch.half"}):  # fmt: skip
        pins = module.repin(change)
        module.commit(package / "constants.py")
        names = runpy.run_path(str(package / "constants.py"))
        want = {n: repr(v) if type(v).__name__ == "Symbol" else v for n, v in pins.items()}
        assert {n: repr(v) for n, v in names["PINS"].items()} == {
            n: repr(v) for n, v in want.items()
        }
        assert names["SELECTOR"] == module._python.HASH
        assert repr(names["SCALE"]) == repr(pins["f.scale"])
        assert names["G_K"] == pins["g.k"]  # `k` is the end of two names
        module.commit(package / "constants.h")
        host(package, "selc_odd_one", "SELC_ODD_ONE", "(void)SELC_ODD_ONE_G_K;", "c99")
        module.repin(dict(zip(pins, (v[0] for v in module._python.VALUES), strict=True)))


def test_an_illegal_tuple_is_not_written(tmp_path: Path) -> None:
    module = load(write(attention().spec(), tmp_path))
    with pytest.raises(module.SelectionError):
        module.commit(tmp_path / "constants.h", {"attention.num_splits": 2, "attention.pack": True})
    assert not (tmp_path / "constants.h").exists()
    module.commit(tmp_path / "constants.h", {"attention.num_splits": 4})
    assert "NUM_SPLITS 4" in (tmp_path / "constants.h").read_text()
    assert module.pins()["attention.num_splits"] == 1
