"""Selections with bit classes, small enough to be tried on every input under every assignment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.classes.judge import Partition


@dataclass(frozen=True)
class Case:
    """One selection; `pins` are the pins that it has to get (None: whatever is legal)."""

    text: str
    roles: dict[str, str]
    inputs: dict[str, tuple[str, tuple[int, int]]]
    partitions: list[Partition]
    pins: list[str] | None
    scope: str = "launch"
    require: list[str] = field(default_factory=list)
    nothing: bool = False  # no assignment is legal
    some_illegal: bool = False
    fixed: list[str] = field(default_factory=list)


def case(text: str, *, m: tuple[int, int] = (1, 96), **more: Any) -> Case:
    inputs = {"m": ("runtime", m), **more.pop("inputs", {})}
    return Case(text, inputs=inputs, **more)


ROWS = """\
ROWS = {1: (16, 64), 8: (16, 128), 24: (32, 64), 48: (64, 64), 80: (128, 128)}

def moe(m):
    near = min(ROWS, key=lambda k: abs(k - m))
    bm, bn = ROWS[near]
    stages = 3 if m > 64 else 4
"""
RETURN = '    return {"bm": bm, "bn": bn, "stages": stages}\n'
ROLES = {"bm": "bits", "bn": "bits", "stages": "neutral"}
ALL = [(16, 64), (16, 128), (32, 64), (64, 64), (128, 128)]
TWO = {"small": ALL[:3], "large": ALL[3:]}


def gemm(classes: dict[str, list[tuple[Any, ...]]], **given: Any) -> list[Partition]:
    return [Partition("class.gemm", ("bm", "bn"), classes, given)]


CASES: dict[str, Case] = {
    "every row is one class": case(
        ROWS + RETURN, roles=ROLES, partitions=gemm({"all": ALL}), pins=[]
    ),
    "two classes": case(ROWS + RETURN, roles=ROLES, partitions=gemm(TWO), pins=["class.gemm"]),
    "a tuple outside the partition": case(
        ROWS + RETURN,
        roles=ROLES,
        partitions=gemm({"small": ALL[:2], "large": ALL[3:]}),
        pins=["class.gemm"],
    ),
    "only one row is measured": case(
        ROWS + RETURN, roles=ROLES, partitions=gemm({"one": ALL[2:3]}), pins=["class.gemm"]
    ),
    "the representative breaks a guard, another member does not": case(
        ROWS + "    assert bm * 4 >= m or bn == 64\n" + RETURN,
        roles=ROLES,
        partitions=gemm({"small": [(16, 128), (16, 64), (32, 64)], "large": ALL[3:]}),
        pins=["class.gemm"],
    ),
    "every member breaks a guard": case(
        ROWS + "    assert m <= bm * 2\n" + RETURN,
        m=(1, 64),
        roles=ROLES,
        partitions=gemm({"small": ALL[:2], "large": ALL[2:]}),
        pins=["class.gemm"],
        some_illegal=True,
    ),
    "no class is legal": case(
        ROWS + "    assert m > 40 if bm > 32 else m <= 40\n" + RETURN,
        roles=ROLES,
        partitions=gemm(TWO),
        pins=["class.gemm"],
        nothing=True,
    ),
    "a guard of the facts over the result": case(
        ROWS + RETURN,
        roles=ROLES,
        partitions=gemm({"small": [(32, 64), (16, 64), (16, 128)], "large": ALL[3:]}),
        pins=["class.gemm"],
        require=["result['bm'] <= 16 or m > 20"],
        some_illegal=True,
    ),
    "the pair leaves the class where a pin holds one of the two": case(
        """\
def plan(m):
    big = m > 32
    bk = 64 if big else 32
    w = 8 if m > 32 else 4
    split = 2 if big else 1
    return {"bk": bk, "w": w, "split": split}
""",
        roles={"bk": "bits", "w": "bits", "split": "bits"},
        partitions=[Partition("class.c", ("bk", "w"), {"all": [(64, 8), (32, 4)]})],
        pins=None,
    ),
    "measured at one value of another field": case(
        ROWS + '    split = 2 if m > 48 else 1\n    return {"bm": bm, "bn": bn, "split": split}\n',
        roles={"bm": "bits", "bn": "bits", "split": "bits"},
        partitions=gemm({"all": ALL}, split=1),
        pins=None,
        some_illegal=True,
    ),
    "a field feeds another protected choice": case(
        """\
def plan(m):
    bm = 16 if m <= 32 else 64
    bn = 128
    tiles = 256 // bm
    return {"bm": bm, "bn": bn, "tiles": tiles}
""",
        roles={"bm": "bits", "bn": "bits", "tiles": "bits"},
        partitions=gemm({"all": [(16, 128), (64, 128)]}),
        pins=None,
    ),
    "a class makes a field of a constant one": case(
        """\
