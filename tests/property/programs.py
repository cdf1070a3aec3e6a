"""Random programs of the supported subset, each with the facts that it needs."""

from __future__ import annotations

import dataclasses
import itertools
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from tests.property.expressions import SCALARS, Expressions, Scope
from tests.property.observe import FAULTS

PRELUDE: Final = """\
from __future__ import annotations

import bisect
import enum
import math
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import NamedTuple

from selc.lang import float32

LIMIT = 12
SCALE = LIMIT / 8
NAME = "gemm" + "-" + str(LIMIT)
NAMES = ["a", "bf16", NAME]
TILES = (16, 4, 64)
TABLE = {0: 5, 1: 4, 4: 64}
STEPS = [1, 4, 16]
ROWS = {1: {"tile": 16, "warps": 4}, 16: {"tile": 32, "warps": 8}, 64: {"tile": 64, "warps": 8}}
GRID = {(a, b): a * 4 + b for a in range(2) for b in range(2)}
BASE = {"a": 1, "b": 2}


class Mode(enum.Enum):
    SLOW = 1
    FAST = 2
    AUTO = 4

    @property
    def quick(self) -> bool:
        return self is not Mode.SLOW


class Point(NamedTuple):
    x: int
    y: int = 3


@dataclass
class Box:
    width: int
    depth: int = 2

    @property
    def area(self) -> int:
        return self.width * self.depth

    def grown(self, by: int) -> int:
        return self.area + by

    @classmethod
    def square(cls, side: int) -> Box:
        return cls(side, side)


def clamp(x: int, low: int = 0, high: int = 9) -> int:
    if x < low:
        return low
    y = x
    if y > high:
        y = high
    return y


def cdiv(a: int, b: int) -> int:
    return -(-a // b)


def double(x: int) -> int:
    return 2 * x


def shrink(x: int) -> int:
    if x > 8:
        x //= 2
    else:
        x = x - 1
    return x


def spread(a: int, *rest: int) -> int:
    total = a
    for r in rest:
        total += r
    return total


def named(*, a: int, **rest: int) -> int:
    return a + len(rest) + rest.get("b", 0)


def maybe(x: int) -> int | None:
    if x % 3 == 0:
        return None
    return x


@lru_cache(maxsize=None)
def steps(x: int) -> int:
    n = 0
    while x > 1 and n < 5:
        x = x // 2
        n += 1
    return n


def classify(x: int) -> int:
    try:
        if x < 0:
            raise ValueError("negative")
        return 16 // x
    except ZeroDivisionError:
        return -1
    except ValueError as error:
        return -2


def config(x: int) -> dict[str, int]:
    made = {"a": x}
    made["b"] = x + 1 if x > 4 else 7
    if x > 6:
        made.update(c=3)
    return made


def first_of(values: tuple[int, ...]) -> int:
    for k, v in enumerate(values):
        if v > 3:
            break
    else:
        return -7
    return k


def pick_mode(x: int) -> Mode:
    return Mode.FAST if x > 3 else Mode.AUTO


def adder(by: int):
    def add(x: int) -> int:
        return x + by

    return add


WAYS = {Mode.SLOW: double, Mode.FAST: shrink, Mode.AUTO: lambda x: x + 1}
calls = 0

"""
"""What every program may use; the front end follows only what it does use."""

TYPES: Final = (
    "int",
    "int",
    "int",
    "bool",
    "float",
    "str",
    "opt",
    "tuple",
    "list",
    "dict",
    "point",
    "box",
    "mode",
    "function",
)
PREFIXES: Final = dict(zip(dict.fromkeys(TYPES), "ibfsotldpxeg", strict=True))
DOMAINS: Final[dict[str, tuple[tuple[Any, ...], ...]]] = {
    "bool": ((False, True), (True, 0, 1)),
    "float": ((0.5, 1.0, -2.25), (0.0, -0.0, 3.0)),
    "str": (("a", "bf16", "x-y"), ("", "fp8")),
    "opt": ((None, 0, 3), (7, None)),
    "tuple": (((1, 2, 3), (4, 0, -1)), ((0, 0, 0), (9, 8, 7), (1, 1, 2))),
    "mode": (("Mode.SLOW", "Mode.FAST"), ("Mode.AUTO", "Mode.SLOW", "Mode.FAST")),
}


