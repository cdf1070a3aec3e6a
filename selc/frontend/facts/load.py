"""Facts files to `Facts`: read each one, merge them left to right, then check every section."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Final

from selc.diag.diagnostic import Sink
from selc.diag.files import Files
from selc.diag.span import NOWHERE, Span
from selc.frontend.facts.merge import expand, merge
from selc.frontend.facts.model import Facts
from selc.frontend.facts.sections import SECTIONS, Reader
from selc.frontend.facts.selection import SELECTION_KEYS
from selc.frontend.facts.tree import (
    UNKNOWN,
    WRONG,
    Entry,
    Map,
    as_map,
    as_text,
    error,
    is_null,
    named,
    spelt,
    suggest,
)

_SPELT: Final = (
    *("facts", "inputs", "knobs", "offer", "tables"),
    *("functions", "globals", "objects", "tensors"),
)
"""Sections whose keys are written as in the source."""


def load_facts(paths: Sequence[Path], sink: Sink) -> Facts:
    """Read and merge facts files; what is wrong goes to `sink`, what was understood comes back."""
    found = Sink()
    files = Files(found)
    merged, layers, layer_paths = Map({}, NOWHERE), list[str](), set[str]()
    for path in paths:
        layer, tree = _one_file(path, files)
        if layer is not None:
            layers.append(layer)
            layer_paths.add(str(path))
        if tree is not None:
            merged = merge(merged, tree)
    facts = Reader(merged, files, frozenset(layer_paths), found).read(tuple(layers))
    order = {str(path): i for i, path in enumerate(paths)}
    for told in sorted(found, key=lambda d: (order.get(d.span.path, len(order)), d.span)):
        sink.add(told)
    return facts


def _one_file(path: Path, files: Files) -> tuple[str | None, Map | None]:
    """One file: its layer, and its sections with dotted facts expanded."""
    from selc.frontend.facts.yamltext import parse

    sink, before = files.sink, len(files.sink.items)
    text = files.read(path, "facts file")
    if text is None:
        return None, None
    tree = parse(text, str(path), sink)
    if tree is None:
        if len(sink.items) == before:
            top = Span(str(path), 1, 1, 1, 1)
            error(sink, WRONG, top, "this facts file is empty", "write at least one section")
        return None, None
    whole = as_map(tree, "a facts file", sink, f"start with a section: {', '.join(SECTIONS[:4])}")
    if whole is None:
        return None, None
    layer: str | None = None
    sections: dict[Hashable, Entry] = {}
    for key, entry in named(whole, "a section", sink):
        if key == "layer":
            layer = as_text(entry.tree, "layer", sink, "write the name of what is shared")
        elif key not in SECTIONS:
            hint = suggest(key, ("layer", *SECTIONS), "sections")
            if key in SELECTION_KEYS:
                hint = f"`{key}` stands under `selection:`"
            error(sink, UNKNOWN, entry.key, f"unknown section `{key}`", hint)
        elif not is_null(entry.tree):
            section = as_map(entry.tree, f"`{key}`", sink)
            if section is not None:
                section = expand(section, sink) if key == "facts" else section
                section = spelt(section, sink) if key in _SPELT else section
                sections[key] = Entry(entry.key, section)
    return layer, Map(sections, whole.span)
