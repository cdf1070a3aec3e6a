"""What random programs may use; each gets the constants, classes and functions that it names."""

from __future__ import annotations

import ast
from typing import Final

PRELUDE: Final = """\
from __future__ import annotations

import bisect
import copy
import enum
import math
import os
from contextlib import nullcontext
from dataclasses import dataclass
from dataclasses import replace
from functools import lru_cache
from functools import partial
from typing import NamedTuple
from typing import cast

from selc.lang import float32

LIMIT = 12
SCALE = LIMIT / 8
NAME = "gemm" + "-" + str(LIMIT)
NAMES = ["a", "bf16", NAME]
TILES = (16, 4, 64)
TABLE = {0: 5, 1: 4, 4: 64}
STEPS = [1, 4, 16]
ROWS = {1: {"tile": 16, "warps": 4}, 16: {"tile": 32, "warps": 8}, 64: {"tile": 64, "warps": 8}}
GRID = {(a, b): a * 4 + b for a in range(2) for b in range(2)}
BASE = {"a": 1, "b": 2}


class Mode(enum.Enum):
    SLOW = 1
    FAST = 2
    AUTO = 4

    @property
    def quick(self) -> bool:
        return self is not Mode.SLOW


class Rank(enum.IntEnum):
    LOW = 0
    MID = 1
    TOP = 2


def rank_of(x: int) -> Rank:
    if x > 5:
        return Rank.TOP
    return Rank.MID if x > 1 else Rank.LOW


class Point(NamedTuple):
    x: int
    y: int = 3


@dataclass
class Box:
    width: int
    depth: int = 2

    @property
    def area(self) -> int:
        return self.width * self.depth

    def grown(self, by: int) -> int:
        return self.area + by

    @classmethod
    def square(cls, side: int) -> Box:
        return cls(side, side)


def clamp(x: int, low: int = 0, high: int = 9) -> int:
    if x < low:
        return low
    y = x
    if y > high:
        y = high
    return y


def cdiv(a: int, b: int) -> int:
    return -(-a // b)


def double(x: int) -> int:
    return 2 * x


def shrink(x: int) -> int:
    if x > 8:
        x //= 2
    else:
        x = x - 1
    return x


def spread(a: int, *rest: int) -> int:
    total = a
    for r in rest:
        total += r
    return total


def named(*, a: int, **rest: int) -> int:
    return a + len(rest) + rest.get("b", 0)


def maybe(x: int) -> int | None:
    if x % 3 == 0:
        return None
    return x


@lru_cache(maxsize=None)
def steps(x: int) -> int:
    n = 0
    while x > 1 and n < 5:
        x = x // 2
        n += 1
    return n


def classify(x: int) -> int:
    try:
        if x < 0:
            raise ValueError("negative")
        return 16 // x
    except ZeroDivisionError:
        return -1
    except ValueError as error:
        return -2


def config(x: int) -> dict[str, int]:
    made = {"a": x}
    made["b"] = x + 1 if x > 4 else 7
    if x > 6:
        made.update(c=3)
    return made


def first_of(values: tuple[int, ...]) -> int:
    for k, v in enumerate(values):
        if v > 3:
            break
    else:
        return -7
    return k


def pick_mode(x: int) -> Mode:
    return Mode.FAST if x > 3 else Mode.AUTO


def adder(by: int):
    def add(x: int) -> int:
        return x + by

    return add


def sms() -> int:
    return len("x" * 132)


def tuned(x: int) -> int:
    return (64, 16, 128, 32)[x]


class Plan:
    scale = 2

    def __init__(self, size: int) -> None:
        self.size = size
        self.ready = size > 2

    def tiles(self, by: int) -> int:
        if self.ready:
            return self.size // by
        return self.scale


class WidePlan(Plan):
    scale = 3

    def tiles(self, by: int) -> int:
        return super().tiles(by) + 1

    @staticmethod
    def least(x: int) -> int:
        return min(x, 7)


WIDTH = int(os.environ.get("SELC_PROPERTY_WIDTH", "4"))
WAYS = {Mode.SLOW: double, Mode.FAST: shrink, Mode.AUTO: lambda x: x + 1}
calls = 0
"""
"""Everything; a program begins with the part of it that it needs."""


def _bound(statement: ast.stmt) -> list[str]:
    """The names that a statement at module level binds."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return [statement.name]
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return [a.asname or a.name for a in statement.names]
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return [t.id for t in targets if isinstance(t, ast.Name)]


def _names(tree: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}


def _parts() -> dict[str, tuple[str, set[str]]]:
    """The text that binds each name, and the names that it reads."""
    out = {}
    lines = PRELUDE.splitlines()
    for s in ast.parse(PRELUDE).body:
        first = min([s.lineno, *[d.lineno for d in getattr(s, "decorator_list", ())]])
        text = "\n".join(lines[first - 1 : s.end_lineno])
        for name in _bound(s):
            out[name] = (text, _names(s))
    return out


_PARTS: Final = _parts()


def needed(body: str) -> str:
    """The part of the prelude that a text names, directly or not."""
    try:
        todo = list(_names(ast.parse(body)))
    except SyntaxError:
        return PRELUDE
    wanted: set[str] = set()
    while todo:
        name = todo.pop()
        if name in _PARTS and name not in wanted:
            wanted.add(name)
            todo += _PARTS[name][1]
    kept = dict.fromkeys(text for name, (text, _) in _PARTS.items() if name in wanted)
    texts = [f"\n\n{t}\n\n" if t.startswith(("def", "class", "@")) else t for t in kept]
    return "\n".join([*texts, ""]) if texts else ""
