"""The reference interpreter: what a graph means, said as plainly as possible.

It evaluates every node once, in order. Nothing else in the project evaluates this way, so that it
can be the oracle for everything that does it faster.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from selc.ir.bitclass import BitClass, may_lack, places
from selc.ir.graph import Graph, Node, is_place
from selc.ir.op import FAULTS, MAX_BITS, STRING_METHODS, Op, TooWide
from selc.ir.program import Guard, Program
from selc.ir.value import UNDEF, Value, same


class _Wide:
    """Stands for a value that graphs cannot hold; harmless on an arm that is not taken."""


_WIDE: Final = _Wide()


@dataclass(frozen=True, slots=True)
class Result:
    """One run of a program. `failed` is the index of the guard that stopped it.

    `points` is empty if a guard failed. `sites` holds the value of every site that was reached.
    """

    points: Mapping[str, Value]
    sites: Mapping[str, Value]
    failed: int | None = None
    guard: Guard | None = None

    @property
    def returned(self) -> bool:
        """Whether the program returned."""
        return self.failed is None


def run(graph: Graph, roots: Sequence[Node], inputs: Mapping[str, Value]) -> list[Value]:
    """The values of `roots`; `UNDEF` where Python would have raised.

    Raises:
        KeyError: an input that the roots read has no value.
        TooWide: a root depends on an integer of more than `MAX_BITS` bits.
    """
    values = _values(graph, graph.cone(roots), inputs, {})
    return [_narrow(values[r.id]) for r in roots]


def run_program(
    program: Program, inputs: Mapping[str, Value], overwrites: Mapping[str, Value] | None = None
) -> Result:
    """Run a program with the values of some sites, by name, overwritten.

    The guards are judged in program order; the first that fails stops the program, as the exception
    would. A knob that `inputs` leaves out takes its initial setting. A bit class that is
    overwritten overwrites its fields: with what the program chooses without that if it is in the
    class, else with the first member that can be chosen (it gets through to the points, and every
    guard holds), else with the first.

    Raises:
        KeyError: no such site, or an input has no value.
    """
    chosen = overwrites or {}
    fields: dict[str, Value] = {}
    for cls in program.classes:
        if cls.name in chosen:
            fields.update(_fields_of(program, inputs, chosen, cls))
    return _run(program, inputs, chosen, fields)


def _fields_of(
    program: Program, inputs: Mapping[str, Value], overwrites: Mapping[str, Value], cls: BitClass
) -> dict[str, Value]:
    """What a class that is overwritten makes of its fields."""
    wanted = overwrites[cls.name]
    others = {k: v for k, v in overwrites.items() if k != cls.name}
    own = run_program(program, inputs, others)
    if own.returned:
        values = [own.points[f] for f in cls.fields]
        if same(cls.of(values, [own.points[n] for n, _ in cls.given]), wanted):
            return dict(zip(cls.fields, values, strict=True))
    base: dict[str, Value] = {}
    for other in program.classes:
        if other.name in others:
            base.update(_fields_of(program, inputs, others, other))
    lacking = [may_lack(*_tree(program, f)) for f in cls.fields]
    tried = [
        dict(zip(cls.fields, member, strict=True))
        for member in cls.in_class(wanted)
        if not any(v is None and lack for v, lack in zip(member, lacking, strict=True))
    ]
    for values_of in tried:
        out = _run(program, inputs, others, {**base, **values_of})
        if out.returned and same(out.points[cls.name], wanted):
            return values_of
    return tried[0] if tried else {}


def _tree(program: Program, field: str) -> tuple[Node, frozenset[int]]:
    """What a field is chosen from, and the nodes of its sites."""
    point = program.point(field)
    marks = frozenset(m.node.id for s in point.sites for m in program.sites[s].marks)
    return point.node.args[0], places(point.node.args[0], marks)


def _final(
    program: Program, cls: BitClass, field: str, value: Value, values: Mapping[int, Any]
) -> Any:
    """A field whose sites, or the expression that it is, are overwritten: null where not made."""
    node, marks = _tree(program, field)
    lack = may_lack(node, marks)
    while node.id not in marks and (node.op is Op.SELECT or is_place(node)):
        if node.op is Op.MARK:
            node = node.args[0]
            continue
        cond = values[node.args[0].id]
        if cond is UNDEF or cond is _WIDE:
            return cond
        node = node.args[1] if cond else node.args[2]
    if node.id in marks or field not in cls.unnamed or (lack and value is None):
        return values[node.id]
    return None if lack and node.is_const and node.attr is None else value


def _replaced(
    program: Program, overwrites: Mapping[str, Value], fields: Mapping[str, Value]
) -> dict[int, Value]:
    """The nodes that are overwritten; a site that is pinned itself keeps its pin."""
    out: dict[int, Value] = {}
    for name, value in fields.items():
        tree, marks = _tree(program, name)
        if value is not None or not may_lack(tree, marks):
            out.update(dict.fromkeys(marks, value))
    for name, value in overwrites.items():
        out.update(dict.fromkeys([m.node.id for m in program.sites[name].marks], value))
    return out


def _run(
    program: Program,
    inputs: Mapping[str, Value],
    overwrites: Mapping[str, Value],
    fields: Mapping[str, Value],
) -> Result:
    replaced = _replaced(program, overwrites, fields)
    settings = {k: v for k, v in program.settings.items() if k in program.graph.inputs}
    roots = [p.node for p in program.points]
    roots += [n for g in program.guards for n in (g.path, g.cond)]
    roots += [n for s in program.sites.values() for m in s.marks for n in (m.node, m.path)]
    cone = program.graph.cone(roots)
    values = _values(program.graph, cone, {**settings, **inputs}, replaced)
    if fields:
        for cls in program.classes:
            for name in (f for f in cls.fields if f in fields):
                end = program.point(name).node.id
                replaced[end] = _final(program, cls, name, fields[name], values)
        values = _values(program.graph, cone, {**settings, **inputs}, replaced)

    failed = None
    for index, guard in enumerate(program.guards):
        if _narrow(values[guard.path.id]) is True and _narrow(values[guard.cond.id]) is not True:
            failed = index
            break
    held = len(program.guards) if failed is None else failed
    sites: dict[str, Value] = {}
    for name, site in program.sites.items():
        for mark in site.marks:
            if mark.guards_before <= held and _narrow(values[mark.path.id]) is True:
                sites[name] = _narrow(values[mark.node.id])
    if failed is not None:
        return Result({}, sites, failed, program.guards[failed])
    return Result({p.name: _narrow(values[p.node.id]) for p in program.points}, sites)


def _values(
    graph: Graph, nodes: Sequence[Node], inputs: Mapping[str, Value], replaced: Mapping[int, Value]
) -> dict[int, Any]:
    values: dict[int, Any] = {}
    for node in nodes:
        if node.id in replaced:
            values[node.id] = replaced[node.id]
        elif node.op is Op.INPUT:
            assert isinstance(node.attr, str)
            values[node.id] = inputs[node.attr]
        else:
            values[node.id] = compute(node.op, node.attr, [values[a.id] for a in node.args])
    return values


def _narrow(value: Any) -> Value:
    if value is _WIDE:
        raise TooWide
    return value


def compute(op: Op, attr: Any, args: list[Any]) -> Any:
    """One operation on values, `UNDEF` included; not for INPUT."""
    if op is Op.CONST:
        return attr
    if op is Op.FAIL:
        return UNDEF
    if op is Op.SELECT:
        cond, then, other = args
        if cond is UNDEF or cond is _WIDE:
            return cond
        return then if cond else other
    if any(a is _WIDE for a in args):
        return _WIDE
    if op is Op.OK:
        if any(a is UNDEF for a in args):
            return True
        inner = compute(Op(attr[0]), attr[1], args)
        return _WIDE if inner is _WIDE else inner is not UNDEF
    if any(a is UNDEF for a in args):
        return UNDEF
    try:
        result = _MEANING[op](attr, *args)
    except FAULTS:
        return UNDEF
    except TooWide:
        return _WIDE
    if type(result) is complex or (type(result) is int and result.bit_length() > MAX_BITS):
        return _WIDE
    return result


def _multiply(_: Any, a: Any, b: Any) -> Any:
    for sequence, count in ((a, b), (b, a)):
        if isinstance(sequence, (str, tuple)) and isinstance(count, int) and count > 4096:
            raise TooWide
    return a * b


def _power(_: Any, a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int) and b > 0 and a.bit_length() * b > MAX_BITS:
        raise TooWide
    return a**b


def _shift_left(_: Any, a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int) and b > 0 and a.bit_length() + b > MAX_BITS:
        raise TooWide
    return a << b


def _identical(_: Any, a: Any, b: Any) -> bool:
    if a is None or b is None or type(a) is bool or type(b) is bool:
        return a is b
    return type(a) is type(b) and bool(a == b)


def _single_precision(_: Any, a: Any) -> float:
    wide = float(a)
    try:
        (narrow,) = struct.unpack("=f", struct.pack("=f", wide))
    except OverflowError:
        return math.copysign(math.inf, wide)
    return float(narrow)


def _lookup(pairs: Any, key: Any) -> Any:
    for k, value in reversed(pairs):
        if k == key:
            return value
    raise KeyError(key)


def _method(name: Any, target: Any, *args: Any) -> Any:
    if name not in STRING_METHODS or type(target) not in (str, tuple):
        raise AttributeError(name)
    result = operator.methodcaller(name, *args)(target)
    return tuple(result) if type(result) is list else result


_MEANING: Final[dict[Op, Callable[..., Any]]] = {
    Op.MARK: lambda _, a: a,
    Op.ADD: lambda _, a, b: a + b,
    Op.SUB: lambda _, a, b: a - b,
    Op.MUL: _multiply,
    Op.FLOORDIV: lambda _, a, b: a // b,
    Op.MOD: lambda _, a, b: a % b,
    Op.TRUEDIV: lambda _, a, b: a / b,
    Op.POW: _power,
    Op.LSHIFT: _shift_left,
    Op.RSHIFT: lambda _, a, b: a >> b,
    Op.BITAND: lambda _, a, b: a & b,
    Op.BITOR: lambda _, a, b: a | b,
    Op.BITXOR: lambda _, a, b: a ^ b,
    Op.NEG: lambda _, a: -a,
    Op.POS: lambda _, a: +a,
    Op.INVERT: lambda _, a: ~a,
    Op.ABS: lambda _, a: abs(a),
    Op.EQ: lambda _, a, b: a == b,
    Op.NE: lambda _, a, b: a != b,
    Op.LT: lambda _, a, b: a < b,
    Op.LE: lambda _, a, b: a <= b,
    Op.GT: lambda _, a, b: a > b,
    Op.GE: lambda _, a, b: a >= b,
    Op.IS: _identical,
    Op.IN: lambda _, a, b: a in b,
    Op.NOT: lambda _, a: not a,
    Op.TRUTH: lambda _, a: bool(a),
    Op.MIN2: lambda _, a, b: min(a, b),
    Op.MAX2: lambda _, a, b: max(a, b),
    Op.INT: lambda _, a: int(a),
    Op.FLOAT: lambda _, a: float(a),
    Op.FLOAT32: _single_precision,
    Op.STR: lambda _, a: str(a),
    Op.ROUND: lambda _, a: round(a),
    Op.CEIL: lambda _, a: math.ceil(a),
    Op.FLOOR: lambda _, a: math.floor(a),
    Op.TRUNC: lambda _, a: math.trunc(a),
    Op.SQRT: lambda _, a: math.sqrt(a),
    Op.LOG2: lambda _, a: math.log2(a),
    Op.BIT_LENGTH: lambda _, a: a.bit_length(),
    Op.IS_INTEGER: lambda _, a: a.is_integer(),
    Op.TUPLE: lambda _, *xs: xs,
    Op.INDEX: lambda _, a, i: a[i],
    Op.LEN: lambda _, a: len(a),
    Op.SUM: lambda _, a: sum(a),
    Op.MIN: lambda _, a: min(a),
    Op.MAX: lambda _, a: max(a),
    Op.ANY: lambda _, a: any(a),
    Op.ALL: lambda _, a: all(a),
    Op.SORTED: lambda _, a: tuple(sorted(a)),
    Op.LOOKUP: _lookup,
    Op.HASKEY: lambda keys, a: any(k == a for k in keys),
    Op.METHOD: _method,
}
