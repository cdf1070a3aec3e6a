"""Small programs in which a pin changes more than the value that it overwrites.

Every site is overwritten by every value that it takes: G0 and CPython agree on every input. What
is called legal is then judged by the brute-force judge, or by the judge of random programs.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from selc.check.examine import examine
from selc.diag.diagnostic import Refused
from selc.ir.interp import run_program
from tests import adapters
from tests.property import observe
from tests.property.agreement import Agreement, compare, frozen_graph, graph_points, inputs
from tests.property.judged import Judge
from tests.property.programs import Input, Made, declaration
from tests.prove.judged import judge_case

M = Input("m", "runtime", "int", tuple(range(7)), (0, 6, 1))
N = Input("n", "runtime", "int", tuple(range(2, 6)), (2, 5, 1))
SHAPE = Input("shape", "runtime", "tuple", ((1, 2), (1, 2, 3), (4,)))

LENGTHS = """
def choose(m):
    if m > 3:
        t = (1, 2)
        return {"a": len(t), "b": t[0]}
    else:
        t = (m, m, 3)
    return {"a": len(t), "b": t[-1]}
"""
NOTHING = """
def choose(m):
    if m > 3:
        t = None
        return {"a": t is None, "b": 1}
    else:
        t = (m % 2, 3)
    return {"a": t is None, "b": t[-1] + t[0]}
"""
NUMBER = """
def choose(m):
    if m > 3:
        t = m
        return {"a": t, "b": 1}
    else:
        t = (m % 2, 3)
    return {"a": t[0], "b": t[-1] + t[0]}
"""
INPUT = """
def choose(m, shape):
    if m > 3:
        t = shape
        return {"a": len(t), "b": t[0]}
    else:
        t = (m, 3)
    return {"a": len(t), "b": t[-1]}
"""
HELPER = """
def split(a):
    if a > 3:
        out = (a, 2)
        return out
    out = (1, a % 2)
    return out

def choose(m, n):
    a, b = split(m)
    c = split(n)
    return {"a": a, "b": b, "c": c[0], "d": c + (a,), "e": (a, b) == c}
"""
REMEMBERED = """
cache = {}
def double(x, by):
    key = (x, by)
    if key not in cache:
        cache[key] = x * 2 + by
    return cache[key]

def choose(m):
    a = double(m, 1)
    b = double(m, 1)
    return {"a": a, "b": b}
"""
EQUAL_KEYS = """
cache = {}
def double(x):
    if x not in cache:
        v = x * 2
        if v > 5:
            v = v - 1
        cache[x] = v
    return cache[x]

def choose(m, n):
    a = double(m)
    b = double(n)
    return {"a": a, "b": b}
"""

PROGRAMS = {
    "tuples of two lengths": (LENGTHS, (M,)),
    "a tuple or None": (NOTHING, (M,)),
    "a tuple or a number": (NUMBER, (M,)),
    "an input of several lengths": (INPUT, (M, SHAPE)),
    "a helper called twice": (HELPER, (M, N)),
    "a key that two calls remember": (REMEMBERED, (M,)),
    "keys that may be equal": (EQUAL_KEYS, (M, N)),
}


def _made(text: str, given: tuple[Input, ...], **more: Any) -> Made:
    facts = {
        "selection": {"function": "choose", "scope": "launch"},
        "inputs": {i.name: declaration(i) for i in given},
        **more,
    }
    return Made(text, facts, given, {})


def _lowered(made: Made, folder: Path) -> Any:
    (folder / "case.py").write_text(made.text, encoding="utf-8")
    (folder / "facts.yaml").write_text(made.facts_text, encoding="utf-8")
    return adapters.lower(folder / "case.py", [folder / "facts.yaml"])


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call finds nothing in `cache` that an earlier one left there."""
    kept = observe.Observer.run

    def run(self: observe.Observer, *args: Any) -> Any:
        self.names.get("cache", {}).clear()
        return kept(self, *args)

    monkeypatch.setattr(observe.Observer, "run", run)


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_site_overwritten(name: str, tmp_path: Path) -> None:
    made = _made(*PROGRAMS[name])
    program = _lowered(made, tmp_path)
    agreement = Agreement(made, program, random.Random(0))
    agreement.interpreters()
    for site in agreement.checkable():
        distinct = {repr(v): v for v in agreement.values[site]}
        for value in distinct.values():
            given = {site: frozen_graph(value)}
            for row in agreement.rows:
                want = agreement.by_cpython(row, given)
                got = graph_points(run_program(program, inputs(program, row), given))
                compare(f"G0 with {given}", want, got, row)


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_legal(name: str, tmp_path: Path) -> None:
    judge = Judge(_made(*PROGRAMS[name]), random.Random(0), tmp_path)
    assert judge.compile(), judge.reason
    judge.judge()
    assert judge.counts["legal"] > 0


OFFERED = """
def choose(m):
    t = (m % 3, 3)
    return {"a": len(t), "b": t[-1] + t[0]}
"""


def test_an_offered_tuple(tmp_path: Path) -> None:
    judge = Judge(_made(OFFERED, (M,), offer={"t": [[5, 6]]}), random.Random(0), tmp_path)
    assert judge.compile(), judge.reason
    judge.judge()
    assert [[5, 6]] in judge.answer["legal"]["relation"]


@pytest.mark.parametrize("value", [[1, 2, 3], 5, None])
def test_an_offer_of_another_shape_is_refused(value: object, tmp_path: Path) -> None:
    with pytest.raises(Refused) as refused:
        _lowered(_made(OFFERED, (M,), offer={"t": [value]}), tmp_path)
    assert refused.value.diagnostics[0].code == "SEL911"


