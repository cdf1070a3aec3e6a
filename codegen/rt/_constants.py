"""A committed tuple as constants for production: a Python module or a C header."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ._files import jsonable
from ._runtime import Symbol


def constant_names(names: Sequence[str]) -> list[str]:
    """An upper-case identifier for each pin or knob: its last part where no other ends in it."""
    tails = [n.rsplit(".", 1)[-1] for n in names]
    picked = [t if tails.count(t) == 1 else n for n, t in zip(names, tails, strict=True)]
    out: list[str] = []
    for text in picked:
        name = re.sub(r"[^A-Z0-9]+", "_", text.upper()).strip("_") or "VALUE"
        name = name if not name[0].isdigit() else f"N{name}"
        count, chosen = 2, name
        while chosen in out or chosen in _TAKEN:
            chosen, count = f"{name}_{count}", count + 1
        out.append(chosen)
    return out


_TAKEN = frozenset({"FAMILY", "SELECTOR", "PINS", "KNOBS", "SET_PINS", "COMMITTED_H"})


def python_text(
    family: str, selector: str, pins: Mapping[str, Any], knobs: Mapping[str, Any]
) -> str:
    """The module: one constant for each pin and knob, and all of them by name."""
    names = [*pins, *knobs]
    idents = dict(zip(names, constant_names(names), strict=True))
    lines = [
        '"""The committed tuple of a kernel selection. Generated; do not edit: commit it again."""',
        "",
        f"FAMILY = {family!r}",
        f"SELECTOR = {selector!r}",
        "",
    ]
    lines += [f"{idents[n]} = {_literal(v)}  # {_safe(n)}" for n, v in {**pins, **knobs}.items()]
    for title, part in (("PINS", pins), ("KNOBS", knobs)):
        lines.append(f"{title} = {{{', '.join(f'{n!r}: {idents[n]}' for n in part)}}}")
    return "\n".join(lines) + "\n"


def header_text(
    family: str,
    selector: str,
    values: Mapping[str, Any],
    fields: Sequence[Any] | None,
) -> str:
    """The header: a macro for each pin and knob.

    With `fields`, what the members of the selector's struct of pins hold, also one that sets them.
    """
    part = re.sub(r"[^A-Za-z0-9]+", "_", family).strip("_")[:40] or "selector"
    prefix = f"SELC_{part.upper()}"
    lines = [
        "/* The committed tuple of a kernel selection. Generated; do not edit: commit it again. */",
        f"#ifndef {prefix}_COMMITTED_H",
        f"#define {prefix}_COMMITTED_H",
        "",
        f'#define {prefix}_SELECTOR "{selector}"',
    ]
    for name, ident in zip(values, constant_names(list(values)), strict=True):
        lines.append(f"#define {prefix}_{ident} {_c_text(values[name])} /* {_safe(name)} */")
    if fields is not None:
        sets = ", ".join(f"(pins)->p{k} = {_c_text(v)}" for k, v in enumerate(fields)) or "(void)0"
        lines += [
            "",
            "/* The same in the struct of selector.h; ask check_pins afterwards. */",
            f"#define {prefix}_SET_PINS(pins) ({sets})",
        ]
    return "\n".join([*lines, "", f"#endif /* {prefix}_COMMITTED_H */", ""])


def _literal(value: Any) -> str:
    if isinstance(value, Symbol):
        return repr(value.name)
    if isinstance(value, tuple):
        return "(" + "".join(f"{_literal(v)}, " for v in value) + ")"
    if isinstance(value, float) and not math.isfinite(value):
        return f"float({str(value)!r})"
    return repr(value)


def _c_text(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, int):
        if value == -(1 << 63):
            return "(-9223372036854775807LL - 1)"
        text = str(value) if abs(value) < 1 << 31 else f"{value}LL"
        return f"({text})" if value < 0 else text
    if isinstance(value, float):
        if math.isfinite(value):
            return f"({value!r})" if math.copysign(1.0, value) < 0 else repr(value)
        return "NAN" if value != value else ("INFINITY" if value > 0 else "(-INFINITY)")
    text = value if isinstance(value, str) else str(jsonable(value))
    octal = (
        chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}"
        for b in text.encode("utf-8", "surrogatepass")
    )
    return '"' + "".join(octal) + '"'


def _safe(text: str) -> str:
    return re.sub(r"[^ -~]|\*/|/\*|\\", "?", text)
