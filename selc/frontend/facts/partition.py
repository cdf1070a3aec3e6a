"""Partitions of configurations into bit classes: files of `selc bits --classes`, read strictly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from selc.diag.diagnostic import Sink
from selc.diag.span import Span
from selc.frontend.facts.jsontree import read_tree
from selc.frontend.facts.model import typed_key
from selc.frontend.facts.tree import (
    UNKNOWN,
    WRONG,
    Entry,
    Fields,
    Map,
    Scalar,
    Tree,
    as_map,
    as_seq,
    as_text,
    describe,
    error,
    fields,
    is_null,
    named,
    to_value,
)

FORMAT: Final = 1
EVIDENCE: Final = ("measured", "proved")
_KEYS: Final = (
    *("format", "family", "fields", "device", "dtype", "kernel", "versions", "given", "classes"),
)
_NEEDED: Final = ("format", "fields", "device", "dtype", "kernel", "versions", "classes")
_CLASS_KEYS: Final = ("name", "members", "representative", "evidence", "shapes", "seeds")
_AGAIN: Final = "make the file again with `selc bits --classes`"

Member = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Class:
    """Configurations with equal bits, the representative first, and how that is known."""

    name: str
    members: tuple[Member, ...]
    evidence: str
    shapes: object
    seeds: object


@dataclass(frozen=True, slots=True)
class Partition:
    """What one file says: the classes, and the deployment that they are bound to."""

    fields: tuple[str, ...]
    family: str | None
    device: str
    dtype: str
    kernel: str
    versions: Mapping[str, str | None]
    given: Mapping[str, object]
    classes: tuple[Class, ...]


def read_partition(text: str, path: str, sink: Sink) -> Partition | None:
    """The partition in a JSON text; None, with errors at its lines, if something is wrong."""
    before = len(sink.items)
    tree = read_tree(text, path, sink)
    whole = None if tree is None else as_map(tree, "a partition", sink, _AGAIN)
    if whole is None:
        return None
    made = _Reader(sink).partition(whole)
    return made if len(sink.items) == before else None


@dataclass(slots=True)
class _Reader:
    sink: Sink

    def partition(self, whole: Map) -> Partition | None:
        found = fields(whole, _KEYS, "a partition", self.sink)
        self.need(found, _NEEDED, whole.span, "the partition")
        if "format" in found:
            self.format(found["format"].tree)
        names = self.names(found["fields"].tree) if "fields" in found else ()
        texts = {k: self.text(found, k) for k in ("family", "device", "dtype", "kernel")}
        classes = self.classes(found["classes"].tree, names) if "classes" in found else ()
        return Partition(
            names,
            texts["family"] or None,
            texts["device"],
            texts["dtype"],
            texts["kernel"],
            self.versions(found),
            self.given(found, names),
            classes,
        )

    def need(self, found: Fields, wanted: tuple[str, ...], span: Span, what: str) -> None:
        for key in wanted:
            if key not in found:
                found.missing(self.sink, span, f"{what} has no `{key}`", _AGAIN)

    def format(self, tree: Tree) -> None:
        if not (isinstance(tree, Scalar) and type(tree.value) is int and tree.value == FORMAT):
            message = f"the partition has format {_shown(tree)}; selc reads {FORMAT}"
            error(self.sink, WRONG, tree.span, message, _AGAIN)

    def text(self, found: Fields, key: str) -> str:
        if key not in found:
            return ""
        return as_text(found[key].tree, f"`{key}`", self.sink, _AGAIN) or ""

    def names(self, tree: Tree) -> tuple[str, ...]:
        seq = as_seq(tree, "`fields`", self.sink, "write the names of the fields")
        out: list[str] = []
        for item in seq.items if seq else ():
            name = as_text(item, "a field", self.sink, _AGAIN)
            if name in out:
                error(self.sink, WRONG, item.span, f"the field `{name}` is named twice", _AGAIN)
            out.append(name or "")
        if seq and not out:
            error(self.sink, WRONG, seq.span, "`fields` is empty", _AGAIN)
        return tuple(out)

    def versions(self, found: Fields) -> dict[str, str | None]:
        if "versions" not in found:
            return {}
        tree = as_map(found["versions"].tree, "`versions`", self.sink, _AGAIN)
        out: dict[str, str | None] = {}
        for key, entry in named(tree, "a package", self.sink) if tree else ():
            what = f"the version of {key}"
            out[key] = None if is_null(entry.tree) else as_text(entry.tree, what, self.sink, _AGAIN)
        for key in ("torch", "triton"):
            if tree and key not in out:
                message = f"`versions` lacks {key}"
                error(self.sink, WRONG, tree.span, message, "write its version, or null for none")
        return out

    def given(self, found: Fields, names: tuple[str, ...]) -> dict[str, object]:
        if "given" not in found:
            return {}
        tree = as_map(found["given"].tree, "`given`", self.sink, _AGAIN)
        out: dict[str, object] = {}
        for key, entry in named(tree, "a field", self.sink) if tree else ():
            out[key] = self.value(entry.tree, f"`{key}` in `given`")
            if key in names:
                message = f"`{key}` is both a field of the classes and given"
                error(self.sink, WRONG, entry.key, message, "keep it in one of the two")
        return out

    def classes(self, tree: Tree, names: tuple[str, ...]) -> tuple[Class, ...]:
        seq = as_seq(tree, "`classes`", self.sink, _AGAIN)
        if seq is None:
            return ()
        if not seq.items:
            error(self.sink, WRONG, seq.span, "`classes` is empty", _AGAIN)
        owner: dict[object, Span] = {}
        taken: dict[str, Span] = {}
        out = []
        for k, item in enumerate(seq.items):
            made = self.one(item, k, names, owner)
            if made is None:
                continue
            if made.name in taken:
                message = f"the class `{made.name}` is named twice, first at {taken[made.name]}"
                error(self.sink, WRONG, item.span, message, "give each class a name of its own")
            taken.setdefault(made.name, item.span)
            out.append(made)
        return tuple(out)

    def one(
        self, tree: Tree, k: int, names: tuple[str, ...], owner: dict[object, Span]
    ) -> Class | None:
        whole = as_map(tree, "a class", self.sink, _AGAIN)
        if whole is None:
            return None
        found = fields(whole, _CLASS_KEYS, "a class", self.sink)
        self.need(found, ("members", "evidence"), whole.span, "the class")
        name = self.text(found, "name") or f"c{k}"
        members = self.members(found, names, owner)
        evidence = self.text(found, "evidence")
        if evidence and evidence not in EVIDENCE:
            span, hint = found["evidence"].tree.span, f"write {' or '.join(EVIDENCE)}"
            error(self.sink, UNKNOWN, span, f"there is no evidence `{evidence}`", hint)
        for key in ("shapes", "seeds") if evidence == "measured" else ():
            if key not in found:
                message = f"the class `{name}` is measured and does not say at which {key}"
                error(self.sink, WRONG, whole.span, message, _AGAIN)
        first = (
            self.representative(found["representative"], names, members)
            if ("representative" in found)
            else None
        )
        if first is not None:
            rest = [m for m in members if typed_key(m) != typed_key(first)]
            members = (first, *rest)
        said = {k: to_value(e.tree, self.sink) for k, e in found.items() if k in _CLASS_KEYS[4:]}
        return Class(name, members, evidence, said.get("shapes"), said.get("seeds"))

    def members(
        self, found: Fields, names: tuple[str, ...], owner: dict[object, Span]
    ) -> tuple[Member, ...]:
        if "members" not in found:
            return ()
        seq = as_seq(found["members"].tree, "`members`", self.sink, _AGAIN)
        if seq is None:
            return ()
        if not seq.items:
            error(self.sink, WRONG, seq.span, "the class has no members", "leave the class out")
        out = []
        for item in seq.items:
            member = self.member(item, names, "a member")
            if member is None:
                continue
            first = owner.setdefault(typed_key(member), item.span)
            if first is not item.span:
                message = f"{_text(member)} stands in the partition twice, first at {first}"
                error(self.sink, WRONG, item.span, message, "a configuration is in one class")
            out.append(member)
        return tuple(out)

    def member(self, tree: Tree, names: tuple[str, ...], what: str) -> Member | None:
        seq = as_seq(tree, what, self.sink, f"write one value for each of {', '.join(names)}")
        if seq is None:
            return None
        if names and len(seq.items) != len(names):
            message = f"{what} has {len(seq.items)} values for {len(names)} fields"
            error(self.sink, WRONG, seq.span, message, f"the fields are {', '.join(names)}")
            return None
        return tuple([self.value(item, f"a value of {what}") for item in seq.items])

    def representative(
        self, entry: Entry, names: tuple[str, ...], members: tuple[Member, ...]
    ) -> Member | None:
        made = self.member(entry.tree, names, "the representative")
        if made is not None and typed_key(made) not in map(typed_key, members):
            message = f"the representative {_text(made)} is no member of its class"
            error(self.sink, WRONG, entry.tree.span, message, "choose one of the members")
        return made

    def value(self, tree: Tree, what: str) -> object:
        if isinstance(tree, Scalar) and not isinstance(tree.value, float):
            return tree.value
        message = f"{what} is {describe(tree)}"
        hint = "values are integers, truth values, texts or null"
        error(self.sink, WRONG, tree.span, message, hint)
        return None


def _shown(tree: Tree) -> str:
    return tree.text if isinstance(tree, Scalar) else describe(tree)


def _text(member: Member) -> str:
    return "(" + ", ".join(map(repr, member)) + ")"
