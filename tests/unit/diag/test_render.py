"""Code frames and JSON objects."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from selc.diag.diagnostic import Diagnostic, Label, Severity
from selc.diag.render_json import error_object, errors_object
from selc.diag.render_text import render_all, render_text
from selc.diag.source_text import decode
from selc.diag.span import NOWHERE, Span

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = "def pick(n):\n    while n > 0:\n        n = step(n)\n    return n\n"


def shown(diagnostic: Diagnostic, source: str = SOURCE) -> str:
    return render_text(diagnostic, {"m.py": source})


def block(text: str) -> str:
    return textwrap.dedent(text).strip("\n")


def test_a_frame_with_labels_notes_and_help() -> None:
    diagnostic = Diagnostic(
        "SEL902",
        "this loop has no bound",
        Span("m.py", 2, 11, 2, 16),
        label="runs as long as `n` is positive",
        labels=(Label(Span("m.py", 3, 9, 3, 20), "changed here"),),
        notes=("`n` comes from the batch\nand has no upper end",),
        help="give `n` a range",
    )
    assert shown(diagnostic) == block(
        """
        m.py:2:11: error[SEL902]: this loop has no bound
          |
        2 |     while n > 0:
          |           ^^^^^ runs as long as `n` is positive
        3 |         n = step(n)
          |         ----------- changed here
          |
          = note: `n` comes from the batch
                  and has no upper end
          = help: give `n` a range
        """
    )


def test_two_marks_on_one_line_and_a_gap() -> None:
    diagnostic = Diagnostic(
        "SEL901",
        "no",
        Span("m.py", 1, 5, 1, 9),
        labels=(Label(Span("m.py", 1, 10, 1, 11), "n"), Label(Span("m.py", 4, 12, 4, 13), "out")),
    )
    assert shown(diagnostic) == block(
        """
        m.py:1:5: error[SEL901]: no
          |
        1 | def pick(n):
          |          - n
          |     ^^^^
        ...
        4 |     return n
          |            - out
        """
    )


def test_a_label_in_another_file_and_one_in_a_missing_file() -> None:
    diagnostic = Diagnostic(
        "SEL913",
        "nobody reads `hiden`",
        Span("f.yaml", 1, 1, 1, 6),
        labels=(
            Label(Span("m.py", 1, 10, 1, 11), "the parameter"),
            Label(Span("gone.py", 7, 1, 7, 2), "defined here"),
        ),
    )
    text = render_text(diagnostic, {"m.py": SOURCE, "f.yaml": "hiden: 1\n"})
    assert text == block(
        """
        f.yaml:1:1: error[SEL913]: nobody reads `hiden`
          |
        1 | hiden: 1
          | ^^^^^
         --> m.py:1:10
          |
        1 | def pick(n):
          |          - the parameter
          = note: gone.py:7:1: defined here
        """
    )


def test_a_multi_line_span_marks_its_first_line() -> None:
    text = shown(Diagnostic("SEL902", "no", Span("m.py", 2, 5, 3, 20), label="loop"))
    assert text.splitlines()[-1] == "  |     ^^^^^^^^^^^^ loop (to line 3)"


def test_tabs_and_wide_characters_keep_the_marks_aligned() -> None:
    source = "\tx = '\u4e2d\u6587e\u0301' + n\n"
    column = source.index("n") + 1
    lines = shown(Diagnostic("SEL901", "no", Span("m.py", 1, column, 1, column + 1)), source)
    frame = lines.splitlines()
    assert frame[2] == "1 |     x = '\u4e2d\u6587e\u0301' + n"
    assert frame[3] == "  |" + " " * (1 + 4 + 5 + 4 + 1 + 4) + "^"


def test_spans_past_the_end() -> None:
    past_column = shown(Diagnostic("SEL900", "no", Span("m.py", 1, 90, 1, 95)))
    assert past_column.splitlines()[-1] == "  | " + " " * len("def pick(n):") + "^"
    assert shown(Diagnostic("SEL900", "no", Span("m.py", 99, 1, 99, 2))) == (
        "m.py:99:1: error[SEL900]: no"
    )
    backwards = shown(Diagnostic("SEL900", "no", Span("m.py", 1, 9, 1, 3)))
    assert backwards.splitlines()[-1].endswith("^")


def test_no_place_and_no_file() -> None:
    assert render_text(Diagnostic("SEL930", "no", NOWHERE, help="h")) == (
        "error[SEL930]: no\n  = help: h"
    )
    assert render_text(Diagnostic("SEL914", "no", Span("a.yaml", 0, 0, 0, 0))) == (
        "a.yaml: error[SEL914]: no"
    )
    missing = Span("no/such/file.py", 3, 1, 3, 2)
    assert render_text(Diagnostic("SEL908", "no", missing)) == (
        "no/such/file.py:3:1: error[SEL908]: no"
    )


def test_long_lines_are_cut_around_the_mark() -> None:
    source = "a" * 400 + "BUG" + "b" * 400
    lines = shown(Diagnostic("SEL901", "no", Span("m.py", 1, 401, 1, 404)), source).splitlines()
    assert max(map(len, lines)) < 140
    start = lines[3].index("^")
    assert lines[2][start : start + 3] == "BUG"
    assert lines[3].count("^") == 3


def test_terminal_codes_in_source_are_not_passed_on() -> None:
    text = shown(Diagnostic("SEL901", "no", Span("m.py", 1, 1, 1, 2)), "\x1b[2J\u202ex = 1\n")
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\\x1b[2J\\u202ex = 1" in text


def test_files_in_any_encoding(tmp_path: Path) -> None:
    latin = tmp_path / "latin.py"
    latin.write_bytes(b"# -*- coding: latin-1 -*-\nx = '\xe4'\n")
    assert "'\u00e4'" in render_text(Diagnostic("SEL901", "no", Span(str(latin), 2, 1, 2, 2)))
    broken = tmp_path / "broken.py"
    broken.write_bytes(b"x = '\xe4\xff'\n")
    assert "x = '" in render_text(Diagnostic("SEL900", "no", Span(str(broken), 1, 1, 1, 2)))
    assert decode(b"# coding: no-such\nx\n").endswith("x\n")
    assert decode(b"\xef\xbb\xbfx = 1\n") == "x = 1\n"


def test_several_diagnostics_end_with_a_count() -> None:
    items = [
        Diagnostic("SEL941", "careful", severity=Severity.WARNING),
        Diagnostic("SEL901", "one"),
        Diagnostic("SEL902", "two"),
    ]
    text = render_all(items)
    assert text.splitlines()[0] == "warning[SEL941]: careful"
    assert text.splitlines()[-1] == "2 errors, 1 warning; `selc explain SEL901` says more"
    assert render_all(items[:1]) == "warning[SEL941]: careful"
    assert render_all([]) == ""


def test_json_objects() -> None:
    placed = Diagnostic("SEL901", "no", Span("m.py", 2, 3, 2, 9))
    expected = {"code": "SEL901", "message": "no", "path": "m.py", "line": 2, "column": 3}
    assert error_object(placed) == expected
    nowhere = error_object(Diagnostic("SEL930", "no"))
    assert (nowhere["path"], nowhere["line"], nowhere["column"]) == (None, None, None)
    warning = Diagnostic("SEL941", "careful", severity=Severity.WARNING)
    assert errors_object([warning, placed]) == {"format": 1, "errors": [expected]}


numbers = st.integers(-3, 12)
spans = st.builds(
    Span, st.sampled_from(["m.py", "", "gone.py"]), numbers, numbers, numbers, numbers
)
words = st.text(max_size=12)


@given(
    source=st.text(max_size=60),
    diagnostic=st.builds(
        Diagnostic,
        st.just("SEL901"),
        words,
        spans,
        st.sampled_from(Severity),
        words,
        st.lists(st.builds(Label, spans, words), max_size=3).map(tuple),
        st.lists(words, max_size=2).map(tuple),
        words,
    ),
)
def test_rendering_never_raises(source: str, diagnostic: Diagnostic) -> None:
    assert "SEL901" in render_text(diagnostic, {"m.py": source})
    error_object(diagnostic)
