"""Lists and dicts as Python has them: changed in loops, in the order of their keys, as views.

And attributes that a class has a say in.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.unit.frontend.lifting import agree, lift, refusal, write

FACTS = """
selection: {function: "pkg.mod:choose", scope: launch, returns: {result: bits}}
inputs: {m: {kind: runtime, range: [0, 9]}}
"""
SOURCE = """
from dataclasses import dataclass

@dataclass(frozen=True)
class Tile:
    w: int

@dataclass(frozen=True)
class Wide(Tile):
    s: int = 1

class Shown:
    def __init__(self, a):
        self.a = a

    @property
    def w(self):
        return self.a

class Doubled(Shown):
    @Shown.w.setter
    def w(self, value):
        self.a = value * 2

class Twice:
    def __setattr__(self, name, value):
        object.__setattr__(self, name, value * 2)

class Plain:
    w = 3
    def grow(self):
        return self.w

def first(**given):
    return [*given][0]

def total(a, b):
    return a + b

def summed(view, d, n):
    if n:
        d["a"] = n
    return sum(view) + len(view)

def shorten(xs):
    xs.pop()
    return 1

def choose(m):
"""


def _source(body: str) -> str:
    return SOURCE + textwrap.indent(textwrap.dedent(body), "    ")


BODIES = {
    "elements that were passed": """
        xs, d = [1, 2, m], {"a": m, "b": 3}
        for i, x in enumerate(xs):
            xs[i] = x * 2
        for k in d:
            d[k] = d[k] + 1
        for k, v in d.items():
            d[k] = v * 3
        return xs[2], d["a"], d["b"]
    """,
    "a copy": """
        xs, d, n = [1, m], {"a": m}, 0
        for x in list(xs):
            xs.append(x)
        for k in list(d):
            d[k + "x"] = 5
        for x in xs[:]:
            n += x
            xs.append(n)
        return xs[-1], len(xs), len(d)
    """,
    "and the loop is left": """
        d = {"a": 1, "b": 2}
        for k in d:
            if k == "b":
                d["c"] = m
                break
        return d["c"]
    """,
    "computed elements, and the loop changes something else": """
        n, out, k = 0, [], 2
        for m in (m * k + 1 for m in (1, m)):
            n += m
            out.append(n)
        for x in map(lambda n: n * k, (1, n)):
            out.append(x)
        for i, x in enumerate(x + k for x in (1, n)):
            n += x * i
        return n, out[0], out[-1]
    """,
    "a helper with the loop's names": """
        def twice(x):
            n = x * 2
            return n
        n = 0
        for x in (twice(x) for x in (1, m)):
            n += x
        return n
    """,
    "a view that a helper gets": """
        d = {"a": 1, "b": m % 2}
        n = summed(d.values(), d, 0)
        d["a"] = m % 3
        return n, summed(d.values(), d, 0)
    """,
    "another list": """
        xs, ys = [1, m], [1]
        for x in xs:
            ys.append(x)
        return len(ys), ys[-1]
    """,
    "keys in one order": """
        d = {}
        if m > 4:
            d["a"] = 1
            d["b"] = 2
        else:
            d["a"] = 3
            d["b"] = 4
        d["a"] = m
        return [*d][0], list(d.values())[0], tuple(d.items())[1][1]
    """,
    "a key at the end": """
        d = {"a": 1}
        if m > 4:
            d["b"] = 2
        d["b"] = m
        return list(d)[1], [*d.values()][1]
    """,
    "a key that was taken out": """
        d = {"a": 1, "b": 2}
        d["a"] = d.pop("a") + m
        return list(d)[0], list(d.values())[1]
    """,
    "an order that nobody asks for": """
        d = {"a": 1, "b": 2}
        if m > 4:
            del d["a"]
        d["a"] = m
        return d["a"], len(d), {**d, "c": 3}["a"], dict(d)["b"], "a" in d, total(**d)
    """,
    "attributes": """
        p = Plain()
        p.w = m
        q = Shown(1)
        q.a = m
        return p.grow(), q.w, Plain.w
    """,
}


@pytest.mark.parametrize("name", BODIES)
def test_agrees(name: str, tmp_path: Path) -> None:
    write(tmp_path, {"mod.py": _source(BODIES[name])})
    program = lift(tmp_path, "pkg.mod:choose", FACTS)
    assert agree(tmp_path, program, "pkg.mod:choose", {"m": list(range(10))})


COMPUTED = "`{}`: the elements are computed one by one, and the loop changes what they are made of"
EFFECT = "computing the elements of `{}` changes an object"
LOOP = "`{}` is changed while a loop goes through it"
ORDER = "in which order this dict has its keys depends on an input"
OPERATOR = "an operator on an iterator or on a view of a dict is not supported"
REFUSED = {
    "a list that grows": (
        """
        xs = [1, 2]
        for x in xs:
            if len(xs) < 4:
                xs.append(m)
        return len(xs)
        """,
        LOOP.format("xs"),
    ),
    "a list by another name": (
        """
        xs = ys = [1, 2]
        for x in xs:
            ys[1] = m
        return x
        """,
        LOOP.format("xs"),
    ),
    "a list in a helper": (
        """
        xs, n = [1, 2], 0
        for x in xs:
            n += shorten(xs)
        return n
        """,
        LOOP.format("xs"),
    ),
    "a list that is counted": (
        """
        xs, n = [1, 2], 0
        for i, x in enumerate(xs):
            n += x
            xs[i - 1] = m
        return n
        """,
        LOOP.format("enumerate(xs)"),
    ),
    "a list from its end": (
        """
        xs, n = [1, 2], 0
        for x in reversed(xs):
            n += x
            xs[0] = m
        return n
        """,
        LOOP.format("reversed(xs)"),
    ),
    "a dict that grows": (
        """
        d = {"a": 1}
        for k in d:
            d["b"] = m
        return len(d)
        """,
        LOOP.format("d"),
    ),
    "a view": (
        """
        d, n = {"a": 1, "b": 2}, 0
        for k, v in d.items():
            n += v
            d["b"] = m
        return n
        """,
        LOOP.format("d.items()"),
    ),
    "a view of one of two": (
        """
        a, b, n = {"a": 1, "b": 2}, {"a": 3, "b": 4}, 0
        for v in (a.values() if m > 4 else b.values()):
            n += v
            a["b"] = m
        return n
        """,
        LOOP.format("a.values() if m > 4 else b.values()"),
    ),
    "one of two lists that is counted": (
        """
        rows, n = [[1, 2, 3], [4, 5, 6]], 0
        for i, x in enumerate(rows[m // 5]):
            n += x
            rows[m // 5][2] = m
        return n
        """,
        LOOP.format("enumerate(rows[m // 5])"),
    ),
    "a list in a comprehension": (
        """
        xs = [1, 2, 3]
        def put(x):
            xs[2] = m
            return x
        return sum([put(x) for x in xs])
        """,
        LOOP.format("xs"),
    ),
    "a list in a test": (
        """
        xs = [1, 2, 3]
        def put(x):
            xs[2] = m
            return x > 2
        return next(x for x in xs if put(x))
        """,
        LOOP.format("xs"),
    ),
    "what elements read": (
        """
        s, n = {"k": 1}, 0
        for x in (r + s["k"] for r in (1, 2)):
            n += x
            s["k"] = m
        return n
        """,
        COMPUTED.format("(r + s['k'] for r in (1, 2))"),
    ),
    "a variable that elements read": (
        """
        k, n = 1, 0
        for i, x in enumerate(r + k for r in (1, 2)):
            n += x
            k = m
        return n
        """,
        COMPUTED.format("enumerate((r + k for r in (1, 2)))"),
    ),
    "what a mapped function reads": (
        """
        k, n = 1, 0
        def add(r):
            return r + k
        for x in map(add, (1, 2)):
            n += x
            k = m
        return n
        """,
        COMPUTED.format("map(add, (1, 2))"),
    ),
    "what a method reads": (
        """
        p, n = Plain(), 0
        for x in (r + p.grow() for r in (1, 2)):
            n += x
            p.w = m
        return n
        """,
        COMPUTED.format("(r + p.grow() for r in (1, 2))"),
    ),
    "an effect of what is mapped": (
        """
        s = [0]
        def hit(r):
            s[0] += m
            return r > 1
        any(map(hit, (1, 2, 3)))
        return s[0]
        """,
        EFFECT.format("map(hit, (1, 2, 3))"),
    ),
    "an effect of an element": (
        """
        xs = [1, m, 3]
        for x in (xs.pop() for _ in (1, 2)):
            break
        return len(xs)
        """,
        EFFECT.format("(xs.pop() for _ in (1, 2))"),
    ),
    "a view that a helper gets, and the dict changes": (
        """
        d = {"a": 1, "b": 2}
        return summed(d.values(), d, m)
        """,
        "`d.values()` is kept, and shows what the dict holds later",
    ),
    "a view of one of two that a helper gets": (
        """
        a, b = {"a": 1}, {"a": 2}
        return summed(a.values() if m > 4 else b.values(), b, m)
        """,
        "`a.values()` is kept, and shows what the dict holds later",
    ),
    "a key that may be there": (
        """
        d = {"b": 2}
        if m > 4:
            d["a"] = 1
        d["c"] = 3
        d.setdefault("a", 7)
        return list(d)[1]
        """,
        ORDER,
    ),
    "a key that may be gone": (
        """
        d = {"a": 1, "b": 2}
        if m > 4:
            del d["a"]
        d["a"] = 3
        return next(iter(d))
        """,
        ORDER,
    ),
    "a key that may have moved": (
        """
        d = {"a": 1, "b": 2}
        if m > 4:
            d["a"] = d.pop("a")
        return [*{**d, "c": 1}][0]
        """,
        ORDER,
    ),
    "two orders": (
        """
        d = {}
        if m > 4:
            d["a"] = d["b"] = 1
        else:
            d["b"] = d["a"] = 2
        return list(dict(d).items())[0][0]
        """,
        ORDER,
    ),
    "keywords in two orders": (
        """
        d = {"a": 1, "b": 2}
        if m > 4:
            d["a"] = d.pop("a")
        return first(**d)
        """,
        ORDER,
    ),
    "views that are compared": (
        """
        a, b = {"a": 1, "b": m}, {"b": 1, "a": 1}
        return a.items() == b.items()
        """,
        OPERATOR,
    ),
    "a view and a tuple": ("""return {"a": m}.keys() == ("a",)""", OPERATOR),
    "a sum of a view": ("""return len({"a": m}.keys() + ("a",))""", OPERATOR),
    "a frozen record": (
        """
        t = Tile(1)
        t.w = m
        return t.w
        """,
        "`Tile` is frozen: assigning `w` raises",
    ),
    "of a frozen kind": (
        """
        t = Wide(1)
        t.w = m
        return t.w
        """,
        "`Wide` is frozen: assigning `w` raises",
    ),
    "a property": (
        """
        t = Shown(m)
        t.w = 5
        return t.w
        """,
        "storing into the property `w` is not followed",
    ),
    "a property with a setter": (
        """
        t = Doubled(m)
        t.w = 5
        return t.a
        """,
        "storing into the property `w` is not followed",
    ),
    "an own way of setting": (
        """
        t = Twice()
        t.w = m
        return t.w
        """,
        "`Twice` has a `__setattr__`, which is not followed",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, tmp_path: Path) -> None:
    body, why = REFUSED[name]
    write(tmp_path, {"mod.py": _source(body)})
    assert refusal(tmp_path, "pkg.mod:choose", FACTS) == f"SEL901 {why}"
