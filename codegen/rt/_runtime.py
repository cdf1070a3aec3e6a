"""What a generated selector needs while it selects: values, total operations, domains, errors.

Partial operations give `UNDEF` where Python would raise, so that straight-line code may compute
both arms of a choice; the guards decide whether an undefined value could have mattered.
"""

from __future__ import annotations

import math
import operator
import struct
from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final


class SelectionError(ValueError):
    """Nothing was selected. The attributes say which condition failed, where, and for what.

    `guard` is the text of the condition (None: the domain of an input), `location` its place as
    path:line:column, `inputs` the call, `tuple` the pins and knobs in force.
    """

    def __init__(
        self,
        message: str,
        guard: str | None = None,
        location: str | None = None,
        inputs: Mapping[str, object] | None = None,
        tuple: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.guard = guard
        self.location = location
        self.inputs = dict(inputs or {})
        self.tuple = dict(tuple or {})


class Undefined:
    """The type of `UNDEF`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "undef"


UNDEF: Final = Undefined()


class Symbol:
    """A named constant that equals itself alone: a dtype, an enum member."""

    __slots__ = ("kind", "name", "size")
    _known: Final[dict[tuple[str, str, int], Symbol]] = {}

    def __init__(self, kind: str, name: str, size: int) -> None:
        self.kind = kind
        self.name = name
        self.size = size

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Callable[..., Symbol], tuple[str, str, int]]:
        return symbol, (self.kind, self.name, self.size)


def symbol(kind: str, name: str, size: int = 0) -> Symbol:
    """The one symbol of this kind and name."""
    return Symbol._known.setdefault((kind, name, size), Symbol(kind, name, size))


FAULTS: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
    StopIteration,
)
MAX_BITS: Final = 14_284
MAX_REPEAT: Final = 4096


class TooWide(SelectionError):
    """An integer grew beyond what any selection needs."""

    def __init__(self) -> None:
        super().__init__(f"an integer grows beyond {MAX_BITS} bits; nothing was selected")


def typed_key(value: object) -> object:
    """A hashable key, equal exactly for values of equal type and bits."""
    if isinstance(value, tuple):
        return ("tuple", *[typed_key(v) for v in value])
    if isinstance(value, float):
        return ("float", struct.pack("<d", value))
    return (type(value).__name__, value)


# --- operations ---------------------------------------------------------------------------------


def total(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function made total: `UNDEF` for undefined arguments and for every exception."""

    def op(*args: Any) -> Any:
        for a in args:
            if a is UNDEF:
                return UNDEF
        try:
            result = function(*args)
        except TooWide:
            raise
        except FAULTS:
            return UNDEF
        if type(result) is int and result.bit_length() > MAX_BITS:
            raise TooWide
        return result

    return op


def ok(function: Callable[..., Any], *args: Any) -> bool:
    """Whether the function would not raise; True if an argument is undefined already."""
    for a in args:
        if a is UNDEF:
            return True
    try:
        function(*args)
    except TooWide:
        raise
    except FAULTS:
        return False
    return True


def choose(cond: Any, then: Any, other: Any) -> Any:
    """`then if cond else other`, undefined if the condition is."""
    if cond is UNDEF:
        return UNDEF
    return then if cond else other


def raw_float32(x: Any) -> float:
    """`x` rounded to binary32."""
    value = float(x)
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def raw_is(a: Any, b: Any) -> bool:
    """`is`, where CPython guarantees an answer."""
    if a is None or b is None or isinstance(a, bool) or isinstance(b, bool):
        return a is b
    return type(a) is type(b) and bool(a == b)


def raw_lshift(a: Any, b: Any) -> Any:
    """`a << b`, refused when it grows too wide."""
    if isinstance(b, int) and isinstance(a, int) and b > 0 and a.bit_length() + b > MAX_BITS:
        raise TooWide
    return a << b


def raw_pow(a: Any, b: Any) -> Any:
    """`a ** b`, refused when it grows too wide."""
    if isinstance(a, int) and isinstance(b, int) and b > 0 and a.bit_length() * b > MAX_BITS:
        raise TooWide
    return a**b


def raw_mul(a: Any, b: Any) -> Any:
    """`a * b`, refused when a sequence would grow too long."""
    if isinstance(a, (str, tuple)) or isinstance(b, (str, tuple)):
        n = b if isinstance(b, int) else a
        if isinstance(n, int) and n > MAX_REPEAT:
            raise TooWide
    return a * b


def raw_method(name: str) -> Callable[..., Any]:
    """A method of strings and tuples; lists become tuples."""

    def call(target: Any, *args: Any) -> Any:
        if not isinstance(target, (str, tuple)):
            raise TypeError(name)
        result = getattr(target, name)(*args)
        return tuple(result) if isinstance(result, list) else result

    return call


RAW: Final[dict[str, Callable[..., Any]]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": raw_mul,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "truediv": operator.truediv,
    "pow": raw_pow,
    "lshift": raw_lshift,
    "rshift": operator.rshift,
    "bitand": operator.and_,
    "bitor": operator.or_,
    "bitxor": operator.xor,
    "neg": operator.neg,
    "pos": operator.pos,
    "invert": operator.invert,
    "abs": abs,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "is": raw_is,
    "in": lambda x, xs: x in xs,
    "not": operator.not_,
    "truth": bool,
    "min2": lambda a, b: b if b < a else a,
    "max2": lambda a, b: b if b > a else a,
    "int": int,
    "float": float,
    "float32": raw_float32,
    "str": str,
    "round": round,
    "ceil": math.ceil,
    "floor": math.floor,
    "trunc": math.trunc,
    "sqrt": math.sqrt,
    "log2": math.log2,
    "bit_length": lambda x: x.bit_length(),
    "is_integer": lambda x: x.is_integer(),
    "tuple": lambda *xs: xs,
    "index": lambda a, i: a[i],
    "len": len,
    "sum": sum,
    "min": min,
    "max": max,
    "any": any,
    "all": all,
    "sorted": lambda a: tuple(sorted(a)),
    "lookup": lambda table, key: table[key],
    "haskey": lambda table, key: key in table,
}
"""The operations as CPython computes them, on defined arguments."""

TOTAL: Final = {name: total(function) for name, function in RAW.items()}
"""The same, made total."""


# --- domains ------------------------------------------------------------------------------------


class Refusal(Exception):
    """An argument is not what was declared; the message says how."""


def shown(value: object) -> str:
    """A value for a message, cut to a readable length."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001  # a broken repr must not hide the refusal
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 80 else text[:77] + "..."


def whole(value: Any) -> int:
    """The integer that a value is: int, its subclasses and numpy integers, but no bool.

    Raises:
        Refusal: It is no integer.
    """
    if isinstance(value, bool):
        raise Refusal("is a bool where an int is declared; pass int(...)")
    if isinstance(value, int):
        return int.__index__(value)
    try:
        return int.__index__(operator.index(value))
    except Exception:  # noqa: BLE001  # whatever a foreign __index__ raises, it is no integer
        raise Refusal(f"is a {type(value).__name__} where an int is declared") from None


class IntRange:
    """The integers lo, lo+step, ..., hi."""

    __slots__ = ("hi", "lo", "step")

    def __init__(self, lo: int, hi: int, step: int = 1) -> None:
        self.lo = lo
        self.hi = hi
        self.step = step

    def admit(self, value: object) -> int:
        """The value as the program sees it."""
        x = whole(value)
        if self.lo <= x <= self.hi and (x - self.lo) % self.step == 0:
            return x
        raise Refusal(f"is outside the declared {self}")

    def __str__(self) -> str:
        tail = f" in steps of {self.step}" if self.step != 1 else ""
        return f"range {self.lo}..{self.hi}{tail}"


_EXACT: Final[dict[type, Callable[[Any], object]]] = {
    str: str.__str__,
    float: float.__float__,
    int: int.__index__,
}


class Choices:
    """A list of values, compared with type."""

    __slots__ = ("_known", "_names", "values")

    def __init__(self, values: tuple[object, ...]) -> None:
        self.values = values
        self._known = {typed_key(v): v for v in values}
        plain = {v for v in values if isinstance(v, str)}
        self._names = {v.name: v for v in values if isinstance(v, Symbol) and v.name not in plain}

    def admit(self, value: Any) -> object:
        """The declared value that this one is."""
        plain = self._plain(value)
        try:
            return self._known[typed_key(plain)]
        except (KeyError, TypeError):
            pass
        found = self._symbol(value)
        if found is not None:
            return found
        raise Refusal(f"is not one of the declared values {self}")

    def _plain(self, value: Any) -> object:
        if isinstance(value, list):
            return tuple(self._plain(v) for v in value)
        if type(value) is tuple:
            return tuple(self._plain(v) for v in value)
        if value is None or type(value) in (bool, int, float, str, Symbol):
            return value
        for kind in _EXACT:
            if isinstance(value, kind) and type(value) is not bool:
                return _EXACT[kind](value)
        if hasattr(type(value), "__index__"):
            try:
                return whole(value)
            except Refusal:
                return value
        return value

    def _symbol(self, value: Any) -> object:
        if not self._names:
            return None
        if isinstance(value, str):
            return self._names.get(value)
        member = getattr(value, "name", None)
        if isinstance(member, str):
            found = self._names.get(f"{type(value).__name__}.{member}")
            if found is not None:
                return found
        return self._names.get(str(value))

    def __str__(self) -> str:
        texts = [repr(v) for v in self.values]
        return ", ".join(texts[:12]) + (f", ... ({len(texts)} in all)" if len(texts) > 12 else "")


class Sequence:
    """A sequence of integers, of which the program reads some aggregates."""

    __slots__ = ("element", "functions", "length")

    _FUNCTIONS: Final[dict[str, Callable[[list[int]], Any]]] = {
        "max": max, "min": min, "sum": sum, "len": len, "any": any, "all": all,
    }  # fmt: skip

    def __init__(self, length: IntRange, element: Any, functions: tuple[str, ...]) -> None:
        self.length = length
        self.element = element
        self.functions = tuple(self._FUNCTIONS[f] for f in functions)

    def admit(self, value: Any) -> tuple[object, ...]:
        """The aggregates that the program reads."""
        if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
            raise Refusal("is not a sequence of integers")
        elements = []
        for k, item in enumerate(value):
            try:
                elements.append(self.element.admit(item))
            except Refusal as refusal:
                raise Refusal(f"has element [{k}]={shown(item)}, which {refusal}") from None
        try:
            self.length.admit(len(elements))
        except Refusal:
            raise Refusal(f"has length {len(elements)}, outside {self.length}") from None
        try:
            return tuple(f(elements) for f in self.functions)
        except ValueError:
            raise Refusal("is empty, and the program takes its max or min") from None

    def __str__(self) -> str:
        return f"sequence of length {self.length}, elements {self.element}"


# --- refusals ---------------------------------------------------------------------------------

Arguments = tuple[tuple[str, str, Any], ...]


def admit(arguments: Arguments, position: int, values: tuple[Any, ...]) -> Any:
    """One argument as the program sees it.

    Raises:
        SelectionError: It is outside its declared domain.
    """
    name, _, domain = arguments[position]
    try:
        return domain.admit(values[position])
    except Refusal as refusal:
        message = f"{name}={shown(values[position])} {refusal}; nothing was selected"
        raise SelectionError(message, inputs=_named(arguments, values)) from None


def broken(
    message: tuple[str, str, str],
    arguments: Arguments,
    values: tuple[Any, ...],
    view: Mapping[str, object],
) -> SelectionError:
    """The error for a condition that does not hold."""
    sentence, guard, location = message
    inputs = _named(arguments, values)
    return SelectionError(sentence + _tail(inputs, view), guard, location, inputs, view)


def undefined(
    arguments: Arguments, values: tuple[Any, ...], view: Mapping[str, object]
) -> SelectionError:
    """The error for a choice that the program does not define."""
    inputs = _named(arguments, values)
    sentence = "the program defines no choice for this call although no guard forbids it"
    return SelectionError(sentence + _tail(inputs, view), None, None, inputs, view)


def no_tuple(arguments: Arguments, values: tuple[Any, ...]) -> SelectionError:
    """The error for a selector without a legal tuple."""
    sentence = "no assignment of the pins is legal, so that there is nothing to select"
    return SelectionError(sentence, inputs=_named(arguments, values))


def _named(arguments: Arguments, values: tuple[Any, ...]) -> dict[str, object]:
    return {name: value for (name, _, _), value in zip(arguments, values, strict=True)}


def _tail(inputs: Mapping[str, object], view: Mapping[str, object]) -> str:
    text = ", ".join(f"{n}={shown(v)}" for n, v in inputs.items()) or "none"
    pins = ", ".join(f"{n}={shown(v)}" for n, v in view.items())
    return f"; inputs: {text}" + (f"; tuple: {pins}" if pins else "") + "; nothing was selected"


# --- results ------------------------------------------------------------------------------------


def record_type(name: str, fields: tuple[tuple[str, str], ...]) -> Any:
    """A NamedTuple class; each field has an identifier and the name under which it is stored.

    The two differ where the identifier starts with an underscore that no position gives.
    """
    base: Any = namedtuple(name, [stored for _, stored in fields], rename=True)  # type: ignore[misc]
    for identifier, stored in fields:
        if identifier not in base._fields:
            setattr(base, identifier, getattr(base, stored))
    return base


def remember_pass(table: set[Any], key: Any, limit: int = 4096) -> None:
    """Note that the costly guards hold, in a bounded set."""
    if len(table) >= limit:
        table.clear()
    table.add(key)


def remember(table: dict[Any, Any], key: Any, value: Any, limit: int = 4096) -> Any:
    """Put a result into a bounded table, so that equal choices are one object."""
    if len(table) >= limit:
        table.clear()
    return table.setdefault(key, value)
