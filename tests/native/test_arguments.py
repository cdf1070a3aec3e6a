"""Arguments that are no plain numbers: sequences, dotted names, symbols."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path

import pytest

from selc.ir.domain import Domain
from selc.ir.op import Op
from selc.ir.value import Symbol
from tests.native.kit import sequences
from tests.unit.codegen.selectors import Maker, load, outcome, write

pytestmark = pytest.mark.native


def test_sequences_and_dotted_names(tmp_path: Path):
    module = load(write(sequences().spec(), tmp_path))
    assert module.NATIVE
    for function in (module.select, module._python_select):
        for lens in ([3, 9, 0], (3, 9, 0), range(3, 12, 6)):
            want = (max(lens), sum(lens), len(lens), any(lens), 2)
            assert tuple(function(lens, 2)) == want
        assert outcome(module, function, ([5], 2))
    assert tuple(module.select(lens=[1], **{"dep.x": 3})) == tuple(module.select([1], dep_x=3))
    for bad, text in (([], "has length 0"), ([1] * 9, "has length 9"), ([1.5], "float"),
                      ([1, True], r"element \[1\]=True"), ([1001], "which is outside"),
                      ("ab", "not a sequence"), (3, "not a sequence")):  # fmt: skip
        for function in (module.select, module._python_select):
            with pytest.raises(module.SelectionError, match=text):
                function(bad, 2)
    recorder = module.record()
    recorder.select([1, 2], 3)
    recorder.write(tmp_path / "p.jsonl")
    assert json.loads((tmp_path / "p.jsonl").read_text())["inputs"] == {"lens": [1, 2], "dep.x": 3}


def test_symbols_pass_as_themselves_as_objects_and_by_name(tmp_path: Path):
    half, single = Symbol("dtype", "torch.half", 2), Symbol("enum", "Mode.FAST", 0)
    maker = Maker({"dtype": Domain(values=(half, single, None))}, {"f.d": (half, single)})
    maker.point("d", lambda g, v: v["dtype"]).point("pin", lambda g, v: v["f.d"])
    maker.point("same", lambda g, v: g.add(Op.EQ, v["dtype"], v["f.d"]))
    module = load(write(maker.spec(), tmp_path))

    class Dtype:
        def __str__(self):
            return "torch.half"

    class Mode:
        name = "FAST"

    got = module.select(Dtype())
    assert (repr(got.d), got.same) == ("torch.half", True)
    assert module.select("torch.half") is got
    assert module.select(got.d) is got
    assert repr(module.select(Mode()).d) == "Mode.FAST"
    assert module.select(None).same is False
    module.repin({"f.d": "Mode.FAST"})
    assert module.select(Mode()).same is True
    with pytest.raises(module.SelectionError):
        module.select("half")
    assert copy.deepcopy(got.d) is got.d
    assert pickle.loads(pickle.dumps(got.d)) is got.d
