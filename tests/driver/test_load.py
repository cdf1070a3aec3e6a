"""`selc.load`: one import gives a selector, compiled once and then found."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import selc
from selc.driver import cache, loaded
from tests.driver.conftest import FACTS

ROOT = Path(__file__).resolve().parents[2]

HIT = """
import sys
import selc
module = selc.load("plan.py", facts=["facts.yaml"], native=False)
heavy = [m for m in ("libcst", "networkx", "z3") if m in sys.modules]
print(module.select(m=7).width, heavy, module.__name__.startswith("selc_selector_"))
"""


def plan(m: int) -> tuple[int, int]:
    return (16 if m <= 64 else 128, 4 if m <= 256 else 2)


def test_load(project: Path) -> None:
    module = selc.load("plan.py", facts=["facts.yaml"], native=False)
    assert module is selc.load("plan.py", facts=["facts.yaml"], native=False)
    choice = module.select(m=7)
    assert (choice.width, choice.stages) == tuple(
        module.pins()[f"plan.{n}"] for n in ("width", "stages")
    )
    assert (module.select_unpinned(m=7).width, module.select_unpinned(m=7).stages) == plan(7)


def test_two_deployments_side_by_side(project: Path) -> None:
    (project / "other.yaml").write_text(FACTS.replace("heads: 8", "heads: 9"))
    one = selc.load("plan.py", facts=["facts.yaml"], native=False)
    two = selc.load("plan.py", facts=["other.yaml"], native=False)
    assert one.select(m=7).pad + 1 == two.select(m=7).pad


def test_a_change_is_seen(project: Path) -> None:
    one = selc.load("plan.py", facts=["facts.yaml"], native=False)
    text = (project / "plan.py").read_text()
    (project / "plan.py").write_text(text.replace("min(m, 32)", "min(m, 16)"))
    two = selc.load("plan.py", facts=["facts.yaml"], native=False)
    assert (one.select(m=100).lanes, two.select(m=100).lanes) == (32, 16)
    (project / "plan.py").write_text(text)
    assert selc.load("plan.py", facts=["facts.yaml"], native=False).select(m=100).lanes == 32


def test_a_selector_stays_what_it_was_when_its_source_changes(project: Path) -> None:
    """What a package reads late is its own, not that of the compilation after it."""
    text = (project / "plan.py").read_text()
    one = selc.load("plan.py", facts=["facts.yaml"], native=False)
    (project / "plan.py").write_text(text.replace("min(m, 32)", "min(m, 16)"))
    two = selc.load("plan.py", facts=["facts.yaml"], native=False)
    assert [s.select_unpinned(m=300).lanes for s in (one, two)] == [32, 16]
    one.repin({**one.pins(), "stride": 32})
    assert one.select(m=300).pad + 32 == two.select(m=300).pad
    (project / "plan.py").write_text(text)
    assert selc.load("plan.py", facts=["facts.yaml"], native=False) is one


def loads(project: Path, limits: range) -> list[ModuleType]:
    return [
        selc.load("plan.py", facts=["facts.yaml"], native=False, max_candidates=n) for n in limits
    ]


def test_packages_count_in_the_bound_and_make_room(
    project: Path, private_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = """
