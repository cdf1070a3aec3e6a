"""Tensors, objects, bit classes and environment variables."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from selc.diag.diagnostic import Sink
from selc.frontend.facts.inputs import check_value
from selc.frontend.facts.merge import expand
from selc.frontend.facts.model import ClassesDecl, ObjectDecl, TensorDecl
from selc.frontend.facts.selection import read_expression, read_target
from selc.frontend.facts.tree import (
    MISSING,
    WRONG,
    Entry,
    Scalar,
    Tree,
    as_int,
    as_map,
    as_seq,
    as_text,
    describe,
    error,
    fields,
    named,
    suggest,
    to_value,
)

DTYPES: Final = (
    "float64", "float32", "float16", "bfloat16", "double", "float", "half",
    "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8",
    "long", "int", "short", "bool", "complex32", "complex64", "complex128", "cfloat", "cdouble",
    "chalf", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
    "float8_e8m0fnu", "float4_e2m1fn_x2", "qint8", "quint8", "qint32", "quint4x2", "quint2x4",
    *(f"{sign}int{n}" for sign in ("", "u") for n in range(1, 8)),
    *(f"bits{n}" for n in ("1x8", "2x4", "4x2", "8", "16")),
)  # fmt: skip


def read_tensor(name: str, entry: Entry, sink: Sink) -> TensorDecl | None:
    """One entry of `tensors:`."""
    what = f"tensor `{name}`"
    example = f"write `{name}: {{shape: [num_tokens, 4096], dtype: torch.bfloat16}}`"
    tree = as_map(entry.tree, what, sink, example)
    if tree is None:
        return None
    found = fields(tree, ("shape", "dtype", "device", "strides"), what, sink)
    for key in ("shape", "dtype"):
        if key not in found:
            found.missing(sink, entry.key, f"{what} has no {key}", example)
    shape = _sizes(found["shape"].tree, f"shape of {what}", sink) if "shape" in found else None
    dtype = _dtype(found["dtype"].tree, f"dtype of {what}", sink) if "dtype" in found else None
    device = strides = None
    if "device" in found:
        device = as_text(found["device"].tree, f"device of {what}", sink)
    if "strides" in found:
        place = found["strides"].tree
        strides = _sizes(place, f"strides of {what}", sink)
        if shape is not None and strides is not None and len(strides) != len(shape):
            message = f"{what} has {len(shape)} dimensions and {len(strides)} strides"
            error(sink, WRONG, place.span, message, "give one stride for each dimension")
    if shape is None or dtype is None:
        return None
    return TensorDecl(shape, dtype, device, strides, entry.key)


def _sizes(tree: Tree, what: str, sink: Sink) -> tuple[object, ...] | None:
    seq = as_seq(tree, what, sink, "write a list of integers and expressions")
    if seq is None:
        return None
    sizes: list[object] = []
    for item in seq.items:
        size: object
        if isinstance(item, Scalar) and isinstance(item.value, str) and item.doubt is None:
            expr = read_expression(item, f"an entry of {what}", sink)
            size = expr and expr.text
        else:
            size = as_int(item, f"an entry of {what}", sink)
            if isinstance(size, int) and size < 0:
                message = f"an entry of {what} cannot be negative"
                error(sink, WRONG, item.span, message, "write 0 or more")
                size = None
        if size is not None:
            sizes.append(size)
    return tuple(sizes) if len(sizes) == len(seq.items) else None


def _dtype(tree: Tree, what: str, sink: Sink) -> str | None:
    text = as_text(tree, what, sink, "write one, such as torch.bfloat16")
    if text is None:
        return None
    bare = text.removeprefix("torch.")
    if bare in DTYPES:
        return f"torch.{bare}"
    names = [f"torch.{d}" for d in DTYPES]
    hint = suggest(f"torch.{bare}", names)
    hint = hint if hint.startswith("did") else "write one, such as torch.bfloat16"
    error(sink, WRONG, tree.span, f"`{text}` is no {what}", hint)
    return None


def read_object(name: str, entry: Entry, sink: Sink) -> ObjectDecl | None:
    """One entry of `objects:`."""
    what = f"object `{name}`"
    example = f'write `{name}: {{class: "package.module:Class", attrs: {{...}}}}`'
    tree = as_map(entry.tree, what, sink, example)
    if tree is None:
        return None
    found = fields(tree, ("class", "attrs"), what, sink)
    if not tree.entries:
        error(sink, MISSING, entry.key, f"{what} has neither class nor attrs", example)
        return None
    cls: str | None = None
    attrs: dict[str, object] = {}
    if "class" in found:
        cls = read_target(found["class"].tree, f"class of {what}", sink)
    if "attrs" in found:
        inner = as_map(found["attrs"].tree, f"attrs of {what}", sink)
        inner = inner and expand(inner, sink)
        for key, place in named(inner, f"an attribute of {what}", sink) if inner else ():
            attrs[key] = to_value(place.tree, sink)
    return ObjectDecl(cls, attrs, entry.key)


def read_class(name: str, entry: Entry, sink: Sink) -> ClassesDecl | None:
    """One entry of `classes:`."""
    what = f"bit class `{name}`"
    example = f"write `{name}: {{fields: [a, b], file: classes/{name}.json}}`"
    tree = as_map(entry.tree, what, sink, example)
    if tree is None:
        return None
    found = fields(tree, ("fields", "file", "given"), what, sink)
    for key in ("fields", "file"):
        if key not in found:
            found.missing(sink, entry.key, f"{what} has no {key}", example)
    names = _field_names(found["fields"].tree, what, sink) if "fields" in found else None
    file = read_path(found["file"].tree, f"file of {what}", sink) if "file" in found else None
    given: dict[str, object] = {}
    if "given" in found:
        inner = as_map(found["given"].tree, f"given of {what}", sink)
        for key, place in named(inner, f"a field in given of {what}", sink) if inner else ():
            given[key] = to_value(place.tree, sink)
            check_value(given[key], place.tree, None, f"`{key}` in given of {what}", sink)
            if names and key in names:
                message = f"`{key}` is both a field of {what} and given"
                error(sink, WRONG, place.key, message, "keep it in one of the two")
    if names is None or file is None:
        return None
    return ClassesDecl(names, file, given, entry.key)


def _field_names(tree: Tree, what: str, sink: Sink) -> tuple[str, ...] | None:
    seq = as_seq(tree, f"fields of {what}", sink, "write a list of field names")
    if seq is None:
        return None
    if not seq.items:
        error(sink, WRONG, seq.span, f"fields of {what} is empty", "name at least one field")
        return None
    names: list[str] = []
    for item in seq.items:
        name = as_text(item, f"a field of {what}", sink)
        if name in names:
            error(sink, WRONG, item.span, f"field `{name}` of {what} is named twice", "keep one")
        elif name is not None:
            names.append(name)
    return tuple(names) if len(names) == len(seq.items) else None


def read_path(tree: Tree, what: str, sink: Sink) -> Path | None:
    """A path, relative to the file that says it."""
    text = as_text(tree, what, sink, "write a path, relative to this file")
    if text is None:
        return None
    if "\0" in text:
        error(sink, WRONG, tree.span, f"{what} is no path", "remove the NUL character")
        return None
    return Path(tree.span.path).parent / text


def read_env(name: str, entry: Entry, sink: Sink) -> tuple[str | None] | None:
    """One environment variable in a box; numbers count as they are written, null is unset."""
    tree = entry.tree
    if isinstance(tree, Scalar):
        if tree.value is None:
            return (None,)
        if not isinstance(tree.value, bool):
            return (tree.text,)
    number = (
        {"true": '"1"', "false": '"0"'}.get(tree.text.lower()) if isinstance(tree, Scalar) else ""
    )
    hint = (
        f"write the text, such as {number}, or null for unset" if number else "write text or null"
    )
    message = f"environment variable `{name}` must be text, not {describe(tree)}"
    error(sink, WRONG, tree.span, message, hint)
    return None
