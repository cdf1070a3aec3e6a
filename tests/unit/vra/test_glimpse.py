"""Dependence that a few lines of the domain show, against a look at the whole domain."""

from __future__ import annotations

from pathlib import Path

import pytest

from selc.vra import dependence as module
from tests.adapters import lower

SOURCE = """
def f(m, n, r):
    assert m > 0
    big = m > 100
    out = {
        "both": m // 64 + n // 32,
        "one": 2 if big else 1,
        "none": (m * n) % 1,
        "rare": 1 if m == 777 and n == 55 else 0,
        "outside": 1 if m > 900 else 0,
        "request": r + (1 if r > 3 else 0),
        "mixed": r if big else 0,
    }
    return out
"""
FACTS = """
selection:
  function: f
  scope: {scope}
  returns: {{"*": bits}}
  assume: ["m <= 900"]
inputs:
  m: {{kind: runtime, range: [0, 1000]}}
  n: {{kind: unpinnable, range: [1, 64]}}
  r: {{kind: request, range: [1, 4]}}
"""


@pytest.mark.parametrize("scope", ["launch", "request"])
def test_same_as_the_whole_domain(
    scope: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, facts = tmp_path / "f.py", tmp_path / "f.yaml"
    source.write_text(SOURCE)
    facts.write_text(FACTS.format(scope=scope))
    program = lower(source, [facts])
    looked: list[int] = []
    whole = module._Work.whole

    def counted(self: module._Work, mask: int, nodes: list[object]) -> object:
        looked.append(len(nodes))
        return whole(self, mask, nodes)  # type: ignore[arg-type]  # the nodes as they came

    monkeypatch.setattr(module._Work, "whole", counted)
    quick = module.dependence(program)
    seen = sum(looked)
    looked.clear()
    monkeypatch.setattr(module, "MAX_GLIMPSES", 0)
    slow = module.dependence(program)
    assert quick == slow
    assert seen < sum(looked)  # the clear ones needed no look
    assert set(quick["both"].depends_on) == {"m", "n"}
    assert set(quick["rare"].depends_on) == {"m", "n"}
    assert quick["outside"].depends_on == ("m",)
    assert not quick["outside"].batch_dependent  # only beyond what is promised
    assert not quick["none"].depends_on
