"""The sections of a merged facts tree, each checked and typed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeVar

from selc.diag.diagnostic import Sink
from selc.diag.files import Files
from selc.diag.span import Span
from selc.frontend.facts.calls import knob_of_input, read_function, read_knob
from selc.frontend.facts.inputs import read_input, read_values
from selc.frontend.facts.jsontable import read_json
from selc.frontend.facts.model import ClassesDecl, Facts, InputDecl, KnobDecl
from selc.frontend.facts.partition import read_partition
from selc.frontend.facts.selection import DOTTED, read_selection
from selc.frontend.facts.things import read_class, read_env, read_object, read_path, read_tensor
from selc.frontend.facts.tree import (
    UNREADABLE,
    WRONG,
    Entry,
    Map,
    Scalar,
    error,
    named,
    to_value,
)

SECTIONS: Final = (
    "selection", "facts", "inputs", "offer", "knobs", "tables", "functions", "env", "classes",
    "tensors", "objects", "globals", "files",
)  # fmt: skip
T = TypeVar("T")


@dataclass(slots=True)
class Reader:
    """Reads the sections of `tree`, which only holds known ones, each a mapping."""

    tree: Map
    files: Files
    layer_paths: frozenset[str]
    sink: Sink

    def read(self, layers: tuple[str, ...]) -> Facts:
        """All sections."""
        sink = self.sink
        self.resolve_conflicts()
        section = self.section("selection")
        selection = read_selection(section, sink)
        marked = bool(section.entries.keys() & {"function", "returns"})
        inputs = self.each("inputs", lambda n, e: read_input(n, e, marked, sink), dotted=True)
        settings = self.each("knobs", lambda n, e: read_knob(n, e, sink), dotted=True)
        knobs = self.knobs(inputs, settings)
        env = self.each("env", lambda n, e: read_env(n, e, sink))
        table_files = self.each("tables", self.table_path, dotted=True)
        return Facts(
            function=selection.function,
            scope=selection.scope,
            family=selection.family,
            returns=selection.returns,
            require=selection.require,
            assume=selection.assume,
            facts=self.values("facts"),
            inputs={n: _set(decl, knobs) for n, decl in inputs.items()},
            offer=self.each("offer", lambda n, e: read_values(e, f"offer for `{n}`", sink)),
            knobs=knobs,
            tables=self.tables(table_files),
            table_files=table_files,
            functions=self.each("functions", lambda n, e: read_function(n, e, sink)),
            env={name: box[0] for name, box in env.items()},
            globals=self.values("globals"),
            objects=self.each("objects", lambda n, e: read_object(n, e, sink), dotted=True),
            tensors=self.each("tensors", lambda n, e: read_tensor(n, e, sink), dotted=True),
            files=self.each("files", self.file_path),
            classes=self.classes(),
            layers=layers,
            spans=dict(spans_of(self.tree)),
            sources=self.files.digests,
            layer_keys=frozenset(self.layer_keys(self.section("facts"))),
            layer_paths=self.layer_paths,
        )

    def section(self, name: str) -> Map:
        """A section, empty if it is not there."""
        entry = self.tree.entries.get(name)
        return entry.tree if entry and isinstance(entry.tree, Map) else Map({}, self.tree.span)

    def each(
        self, name: str, read: Callable[[str, Entry], T | None], dotted: bool = False
    ) -> dict[str, T]:
        """What `read` makes of every entry of a section; `dotted` asks for names like `a.b`."""
        out: dict[str, T] = {}
        for key, entry in named(self.section(name), f"a name in `{name}`", self.sink):
            if dotted and not DOTTED.fullmatch(key):
                fixed = key.replace("-", "_")
                good = fixed != key and DOTTED.fullmatch(fixed)
                hint = f"did you mean `{fixed}`?" if good else "write a name, or names with dots"
                message = f"`{key}` in `{name}` is not a Python name"
                error(self.sink, WRONG, entry.key, message, hint)
                continue
            made = read(key, entry)
            if made is not None:
                out[key] = made
        return out

    def values(self, name: str) -> dict[str, object]:
        """A section whose entries are values."""
        boxes = self.each(name, lambda _, e: (to_value(e.tree, self.sink),), dotted=True)
        return {key: box[0] for key, box in boxes.items()}

    def knobs(
        self, inputs: dict[str, InputDecl], settings: dict[str, KnobDecl]
    ) -> dict[str, KnobDecl]:
        """The knobs of both sections: `knobs:` sets what an input of kind knob declares."""
        knobs = dict(settings)
        for name, decl in inputs.items():
            setting = settings.get(name)
            if decl.kind == "knob":
                made = knob_of_input(decl, setting, self.sink)
                knobs.pop(name, None)
                if made is not None:
                    knobs[name] = made
            elif setting is not None and decl.kind:
                message = f"knob `{name}` is an input of kind {decl.kind}"
                hint = "make the input `kind: knob`, or remove the setting"
                error(self.sink, WRONG, setting.span, message, hint)
        return knobs

    def table_path(self, name: str, entry: Entry) -> Path | None:
        """The path of a table."""
        help_ = "name a JSON file, relative to this one; write data under `facts:`"
        if isinstance(entry.tree, Scalar):
            return read_path(entry.tree, f"table `{name}`", self.sink)
        error(self.sink, WRONG, entry.tree.span, f"table `{name}` must be a path", help_)
        return None

    def tables(self, paths: dict[str, Path]) -> dict[str, object]:
        """The contents of the tables that can be read."""
        out: dict[str, object] = {}
        for name, path in paths.items():
            place = self.section("tables").entries[name].tree.span
            text = self.files.read(path, f"table `{name}`", place)
            box = None if text is None else read_json(text, str(path), self.sink)
            if box is not None:
                out[name] = box[0]
        return out

    def file_path(self, name: str, entry: Entry) -> Path | None:
        """The file or folder behind a pattern, which has to be there."""
        path = read_path(entry.tree, f"file `{name}`", self.sink)
        if path is not None and not path.exists():
            message = f"`{path}`, given for `{name}`, does not exist"
            error(self.sink, UNREADABLE, entry.tree.span, message, "check the path")
        return path

    def classes(self) -> dict[str, ClassesDecl]:
        """The bit classes; a field stands in at most one, and its file has to be there."""
        before = len(self.sink.items)
        found = self.each("classes", lambda n, e: read_class(n, e, self.sink))
        owner: dict[str, str] = {}
        for name, decl in found.items():
            for item in decl.fields:
                first = owner.setdefault(item, name)
                if first != name:
                    message = f"field `{item}` stands in the bit classes `{first}` and `{name}`"
                    error(self.sink, WRONG, decl.span, message, "keep it in one of them")
        if len(self.sink.items) > before:
            return {}
        return {name: self.partitioned(name, decl) for name, decl in found.items()}

    def partitioned(self, name: str, decl: ClassesDecl) -> ClassesDecl:
        """A bit class with what its file says, which has to be there."""
        place = self.section("classes").entries[name].tree
        at = place.entries["file"].tree.span if isinstance(place, Map) else decl.span
        text = self.files.read(decl.file, f"the file of bit class `{name}`,", at)
        if text is None:
            return decl
        return replace(decl, partition=read_partition(text, str(decl.file), self.sink))

    def resolve_conflicts(self) -> None:
        """One name is one thing; only a layer's fact gives way to what a file declares itself."""
        seen: dict[Hashable, tuple[str, Entry]] = {}
        for section in ("inputs", "tensors", "tables"):
            for name, entry in self.section(section).entries.items():
                other = seen.setdefault(name, (section, entry))
                if other[0] != section:
                    self.twice(name, section, entry, *other)
        for name, entry in self.section("knobs").entries.items():
            seen.setdefault(name, ("knobs", entry))
        for name, (section, entry) in seen.items():
            parts = str(name).split(".")
            fact = _find(self.section("facts"), parts)
            if fact is None:
                continue
            if fact.key.path in self.layer_paths and entry.key.path not in self.layer_paths:
                kept = Entry(fact.key, _without(self.section("facts"), parts))
                self.tree = Map({**self.tree.entries, "facts": kept}, self.tree.span)
            else:
                self.twice(name, section, entry, "facts", fact)

    def twice(self, name: Hashable, section: str, entry: Entry, other: str, first: Entry) -> None:
        """Report a name that two sections give."""
        message = f"`{name}` stands under `{section}` and under `{other}` ({first.key})"
        error(self.sink, WRONG, entry.key, message, "keep one of them")

    def layer_keys(self, tree: Map, prefix: str = "") -> Iterator[str]:
        """Dotted fact keys that a layer set last, with prefixes that hold nothing else."""
        for key, entry in tree.entries.items():
            name = f"{prefix}{key}"
            if isinstance(entry.tree, Map) and entry.tree.entries:
                below = set(self.layer_keys(entry.tree, f"{name}."))
                yield from below
                if all(f"{name}.{inner}" in below for inner in entry.tree.entries):
                    yield name
            elif entry.key.path in self.layer_paths:
                yield name


def _set(decl: InputDecl, knobs: dict[str, KnobDecl]) -> InputDecl:
    """An input of kind knob with its setting as default."""
    knob = knobs.get(decl.name) if decl.kind == "knob" else None
    return decl if knob is None else replace(decl, default=knob.setting)


def spans_of(tree: Map, prefix: str = "") -> Iterator[tuple[str, Span]]:
    """Where each entry of a mapping, and of mappings below it, is set."""
    for key, entry in tree.entries.items():
        name = f"{prefix}{key}"
        yield name, entry.key
        if isinstance(entry.tree, Map):
            yield from spans_of(entry.tree, f"{name}.")


def _find(tree: Map, parts: list[str]) -> Entry | None:
    entry = tree.entries.get(parts[0])
    if entry is None or len(parts) == 1:
        return entry
    return _find(entry.tree, parts[1:]) if isinstance(entry.tree, Map) else None


def _without(tree: Map, parts: list[str]) -> Map:
    entries = dict(tree.entries)
    entry = entries[parts[0]]
    if len(parts) == 1:
        del entries[parts[0]]
    else:
        assert isinstance(entry.tree, Map)
        entries[parts[0]] = Entry(entry.key, _without(entry.tree, parts[1:]))
    return Map(entries, tree.span)
