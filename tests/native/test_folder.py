"""Building and writing packages: without a compiler, over old folders, through a cache."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from selc.codegen import emit
from selc.diag.diagnostic import Refused, Severity, Sink
from selc.ir.domain import Domain
from selc.ir.op import Op
from tests.native.kit import attention
from tests.unit.codegen.selectors import Maker, load, outcome, write

pytestmark = pytest.mark.native


@pytest.fixture(scope="module", name="package")
def _package(tmp_path_factory) -> Path:
    return write(attention().spec(), tmp_path_factory.mktemp("attention"))


# --- without native -------------------------------------------------------------------------------


def refused_build(tmp_path: Path, monkeypatch, **env: str) -> tuple[Sink, Path]:
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    sink = Sink()
    return sink, write(attention().spec(), tmp_path, sink=sink)


@pytest.mark.parametrize(
    ("env", "text"),
    [({"PATH": ""}, "no C compiler"), ({"CC": "no-such-compiler"}, "no-such-compiler"),
     ({"CC": "false"}, "failed with exit code 1"), ({"CC": "true"}, "made no module"),
     ({"CC": "sh -c 'for f; do case $f in *.so) echo x > $f;; esac; done' x"}, "this machine")],
)  # fmt: skip
def test_without_a_compiler_one_warning_and_the_same_selector(
    env, text, package, tmp_path, monkeypatch
):
    sink, target = refused_build(tmp_path, monkeypatch, **env)
    assert [(d.code, d.severity) for d in sink] == [("SEL940", Severity.WARNING)]
    assert text in sink.items[0].message
    manifest = json.loads((target / "manifest.json").read_text())
    assert manifest["native"]["available"] is False
    assert text in manifest["native"]["reason"]
    module, native = load(target), load(package)
    assert not module.NATIVE
    assert module._python.HASH == native._python.HASH
    for args in ((17, 4096, True), (4000, 16, False), (4001, 16, True)):
        assert outcome(module, module.select, args) == outcome(native, native.select, args)
    assert not (target / "_native.abi3.so").exists()
    assert (target / "selector.h").exists()


def test_what_c_cannot_say_is_said_once(tmp_path: Path):
    maker = Maker({"m": Domain(1, 1 << 40)}, {"f.k": (1, 2)})
    maker.point("big", lambda g, v: g.add(Op.MUL, v["m"], g.add(Op.MUL, v["m"], v["f.k"])))
    sink = Sink()
    target = write(maker.spec(), tmp_path, sink=sink)
    assert [d.code for d in sink] == ["SEL940"]
    assert "64 bits" in sink.items[0].message
    assert "64 bits" in json.loads((target / "manifest.json").read_text())["native"]["reason"]
    assert load(target).select(1 << 40) == (1 << 80,)


def test_a_module_of_another_build_is_not_used(tmp_path: Path):
    target = write(attention().spec(), tmp_path)
    text = (target / "_python.py").read_text()
    key = load(target)._python.NATIVE_KEY
    (target / "_python.py").write_text(text.replace(key, "0" * len(key)))
    module = load(target)
    assert not module.NATIVE
    assert "another build" in module.NATIVE_REASON
    (target / "_native.abi3.so").unlink()  # never written in place: it is mapped
    (target / "_native.abi3.so").write_bytes(b"not a module")
    assert not load(target).NATIVE
    assert load(target).select(17, 4096, True).num_splits == 1


def test_the_cache_is_asked_with_a_key(tmp_path: Path):
    store: dict[str, bytes | None] = {}
    asked = []

    def cache(key, make):
        asked.append(key)
        if key not in store:
            store[key] = make()
        return store[key]

    first = write(attention().spec(), tmp_path, cache=cache)
    second = write(attention().spec(), tmp_path, cache=cache)
    assert len(asked) == 2
    assert len(store) == 1
    assert load(first).NATIVE
    assert load(second).NATIVE


# --- the folder -----------------------------------------------------------------------------------


def emit_to(target: Path):
    return emit(attention().spec(), target, frozenset({"python"}), False, Sink())


def test_the_folder_is_replaced_only_if_it_is_ours(tmp_path: Path):
    target = tmp_path / "sel"
    artifacts = emit_to(target)
    assert artifacts.native is None
    assert artifacts.reason == "not asked for"
    (target / "stale.py").write_text("")
    emit_to(target)
    assert not (target / "stale.py").exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["sel"]
    for name, content in (("mine", "precious"), ("manifest.json", '{"name": "web app"}')):
        folder = tmp_path / f"other_{name.split('.')[0]}"
        folder.mkdir()
        (folder / name).write_text(content)
        with pytest.raises(Refused, match="did not write"):
            emit_to(folder)
        assert (folder / name).read_text() == content
    (tmp_path / "empty").mkdir()
    emit_to(tmp_path / "empty")
    (tmp_path / "file").write_text("")
    with pytest.raises(Refused, match="not a folder"):
        emit_to(tmp_path / "file")
    with pytest.raises(Refused, match="cannot be imported"):
        emit_to(tmp_path / "no-identifier")


def test_a_folder_that_cannot_be_written_is_a_diagnostic(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(Refused, match="cannot be written"):
        emit_to(tmp_path / "file" / "sel")


def test_a_failure_leaves_the_old_package(tmp_path: Path, monkeypatch):
    target = tmp_path / "sel"
    emit_to(target)
    before = (target / "manifest.json").read_bytes()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("selc.codegen.package._write_manifest", fail)
    with pytest.raises(Refused, match="No space left"):
        emit_to(target)
    assert (target / "manifest.json").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["sel"]


def test_emission_is_deterministic(tmp_path: Path):
    a, b = write(attention().spec(), tmp_path), write(attention().spec(), tmp_path)
    for name in (
        "_python.py",
        "_unpinned.py",
        "_relation.py",
        "__init__.py",
        "_native.c",
        "selector.h",
    ):
        text = (a / name).read_text()
        assert text == (b / name).read_text()
        assert "do not edit" in text
        assert "selc 0.1.0" in text
        assert str(tmp_path) not in text
