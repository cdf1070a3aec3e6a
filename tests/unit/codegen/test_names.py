"""Names and texts of the input in generated code."""

from __future__ import annotations

import keyword
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from selc.codegen.names import (
    c_string,
    c_symbol,
    comment,
    distinct,
    identifier,
    point_path,
    unique_identifiers,
)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("num_tokens", "num_tokens"),
        ("dep.x", "dep_x"),
        ("max(lens)", "max_lens"),
        ("class", "class_"),
        ("None", "None_"),
        ("self", "self_"),
        ("_hidden", "hidden"),
        ("3d", "n3d"),
        ("--", "value"),
        ("größe", "größe"),
        ("a²", "a2"),
        ("º0¹", "o01"),
    ],
)
def test_identifiers(text: str, name: str):
    assert identifier(text) == name


@given(st.lists(st.text(max_size=12), max_size=6))
def test_identifiers_are_valid_and_distinct(texts: list[str]):
    names = unique_identifiers(texts)
    assert len(set(names)) == len(texts)
    for name in names:
        assert name.isidentifier()
        assert not keyword.iskeyword(name)
        assert not name.startswith("_")
        assert unicodedata.normalize("NFKC", name) == name


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("block", ("block",)),
        ("down.BLOCK_SIZE_K", ("down", "BLOCK_SIZE_K")),
        ("[0]", (0,)),
        ("[1].x[2]", (1, "x", 2)),
        ("kernel.[0]", ("kernel", 0)),
        ("result", ("result",)),
        ("kernel#2.BLOCK", ("kernel#2.BLOCK",)),
        ("kernel[grid].M", ("kernel[grid].M",)),
        ("a..b", ("a..b",)),
    ],
)
def test_point_paths(name: str, path: tuple):
    assert point_path(name) == path


def test_distinct_numbers_later_duplicates():
    assert distinct(["a", "a", "a_2", "a"]) == ["a", "a_2", "a_2_2", "a_3"]


@given(st.text(max_size=60))
def test_comments_cannot_end_early(text: str):
    safe = comment(text)
    assert "*/" not in safe
    assert "/*" not in safe
    assert "\n" not in safe
    assert "\\" not in safe
    assert "??" not in safe
    assert safe.isascii()


@given(st.text(max_size=40))
def test_c_strings_hold_the_bytes(text: str):
    literal = c_string(text)
    assert literal.isascii()
    inner = literal[1:-1]
    assert re.fullmatch(r"(?:[^\"\\?%\n]|\\[0-7]{3})*", inner)
    decoded = re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), inner)
    assert decoded.encode("latin-1") == text.encode("utf-8", "surrogatepass")


@given(st.text(max_size=60))
def test_c_symbols(text: str):
    assert re.fullmatch(r"[a-z0-9_]{1,40}", c_symbol(text))
