"""Tuple files and profile lines: how a generated selector writes and reads them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ._runtime import SelectionError, Symbol

_ENTRY = re.compile(r'( *)("(?:[^"\\]|\\.)*"|[^\s:"]+):(?: (.*))?')
_NUMBER = re.compile(r"(-?\d+)(e[-+]?\d+)")


def jsonable(value: Any) -> Any:
    """A value as JSON has it: tuples are lists, named constants their names."""
    if isinstance(value, Symbol):
        return value.name
    if isinstance(value, tuple):
        return [jsonable(v) for v in value]
    return value


def write_text(path: str, text: str) -> None:
    """Replace a file in one step: readers see the old text or the new one."""
    target = Path(path)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
        Path(temporary).replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise


def write_family(
    path: str, family: str, selector: str, pins: Mapping[str, Any], knobs: Mapping[str, Any]
) -> None:
    """Write one family's tuple; the entries of other families in an existing file stay."""
    families: dict[str, Any] = {}
    if Path(path).exists():
        families = dict(read_families(path))
    families[family] = {
        "selector": selector,
        "pins": {n: jsonable(v) for n, v in pins.items()},
        "knobs": {n: jsonable(v) for n, v in knobs.items()},
    }
    data = {"format": 1, "families": families}
    if str(path).endswith(".json"):
        write_text(path, json.dumps(data, indent=2) + "\n")
    else:
        write_text(path, "\n".join(_block(data, 0)) + "\n")


def family_entry(path: str, family: str, selector: str) -> dict[str, Any]:
    """The assignment that a tuple file holds for a family.

    Raises:
        SelectionError: The file has none, or one for another selector.
    """
    families = read_families(path)
    entry = families.get(family)
    if not isinstance(entry, dict):
        raise SelectionError(f"{path} has no tuple for the family {family!r}")
    if entry.get("selector") != selector:
        raise SelectionError(
            f"{path}: the tuple of {family!r} was made for another selector "
            f"({entry.get('selector')}, this one is {selector}); commit it again from this selector"
        )
    return {**(entry.get("pins") or {}), **(entry.get("knobs") or {})}


def read_families(path: str) -> dict[str, Any]:
    """The families of a tuple file, JSON or the block form that `commit` writes.

    Raises:
        SelectionError: It is no tuple file.
    """
    text = Path(path).read_text(encoding="utf-8")
    try:
        data = json.loads(text)
    except ValueError:
        data = _parse_block(text)
    families = data.get("families") if isinstance(data, dict) else None
    if not isinstance(families, dict) or data.get("format") != 1:
        raise SelectionError(
            f"{path} is not a tuple file of format 1 in a form that `commit` writes: "
            "YAML with one entry a line, or JSON"
        )
    return families


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


def _parse_block(text: str) -> Any:
    root: dict[str, Any] = {}
    stack: list[tuple[int, dict[str, Any]]] = [(-1, root)]
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _ENTRY.fullmatch(line.rstrip())
        if match is None:
            return None
        indent = len(match[1])
        while stack[-1][0] >= indent:
            stack.pop()
        key = json.loads(match[2]) if match[2].startswith('"') else match[2]
        if match[3] is None:
            child: dict[str, Any] = {}
            stack[-1][1][key] = child
            stack.append((indent, child))
            continue
        try:
            stack[-1][1][key] = json.loads(match[3])
        except ValueError:
            stack[-1][1][key] = match[3].strip().strip("'")
    return root
