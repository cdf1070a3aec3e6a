"""The file that `classes:` facts take."""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from selc.harness.bits.classes import Case, Found
from selc.harness.bits.configurations import Member, typed

FORMAT: Final = 1


def partition(
    family: str,
    fields: Sequence[str],
    given: Mapping[str, Any],
    found: Found,
    bound: Mapping[str, Any],
) -> dict[str, Any]:
    """The whole file. Classes and members stand in the order of their values."""
    shapes = shapes_of(found.tried)
    seeds = sorted({case.seed for case in found.tried})
    classes = []
    for number, members in enumerate(found.classes):
        one: dict[str, Any] = {"name": f"c{number}", "members": [list(m) for m in members]}
        first = chosen_most(members, fields, found.tried)
        if first is not None:
            one["representative"] = list(first)
        classes.append({**one, "evidence": "measured", "shapes": shapes, "seeds": seeds})
    head = {"format": FORMAT, "family": family, "fields": list(fields)}
    return {**head, **bound, "dtype": found.dtype, "given": dict(given), "classes": classes}


def shapes_of(cases: Sequence[Case]) -> list[dict[str, Any]]:
    """The batches that were tried, with the magnitudes of their data."""
    out: dict[str, dict[str, Any]] = {}
    for case in cases:
        shape = {**case.shape.inputs, "requests": len(case.shape.batch)}
        shape["magnitude"] = case.magnitude
        out.setdefault(json.dumps(shape, sort_keys=True, default=str), shape)
    return list(out.values())


def chosen_most(
    members: Sequence[Member], fields: Sequence[str], cases: Sequence[Case]
) -> Member | None:
    """The member that the tuple chooses on most of the cases; the first of several."""
    by_key = {typed(m): m for m in members}
    keys = (typed(tuple(case.base[f] for f in fields)) for case in cases)
    counts = Counter(key for key in keys if key in by_key)
    if not counts:
        return None
    most = max(counts.values())
    return by_key[min(key for key, count in counts.items() if count == most)]


def write(path: Path, content: Mapping[str, Any]) -> None:
    """Write a file whole, or not at all; a line for each configuration and each batch."""
    text = _text(content)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _text(content: Mapping[str, Any]) -> str:
    head = [f" {json.dumps(k)}: {json.dumps(v)}" for k, v in content.items() if k != "classes"]
    classes = []
    for each in content["classes"]:
        parts = []
        for key, value in each.items():
            if key in ("members", "shapes"):
                rows = ",\n".join(f"    {json.dumps(row)}" for row in value)
                parts.append(f'   "{key}": [\n{rows}\n   ]')
            else:
                parts.append(f"   {json.dumps(key)}: {json.dumps(value)}")
        classes.append("  {\n" + ",\n".join(parts) + "\n  }")
    body = ' "classes": [\n' + ",\n".join(classes) + "\n ]"
    return "{\n" + ",\n".join([*head, body]) + "\n}\n"
