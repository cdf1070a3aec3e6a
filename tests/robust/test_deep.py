"""Deep and long programs: what CPython compiles is compiled or refused, never a crash."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.adapters import load
from tests.robust.conftest import FACTS, Try

N = 500


def value(expression: str) -> str:
    return f"def g(x):\n    return x\n\ndef f(m):\n    return {{'w': 1 if {expression} else 2}}\n"


def nested(head: str, depth: int) -> str:
    lines = [f"{'    ' + ' ' * i}{head}\n" for i in range(depth)]
    return f"def f(m):\n    w = 2\n{''.join(lines)}    {' ' * depth}w = 1\n    return {{'w': w}}\n"


REFUSED_BY_PYTHON = {
    "parentheses": value("(" * N + "m" + ")" * N + " > 3"),
    "calls": value("g(" * N + "m" + ")" * N + " > 3"),
    "lists": value("[" * N + "m" + "]" * N),
    "dicts": value("{1: " * N + "m" + "}" * N),
    "ifs": nested("if m > 3:", N),
    "loops": nested("for i in (1,):", N),
}


@pytest.mark.parametrize("text", REFUSED_BY_PYTHON.values(), ids=REFUSED_BY_PYTHON)
def test_deeper_than_python_goes(attempt: Try, text: str) -> None:
    with pytest.raises(SyntaxError):
        compile(text, "k.py", "exec")
    made = attempt(text)
    assert (made.code, made.first["code"]) == (2, "SEL900")


DEEP = {
    "parentheses": value("(" * 90 + "m" + ")" * 90 + " > 3"),
    "calls": value("g(" * 40 + "m" + ")" * 40 + " > 3"),
    "lists": value("m > 3 or " + "[" * 90 + "]" * 90 + " == 7"),
    "ifs": nested("if m > 3:", 40),
    "negations": value("not " * N + "m > 3"),
    "signs": value("-" * N + "m > 3"),
    "lambdas": value("m > 3 or (" + "lambda: " * N + "1) is None"),
    "a sum": value(" + ".join(["m"] * 100) + " > 300"),
    "a comparison": value("3 < " + " <= ".join(["m"] * N)),
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
def test_as_deep_as_python_goes(attempt: Try, tmp_path: Path, text: str) -> None:
    made = attempt(text)
    assert made.code == 0
    scope: dict[str, object] = {}
    exec(text, scope)
    selector = load(tmp_path / "out/__init__.py", "selector_deep")
    for m in (1, 2, 3, 4, 5, 4096):
        assert selector.select_unpinned(m=m).w == scope["f"](m)["w"]  # type: ignore[operator]


LONG = {
    "a sum": value(" + ".join(["m"] * 5000) + " > 3"),
    "a choice": "def f(m):\n    return "
    + "".join(f"{i} if m == {i} else " for i in range(N))
    + "0\n",
    "conditions": value(" and ".join(f"m > {i}" for i in range(N))),
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_longer_than_is_read(attempt: Try, text: str) -> None:
    made = attempt(text)
    assert (made.code, made.first["code"]) == (2, "SEL900")
    assert "split" in made.told.lower()


@pytest.mark.slow
def test_a_thousand_arms(attempt: Try, tmp_path: Path) -> None:
    arms = "".join(f"    elif m <= {4 * i}:\n        w = {i}\n" for i in range(1, 1000))
    text = (
        f"def f(m):\n    if m == 0:\n        w = 0\n{arms}    else:\n        w = 7\n    return w\n"
    )
    assert attempt(text).code == 0
    selector = load(tmp_path / "out/__init__.py", "selector_of_arms")
    for m in (1, 4, 5, 1999, 3996, 3997, 4096):
        assert selector.select_unpinned(m=m).result == (-(-m // 4) if m <= 3996 else 7)


def rows() -> dict[str, dict[str, int]]:
    return {str(i): {"BM": 16 << i % 4, "stages": i % 5} for i in range(2000)}


def test_a_table_of_two_thousand_rows(attempt: Try, tmp_path: Path) -> None:
    text = (
        "def f(m, configs):\n"
        "    table = {int(k): row for k, row in configs.items()}\n"
        "    row = table[m // 2]\n"
        "    bm = row['BM']\n"
        "    stages = row['stages']\n"
        "    return {'bm': bm, 'stages': stages}\n"
    )
    facts = FACTS.replace("4096", "3999") + "tables: {configs: t.json}\n"
    made = attempt(text, facts, files={"t.json": json.dumps(rows())})
    assert made.code == 0, made.told
    assert {p["name"]: len(p["candidates"]) for p in made.answer["pins"]} == {
        "f.bm": 4, "f.stages": 5,
    }  # fmt: skip
    scope: dict[str, object] = {}
    exec(text, scope)
    selector = load(tmp_path / "out/__init__.py", "selector_of_rows")
    for m in range(1, 4000):
        assert selector.select_unpinned(m=m)._asdict() == scope["f"](m, rows())  # type: ignore[operator]
