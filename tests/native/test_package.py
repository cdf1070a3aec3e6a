"""Emitted packages as users meet them: alone, in other Pythons, without a compiler, in threads."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from selc.codegen import Factor
from selc.ir.domain import Domain
from tests.native.kit import attention
from tests.unit.codegen.selectors import Maker, load, write

pytestmark = pytest.mark.native


@pytest.fixture(scope="module", name="package")
def _package(tmp_path_factory) -> Path:
    return write(attention().spec(), tmp_path_factory.mktemp("attention"))


ALONE = """
import sys, json
sys.path.insert(0, sys.argv[1])
import importlib
m = importlib.import_module(sys.argv[2])
assert "selc" not in sys.modules and not any(n.startswith("selc") for n in sys.modules)
try:
    import selc
    raise SystemExit("selc is importable")
except ImportError:
    pass
out = [m.NATIVE, str(m.select(17, 4096, True)), str(m.select_unpinned(17, 4096, True))]
out.append(m.repin({"attention.num_splits": 4}))
out.append(str(m.select(num_tokens=17, kv_len=4096, causal=False)))
try:
    m.select(17, 48, True)
except m.SelectionError as error:
    out.append(str(error))
print(json.dumps(out))
"""


def alone(python: str, package: Path, **env: str) -> list:
    command = [python, "-S", "-E", "-I", "-c", ALONE, str(package.parent), package.name]
    variables = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | env
    done = subprocess.run(command, capture_output=True, text=True, cwd="/", env=variables)
    assert done.returncode == 0, done.stderr
    out: list = json.loads(done.stdout)
    return out


def pythons() -> list[Path]:
    found = sorted(Path.home().glob(".pyenv/versions/3.1[123]*/bin/python"))
    return [p for p in found if p.is_file()]


@pytest.mark.parametrize("minor", [11, 12, 13])
def test_the_package_runs_alone_and_the_same_module_in_every_python(minor: int, package: Path):
    found = [p for p in pythons() if p.parts[-3].startswith(f"3.{minor}.")]
    if minor == sys.version_info.minor:
        found.append(Path(sys.executable))
    if not found:
        pytest.skip(f"Python 3.{minor} is not on this machine")
    native = alone(str(found[0]), package)
    assert native[0] is True
    plain = alone(str(found[0]), package, SELC_NO_NATIVE="1")
    assert plain[0] is False
    assert native[1:] == plain[1:]
    assert native[1] == "Choice(num_splits=1, tile=Choice_tile(m=4096, pack=False))"
    assert "16 * num_splits" in native[5]
    assert "(a split needs a page)" in native[5]


def test_what_a_refusal_says(package: Path):
    module = load(package)
    module.repin({"attention.num_splits": 4})
    with pytest.raises(module.SelectionError) as caught:
        module.select(17, 32, True)
    error = caught.value
    assert error.guard == "kv_len >= 16 * num_splits"
    assert error.location == "tile.py:2:5"
    assert error.inputs == {"num_tokens": 17, "kv_len": 32, "causal": True}
    assert error.tuple["attention.num_splits"] == 4
    assert str(error).startswith(
        "tile.py:2:5: the require `kv_len >= 16 * num_splits` does not hold"
    )
    with pytest.raises(module.SelectionError, match="assume `num_tokens <= 4000`"):
        module.select(4001, 4096, True)


WRONG = [
    ((0, 4096, True), "num_tokens=0 is outside the declared range 1..4096"),
    ((4097, 4096, True), "outside the declared range"),
    ((1, 17, True), "in steps of 16"),
    ((1 << 70, 4096, True), "outside the declared range"),
    ((-(1 << 63), 4096, True), "outside the declared range"),
    ((1.0, 4096, True), "is a float where an int is declared"),
    ((float("nan"), 4096, True), "is a float where an int is declared"),
    (("1", 4096, True), "is a str where an int is declared"),
    ((None, 4096, True), "is a NoneType where an int is declared"),
    ((True, 4096, True), "is a bool where an int is declared"),
    ((1, 4096, 1), "causal=1 is not one of the declared values True, False"),
    ((1, 4096, "True"), "causal='True' is not one of"),
]


@pytest.mark.parametrize(("args", "text"), WRONG)
def test_wrong_values_are_refused_alike(args: tuple, text: str, package: Path):
    module = load(package)
    for function in (module.select, module._python_select, module.select_unpinned):
        with pytest.raises(module.SelectionError) as caught:
            function(*args)
        assert text in str(caught.value)


@pytest.mark.parametrize(
    ("args", "named"),
    [((), {}), ((1, 16), {}), ((1, 16, True, 4), {}), ((1, 16), {"kausal": True}),
     ((1, 16, True), {"num_tokens": 1}), ((), {"num_tokens": 1, "kv_len": 16})],
)  # fmt: skip
def test_missing_and_unknown_arguments_are_type_errors(args: tuple, named: dict, package: Path):
    module = load(package)
    for function in (module.select, module._python_select):
        with pytest.raises(TypeError, match=r"select\(\)"):
            function(*args, **named)


class Whole:
    def __init__(self, value):
        self.value = value

    def __index__(self):
        if self.value is None:
            raise RuntimeError("no")
        return self.value


class Count(int):
    pass


def test_integers_of_other_types_count_as_their_value(package: Path):
    module = load(package)
    plain = module.select(17, 4096, True)
    for value in (Count(17), Whole(17)):
        assert module.select(value, Count(4096), True) is plain
        assert type(module.select(17, Whole(4096), True).tile.m) is int
    with pytest.raises(module.SelectionError, match="Whole where an int"):
        module.select(Whole(None), 4096, True)


def test_equal_choices_are_one_object(package: Path):
    module = load(package)
    assert module.select(17, 4096, True) is module.select(num_tokens=18, kv_len=4096, causal=False)
    assert module.select(17, 4096, True) is module._python_select(17, 4096, True)
    assert module.select_unpinned(17, 4096, True) is module.select(17, 4096, True)


def test_signature_and_surface(package: Path):
    module = load(package)
    assert list(inspect.signature(module.select).parameters) == ["num_tokens", "kv_len", "causal"]
    assert module.PINS["attention.num_splits"].candidates == (1, 2, 4)
    assert module.PINS["attention.num_splits"].location["line"] == 9
    assert module.KNOBS["split_stride"].choices == (0, 512)
    assert module.points(module.select(17, 4096, True)) == {
        "num_splits": 1, "tile.m": 4096, "tile.pack": False,
    }  # fmt: skip
    assert all(hasattr(module, name) for name in module.__all__)


def test_repin(package: Path):
    module = load(package)
    before = module.pins()
    for bad in ({"attention.num_splits": 3}, {"attention.num_splits": True},
                {"attention.num_splits": 2, "attention.pack": True}, {"num_splits": 1},
                {"split_stride": 1}):  # fmt: skip
        with pytest.raises(module.SelectionError):
            module.repin(bad)
        assert module.pins() == before
    with pytest.raises(module.SelectionError) as caught:
        module.repin({"attention.num_splits": 2, "attention.pack": True})
    assert caught.value.guard is not None
    assert "16 * num_splits" in caught.value.guard
    assert "attention.num_splits may then be 1" in str(caught.value)
    after = module.repin({"attention.num_splits": 2, "split_stride": 512})
    assert after == module.pins() == {
        "attention.num_splits": 2, "attention.pack": False, "split_stride": 512,
    }  # fmt: skip
    assert module.select(17, 4096, True).tile.m == 2048
    assert module.repin({}) == after


def test_legal(package: Path):
    module = load(package)
    assert module.legal() == {
        "attention.num_splits": (1, 2, 4),
        "attention.pack": (False, True),
        "split_stride": (0, 512),
    }
    assert module.legal({"attention.pack": True})["attention.num_splits"] == (1,)
    assert module.legal(num_splits=2)["attention.pack"] == (False,)
    assert module.legal(attention_num_splits=4)["attention.pack"] == (False,)
    nothing = module.legal({"attention.num_splits": 4, "attention.pack": True})
    assert set(nothing.values()) == {()}


@pytest.mark.parametrize("name", ["t.yaml", "t.json"])
def test_commit_and_load(name: str, package: Path, tmp_path: Path):
    import yaml

    module = load(package)
    module.repin({"attention.num_splits": 2})
    path = tmp_path / name
    module.commit(path)
    data = yaml.safe_load(path.read_text())
    digest = json.loads((package / "manifest.json").read_text())["hash"]
    assert data == {
        "format": 1,
        "families": {
            "attention": {
                "selector": digest,
                "pins": {"attention.num_splits": 2, "attention.pack": False},
                "knobs": {"split_stride": 0},
            }
        },
    }
    module.repin({"attention.num_splits": 1})
    assert module.load(path)["attention.num_splits"] == 2
    module.commit(path, {"attention.num_splits": 4})
    assert module.pins()["attention.num_splits"] == 2
    assert (
        yaml.safe_load(path.read_text())["families"]["attention"]["pins"]["attention.num_splits"]
        == 4
    )
    path.write_text(path.read_text().replace(digest, "0" * 64))
    with pytest.raises(module.SelectionError, match="another selector"):
        module.load(path)
    path.write_text("just: text\n- no\n")
    with pytest.raises(module.SelectionError, match="not a tuple file"):
        module.load(path)


def test_a_tuple_file_keeps_other_families(package: Path, tmp_path: Path):
    module = load(package)
    other = write(Maker({"m": Domain(1, 4)}, {"g.x": ("a", None, 2.5e-7)}, family="g")
                  .point("x", lambda g, v: v["g.x"]).spec(), tmp_path)  # fmt: skip
    second = load(other)
    path = tmp_path / "tuple.yaml"
    module.commit(path)
    second.commit(path, {"g.x": 2.5e-7})
    module.load(path)
    assert second.load(path) == {"g.x": 2.5e-7}
    second.commit(path, {"g.x": None})
    assert second.load(path) == {"g.x": None}


def test_record(package: Path, tmp_path: Path):
    module = load(package)
    path = tmp_path / "profile.jsonl"
    with module.record(path) as recorder:
        for _ in range(3):
            recorder.select(17, 4096, True)
        recorder.select(num_tokens=17, kv_len=4096, causal=True, extra={"lens": (1, 2)})
        recorder.add({"num_tokens": 5, "kv_len": 16, "causal": False}, count=7)
        with pytest.raises(module.SelectionError):
            recorder.select(0, 4096, True)
        assert len(recorder) == 3
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    digest = json.loads((package / "manifest.json").read_text())["hash"]
    assert [line["count"] for line in lines] == [3, 1, 7]
    assert lines[1] == {
        "format": 1, "family": "attention", "selector": digest,
        "inputs": {"num_tokens": 17, "kv_len": 4096, "causal": True},
        "extra": {"lens": [1, 2]}, "count": 1,
    }  # fmt: skip
    bounded = module.record(limit=2)
    for k in (16, 32, 48, 48):
        bounded.select(1, k, True)
    assert (len(bounded), bounded.dropped) == (2, 2)
    assert bounded.write(tmp_path / "more.jsonl") == 2


def test_recording_from_several_processes(package: Path, tmp_path: Path):
    path = tmp_path / "profile.jsonl"
    code = (
        "import sys, importlib; sys.path.insert(0, sys.argv[1])\n"
        "m = importlib.import_module(sys.argv[2]); r = m.record(sys.argv[3], limit=5)\n"
        "for k in range(200): r.select(1 + k % 20, 4096, True, extra={'pad': 'x' * 500})\n"
    )
    command = [sys.executable, "-c", code, str(package.parent), package.name, str(path)]
    running = [subprocess.Popen(command) for _ in range(3)]
    assert [p.wait() for p in running] == [0, 0, 0]
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert sum(line["count"] for line in lines) == 600


def test_a_call_sees_one_tuple_while_another_thread_repins(package: Path):
    module = load(package)
    both = Maker({"m": Domain(1, 9)}, {"f.a": (1, 2), "f.b": (10, 20)})
    both.point("a", lambda g, v: v["f.a"]).point("b", lambda g, v: v["f.b"])
    both.factors = (Factor(("f.a", "f.b"), ((1, 10), (2, 20))),)
    pair = load(write(both.spec(), package.parent.parent / package.parent.name))
    seen: set[tuple[int, int]] = set()
    stop = threading.Event()

    def read():
        while not stop.is_set():
            for _ in range(200):
                seen.add(tuple(pair.select(1)))
                seen.add(tuple(pair._python_select(1)))

    threads = [threading.Thread(target=read) for _ in range(3)]
    for t in threads:
        t.start()
    for k in range(2000):
        pair.repin({"f.a": 1 + k % 2, "f.b": 10 + 10 * (k % 2)})
    stop.set()
    for t in threads:
        t.join()
    assert seen == {(1, 10), (2, 20)}
    assert module.NATIVE


def test_forked_workers_select(package: Path):
    module = load(package)
    module.repin({"attention.num_splits": 2})
    child = os.fork()
    if child == 0:
        os._exit(0 if module.select(17, 4096, True).num_splits == 2 else 1)
    assert os.waitpid(child, 0)[1] == 0
