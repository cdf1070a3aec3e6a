"""The selectors that the tests of emitted packages share."""

from __future__ import annotations

from functools import partial

from selc.codegen import Argument, Factor, Sequence
from selc.ir.domain import Domain
from selc.ir.op import Op
from tests.unit.codegen.selectors import Maker


def attention() -> Maker:
    maker = Maker(
        {
            "num_tokens": Domain(1, 4096),
            "kv_len": Domain(16, 8192, 16),
            "causal": Domain(values=(True, False)),
        },
        {"attention.num_splits": (1, 2, 4), "attention.pack": (False, True)},
        {"split_stride": (0, 512)},
        family="attention",
    )  # fmt: skip
    maker.point("num_splits", lambda g, v: v["attention.num_splits"])
    maker.point("tile.m", lambda g, v: g.add(Op.FLOORDIV, v["kv_len"], v["attention.num_splits"]))
    maker.point("tile.pack", lambda g, v: v["attention.pack"], "neutral")
    maker.guard(
        "num_tokens <= 4000", lambda g, v: g.add(Op.LE, v["num_tokens"], g.const(4000)), "assume"
    )
    maker.guard(
        "kv_len >= 16 * num_splits",
        lambda g, v: g.add(
            Op.GE, v["kv_len"], g.add(Op.MUL, g.const(16), v["attention.num_splits"])
        ),
        why="a split needs a page",
    )
    maker.guard("never refuted", lambda g, v: g.const(False), evidence="proved")
    rows = ((1, False), (1, True), (2, False), (4, False))
    maker.factors = (Factor(("attention.num_splits", "attention.pack"), rows, (0,)),)
    return maker


def sequences() -> Maker:
    maker = Maker({})
    maker.aggregates = {
        "max(lens)": Domain(1, 1000), "sum(lens)": Domain(1, 8000), "len(lens)": Domain(1, 8),
        "any(lens)": Domain(values=(False, True)),
    }  # fmt: skip
    maker.arguments = (
        Argument("lens", "runtime", None, Sequence(
            Domain(1, 8), Domain(0, 1000),
            tuple((f"{how}", f"{how}(lens)") for how in ("max", "sum", "len", "any")))),
        Argument("dep.x", "request", Domain(1, 5)),
    )  # fmt: skip
    for name in maker.aggregates:
        maker.point(name, partial(lambda name, g, v: v[name], name))
    maker.inputs = {"dep.x": Domain(1, 5)}
    maker.point("x", lambda g, v: v["dep.x"])
    return maker
