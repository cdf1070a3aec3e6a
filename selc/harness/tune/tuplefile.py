"""Tuple files, as emitted selectors read them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

FORMAT: Final = 1
_NUMBER: Final = re.compile(r"(-?\d+)(e[-+]?\d+)")


def text_of(families: Mapping[str, Any], as_json: bool = False) -> str:
    """The text of a tuple file."""
    data = {"format": FORMAT, "families": dict(families)}
    if as_json:
        return json.dumps(data, indent=2) + "\n"
    return "\n".join(_block(data, 0)) + "\n"


def write(path: Path, families: Mapping[str, Any]) -> None:
    """Write a tuple file whole, or not at all."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text_of(families, path.suffix == ".json"))
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise


def jsonable(value: Any) -> Any:
    """A value as JSON has it: tuples are lists, named constants their names."""
    if isinstance(value, tuple | list):
        return [jsonable(v) for v in value]
    if isinstance(value, Mapping):
        return {str(k): jsonable(v) for k, v in value.items()}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(getattr(value, "name", value))


def _block(data: Mapping[str, Any], depth: int) -> list[str]:
    lines = []
    for key, value in data.items():
        name = key if re.fullmatch(r"[A-Za-z]\w*", key) and depth < 2 else json.dumps(key)
        if isinstance(value, dict) and value:
            lines += ["  " * depth + f"{name}:", *_block(value, depth + 1)]
        else:
            lines.append("  " * depth + f"{name}: {_scalar(value)}")
    return lines


def _scalar(value: Any) -> str:
    text = json.dumps(value)
    return _NUMBER.sub(r"\1.0\2", text) if isinstance(value, float) and "." not in text else text
