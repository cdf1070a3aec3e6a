"""Programs on which folding before pinning, or merging sites, goes wrong."""

from __future__ import annotations

import itertools

import pytest

from selc.cut.place import choose_pins
from selc.diag.diagnostic import Refused
from selc.diag.span import NOWHERE
from selc.ir.domain import Domain
from selc.ir.evaluate import compile_nodes
from selc.ir.graph import Graph, Node
from selc.ir.op import Op
from selc.ir.program import Guard, Mark, Point, Program, Site
from selc.ir.residual import Pin, Residual
from selc.ir.value import Value
from selc.passes.depend import reads
from selc.passes.residual import residualize
from tests.unit.cut.programs import candidates


class Maker:
    """Writes a program down as a front end would."""

    def __init__(self, scope: str = "request", **inputs: tuple[str, Domain]) -> None:
        self.g = Graph()
        self.yes = self.g.const(True)
        self.program = Program(self.g, "t.py:f", "f", "fam", scope, "t.py", [], [], {})
        self.n = {k: self.let(k, self.g.input(k, *v), kind="parameter") for k, v in inputs.items()}

    def k(self, value: Value) -> Node:
        return self.g.const(value)

    def op(self, op: Op, *args: Node | int | str) -> Node:
        nodes = [a if isinstance(a, Node) else self.k(a) for a in args]
        node = self.g.fold(op, *nodes, site=len(self.g.nodes) + 1)
        if not node.is_const and node not in nodes:
            self.site(f"f.L{node.id}", "expression", node)
        return node

    def site(self, name: str, kind: str, node: Node, path: Node | None = None) -> None:
        site = self.program.sites.setdefault(name, Site(name, kind, NOWHERE))
        site.marks.append(Mark(node, path or self.yes, len(self.program.guards)))

    def let(self, name: str, node: Node, path: Node | None = None, kind: str = "variable") -> Node:
        marked = self.g.add(Op.MARK, node, attr=len(self.g.nodes))
        self.site(f"f.{name}", kind, marked, path)
        return marked

    def require(self, cond: Node, path: Node | None = None, origin: str = "assert") -> None:
        kind = "assume" if origin == "call" else "require"
        self.program.guards.append(Guard(kind, origin, "", "", NOWHERE, path or self.yes, cond))

    def point(self, name: str, node: Node, role: str = "bits", *sites: str) -> None:
        self.program.points.append(Point(name, role, node, sites))

    def choose(
        self, batch_point=lambda: None, large: frozenset[str] = frozenset(), **options
    ) -> Residual:
        return choose_pins(
            self.program,
            candidates(self.program),
            lambda s: s.name in large,
            batch_point,
            **options,
        )


def paid(r: Residual) -> list[str]:
    return [p.name for p in r.pins if not p.free]


def free(r: Residual) -> dict[str, Value]:
    return {p.name: p.constant for p in r.pins if p.free}


def legal(r: Residual) -> list[tuple[Value, ...]]:
    """The assignments for which every guard holds in every reading on every admitted input."""
    names = list(r.graph.inputs)
    row = [n for n in names if n in r.parameters]
    holds = compile_nodes(r.graph, [n for g in r.guards for n in g.readings], names)
    admits = compile_nodes(r.graph, [n for _, n in r.assumes], names)
    out: dict[tuple[Value, ...], bool] = {}
    for p in itertools.product(*[r.graph.inputs[n].domain for n in names]):
        key = tuple(v for n, v in zip(names, p, strict=True) if n in row)
        ok = not all(v is True for v in admits(*p)) or all(v is True for v in holds(*p))
        out[key] = out.get(key, True) and ok
    return [k for k, ok in out.items() if ok]


def quiet(r: Residual) -> bool:
    """Whether no protected choice reads the batch."""
    batch = {n for n, i in r.graph.inputs.items() if i.is_batch(r.scope)}
    return not any(reads(r.graph, [n])[0] & batch for p, n in r.points if p.role == "bits")


def test_a_value_that_never_varies_follows_the_batch_once_another_is_pinned() -> None:
    p = Maker(m=("runtime", Domain(1, 1024)))
    m = p.n["m"]
    a = p.let("a", p.op(Op.FLOORDIV, m, 64))
    b = p.let("b", p.op(Op.FLOORDIV, m, 128))
    x = p.let("x", p.op(Op.SELECT, p.op(Op.GT, b, a), 1, 2))
    for name, node in {"wide": p.op(Op.LT, a, 2), "deep": p.op(Op.LT, a, 5), "x": x}.items():
        p.point(name, node)
    r = p.choose()
    assert paid(r) == ["f.a"]
    assert free(r) == {"f.x": 2}
    assert quiet(r)