def plan(m):
    bm = 16 if m <= 32 else 64
    bn = 64 if m < 200 else 128
    tiles = 256 // bn
    return {"bm": bm, "bn": bn, "tiles": tiles}
""",
        roles={"bm": "bits", "bn": "bits", "tiles": "bits"},
        partitions=gemm({"a": [(16, 64)], "b": [(32, 128), (64, 64)]}),
        pins=None,
        fixed=["bn"],
    ),
    "choices without a name": case(
        """\
def plan(m):
    big = m > 40
    return {"bm": 64 if big else 16, "bn": 128 if m > 20 else 64, "pad": m % 8}
""",
        roles={"bm": "bits", "bn": "bits", "pad": "neutral"},
        partitions=gemm({"x": [(16, 64), (64, 128)], "y": [(16, 128)]}),
        pins=["class.gemm"],
    ),
    "two classes of fields": case(
        """\
def plan(m):
    bm = 16 if m <= 32 else 64
    bn = 64 if m <= 48 else 128
    bk = bm * 2
    w = 4 if bm * bn < 4096 else 8
    assert bk * w <= 1024
    return {"bm": bm, "bn": bn, "bk": bk, "w": w}
""",
        roles={"bm": "bits", "bn": "bits", "bk": "bits", "w": "bits"},
        partitions=[
            Partition("class.a", ("bm", "bn"), {"u": [(16, 64), (64, 64)], "v": [(64, 128)]}),
            Partition("class.b", ("bk", "w"), {"p": [(32, 4)], "q": [(128, 8), (64, 8)]}),
        ],
        pins=None,
    ),
    "a class that follows the request": case(
        """\
def plan(m, r):
    bm = 16 if m <= 32 else 64
    if r > 2:
        bm = bm * 2
    bn = 64
    return {"bm": bm, "bn": bn}
""",
        roles={"bm": "bits", "bn": "bits"},
        inputs={"r": ("request", (1, 4))},
        scope="request",
        partitions=gemm({"low": [(16, 64), (64, 64)], "high": [(32, 64), (128, 64)]}),
        pins=None,
    ),
    "fields that read each other": case(
        """\
def plan(m):
    bm = 16 if m <= 32 else 64
    bn = {16: 128, 32: 64, 64: 32}[bm]
    return {"bm": bm, "bn": bn}
""",
        roles={"bm": "bits", "bn": "bits"},
        partitions=gemm({"x": [(16, 128)], "y": [(32, 32), (64, 32)]}),
        pins=["class.gemm"],
    ),
    "one variable is two fields": case(
        'def plan(m):\n    bm = 16 if m <= 32 else 64\n    return {"bm": bm, "bn": bm}\n',
        roles={"bm": "bits", "bn": "bits"},
        partitions=gemm({"x": [(16, 16)], "y": [(32, 64), (64, 64)]}),
        pins=None,
    ),
    "fields read off a row": case(
        """\
ROWS = {
    1: {"bm": 16, "s": 5, "x": 1}, 8: {"bm": 16, "s": 4, "x": 2}, 24: {"bm": 64, "s": 2, "x": 3},
    60: {"bm": 128, "s": 2, "x": 4}, 80: {"bm": 128, "s": 1, "x": 5},
}

def plan(m):
    near = min(ROWS, key=lambda k: abs(k - m))
    row = ROWS[near]
    assert row["bm"] * row["s"] <= 200 or m > 50
    waves = m // row["bm"]
    return {"bm": row["bm"], "s": row["s"], "x": row["x"], "waves": waves}
""",
        roles={"bm": "bits", "s": "bits", "x": "neutral", "waves": "neutral"},
        partitions=[
            Partition(
                "class.c",
                ("bm", "s"),
                {"a": [(16, 5), (16, 4)], "b": [(128, 2), (128, 1), (64, 2)]},
            )
        ],
        pins=["class.c"],
    ),
    "a member that no row has": case(
        """\
ROWS = {1: {"bm": 16, "s": 4}, 24: {"bm": 64, "s": 2}, 60: {"bm": 64, "s": 1}}

def plan(m):
    near = min(ROWS, key=lambda k: abs(k - m))
    row = ROWS[near]
    assert row["s"] <= 4
    return {"bm": row["bm"], "s": row["s"]}
""",
        roles={"bm": "bits", "s": "bits"},
        partitions=[
            Partition("class.c", ("bm", "s"), {"a": [(32, 8), (16, 4)], "b": [(64, 2), (64, 1)]})
        ],
        pins=["class.c"],
    ),
    "a class that only the request moves": case(
        """\
def plan(m, r):
    bm = 16 if r > 2 else 64
    bn = 64 if m < 32 else 128
    return {"bm": bm, "bn": bn}
""",
        roles={"bm": "bits", "bn": "bits"},
        inputs={"r": ("request", (1, 4))},
        scope="request",
        partitions=gemm({"low": [(16, 64), (16, 128)], "high": [(64, 64), (64, 128)]}),
        pins=[],
    ),
}
