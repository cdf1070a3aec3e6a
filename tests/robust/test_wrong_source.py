"""Source of every kind that is wrong, or that selc does not follow: refused in place."""

from __future__ import annotations

import pytest

from tests.robust.conftest import Try


def body(*lines: str) -> str:
    return "def f(m):\n" + "".join(f"    {line}\n" for line in lines)


OTHER = "def f(m):\n    return {'w': 1 if m > 3 else 2}\n\n"

SYNTAX: list[tuple[str, str, tuple[int, int]]] = [
    ("a bracket that stays open", "def f(m):\n    return {'w': (m\n", (2, 12)),
    ("no colon", "def f(m)\n    return 1\n", (2, 5)),
    ("a bracket in another function", OTHER + "def g(:\n    pass\n", (4, 6)),
    ("half an expression", "def f(m):\n    return g(m)\n\ndef g(x):\n    return x +\n", (5, 14)),
    ("an indent that matches nothing", "def f(m):\n    a = 1\n  return a\n", (3, 3)),
    ("tabs after spaces", "def f(m):\n\tif m > 3:\n        return 1\n\treturn 2\n", (3, 9)),
    ("an open text", body("return 'abc"), (2, 12)),
    ("a target that is a number", body("3 = m", "return 1"), (2, 7)),
    ("a break without a loop", body("break"), (2, 5)),
    ("a continue without a loop", body("if m > 3:", "    continue", "return 1"), (3, 9)),
    ("a parameter twice", "def f(m, m):\n    return 1\n", (1, 10)),
    ("a nonlocal of nothing", body("nonlocal q", "return 1"), (2, 5)),
    ("a global too late", body("q = 1", "global q", "return 1"), (3, 5)),
    ("a keyword twice", body("return max(m, key=1, key=2)"), (2, 26)),
    ("a default too early", "def f(m=1, n):\n    return 1\n", (1, 13)),
    ("a star alone", body("*a = m", "return 1"), (2, 5)),
    ("a star import inside", body("from b import *", "return 1"), (2, 19)),
    ("an await outside async", body("return await m"), (2, 12)),
    ("a return in a class", "class A:\n    return 1\n" + body("return A"), (2, 5)),
    ("a zero byte", "def f(m):\n    return 1\0\n", (2, 13)),
]


@pytest.mark.parametrize(("text", "place"), [pytest.param(*c[1:], id=c[0]) for c in SYNTAX])
def test_syntax_errors(attempt: Try, text: str, place: tuple[int, int]) -> None:
    with pytest.raises((SyntaxError, ValueError)):
        compile(text, "k.py", "exec")
    made = attempt(text)
    assert (made.code, made.first["code"]) == (2, "SEL900")
    assert made.place() == ("k.py", *place)


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (b"def f(m):\n    # \xe4\n    return {'w': 1}\n", (2, 7)),
        (b"# -*- coding: nonsense -*-\ndef f(m):\n    return {'w': 1}\n", (1, 1)),
        ("def f(m):\n    return 1\n".encode("utf-16"), (1, 1)),
        (bytes(range(256)) * 20, (2, 118)),
    ],
)
def test_text_that_is_not_utf8(attempt: Try, data: bytes, place: tuple[int, int]) -> None:
    made = attempt(data)
    assert (made.code, made.first["code"], made.place()) == (2, "SEL900", ("k.py", *place))


def test_a_declared_encoding(attempt: Try) -> None:
    text = "# coding: latin-1\ndef f(m):\n    return {'w': 'ä' if m > 5 else 'ö'}\n"
    made = attempt(text.encode("latin-1"))
    assert made.answer["legal"]["legal"] == 2


UNSUPPORTED: list[tuple[str, str, str, tuple[int, int]]] = [
    # recursion
    ("recursion", body("return f(m + 1)"), "SEL903", (2, 12)),
    ("mutual recursion", body("return g(m)") + "def g(m):\n    return h(m)\n"
     "def h(m):\n    return g(m)\n", "SEL903", (6, 12)),
    ("a lambda in itself", body("g = lambda n: g(n)", "return g(m)"), "SEL903", (2, 19)),
    ("a property in itself", "class A:\n    @property\n    def x(self):\n        return self.x\n"
     + body("return A().x"), "SEL903", (4, 16)),
    ("a name in itself", "X = X + 1\n" + body("return X"), "SEL903", (1, 5)),
    ("names in each other", "X = Y\nY = X\n" + body("return X"), "SEL903", (2, 5)),
    ("too deep to unroll", body("return g(m, 400)")
     + "def g(m, n):\n    return m > 3 if n == 0 else g(m, n - 1)\n", "SEL903", (4, 33)),
    ("a class below itself", "class A(B):\n    pass\nclass B(A):\n    pass\n"
     + body("return A.x if m > 3 else 1"), "SEL901", (1, 1)),
    # loops
    ("forever", body("while True:", "    pass"), "SEL902", (2, 11)),
    ("counting forever", body("a = 0", "while True:", "    a += 1", "return a"), "SEL902", (3, 11)),
    ("as often as an input", body("a = 0", "while a < m * m:", "    a += 1", "return a"),
     "SEL902", (3, 11)),
    ("very often", body("for i in range(10**12):", "    pass", "return m"), "SEL902", (2, 14)),
    # what is not followed
    ("async", "async def f(m):\n    return 1\n", "SEL901", (1, 1)),
    ("a coroutine inside", body("async def g(): pass", "return 1"), "SEL901", (2, 5)),
    ("a generator", body("yield m"), "SEL907", (1, 1)),
    ("a class", "class f:\n    pass\n", "SEL907", (1, 1)),
    ("a lambda", "f = lambda m: 3\n", "SEL907", (1, 1)),
    ("another value", "def f(m):\n    return 1\nf = 3\n", "SEL907", (1, 1)),
    ("nothing", "", "SEL907", (1, 1)),
    ("a name deleted", body("return 1") + "del f\n", "SEL904", (3, 1)),
    ("a name of nowhere", body("return nope"), "SEL904", (2, 12)),
    ("a definition that may be", body("return 1")
     + "import os\nif os.environ.get('X'):\n    def f(m):\n        return 2\n", "SEL912", (4, 4)),
    ("a definition in a try", "try:\n    def g(m):\n        return 1\nexcept ImportError:\n"
     "    def g(m):\n        return 2\n" + body("return g(m)"), "SEL912", (8, 12)),
    ("an import in circles", "from b import q\n" + body("return q if m > 3 else 1"), "SEL905",
     (2, 1)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "code", "place"), [pytest.param(*c[1:], id=c[0]) for c in UNSUPPORTED]
)
def test_what_is_refused(attempt: Try, text: str, code: str, place: tuple[int, int]) -> None:
    made = attempt(text, files={"b.py": "from k import q\n"})
    assert (made.code, made.first["code"]) == (2, code)
    assert made.place()[1:] == place
    assert "help:" in made.told


