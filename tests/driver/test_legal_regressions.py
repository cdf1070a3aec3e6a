"""Pins, candidates and legal values that were once wrong, checked against the source by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from selc.diag.diagnostic import Refused, Sink
from selc.driver import describe
from selc.driver.pipeline import Clock, Plan, decide

FACTS = """\
selection: {{function: f, returns: {{"*": bits}}}}
inputs:
  m: {{kind: runtime, type: int, range: [0, {high}]}}
  r: {{kind: request, type: int, range: [0, 1]}}
"""


def _answer(tmp_path: Path, source: str, high: int, *more: str) -> dict[str, Any]:
    (tmp_path / "selector.py").write_text(source)
    (tmp_path / "facts.yaml").write_text(FACTS.format(high=high))
    files = (tmp_path / "facts.yaml", *(tmp_path / name for name in more))
    plan = Plan(str(tmp_path / "selector.py"), files, ())
    return describe.answer(decide(plan, None, Sink(), Clock()))


@pytest.mark.parametrize(
    ("source", "legal"),
    [
        (
            "def f(m, r):\n    T = (1, 2, 3)\n    i = m // 30\n"
            "    return {'a': (T[i] if i < 3 else 9) + r}\n",
            [0, 1, 2, 3],
        ),
        (
            "def f(m, r):\n    v = m // 30\n"
            "    return {'a': ([1, 2].index(v) if v in [1, 2] else -1) + r}\n",
            [0, 1, 2, 3],
        ),
    ],
)
def test_an_operation_behind_its_own_condition_refuses_no_pin(
    tmp_path: Path, source: str, legal: list[int]
) -> None:
    answer = _answer(tmp_path, source, 119)
    (pin,) = answer["pins"]
    assert pin["candidates"] == pin["legal"]
    if pin["name"] in ("f.i", "f.v"):
        assert pin["legal"] == legal


def test_the_site_of_get_is_the_value_with_its_default(tmp_path: Path) -> None:
    source = "def f(m, r):\n    d = {0: 10, 1: 20}\n    return {'a': d.get(m, 30) + r}\n"
    answer = _answer(tmp_path, source, 63)
    (pin,) = answer["pins"]
    assert pin["candidates"] in ([10, 20, 30], list(range(64)))
    assert pin["legal"] == pin["candidates"]
    if pin["candidates"] == [10, 20, 30]:
        assert pin["name"] == "f.L3C18-30"


def test_a_variable_that_is_unbound_on_some_path_is_no_pin(tmp_path: Path) -> None:
    source = (
        "def f(m, r):\n    if m > 20:\n        x = 3\n    if m > 40:\n        x = 4\n"
        "    return {'a': x if m > 20 else 0}\n"
    )
    answer = _answer(tmp_path, source, 60)
    assert "f.x" not in [p["name"] for p in answer["pins"]]


@pytest.mark.parametrize(
    "source",
    [
        "class C:\n    def __init__(self):\n        self.x = 1\n\n\nc = C()\nd = c\nd.x = 5\n\n\n"
        "def f(m, r):\n    return {'a': c.x + m}\n",
        "LIM = 1\nglobals()['LIM'] = 5\n\n\ndef f(m, r):\n    return {'a': LIM + m}\n",
    ],
)
def test_module_state_changed_in_a_roundabout_way_is_refused(tmp_path: Path, source: str) -> None:
    with pytest.raises(Refused):
        _answer(tmp_path, source, 40)


def test_values_without_an_order_are_no_traceback(tmp_path: Path) -> None:
    source = "def f(m, r):\n    return {'a': sorted((None, 1))[0]}\n"
    with pytest.raises(Refused):
        _answer(tmp_path, source, 40)


def test_a_site_that_is_never_evaluated_is_no_pin(tmp_path: Path) -> None:
    source = (
        "def f(m, r):\n    k = 9\n    return {'a': 2 if m < k >= 7 else 1, 'b': m > 3 > 2 > 5}\n"
    )
    answer = _answer(tmp_path, source, 40)
    assert all(p["candidates"] for p in answer["pins"])


def test_a_variable_that_another_return_names_is_not_overwritten(tmp_path: Path) -> None:
    source = (
        "def f(m, r):\n    v = m // 30\n    if m > 200:\n        return {'a': v}\n"
        "    assert v + 1 > 0\n    return {'a': 'wide' if m > 60 else 'narrow'}\n"
    )
    answer = _answer(tmp_path, source, 119)
    assert answer["legal"]["evidence"] == "proved"
    (pin,) = answer["pins"]
    assert sorted(pin["legal"]) == ["narrow", "wide"]


def test_a_variable_that_some_return_names_is_overwritten_where_it_is_chosen(
    tmp_path: Path,
) -> None:
    source = (
        "def f(m, r):\n    v = m // 30\n    w = m // 60\n    if r == 0:\n        return {'a': v}\n"
        "    assert v < 3\n    return {'a': w}\n"
    )
    answer = _answer(tmp_path, source, 89)
    assert answer["legal"]["legal"] == answer["legal"]["assignments"] > 0


def test_a_class_cannot_be_offered_and_the_message_says_why(tmp_path: Path) -> None:
    source = (
        "class Small: pass\nclass Large: pass\n"
        "def f(m, r):\n    kernel = Small if m < 64 else Large\n    return {'kernel': kernel}\n"
    )
    (tmp_path / "offer.yaml").write_text("offer: {kernel: [Small]}\n")
    with pytest.raises(Refused) as refused:
        _answer(tmp_path, source, 90, "offer.yaml")
    (found,) = refused.value.diagnostics
    assert (found.code, "a member of an Enum" in found.message) == ("SEL911", True)
    assert "by the condition that picks it" in (found.help or "")
