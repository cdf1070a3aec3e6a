"""Which arguments the modelled functions and methods take; a call with others is refused.

A model reads the arguments that it knows. One that it did not look at would be dropped without a
word: `round(x, ndigits=1)`, `pow(a, b, c)`, `text.split("-", maxsplit=1)`.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from selc.frontend.context import Lowering, snippet

_MANY: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class Takes:
    """How many arguments by position, and which by name; None: any."""

    least: int
    most: int
    named: frozenset[str] | None = frozenset()


def _takes(least: int, most: int, *named: str) -> Takes:
    return Takes(least, most, frozenset(named))


FUNCTIONS: Final[dict[str, Takes]] = {
    "min": _takes(1, _MANY, "key", "default"),
    "max": _takes(1, _MANY, "key", "default"),
    "sum": _takes(1, 2, "start"),
    "len": _takes(1, 1),
    "range": _takes(1, 3),
    "abs": _takes(1, 1),
    "float": _takes(1, 1),
    "int": _takes(0, 2),
    "bool": _takes(0, 1),
    "str": _takes(0, 1),
    "tuple": _takes(0, 1),
    "list": _takes(0, 1),
    "set": _takes(0, 1),
    "frozenset": _takes(0, 1),
    "dict": Takes(0, 1, None),
    "enumerate": _takes(1, 2, "start"),
    "zip": _takes(0, _MANY, "strict"),
    "reversed": _takes(1, 1),
    "map": _takes(2, _MANY),
    "sorted": _takes(1, 1, "key", "reverse"),
    "any": _takes(1, 1),
    "all": _takes(1, 1),
    "next": _takes(1, 2),
    "isinstance": _takes(2, 2),
    "getattr": _takes(2, 3),
    "hasattr": _takes(2, 2),
    "type": _takes(1, 1),
    "divmod": _takes(2, 2),
    "pow": _takes(2, 2),
    "round": _takes(1, 2),
    "iter": _takes(1, 1),
    "math.ceil": _takes(1, 1),
    "math.floor": _takes(1, 1),
    "math.trunc": _takes(1, 1),
    "math.sqrt": _takes(1, 1),
    "math.log2": _takes(1, 1),
    "math.prod": _takes(1, 1, "start"),
    "triton.next_power_of_2": _takes(1, 1),
    "triton.cdiv": _takes(2, 2),
    "bisect.bisect": _takes(2, 2),
    "bisect.bisect_left": _takes(2, 2),
    "bisect.bisect_right": _takes(2, 2),
    "typing.cast": _takes(2, 2),
    "copy.copy": _takes(1, 1),
    "copy.deepcopy": _takes(1, 1),
    "os.getenv": _takes(1, 2, "default"),
    "os.environ.get": _takes(1, 2, "default"),
}
"""By built-in or qualified name; a model that is not here looks at all its arguments itself."""

DICT: Final[dict[str, Takes]] = {
    "get": _takes(1, 2),
    "keys": _takes(0, 0),
    "values": _takes(0, 0),
    "items": _takes(0, 0),
    "copy": _takes(0, 0),
    "clear": _takes(0, 0),
    "pop": _takes(1, 2),
    "setdefault": _takes(1, 2),
    "update": Takes(0, 1, None),
}
LIST: Final[dict[str, Takes]] = {
    "append": _takes(1, 1),
    "add": _takes(1, 1),
    "extend": _takes(1, 1),
    "copy": _takes(0, 0),
    "pop": _takes(0, 1),
    "index": _takes(1, 3),
    "count": _takes(1, 1),
    "insert": _takes(2, 2),
    "reverse": _takes(0, 0),
}
TUPLE: Final[dict[str, Takes]] = {
    "index": _takes(1, 3),
    "count": _takes(1, 1),
    "_replace": Takes(0, 0, None),
    "_asdict": _takes(0, 0),
}
NUMBER: Final = dict.fromkeys(("bit_length", "is_integer", "item"), _takes(0, 0))
TEXT: Final = Takes(0, _MANY)
"""Methods of strings: CPython itself says whether arguments by position fit."""


def check(
    cx: Lowering,
    e: ast.Call,
    takes: Takes | None,
    args: tuple[object, ...],
    kwargs: Mapping[str, object],
) -> None:
    """Refuse a call that gives what the model would not look at."""
    if takes is None:
        return
    if takes is FUNCTIONS["len"] and any(a in cx.iterators for a in args):
        cx.refuse(
            e,
            "SEL901",
            f"`{snippet(e)}` of an iterator, which has no length",
            help="use `tuple(...)`",
        )
    if takes.named is not None:
        for name in kwargs:
            if name not in takes.named:
                cx.refuse(
                    e,
                    "SEL901",
                    f"`{snippet(e)}` with the argument `{name}=` is not supported",
                    help="give the argument by position, or state the call under `functions:`",
                )
    if not takes.least <= len(args) <= takes.most:
        cx.refuse(
            e,
            "SEL901",
            f"`{snippet(e)}` with {len(args)} arguments by position is not supported",
            help="state the call under `functions:`",
        )
