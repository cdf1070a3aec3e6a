"""Texts of the input in emitted files, the manifest, DOT."""

from __future__ import annotations

import json
from pathlib import Path

from selc.codegen import dot_text, seal, selector_hash
from selc.diag.diagnostic import Sink
from selc.ir.domain import Domain
from selc.ir.op import Op
from tests.unit.codegen.selectors import Maker, calls, expected, load, outcome, write

EVIL = 'x */ #include "/etc/passwd" \\ ??/ %n %s """ \n\0 é \ud800'


def evil() -> Maker:
    inputs = {EVIL: Domain(1, 9), "t": Domain(values=(EVIL, "b"))}
    maker = Maker(inputs, {f"f.{EVIL}": (1, 2)}, family=EVIL)
    maker.point(EVIL, lambda g, v: v[f"f.{EVIL}"])
    maker.point("text", lambda g, v: v["t"])
    maker.guard(EVIL, lambda g, v: g.add(Op.LT, v[EVIL], g.const(5)), why=EVIL)
    return maker


def test_nothing_of_the_input_escapes_its_quotes(tmp_path: Path):
    spec = evil().spec()
    package = write(spec, tmp_path)
    module = load(package)
    assert module.NATIVE
    for args in calls(spec):
        env = {EVIL: args[0], "t": args[1], f"f.{EVIL}": 1}
        for function in (module.select, module._python_select):
            assert outcome(module, function, args) == expected(spec, env)
    header = (package / "selector.h").read_text()
    assert header.isascii()
    assert "selc_x_include_etc_passwd" in header


def test_a_selector_without_inputs_or_pins(tmp_path: Path):
    maker = Maker({})
    maker.point("[0]", lambda g, v: g.const(1)).point("[1]", lambda g, v: g.const(None))
    module = load(write(maker.spec(), tmp_path))
    assert module.NATIVE
    assert module.select() == module._python_select() == module.select_unpinned() == (1, None)
    assert module.pins() == module.legal() == {}


def test_nothing_legal_selects_nothing(tmp_path: Path):
    from dataclasses import replace

    import pytest

    spec = Maker({"m": Domain(1, 4)}, {"f.x": (1, 2)}).point("x", lambda g, v: v["f.x"]).spec()
    sink = Sink()
    module = load(write(replace(spec, default=None), tmp_path, sink=sink))
    assert [d.code for d in sink] == ["SEL940"]
    with pytest.raises(module.SelectionError, match="no assignment of the pins is legal"):
        module.select(1)
    with pytest.raises(module.SelectionError, match="outside the declared"):
        module.select(5)


def test_the_manifest_says_what_was_emitted(tmp_path: Path):
    package = write(evil().spec(), tmp_path)
    manifest = json.loads((package / "manifest.json").read_text())
    assert manifest["hash"] == selector_hash(manifest)
    assert manifest["seal"] == seal(manifest)
    assert manifest["runtime"]["guards"] == [{"index": 0, "when": "every call"}]
    on_disk = {p.name for p in package.iterdir() if p.is_file()} - {"manifest.json"}
    assert set(manifest["files"]) == on_disk
    import hashlib

    for name, digest in manifest["files"].items():
        assert hashlib.sha256((package / name).read_bytes()).hexdigest() == digest
    changed = {**manifest, "tuple": {"f.x": 9}, "pins": [{"name": "f.x", "default": 3}]}
    same = {**manifest, "tuple": {"f.x": 8}, "pins": [{"name": "f.x", "default": 4}]}
    assert selector_hash(changed) == selector_hash(same) != manifest["hash"]


def test_dot_is_deterministic_and_quoted():
    spec = evil().spec()
    points = [(p.name, p.role, n) for p, n in spec.residual.points]
    guards = [(g.guard.text, g.pinned) for g in spec.residual.guards]
    text = dot_text(spec.residual.graph, points, guards, title=EVIL)
    assert text == dot_text(spec.residual.graph, points, guards, title=EVIL)
    assert text.startswith("digraph ")
    assert text.count("{") == text.count("}") == 1
    for line in text.splitlines():
        bare = line.replace("\\\\", "").replace('\\"', "")
        assert bare.count('"') % 2 == 0


def test_a_large_relation_is_not_written_into_the_header(tmp_path: Path, monkeypatch):
    from selc.codegen import Factor, header

    monkeypatch.setattr(header, "MAX_ROWS", 3)
    monkeypatch.setattr("selc.codegen.native.MAX_ROWS", 3)
    maker = Maker({"m": Domain(1, 4)}, {"f.x": tuple(range(9))}).point("x", lambda g, v: v["f.x"])
    maker.factors = (Factor(("f.x",), tuple((k,) for k in range(0, 9, 2))),)
    package = write(maker.spec(), tmp_path)
    module = load(package)
    assert module.NATIVE
    assert "only the default tuple" in (package / "selector.h").read_text()
    module.repin({"f.x": 4})
    assert module.select(1) == (4,)


def test_integers_that_explode_are_refused(tmp_path: Path):
    import pytest

    maker = Maker({"m": Domain(1, 1 << 20)})
    maker.point("x", lambda g, v: g.add(Op.LSHIFT, g.const(1), v["m"]))
    module = load(write(maker.spec(), tmp_path, sink=Sink()))
    assert module.select(70) == (1 << 70,)
    with pytest.raises(module.SelectionError, match="beyond 14284 bits"):
        module.select(1 << 20)
