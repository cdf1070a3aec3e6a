"""The oracle is CPython: same nodes and places as `ast.parse`, columns counted in characters."""

from __future__ import annotations

import ast
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from selc.diag.diagnostic import Refused
from selc.frontend.syntax import parse_statements

STDLIB = Path(ast.__file__).parent
PLACES = ("lineno", "col_offset", "end_lineno", "end_col_offset")
PLACED = (ast.expr, ast.stmt, ast.pattern, ast.arg, ast.keyword, ast.alias, ast.ExceptHandler)
BIG = (
    "model_executor/layers/fused_moe/fused_moe.py",
    "model_executor/layers/fused_moe/layer.py",
    "v1/attention/backends/flash_attn.py",
    "v1/attention/backends/flashinfer.py",
    "v1/worker/gpu_model_runner.py",
    "distributed/parallel_state.py",
    "envs.py",
    "_custom_ops.py",
    "platforms/cuda.py",
    "config/vllm.py",
    "v1/core/sched/scheduler.py",
    "engine/arg_utils.py",
)


def expected(text: str) -> ast.Module:
    """`ast.parse`, with columns in characters."""
    tree = ast.parse(text)
    lines = text.split("\n")
    for node in ast.walk(tree):
        if hasattr(node, "type_comment"):
            node.type_comment = None
        if isinstance(node, PLACED):
            assert node.end_lineno is not None
            assert node.end_col_offset is not None
            node.col_offset = _characters(lines[node.lineno - 1], node.col_offset)
            node.end_col_offset = _characters(lines[node.end_lineno - 1], node.end_col_offset)
    return tree


def _characters(line: str, octets: int) -> int:
    return octets if line.isascii() else len(line.encode()[:octets].decode())


