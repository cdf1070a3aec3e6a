"""Graphs compiled to Python functions, for evaluating many points fast.

The text is made from the graph alone (never from the user's source). Operations that may fail, or
that may see an undefined argument, go through `op.total`; all others are Python operators.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from selc.ir.absval import AbsVal, never_fails, of_domain, of_values, transfer
from selc.ir.graph import Graph, Node
from selc.ir.op import TABLE, Op, total
from selc.ir.scopes import place
from selc.ir.value import UNDEF, Value

_INFIX: Final = {
    Op.ADD: "+", Op.SUB: "-", Op.MUL: "*", Op.FLOORDIV: "//", Op.MOD: "%", Op.TRUEDIV: "/",
    Op.LSHIFT: "<<", Op.RSHIFT: ">>", Op.BITAND: "&", Op.BITOR: "|", Op.BITXOR: "^",
    Op.EQ: "==", Op.NE: "!=", Op.LT: "<", Op.LE: "<=", Op.GT: ">", Op.GE: ">=",
}  # fmt: skip
_PREFIX: Final = {Op.NEG: "-", Op.POS: "+", Op.INVERT: "~", Op.NOT: "not "}
_CALL: Final = {
    Op.ABS: "abs", Op.TRUTH: "bool", Op.FLOAT: "float", Op.FLOAT32: "_float32", Op.INT: "int",
    Op.ROUND: "round", Op.CEIL: "_ceil", Op.FLOOR: "_floor", Op.TRUNC: "_trunc", Op.LEN: "len",
}  # fmt: skip
_INLINE_LIMIT: Final = 240

Evaluator = Callable[..., tuple[Value, ...]]


def abstract(graph: Graph, joined: dict[int, AbsVal] | None = None) -> list[AbsVal]:
    """The abstract value of every node; `joined` overrides single nodes (marks with offers)."""
    out: list[AbsVal] = []
    for node in graph.nodes:
        if joined and node.id in joined:
            out.append(joined[node.id])
        elif node.op is Op.INPUT:
            assert isinstance(node.attr, str)
            out.append(of_domain(graph.inputs[node.attr].domain))
        elif node.op is Op.CONST:
            out.append(of_values((node.attr,)))
        else:
            out.append(transfer(node, [out[a.id] for a in node.args]))
    return out


def compile_nodes(
    graph: Graph,
    roots: Sequence[Node],
    parameters: Sequence[str],
    known: Sequence[AbsVal] | None = None,
) -> Evaluator:
    """A function of the named inputs, in that order, that returns the values of `roots`.

    `known` are the abstract values of all nodes (computed if not given).
    """
    facts = abstract(graph) if known is None else known
    writer = _Writer(graph, facts, parameters)
    lines = writer.body(roots)
    names = ", ".join(f"i{k}" for k in range(len(parameters)))
    result = ", ".join(writer.text[r.id] for r in roots) + ("," if roots else "")
    source = (
        f"def f({names}):\n"
        + "".join(f"    {line}\n" for line in lines)
        + f"    return ({result})\n"
    )
    namespace: dict[str, object] = {
        "_u": UNDEF,
        "_k": writer.constants,
        **{f"_t{k}": function for k, function in enumerate(writer.totals)},
        "_float32": TABLE[Op.FLOAT32].python,
        "_ceil": math.ceil,
        "_floor": math.floor,
        "_trunc": math.trunc,
    }
    exec(compile(source, "<graph>", "exec"), namespace)  # noqa: S102  # text made from the graph alone
    function = namespace["f"]
    assert callable(function)
    return function


class _Writer:
    def __init__(self, graph: Graph, facts: Sequence[AbsVal], parameters: Sequence[str]) -> None:
        self.graph = graph
        self.facts = facts
        self.slots = {name: f"i{k}" for k, name in enumerate(parameters)}
        self.constants: list[Value] = []
        self.totals: list[Callable[..., Value]] = []
        self.text: dict[int, str] = {}

    def body(self, roots: Sequence[Node]) -> list[str]:
        """Statements for all that is used more than once, inside the arms that alone need it."""
        cone = self.graph.cone(roots)
        uses, scopes = place(cone, roots)
        top: list[str] = []
        for node in cone:
            home = scopes[node.id]
            lines = home.lines if home.parent is not None else top
            if node.op is Op.SELECT:
                arms = [home.held(node, 0), home.held(node, 1)]
                if any(arms):
                    self.text[node.id] = f"v{node.id}"
                    lines += self._branch(node, arms)
                    continue
            text = self._expression(node)
            atomic = node.op in (Op.CONST, Op.INPUT, Op.MARK, Op.FAIL)
            if not atomic and (uses[node.id] > 1 or len(text) > _INLINE_LIMIT):
                lines.append(f"v{node.id} = {text}")
                text = f"v{node.id}"
            self.text[node.id] = text
        return top

    def _branch(self, node: Node, arms: Sequence[list[str]]) -> list[str]:
        cond, then, other = (self.text[a.id] for a in node.args)
        out: list[str] = []
        if not self.facts[node.args[0].id].defined:
            out = [f"c{node.id} = {cond}", f"if c{node.id} is _u:", f" v{node.id} = _u"]
            cond = f"c{node.id}"
        out.append(f"elif {cond}:" if out else f"if {cond}:")
        out += [f" {line}" for line in arms[0]] + [f" v{node.id} = {then}", "else:"]
        return out + [f" {line}" for line in arms[1]] + [f" v{node.id} = {other}"]

    def _expression(self, node: Node) -> str:
        op = node.op
        if op is Op.CONST:
            return self._literal(node.attr)
        if op is Op.INPUT:
            assert isinstance(node.attr, str)
            return self.slots[node.attr]
        if op is Op.FAIL:
            return "_u"
        args = [self.text[a.id] for a in node.args]
        if op is Op.MARK:
            return args[0]
        facts = [self.facts[a.id] for a in node.args]
        if op is Op.SELECT and facts[0].defined:
            return f"({args[1]} if {args[0]} else {args[2]})"
        if op is Op.LOOKUP:
            return f"{self._mapping(node.attr)}.get({args[0]}, _u)"  # no mapping has UNDEF as a key
        if (
            op is not Op.SELECT
            and all(f.defined for f in facts)
            and never_fails(op, node.attr, facts)
        ):
            text = self._direct(op, node.attr, args)
            if text is not None:
                return text
        self.totals.append(total(op, node.attr))
        return f"_t{len(self.totals) - 1}({', '.join(args)})"

    def _direct(self, op: Op, attr: Value, args: list[str]) -> str | None:
        if op in _INFIX:
            return f"({args[0]} {_INFIX[op]} {args[1]})"
        if op in _PREFIX:
            return f"({_PREFIX[op]}{args[0]})"
        if op in _CALL:
            return f"{_CALL[op]}({args[0]})"
        if op is Op.MIN2:
            return f"min({args[0]}, {args[1]})"
        if op is Op.MAX2:
            return f"max({args[0]}, {args[1]})"
        if op is Op.TUPLE:
            return "(" + "".join(f"{a}, " for a in args) + ")"
        return None

    def _mapping(self, pairs: Value) -> str:
        """A constant dict of the pairs, made once per function."""
        self.constants.append(dict(pairs))  # type: ignore[call-overload]  # pairs, as verified
        return f"_k[{len(self.constants) - 1}]"

    def _literal(self, value: Value) -> str:
        if value is None or type(value) in (bool, str):
            return repr(value)
        if type(value) is int:
            return f"({value})" if value < 0 else str(value)
        self.constants.append(value)
        return f"_k[{len(self.constants) - 1}]"