def test_a_tautology_is_no_tautology_once_pinned() -> None:
    p = Maker(m=("runtime", Domain(1, 1024)))
    m = p.n["m"]
    big = p.let("big", p.op(Op.GT, m, 128))
    tiles = p.let("tiles", p.op(Op.SELECT, big, p.op(Op.FLOORDIV, m, 64), 1))
    split = p.let("split", p.op(Op.SELECT, big, 4, 1))
    stage = p.let("stage", p.op(Op.SELECT, big, 3, 2))
    p.require(p.g.either(p.op(Op.EQ, split, 1), p.op(Op.GE, tiles, 2)))
    p.point("split", split, "bits", "f.split")
    p.point("stage", stage, "bits", "f.stage")
    r = p.choose()
    assert paid(r) == ["f.big"]
    assert legal(r) == [(False,)]


def test_a_tile_must_divide_the_page_whatever_else_is_chosen() -> None:
    """Unpinned, `tma implies page % block == 0` always holds."""
    p = Maker(b=("runtime", Domain(1, 256)))
    long = p.let("long", p.op(Op.GT, p.n["b"], 100))
    block = p.let("block", p.op(Op.SELECT, long, 192, 128))
    tma = p.let("tma", p.op(Op.EQ, p.op(Op.MOD, 128, block), 0))
    p.require(p.g.either(p.g.negate(tma), p.op(Op.EQ, p.op(Op.MOD, 128, block), 0)))
    p.point("block", block, "bits", "f.block")
    p.point("tma", tma, "bits", "f.tma")
    sites, taken = p.program.sites, candidates(p.program)
    pins = {n: Pin(n, sites[n], taken(sites[n]), parameter=n) for n in ("f.block", "f.tma")}
    assert set(legal(residualize(p.program, pins))) == {(128, False), (128, True), (192, False)}
    assert paid(p.choose()) == ["f.block"] or paid(p.choose()) == ["f.long"]


def test_a_cut_of_the_simplified_graph_is_not_yet_a_cut() -> None:
    """Path conditions prove the cluster size 1; with `causal` pinned it follows the rows."""
    p = Maker(sq=("runtime", Domain(1, 300)))
    sq = p.n["sq"]
    causal = p.let("causal", p.op(Op.NE, sq, 1))
    blocks = p.let("blocks", p.op(Op.FLOORDIV, p.op(Op.ADD, sq, 127), 128))
    even = p.op(Op.EQ, p.op(Op.MOD, blocks, 2), 0)
    cluster = p.let("cluster", p.op(Op.SELECT, p.op(Op.SELECT, causal, p.k(False), even), 2, 1))
    p.point("causal", causal)
    p.point("cluster", cluster)
    r = p.choose()
    assert paid(r) == ["f.causal"]
    assert free(r) == {"f.cluster": 1}
    assert quiet(r)


def test_equal_expressions_at_two_sites_are_pinned_apart() -> None:
    p = Maker(n=("runtime", Domain(values=(64, 96, 128))))
    n = p.n["n"]
    first = p.op(Op.EQ, p.op(Op.MOD, 128, n), 0)
    second = p.op(Op.EQ, p.op(Op.MOD, 128, n), 0)
    assert first is not second
    p.point("tma", first)
    p.require(p.g.either(p.g.negate(first), second))
    site = next(s for s in p.program.sites.values() if s.marks[0].node is first)
    r = residualize(
        p.program,
        {site.name: Pin(site.name, site, candidates(p.program)(site), parameter=site.name)},
    )
    assert legal(r) == [(False,)]


def test_a_pinned_size_does_not_make_the_real_buffer_fit() -> None:
    p = Maker(t=("runtime", Domain(1, 512)))
    pages = p.let("pages", p.op(Op.FLOORDIV, p.op(Op.ADD, p.n["t"], 7), 8))
    algo = p.let("algo", p.op(Op.SELECT, p.op(Op.LE, pages, 4), "oneshot", "twoshot"))
    blocks = p.let("blocks", p.op(Op.SELECT, p.op(Op.LE, pages, 2), 16, 36))
    fits = p.let("fits", p.op(Op.LE, pages, 32))
    p.point("algo", algo, "bits", "f.algo")
    p.point("blocks", blocks, "bits", "f.blocks")
    p.point("fits", fits, "aux", "f.fits")
    seen = [
        p.g.add(Op.MARK, n, attr=("result", name)) for n, name in ((algo, "algo"), (fits, "fits"))
    ]
    p.require(p.g.either(p.op(Op.NE, seen[0], "oneshot"), seen[1]), origin="facts")
    r = p.choose(large=frozenset({"f.t"}))
    assert paid(r) == ["f.pages"]
    assert legal(r) == [(v,) for v in range(5, 65)]


