"""Runs a selection's own function under CPython, in a process of its own: the reference for G0.

Read from standard input, as a Python literal: `{path, function, known, calls}`. `known` and each
call map names to values; a call's names come first. Written to standard output, as a literal: for
every call the selected fields by name, or the name of the exception. Imports nothing of selc.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib.util
import inspect
import sys
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any


def main() -> None:
    """Answer one request."""
    request = ast.literal_eval(sys.stdin.read())
    function = load(Path(request["path"]), request["function"])
    out: list[Any] = []
    for call in request["calls"]:
        arguments = bound(function, {**request["known"], **call})
        try:
            result = function(**arguments)
        except Exception as error:  # noqa: BLE001  # whatever it raises, it did not return
            out.append(type(error).__name__)
        else:
            out.append(dict(flat(result, "")))
    sys.stdout.write(repr(out))


def load(path: Path, name: str) -> Any:
    """The function of that name in a file."""
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part)
    return found


def bound(function: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of one call; records are made of the values of their fields."""
    hints = typing.get_type_hints(function)
    out = {}
    for name, parameter in inspect.signature(function).parameters.items():
        hint = hints.get(name)
        if dataclasses.is_dataclass(hint):
            out[name] = record(hint, (name,), values)
        elif name in values:
            out[name] = values[name]
        elif parameter.default is inspect.Parameter.empty:
            raise SystemExit(f"no value is known for the parameter {name}")
    return out


def record(cls: Any, path: tuple[str, ...], values: Mapping[str, Any]) -> Any:
    """One record; fields that nothing is known of are never read, and None."""
    hints = typing.get_type_hints(cls)
    fields = {}
    for field in dataclasses.fields(cls):
        here = (*path, field.name)
        if dataclasses.is_dataclass(hints[field.name]):
            fields[field.name] = record(hints[field.name], here, values)
        else:
            fields[field.name] = looked_up(here, values)
    return cls(**fields)


def looked_up(path: tuple[str, ...], values: Mapping[str, Any]) -> Any:
    """A value by its whole path, or without the parameter, or by its last part."""
    for start in range(len(path)):
        flat = ".".join(path[start:])
        if flat in values:
            return values[flat]
        found: Any = values
        for part in path[start:]:
            found = found.get(part) if isinstance(found, Mapping) else None
        if found is not None:
            return found
    return None


def flat(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """A result by the names of its points."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    elif hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        for part, inner in value.items():
            yield from flat(inner, f"{name}.{part}" if name else str(part))
            yield (f"{name}.{part}" if name else str(part)), plain(inner)
    elif isinstance(value, (tuple, list)):
        for i, inner in enumerate(value):
            yield from flat(inner, f"{name}[{i}]")
    yield name or "result", plain(value)


def plain(value: Any) -> Any:
    """A value as a literal: sequences are tuples, what is no literal is its name."""
    if isinstance(value, (tuple, list)):
        return tuple(plain(v) for v in value)
    if value is None or type(value) in (bool, int, float, str):
        return value
    return ("object", str(value))


if __name__ == "__main__":
    main()
