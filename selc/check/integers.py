"""Z3 on integers, booleans and constants that are only compared: a claim, or a call against it.

A value is a pair of integer terms, its tag and its content: undefined, an integer, a boolean, or a
constant of another type by its number. Floats, strings that are computed and unbounded shifts are
not encoded; whoever asks then hears so. `//` and `%` have Python's signs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from selc.check.dag import Dag
from selc.check.meaning import SAME
from selc.check.values import UNDEF, Symbol, key

RLIMIT: Final = 20_000_000
LONGEST: Final = 2048
"""Pairs of a table that are encoded."""

_UNDEF, _INT, _BOOL, _OTHER = range(4)


class NotEncoded(Exception):
    """The claim reads what has no encoding here."""


@dataclass(frozen=True, slots=True)
class _Value:
    tag: Any
    content: Any
    may: frozenset[int]  # the tags that it can have


@dataclass(frozen=True, slots=True)
class _Items:
    """A tuple, always of one length."""

    items: tuple[_Value | _Items, ...]


_Any = _Value | _Items


def _value(tag: int, content: Any) -> _Value:
    return _Value(tag, content, frozenset({tag}))


_NOTHING: Final = _value(_UNDEF, 0)


def refute(dag: Dag, claim: int, rlimit: int = RLIMIT) -> tuple[str, dict[str, Any]]:
    """`proved`, `refuted` with a call over the leaves that the claim reads, or `unknown`.

    Raises:
        NotEncoded: the claim reads something that has no encoding.
    """
    import z3

    solver = z3.Solver()
    solver.set("rlimit", rlimit)
    encoder = _Encoder(dag, z3, solver)
    value = encoder.scalar(encoder.encode(claim))
    solver.add(z3.Not(encoder.conj(value.tag == _BOOL, value.content == 1)))
    answer = solver.check()
    if answer == z3.unsat:
        return "proved", {}
    if answer == z3.unknown:
        return "unknown", {}
    model = solver.model()
    call: dict[str, Any] = {}
    for name, (variable, domain) in encoder.variables.items():
        number = model.eval(variable, model_completion=True).as_long()
        call[name] = number if isinstance(domain, range) else domain[number]
    return "refuted", call


class _Encoder:
    def __init__(self, dag: Dag, z3: Any, solver: Any) -> None:
        self.dag = dag
        self.z3 = z3
        self.solver = solver
        self.variables: dict[str, tuple[Any, Any]] = {}
        self.codes: dict[Hashable, int] = {}
        self.falsy = [self.code(v) for v in (None, "")]

    def encode(self, root: int) -> _Any:
        done: dict[int, _Any] = {}
        for n in self.dag.cone(root):
            op, args, attr = self.dag.nodes[n]
            if op == "input":
                done[n] = self.leaf(attr)
            else:
                done[n] = self.operation(op, attr, [done[a] for a in args])
        return done[root]

    # --- values -------------------------------------------------------------------------------

    def code(self, value: Any) -> int:
        return self.codes.setdefault(key(value), len(self.codes))

    def constant(self, value: Any) -> _Any:
        if value is UNDEF:
            return _NOTHING
        if type(value) is tuple:
            return _Items(tuple(self.constant(v) for v in value))
        if type(value) is bool:
            return _value(_BOOL, int(value))
        if type(value) is int:
            return _value(_INT, value)
        if value is None or type(value) in (str, Symbol):
            return _value(_OTHER, self.code(value))
        raise NotEncoded(f"a constant of type {type(value).__name__}")

    def leaf(self, name: str) -> _Any:
        domain = self.dag.domains[name]
        variable = self.z3.Int(f"leaf {len(self.variables)}")
        self.variables[name] = (variable, domain)
        if isinstance(domain, range):
            self.solver.add(variable >= domain[0], variable <= domain[-1])
            if domain.step != 1:
                self.solver.add((variable - domain.start) % domain.step == 0)
            return _value(_INT, variable)
        self.solver.add(variable >= 0, variable < len(domain))
        out = self.constant(domain[-1])
        for place in range(len(domain) - 2, -1, -1):
            out = self.choose(variable == place, self.constant(domain[place]), out)
        return out

    def scalar(self, value: _Any) -> _Value:
        if isinstance(value, _Items):
            raise NotEncoded("a tuple in arithmetic")
        return value

    # --- terms, computed where they are plain -------------------------------------------------

    def conj(self, *terms: Any) -> Any:
        kept = [t for t in terms if t is not True]
        if any(t is False for t in kept):
            return False
        return True if not kept else kept[0] if len(kept) == 1 else self.z3.And(*kept)

    def disj(self, *terms: Any) -> Any:
        kept = [t for t in terms if t is not False]
        if any(t is True for t in kept):
            return True
        return False if not kept else kept[0] if len(kept) == 1 else self.z3.Or(*kept)

    def neg(self, term: Any) -> Any:
        return not term if isinstance(term, bool) else self.z3.Not(term)

    def iff(self, cond: Any, then: Any, other: Any) -> Any:
        if isinstance(cond, bool):
            return then if cond else other
        if isinstance(then, int) and isinstance(other, int) and then == other:
            return then
        return self.z3.If(cond, then, other)

    def choose(self, cond: Any, then: _Any, other: _Any) -> _Any:
        if isinstance(cond, bool):
            return then if cond else other
        if (
            isinstance(then, _Items)
            and isinstance(other, _Items)
            and len(then.items) == len(other.items)
        ):
            pairs = zip(then.items, other.items, strict=True)
            return _Items(tuple(self.choose(cond, a, b) for a, b in pairs))
        a, b = self.scalar(then), self.scalar(other)
        tag, content = self.iff(cond, a.tag, b.tag), self.iff(cond, a.content, b.content)
        return _Value(tag, content, a.may | b.may)

    def number(self, v: _Any) -> tuple[_Value, Any]:
        """A value, and whether it is a number."""
        value = self.scalar(v)
        if value.may <= {_INT, _BOOL}:
            return value, True
        return value, self.disj(value.tag == _INT, value.tag == _BOOL)

    def truth(self, v: _Any) -> Any:
        if isinstance(v, _Items):
            return bool(v.items)
        if _OTHER not in v.may:
            return v.content != 0
        falsy = [v.content == c for c in self.falsy]
        other = self.neg(self.disj(*falsy))
        return self.iff(v.tag == _OTHER, other, v.content != 0)

    def boolean(self, term: Any, defined: Any = True) -> _Value:
        content = int(term) if isinstance(term, bool) else self.iff(term, 1, 0)
        return self.maybe(_value(_BOOL, content), defined)

    def integer(self, term: Any, defined: Any) -> _Value:
        return self.maybe(_value(_INT, term), defined)

    def maybe(self, value: _Value, defined: Any) -> _Value:
        found = self.choose(defined, value, _NOTHING)
        return self.scalar(found)

    def defined(self, *values: _Any) -> Any:
        terms = []
        for v in values:
            if isinstance(v, _Items):
                terms.append(self.defined(*v.items))
            else:
                terms.append(True if _UNDEF not in v.may else v.tag != _UNDEF)
        return self.conj(*terms)

    def equal(self, a: _Any, b: _Any, typed: bool) -> Any:
        """Python's `==` on defined values, or equality in type too."""
        if isinstance(a, _Items) and isinstance(b, _Items):
            if len(a.items) != len(b.items):
                return False
            pairs = zip(a.items, b.items, strict=True)
            return self.conj(*(self.equal(x, y, typed) for x, y in pairs))
        if isinstance(a, _Items) or isinstance(b, _Items):
            single = self.scalar(b if isinstance(a, _Items) else a)
            if _UNDEF not in single.may:
                return False
            raise NotEncoded("a tuple compared with what may be one")
        same = a.content == b.content
        if typed:
            return self.conj(a.tag == b.tag, self.disj(a.tag == _UNDEF, same))
        if _OTHER not in a.may | b.may:
            return same
        return self.conj((a.tag == _OTHER) == (b.tag == _OTHER), same)

    # --- operations ---------------------------------------------------------------------------

    def operation(self, op: str, attr: Any, args: list[_Any]) -> _Any:
        if op == "const":
            return self.constant(attr)
        if op == "fail":
            return _NOTHING
        if op == "tuple":
            if self.defined(*args) is not True:
                raise NotEncoded("a tuple of what may be undefined")
            return _Items(tuple(args))
        if op == SAME:
            return self.boolean(self.equal(args[0], args[1], typed=True))
        if op == "select":
            cond = args[0]
            return self.undefined_unless(
                self.defined(cond), self.choose(self.truth(cond), args[1], args[2])
            )
        if op == "ok":
            inner = self.operation(attr[0], attr[1], args)
            fine = self.disj(self.neg(self.defined(*args)), self.defined(inner))
            return self.boolean(fine)
        known: Callable[[Any, list[_Any]], _Any] | None = getattr(self, f"op_{op}", None)
        if known is None:
            raise NotEncoded(f"the operation {op}")
        return self.undefined_unless(self.defined(*args), known(attr, args))

    def undefined_unless(self, defined: Any, value: _Any) -> _Any:
        return value if defined is True else self.choose(defined, value, _NOTHING)

    def arithmetic(self, args: Sequence[_Any], of: Callable[..., Any], ok: Any = True) -> _Value:
        parts = [self.number(a) for a in args]
        fine = self.conj(ok, *(numeric for _, numeric in parts))
        return self.integer(of(*(v.content for v, _ in parts)), fine)

    def op_add(self, _: Any, args: list[_Any]) -> _Any:
        if all(_OTHER in self.scalar(a).may for a in args):
            raise NotEncoded("joined text")
        return self.arithmetic(args, lambda a, b: a + b)

    def op_sub(self, _: Any, args: list[_Any]) -> _Any:
        return self.arithmetic(args, lambda a, b: a - b)

    def op_mul(self, _: Any, args: list[_Any]) -> _Any:
        if any(_OTHER in self.scalar(a).may for a in args):
            raise NotEncoded("a product of what may be text")
        return self.arithmetic(args, lambda a, b: a * b)

    def op_neg(self, _: Any, args: list[_Any]) -> _Any:
        return self.arithmetic(args, lambda a: -a)

    def op_pos(self, _: Any, args: list[_Any]) -> _Any:
        return self.arithmetic(args, lambda a: a)

    def op_invert(self, _: Any, args: list[_Any]) -> _Any:
        return self.arithmetic(args, lambda a: -a - 1)

    def op_abs(self, _: Any, args: list[_Any]) -> _Any:
        return self.arithmetic(args, lambda a: self.iff(a >= 0, a, -a))

    def op_int(self, _: Any, args: list[_Any]) -> _Any:
        if _OTHER in self.scalar(args[0]).may:
            raise NotEncoded("int() of what may be text")
        return self.arithmetic(args, lambda a: a)

    op_trunc = op_floor = op_ceil = op_round = op_int

    def quotient(self, a: Any, b: Any) -> Any:
        """Rounded toward minus infinity; `b` is not 0."""
        if isinstance(a, int) and isinstance(b, int):
            return a // b if b else 0
        if isinstance(b, int):
            return 0 if b == 0 else a / b if b > 0 else (-a) / (-b)
        a = self.z3.IntVal(a) if isinstance(a, int) else a
        return self.z3.If(b > 0, a / b, (-a) / (-b))

    def op_floordiv(self, _: Any, args: list[_Any]) -> _Any:
        nonzero = self.scalar(args[1]).content != 0
        return self.arithmetic(args, self.quotient, nonzero)

    def op_mod(self, _: Any, args: list[_Any]) -> _Any:
        if _OTHER in self.scalar(args[0]).may:
            raise NotEncoded("formatting of text")
        nonzero = self.scalar(args[1]).content != 0
        return self.arithmetic(args, lambda a, b: a - b * self.quotient(a, b), nonzero)

    def plain(self, value: _Any) -> int:
        content = self.scalar(value).content
        if not isinstance(content, int):
            raise NotEncoded("a shift, mask or power that is no constant")
        return content

    def op_lshift(self, _: Any, args: list[_Any]) -> _Any:
        by = self.plain(args[1])
        if not 0 <= by <= 64:
            raise NotEncoded("a long shift")
        return self.arithmetic(args, lambda a, _: a * (1 << by))

    def op_rshift(self, _: Any, args: list[_Any]) -> _Any:
        by = self.plain(args[1])
        if not 0 <= by <= 64:
            raise NotEncoded("a long shift")
        return self.arithmetic(args, lambda a, _: self.quotient(a, 1 << by))

    def op_bitand(self, _: Any, args: list[_Any]) -> _Any:
        left, right = (self.scalar(a) for a in args)
        if left.may | right.may <= {_BOOL, _UNDEF}:
            return self.boolean(self.conj(left.content == 1, right.content == 1))
        mask = self.plain(args[1])
        if not left.may <= {_INT, _UNDEF} or mask < 0 or mask & (mask + 1):
            raise NotEncoded("a mask that is not of the lowest bits")
        return self.arithmetic([left], lambda a: a - (mask + 1) * self.quotient(a, mask + 1))

    def op_bitor(self, _: Any, args: list[_Any]) -> _Any:
        left, right = (self.scalar(a) for a in args)
        if left.may | right.may <= {_BOOL, _UNDEF}:
            return self.boolean(self.disj(left.content == 1, right.content == 1))
        raise NotEncoded("bits of integers")

    def compared(self, args: list[_Any], how: Callable[[Any, Any], Any]) -> _Value:
        (a, first), (b, second) = (self.number(x) for x in args)
        both = self.conj(first, second)
        if _OTHER in a.may & b.may:
            raise NotEncoded("an order of text")
        return self.boolean(how(a.content, b.content), both)

    def op_lt(self, _: Any, args: list[_Any]) -> _Any:
        return self.compared(args, lambda a, b: a < b)

    def op_le(self, _: Any, args: list[_Any]) -> _Any:
        return self.compared(args, lambda a, b: a <= b)

    def op_gt(self, _: Any, args: list[_Any]) -> _Any:
        return self.compared(args, lambda a, b: a > b)

    def op_ge(self, _: Any, args: list[_Any]) -> _Any:
        return self.compared(args, lambda a, b: a >= b)

    def op_eq(self, _: Any, args: list[_Any]) -> _Any:
        return self.boolean(self.equal(args[0], args[1], typed=False))

    def op_ne(self, _: Any, args: list[_Any]) -> _Any:
        return self.boolean(self.neg(self.equal(args[0], args[1], typed=False)))

    def op_is(self, _: Any, args: list[_Any]) -> _Any:
        return self.boolean(self.equal(args[0], args[1], typed=True))

    def op_not(self, _: Any, args: list[_Any]) -> _Any:
        return self.boolean(self.neg(self.truth(args[0])))

    def op_truth(self, _: Any, args: list[_Any]) -> _Any:
        return self.boolean(self.truth(args[0]))

    def op_min2(self, _: Any, args: list[_Any]) -> _Any:
        before = self.compared([args[1], args[0]], lambda a, b: a < b)
        picked = self.choose(before.content == 1, args[1], args[0])
        return self.undefined_unless(self.defined(before), picked)

    def op_max2(self, _: Any, args: list[_Any]) -> _Any:
        before = self.compared([args[1], args[0]], lambda a, b: a > b)
        picked = self.choose(before.content == 1, args[1], args[0])
        return self.undefined_unless(self.defined(before), picked)

    def items(self, value: _Any) -> tuple[_Any, ...]:
        if not isinstance(value, _Items):
            raise NotEncoded("a sequence that may be no tuple")
        return value.items

    def folded(self, args: list[_Any], how: Callable[[Any, list[_Any]], _Any]) -> _Any:
        items = self.items(args[0])
        if not items:
            return _NOTHING
        out = items[0]
        for item in items[1:]:
            out = how(None, [out, item])
        return out

    def op_min(self, _: Any, args: list[_Any]) -> _Any:
        return self.folded(args, self.op_min2)

    def op_max(self, _: Any, args: list[_Any]) -> _Any:
        return self.folded(args, self.op_max2)

    def op_sum(self, _: Any, args: list[_Any]) -> _Any:
        return self.folded([_Items((_value(_INT, 0), *self.items(args[0])))], self.op_add)

    def op_any(self, _: Any, args: list[_Any]) -> _Any:
        return self.boolean(self.disj(*(self.truth(i) for i in self.items(args[0]))))

    def op_all(self, _: Any, args: list[_Any]) -> _Any:
        return self.boolean(self.conj(*(self.truth(i) for i in self.items(args[0]))))

    def op_len(self, _: Any, args: list[_Any]) -> _Any:
        return _value(_INT, len(self.items(args[0])))

    def op_in(self, _: Any, args: list[_Any]) -> _Any:
        items = self.items(args[1])
        return self.boolean(self.disj(*(self.equal(args[0], i, typed=False) for i in items)))

    def op_index(self, _: Any, args: list[_Any]) -> _Any:
        items = self.items(args[0])
        place = self.scalar(args[1])
        if _OTHER in place.may:
            raise NotEncoded("an index that may be no number")
        out: _Any | None = None
        for i in range(-len(items), len(items)):
            here = place.content == i
            out = items[i] if out is None else self.choose(here, items[i], out)
        if out is None:
            return _NOTHING
        inside = self.conj(place.content >= -len(items), place.content < len(items))
        return self.undefined_unless(inside, out)

    def op_lookup(self, attr: Any, args: list[_Any]) -> _Any:
        if len(attr) > LONGEST:
            raise NotEncoded("a long table")
        out: _Any = _NOTHING
        if attr and type(attr[0][1]) is tuple:
            raise NotEncoded("a table of tuples")
        for k, value in attr:
            here = self.equal(args[0], self.constant(k), typed=False)
            out = self.choose(here, self.constant(value), out)
        return out

    def op_haskey(self, attr: Any, args: list[_Any]) -> _Any:
        found = [self.equal(args[0], self.constant(k), typed=False) for k in attr]
        return self.boolean(self.disj(*found))
