"""Values that cannot be known are refused where they are read: after opaque calls, as text."""

from __future__ import annotations

import pytest

from tests.robust.conftest import FACTS, Try

OBJECT = """\
from nothere import launch
class C:
    def __init__(self, a):
        self.a = a
        self.b = [1, 2]
    def half(self):
        return self.a // 2
def f(m):
    c = C(4)
    before = c.a
    {call}
    return {{'w': 16 if m <= 64 else {read}}}
"""


@pytest.mark.parametrize("call", ["launch(c)", "launch(x=c)", "launch([c])", "launch({1: (c,)})"])
@pytest.mark.parametrize("read", ["c.a", "c.a + 1", "c.b[0]", "c.half()", "1 if c.a > 3 else 2"])
def test_an_object_after_a_call_that_may_change_it(attempt: Try, call: str, read: str) -> None:
    made = attempt(OBJECT.format(call=call, read=read))
    assert made.code == 2
    assert made.first["code"] in ("SEL905", "SEL906", "SEL912")


@pytest.mark.parametrize(
    ("call", "read"),
    [
        ("launch(c)", "before"),
        ("launch(c.a)", "c.a"),
        ("launch(c); c.a = 4", "c.a"),
        ("launch(3)", "c.half() * 2"),
    ],
)
def test_what_a_call_cannot_change(attempt: Try, call: str, read: str) -> None:
    made = attempt(OBJECT.format(call=call, read=read))
    assert made.code == 0, made.told
    assert [p["candidates"] for p in made.answer["pins"]] == [[4, 16]]


def test_a_call_that_the_facts_state_changes_nothing(attempt: Try) -> None:
    source = OBJECT.format(call="launch(c)", read="c.a")
    assert attempt(source, FACTS + "functions: {launch: null}\n").code == 0


def test_an_object_that_the_facts_declare_stays(attempt: Try) -> None:
    source = "from nothere import launch\ndef f(m, c):\n    launch(c)\n"
    source += "    return {'w': c.a + m % 2}\n"
    assert attempt(source, FACTS + "facts: {c: {a: 5}}\n").code == 0


@pytest.mark.parametrize(
    "text", ["str(x)", "f'{x}'", "f'{x!s:>9}'", "'%s' % x", "'{}'.format(x)", "str((x, 1))"]
)
@pytest.mark.parametrize("x", ["10 ** 5000", "10 ** (m * 1000)", "-10 ** 4300"])
def test_integers_that_python_does_not_write(attempt: Try, text: str, x: str) -> None:
    source = f"def f(m):\n    x = {x} if m > 3 else 1\n    return {{'w': len({text})}}\n"
    made = attempt(source, FACTS.replace("4096", "8"))
    assert (made.code, made.answer.get("tuple")) in ((2, None), (1, None))
    assert "SEL901" in made.told or "integers too wide" in made.told


def test_the_longest_integer_that_python_writes(attempt: Try) -> None:
    source = "def f(m):\n    x = 1 << 14283 if m > 3 else 1\n    return {'w': len(str(x))}\n"
    made = attempt(source, FACTS.replace("4096", "8"))
    assert made.code == 0
    assert 1 << 14283 in made.answer["pins"][0]["candidates"]


@pytest.mark.parametrize("read", ["x", "x % 7", "x > 3"])
def test_integers_that_nothing_can_show(attempt: Try, read: str) -> None:
    source = f"def f(m):\n    x = 10 ** 5000 if m > 3 else 1\n    return {{'w': {read}}}\n"
    made = attempt(source, FACTS.replace("4096", "8"))
    assert (made.code, made.first["code"]) == (2, "SEL901")
    assert "4,300 digits" in made.first["message"]
