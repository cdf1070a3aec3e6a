"""YAML with places: small description files, read so that errors can point at what is wrong."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from selc.diag.diagnostic import Diagnostic, Refused, Sink
from selc.diag.files import Files
from selc.diag.span import Span

CODE: Final = "SEL957"
MAX_DEPTH: Final = 8
MAX_VALUES: Final = 100_000


@dataclass(frozen=True, slots=True)
class Placed:
    """A value with its place: a scalar, a tuple of values, or a mapping of names to them."""

    value: Any
    span: Span
    key: Span
    """Of the name that it stands under."""

    @property
    def entries(self) -> Mapping[str, Placed]:
        """What a mapping holds; nothing for other values."""
        return self.value if isinstance(self.value, dict) else {}


def wrong(message: str, span: Span, hint: str) -> Refused:
    """An error in a description."""
    return Refused(Diagnostic(CODE, message, span, help=hint))


def read(path: Path) -> Placed:
    """A file's one mapping.

    Raises:
        Refused: it cannot be read, or is no mapping.
    """
    trouble = Sink()
    text = Files(trouble).read(path, "description")
    if text is None:
        raise Refused(*trouble)
    return parse(text, str(path))


def parse(text: str, path: str) -> Placed:
    """The one mapping of a YAML text.

    Raises:
        Refused: it is not one.
    """
    import yaml

    top = Span(path, 1, 1, 1, 1)
    loader = yaml.SafeLoader("")
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        found = None if node is None else _Reader(path, loader).placed(node, top, 0)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        words = ", ".join(w for w in (error.context, error.problem) if w)
        span = top if mark is None else _at(path, mark.line, mark.column)
        raise wrong(f"this is not YAML: {words}", span, "check brackets and indentation") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise wrong(f"this is not YAML: {error}", top, "save it as plain YAML") from None
    finally:
        loader.dispose()
    if found is None or not isinstance(found.value, dict):
        raise wrong("a description is a mapping", top, "write it as `key: value` lines")
    return found


def merged(below: Placed, above: Placed, groups: Collection[str] = ()) -> Placed:
    """Two mappings as one: the second's values win, those of `groups` name by name."""
    entries = dict(below.entries)
    for name, value in above.entries.items():
        both = name in groups and name in entries and isinstance(value.value, dict)
        entries[name] = merged(entries[name], value) if both else value
    return Placed(entries, above.span, above.key)


def _at(path: str, line: int, column: int) -> Span:
    return Span(path, line + 1, column + 1, line + 1, column + 2)


class _Reader:
    def __init__(self, path: str, loader: Any) -> None:
        self.path, self.loader, self.count = path, loader, 0

    def placed(self, node: Any, key: Span, depth: int) -> Placed:
        """A node and what is below it, with the place of the name before it."""
        span = self.span(node)
        self.count += 1
        if depth > MAX_DEPTH or self.count > MAX_VALUES:
            raise wrong("this is nested too deeply, or too much", span, "flatten it")
        if node.id == "scalar":
            return Placed(self.scalar(node, span), span, key)
        if node.id == "sequence":
            items = tuple(self.placed(item, span, depth + 1) for item in node.value)
            return Placed(items, span, key)
        entries: dict[str, Placed] = {}
        for name_node, value in node.value:
            place = self.span(name_node)
            name = self.scalar(name_node, place) if name_node.id == "scalar" else None
            if not isinstance(name, str):
                raise wrong("a key of a description is a name", place, "write it as text")
            if name in entries:
                raise wrong(f"`{name}` is set twice", place, "keep one of them")
            entries[name] = self.placed(value, place, depth + 1)
        return Placed(entries, span, key)

    def scalar(self, node: Any, span: Span) -> Any:
        """The value of a scalar; numbers like 1e3 are numbers."""
        try:
            value = self.loader.construct_object(node)
        except Exception:  # noqa: BLE001  a tag that a safe loader does not have, an odd date
            raise wrong(f"`{node.value}` has no meaning here", span, "remove the tag") from None
        if isinstance(value, str) and node.style is None:
            try:
                return float(value)
            except ValueError:
                return value
        return value

    def span(self, node: Any) -> Span:
        """Where a node stands; one character for what goes over several lines."""
        start, end = node.start_mark, node.end_mark
        if end.line != start.line:
            return _at(self.path, start.line, start.column)
        return Span(self.path, start.line + 1, start.column + 1, end.line + 1, end.column + 1)
