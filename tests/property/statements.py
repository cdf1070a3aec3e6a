"""Random statements of one function, each right for the variables that are bound where it stands."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Final

from tests.property.expressions import Expressions, Scope

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
    related: bool = False  # `left` and `right` are what is returned

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

    def relation(self, scope: Scope) -> Scope:
        """Two choices and a guard between them: it may hold of every batch and not of every pin."""
        a, b = "left", "right"
        for name in (a, b):
            x, y = (self.rng.choice(["m", self.x.leaf("int", scope)]) for _ in range(2))
            forms = [
                f"{x} // {self.rng.choice('235')} % {self.rng.choice('234')}",
                f"({x} > {self.rng.choice('268')}) + ({y} > {self.rng.choice('345')})",
                f"2 if {x} % 4 > {self.rng.choice('12')} else {self.rng.choice(['0', y])}",
                f"clamp({self.x.of('int', scope, 2)}, high={self.rng.choice('23')})",
            ]
            self.emit(f"{name} = {self.rng.choice(forms)}")
        c, d = self.rng.choice("0012"), self.rng.choice("012")
        self.related = self.rng.random() < 0.7
        self.emit(
            self.rng.choice(
                [
                    f"assert {a} <= {b} + {c}",
                    f"assert {a} != {c} or {b} != {d}",
                    f"assert {a} * {b} <= 16, {a}",
                    f"assert {a} == {b} or {a} > {c}",
                    f"assert not ({a} > {c} and {b} > m)",
                    f"if {a} > {c} and {b} <= {d}:\n        raise ValueError({b})",
                ]
            )
        )
        return {**scope, a: "int", b: "int"}

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
        leaves = self.rng.random() < 0.2 and self.loops == 0
        if leaves:
            self.emit(f"    return {self.result(scope)}")
        else:
            self.emit(f"    e = {self.x.of('int', scope, 1)}")
        if self.rng.random() < 0.2:
            self.emit("else:")
            before = len(self.lines)
            self.nested({**scope, "e": "int"}, 1)
            leaving = ("return", "break", "continue", "raise")
            leaves = leaves or any(ln.strip().startswith(leaving) for ln in self.lines[before:])
        if not leaves and self.rng.random() < 0.2:
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
        if kind == "int" and self.rng.random() < 0.25:
            return f"clamp({self.rng.choice(self.x.seldom(scope, 1))()})"
        names = [n for n, t in scope.items() if t == kind and n not in PARAMETERS]
        if names and self.rng.random() < 0.75:
            return self.rng.choice(names[-4:])  # what was made last: more of the program matters
        if self.narrow and kind in ("int", "opt", "float"):
            return f"clamp({self.x.of('int', scope, self.rng.choice((1, 2)))}{self.rng.choice(['', ', high=3', ', 2, 4'])})"
        return self.x.of(kind, scope, 1)

    def result(self, scope: Scope) -> str:
        """What is returned; always of one form."""
        a, b, c = (self.choice(scope) for _ in range(3))
        if self.related and "right" in scope:
            a, b = "left", "right"
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


def common(arms: list[Scope]) -> Scope:
    """What every arm binds to one type."""
    first, *rest = arms
    return {n: t for n, t in first.items() if all(a.get(n) == t for a in rest)}
