"""A facts file as a tree that remembers where everything stands, and the checks on its nodes."""

from __future__ import annotations

import unicodedata
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from selc.diag.diagnostic import Diagnostic, Sink
from selc.diag.span import Span
from selc.diag.suggest import closest
from selc.frontend.facts.scalars import Doubt, Plain

UNKNOWN, WRONG, MISSING, UNREADABLE = "SEL910", "SEL911", "SEL912", "SEL914"


@dataclass(frozen=True, slots=True)
class Scalar:
    """One scalar; `text` is what the file says, `doubt` why its value is not certain."""

    value: Plain
    span: Span
    text: str
    doubt: Doubt | None = None


@dataclass(frozen=True, slots=True)
class Seq:
    """A sequence."""

    items: tuple[Tree, ...]
    span: Span


class Entry(NamedTuple):
    """One entry of a mapping: where its key stands, and what it holds."""

    key: Span
    tree: Tree


@dataclass(frozen=True, slots=True)
class Map:
    """A mapping, in the order of the file."""

    entries: dict[Hashable, Entry]
    span: Span


Tree = Scalar | Seq | Map


def is_null(tree: Tree) -> bool:
    """Whether the node is a null."""
    return isinstance(tree, Scalar) and tree.value is None


def error(sink: Sink, code: str, span: Span, message: str, help_: str = "") -> None:
    """Report one error."""
    sink.add(Diagnostic(code, message, span, help=help_))


def suggest(word: str, known: Iterable[str], what: str = "known here") -> str:
    """A did-you-mean for `word`, or the list of what is known."""
    names = list(known)
    close = closest(word, names, limit=1)
    return f"did you mean `{close[0]}`?" if close else f"{what}: {', '.join(names)}"


def describe(tree: Tree) -> str:
    """What a node is, in a few words."""
    if isinstance(tree, Map):
        return "a mapping"
    if isinstance(tree, Seq):
        return "a list"
    if tree.value is None:
        return "null"
    if isinstance(tree.value, bool):
        return f"the truth value {tree.text}"
    text = tree.text if len(tree.text) <= 40 else tree.text[:37] + "..."
    return f'the text "{text}"' if isinstance(tree.value, str) else f"the number {text}"


def to_value(tree: Tree, sink: Sink) -> object:
    """The Python value of a node: lists become tuples, deep; doubtful scalars are reported."""
    if isinstance(tree, Map):
        return {key: to_value(entry.tree, sink) for key, entry in tree.entries.items()}
    if isinstance(tree, Seq):
        return tuple(to_value(item, sink) for item in tree.items)
    if tree.doubt is not None:
        error(sink, WRONG, tree.span, tree.doubt.message, tree.doubt.help)
    return tree.value


def as_map(tree: Tree, what: str, sink: Sink, help_: str = "") -> Map | None:
    """The node as a mapping, or an error."""
    if isinstance(tree, Map):
        return tree
    error(sink, WRONG, tree.span, f"{what} must be a mapping, not {describe(tree)}", help_)
    return None


def as_seq(tree: Tree, what: str, sink: Sink, help_: str = "") -> Seq | None:
    """The node as a list, or an error."""
    if isinstance(tree, Seq):
        return tree
    error(sink, WRONG, tree.span, f"{what} must be a list, not {describe(tree)}", help_)
    return None


def as_text(tree: Tree, what: str, sink: Sink, help_: str = "") -> str | None:
    """The node as a text that is not empty, or an error; doubtful scalars are texts here."""
    if isinstance(tree, Scalar) and isinstance(tree.value, str):
        if tree.text.strip():
            return tree.text.strip()
        error(sink, WRONG, tree.span, f"{what} is empty", help_)
        return None
    hint = help_
    if not hint and isinstance(tree, Scalar) and tree.value is not None:
        hint = f'write "{tree.text}" in quotes if that is what you mean'
    error(sink, WRONG, tree.span, f"{what} must be text, not {describe(tree)}", hint)
    return None


def as_int(tree: Tree, what: str, sink: Sink) -> int | None:
    """The node as an int (a truth value is none), or an error."""
    hint = ""
    if isinstance(tree, Scalar):
        if type(tree.value) is int and tree.doubt is None:
            return tree.value
        if tree.doubt is not None:
            error(sink, WRONG, tree.span, tree.doubt.message, tree.doubt.help)
            return None
        if isinstance(tree.value, float) and tree.value.is_integer():
            hint = f"write {int(tree.value)}"
    error(sink, WRONG, tree.span, f"{what} must be an integer, not {describe(tree)}", hint)
    return None


_PLAIN: Final = {"None": "null", "True": "true", "False": "false"}


def named(tree: Map, what: str, sink: Sink) -> Iterator[tuple[str, Entry]]:
    """The entries of a mapping whose keys are names; other keys are errors."""
    for key, entry in tree.entries.items():
        if isinstance(key, str) and key.strip():
            yield key, entry
            continue
        shown = "an empty name" if isinstance(key, str) else f"`{_PLAIN.get(str(key), key)}`"
        hint = "put it in quotes if that is the name" if not isinstance(key, str) else ""
        error(sink, WRONG, entry.key, f"{what} must be text, not {shown}", hint)


def spelt(tree: Map, sink: Sink) -> Map:
    """The same mapping with its names as Python reads identifiers: in normal form KC."""
    entries: dict[Hashable, Entry] = {}
    for key, entry in tree.entries.items():
        name = key if not isinstance(key, str) else unicodedata.normalize("NFKC", key)
        if name in entries:
            message = f"`{key}` and another name here are one name to Python, `{name}`"
            error(sink, WRONG, entry.key, message, "remove one of them")
        entries[name] = entry
    return Map(entries, tree.span)


class Fields(dict[str, Entry]):
    """The known entries of a mapping; `whole` if it held no others."""

    whole = True

    def missing(self, sink: Sink, span: Span, message: str, help_: str) -> None:
        """Report what is missing, unless an unknown key may be the misspelt one."""
        if self.whole:
            error(sink, MISSING, span, message, help_)


def fields(tree: Map, known: Iterable[str], what: str, sink: Sink) -> Fields:
    """The entries of a mapping with a fixed set of keys; unknown ones are errors."""
    names, found = tuple(known), Fields()
    for key, entry in named(tree, f"a key of {what}", sink):
        if key in names:
            found[key] = entry
        else:
            error(sink, UNKNOWN, entry.key, f"unknown key `{key}` in {what}", suggest(key, names))
    found.whole = len(found) == len(tree.entries)
    return found