IDENTITY = [
    "    t = (m % 3, 3)\n    return {'a': t is t}",
    "    t = u = (m % 3, 3)\n    return {'a': t is not u}",
    "    return {'a': tuple(shape) is shape}",
    "    def f():\n        return m\n    g = [f]\n    def f():\n        return 1\n"
    "    return {'a': make(1) == make(2), 'b': make(1)()}",
    "    return {'a': make(1) in (make(2),), 'b': m}",
    "    return {'a': make(1) is make(2), 'b': m}",
]


@pytest.mark.parametrize("body", IDENTITY)
def test_which_objects_are_the_same_is_not_guessed(body: str, tmp_path: Path) -> None:
    inner = "def make(k):\n    def f():\n        return k\n    return f\n\n"
    with pytest.raises(Refused) as refused:
        _lowered(_made(f"{inner}def choose(m, shape):\n{body}\n", (M, SHAPE)), tmp_path)
    assert refused.value.diagnostics[0].code == "SEL901"


def test_a_function_is_itself(tmp_path: Path) -> None:
    text = (
        "def one(k):\n    return k\n\ndef two(k):\n    return 2\n\n"
        "def choose(m):\n    f = one if m > 3 else two\n"
        "    return {'a': f is one, 'b': f == two, 'c': f in (one, two), 'd': f(m)}\n"
    )
    made = _made(text, (M,))
    Agreement(made, _lowered(made, tmp_path), random.Random(0)).interpreters()


# -- reading (b) where only one of several `return`s names a variable ------------------------------

HIDDEN = """
def choose(m):
    k = m // 2
    t = (k, 1)
    assert t[0] != 2
    if k > 2:
        return {"t": (0, 0)}
    return {"t": t}
"""
STRICT = HIDDEN.replace("t[0] != 2", "t[0] + t[1] > 0")
LONGER = """
def choose(m):
    k = m // 2
    t = (k, 1)
    assert t[0] != 2
    if k > 2:
        u = (k, 1, 2)
        return {"t": u}
    return {"t": t}
"""
ELEMENTS = """
def choose(m, n):
    k = m // 2
    assert k != 2
    if k > 2:
        return (0, n)
    return (k, n)
"""
PARTS = """
ROWS = (1, 2, 3)
def choose(m, n):
    k = m // 2
    if n > 1:
        t = (k, n)
    else:
        t = (k, n + 1)
    z = ROWS[t[0] - k + 1]
    return {"t": t, "z": z + n}
"""
BARE = PARTS.replace('{"t": t, "z": z + n}', "t")
ONE_RETURN = """
def choose(m, n):
    k = m // 2
    if n > 9:
        t = (k, n)
    else:
        t = (k, n + 1)
    assert t[0] != 2
    if k > 2:
        return (0, n)
    return t
"""
ALIAS = """
def choose(m, n):
    k = m // 2
    a = k
    b = a
    assert a != 2 or b >= 3
    if n > 0:
        return {"w": b}
    return {"w": a}
"""
READINGS: dict[str, tuple[str, dict[str, str], int]] = {
    "hidden by another return": (HIDDEN, {"t": "bits"}, 2),
    "refused for another return": (STRICT, {"t": "bits"}, 5),
    "returns of two lengths": (LONGER, {"t": "bits"}, 2),
    "elements": (ELEMENTS, {"[0]": "bits", "[1]": "neutral"}, 2),
    "elements of a variable": (PARTS, {"t[0]": "bits", "t[1]": "neutral", "z": "aux"}, 2),
    "elements of a variable alone": (BARE, {"[0]": "bits", "[1]": "neutral"}, 2),
    "another name for the same": (ALIAS, {"w": "bits"}, 2),
    "elements of one of two returns": (ONE_RETURN, {"[0]": "bits", "[1]": "neutral"}, 2),
}


@pytest.mark.parametrize("name", READINGS)
def test_reading_b_of_tuples(name: str, tmp_path: Path) -> None:
    text, roles, legal = READINGS[name]
    given: dict[str, Any] = {"m": {"kind": "unpinnable", "type": "int", "range": [0, 8]}}
    if "choose(m, n)" in text:
        given["n"] = {"kind": "runtime", "type": "int", "range": [0, 3]}
    facts = {
        "selection": {"function": "choose", "scope": "launch", "returns": roles},
        "inputs": given,
    }
    (tmp_path / "selector.py").write_text(text, encoding="utf-8")
    (tmp_path / "facts.yaml").write_text(json.dumps(facts), encoding="utf-8")
    answer, tally = judge_case(tmp_path, tmp_path / "out")
    assert tally.differences == []
    assert tally.legal == answer["legal"]["legal"] == legal
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text(encoding="utf-8"))
    findings = examine(manifest, tmp_path / "out")
    assert not [f for f in findings if f.result == "failed"]
    assert any(f.name == "guards" for f in findings)


def test_an_index_into_what_is_no_sequence(tmp_path: Path) -> None:
    text = (
        "def choose(m):\n    a = 0\n    w = None if m > 1 else (m, m)\n    if w:\n"
        "        a = w[w[m % 2]]\n    return {'a': a + m}\n"
    )
    made = _made(text, (M,))
    agreement = Agreement(made, _lowered(made, tmp_path), random.Random(0))
    agreement.interpreters()
    agreement.selectors(tmp_path, native=False)
