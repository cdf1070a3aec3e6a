from __future__ import annotations

import ast
from pathlib import Path

import pytest

from selc.diag.diagnostic import Refused
from selc.frontend.source import ModuleSource, read_module
from tests.calls import counted_calls

TEXT = '''"""Doc."""
from __future__ import annotations
import os.path, json as js
from .a import (b,
                c as d)  # comment

X: int = 1
Y = Z = (
    1,
)
A.b, (C, *D), E[0] = f(x), 2, 3; del X

@decorate(n := 1)
# between
@other
def one(a=1, *, b=(m := 2)) -> int:
    inner = 1
# a comment at the margin
    return inner

async def two(): local = 1

class Three(Base):
    attribute = 1

if TYPE_CHECKING:
    import typing as t
    def four():
        hidden = 1
    class Five: hidden = 2
    six = 1
elif (seven := 1): eight = 1
else:
    nine, ten = 1, 2
try:
    import fast
except ImportError as error:
    fast = None
finally:
    done = True
with open("f") as (f1, f2), g as h.i, j[0] as k: pass
for i, (o, p[0]) in lambda: q: r = 1
while True:
    s = lambda: 1
match subject:
    case {"k": u, **rest} if guard: v = 1
    case Point(x=aa, y=bb) | [aa, *bb] if w := 1: pass
    case _ as cc: pass
call(x=1)
u_not: dict = {}; type = 3
f"{(walrus := 1)} = {x:=5}"
assert x, lambda y=1: y
from m import *
x += 1
Z.z = 1
'''


def module(text: str | bytes) -> ModuleSource:
    return ModuleSource("m.py", text.encode() if isinstance(text, str) else text, "pkg.m")


def test_statements_kinds_and_names() -> None:
    got = [(s.kind, s.first_line, s.names) for s in module(TEXT).segments]
    assert got == [
        ("expr", 1, ()),
        ("import", 2, ("annotations",)),
        ("import", 3, ("os", "js")),
        ("import", 4, ("b", "d")),
        ("assign", 7, ("X",)),
        ("assign", 8, ("Y", "Z")),
        ("other", 11, ("C", "D", "X")),
        ("def", 13, ("n", "one", "m")),
        ("def", 21, ("two",)),
        ("class", 23, ("Three",)),
        (
            "if",
            26,
            ("t", "four", "Five", "six", "seven", "eight", "nine", "ten"),
        ),
        ("try", 35, ("fast", "error", "done")),
        ("with", 41, ("f1", "f2", "k")),
        ("for", 42, ("i", "o", "r")),
        ("other", 43, ("s",)),
        ("other", 45, ("u", "rest", "v", "w", "aa", "bb", "cc")),
        ("expr", 49, ()),
        ("assign", 50, ("u_not", "type")),
        ("expr", 51, ("walrus",)),
        ("other", 52, ()),
        ("import", 53, ("*",)),
        ("assign", 54, ("x",)),
        ("assign", 55, ()),
    ]


def test_segments_cover_every_statement_as_cpython_sees_them() -> None:
    source = module(TEXT)
    parsed = [node for segment in source.segments for node in source.parse(segment)]
    assert [ast.dump(node) for node in parsed] == [ast.dump(n) for n in ast.parse(TEXT).body]
    assert [node.lineno for node in parsed] == [n.lineno for n in ast.parse(TEXT).body]


def test_decorators_belong_to_their_definition() -> None:
    (segment,) = module(TEXT).segments_binding("one")
    assert segment.text.startswith("@decorate(n := 1)\n")
    assert segment.text.endswith("    return inner\n")
    assert (segment.first_line, segment.last_line) == (13, 19)


def test_segments_binding_is_in_source_order() -> None:
    source = module("def f(): pass\nx = 1\nif x:\n    def f(): return 2\nf = 3\n")
    assert [s.kind for s in source.segments_binding("f")] == ["def", "if", "assign"]
    assert source.segments_binding("absent") == []


def test_parse_is_remembered() -> None:
    source = module("x = 1\ny = 2\n")
    (segment,) = source.segments_binding("y")
    assert source.parse(segment) is source.parse(segment)
    assert source.parse(segment)[0].lineno == 2


