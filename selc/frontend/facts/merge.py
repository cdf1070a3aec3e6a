"""Several facts files into one tree: deep, left to right, the later one wins.

Lists replace. A null replaces a value where null is a value; elsewhere it takes the entry away. The
ways to give one thing (`values` or `range`, `value` or `table`) replace each other.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from selc.diag.diagnostic import Sink
from selc.frontend.facts.tree import WRONG, Entry, Map, error, is_null

Path = tuple[Hashable, ...]

DOMAIN: Final = (
    frozenset({"values"}),
    frozenset({"range", "multiple_of"}),
    frozenset({"length", "element"}),
)
ANSWER: Final = (
    frozenset({"value"}),
    frozenset({"table"}),
    frozenset({"kind", "type", "range", "multiple_of", "values", "length", "element"}),
)


def merge(base: Map, over: Map, path: Path = ()) -> Map:
    """`over` laid over `base`; both stay as they are."""
    entries = dict(base.entries)
    for rivals in _rivals(path):
        set_here = {key for key, entry in over.entries.items() if not is_null(entry.tree)}
        given = [group for group in rivals if group & set_here]
        if given:
            for name in frozenset().union(*rivals) - frozenset().union(*given):
                entries.pop(name, None)
    for key, entry in over.entries.items():
        here = (*path, key)
        below = entries.get(key)
        if not path and is_null(entry.tree):
            continue
        if below is not None and isinstance(below.tree, Map) and isinstance(entry.tree, Map):
            entries[key] = Entry(entry.key, merge(below.tree, entry.tree, here))
        elif key in base.entries and is_null(entry.tree) and not null_is_value(here):
            entries.pop(key, None)
        else:
            entries[key] = entry
    return Map(entries, over.span)


def _rivals(path: Path) -> tuple[tuple[frozenset[str], ...], ...]:
    if len(path) != 2:
        return ()
    return {"inputs": (DOMAIN,), "functions": (ANSWER, DOMAIN)}.get(str(path[0]), ())


def null_is_value(path: Path) -> bool:
    """Whether a null at `path` is a value, rather than nothing."""
    if len(path) < 2:
        return False
    match path[0]:
        case "facts" | "globals" | "env":
            return True
        case "functions":
            return len(path) == 2 or path[2] == "value"
        case "objects":
            return len(path) > 3 and path[2] == "attrs"
        case "classes":
            return len(path) > 3 and path[2] == "given"
        case _:
            return False


def expand(tree: Map, sink: Sink) -> Map:
    """Dotted keys of the top level as nested mappings: `device.num_sms: 132`."""
    out = Map({}, tree.span)
    for key, entry in tree.entries.items():
        parts = key.split(".") if isinstance(key, str) and "." in key.strip(".") else [key]
        nested = entry
        for part in reversed(parts[1:]):
            nested = Entry(entry.key, Map({part: nested}, entry.tree.span))
        _put(out.entries, parts[0], nested, str(key), sink)
    return out


def _put(into: dict[Hashable, Entry], key: Hashable, entry: Entry, name: str, sink: Sink) -> None:
    """Add an entry; mappings join, anything else that meets is set twice."""
    below = into.get(key)
    if below is None:
        into[key] = entry
    elif isinstance(below.tree, Map) and isinstance(entry.tree, Map):
        joined = Map(dict(below.tree.entries), below.tree.span)
        for inner, other in entry.tree.entries.items():
            _put(joined.entries, inner, other, name, sink)
        into[key] = Entry(below.key, joined)
    else:
        message = f"`{name}` is set twice in this file, first on line {below.key.line}"
        error(sink, WRONG, entry.key, message, "keep one of them")
