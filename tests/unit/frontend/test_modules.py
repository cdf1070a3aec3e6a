from __future__ import annotations

import sys
from pathlib import Path

import pytest

from selc.diag.diagnostic import Refused
from selc.frontend.modules import ModuleFinder


def write(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"where = {name!r}\n", encoding="utf-8")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    write(
        tmp_path,
        "engine/__init__.py",
        "engine/moe/__init__.py",
        "engine/moe/config.py",
        "engine/moe/utils.py",
        "engine/gap/deep/__init__.py",
        "engine/gap/deep/leaf.py",
        "spread/part.py",
        "single.py",
    )
    return tmp_path


def refused(finder: ModuleFinder, target: str) -> tuple[str, str]:
    with pytest.raises(Refused) as caught:
        finder.split_target(target)
    (found,) = caught.value.diagnostics
    return found.code, f"{found.message} / {found.help}"


def test_find(tree: Path) -> None:
    finder = ModuleFinder((tree,))
    module = finder.find("engine.moe.config")
    assert module is not None
    assert (module.module_name, module.is_package, module.package) == (
        "engine.moe.config",
        False,
        "engine.moe",
    )
    package = finder.find("engine.moe")
    assert package is not None
    assert (package.is_package, package.package) == (True, "engine.moe")
    assert finder.find("engine.moe.config") is module
    assert finder.find("engine.gap.deep.leaf") is not None
    for absent in ("engine.nope", "engine.moe.config.inner", "nope", "", "a..b", ".a", "1a", "a b"):
        assert finder.find(absent) is None


def test_namespace_packages(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    write(other, "spread/rest.py", "engine/extra.py", "single/__init__.py")
    finder = ModuleFinder((tree, other))
    spread = finder.find("spread")
    assert spread is not None
    assert (spread.is_package, spread.text) == (True, "")
    assert finder.find("spread.part") is not None
    assert finder.find("spread.rest") is not None
    assert finder.find("engine.extra") is None, "the regular package hides the other folder"
    single = finder.find("single")
    assert single is not None
    assert not single.is_package
    reversed_finder = ModuleFinder((other, tree))
    engine = reversed_finder.find("engine")
    assert engine is not None
    assert engine.path == str(tree / "engine" / "__init__.py"), "a regular package wins"


def test_nothing_is_imported(tree: Path) -> None:
    (tree / "engine" / "__init__.py").write_text("raise SystemExit\n", encoding="utf-8")
    before = set(sys.modules)
    finder = ModuleFinder((tree,))
    assert finder.find("engine.moe.config") is not None
    assert finder.find("email.mime.text") is not None
    assert set(sys.modules) <= before | {"selc.frontend.syntax"}


def test_installed_and_builtin(tree: Path) -> None:
    finder = ModuleFinder((tree,))
    assert finder.find("json.decoder") is not None
    assert finder.find("sys") is None


def test_the_package_folder_itself_as_root(tree: Path) -> None:
    finder = ModuleFinder((tree / "engine" / "moe",))
    module = finder.find("engine.moe.config")
    assert module is not None
    assert module.module_name == "engine.moe.config"


@pytest.mark.parametrize("rooted", [True, False])
def test_target_paths_get_their_dotted_name(tree: Path, rooted: bool) -> None:
    finder = ModuleFinder((tree,) if rooted else ())
    path = tree / "engine" / "moe" / "config.py"
    module, function = finder.split_target(f"{path}:pick")
    assert (module.module_name, function, module.path) == ("engine.moe.config", "pick", str(path))
    assert finder.find("engine.moe.config") is module
    assert finder.find("engine.moe.utils") is not None
    package, none = finder.split_target(str(tree / "engine" / "moe" / "__init__.py"))
    assert (package.module_name, package.is_package, none) == ("engine.moe", True, None)


def test_target_in_a_folder_without_init(tree: Path) -> None:
    path = str(tree / "engine" / "gap" / "deep" / "leaf.py")
    assert ModuleFinder((tree,)).split_target(path)[0].module_name == "engine.gap.deep.leaf"
    assert ModuleFinder(()).split_target(path)[0].module_name == "deep.leaf"
    source = tree / "src"
    write(source, "pkg/__init__.py", "pkg/mod.py")
    finder = ModuleFinder((tree,))
    assert finder.split_target(str(source / "pkg" / "mod.py"))[0].module_name == "pkg.mod"
    assert finder.find("pkg") is not None


def test_target_beside_other_files(tree: Path) -> None:
    write(tree, "my-dir/kernel.py", "my-dir/helper.py")
    finder = ModuleFinder((tree,))
    module, function = finder.split_target(f"{tree}/my-dir/kernel.py:A.b")
    assert (module.module_name, function) == ("kernel", "A.b")
    assert finder.find("helper") is not None


def test_target_relative_to_a_root_or_the_working_folder(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ModuleFinder((tree,)).split_target("engine/moe/config.py")[0].module_name == (
        "engine.moe.config"
    )
    monkeypatch.chdir(tree / "engine" / "moe")
    finder = ModuleFinder((Path("../.."),))
    module, _ = finder.split_target("config.py:f")
    assert module.path == "config.py"
    assert module.module_name == "engine.moe.config"
    assert finder.find("engine.moe.config") is module


def test_target_modules(tree: Path) -> None:
    finder = ModuleFinder((tree,))
    module, function = finder.split_target("engine.moe.config:Class.method")
    assert (module.module_name, function) == ("engine.moe.config", "Class.method")
    assert finder.split_target("single")[1] is None


def test_targets_that_are_not_there(tree: Path) -> None:
    finder = ModuleFinder((tree,))
    code, text = refused(finder, "engine.moe.confg:f")
    assert code == "SEL908"
    assert str(tree) in text
    assert "`config`" in text
    assert "--root" in refused(finder, "nowhere.at.all:f")[1]
    assert "--root" in refused(finder, "")[1]
    assert "`single.py`" in refused(finder, f"{tree}/singel.py:f")[1]
    assert "folder" in refused(finder, f"{tree}/engine:f")[1]
    assert refused(finder, "x" * 5000 + ".py")[0] == "SEL908"
    assert refused(finder, "a\0.py")[0] == "SEL908"
    assert refused(finder, "spread:f")[0] == "SEL908"
    for bad in ("single.py:", "single.py:1a", "single:a-b"):
        assert refused(finder, bad)[0] == "SEL907"


def test_resolve_import(tree: Path) -> None:
    finder = ModuleFinder((tree,))
    module = finder.find("engine.moe.config")
    package = finder.find("engine.moe")
    single = finder.find("single")
    assert module is not None
    assert package is not None
    assert single is not None
    assert finder.resolve_import(module, 0, "torch.nn") == "torch.nn"
    assert finder.resolve_import(module, 1, None) == "engine.moe"
    assert finder.resolve_import(module, 1, "utils") == "engine.moe.utils"
    assert finder.resolve_import(module, 2, "x.y") == "engine.x.y"
    assert finder.resolve_import(package, 1, "utils") == "engine.moe.utils"
    for source, level in ((module, 3), (package, 4), (single, 1)):
        escaped = finder.resolve_import(source, level, "utils")
        assert escaped.startswith(".")
        assert finder.find(escaped) is None


def test_every_file_read_is_recorded(tree: Path) -> None:
    finder = ModuleFinder((tree,))
    module, _ = finder.split_target("engine.moe.config")
    finder.find("engine.moe.config")
    finder.find("spread")
    read = {path: said for path, said in finder.sources.items() if said != "absent"}
    assert read == {module.path: module.digest}
    assert not any(Path(path).exists() for path in finder.sources if path not in read)
