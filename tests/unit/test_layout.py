"""Rules about the tree itself that neither ruff nor import-linter can state."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LONGEST_MODULE = 600


def sources(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def imported(path: Path) -> set[str]:
    """Absolute names of the modules that one file imports, at any depth."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def test_no_module_is_too_long() -> None:
    for path in [*sources("selc"), *sources("codegen"), *sources("scripts")]:
        lines = path.read_text(encoding="utf-8").count("\n")
        assert lines <= LONGEST_MODULE, path


def test_every_module_says_what_it_is() -> None:
    for path in [*sources("selc"), *sources("codegen"), *sources("scripts")]:
        assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), path


@pytest.mark.parametrize("package", ["selc.lang", "selc.harness"])
def test_what_runs_beside_the_compiler_is_apart_from_it(package: str) -> None:
    home = ROOT / Path(*package.split("."))
    for path in [*sources("selc"), *sources("codegen")]:
        inside = path == home.with_suffix(".py") or home in path.parents
        for name in imported(path):
            if inside and within(name, "selc"):
                # The version, the package itself and plain messages are no part of the compiler.
                allowed = (package, "selc.__version__", "selc.diag")
                assert any(within(name, one) for one in allowed), f"{path}: {name}"
            if not inside and "cli" not in path.parts:
                assert not within(name, package), f"{path}: {name}"


def test_the_link_to_codegen_is_committed() -> None:
    link = ROOT / "selc" / "codegen"
    assert link.is_symlink()
    assert link.readlink() == Path("../codegen")


def test_the_wheel_holds_everything(tmp_path: Path) -> None:
    if int(metadata.version("setuptools").split(".")[0]) < 77:
        pytest.skip("needs setuptools 77 to build without a network")
    source = tmp_path / "source"
    names = ["selc", "codegen", "pyproject.toml", "README.md", "LICENSE"]
    source.mkdir()
    subprocess.run(["cp", "-a", *[ROOT / name for name in names], source], check=True)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    command += ["--no-build-isolation", "--wheel-dir", str(tmp_path), str(source)]
    subprocess.run(command, check=True)
    (wheel,) = tmp_path.glob("selc-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith(("selc/", "codegen/"))}
    files = {path for path in (ROOT / "selc").rglob("*") if path.is_file()}
    files |= {ROOT / "selc" / path.relative_to(ROOT) for path in (ROOT / "codegen").rglob("*")}
    wanted = {path.relative_to(ROOT).as_posix() for path in files if path.is_file()}
    assert packed == {name for name in wanted if not re.search(r"__pycache__|\.so$", name)}