def show(tree: ast.Module) -> str:
    """A dump with places, but for those inside f-strings (3.11 has none of their own)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            for inner in ast.walk(node):
                if inner is not node:
                    for place in PLACES:
                        if hasattr(inner, place):
                            setattr(inner, place, 0)
    return ast.dump(tree, include_attributes=True)


def same(text: str) -> None:
    got = parse_statements(text, "t.py")
    assert show(ast.Module(got, [])) == show(expected(text))


def big_files() -> list[Path]:
    root = os.environ.get("SELC_CORPUS")
    corpus = Path(root) if root else Path(__file__).resolve().parents[3] / ".corpus"
    return [corpus / "vllm" / name for name in BIG]


@pytest.mark.parametrize("path", big_files(), ids=BIG)
def test_engine_files(path: Path) -> None:
    if not path.is_file():
        pytest.skip("no engine sources; `make corpus` fetches them, or set SELC_CORPUS")
    same(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "name",
    ["argparse", "dataclasses", "typing", "inspect", "tokenize", "statistics", "enum", "turtle"],
)
def test_standard_library(name: str) -> None:
    same((STDLIB / f"{name}.py").read_text(encoding="utf-8"))


SNIPPETS = [
    "",
    "# only a comment\n",
    "x = 1",
    "x = 1; y = 2;\n",
    "if a: b;\nelif c: d\nelse:\n  e;\n",
    "if a:\n  b\nelse:\n  if c: d\n",
    "a = b = c, = d\n",
    "x: int\nx.y: int = 3\nx[1]: int = 1, 2\n",
    "a += 1; b //= 2; c @= d; e **= f; g >>= h; i <<= j; k |= l; m ^= n; o &= p; q %= r\n",
    "f(x for x in y)\nf((x for x in y))\nf(a, (x for x in y))\n(x for x in y)\n",
    "f(*a, b=1, *c, **d, e=2)\nf(a := 1, (b := 2))\n",
    "((a, b))\n(a,)\na,\n()\n( ( ) )\n((a))\n(((a, b), c))\n",
    "a[1], a[1,], a[1:2], a[1:2, ::3], a[:], a[::], a[()], a[*b], a[*b, 1], a[(1, 2)]\n",
    "a < b <= c == d != e is f is not g in h not in i\n",
    "a and b and c or d and e or (f or g) or not h\n",
    "(a and b) and c and (d and e)\n",
    "-a ** -b; ~a + not_b - +c; a @ b // c % d\n",
    "x if y else z if u else v\n",
    "lambda: 1\nlambda a, /, b=1, *c, d, e=2, **f: (a, b)\nlambda *, a: a\nlambda a, b=2, /: 0\n",
    "def f(a, b: int = 1, /, c=2, *d: 'x', e, g: int = 3, **h: dict) -> (int): pass\n",
    "def f(a, /): pass\ndef f(a, /, *, b): pass\ndef f(*args: *Ts): pass\n",
    "@a.b(c)\n@d\nasync def f():\n  async with a as b, c: pass\n  async for x in y: await z\n",
    "async def f():\n  return [x async for x in y if await z if w]\n",
    "class A: pass\nclass B(): pass\n@d\nclass C(A, *b, metaclass=M, **k):\n  'doc'\n  x = 1\n",
    "with a: pass\nwith (a): pass\nwith (a, b): pass\nwith (a as b, c as (d, e),): pass\n",
    "with (a, b) as c: pass\nwith (a).b as c[0]: pass\nwith (yield): pass\n",
    "try: a\nexcept: b\n",
    "try:\n a\nexcept A as e:\n b\nexcept (B, C):\n c\nelse:\n d\nfinally:\n e\n",
    "try:\n a\nexcept* A as e:\n b\n",
    "for a, *b in c, d:\n  continue\nelse:\n  break_ = 1\nwhile x: break\nelse: pass\n",
    "import a.b.c as d, e.f\nfrom . import a\nfrom .... import x\n",
    "from a import *\nfrom ...a.b import (c as d, e,)\n",
    "def f():\n  global a, b\n  def g():\n    nonlocal c\n  return\n  return *a, b\n  yield\n",
    "del a, b[0], c.d\ndel (a, b)\ndel a,\ndel (a)\ndel [a, b]\n",
    "raise\nraise A\nraise A from b\nassert a, b\nassert a\n",
    "{**a, 'b': 1, **c}\n{1, *a}\n{}\n[*a, b]\n[]\n",
    "{a: b for a, b in c if d}\n{a for a in b for c in d if e if f}\n[a for (a, b), in c]\n",
    "0x_ff, 0b1_0, 0o17, 1_000, 1., .5, 1e5, 1.5e-3j, 10j, 0, 00, 0_0, 1E+2J\n",
    "1if a else 2\n[1,2][0]or 3\n",
    "'a' \"b\" '''c\nd''' r'\\e' u'f'\nu'x' 'y'\nb'a' rb'\\b' Br'c' b'\\x41\\101'\n",
    r"'\n\t\\\'\"\a\b\f\r\v\0\07\101\x41\u00e9\U0001f600\N{BULLET}\q'" + "\n'a\\\nb'\n",
    "x = ('a'\n     'b'\n     'c')\n",
    "f''\nf'a'\nf'{a}'\nf'a{b}c{d!r:>{w}.{p}}e' 'f' f'{g=}' f'{h = !s:5}{i=:3}'\n",
    "f'{{a}}{{{b}}}' rf'\\d{x}' f'\\N{BULLET}{a:\\n}' f'{a[\"b\"]}'\nf'{x:}'\n",
    "f'''a\n{b}\nc{d:%H:%M}'''\nf'{a, b}{ {1: 2}[1] }{(lambda: 1)()}{x!a}'\n",
    "u'a' f'b{c}d'\n'a' 'b' f'{x}' 'c' 'd'\nf'{*a, 1}'\nf'{a:{{1}}}'\n",
    "match a, b:\n  case 1 | 'x' 'y' | None | -1.5 + 2j | A.B: pass\n  case _ if c: pass\n",
    "match = case = type = 1\n",
    "match a:\n  case [x, *_]: pass\n  case (x, *y): pass\n  case x, y: pass\n  case *x,: pass\n",
    "match a:\n  case (x): pass\n  case ((x, y)): pass\n  case (1): pass\n",
    "match (a):\n  case (A() as x): pass\n",
    "match a:\n  case {'a': 1, b.c: [], **d}: pass\n  case {}: pass\n  case {1: _,}: pass\n",
    "match a:\n  case A(): pass\n  case b.A(1, x=2, y=(3 | 4),): pass\n  case () | []: pass\n",
    "héé = 'é' + ü[1]; ﬁ = 1\nx = 'é😀'; y = f'é{ü}é'\n",
    "if a:\n\tb\n\tif c:\n\t\td\n\f\nx = 1\n",
    "x = 1 + \\\n  2\nif a and \\\n   b: pass\n",
    "x = [ # comment\n  1, # another\n\n  2]\n",
    "x = (yield)\ny = yield a, b\nz = yield from c\nawait_ = 1\n",
    "(a := 1)\nif (n := f()) > 1: pass\nx[a := 1]\n{a := 1}\n",
    "print(*a or b, *c)\nx = *a, *b\nfor x in *a, b: pass\n",
    "a.b.c(d)(e)[f].g\n(a).b\n(a\n .b\n .c)\n'a'.join(b)\n1 .real\n",
    "...\nx[...]\n",
]


@pytest.mark.parametrize("text", SNIPPETS)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::SyntaxWarning")
def test_snippets(text: str) -> None:
    same(text)


def test_places_inside_f_strings() -> None:
    (statement,) = parse_statements("x = f'ab{c + 1!r:>{w}}' 'd'\n", "t.py")
    places = {
        ast.unparse(node): (node.col_offset, node.end_col_offset)
        for node in ast.walk(statement)
        if isinstance(node, ast.Name | ast.BinOp)
    }
    assert places == {"x": (0, 1), "c + 1": (9, 14), "c": (9, 10), "w": (19, 20)}


def test_first_line_moves_every_line() -> None:
    (statement,) = parse_statements("def f():\n  return 1\n", "t.py", 41)
    assert isinstance(statement, ast.FunctionDef)
    assert (statement.lineno, statement.end_lineno) == (41, 42)
    assert statement.body[0].lineno == 42


def test_line_ends_and_byte_order_mark() -> None:
    got = parse_statements("\ufeffx = '''a\r\nb'''\ry = 1\r\n", "t.py")
    assert ast.dump(ast.Module(got, [])) == ast.dump(ast.parse("x = '''a\nb'''\ny = 1\n"))
    assert got[1].lineno == 3


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("x = (1,\n", 11, 5),
        ("a\né = 1 +* 2\n", 12, 8),
        ("f() = 1\n", 11, 5),
        ("f(a=1, 2)\n", 11, 8),
        ("f(a=1, a=2)\n", 11, 8),
        ("a\n  b\n", 12, 3),
        ("if x:\na\n", 12, 1),
        ("if x:\n    a\n  b\n", 13, 3),
        ("a\nb = 'c\n", 12, 5),
        ("a\n'''b\n", 12, 1),
        ("x = $\n", 11, 5),
        ("a\nb\n0777\n", 13, 1),
        ("(]\n", 11, 2),
        ("x = 1)\n", 11, 6),
        ("f'{a'\n", 11, 5),
        ("f'a}'\n", 11, 4),
        ("b'é'\n", 11, 1),
        ("'\\x1'\n", 11, 1),
        ("'\\N{no such name}'\n", 11, 1),
        ("'a' b'b'\n", 11, 1),
        ("x = \0\n", 11, 5),
        ("x \\ y\n", 11, 3),
        (f"x = {'(' * 300}1{')' * 300}\n", 11, 205),
    ],
)
def test_syntax_errors_are_placed(text: str, line: int, column: int) -> None:
    with pytest.raises(Refused) as refused:
        parse_statements(text, "t.py", 11)
    (found,) = refused.value.diagnostics
    assert (found.code, found.span.path) == ("SEL900", "t.py")
    assert (found.span.line, found.span.column) == (line, column)
    assert found.help


@pytest.mark.parametrize(
    "text",
    [
        "def f[T](x: T): pass\n",
        "class A[T]: pass\n",
        "type X = int\n",
        "t'a{x}'\n",
        "[*x for x in y]\n",
        "{**x for x in y}\n",
        "try: pass\nexcept A, B: pass\n",
        "(x): int\n",
        "x = " + "9" * 5000,
        "x = " + "+".join(["1"] * 20_000),
        "not " * 20_000 + "x",
        "a" + "()" * 20_000,
        "if a: b\n" + "elif a: b\n" * 20_000,
        "if a: b\n" + "elif a: b\n" * 1_500,
    ],
    ids=range(14),
)
def test_refused_not_crashed(text: str) -> None:
    with pytest.raises(Refused) as refused:
        parse_statements(text, "t.py")
    assert refused.value.diagnostics[0].code == "SEL900"


OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "@", "<<", "<", "==", "and", "or"]
NAMES = st.sampled_from(["a", "b", "é", "xs", "f"])
ATOMS = st.one_of(
    NAMES,
    st.integers(0, 300).map(str),
    st.sampled_from(["1.5", "'s'", "'é' 'z'", "f'{a}é{b!r}'", "None", "...", "b'x'", "()"]),
)


def _grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    two = st.tuples(inner, inner)
    three = st.tuples(inner, inner, inner)
    return st.one_of(
        st.tuples(inner, st.sampled_from(OPERATORS), inner).map(
            lambda t: f"({t[0]}) {t[1]} {t[2]}"
        ),
        two.map(lambda t: f"{t[0]} and {t[1]}"),
        two.map(lambda t: f"{t[0]}  <= {t[1]} not in a"),
        inner.map(lambda t: f"(not {t})"),
        inner.map(lambda t: f"-({t})"),
        inner.map(lambda t: f"( {t} , )"),
        two.map(lambda t: f"[{t[0]}, *({t[1]})]"),
        two.map(lambda t: f"f({t[0]}, k={t[1]})"),
        two.map(lambda t: f"xs[{t[0]} : {t[1]}]"),
        two.map(lambda t: f"xs[({t[0]}), {t[1]},]"),
        two.map(lambda t: f"{{({t[0]}): {t[1]}}}"),
        three.map(lambda t: f"({t[0]} if {t[1]} else {t[2]})"),
        two.map(lambda t: f"f(({t[0]}) for b in ({t[1]}))"),
        two.map(lambda t: f"[({t[0]})\n for a, b in ({t[1]}) if a]"),
        inner.map(lambda t: f"(lambda a, *, b=({t}): {t})"),
        inner.map(lambda t: f"(é := ({t}))"),
    )


@settings(max_examples=200, deadline=None)
@given(st.recursive(ATOMS, _grow, max_leaves=12), NAMES)
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_any_expression(expression: str, name: str) -> None:
    text = f"{name} = ({expression})\nif {expression}:\n    return_ = {expression};\n"
    try:
        ast.parse(text)
    except SyntaxError:
        return
    same(text)


def test_deep_source_leaves_the_recursion_limit_alone() -> None:
    limit = sys.getrecursionlimit()
    with pytest.raises(Refused):
        parse_statements("x = " + ".a".join(["a"] * 900), "t.py")
    assert sys.getrecursionlimit() == limit
