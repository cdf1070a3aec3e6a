"""What a plain YAML scalar means: numbers as Python writes them, and no guess where readers differ.

YAML 1.1 and 1.2 disagree on `yes`, `017`, `12:30` and on dates. Such text is kept as text, and
carries a `Doubt` that is reported where it is used as a value (a name or a path it may be).
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

Plain = None | bool | int | float | str


class Doubt(NamedTuple):
    """Why a scalar has no certain meaning, and what to write instead."""

    message: str
    help: str


CONSTANTS: Final[dict[str, bool | float | None]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
TRUTHS: Final = {"yes": "true", "on": "true", "no": "false", "off": "false"}

DECIMAL: Final = re.compile(r"[-+]?(0|[1-9][0-9]*(_[0-9]+)*)")
PREFIXED: Final = re.compile(r"[-+]?0(x[0-9a-fA-F]+|o[0-7]+|b[01]+)(_[0-9a-fA-F]+)*")
FLOAT: Final = re.compile(
    r"[-+]?(([0-9]+(_[0-9]+)*)?\.[0-9]+(_[0-9]+)*|[0-9]+(_[0-9]+)*\.?)([eE][-+]?[0-9]+)?"
)
ZERO_LED: Final = re.compile(r"[-+]?0[0-9_]+")
LOOSE_UNDERSCORES: Final = re.compile(r"[-+]?[0-9][0-9_]*")
SEXAGESIMAL: Final = re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?")
DATE: Final = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt \t].*)?")


def resolve(text: str) -> tuple[Plain, Doubt | None]:
    """The value of a plain scalar, and a doubt if readers of YAML would disagree on it."""
    if text in CONSTANTS:
        return CONSTANTS[text], None
    if text[0] not in "+-.0123456789":
        truth = (
            TRUTHS.get(text.lower()) if text in (text.lower(), text.title(), text.upper()) else None
        )
        if truth is None:
            return text, None
        return text, Doubt(
            f"`{text}` is a truth value to some readers of YAML and text to others",
            f'write {truth}, or "{text}" in quotes for the text',
        )
    if DECIMAL.fullmatch(text) or PREFIXED.fullmatch(text):
        return _integer(text)
    doubt = _doubt(text)
    if doubt is not None:
        return text, doubt
    return _float(text) if FLOAT.fullmatch(text) else (text, None)


def _integer(text: str) -> tuple[Plain, Doubt | None]:
    try:
        return int(text, 0), None
    except ValueError:
        if len(text) < 4300:
            return text, None
        return text, Doubt(
            f"this number has {len(text)} digits", "write a number of at most 4,300 digits"
        )


def _float(text: str) -> tuple[Plain, Doubt | None]:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        return text, Doubt(
            f"`{text}` is too large for a float", "write .inf if infinity is what you mean"
        )
    return value, None


def _doubt(text: str) -> Doubt | None:
    if DATE.fullmatch(text):
        return Doubt(
            f"`{text}` reads as a date, and a fact cannot be a date",
            f'write it in quotes: "{text}"',
        )
    if SEXAGESIMAL.fullmatch(text):
        return Doubt(
            f"`{text}` is a number in base 60 to some readers of YAML and text to others",
            f'write it in quotes: "{text}"',
        )
    if ZERO_LED.fullmatch(text):
        return Doubt(
            f"`{text}` is octal to some readers of YAML and decimal to others",
            f'write it without the leading zero, as 0o… if it is octal, or "{text}" for the text',
        )
    if LOOSE_UNDERSCORES.fullmatch(text) and "_" in text:
        return Doubt(
            f"`{text}` is a number to some readers of YAML and text to others",
            f'write the digits without underscores, or "{text}" for the text',
        )
    return None
