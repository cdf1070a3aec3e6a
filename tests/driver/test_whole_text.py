"""The text of a program and of a residual reads back, for real selections."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from selc.diag.diagnostic import Sink
from selc.driver.pipeline import Clock, Decided, Plan, decide
from selc.ir.dump import dump_program, dump_residual
from selc.ir.read import ReadError
from selc.ir.read_whole import read_program, read_residual
from selc.ir.verify import verify_program, verify_residual

SOURCE = """\
def plan(m, r, n, mode):
    big = m > 128
    width = 64 if big else 32
    kind = "wide; \\u00e9" if mode == "a b" else None
    assert width * 64 >= m, 'because "so"'
    split = m // n
    return {"width": width, "kind": kind, "split": split, "scale": 0.5 if r > 3 else float(r)}
"""

FACTS = """\
selection:
  function: plan
  scope: launch
  returns: {width: bits, kind: neutral, split: neutral, scale: bits}
  require: ["result['width'] <= 64"]
  assume: ["m != 77"]
inputs:
  m: {kind: runtime, range: [1, 1024]}
  r: {kind: request, values: [1, 2, 4]}
  n: {kind: knob, values: [1, 2]}
  mode: {kind: runtime, values: ["a b", "c"]}
knobs: {n: 2}
offer: {width: [16]}
"""


@pytest.fixture
def decided(project: Path) -> Decided:
    (project / "plan.py").write_text(SOURCE)
    (project / "facts.yaml").write_text(FACTS)
    plan = Plan("plan.py", (Path("facts.yaml"),), ())
    return decide(plan, None, Sink(), Clock())


def test_a_residual(decided: Decided) -> None:
    text = dump_residual(decided.residual)
    back = read_residual(text)
    verify_residual(back)
    assert dump_residual(back) == text
    assert [p.name for p in back.pins] == [p.name for p in decided.residual.pins]
    assert back.parameters == decided.residual.parameters
    assert [g.guard.text for g in back.guards] == [g.guard.text for g in decided.residual.guards]
    assert [g.unseen for g in back.guards] == [g.unseen for g in decided.residual.guards]


def test_a_program(decided: Decided) -> None:
    text = dump_program(decided.program)
    back = read_program(text)
    verify_program(back)
    again = dump_program(back)
    assert re.sub(r"\bv\d+", "v", again) == re.sub(r"\bv\d+", "v", text)
    assert dump_program(read_program(again)) == again
    assert list(back.sites) == list(decided.program.sites)
    assert back.settings == {"n": 2}
    assert back.offers == {"plan.width": (16,)}
    assert back.family == decided.program.family


@pytest.mark.parametrize("old", ["points:\n", " = pinned", "{16, 32", " implies ", "pin = "])
def test_text_that_was_cut(decided: Decided, old: str) -> None:
    for text, read in (
        (dump_residual(decided.residual), read_residual),
        (dump_program(decided.program), read_program),
    ):
        for k in (m.start() for m in re.finditer(re.escape(old), text)):
            try:
                read(text[: k + len(old) // 2])
            except ReadError:
                continue
