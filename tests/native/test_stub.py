"""What editors see: the stub says of a package what the package is."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from selc.ir.domain import Domain
from tests.native.kit import attention, sequences
from tests.unit.codegen.selectors import Maker, load, write

USE = """
from {package} import select, select_unpinned, pins, repin, legal, commit, load, points, record
from {package} import PINS, KNOBS, FACTS, NATIVE, NATIVE_REASON, SelectionError

choice = select(num_tokens=17, kv_len=4096, causal=True)
reveal_type(choice)
reveal_type(choice.num_splits)
reveal_type(choice.tile.pack)
reveal_type(repin)
select(17, "4096", True)
select(17, 4096)
choice.absent
record("x.jsonl").select(17, 4096, True, extra={{"lens": [1]}})
"""


def checked(folder: Path, text: str) -> list[str]:
    (folder / "use.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "use.py"],
        cwd=folder, capture_output=True, text=True,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder)},
    )  # fmt: skip
    return [line.partition(": ")[2] for line in done.stdout.splitlines() if line[:4] == "use."]


@pytest.mark.native
def test_a_type_checker_reads_it(tmp_path: Path) -> None:
    package = write(attention().spec(), tmp_path)
    said = checked(tmp_path, USE.format(package=package.name))
    shown = [line for line in said if line.startswith("note: Revealed")]
    assert "selector.Choice]" in shown[0]
    assert '"int"' in shown[1].replace("builtins.", "")
    assert '"bool"' in shown[2].replace("builtins.", "")
    wrong = [line for line in said if line.startswith("error")]
    assert len(wrong) == 3, said
    assert "incompatible type" in wrong[0]
    assert "Missing positional argument" in wrong[1]
    assert "no attribute" in wrong[2]


def test_it_names_what_there_is(tmp_path: Path) -> None:
    for maker in (attention(), sequences()):
        package = write(maker.spec(), tmp_path, native=False)
        module = load(package)
        text = (package / "selector.pyi").read_text()
        compile(text, "selector.pyi", "exec")
        compile((package / "__init__.pyi").read_text(), "__init__.pyi", "exec")
        for name in (*module.__all__, "NATIVE_REASON"):
            assert name in text
        for name in inspect.signature(module._bind).parameters:
            assert f"{name}: " in text


def test_results_that_are_tuples(tmp_path: Path) -> None:
    maker = Maker({"m": Domain(1, 4)}, {"f.k": (1, None)})
    maker.point("[0]", lambda g, v: v["m"]).point("[1]", lambda g, v: v["f.k"])
    package = write(maker.spec(), tmp_path, native=False)
    text = (package / "selector.pyi").read_text()
    assert "class Choice(tuple[int, None | int]):" in text or "tuple[int, int | None]" in text
    assert checked(tmp_path, f"from {package.name} import select\nreveal_type(select(1)[0])\n")
