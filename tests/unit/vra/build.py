"""Programs built by hand: a function written once, run unpinned, pinned and overwritten."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from selc.diag.span import NOWHERE
from selc.ir.domain import Domain, Input
from selc.ir.graph import BOOLEAN, Graph, Node
from selc.ir.op import Op
from selc.ir.program import Guard, Mark, Point, Program, Site
from selc.ir.residual import Candidates, Pin, Residual, ResidualGuard

Spec = Mapping[str, tuple[str, Domain]]


class E:
    """An expression over one builder."""

    def __init__(self, b: Build, node: Node) -> None:
        self.b, self.node = b, node

    def op(self, op: Op, *others, attr=None):
        return self.b.op(op, self, *others, attr=attr)

    def __add__(self, o):
        return self.op(Op.ADD, o)

    def __radd__(self, o):
        return self.b.op(Op.ADD, o, self)

    def __sub__(self, o):
        return self.op(Op.SUB, o)

    def __rsub__(self, o):
        return self.b.op(Op.SUB, o, self)

    def __mul__(self, o):
        return self.op(Op.MUL, o)

    def __neg__(self):
        return self.op(Op.NEG)

    def __floordiv__(self, o):
        return self.b.partial(Op.FLOORDIV, self, o)

    def __rfloordiv__(self, o):
        return self.b.partial(Op.FLOORDIV, o, self)

    def __mod__(self, o):
        return self.b.partial(Op.MOD, self, o)

    def __truediv__(self, o):
        return self.b.partial(Op.TRUEDIV, self, o)

    def __lt__(self, o):
        return self.op(Op.LT, o)

    def __le__(self, o):
        return self.op(Op.LE, o)

    def __gt__(self, o):
        return self.op(Op.GT, o)

    def __ge__(self, o):
        return self.op(Op.GE, o)

    def eq(self, o):
        return self.op(Op.EQ, o)

    def ne(self, o):
        return self.op(Op.NE, o)


class Build:
    """One lowering into a graph; `over` replaces the value of sites."""

    def __init__(self, graph: Graph, spec: Spec, over: Mapping[str, Node] | None = None) -> None:
        self.g, self.spec, self.over = graph, spec, over or {}
        self.sites: dict[str, Site] = {}
        self.guards: list[Guard] = []
        self.points: list[Point] = []
        self.paths: list[Node] = []

    def lift(self, x) -> Node:
        return x.node if isinstance(x, E) else self.g.const(x)

    def input(self, name: str) -> E:
        kind, domain = self.spec[name]
        return self.site(f"f.{name}", E(self, self.g.input(name, kind, domain)))

    def op(self, op: Op, *args, attr=None) -> E:
        return E(self, self.g.fold(op, *[self.lift(a) for a in args], attr=attr))

    def partial(self, op: Op, *args) -> E:
        self.guard(self.op(Op.OK, *args, attr=(op.value, None)), origin="partial", text=op.value)
        return self.op(op, *args)

    def truth(self, x) -> Node:
        node = self.lift(x)
        return node if node.op in BOOLEAN or node.op is Op.SELECT else self.g.fold(Op.TRUTH, node)

    def if_(self, cond, then, other) -> E:
        return E(self, self.g.select(self.truth(cond), self.lift(then), self.lift(other)))

    def either(self, a, b) -> E:
        return E(self, self.g.either(self.truth(a), self.truth(b)))

    def both(self, a, b) -> E:
        return E(self, self.g.both(self.truth(a), self.truth(b)))

    @property
    def path(self) -> Node:
        out = self.g.const(True)
        for p in self.paths:
            out = self.g.both(out, p)
        return out

    def arm(self, cond):
        builder = self

        class Arm:
            def __enter__(self):
                builder.paths.append(builder.truth(cond))

            def __exit__(self, *_):
                builder.paths.pop()

        return Arm()

    def site(self, name: str, value) -> E:
        node = self.lift(value)
        known = self.sites.setdefault(name, Site(name, "variable", NOWHERE))
        mark = self.g.add(Op.MARK, node, attr=(name, len(known.marks)), site=1 + len(self.sites))
        known.marks.append(Mark(mark, self.path, len(self.guards)))
        return E(self, self.over.get(name, mark))

    def guard(self, cond, kind="require", origin="assert", text="") -> None:
        self.guards.append(Guard(kind, origin, text, "", NOWHERE, self.path, self.truth(cond)))

    def assume(self, cond) -> None:
        self.guard(cond, kind="assume", origin="facts")

    def point(self, name: str, value, role="bits", sites=()) -> None:
        self.points.append(Point(name, role, self.lift(value), tuple(sites)))

    def program(self, scope="request", settings=None) -> Program:
        for name, (kind, domain) in self.spec.items():
            self.g.inputs.setdefault(name, Input(name, kind, domain))
        return Program(
            self.g,
            "t",
            "f",
            "f",
            scope,
            "t.py",
            self.points,
            self.guards,
            self.sites,
            settings=settings or {},
        )


Body = Callable[[Build], None]


def program(body: Body, spec: Spec, scope="request", settings=None) -> Program:
    b = Build(Graph(), spec)
    body(b)
    return b.program(scope, settings)


def residual(
    body: Body, spec: Spec, pins: Mapping[str, Candidates], scope="request", offers=None
) -> Residual:
    """R of a hand-built program, in readings (a) and (b), not simplified."""
    offers = offers or {}
    g = Graph()
    base = Build(g, spec)
    body(base)
    made, over = [], {}
    for name, c in pins.items():
        assert c.values is not None
        extra = tuple(offers.get(name, ()))
        over[name] = g.input(name, "pin", Domain(values=c.values + extra))
        made.append(Pin(name, base.sites[name], c, extra, name))
    pinned = Build(g, spec, over)
    body(pinned)
    shown = {s: p.node for p in pinned.points if p.role != "aux" for s in p.sites}
    adaptive = Build(g, spec, shown)
    body(adaptive)
    holds = [
        [g.fold(Op.SELECT, x.path, x.cond, g.const(True)) for x in b.guards]
        for b in (base, pinned, adaptive)
    ]
    knobs = [n for n, (kind, _) in spec.items() if kind == "knob"]
    for name, (kind, domain) in spec.items():
        g.inputs.setdefault(name, Input(name, kind, domain))
    return Residual(
        g,
        scope,
        [(p, p.node) for p in pinned.points],
        [
            ResidualGuard(x, a, b if b is not a else None)
            for x, a, b in zip(base.guards, holds[1], holds[2], strict=True)
            if x.kind == "require"
        ],
        [(x, n) for x, n in zip(base.guards, holds[0], strict=True) if x.kind == "assume"],
        made,
        knobs,
    )
