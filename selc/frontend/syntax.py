"""Python text to stdlib `ast` nodes, through libcst.

The nodes and their places are those of CPython's `ast.parse`, with two differences: columns count
characters (not UTF-8 bytes), and the pieces of an f-string have places of their own (see
`syntax_strings`). libcst reads newer syntax than the running Python; what has no `ast` node in
Python 3.11 is refused, and so is the one form that libcst lacks: `(name): annotation`.
"""

from __future__ import annotations

import ast
import re
import warnings

from selc.diag.diagnostic import Refused
from selc.frontend.syntax_tokens import Tokens, syntax_error, tokenize

_MOST_TOKENS = 2000  # of one comma-free expression; the parser's own stack ends at some 10,000
_PLACE = re.compile(r"error at (\d+):(\d+)")


def parse_statements(text: str, path: str, first_line: int = 1) -> list[ast.stmt]:
    """Parse `text`, whose first line is line `first_line` of the file `path`.

    Raises `Refused` (SEL900) for what is not Python or newer Python than is supported.
    """
    text = text.removeprefix("\ufeff")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    tokens = tokenize(text, path, first_line)
    if not tokens.text:
        return []
    if tokens.longest > _MOST_TOKENS or tokens.text.count("elif") > _MOST_TOKENS:
        raise _too_deep(tokens, tokens.longest_at)
    import libcst as cst

    from selc.frontend.syntax_stmt import Statements

    try:
        module = cst.parse_module(text)
        reader = Statements(tokens)
        statements = reader.suite(module.body)
    except cst.ParserSyntaxError as error:
        raise _not_python(error.message, tokens, first_line) from None
    except cst.CSTValidationError as error:
        raise syntax_error(path, tokens.line[0], tokens.column[0], str(error)) from None
    except RecursionError:
        raise _too_deep(tokens, 0) from None
    if reader.i != len(tokens.text):
        raise reader.refuse(f"this syntax is not understood near {tokens.text[reader.i]!r}")
    return statements


def check(statements: list[ast.stmt], path: str, first_line: int) -> None:
    """Refuse what parses and is no Python all the same: a `break` without a loop, a name twice."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(ast.Module(statements, []), path, "exec", dont_inherit=True)
    except SyntaxError as error:
        place = (error.lineno or first_line, (error.offset or 1) - 1)
        raise syntax_error(path, *place, error.msg) from None
    except (RecursionError, MemoryError):
        message = "this statement is nested too deeply"
        hint = "Split it into several statements."
        raise syntax_error(path, first_line, 0, message, hint) from None


def _too_deep(tokens: Tokens, place: int) -> Refused:
    message = "this statement is nested too deeply"
    hint = "Split it into several statements."
    return syntax_error(tokens.path, tokens.line[place], tokens.column[place], message, hint)


def _not_python(message: str, tokens: Tokens, first_line: int) -> Refused:
    """Place a syntax error on the token that the parser could not use."""
    found = _PLACE.search(message)
    if found is None:
        words = message.partition("error: ")[2] or message
        line = _first_bad_line(tokens, words) + first_line
        column = next(
            (c for at, c in zip(tokens.line, tokens.column, strict=True) if at >= line), 0
        )
        return syntax_error(tokens.path, line, column, words)
    place = (int(found[1]) + first_line - 1, int(found[2]))
    bad = 0
    for index in range(len(tokens.text)):
        if _place(tokens, index) >= place:
            break
        bad = index
    if "expected INDENT" in message:
        return syntax_error(
            tokens.path, tokens.line[bad], tokens.column[bad], "an indented block is expected"
        )
    follower = bad + 1
    if follower in tokens.logical and place[1] > 0 and _place(tokens, follower) == place:
        return syntax_error(tokens.path, *place, "this line is indented without a reason")
    ends_early = place[0] > tokens.end_line[bad]
    what = "the line ends too early or" if ends_early else ""
    text = f"{what} {tokens.text[bad]!r} is not expected here".strip()
    return syntax_error(tokens.path, tokens.line[bad], tokens.column[bad], text)


def _place(tokens: Tokens, index: int) -> tuple[int, int]:
    return tokens.line[index], tokens.column[index]


def _first_bad_line(tokens: Tokens, words: str) -> int:
    """The 0-based line where the tokenizer of the parser first complains in these words."""
    import libcst as cst

    lines = tokens.source.split("\n")
    low, high = 1, len(lines)
    while low < high:
        middle = (low + high) // 2
        try:
            cst.parse_module("\n".join(lines[:middle]) + "\n")
            bad = False
        except cst.ParserSyntaxError as error:
            bad = words in error.message
        low, high = (low, middle) if bad else (middle + 1, high)
    return low - 1
