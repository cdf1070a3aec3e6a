"""A cursor over the tokens that the tree walk steps along: nodes get the places of their tokens.

The walk takes exactly the tokens that each tree node stands for, so a place cannot drift: a token
that does not fit is refused at once.
"""

from __future__ import annotations

import unicodedata
from typing import Protocol, TypeVar

from selc.diag.diagnostic import Refused
from selc.frontend.syntax_tokens import Tokens, syntax_error


class Placed(Protocol):
    """Any `ast` node that has a place."""

    lineno: int
    col_offset: int


_Node = TypeVar("_Node", bound=Placed)


class Reader:
    """The cursor: `i` is the next token; `text` ends in an empty string."""

    __slots__ = ("i", "text", "tokens")

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.text = [*tokens.text, ""]
        self.i = 0

    def take(self, text: str) -> None:
        """Step over the token `text`."""
        if self.text[self.i] != text:
            raise self.refuse(f"this syntax is not understood near {self.text[self.i]!r}")
        self.i += 1

    def skip(self, text: str) -> bool:
        """Step over the token `text` if it comes next."""
        if self.text[self.i] != text:
            return False
        self.i += 1
        return True

    def name(self) -> str:
        """Take an identifier, normalized as Python does."""
        text = self.text[self.i]
        self.i += 1
        return text if text.isascii() else unicodedata.normalize("NFKC", text)

    def dotted(self) -> str:
        """Take `a.b.c`."""
        parts = [self.name()]
        while self.skip("."):
            parts.append(self.name())
        return ".".join(parts)

    def at(self, node: _Node, first: int) -> _Node:
        """Place `node` from token `first` to the last token taken."""
        return self.between(node, first, self.i - 1)

    def between(self, node: _Node, first: int, last: int) -> _Node:
        """Place `node` from token `first` to token `last`."""
        tokens = self.tokens
        node.lineno = tokens.line[first]
        node.col_offset = tokens.column[first]
        node.end_lineno = tokens.end_line[last]  # type: ignore[attr-defined]  # optional in the stubs
        node.end_col_offset = tokens.end_column[last]  # type: ignore[attr-defined]  # likewise
        return node

    def refuse(self, message: str, token: int | None = None, help_text: str = "") -> Refused:
        """A refusal at a token (the next one by default)."""
        tokens = self.tokens
        place = self.i if token is None else token
        if place >= len(tokens.text):
            place = len(tokens.text) - 1
        if place < 0:
            return syntax_error(tokens.path, 1, 0, message, help_text)
        return syntax_error(
            tokens.path, tokens.line[place], tokens.column[place], message, help_text
        )
