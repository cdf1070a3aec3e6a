"""Small selections, each as a graph builder and as a CPython function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from selc.ir.domain import Domain
from selc.ir.op import Op
from tests.unit.vra.brute import Stop


@dataclass
class Case:
    name: str
    spec: dict
    body: Callable
    run: Callable
    pins: list
    named: dict = field(default_factory=dict)  # point -> site
    assume: Callable = lambda **_: True
    offers: dict = field(default_factory=dict)


def span(lo, hi, kind="runtime"):
    return (kind, Domain(lo, hi))


def m1(b):
    m = b.input("m")
    a = b.site("f.a", m // 64)
    c = b.site("f.b", m // 128)
    x = b.site("f.x", b.if_(c > a, 1, 2))
    wide = b.site("f.wide", a < 2)
    deep = b.site("f.deep", a < 5)
    b.point("wide", wide, sites=["f.wide"])
    b.point("deep", deep, sites=["f.deep"])
    b.point("x", x, sites=["f.x"])


def run1(r, m):
    m = r.site("f.m", m)
    a = r.site("f.a", m // 64)
    c = r.site("f.b", m // 128)
    x = r.site("f.x", 1 if c > a else 2)
    wide = r.site("f.wide", a < 2)
    deep = r.site("f.deep", a < 5)
    return {"wide": wide, "deep": deep, "x": x}


def m2(b):
    m = b.input("m")
    big = b.site("f.big", m > 128)
    with b.arm(big):
        q = m // 64
    tiles = b.site("f.tiles", b.if_(big, q, 1))
    split = b.site("f.split", b.if_(big, 4, 1))
    stage = b.site("f.stage", b.if_(big, 3, 2))
    b.guard(b.either(split.eq(1), tiles >= 2))
    b.point("split", split, sites=["f.split"])
    b.point("stage", stage, sites=["f.stage"])


def run2(r, m):
    m = r.site("f.m", m)
    big = r.site("f.big", m > 128)
    tiles = r.site("f.tiles", m // 64 if big else 1)
    split = r.site("f.split", 4 if big else 1)
    stage = r.site("f.stage", 3 if big else 2)
    if not (split == 1 or tiles >= 2):
        raise Stop
    return {"split": split, "stage": stage}


def m3(b):
    t = b.input("t")
    pages = b.site("f.pages", -(-(t * 8192) // 65536))
    algo = b.site("f.algo", b.if_(pages <= 4, "oneshot", "twoshot"))
    blocks = b.site("f.blocks", b.if_(pages <= 2, 16, 36))
    fits = b.site("f.fits", pages <= 32)
    b.guard(b.either(algo.ne("oneshot"), fits))
    b.point("algo", algo, sites=["f.algo"])
    b.point("blocks", blocks, sites=["f.blocks"])
    b.point("fits", fits, role="aux")


def run3(r, t):
    t = r.site("f.t", t)
    pages = r.site("f.pages", -(-t * 8192 // 65536))
    algo = r.site("f.algo", "oneshot" if pages <= 4 else "twoshot")
    blocks = r.site("f.blocks", 16 if pages <= 2 else 36)
    fits = r.site("f.fits", pages <= 32)
    if not (algo != "oneshot" or fits):
        raise Stop
    return {"algo": algo, "blocks": blocks, "fits": fits}


def m10(b):
    kv, step = b.input("kv"), b.input("step")
    n1 = b.site("f.n#1", -(-kv // step))
    n = b.site("f.n", n1.op(Op.MIN2, 8))
    b.guard(b.either(n * step >= kv, step >= 512))
    b.point("n", n, sites=["f.n"])


def run10(r, kv, step):
    kv, step = r.site("f.kv", kv), r.site("f.step", step)
    n = r.site("f.n#1", -(-kv // step))
    n = r.site("f.n", min(n, 8))
    if not (n * step >= kv or step >= 512):
        raise Stop
    return {"n": n}


def m12(b):
    n = b.input("n")
    size = b.g.const(1)
    size = b.op(Op.POS, 1)
    live = True
    for _ in range(10):
        live = b.both(live, size < n) if live is not True else size < n
        size = b.if_(live, size * 2, size)
    size = b.site("f.size", size)
    kind = b.site("f.kind", b.if_(size <= 64, "small", "large"))
    room = b.site("f.room", 256 // size)
    b.guard(room >= 1)
    b.assume(n <= 200)
    b.point("kind", kind, sites=["f.kind"])
    b.point("size", size, role="neutral", sites=["f.size"])


def run12(r, n):
    n = r.site("f.n", n)
    size = 1
    while size < n:
        size *= 2
    size = r.site("f.size", size)
    kind = r.site("f.kind", "small" if size <= 64 else "large")
    room = r.site("f.room", 256 // size)
    if not room >= 1:
        raise Stop
    return {"kind": kind, "size": size}


def m16(b):
    m, n = b.input("m"), b.input("n")
    b.guard(m <= 512)
    fast = b.site("f.fast", b.both(m <= 16, n <= 64))
    algo = b.site("f.algo", b.if_(fast, "dot", "gemm"))
    with b.arm(algo.eq("dot")):
        b.guard(m * n <= 1024)
    b.point("algo", algo, sites=["f.algo"])


def run16(r, m, n):
    m, n = r.site("f.m", m), r.site("f.n", n)
    if m > 512:
        raise Stop
    fast = r.site("f.fast", m <= 16 and n <= 64)
    algo = r.site("f.algo", "dot" if fast else "gemm")
    if algo == "dot" and m * n > 1024:
        raise Stop
    return {"algo": algo}


def branchy(b):
    """Sites on arms, a site with two marks, a guard in the middle, an input of its own."""
    m, n, q = b.input("m"), b.input("n"), b.input("q")
    b.guard(n.ne(3))
    big = b.site("f.big", m > 20)
    with b.arm(big):
        k = b.site("f.k", m // n)
        b.site("f.v", k + 1)
    b.guard(q > 1)
    with b.arm(b.op(Op.NOT, big)):
        b.site("f.v", m * 2)
        small = b.site("f.small", m)
    v = b.site("f.w", b.if_(big, k + 1, m * 2))
    b.assume(m + n <= 40)
    b.point("v", v, sites=["f.w"])
    b.point("flag", b.site("f.flag", b.if_(big, True, small.eq(1))), sites=["f.flag"])


def run_branchy(r, m, n, q):
    m, n, q = r.site("f.m", m), r.site("f.n", n), r.site("f.q", q)
    if n == 3:
        raise Stop
    big = r.site("f.big", m > 20)
    k = small = v = 0
    if big:
        k = r.site("f.k", m // n)
        v = r.site("f.v", k + 1)
    if not q > 1:
        raise Stop
    if not big:
        v = r.site("f.v", m * 2)
        small = r.site("f.small", m)
    v = r.site("f.w", (k + 1) if big else m * 2)
    return {"v": v, "flag": r.site("f.flag", True if big else small == 1)}


BLOCK = ("runtime", Domain(values=(1, 64, 65, 128)))
STEPS = ("knob", Domain(values=(128, 256, 512)))

CASES = [
    Case(
        "M1", {"m": span(1, 1024)}, m1, run1, ["f.a"],
        {"wide": "f.wide", "deep": "f.deep", "x": "f.x"},
    ),
    Case("M2", {"m": span(1, 1024)}, m2, run2, ["f.big"], {"split": "f.split", "stage": "f.stage"}),
    Case("M3", {"t": span(1, 512)}, m3, run3, ["f.pages"],
         {"algo": "f.algo", "blocks": "f.blocks"}),
    Case("M10", {"kv": span(1, 2048), "step": STEPS}, m10, run10, ["f.n"], {"n": "f.n"}),
    Case(
        "M12", {"n": span(1, 1000)}, m12, run12, ["f.kind"], {"kind": "f.kind", "size": "f.size"},
        lambda n: n <= 200,
    ),
    Case("M16", {"m": span(1, 512), "n": BLOCK}, m16, run16, ["f.algo"], {"algo": "f.algo"}),
    Case(
        "M16-fast", {"m": span(1, 600), "n": BLOCK}, m16, run16, ["f.fast"], {"algo": "f.algo"},
        lambda m, n: m <= 512,
    ),
    Case(
        "branchy",
        {"m": span(1, 40), "n": ("request", Domain(0, 5)), "q": span(0, 4)},
        branchy, run_branchy, ["f.big", "f.k"], {"v": "f.w", "flag": "f.flag"},
        lambda m, n, q: m + n <= 40,
    ),
]  # fmt: skip
