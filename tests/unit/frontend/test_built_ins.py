"""Built-in functions and methods: arguments that no model looks at, sorting, formats."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.frontend.lifting import agree, lift, refusal, write

FACTS = """
selection: {function: "pkg.mod:choose", scope: launch, returns: {result: bits}}
inputs:
  m: {kind: runtime, range: [-1, 3]}
  text: {kind: runtime, values: ["a-b-c", "x"]}
  shape: {kind: runtime, values: [[1, 2, 3], [3, 0, 3]]}
  r: {kind: runtime, values: [0.5, -0.0, 2.0]}
"""
GIVEN = {
    "m": range(-1, 4),
    "text": ("a-b-c", "x"),
    "shape": ((1, 2, 3), (3, 0, 3)),
    "r": (0.5, -0.0, 2.0),
}
SOURCE = """
import math

def choose(m, text, shape, r):
    return {body}
"""


@pytest.mark.parametrize(
    ("body", "argument"),
    [
        ('text.split("-", maxsplit=1)[-1]', "maxsplit"),
        ('"{x}".format(x=m)', "x"),
        ("round(r, ndigits=1)", "ndigits"),
        ('int("10", base=2) + m', "base"),
        ("pow(3, m, 5)", None),
        ("math.log2(m, 2)", None),
        ("{0: m}.get()", None),
    ],
)
def test_what_no_model_looks_at_is_refused(tmp_path: Path, body: str, argument: str | None) -> None:
    write(tmp_path, {"mod.py": SOURCE.replace("{body}", body)})
    said = refusal(tmp_path, "pkg.mod:choose", FACTS)
    assert said.startswith("SEL901")
    assert (f"`{argument}=`" if argument else "by position") in said


@pytest.mark.parametrize(
    "body",
    [
        "[1, 2, 1].index(1, m)",
        "(1, 2, 1).index(1, m)",
        'text.split("-", 1)[-1]',
        "sum(shape, start=m)",
        "sorted((m, 2, r))[1]",
        "sorted((m, True, 1, r), reverse=True)[1]",
        "sorted(shape) == (0, 3, 3)",
        "sorted(shape) == [0, 3, 3]",
        "sorted(shape)[m]",
        "(sorted(shape) + [m])[3]",
        "sorted([text, m])[0]",
        'f"{m:>4}|{r:.2f}|{text!r:<10}|{text!s:>3}|{shape!r}"',
        'f"{text:d}"',
        'f"{None:>4}" if m > 2 else "x"',
        "max((c for c in (1, 2, 0) if c <= m), default=-1)",
        "max(c for c in (1, 2, 0) if c <= m)",
        "max(c for c in (1, 2, 0, m) if c != 1 if c <= m)",
        "max(text for c in (1, 'x', 0) if c != m)",
        "max(c for c in (3, 'x', 1) if c != m)",
        "max((c for c in (True, 1, 1.0, r) if c >= m), default=-1)",
        "max((a * b for a in (1, 2) for b in shape if a < b + m), default=r)",
        "max((c for c in ((1, 'x'), (2, 'a')) if c[0] > 0), default=None)[1]",
        "min(c // m for c in (4, 5) if c > m)",
        "min(c * m for c in (1, 2, 0) if c != m if m > 0)",
        "sum(c * r for c in (1, 2, 0) if c <= m)",
        "sum((c for c in shape if c != m), start=r)",
        "isinstance(None if m > 1 else m, int)",
        "isinstance(None if m > 1 else m, (str, float))",
        "isinstance(None if m > 1 else True, (str, int))",
    ],
)
def test_as_in_cpython(tmp_path: Path, body: str) -> None:
    write(tmp_path, {"mod.py": SOURCE.replace("{body}", body)})
    program = lift(tmp_path, "pkg.mod:choose", FACTS)
    agree(tmp_path, program, "pkg.mod:choose", GIVEN)


def test_a_format_that_is_wrong_is_no_traceback(tmp_path: Path) -> None:
    write(tmp_path, {"mod.py": SOURCE.replace("{body}", 'f"{12:q}" if m > 2 else "x"')})
    program = lift(tmp_path, "pkg.mod:choose", FACTS)
    assert agree(tmp_path, program, "pkg.mod:choose", GIVEN) == 48


@pytest.mark.parametrize("body", ["shape.index(m)", 'text.index("b")', "(m, 2, 1).index(3)"])
def test_what_is_not_there_is_a_value_error(tmp_path: Path, body: str) -> None:
    source = f"""
        def choose(m, text, shape, r):
            try:
                return {body}
            except ValueError:
                return -7
        """
    write(tmp_path, {"mod.py": source})
    program = lift(tmp_path, "pkg.mod:choose", FACTS)
    assert agree(tmp_path, program, "pkg.mod:choose", GIVEN) == 60


@pytest.mark.parametrize(
    ("body", "lifted"),
    [
        ("g = (c * m for c in (1, 2))\n    return sum(g) + sum(g)", False),
        ("g = map(abs, shape)\n    return sum(g) + max(g)", False),
        ("g = zip(shape, shape)\n    return len(g)", False),
        ("g = tuple(c * m for c in (1, 2))\n    return sum(g) + sum(g)", True),
        ("g = (c * m for c in (1, 2))\n    return sum(g)", False),
        ("k = m\n    g = map(lambda c: c + k, (1, 2))\n    k = 100\n    return sum(g)", False),
        ("d = {1: iter((1, m))}\n    return sum(d.get(1)) + sum(d.get(1))", False),
        ("g = iter((1, m)) if m > 2 else iter((m, 2))\n    return sum(g) - sum(g)", False),
        ("return m if zip((), ()) else 7", False),
        ("return m if zip((1,), (2,)) == ((1, 2),) else 7", False),
        ("return m if isinstance(enumerate(shape), tuple) else 7", False),
        ("return zip(shape, shape)", False),
        ("return sum(a * b for a, b in zip(*[iter((1, m, 2, 3))] * 2))", False),
        ("return ','.join(str(c) for c in shape)", True),
        ("return max(*map(abs, (m, 3))) + sum(x for _, x in enumerate(reversed(shape)))", True),
        ("a, b = map(abs, (m, 3))\n    return a + b", True),
        ("return reversed(shape)[0] if m > 2 else 0", True),
    ],
)
def test_iterators_are_used_up(tmp_path: Path, body: str, lifted: bool) -> None:
    write(tmp_path, {"mod.py": f"def choose(m, text, shape, r):\n    {body}\n"})
    if not lifted:
        assert "iterator" in refusal(tmp_path, "pkg.mod:choose", FACTS)
        return
    program = lift(tmp_path, "pkg.mod:choose", FACTS)
    agree(tmp_path, program, "pkg.mod:choose", GIVEN)


@pytest.mark.parametrize(
    "body",
    [
        "    v = d.values()\n    d[1] = n\n    return sum(v)\n",
        "    v = d.items()\n    d[m] = n\n    return len(v)\n",
        "    v = (d.keys(), 1)\n    d.update({7: 1})\n    return len(v[0])\n",
    ],
)
def test_a_view_that_is_kept_is_refused(tmp_path: Path, body: str) -> None:
    source = f"def choose(m, text, shape, r):\n    n = m + 1\n    d = {{1: m, 2: 5}}\n{body}"
    write(tmp_path, {"mod.py": source})
    said = refusal(tmp_path, "pkg.mod:choose", FACTS)
    assert said.startswith("SEL901")
    assert "shows what the dict holds later" in said


def test_views_that_are_used_at_once(tmp_path: Path) -> None:
    source = (
        "def choose(m, text, shape, r):\n    d = {1: m, 2: 5}\n    keys = tuple(d.keys())\n"
        "    d[7] = m\n    return sum(d.values()) + len(d.items()) + len(keys) + (7 in d.keys())\n"
    )
    write(tmp_path, {"mod.py": source})
    agree(tmp_path, lift(tmp_path, "pkg.mod:choose", FACTS), "pkg.mod:choose", GIVEN)
