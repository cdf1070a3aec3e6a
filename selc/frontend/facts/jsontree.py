"""JSON as a tree that remembers where everything stands, for files that are checked key by key."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Hashable
from typing import Final

from selc.diag.diagnostic import Sink
from selc.diag.span import Span
from selc.frontend.facts.jsontable import read_json
from selc.frontend.facts.tree import Entry, Map, Scalar, Seq, Tree

_TOKEN: Final = re.compile(
    r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|true|false|null|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?', re.DOTALL
)


def read_tree(text: str, path: str, sink: Sink) -> Tree | None:
    """The tree of a JSON text; None, with an error, if it is none."""
    if read_json(text, path, sink) is None:
        return None
    return _Tokens(text, path).tree()


class _Tokens:
    """The tokens of a text that is known to be JSON, read one by one."""

    def __init__(self, text: str, path: str) -> None:
        self.path = path
        self.lines = [0, *[m.end() for m in re.finditer("\n", text)]]
        self.found = list(_TOKEN.finditer(text))
        self.at = 0

    def span(self, match: re.Match[str]) -> Span:
        line = bisect_right(self.lines, match.start())
        column = match.start() - self.lines[line - 1] + 1
        return Span(self.path, line, column, line, column + len(match.group()))

    def next(self) -> re.Match[str]:
        self.at += 1
        return self.found[self.at - 1]

    def ends(self, closing: str) -> bool:
        """Pass the closing bracket, or the comma before the next item."""
        here = self.found[self.at].group()
        if here in (closing, ","):
            self.at += 1
        return here == closing

    def tree(self) -> Tree:
        first = self.next()
        word, span = first.group(), self.span(first)
        if word == "[":
            items: list[Tree] = []
            while not self.ends("]"):
                items.append(self.tree())
            return Seq(tuple(items), span)
        if word == "{":
            entries: dict[Hashable, Entry] = {}
            while not self.ends("}"):
                key = self.next()
                self.next()  # the colon
                entries[json.loads(key.group())] = Entry(self.span(key), self.tree())
            return Map(entries, span)
        return Scalar(json.loads(word), span, word.strip('"'))
