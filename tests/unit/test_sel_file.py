"""Files of cases are split and rewritten exactly."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sel_case import Failure, check_lines, domain_facts, flatten
from tests.sel_file import SelError, parse, rewrite

TEXT = """\
[case first]
Some prose.
[src]
def f(m): return m

[ir after=lower]
old
[run]
f(1) == 1

[case second one]
[src]
x = [
    1]
[diag]
old
"""


def test_sections() -> None:
    first, second = parse(TEXT)
    assert (first.name, first.line, second.name, second.line) == ("first", 1, "second one", 11)
    assert [s.kind for s in first.sections] == ["src", "ir", "run"]
    assert first.body("src") == "def f(m): return m\n"
    assert first.sections[1].after == "lower"
    assert second.body("src") == "x = [\n    1]\n"


def test_rewriting_keeps_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "a.sel"
    path.write_text(TEXT, encoding="utf-8")
    first, second = parse(TEXT)
    rewrite(path, [(first.all("ir")[0], "new\n  text\n"), (second.all("diag")[0], "newer\n")])
    text = path.read_text(encoding="utf-8")
    assert text == TEXT.replace("old\n[run]", "new\n  text\n\n[run]").replace("old", "newer")
    again = parse(text)[0].all("ir")[0]
    rewrite(path, [(again, again.body)])
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("prose\n[case a]\n[src]\n[run]\n", "text before the first"),
        ("[src]\nx\n", "before the first"),
        ("[case]\n[src]\n[run]\n", "has no name"),
        ("[case a]\n[run]\n", "needs one"),
        ("[case a]\n[src]\n", "expects nothing"),
        ("[case a]\n[run]\n[src]\n", "in the order"),
        ("[case a]\n[src]\n[ir]\n", "needs after=NAME"),
        ("[case a]\n[src]\n[run]\n[case a]\n[src]\n[run]\n", "share a name"),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(SelError, match=message):
        parse(text)


def test_check_lines_in_order() -> None:
    _, case = parse(TEXT + "\n[case third]\n[src]\n[check after=fold]\na\nc\n")[-2:]
    section = case.sections[1]
    check_lines(section, "a\nb\nc\n")
    with pytest.raises(Failure, match="misses, in order: c"):
        check_lines(section, "c\nb\na\n")


def test_results_are_points() -> None:
    assert flatten(3) == {"result": 3}
    assert flatten({"a": {"b": 1}, "c": (2, 3)}) == {"a.b": 1, "c[0]": 2, "c[1]": 3}


def test_domains() -> None:
    text = domain_facts('m: 1..8 step 1\nn: request {1, "a", None}\n')
    assert '"range"' in text
    assert '"multiple_of": 1' in text
    assert '"kind": "request"' in text
