"""Graphs as terms of an SMT solver, exact or refused.

Integers, booleans and finite sets of atoms (strings, None, symbols, tuples and floats that are
listed by ranges). Whatever is not exact is `Unsupported`: floats are not modelled, save for a few
forms over a correctly rounded quotient of small integers that equal integer arithmetic. A node is
encoded as a value and a condition under which it is defined. The solver's module is handed in.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

from selc.ir.absval import AbsVal
from selc.ir.graph import Node
from selc.ir.op import TABLE, Op, evaluate
from selc.ir.value import UNDEF, Value, value_key
from selc.vra.view import View

MAX_TABLE: Final = 512
_EXACT: Final = 1 << 53

Expr = Any  # z3 has no types of its own


class Unsupported(Exception):
    """A node that has no exact encoding."""


@dataclass(frozen=True, slots=True)
class Term:
    """An encoded node: `kind` is int, bool or code; `defined` is None where it always is."""

    kind: str
    expr: Expr
    defined: Expr = None


class Encoder:
    """Terms of the nodes of one view, all in one solver context.

    A `loose` one lets what has no encoding be anything that ranges allow: what then cannot be true
    cannot be true at all, and what can be has to be confirmed.
    """

    def __init__(self, view: View, z3: ModuleType, loose: bool = False) -> None:
        self.z3 = z3
        self.loose = loose
        self.view = view
        self.context = self.z3.Context()
        self.codes: dict[object, int] = {}
        self.atoms: list[Value] = []
        self.shared: dict[int, Term] = {}
        self.leaves: dict[str, Term] = {}
        self.constraints: dict[str, Expr] = {}
        self.refused: set[int] = set()  # shared nodes that have no encoding
        self.free = 0  # variables that stand for what has none

    def code(self, value: Value) -> int:
        """The number that stands for an atom."""
        key = value_key(value)
        if key not in self.codes:
            self.codes[key] = len(self.atoms)
            self.atoms.append(value)
        return self.codes[key]

    def number(self, value: int) -> Expr:
        """An integer constant."""
        return self.z3.IntVal(value, self.context)

    def truth(self, value: bool) -> Expr:
        """A boolean constant."""
        return self.z3.BoolVal(value, self.context)

    def kind(self, fact: AbsVal) -> str:
        """How a node is represented."""
        if fact.kinds == {"int"}:
            return "int"
        if fact.kinds == {"bool"}:
            return "bool"
        if fact.values is not None:
            return "code"
        raise Unsupported(f"values of kinds {', '.join(sorted(fact.kinds))}")

    def constant(self, value: Value, kind: str) -> Expr:
        """A constant in a representation."""
        if kind == "int":
            return self.number(int(value))  # type: ignore[call-overload]  # of kind int
        return self.truth(bool(value)) if kind == "bool" else self.number(self.code(value))

    def equals(self, term: Term, value: Value) -> Expr:
        """Whether a term is exactly this value (not whether it is defined)."""
        fits = {"int": type(value) is int, "bool": type(value) is bool, "code": True}[term.kind]
        return term.expr == self.constant(value, term.kind) if fits else self.truth(False)

    def leaf(self, name: str, fact: AbsVal) -> Term:
        """The variable of an input, with its declared domain as a constraint."""
        if name not in self.leaves:
            z3 = self.z3
            domain = self.view.graph.inputs[name].domain
            kind = self.kind(fact)
            x = z3.Bool(name, self.context) if kind == "bool" else z3.Int(name, self.context)
            term = Term(kind, x)
            if domain.values is not None:
                rule = z3.Or(*[self.equals(term, v) for v in domain.values])
            else:
                rule = z3.And(x >= domain.lo, x <= domain.hi)
                if domain.step != 1:
                    rule = z3.And(rule, (x - domain.lo) % domain.step == 0)
            self.leaves[name] = term
            self.constraints[name] = rule
        return self.leaves[name]

    def encode(
        self, roots: Sequence[Node], facts: Sequence[AbsVal], parameters: int = 0
    ) -> list[Term]:
        """The terms of `roots`. What reads `parameters` is encoded for these `facts` alone."""
        own: dict[int, Term] = {}
        masks = self.view.masks

        def memo(node: Node) -> dict[int, Term]:
            return own if masks[node.id] & parameters else self.shared

        wanted: dict[int, Node] = {}
        todo = list(roots)
        while todo:
            node = todo.pop()
            if node.id in wanted or node.id in memo(node):
                continue
            if node.id in self.refused:
                raise Unsupported("a node that was refused before")
            wanted[node.id] = node
            todo.extend(self._needs(node, facts))
        for key in sorted(wanted):
            node = wanted[key]
            try:
                memo(node)[key] = self._term(node, facts, lambda a: self._known(memo(a)[a.id]))
            except Unsupported:
                if self.loose:
                    memo(node)[key] = self._anything(facts[node.id])
                    continue
                self.refused |= {
                    n.id
                    for n in (node, *(roots if len(roots) == 1 else ()))
                    if not masks[n.id] & parameters
                }
                raise
        return [self._known(memo(r)[r.id]) for r in roots]

    def _known(self, term: Term) -> Term:
        if term.kind == "free":
            raise Unsupported("an argument that may be anything")
        return term

    def _anything(self, fact: AbsVal) -> Term:
        """A new variable within a range; of kind `free` if it is no integer and no boolean."""
        z3, context = self.z3, self.context
        self.free += 1
        defined = None if fact.defined else z3.Bool(f"defined {self.free}", context)
        if fact.kinds == {"bool"}:
            return Term("bool", z3.Bool(f"free {self.free}", context), defined)
        if fact.kinds != {"int"}:
            return Term("free", None, defined)
        x = z3.Int(f"free {self.free}", context)
        rules = [x >= fact.lo] if fact.lo is not None else []
        rules += [x <= fact.hi] if fact.hi is not None else []
        if rules:
            self.constraints[f"\0free {self.free}"] = z3.And(*rules)
        return Term("int", x, defined)

    @staticmethod
    def _needs(node: Node, facts: Sequence[AbsVal]) -> tuple[Node, ...]:
        fact = facts[node.id]
        if fact.single or node.is_const:
            return ()
        if node.op is Op.SELECT:
            cond = facts[node.args[0].id]
            if cond.single:
                return (node.args[1] if cond.values == (True,) else node.args[2],)
        quotient = _quotient(node, facts)
        return quotient if quotient is not None else node.args

    def _term(self, node: Node, facts: Sequence[AbsVal], get: Callable[[Node], Term]) -> Term:
        fact = facts[node.id]
        if fact.values is not None and len(fact.values) == 1 and fact.defined:
            kind = self.kind(fact)
            return Term(kind, self.constant(fact.values[0], kind))
        if node.op is Op.FAIL or (fact.values == () and not fact.defined):
            return Term("int", self.number(0), self.truth(False))
        if node.op is Op.INPUT:
            return self.leaf(str(node.attr), fact)
        if node.op is Op.MARK:
            return get(node.args[0])
        if node.op is Op.SELECT:
            return self._select(node, facts, get)
        quotient = _quotient(node, facts)
        if quotient is not None:
            return self._divided(node, [get(a) for a in quotient], facts)
        terms = [get(a) for a in node.args]
        if node.op is Op.OK:
            return self._ok(node, terms, facts)
        return self._operation(node, terms, facts)

    def _both(self, conditions: Sequence[Expr]) -> Expr:
        some = [c for c in conditions if c is not None]
        return None if not some else some[0] if len(some) == 1 else self.z3.And(*some)

    def _select(self, node: Node, facts: Sequence[AbsVal], get: Callable[[Node], Term]) -> Term:
        cond_fact = facts[node.args[0].id]
        if cond_fact.single:
            return get(node.args[1] if cond_fact.values == (True,) else node.args[2])
        cond, then, other = (get(a) for a in node.args)
        if cond.kind != "bool":
            raise Unsupported("a condition that is not a bool")
        fact = facts[node.id]
        if not fact.kinds:
            return Term("int", self.number(0), self.truth(False))
        kind = self.kind(fact)
        arms = [
            self._convert(t, facts[a.id], kind)
            for t, a in zip((then, other), node.args[1:], strict=True)
        ]
        expr = self.z3.If(cond.expr, *arms)
        defined = None
        if then.defined is not None or other.defined is not None:
            yes = self.truth(True)
            defined = self.z3.If(
                cond.expr,
                yes if then.defined is None else then.defined,
                yes if other.defined is None else other.defined,
            )
        return Term(kind, expr, self._both([cond.defined, defined]))

    def _convert(self, term: Term, fact: AbsVal, kind: str) -> Expr:
        if term.kind == kind:
            return term.expr
        if not fact.kinds:
            return self.constant(0, kind)  # never defined
        if kind == "code" and fact.values is not None:
            return self._chain(
                [(self.equals(term, v), self.number(self.code(v))) for v in fact.values]
            )
        raise Unsupported("arms of different kinds")

    def _chain(self, cases: Sequence[tuple[Expr, Expr]]) -> Expr:
        out = cases[-1][1]
        for test, result in reversed(cases[:-1]):
            out = self.z3.If(test, result, out)
        return out

    def integer(self, term: Term, fact: AbsVal) -> Expr:
        """A term as an integer, as arithmetic on bools and ints does."""
        if term.kind == "int":
            return term.expr
        if term.kind == "bool":
            return self.z3.If(term.expr, self.number(1), self.number(0))
        if fact.values is not None and fact.is_integral:
            return self._chain([(self.equals(term, v), self.number(int(v))) for v in fact.values])  # type: ignore[call-overload]
        raise Unsupported("arithmetic on values that are not integers")

    def _ok(self, node: Node, terms: Sequence[Term], facts: Sequence[AbsVal]) -> Term:
        assert isinstance(node.attr, tuple)
        op = Op(node.attr[0])
        args = [facts[a.id] for a in node.args]
        undefined = self._both([t.defined for t in terms])
        if op in (Op.FLOORDIV, Op.MOD, Op.TRUEDIV) and all(a.is_integral for a in args):
            if op is Op.TRUEDIV and not _small(args):
                raise Unsupported("a quotient of wide integers")
            fine = self.integer(terms[1], args[1]) != 0
        elif op in (Op.LSHIFT, Op.RSHIFT) and all(a.is_integral for a in args):
            if op is Op.LSHIFT and (args[1].hi is None or args[1].hi > 1024):
                raise Unsupported("a wide shift")
            fine = self.integer(terms[1], args[1]) >= 0
        elif (
            op is Op.INDEX
            and args[1].is_integral
            and args[0].values is not None
            and len(args[0].values) == 1
        ):
            size = len(args[0].values[0])  # type: ignore[arg-type]  # a tuple or a string
            index = self.integer(terms[1], args[1])
            fine = self.z3.And(index >= -size, index < size)
        else:
            return self._table(node, terms, facts)
        return Term("bool", fine if undefined is None else self.z3.Or(self.z3.Not(undefined), fine))

    def _operation(self, node: Node, terms: Sequence[Term], facts: Sequence[AbsVal]) -> Term:
        args = [facts[a.id] for a in node.args]
        rule = _ARITHMETIC.get(node.op)
        if rule is not None and args and all(a.is_integral for a in args):
            xs = [self.integer(t, a) for t, a in zip(terms, args, strict=True)]
            made = rule(self, xs, args, facts[node.id])
            if made is not None:
                kind, expr, defined = made
                return Term(kind, expr, self._both([*(t.defined for t in terms), defined]))
        if node.op in (Op.NOT, Op.TRUTH) and terms[0].kind == "bool":
            x = terms[0].expr
            return Term("bool", self.z3.Not(x) if node.op is Op.NOT else x, terms[0].defined)
        if node.op in (Op.EQ, Op.NE, Op.IS) and all(a.kinds == {"bool"} for a in args):
            same = terms[0].expr == terms[1].expr
            return Term(
                "bool",
                self.z3.Not(same) if node.op is Op.NE else same,
                self._both([t.defined for t in terms]),
            )
        if node.op in (Op.BITAND, Op.BITOR) and all(t.kind == "bool" for t in terms):
            join = self.z3.And if node.op is Op.BITAND else self.z3.Or
            return Term(
                "bool", join(*(t.expr for t in terms)), self._both([t.defined for t in terms])
            )
        return self._keyed(node, terms, facts)

    def _keyed(self, node: Node, terms: Sequence[Term], facts: Sequence[AbsVal]) -> Term:
        """Lookups of an integer in a constant mapping or tuple."""
        pairs = _pairs(node, facts)
        if pairs is None or len(pairs) > MAX_TABLE:
            return self._table(node, terms, facts)
        key = (
            terms[0]
            if node.op in (Op.LOOKUP, Op.HASKEY)
            else terms[-1]
            if node.op is Op.INDEX
            else terms[0]
        )
        fact = facts[node.args[0 if node.op is not Op.INDEX else 1].id]
        x = self.integer(key, fact)
        if node.op in (Op.HASKEY, Op.IN):
            member = self.z3.Or(self.truth(False), *[x == k for k, _ in pairs])
            return Term("bool", member, self._both([t.defined for t in terms]))
        kind = self.kind(facts[node.id])
        cases = [(x == k, self.constant(v, kind)) for k, v in pairs]
        found = self.z3.Or(*[x == k for k, _ in pairs])
        return Term(kind, self._chain(cases), self._both([*(t.defined for t in terms), found]))

    def _table(self, node: Node, terms: Sequence[Term], facts: Sequence[AbsVal]) -> Term:
        """Any operation whose arguments have few values: a case for every combination."""
        options = []
        size = 1
        for a in node.args:
            values = facts[a.id].values
            if values is None:
                raise Unsupported(f"{node.op.value} of many values")
            options.append(values)
            size *= len(values)
        if not 0 < size <= MAX_TABLE or (not TABLE[node.op].total and node.op is Op.FAIL):
            raise Unsupported(f"{node.op.value} of many values")
        kind = self.kind(facts[node.id])
        cases, bad = [], []
        for combo in itertools.product(*options):
            test = self.z3.And(
                *[self.equals(t, v) for t, v in zip(terms, combo, strict=True)], self.truth(True)
            )
            value = evaluate(node.op, node.attr, combo)
            if value is UNDEF:
                bad.append(test)
            else:
                cases.append((test, self.constant(value, kind)))
        if not cases:
            return Term("int", self.number(0), self.truth(False))
        undefined = self.z3.Not(self.z3.Or(*bad)) if bad else None
        given = [t.defined for t in terms]
        if node.op is Op.OK:
            fine, known = self._chain(cases), self._both(given)
            return Term("bool", fine if known is None else self.z3.Or(self.z3.Not(known), fine))
        return Term(kind, self._chain(cases), self._both([*given, undefined]))

    def _divided(self, node: Node, terms: Sequence[Term], facts: Sequence[AbsVal]) -> Term:
        """Rounding, or comparing with an integer, the quotient of two small integers.

        Correct rounding is monotone and keeps every integer below 2**53, and a quotient a / b that
        is no integer is at least 1 / b away from one: more than half a unit in the last place as
        long as abs(a) + abs(b) < 2**53. So the rounded quotient lies on the side of every integer
        on which the real one does.
        """
        z3 = self.z3
        quotient = _quotient(node, facts)
        assert quotient is not None
        a, b = (self.integer(t, facts[n.id]) for t, n in zip(terms[:2], quotient[:2], strict=True))
        divisor = facts[quotient[1].id]
        if divisor.hi is not None and divisor.hi < 0:
            a, b = -a, -b
        given = self._both([t.defined for t in terms])
        if node.op in (Op.FLOOR, Op.CEIL, Op.INT, Op.TRUNC):
            floor, ceil = a / b, -((-a) / b)
            expr = (
                floor
                if node.op is Op.FLOOR
                else ceil
                if node.op is Op.CEIL
                else z3.If(a >= 0, floor, ceil)
            )
            return Term("int", expr, given)
        right = self.integer(terms[2], facts[quotient[2].id]) * b
        left = a
        if node.args[0] is quotient[2]:
            left, right = right, left
        return Term("bool", _ORDER[node.op](left, right), given)


def _small(args: Sequence[AbsVal]) -> bool:
    total = 0
    for a in args:
        if a.lo is None or a.hi is None:
            return False
        total += max(abs(a.lo), abs(a.hi))
    return total < _EXACT


def _quotient(node: Node, facts: Sequence[AbsVal]) -> tuple[Node, ...] | None:
    """The operands a, b (and c) of round(a / b) or a / b compared with c, if that is exact."""
    rest: tuple[Node, ...] = ()
    if node.op in (Op.FLOOR, Op.CEIL, Op.INT, Op.TRUNC):
        division = node.args[0]
    elif node.op in _ORDER:
        division, rest = node.args[0], node.args[1:]
        if _bare(division).op is not Op.TRUEDIV:
            division, rest = node.args[1], node.args[:1]
    else:
        return None
    division = _bare(division)
    if division.op is not Op.TRUEDIV:
        return None
    args = [facts[a.id] for a in division.args]
    b = args[1]
    signed = (b.lo is not None and b.lo > 0) or (b.hi is not None and b.hi < 0)
    if not signed or not all(a.is_integral for a in args) or not _small(args):
        return None
    if rest and not (facts[rest[0].id].is_integral and _small([facts[rest[0].id]])):
        return None
    return (*division.args, *rest)


def _bare(node: Node) -> Node:
    while node.op is Op.MARK:
        node = node.args[0]
    return node


def _pairs(node: Node, facts: Sequence[AbsVal]) -> list[tuple[int, Value]] | None:
    """A constant mapping from ints, as an operation reads it with an integral key."""
    if node.op in (Op.LOOKUP, Op.HASKEY) and facts[node.args[0].id].is_integral:
        assert isinstance(node.attr, tuple)
        pairs = [p if node.op is Op.LOOKUP else (p, True) for p in node.attr]
    elif node.op in (Op.INDEX, Op.IN):
        base, key = (0, 1) if node.op is Op.INDEX else (1, 0)
        fact = facts[node.args[base].id]
        if not fact.single or not facts[node.args[key].id].is_integral or fact.values is None:
            return None
        held = fact.values[0]
        if not isinstance(held, tuple):
            return None
        if node.op is Op.IN:
            pairs = [(v, True) for v in held]
        else:
            pairs = [(i, v) for i, v in enumerate(held)] + [
                (i - len(held), v) for i, v in enumerate(held)
            ]
    else:
        return None
    numbers = {
        int(k): v
        for k, v in pairs
        if isinstance(k, int) or (isinstance(k, float) and k.is_integer())
    }
    return list(numbers.items())


_ORDER: Final[dict[Op, Callable[[Expr, Expr], Expr]]] = {
    Op.LT: lambda a, b: a < b,
    Op.LE: lambda a, b: a <= b,
    Op.GT: lambda a, b: a > b,
    Op.GE: lambda a, b: a >= b,
    Op.EQ: lambda a, b: a == b,
    Op.NE: lambda a, b: a != b,
}

Made = tuple[str, Expr, Expr] | None
Rule = Callable[[Encoder, list[Expr], Sequence[AbsVal], AbsVal], Made]


def _floor(e: Encoder, x: list[Expr], f: Sequence[AbsVal], remainder: bool) -> Made:
    """`//` and `%` with Python's signs; remainders of the solver's own are never negative."""
    z3, (a, b), fact = e.z3, x, f[1]
    if fact.lo is not None and fact.lo > 0:
        return "int", (a % b if remainder else a / b), None
    up, down = (a % b, -((-a) % -b)) if remainder else (a / b, (-a) / -b)
    defined = None if _nonzero(fact) else b != 0
    if fact.hi is not None and fact.hi < 0:
        return "int", down, defined
    return "int", z3.If(b > 0, up, down), defined


def _nonzero(fact: AbsVal) -> bool:
    if fact.values is not None:
        return all(v != 0 for v in fact.values)
    return (fact.lo is not None and fact.lo > 0) or (fact.hi is not None and fact.hi < 0)


def _shift(e: Encoder, x: list[Expr], f: Sequence[AbsVal], left: bool) -> Made:
    counts = f[1].values
    if counts is None:
        if f[1].lo is None or f[1].hi is None or f[1].hi - f[1].lo > 64:
            return None
        counts = tuple(range(f[1].lo, f[1].hi + 1))
    good = [int(v) for v in counts if isinstance(v, int) and 0 <= v <= 256]
    if len(good) != len([v for v in counts if isinstance(v, int) and v >= 0]) or not good:
        return None
    cases = [(x[1] == k, x[0] * (1 << k) if left else x[0] / e.number(1 << k)) for k in good]
    return "int", e._chain(cases), None if len(good) == len(counts) else x[1] >= 0


def _bitand(e: Encoder, x: list[Expr], f: Sequence[AbsVal], result: AbsVal) -> Made:
    if result.kinds != {"int"}:
        return None
    for k in (0, 1):
        if f[k].single and f[k].lo is not None:
            mask = f[k].lo
            if mask is not None and mask >= 0 and mask & (mask + 1) == 0:
                return "int", x[1 - k] % (mask + 1), None
    return None


def _bit_length(e: Encoder, x: list[Expr], f: Sequence[AbsVal], result: AbsVal) -> Made:
    if result.hi is None or result.hi > 64:
        return None
    a = e.z3.If(x[0] >= 0, x[0], -x[0])
    return "int", e._chain([(a < (1 << k), e.number(k)) for k in range(result.hi + 1)]), None


def _power(e: Encoder, x: list[Expr], f: Sequence[AbsVal], result: AbsVal) -> Made:
    if not f[1].single or f[1].lo is None or not 0 < f[1].lo <= 4:
        return None
    out = x[0]
    for _ in range(f[1].lo - 1):
        out = out * x[0]
    return "int", out, None


def _least(smallest: bool) -> Rule:
    def rule(e: Encoder, x: list[Expr], f: Sequence[AbsVal], result: AbsVal) -> Made:
        if not all(a.kinds == {"int"} for a in f):
            return None  # the type of the result is that of the operand taken
        return "int", e.z3.If(x[1] < x[0] if smallest else x[1] > x[0], x[1], x[0]), None

    return rule


def _compared(op: Op) -> Rule:
    return lambda e, x, f, r: ("bool", _ORDER[op](x[0], x[1]), None)


_ARITHMETIC: Final[dict[Op, Rule]] = {
    Op.ADD: lambda e, x, f, r: ("int", x[0] + x[1], None),
    Op.SUB: lambda e, x, f, r: ("int", x[0] - x[1], None),
    Op.MUL: lambda e, x, f, r: ("int", x[0] * x[1], None),
    Op.FLOORDIV: lambda e, x, f, r: _floor(e, x, f, remainder=False),
    Op.MOD: lambda e, x, f, r: _floor(e, x, f, remainder=True),
    Op.LSHIFT: lambda e, x, f, r: _shift(e, x, f, left=True),
    Op.RSHIFT: lambda e, x, f, r: _shift(e, x, f, left=False),
    Op.BITAND: _bitand,
    Op.POW: _power,
    Op.NEG: lambda e, x, f, r: ("int", -x[0], None),
    Op.POS: lambda e, x, f, r: ("int", x[0], None),
    Op.INVERT: lambda e, x, f, r: ("int", -x[0] - 1, None),
    Op.ABS: lambda e, x, f, r: ("int", e.z3.If(x[0] >= 0, x[0], -x[0]), None),
    Op.MIN2: _least(smallest=True),
    Op.MAX2: _least(smallest=False),
    Op.INT: lambda e, x, f, r: ("int", x[0], None),
    Op.ROUND: lambda e, x, f, r: ("int", x[0], None),
    Op.CEIL: lambda e, x, f, r: ("int", x[0], None),
    Op.FLOOR: lambda e, x, f, r: ("int", x[0], None),
    Op.TRUNC: lambda e, x, f, r: ("int", x[0], None),
    Op.BIT_LENGTH: _bit_length,
    Op.TRUTH: lambda e, x, f, r: ("bool", x[0] != 0, None),
    Op.NOT: lambda e, x, f, r: ("bool", x[0] == 0, None),
    **{op: _compared(op) for op in _ORDER},
}
