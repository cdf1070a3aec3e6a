"""YAML text to a `Tree`; bounded in size and depth, so that aliases cannot blow it up.

Imported only when a facts file is read.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from selc.diag.diagnostic import Sink
from selc.diag.span import Span
from selc.frontend.facts.scalars import Doubt, resolve
from selc.frontend.facts.tree import UNREADABLE, WRONG, Entry, Map, Scalar, Seq, Tree, error

MAX_VALUES: Final = 500_000
MAX_DEPTH: Final = 64
CORE: Final = "tag:yaml.org,2002:"
PLAIN: Final = "selc:plain"
TYPED: Final = {"int": (int,), "float": (float, int), "bool": (bool,), "null": (type(None),)}


class Loader(yaml.SafeLoader):
    """A safe loader that leaves the meaning of plain scalars to `resolve`."""

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:
        """Mark plain scalars; everything else has the tag of its shape."""
        if kind is yaml.ScalarNode:
            return PLAIN if implicit[0] else CORE + "str"
        return CORE + ("seq" if kind is yaml.SequenceNode else "map")


class TooBig(Exception):
    """The document is too large, too deep or refers to itself."""

    def __init__(self, message: str, span: Span) -> None:
        super().__init__(message)
        self.message, self.span = message, span


def parse(text: str, path: str, sink: Sink) -> Tree | None:
    """The one document of a YAML text; None if there is none, or after an error."""
    top = Span(path, 1, 1, 1, 1)
    try:
        node = Loader(text).get_single_node()
        return None if node is None else Converter(path, sink).convert(node)
    except yaml.MarkedYAMLError as e:
        mark = e.problem_mark or e.context_mark
        span = (
            Span(path, mark.line + 1, mark.column + 1, mark.line + 1, mark.column + 2)
            if mark
            else top
        )
        error(sink, UNREADABLE, span, f"this is not YAML: {_words(e)}", _next_step(e, text, span))
    except yaml.reader.ReaderError as e:
        before = text[: e.position]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        error(
            sink,
            UNREADABLE,
            Span(path, line, column, line, column + 1),
            f"the character {chr(int(e.character))!r} is not allowed in YAML",
            "remove it",
        )
    except RecursionError:
        error(sink, UNREADABLE, top, "this file is nested too deeply", "flatten it")
    except TooBig as e:
        error(sink, UNREADABLE, e.span, e.message, "write the values out, or split the file")
    return None


def _words(e: yaml.MarkedYAMLError) -> str:
    parts = [p for p in (e.context, e.problem) if p]
    return ", ".join(parts) or "syntax error"


def _next_step(e: yaml.MarkedYAMLError, text: str, span: Span) -> str:
    words = _words(e)
    lines = text.splitlines()
    line = lines[span.line - 1] if span.line <= len(lines) else ""
    if "alias" in words and "*" in line:
        return "put quotes around a name that starts with *: '*'"
    if "\\t" in words:
        return "indent with spaces, YAML takes no tabs"
    if "single document" in words:
        return "keep one document in a file, and pass several files"
    if "mapping values are not allowed" in words:
        return "put quotes around text that holds a colon"
    return "put quotes around text with special characters, and check brackets and indentation"


@dataclass(slots=True)
class Converter:
    """Turns composed nodes into trees."""

    path: str
    sink: Sink
    count: int = 0
    active: set[int] = field(default_factory=set)

    def convert(self, node: yaml.Node) -> Tree:
        """One node and all below it."""
        span = self.span(node)
        self.count += 1
        if self.count > MAX_VALUES:
            raise TooBig(f"this file expands to more than {MAX_VALUES:,} values", span)
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node, span)
        if id(node) in self.active:
            raise TooBig("this value contains itself through an alias", span)
        if len(self.active) >= MAX_DEPTH:
            raise TooBig(f"this value is nested more than {MAX_DEPTH} deep", span)
        if node.tag not in (CORE + "seq", CORE + "map"):
            self.bad_tag(node, span)
        self.active.add(id(node))
        tree: Tree
        if isinstance(node, yaml.SequenceNode):
            tree = Seq(tuple(self.convert(item) for item in node.value), span)
        else:
            assert isinstance(node, yaml.MappingNode)
            tree = Map(self.mapping(node), span)
        self.active.discard(id(node))
        return tree

    def span(self, node: yaml.Node) -> Span:
        """The place of a node; a block ends where its last line does, as near as YAML tells."""
        start, end = node.start_mark, node.end_mark
        if end.column == 0 and end.line > start.line:
            return Span(self.path, start.line + 1, start.column + 1, end.line + 1, 1)
        return Span(self.path, start.line + 1, start.column + 1, end.line + 1, end.column + 1)

    def bad_tag(self, node: yaml.Node, span: Span) -> None:
        """Refuse a tag."""
        tag = str(node.tag).replace(CORE, "!!")
        error(self.sink, WRONG, span, f"the tag {tag} is not supported", "remove it")

    def scalar(self, node: yaml.ScalarNode, span: Span) -> Scalar:
        """One scalar, by its tag."""
        text, tag = str(node.value), str(node.tag)
        if any("\ud800" <= c <= "\udfff" for c in text):
            error(self.sink, WRONG, span, "this text holds half of a surrogate pair", "remove it")
            return Scalar("", span, "")
        if tag == PLAIN:
            value, doubt = resolve(text)
            return Scalar(value, span, text, doubt)
        if tag == CORE + "str":
            return Scalar(text, span, text)
        types = TYPED.get(tag.removeprefix(CORE))
        if types is None:
            self.bad_tag(node, span)
            return Scalar(text, span, text)
        value, doubt = resolve(text)
        if type(value) not in types:
            name = tag.removeprefix(CORE)
            doubt = doubt or Doubt(f"`{text}` is not a {name}", "remove the tag or mend the value")
        elif tag == CORE + "float" and isinstance(value, int):
            value = float(value)
        return Scalar(value, span, text, doubt)

    def mapping(self, node: yaml.MappingNode) -> dict[Hashable, Entry]:
        """The entries of a mapping; what `<<` merges in stands behind the mapping's own keys."""
        entries: dict[Hashable, Entry] = {}
        merged: list[Map] = []
        for key_node, value_node in node.value:
            span = self.span(key_node)
            if key_node.tag == PLAIN and key_node.value == "<<":
                merged += self.merged(value_node)
                continue
            key = self.key(key_node, span)
            if key is None:
                continue
            value = self.convert(value_node)
            if key[0] in entries:
                first = entries[key[0]].key
                error(
                    self.sink,
                    WRONG,
                    span,
                    f"`{key_node.value if isinstance(key_node, yaml.ScalarNode) else key[0]}` "
                    f"is set twice in one mapping, first on line {first.line}",
                    "keep one of them",
                )
                continue
            entries[key[0]] = Entry(span, value)
        for other in merged:
            for name, entry in other.entries.items():
                entries.setdefault(name, entry)
        return entries

    def merged(self, node: yaml.Node) -> list[Map]:
        """The mappings that a `<<` key names."""
        tree = self.convert(node)
        parts = tree.items if isinstance(tree, Seq) else (tree,)
        maps = [p for p in parts if isinstance(p, Map)]
        if len(maps) < len(parts):
            error(
                self.sink,
                WRONG,
                tree.span,
                "`<<` takes a mapping or a list of mappings",
                "name an anchored mapping: <<: *name",
            )
        return maps

    def key(self, node: yaml.Node, span: Span) -> tuple[Hashable] | None:
        """A key in a box, or None after an error."""
        tree = self.convert(node)
        if isinstance(tree, Scalar):
            if tree.doubt is None or (isinstance(tree.value, str) and tree.text[0].isalpha()):
                if tree.value != tree.value:
                    error(self.sink, WRONG, span, "a key cannot be NaN", "use another key")
                    return None
                return (tree.value,)
            error(self.sink, WRONG, span, tree.doubt.message, tree.doubt.help)
            return None
        key = _tuple_key(tree)
        if key is None:
            error(
                self.sink,
                WRONG,
                span,
                "a key must be a scalar or a list of scalars",
                "put quotes around it if it is text",
            )
            return None
        return (key,)


def _tuple_key(tree: Tree) -> tuple[Hashable, ...] | None:
    if not isinstance(tree, Seq):
        return None
    parts: list[Hashable] = []
    for item in tree.items:
        part = item.value if isinstance(item, Scalar) else _tuple_key(item)
        if part is None and not (isinstance(item, Scalar) and item.doubt is None):
            return None
        parts.append(part)
    return tuple(parts)