import sys, selc
for n in range(int(sys.argv[1]), int(sys.argv[2])):
    selc.load("plan.py", facts=["facts.yaml"], native=False, max_candidates=n)
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", program, "10", "16"], env=environment, check=True)
    top = private_cache / "v1"
    listed = cache.list_entries().json
    assert (listed["loaded"], loaded.count(top)) == (6, 6)
    files = [p for p in (top / "loaded").rglob("*") if p.is_file()]
    assert loaded.size(top) == sum(p.stat().st_size for p in files)
    assert listed["bytes"] > loaded.size(top) > 0
    monkeypatch.setattr(cache, "MAX_BYTES", listed["bytes"] // 2)
    mine = loads(project, range(30, 32))
    assert cache.list_entries().json["bytes"] <= listed["bytes"] // 2
    assert 2 <= loaded.count(top) < 6
    assert [m.select_unpinned(m=300).lanes for m in mine] == [32, 32]
    monkeypatch.setattr(cache, "MAX_BYTES", 1)
    loads(project, range(32, 33))
    assert loaded.count(top) == 3
    assert [m.select_unpinned(m=7).lanes for m in mine] == [7, 7]
    assert cache.verify().exit_code == 0


def test_what_another_process_has_imported_stays_until_it_ends(
    project: Path, private_cache: Path
) -> None:
    program = """
import selc
module = selc.load("plan.py", facts=["facts.yaml"], native=False)
print("loaded", flush=True)
input()
print(module.select_unpinned(m=300).lanes)
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    other = subprocess.Popen(
        [sys.executable, "-c", program],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert other.stdout is not None
    assert other.stdout.readline() == "loaded\n"
    top = private_cache / "v1"
    loaded.trim(top, 0, 0)
    assert loaded.count(top) == 1
    assert other.communicate("\n")[0] == "32\n"
    loaded.trim(top, 0, 0)
    assert loaded.count(top) == 0


def test_a_damaged_package_is_named_and_written_anew(project: Path, private_cache: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", HIT], env=environment, check=True, capture_output=True)
    (package,) = (private_cache / "v1" / "loaded").glob("*/selector")
    text = (package / "_unpinned.py").read_text()
    (package / "_unpinned.py").write_text(text + "\nraise SystemExit\n")
    told = cache.verify()
    assert (told.exit_code, told.json["damaged"]) == (1, [str(package)])
    subprocess.run([sys.executable, "-c", HIT], env=environment, check=True, capture_output=True)
    assert (package / "_unpinned.py").read_text() == text
    assert cache.verify().exit_code == 0


def test_without_a_cache_that_can_be_written(project: Path, private_cache: Path) -> None:
    private_cache.write_text("not a folder")
    with pytest.warns(RuntimeWarning, match=r"cannot be written .*for this process alone"):
        module = selc.load("plan.py", facts=["facts.yaml"], native=False)
    assert module.select_unpinned(m=300).lanes == 32


@pytest.mark.skipif(shutil.which("setpriv") is None and os.geteuid() == 0, reason="is root")
def test_a_filled_cache_that_may_only_be_read(project: Path, private_cache: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    program = HIT + "print(module.__file__, module.select_unpinned(m=300).lanes)"
    bound = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    command = [*(bound if os.geteuid() == 0 else ()), sys.executable, "-W", "error", "-c", program]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    everything = [private_cache, *private_cache.rglob("*")]
    for path in everything:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    finally:
        for path in everything:
            path.chmod(0o755 if path.is_dir() else 0o644)
    where, lanes = done.stdout.splitlines()[-1].split()
    assert (Path(where).is_relative_to(private_cache), lanes) == (True, "32")


def test_what_cannot_be_compiled(project: Path) -> None:
    with pytest.raises(selc.CompileError, match=r"plan2\.py"):
        selc.load("plan2.py", facts=["facts.yaml"])
    (project / "plan.py").write_text(
        "def plan(m, heads, stride):\n    assert m < 7\n    return m\n"
    )
    with pytest.raises(selc.CompileError, match="SEL") as caught:
        selc.load("plan.py", facts=["facts.yaml"])
    assert caught.value.outcome.exit_code == 2


def test_a_hit_imports_no_solver(project: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    said = [
        subprocess.run(
            [sys.executable, "-c", HIT], env=environment, capture_output=True, text=True, check=True
        ).stdout.split(" ", 1)
        for _ in range(2)
    ]
    assert said[0][0] == said[1][0]
    assert "libcst" in said[0][1]
    assert said[1][1].strip() == "[] True"


def test_eight_processes_compile_once(project: Path) -> None:
    program = """
from pathlib import Path
from selc.driver.compile import run
from selc.driver.options import CompileOptions
import sys
options = CompileOptions(target="plan.py", facts=(Path("facts.yaml"),), emit=("python",),
                         native=False, out=Path(sys.argv[1]))
print(run(options).json["cache"])
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program, f"out{k}"],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for k in range(8)
    ]
    said = sorted(p.communicate()[0].strip() for p in running)
    assert said == ["hit"] * 7 + ["miss"]
