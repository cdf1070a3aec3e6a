"""Random programs with sites, points and guards, and what brute force says about them."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from selc.diag.span import NOWHERE
from selc.ir.domain import Domain
from selc.ir.graph import BOOLEAN, Graph, Node
from selc.ir.interp import run_program
from selc.ir.op import Op, TooWide
from selc.ir.program import Guard, Mark, Point, Program, Site
from selc.ir.residual import Candidates
from selc.ir.value import UNDEF, Value, sort_key, value_key
from tests.unit.passes.strategies import points

ARITHMETIC = [Op.ADD, Op.SUB, Op.MUL, Op.FLOORDIV, Op.MIN2, Op.MAX2]
COMPARISONS = [Op.LT, Op.LE, Op.GT, Op.EQ]


class _Build:
    """Draws statements: each value is made of recent ones, and many get a name."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.g = Graph()
        scope = draw(st.sampled_from(["request", "launch"]))
        self.program = Program(self.g, "t.py:f", "f", "fam", scope, "t.py", [], [], {})
        self.yes = self.g.const(True)
        self.ints: list[Node] = []
        self.bools: list[Node] = []
        for k, kind in enumerate(draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3))):
            values = draw(
                st.sampled_from([(1, 8, 1), (0, 3, 1), (2, 16, 2), (1, 1, 1), (-2, 2, 1)])
            )
            self.ints.append(self.g.input(f"i{k}", kind, Domain(*values)))

    def recent(self, of: list[Node]) -> Node:
        near: bool = self.draw(st.booleans())
        return self.draw(st.sampled_from(of[-4:] if near else of))

    def number(self) -> Node:
        if self.draw(st.integers(0, 2)) == 0:
            return self.g.const(self.draw(st.sampled_from([0, 1, 2, 3, 4, 8, 64])))
        return self.recent(self.ints)

    def statement(self) -> None:
        draw, g = self.draw, self.g
        shape = draw(st.integers(0, 7))
        if shape <= 2:
            op = draw(st.sampled_from(ARITHMETIC))
            node = self.expression(op, self.recent(self.ints), self.number())
        elif shape <= 4:
            op = draw(st.sampled_from(COMPARISONS))
            node = self.expression(op, self.recent(self.ints), self.number())
        elif shape <= 6 and self.bools:
            node = self.expression(Op.SELECT, self.recent(self.bools), self.number(), self.number())
        elif self.bools:
            node = self.expression(
                Op.SELECT,
                self.recent(self.bools),
                self.recent(self.bools),
                g.const(draw(st.booleans())),
            )
        else:
            return
        if draw(st.booleans()):
            node = self.named(node)
        (self.bools if self.is_bool(node) else self.ints).append(node)

    def is_bool(self, node: Node) -> bool:
        while node.op in (Op.MARK, Op.SELECT):
            node = node.args[-1] if node.op is Op.MARK else node.args[1]
        return node.op in BOOLEAN or (node.is_const and type(node.attr) is bool)

    def expression(self, op: Op, *args: Node) -> Node:
        g = self.g
        node = g.fold(op, *args, site=len(g.nodes) + 1)
        if node.is_const or node in args:
            return node
        self.program.sites[f"f.L{node.id}"] = Site(
            f"f.L{node.id}", "expression", NOWHERE, [Mark(node, self.yes, len(self.program.guards))]
        )
        if op is Op.FLOORDIV:
            ok = g.add(Op.OK, *args, attr=(op.value, None))
            self.require(ok, "partial", self.yes)
        return node

    def named(self, node: Node) -> Node:
        name = f"f.x{len(self.g.nodes)}"
        marked = self.g.add(Op.MARK, node, attr=len(self.g.nodes))
        self.program.sites[name] = Site(
            name, "variable", NOWHERE, [Mark(marked, self.yes, len(self.program.guards))]
        )
        return marked

    def require(self, cond: Node, origin: str, path: Node, kind: str = "require") -> None:
        self.program.guards.append(Guard(kind, origin, "", "", NOWHERE, path, cond))


KINDS = ["runtime", "runtime", "request", "knob"]


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """A program with a site for every expression and a name for many."""
    b = _Build(draw)
    for _ in range(draw(st.integers(2, 16))):
        b.statement()
    if b.bools and draw(st.integers(0, 3)) == 0:
        b.require(b.bools[0], "call", b.yes, "assume")
    ends = [n for n in (*b.ints, *b.bools) if n.op is not Op.INPUT]
    for k in range(draw(st.integers(1, 3))):
        node = b.named(draw(st.sampled_from(ends[-5:]))) if ends else b.ints[0]
        role = draw(st.sampled_from(["bits", "bits", "bits", "neutral", "aux"]))
        sites = (f"f.x{node.id}",) if f"f.x{node.id}" in b.program.sites else ()
        (b.bools if b.is_bool(node) else b.ints).append(node)
        b.program.points.append(Point(f"p{k}", role, node, sites))
    for _ in range(draw(st.integers(0, 3))):
        cond = b.g.add(draw(st.sampled_from([Op.LE, Op.NE])), b.recent(b.ints), b.number())
        under: bool = draw(st.booleans())
        path = b.recent(b.bools) if b.bools and under else b.yes
        b.require(cond, "assert", path)
    return b.program


def admitted(program: Program) -> list[dict[str, Value]]:
    """The points on which every assume holds in the unpinned program."""
    out = []
    for p in points(program.graph):
        try:
            if all(_holds(program, g, p) for g in program.guards if g.kind == "assume"):
                out.append(p)
        except TooWide:
            continue
    return out


def _holds(program: Program, guard: Guard, p: dict[str, Value]) -> bool:
    from selc.ir.interp import run

    path, cond = run(program.graph, [guard.path, guard.cond], p)
    return path is not True or cond is True


def candidates(program: Program) -> Callable[[Site], Candidates]:
    """What sites take, by brute force."""
    found: dict[str, dict[object, Value]] = {name: {} for name in program.sites}
    for p in admitted(program):
        for name, value in run_program(program, p).sites.items():
            if value is not UNDEF:
                found[name][value_key(value)] = value
    return lambda s: Candidates(tuple(sorted(found[s.name].values(), key=sort_key)))


def request_of(program: Program, p: dict[str, Value]) -> tuple[object, ...]:
    """What the batch does not determine."""
    inputs = program.graph.inputs
    return tuple(value_key(v) for n, v in p.items() if not inputs[n].is_batch(program.scope))


__all__ = ["Node", "admitted", "candidates", "programs", "request_of"]