@dataclass(frozen=True, slots=True)
class Input:
    """One declared input: its kind and its few values."""

    name: str
    kind: str
    type: str
    values: tuple[Any, ...]
    range: tuple[int, int, int] | None = None


@dataclass(frozen=True, slots=True)
class Made:
    """One program with its facts."""

    text: str
    facts: dict[str, Any]
    inputs: tuple[Input, ...]
    constants: dict[str, Any]

    @property
    def facts_text(self) -> str:
        """The facts file; JSON is YAML."""
        return json.dumps(self.facts, indent=1) + "\n"


@dataclass(slots=True)
class Writer:
    """Writes the statements of one function."""

    rng: random.Random
    x: Expressions
    lines: list[str] = field(default_factory=list)
    depth: int = 1
    loops: int = 0
    narrow: bool = True
    returns: str = "dict"
    closures: int = 0
    globals: bool = False

    def emit(self, line: str) -> None:
        """One line."""
        self.lines.append("    " * self.depth + line)

    # -- simple statements --------------------------------------------------------------------------

    def assign(self, scope: Scope) -> Scope:
        """A definition of a variable."""
        kind = self.rng.choice(TYPES)
        name = f"{PREFIXES[kind]}{self.rng.choice('123')}"
        value = self.x.of(kind, scope, self.rng.choice((1, 1, 2, 3)))
        if kind == "int" and scope.get(name) == "int" and self.rng.random() < 0.3:
            operator = self.rng.choice(["+", "-", "*", "//", "%", "|", "<<", ">>", "&", "^", "**"])
            value = self.rng.choice(["2", "3"]) if operator in ("<<", "**") else value
            self.emit(f"{name} {operator}= {value}")
        elif self.rng.random() < 0.1:
            self.emit(f"{name}: object = {value}")
        elif self.rng.random() < 0.07:
            self.emit(f"{name} = other = {value}")
            scope = {**scope, "other": kind}
        else:
            self.emit(f"{name} = {value}")
        return {**scope, name: kind}

    def unpack(self, scope: Scope) -> Scope:
        """Several variables at once."""
        t = self.x.of("tuple", scope, 1)
        form = self.rng.choice(
            [
                "u, v, w = {t}",
                "u, *rest = {t}",
                "*_, w = {t}",
                "(u, v), w = ({p}), {i}",
                "u, v = {p}",
                "u, v = {i}, {j}",
                "u, v = v, u",
            ]
        )
        if form == "u, v = v, u" and not scope.get("u") == scope.get("v") == "int":
            form = "u, v = {i}, {j}"
        self.emit(
            form.format(
                t=t,
                p=self.x.of("point", scope, 1),
                i=self.x.of("int", scope, 1),
                j=self.x.of("int", scope, 1),
            )
        )
        bound = {n: "int" for n in "uvw" if n in form.split("=")[0]}
        if "*rest" in form:
            bound["rest"] = "list"
        return {**scope, **bound}

    def change(self, scope: Scope) -> Scope:
        """A change of a container or object."""
        kinds = [t for t in scope.values() if t in ("dict", "list", "box")]
        if not kinds:
            return self.assign(scope)
        kind = self.rng.choice(kinds)
        name = self.rng.choice([n for n, t in scope.items() if t == kind])
        i = self.x.of("int", scope, 1)
        forms = {
            "dict": ['{n}["a"] = {i}', '{n}["c"] = {i}', '{n}.update({{"b": {i}}})', "{n}.update(a={i}, c=1)", '{n}.setdefault("c", {i})',
                     '{n}["a"] += {i}', '{n}.pop("c", None)', '{n}.update(config({i}))', '{n} |= {{"b": {i}}}'],
            "list": ["{n}.append({i})", "{n}[0] = {i}", "{n} += [{i}]", "{n}.extend((1, {i}))", "{n}.insert(0, {i})", "{n}.reverse()", "{n}[-1] -= {i}"],
            "box": ["{n}.width = {i}", "{n}.depth += {i}"],
        }  # fmt: skip
        self.emit(self.rng.choice(forms[kind]).format(n=name, i=i))
        return scope

    def guard(self, scope: Scope) -> Scope:
        """An assertion or an exception that leaves the function."""
        test = self.x.of("bool", scope, self.rng.choice((1, 2)))
        if self.rng.random() < 0.6:
            self.emit(f"assert {test}" + self.rng.choice(["", ', "needed"', ', f"bad {LIMIT}"']))
        else:
            self.emit(f"if {test}:")
            self.emit(
                "    raise "
                + self.rng.choice(
                    ['ValueError("no")', "RuntimeError", 'KeyError("k")', "AssertionError()"]
                )
            )
        return scope

    def odd(self, scope: Scope) -> Scope:
        """Statements that bind little or nothing."""
        form = self.rng.choice(
            ["pass", "doc", "import", "del", "walrus", "global", "call", "lambda"]
        )
        if form == "import":
            self.emit("from math import floor as lower_end")
            self.emit(f"low = lower_end({self.x.of('float', scope, 1)})")
            return {**scope, "low": "int"}
        if form == "del":
            self.emit(f"gone = {self.x.of('int', scope, 1)}")
            self.emit("del gone")
        elif form == "walrus":
            self.emit(f"if (kept := {self.x.of('int', scope, 1)}) > {self.x.leaf('int', scope)}:")
            self.emit("    kept = kept - 1")
            return {**scope, "kept": "int"}
        elif form == "global":
            self.globals = True
            self.emit(f"calls = {self.x.of('int', scope, 1)}")
            return {**scope, "calls": "int"}
        elif form == "lambda":
            self.emit(
                f"fp = lambda z: z * {self.x.leaf('int', scope)} + {self.x.leaf('int', scope)}"
            )
            return {**scope, "fp": "function"}
        elif form == "call":
            self.emit(f"clamp({self.x.of('int', scope, 1)})")
        else:
            self.emit({"pass": "pass", "doc": '"""A note."""'}[form])
        return scope

    def closure(self, scope: Scope) -> Scope:
        """A nested function, called once or twice."""
        self.closures += 1
        name = f"inner{self.closures}"
        changes = [n for n, t in scope.items() if t == "int" and len(n) == 2]
        self.emit(f"def {name}(z, *, y={self.x.leaf('int', scope)}):")
        self.depth += 1
        inner = {**scope, "z": "int", "y": "int"}
        if changes and self.rng.random() < 0.4 and self.depth == 2:
            changed = self.rng.choice(changes)
            if changed not in PARAMETERS:
                self.emit(f"nonlocal {changed}")
                self.emit(f"{changed} = {self.x.of('int', inner, 1)}")
        if self.rng.random() < 0.5:
            self.emit(f"if {self.x.of('bool', inner, 1)}:")
            self.emit(f"    return {self.x.of('int', inner, 1)}")
        self.emit(f"return {self.x.of('int', inner, 2)}")
        self.depth -= 1
        self.emit(
            f"w = {name}({self.x.of('int', scope, 1)})"
            + self.rng.choice(["", f" + {name}({self.x.leaf('int', scope)}, y=2)"])
        )
        return {**scope, name: "function", "w": "int"}

    # -- compound statements ------------------------------------------------------------------------

    def nested(self, scope: Scope, size: int) -> Scope:
        """An indented block."""
        self.depth += 1
        inner = self.block(scope, size)
        self.depth -= 1
        return inner

    def branch(self, scope: Scope, size: int) -> Scope:
        """An if with elifs and an else."""
        self.emit(f"if {self.x.of('bool', scope, self.rng.choice((1, 2)))}:")
        arms = [self.nested(scope, size // 2)]
        if self.rng.random() < 0.25:
            self.emit(f"elif {self.x.of('bool', scope, 1)}:")
            arms.append(self.nested(scope, size // 2))
        if self.rng.random() < 0.6:
            self.emit("else:")
            arms.append(self.nested(scope, size // 2))
        else:
            arms.append(scope)
        return common(arms)

    def loop(self, scope: Scope, size: int) -> Scope:
        """A for over something constant."""
        head, bound = self.rng.choice(
            [
                ("i in range(3)", {"i": "int"}),
                ("i in TILES", {"i": "int"}),
                ("i in range(0, 9, 4)", {"i": "int"}),
                ("k, i in enumerate(TILES)", {"k": "int", "i": "int"}),
                ("i in (1, 2)", {"i": "int"}),
                ("k, i in TABLE.items()", {"k": "int", "i": "int"}),
                ("i, k in zip(TILES, (1, 2, 3))", {"k": "int", "i": "int"}),
                (f"i in {self.x.of('tuple', scope, 1)}", {"i": "int"}),
                ("i in reversed((1, 2, 8))", {"i": "int"}),
                (f"i in {self.x.leaf('list', scope)}", {"i": "int"}),
                ("i in sorted(ROWS)", {"i": "int"}),
            ]
        )
        self.emit(f"for {head}:")
        self.loops += 1
        self.nested({**scope, **bound}, min(size, 2))
        if self.rng.random() < 0.5:
            self.emit(f"    if {self.x.of('bool', {**scope, **bound}, 1)}:")
            self.emit("        " + self.rng.choice(["break", "continue", "break"]))
        self.loops -= 1
        if self.rng.random() < 0.25:
            self.emit("else:")
            self.nested(scope, 1)
        return scope

    def repeat(self, scope: Scope, size: int) -> Scope:
        """A while that certainly ends."""
        self.emit(f"n = {self.x.of('int', scope, 1)}")
        self.emit("turns = 0")
        self.emit(
            f"while turns < {self.rng.choice('234')} and {self.rng.choice(['n > 1', 'n != 0', 'True', 'n < 50'])}:"
        )
        self.loops += 1
        inner = {**scope, "n": "int", "turns": "int"}
        self.depth += 1
        self.emit("turns += 1")
        self.emit(self.rng.choice(["n = n // 2", "n -= 3", "n = n * 2 + 1"]))
        self.depth -= 1
        self.nested(dict(inner), min(size, 2))
        self.loops -= 1
        if self.rng.random() < 0.2:
            self.emit("else:")
            self.nested(inner, 1)
        return inner

    def attempt(self, scope: Scope, size: int) -> Scope:
        """A try whose exceptions are caught here."""
        self.emit("try:")
        self.depth += 1
        kind = self.rng.choice(["zero", "key", "index", "raise", "raise"])
        kind = "value" if self.rng.random() < 0.05 else kind
        if kind == "zero":
            self.emit(
                f"e = {self.x.leaf('int', scope)} {self.rng.choice(['//', '%'])} {self.x.leaf('int', scope)}"
            )
        elif kind == "key":
            self.emit(f"e = TABLE[{self.x.leaf('int', scope)}]")
        elif kind == "index":
            self.emit(f"e = TILES[{self.x.leaf('int', scope)}]")
        elif kind == "value":
            self.emit(f"e = {self.x.leaf('tuple', scope)}.index({self.x.leaf('int', scope)})")
        else:
            self.emit(f"e = {self.x.leaf('int', scope)}")
            self.emit(f"if {self.x.of('bool', scope, 1)}:")
            self.emit('    raise LookupError("none")')
        self.depth -= 1
        caught = {
            "zero": "ZeroDivisionError",
            "key": "KeyError",
            "index": "(IndexError, KeyError)",
            "raise": "LookupError",
            "value": "ValueError",
        }[kind]
        self.emit(f"except {caught}{self.rng.choice(['', ' as problem'])}:")
        arms = [{**scope, "e": "int"}]
        if self.rng.random() < 0.2 and self.loops == 0:
            self.emit(f"    return {self.result(scope)}")
        else:
            self.emit(f"    e = {self.x.of('int', scope, 1)}")
        if self.rng.random() < 0.2:
            self.emit("else:")
            arms = [self.nested({**scope, "e": "int"}, 1)]
            arms = [{**scope, "e": "int"}]
        if self.rng.random() < 0.2:
            self.emit("finally:")
            self.emit(f"    last = {self.x.leaf('int', scope)}")
            return {**arms[0], "last": "int"}
        return arms[0]

    def block(self, scope: Scope, size: int) -> Scope:
        """Some statements; what is certainly bound after them."""
        for _ in range(max(1, self.rng.randint(size // 2, max(size, 1)))):
            roll = self.rng.random()
            deep = self.depth >= 4
            if roll < 0.42 or (deep and roll < 0.75):
                scope = self.assign(scope)
            elif roll < 0.60 and not deep:
                scope = self.branch(scope, size)
            elif roll < 0.67 and self.loops == 0 and not deep:
                scope = self.loop(scope, size)
            elif roll < 0.70 and self.loops == 0 and not deep:
                scope = self.repeat(scope, size)
            elif roll < 0.75 and not deep:
                scope = self.attempt(scope, size)
            elif roll < 0.81:
                scope = self.change(scope)
            elif roll < 0.86:
                scope = self.unpack(scope)
            elif roll < 0.89 and self.loops == 0:
                scope = self.closure(scope)
            elif roll < 0.92:
                scope = self.guard(scope)
            elif roll < 0.95:
                scope = self.odd(scope)
            elif roll < 0.96 and not deep:
                self.emit("with nullcontext():")
                scope = self.nested(scope, 1)
            elif self.depth > 1 and self.rng.random() < 0.6:
                self.emit(f"return {self.result(scope)}")
                return scope
            else:
                scope = self.assign(scope)
        return scope

    # -- results --------------------------------------------------------------------------------------

    def choice(self, scope: Scope) -> str:
        """A value to be returned, of few values if it shall be pinned."""
        kind = self.rng.choice(
            ("int", "int", "int", "bool", "str", "opt", "float", "tuple", "mode")
            if self.returns != "record"
            else ("int",)
        )
        names = [n for n, t in scope.items() if t == kind and n not in PARAMETERS]
        if names and self.rng.random() < 0.6:
            return self.rng.choice(names)
        if self.narrow and kind in ("int", "opt", "float"):
            return f"clamp({self.x.of('int', scope, self.rng.choice((1, 2)))}{self.rng.choice(['', ', high=3', ', 2, 4'])})"
        return self.x.of(kind, scope, 1)

    def result(self, scope: Scope) -> str:
        """What is returned; always of one form."""
        a, b, c = (self.choice(scope) for _ in range(3))
        match self.returns:
            case "dict":
                return f'{{"first": {a}, "second": {b}, "third": {c}}}'
            case "tuple":
                return f"({a}, {b})"
            case "bare":
                return a
            case "nested":
                return f'{{"first": {a}, "inner": {{"deep": {b}}}, "pair": [{c}, 1]}}'
            case "point":
                return f"Point({a}, {b})"
            case "box":
                return f"Box({a}, depth={b})"
            case _:
                names = [n for n, t in scope.items() if t == "dict"]
                return self.rng.choice(names) if names else f'{{"a": {a}, "b": {b}}}'


PARAMETERS: Final = (
    "m",
    "n",
    "r",
    "flag",
    "ratio",
    "text",
    "limit",
    "shape",
    "mode",
    "stride",
    "k",
)


def common(arms: list[Scope]) -> Scope:
    """What every arm binds to one type."""
    first, *rest = arms
    return {n: t for n, t in first.items() if all(a.get(n) == t for a in rest)}


def inputs_of(rng: random.Random) -> list[Input]:
    """A few inputs of several kinds and types; the product of their domains is small."""
    out = [integer(rng, "m", rng.choice(["runtime", "runtime", "unpinnable"]), 12)]
    options: list[Callable[[], Input]] = [
        lambda: integer(rng, "n", "runtime", 5),
        lambda: integer(rng, "r", "request", 4),
        lambda: listed(rng, "flag", "bool"),
        lambda: listed(rng, "ratio", "float"),
        lambda: listed(rng, "text", "str"),
        lambda: listed(rng, "limit", "opt"),
        lambda: listed(rng, "shape", "tuple"),
        lambda: listed(rng, "mode", "mode"),
        lambda: Input("stride", "knob", "int", rng.choice([(0, 1), (2, 8, 4)])),
    ]
    out.extend(option() for option in rng.sample(options, rng.choice((1, 1, 2, 2, 3))))
    return out


def integer(rng: random.Random, name: str, kind: str, size: int) -> Input:
    """An int input by its range."""
    low, step = rng.choice([(1, 1), (0, 1), (-3, 1), (1, 1), (0, 8), (60, 1)])
    high = low + step * rng.randint(1, size)
    return Input(name, kind, "int", tuple(range(low, high + 1, step)), (low, high, step))


def listed(rng: random.Random, name: str, type_: str) -> Input:
    """An input by its values."""
    return Input(
        name, rng.choice(["runtime", "runtime", "request"]), type_, rng.choice(DOMAINS[type_])
    )


def declaration(given: Input) -> dict[str, Any]:
    """An input as a facts file declares it."""
    if given.range is not None:
        low, high, step = given.range
        out: dict[str, Any] = {"kind": given.kind, "type": "int", "range": [low, high]}
        return {**out, "multiple_of": step} if step > 1 else out
    values = [list(v) if isinstance(v, tuple) else v for v in given.values]
    return {"kind": given.kind, "values": values}


def program(rng: random.Random, size: int = 7) -> Made:
    """A random selection `choose` with its facts."""
    inputs = inputs_of(rng)
    x = Expressions(rng, wild=rng.choice((0.0, 0.0, 0.03)))
    writer = Writer(rng, x)
    writer.narrow = rng.random() < 0.8
    writer.returns = rng.choice(
        ["dict"] * 6 + ["tuple", "bare", "nested", "point", "box", "record"]
    )
    scope: Scope = {i.name: i.type for i in inputs} | {"k": "int"}
    scope = writer.block(scope, size)
    writer.emit(f"return {writer.result(scope)}")
    head = ["    global calls"] if writer.globals else []
    names = ", ".join([i.name for i in inputs] + ["k"])
    text = PRELUDE + f"\ndef choose({names}):\n" + "\n".join(head + writer.lines) + "\n"
    constants = {"k": rng.choice([0, 5, 8])}
    selection: dict[str, Any] = {
        "function": "choose",
        "scope": rng.choice(["launch", "launch", "request"]),
    }
    roles = {}
    if writer.returns == "dict":
        roles = {
            p: rng.choice(["bits", "bits", "neutral", "aux"]) for p in ("first", "second", "third")
        }
        selection["returns"] = roles
    plain = [i for i in inputs if i.type == "int" and i.kind != "knob"]
    if rng.random() < 0.2 and plain:
        selection["assume"] = [f"{plain[0].name} != {plain[0].values[-1]}"]
    if rng.random() < 0.15 and writer.returns == "dict":
        selection["require"] = [
            f"result['first'] != {rng.choice(['7', '3', 'None'])} or m < {inputs[0].values[-1]}"
        ]
    facts: dict[str, Any] = {
        "selection": selection, "facts": constants,
        "inputs": {i.name: declaration(i) for i in inputs if i.kind != "knob"},
    }  # fmt: skip
    for knob in (i for i in inputs if i.kind == "knob"):
        facts["inputs"][knob.name] = {"kind": "knob", "values": list(knob.values)}
    return promised(Made(text, facts, tuple(inputs), constants))


def promised(made: Made) -> Made:
    """With an `assume` that keeps out the few inputs on which the program raises."""
    names: dict[str, Any] = {"__name__": "builtins"}
    try:
        exec(compile(made.text, "case.py", "exec"), names)
    except SyntaxError:
        return made
    failing: list[tuple[Any, ...]] = []
    rows = list(itertools.islice(itertools.product(*[i.values for i in made.inputs]), 2000))
    for row in rows:
        given = {i.name: v for i, v in zip(made.inputs, row, strict=True)}
        for i in made.inputs:
            if i.type == "mode":
                given[i.name] = names["Mode"][given[i.name].removeprefix("Mode.")]
        try:
            names["choose"](**given, **made.constants)
        except FAULTS:
            failing.append(row)
    if not failing or len(failing) * 2 > len(rows):
        return made
    for k, i in enumerate(made.inputs):
        bad = {repr(r[k]) for r in failing}
        good = {repr(r[k]) for r in rows if r not in failing} - bad
        if (
            i.type in ("int", "bool", "opt")
            and len(bad) <= 4
            and len(good) + len(bad) == len(i.values)
        ):
            selection = dict(made.facts["selection"])
            texts = [f"{i.name} is None" if b == "None" else f"{i.name} == {b}" for b in bad]
            selection["assume"] = [
                *selection.get("assume", []),
                f"not ({' or '.join(sorted(texts))})",
            ]
            return dataclasses.replace(made, facts={**made.facts, "selection": selection})
    if len(failing) > 6 or any(i.type in ("mode", "float") for i in made.inputs):
        return made
    texts = []
    for row in failing:
        pairs = zip(made.inputs, row, strict=True)
        parts = [f"{i.name} is None" if v is None else f"{i.name} == {v!r}" for i, v in pairs]
        texts.append(f"not ({' and '.join(parts)})")
    selection = dict(made.facts["selection"])
    selection["assume"] = [*selection.get("assume", []), *texts]
    return dataclasses.replace(made, facts={**made.facts, "selection": selection})


__all__ = ["PRELUDE", "SCALARS", "Input", "Made", "program"]