def test_a_guard_between_choice_and_hidden_batch_is_read_mixed() -> None:
    p = Maker(t=("runtime", Domain(1, 512)))
    pages = p.let("pages", p.op(Op.FLOORDIV, p.op(Op.ADD, p.n["t"], 7), 8))
    one = p.let("one", p.op(Op.LE, pages, 4))
    algo = p.let("algo", p.op(Op.SELECT, one, "oneshot", "twoshot"))
    blocks = p.let("blocks", p.op(Op.SELECT, p.op(Op.LE, pages, 2), 16, 36))
    p.require(p.g.either(p.g.negate(one), p.op(Op.LE, pages, 32)))
    p.point("algo", algo, "bits", "f.algo")
    p.point("blocks", blocks, "bits", "f.blocks")
    r = p.choose(large=frozenset({"f.t"}))
    assert paid(r) == ["f.pages"]
    assert r.guards[0].mixed is not None
    assert not r.guards[0].unseen
    assert legal(r) == [(v,) for v in range(5, 65)]


def test_a_guard_above_every_pin_is_called_unseen() -> None:
    p = Maker(t=("runtime", Domain(1, 512)))
    pages = p.let("pages", p.op(Op.FLOORDIV, p.op(Op.ADD, p.n["t"], 7), 8))
    one = p.let("one", p.op(Op.LE, pages, 4))
    algo = p.let("algo", p.op(Op.SELECT, one, "oneshot", "twoshot"))
    p.require(p.g.either(p.g.negate(one), p.op(Op.LE, pages, 32)))
    p.require(p.op(Op.LE, pages, 64))
    p.point("algo", algo, "bits", "f.algo")
    r = p.choose(large=frozenset({"f.t"}))
    assert paid(r) == ["f.algo"]
    assert [g.unseen for g in r.guards] == [True, False]


def test_a_value_that_only_the_request_moves_is_a_free_pin_at_one_batch() -> None:
    p = Maker(m=("runtime", Domain(1, 900)), kv=("request", Domain(1, 40)))
    m, kv = p.n["m"], p.n["kv"]
    a = p.let("a", p.op(Op.FLOORDIV, m, 64))
    b = p.let("b", p.op(Op.FLOORDIV, m, 128))
    parts = p.let("parts", p.op(Op.SELECT, p.op(Op.GT, b, a), 1, p.op(Op.FLOORDIV, kv, 8)))
    p.point("wide", p.op(Op.LT, a, 2))
    p.point("deep", p.op(Op.LT, a, 5))
    p.point("parts", parts)
    r = p.choose(batch_point=lambda: {"m": 1})
    assert paid(r) == ["f.a"]
    pin = next(q for q in r.pins if q.free)
    assert (pin.name, pin.constant, pin.at) == ("f.parts", None, {"m": 1})
    assert quiet(r)


def test_a_site_with_several_marks_is_one_pin() -> None:
    p = Maker(m=("runtime", Domain(1, 200)), q=("runtime", Domain(1, 200)))
    small = p.op(Op.LE, p.n["m"], 16)
    early = p.let("k", p.op(Op.SELECT, p.op(Op.LE, p.n["q"], 3), 1, 2), small)
    late = p.let("k", p.op(Op.SELECT, p.op(Op.LE, p.n["q"], 9), 3, 4), p.g.negate(small))
    p.point("first", early)
    p.point("second", p.op(Op.SELECT, small, early, late))
    assert paid(p.choose()) in (["f.k"], ["f.q"])
    assert quiet(p.choose(large=frozenset({"f.q"})))


def test_when_nothing_can_be_pinned_the_path_is_shown() -> None:
    p = Maker(m=("runtime", Domain(1, 5000)))
    p.point("twice", p.let("twice", p.op(Op.MUL, p.n["m"], 2)))
    with pytest.raises(Refused) as refused:
        p.choose(large=frozenset(p.program.sites))
    diagnostic = refused.value.diagnostics[0]
    assert diagnostic.code == "SEL930"
    assert "`m` -> `f.m` -> `f.twice` -> the choice `twice`" in diagnostic.message
    assert any("5,000 values" in note for note in diagnostic.notes)


@pytest.mark.parametrize(
    "skip",
    ["peval", "gvn", "fold", "table", "searches", "ranges", "context", "enumerate", "dce"],
)
def test_without_a_pass_the_answer_is_still_right(skip: str) -> None:
    p = Maker(m=("runtime", Domain(1, 1024)))
    a = p.let("a", p.op(Op.FLOORDIV, p.n["m"], 64))
    x = p.let("x", p.op(Op.SELECT, p.op(Op.GT, p.op(Op.FLOORDIV, p.n["m"], 128), a), 1, 2))
    p.point("wide", p.op(Op.LT, a, 2))
    p.point("x", x)
    assert quiet(p.choose(skip=frozenset({skip})))