def test_several_refusals_are_one_run(attempt: Try) -> None:
    made = attempt(body("a = nope", "b = await_", "async def g(): pass", "return a + b"))
    assert [e["line"] for e in made.errors] == [2, 3, 4]


DEFINITIONS = {
    "twice": body("return 1") + body("return 2 if m > 3 else 4"),
    "a helper twice": "def g(m):\n    return 1\n" + body("return g(m)")
    + "def g(m):\n    return 2 if m > 3 else 4\n",
    "under a condition": "NEW = 3 > 2\nif NEW:\n    def f(m):\n        return 2 if m > 3 else 4\n"
    "else:\n    def f(m):\n        return 1\n",
    "after another value": "f = 3\n" + body("return 2 if m > 3 else 4"),
}  # fmt: skip


@pytest.mark.parametrize("text", DEFINITIONS.values(), ids=DEFINITIONS)
def test_the_last_definition_is_the_function(attempt: Try, text: str) -> None:
    made = attempt(text)
    (pin,) = made.answer["pins"]
    assert pin["candidates"] in ([2, 4], [False, True])


CIRCLES: dict[str, tuple[str, dict[str, str]]] = {
    "modules": ("import b\ndef f(m):\n    return b.g(m)\ndef h(m):\n    return 2 if m > 9 else 1\n",
                {"b.py": "import k\ndef g(m):\n    return k.h(m)\n"}),
    "names": ("def h(m):\n    return 2 if m > 9 else 1\nfrom b import g\n"
              "def f(m):\n    return g(m)\n",
              {"b.py": "from k import h\ndef g(m):\n    return h(m)\n"}),
    "a package": ("from p.a import g\ndef f(m):\n    return g(m)\n",
                  {"p/__init__.py": "from .a import g\n",
                   "p/a.py": "from . import b\nX = 2\ndef g(m):\n    return b.h(m)\n",
                   "p/b.py": "from p import a\ndef h(m):\n    return a.X if m > 9 else 1\n"}),
    "itself": ("import k\ndef f(m):\n    return k.X if m > 9 else 1\nX = 2\n", {}),
    "stars": ("from b import *\ndef f(m):\n    return g(m)\n",
              {"b.py": "from k import *\ndef g(m):\n    return 2 if m > 9 else 1\n"}),
}  # fmt: skip


@pytest.mark.parametrize("circle", CIRCLES.values(), ids=CIRCLES)
def test_imports_in_circles_that_python_accepts(
    attempt: Try, circle: tuple[str, dict[str, str]]
) -> None:
    text, files = circle
    made = attempt(text, files=files)
    assert made.code == 0
    (point,) = made.answer["points"]
    assert point["depends_on"] == ["m"]


@pytest.mark.parametrize(
    ("target", "code", "words"),
    [
        ("nofile.py", "SEL908", "`nofile.py`"),
        (".", "SEL908", "`.`"),
        ("", "SEL908", "``"),
        ("no.such:f", "SEL908", "`no.such`"),
        ("k.py:nope", "SEL907", "`nope`"),
        ("k.py:", "SEL907", "no function's name"),
        ("k.py:f g", "SEL907", "no function's name"),
        ("k.py:12", "SEL907", "no function's name"),
    ],
)
def test_targets(attempt: Try, target: str, code: str, words: str) -> None:
    made = attempt(target=target)
    assert (made.code, made.first["code"]) == (2, code)
    assert words in made.first["message"]


def test_a_batch_that_nothing_can_cut_off(attempt: Try) -> None:
    made = attempt("import nothere\n" + body("return {'w': nothere.x(m)}"))
    assert (made.code, made.first["code"], made.place()[:2]) == (2, "SEL930", ("k.py", 2))


def test_only_what_is_followed_is_parsed(attempt: Try) -> None:
    """Ten thousand lines, of which one helper is read; what is not may even be no Python."""
    filler = "".join(f"def g{i}(x):\n    return x + {i} +\n\n" for i in range(3330))
    text = filler.replace("return x + 7 +", "return x + 7") + body("return 1 if g7(m) > 9 else 2")
    assert text.count("\n") >= 9990
    made = attempt(text)
    assert (made.code, len(made.answer["pins"])) == (0, 1)
    assert made.answer["pins"][0]["location"]["line"] == text.count("\n")