def test_statements_that_are_not_asked_for_are_not_parsed() -> None:
    source = module("def bad(): return = 1\nx = 1\n")
    assert source.parse(source.segments_binding("x")[0])
    with pytest.raises(Refused) as refused:
        source.parse(source.segments_binding("bad")[0])
    assert refused.value.diagnostics[0].span.line == 1


def test_names_of_packages() -> None:
    assert module("").package == "pkg"
    assert ModuleSource("__init__.py", b"", "pkg.sub", is_package=True).package == "pkg.sub"
    assert ModuleSource("m.py", b"", "m").package == ""


def test_empty_files() -> None:
    for text in ("", "\n", "# comment", "\n\n# comment\n\n"):
        assert module(text).segments == ()


def test_encodings() -> None:
    assert module(b"\xef\xbb\xbfx = '\xc3\xa9'\r\ny = 1\rz = 2").text == "x = 'é'\ny = 1\nz = 2"
    assert module(b"# -*- coding: latin-1 -*-\nx = '\xe9'\n").text.endswith("x = 'é'\n")
    assert module(b"x").digest == module(b"x").digest != module(b"y").digest


@pytest.mark.parametrize(
    ("data", "line", "column"),
    [
        (b"a = 1\nb = '\xff'\n", 2, 6),
        ("a = 1\nb = 'é".encode() + b"\xff'\n", 2, 7),
        (b"a\n" * 100 + b"x = '\xe9'\n", 101, 6),
        (b"# coding: no-such-code\n", 1, 1),
        (b"#!x\n# coding: no-such-code\n", 2, 1),
        (b"# coding: rot13\nx\n", 1, 1),
        (b"# coding: ascii\nx = '\xc3\xa9'\n", 2, 6),
    ],
)
def test_undecodable_bytes_are_placed(data: bytes, line: int, column: int) -> None:
    with pytest.raises(Refused) as refused:
        module(data)
    (found,) = refused.value.diagnostics
    assert (found.code, found.span.line, found.span.column) == ("SEL900", line, column)


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("x = 1\ny = (\n", 2, 5),
        ("x = 1\n'''\n", 2, 1),
        ("  x = 1\n", 1, 3),
        ("x = ]\n", 1, 5),
        ("x = \0\n", 1, 5),
    ],
)
def test_text_that_cannot_be_cut(text: str, line: int, column: int) -> None:
    with pytest.raises(Refused) as refused:
        _ = module(text).segments
    (found,) = refused.value.diagnostics
    assert (found.code, found.span.line, found.span.column) == ("SEL900", line, column)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(Refused) as refused:
        read_module(tmp_path)
    assert refused.value.diagnostics[0].code == "SEL908"


@pytest.mark.parametrize("name", ["argparse", "typing", "inspect", "tarfile", "ssl", "os"])
def test_cut_like_cpython(name: str) -> None:
    path = Path(ast.__file__).parent / f"{name}.py"
    source = read_module(path, name)
    body = ast.parse(source.text).body
    assert [(s.first_line, s.last_line) for s in source.segments] == [
        (min([n.lineno, *(d.lineno for d in getattr(n, "decorator_list", ()))]), n.end_lineno)
        for n in body
    ]
    for segment, node in zip(source.segments, body, strict=True):
        stored = {
            n.id
            for n in _outside_functions(node)
            if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)
        }
        assert stored <= set(segment.names)


def _outside_functions(node: ast.AST) -> list[ast.AST]:
    inner = ast.FunctionDef | ast.ClassDef | ast.Lambda | ast.AsyncFunctionDef
    comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
    if isinstance(node, inner | comprehension):
        return []
    if isinstance(node, ast.AnnAssign) and node.value is None:
        return []
    found = [node]
    for child in ast.iter_child_nodes(node):
        found += _outside_functions(child)
    return found


def test_the_work_of_cutting() -> None:
    """Python calls, not seconds, for each line of a file: 12."""
    text = (Path(ast.__file__).parent / "argparse.py").read_text(encoding="utf-8")
    lines = text.split("\n")[:1900]
    with counted_calls() as calls:
        assert module("\n".join(lines) + "\n").segments
    assert calls.made < 20 * len(lines)
