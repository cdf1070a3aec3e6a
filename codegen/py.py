"""Straight-line Python: one statement per value, the source line beside it.

Values that cannot be undefined are plain Python operators; all others go through the total
operations of the runtime, so that the text means exactly what the interpreter of the graph means.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from selc.codegen.facts import analyse
from selc.codegen.routine import Routine, source_comment
from selc.ir.absval import AbsVal, never_fails
from selc.ir.graph import Node
from selc.ir.op import Op
from selc.ir.value import Symbol, Value

INFIX: Final = {
    Op.ADD: "+", Op.SUB: "-", Op.MUL: "*", Op.FLOORDIV: "//", Op.MOD: "%", Op.TRUEDIV: "/",
    Op.BITAND: "&", Op.BITOR: "|", Op.BITXOR: "^", Op.RSHIFT: ">>",
    Op.EQ: "==", Op.NE: "!=", Op.LT: "<", Op.LE: "<=", Op.GT: ">", Op.GE: ">=",
}  # fmt: skip
PREFIX: Final = {Op.NEG: "-", Op.POS: "+", Op.INVERT: "~", Op.NOT: "not "}
CALL: Final = {Op.ABS: "abs", Op.TRUTH: "bool", Op.FLOAT: "float"}


class Constants:
    """Python text of constants; those without a literal get a name and a definition."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._names: dict[str, str] = {}

    def text(self, value: Value) -> str:
        """An expression for the value."""
        if value is None or isinstance(value, (bool, str)):
            return repr(value)
        if isinstance(value, int):
            return f"({value})" if value < 0 else str(value)
        if isinstance(value, float) and math.isfinite(value):
            return repr(value) if math.copysign(1.0, value) > 0 else f"({value!r})"
        return self.named("K", _definition(value))

    def named(self, prefix: str, definition: str) -> str:
        """The name of a module-level constant with this definition."""
        if definition not in self._names:
            name = f"_{prefix}{len(self._names)}"
            self._names[definition] = name
            self.lines.append(f"{name} = {definition}")
        return self._names[definition]


def literal(value: Value) -> str:
    """An expression for any value, over `_rt`."""
    return _definition(value)


def _definition(value: Value) -> str:
    if isinstance(value, tuple):
        return "(" + "".join(f"{_definition(v)}, " for v in value) + ")"
    if isinstance(value, Symbol):
        return f"_rt.symbol({value.kind!r}, {value.name!r}, {value.size!r})"
    if isinstance(value, float) and not math.isfinite(value):
        return f"float({str(value)!r})"
    return repr(value)


class PythonBody:
    """The statements of one routine, and the text under which each node is known."""

    def __init__(self, routine: Routine, constants: Constants) -> None:
        self.routine = routine
        self.constants = constants
        self.cone = routine.graph.cone(routine.roots)
        self.facts = analyse(routine.graph, self.cone)
        self.text: dict[int, str] = {}
        slots = {name: f"i{k}" for k, name in enumerate(routine.leaves)}
        slots |= {name: f"p{k}" for k, name in enumerate(routine.parameters)}
        self._slots = slots

    def lines(self) -> list[str]:
        """The statements, in order."""
        return [line for _, line in self.numbered()]

    def numbered(self) -> list[tuple[int, str]]:
        """The statements, in order, each with its node."""
        out: list[tuple[int, str]] = []
        for node in self.cone:
            if node.op is Op.CONST:
                self.text[node.id] = self.constants.text(node.attr)
            elif node.op is Op.INPUT:
                self.text[node.id] = self._slots[str(node.attr)]
            elif node.op is Op.FAIL:
                self.text[node.id] = "_rt.UNDEF"
            elif node.op is Op.MARK:
                self.text[node.id] = self.text[node.args[0].id]
            else:
                name = f"v{node.id}"
                where = source_comment(self.routine.graph, node)
                line = f"{name} = {self._expression(node)}" + (f"  # {where}" if where else "")
                out.append((node.id, line))
                self.text[node.id] = name
        return out

    def is_defined(self, node: Node) -> bool:
        """Whether the node can never be undefined."""
        return self.facts[node.id].abs.defined

    def _expression(self, node: Node) -> str:
        args = [self.text[a.id] for a in node.args]
        facts = [self.facts[a.id].abs for a in node.args]
        if node.op is Op.SELECT:
            if facts[0].defined:
                return f"{args[1]} if {args[0]} else {args[2]}"
            return f"_rt.choose({', '.join(args)})"
        if node.op is Op.OK:
            assert isinstance(node.attr, tuple)
            return self._ok(Op(node.attr[0]), node.attr[1], args)
        if all(f.defined for f in facts) and never_fails(node.op, node.attr, facts):
            text = _direct(node.op, args, facts)
            if node.op is Op.IS and node.args[0].is_const:
                text = None  # CPython warns of `is` with a literal
            if text is not None:
                return text
        function = self._function(node.op, node.attr, total=True)
        return f"{function}({', '.join(self._operands(node.op, node.attr, args))})"

    def _ok(self, op: Op, attr: Value, args: list[str]) -> str:
        if op is Op.FAIL:
            return "False"
        function = self._function(op, attr, total=False)
        return f"_rt.ok({', '.join([function, *self._operands(op, attr, args)])})"

    def _function(self, op: Op, attr: Value, total: bool) -> str:
        if op is Op.METHOD:
            raw = f"_rt.raw_method({attr!r})"
            return self.constants.named("F", f"_rt.total({raw})" if total else raw)
        return self.constants.named("F", f"_rt.{'TOTAL' if total else 'RAW'}[{op.value!r}]")

    def _operands(self, op: Op, attr: Value, args: list[str]) -> list[str]:
        if op in (Op.LOOKUP, Op.HASKEY):
            assert isinstance(attr, tuple)
            if op is Op.LOOKUP:
                pairs = ", ".join(f"{_definition(k)}: {_definition(v)}" for k, v in attr)
                return [self.constants.named("D", f"{{{pairs}}}"), *args]
            keys = ", ".join(f"{_definition(k)}: None" for k in attr)
            return [self.constants.named("D", f"{{{keys}}}"), *args]
        return args


def _direct(op: Op, args: list[str], facts: Sequence[AbsVal]) -> str | None:
    if op in INFIX:
        return f"{args[0]} {INFIX[op]} {args[1]}"
    if op in PREFIX:
        return f"{PREFIX[op]}{args[0]}"
    if op in CALL:
        return f"{CALL[op]}({args[0]})"
    if op is Op.MIN2:
        return f"{args[1]} if {args[1]} < {args[0]} else {args[0]}"
    if op is Op.MAX2:
        return f"{args[1]} if {args[1]} > {args[0]} else {args[0]}"
    if op is Op.IS and "none" in facts[0].kinds | facts[1].kinds and facts[1].kinds == {"none"}:
        return f"{args[0]} is {args[1]}"
    if op is Op.TUPLE:
        return "(" + "".join(f"{a}, " for a in args) + ")"
    return None
