"""Random expressions by type, mostly right and sometimes failing, over the whole supported subset.

A type is "int", "bool", "float", "str", "opt" (an int or None), "tuple" (three ints), "list" (of
ints), "dict" (keys "a" and "b", perhaps "c"), "point" (a NamedTuple), "box" (a dataclass), "mode"
(an Enum member) or "function" (of one int). Every choice comes from one `random.Random`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

Scope = dict[str, str]
"""Variables that are certainly bound here, with their types."""

SCALARS: Final = ("int", "bool", "float", "str", "opt")
INTS: Final = (
    "0",
    "1",
    "2",
    "3",
    "4",
    "7",
    "8",
    "16",
    "64",
    "128",
    "-1",
    "-5",
    "LIMIT",
    "TILES[1]",
)
FLOATS: Final = ("0.5", "1.0", "2.5", "-0.0", "1e3", "0.1", "SCALE", "float('inf')")
STRINGS: Final = ('"a"', '"bf16"', '"x-y"', '""', "NAME")
MODES: Final = ("Mode.SLOW", "Mode.FAST", "Mode.AUTO")


@dataclass(slots=True)
class Expressions:
    """Writes expressions; `fresh` counts the names of comprehensions and walruses."""

    rng: random.Random
    wild: float = 0.02  # how often a subexpression has some other type
    fresh: int = 0
    walrus: bool = True
    bound: list[tuple[str, str]] = field(default_factory=list)  # by walruses, with types

    def pick(self, *options: Callable[[], str]) -> str:
        """One of some ways to write something."""
        return self.rng.choice(options)()

    def name(self) -> str:
        """A name that nothing else has."""
        self.fresh += 1
        return f"v{self.fresh}"

    def leaf(self, kind: str, scope: Scope) -> str:
        """A variable or a constant."""
        if self.rng.random() < self.wild and kind in SCALARS:
            kind = self.rng.choice(SCALARS)
        known = [n for n, t in scope.items() if t == kind]
        if known and (kind not in SCALARS or self.rng.random() < 0.85):
            return self.rng.choice([*known, *[n for n in known if n != "k"] * 2])
        return self.constant(kind, scope)

    def constant(self, kind: str, scope: Scope) -> str:
        """A constant of a type."""
        match kind:
            case "int":
                return self.rng.choice(INTS)
            case "bool":
                return self.rng.choice(("True", "False"))
            case "float":
                return self.rng.choice(FLOATS)
            case "str":
                return self.rng.choice(STRINGS)
            case "opt":
                return self.rng.choice(("None", "None", "5"))
            case "mode":
                return self.rng.choice(MODES)
            case "function":
                return self.rng.choice(("double", "shrink", "WAYS[Mode.FAST]"))
            case _:
                return self.made(kind, scope, 0)

    def plain(self, kind: str, scope: Scope) -> str:
        """A name, for a place where quotes would end a string."""
        known = [n for n, t in scope.items() if t == kind]
        return self.rng.choice(
            [*known, {"int": "LIMIT", "str": "NAME", "float": "SCALE"}.get(kind, "True")]
        )

    def made(self, kind: str, scope: Scope, depth: int) -> str:
        """A container built of parts."""

        def i() -> str:
            return self.of("int", scope, max(0, depth - 1))

        match kind:
            case "tuple":
                return f"({i()}, {i()}, {i()})"
            case "list":
                return f"[{i()}, {i()}, {i()}]"
            case "dict":
                return self.pick(
                    lambda: f'{{"a": {i()}, "b": {i()}}}',
                    lambda: f'{{"a": {i()}, "b": {i()}, "c": {i()}}}',
                    lambda: f"dict(a={i()}, b={i()})",
                    lambda: f'{{**BASE, "b": {i()}}}',
                )
            case "point":
                return self.pick(lambda: f"Point({i()}, {i()})", lambda: f"Point(x={i()})")
            case _:
                return self.pick(lambda: f"Box({i()})", lambda: f"Box(width={i()}, depth={i()})")

    def of(self, kind: str, scope: Scope, depth: int = 2) -> str:
        """An expression of a type."""
        if depth <= 0:
            return self.leaf(kind, scope)
        if self.rng.random() < self.wild and kind in SCALARS:
            kind = self.rng.choice(SCALARS)
        rules = {
            "int": self.integer, "bool": self.condition, "float": self.real, "str": self.text,
            "opt": self.optional, "tuple": self.sequence, "list": self.listed, "dict": self.record,
            "point": self.point, "box": self.box, "mode": self.mode, "function": self.function,
        }  # fmt: skip
        return rules[kind](scope, depth)

    # -- numbers ----------------------------------------------------------------------------------

    def integer(self, scope: Scope, depth: int) -> str:
        """An int."""

        def i() -> str:
            return self.of("int", scope, depth - 1)

        def b() -> str:
            return self.of("bool", scope, depth - 1)

        def leaf() -> str:
            return self.leaf("int", scope)

        def part(kind: str) -> str:
            return self.of(kind, scope, depth - 1)

        arithmetic: list[Callable[[], str]] = [
            lambda: f"({i()} {self.rng.choice('+-*')} {i()})",
            lambda: (
                f"({i()} {self.rng.choice(['//', '%'])} {self.rng.choice(['3', '4', '64', leaf()])})"
            ),
            lambda: f"({i()} {self.rng.choice('&|^')} {i()})",
            lambda: (
                f"({i()} {self.rng.choice(['<<', '>>'])} {self.rng.choice(['1', '2', leaf()])})"
            ),
            lambda: f"({self.rng.choice(['-', '+', '~'])}{i()})",
            lambda: f"({leaf()} ** {self.rng.choice(['2', '0', '3'])})",
            lambda: f"{self.rng.choice(['min', 'max'])}({i()}, {i()})",
            lambda: f"{self.rng.choice(['min', 'max'])}({i()}, {leaf()}, {leaf()})",
            lambda: f"abs({i()})",
            lambda: f"({i()}).bit_length()",
            lambda: f"int({self.rng.choice([part('float'), part('bool'), leaf()])})",
            lambda: f"round({part('float')})",
            lambda: f"math.{self.rng.choice(['ceil', 'floor', 'trunc'])}({part('float')})",
            lambda: f"divmod({i()}, {self.rng.choice(['3', leaf()])})[{self.rng.choice('01')}]",
            lambda: f"pow({leaf()}, 2)",
            lambda: f"-(-{i()} // {self.rng.choice(['4', '64', leaf()])})",
        ]
        choices: list[Callable[[], str]] = [
            lambda: f"({i()} if {b()} else {i()})",
            lambda: f"({i()} {self.rng.choice(['and', 'or'])} {i()})",
            lambda: f"(0 if (o := {part('opt')}) is None else o)" if self.walrus else leaf(),
            lambda: self.unwrapped(scope),
            lambda: f"({part('opt')} or {leaf()})",
        ]
        lookups: list[Callable[[], str]] = [
            lambda: f"TILES[{i()} % 3]",
            lambda: f"TILES[{self.rng.choice(['0', '-1', '2', leaf()])}]",
            lambda: f"TABLE[{self.rng.choice([leaf(), '4'])}]",
            lambda: f"TABLE.get({i()}, {leaf()})",
            lambda: f"ROWS[{self.nearest(scope)}]['{self.rng.choice(['tile', 'warps'])}']",
            lambda: f"GRID[{i()} % 2, {leaf()} % 2]",
            lambda: f'{part("dict")}["{self.rng.choice("aab")}"]',
            lambda: f'{part("dict")}.get("{self.rng.choice("bc")}", {leaf()})',
            lambda: f"{part('tuple')}[{self.rng.choice(['0', '1', '-1'])}]",
            lambda: f"{part('list')}[{self.rng.choice(['0', '2', leaf()])}]",
            lambda: f"{part('point')}.{self.rng.choice('xy')}",
            lambda: f"{part('box')}.{self.rng.choice(['width', 'depth', 'area'])}",
            lambda: f"{part('box')}.grown({leaf()})",
            lambda: f"{self.leaf('mode', scope)}.value",
        ]
        folds: list[Callable[[], str]] = [
            lambda: f"sum({self.members(scope, 'int')})",
            lambda: f"len({part(self.rng.choice(['tuple', 'list', 'str']))})",
            lambda: f"{self.rng.choice(['min', 'max', 'sum'])}({part('tuple')})",
            lambda: f"min(TILES, key=lambda c: abs(c - {leaf()}))",
            lambda: f"max({part('tuple')}, default={leaf()})",
            lambda: f"next(c for c in TILES if c >= {leaf()})",
            lambda: f"max((c for c in TILES if c <= {leaf()}), default={leaf()})",
            lambda: f"min(c for c in (*TILES, {leaf()}) if c >= {leaf()})",
            lambda: f"next((c for c in TILES if c >= {leaf()}), {leaf()})",
            lambda: (
                f"sorted({self.pick(lambda: 'TILES', lambda: 'ROWS', lambda: part('tuple'), lambda: 'STEPS')})[{self.rng.choice('012')}]"
            ),
            lambda: f"sum(a * b for a, b in zip({part('tuple')}, TILES))",
            lambda: f"bisect.bisect_left(STEPS, {leaf()})",
            lambda: f"{part('tuple')}.{self.rng.choice(['count', 'index'])}({leaf()})",
            lambda: f"sum({self.leaf('tuple', scope)})",
            lambda: f"{self.rng.choice(['min', 'max', 'len'])}({self.leaf('tuple', scope)})",
            lambda: f"len({self.leaf('str', scope)})",
            lambda: (
                f"sorted({self.leaf('tuple', scope)}{self.rng.choice(['', ', reverse=True'])})[{self.rng.choice('012')}]"
            ),
            lambda: (
                f"{part('str')}.{self.rng.choice(['find', 'count'])}({self.leaf('str', scope)})"
            ),
        ]
        calls: list[Callable[[], str]] = [
            lambda: f"clamp({i()}{self.rng.choice(['', ', high=20', ', -3', ', 1, 2'])})",
            lambda: f"cdiv({i()}, {self.rng.choice(['4', leaf()])})",
            lambda: f"spread({leaf()}, {i()}, {leaf()})",
            lambda: f"spread(*{part('tuple')})",
            lambda: f"named(**{part('dict')})" if depth > 1 else f"named(a={leaf()}, b=1)",
            lambda: f"{part('function')}({i()})",
            lambda: f"steps({leaf()})",
            lambda: f"classify({i()})",
            lambda: f"WAYS[{part('mode')}]({leaf()})",
            lambda: f"(lambda q, r={leaf()}: q + r)({i()})",
            lambda: f"partial(clamp, low={leaf()})({i()})",
            lambda: f"first_of({part('tuple')})",
            lambda: f"tuned({i()} % 4)",
            lambda: f"(sms() // {self.rng.choice(['4', '3', '64'])})",
            lambda: (
                f"{self.rng.choice(['Plan', 'WidePlan'])}({i()}).{self.rng.choice(['size', 'scale', 'tiles(2)', 'ready'])}"
            ),
            lambda: f"WidePlan.least({i()})",
            lambda: "WIDTH",
            lambda: self.seq(scope, ("max", "min", "sum", "len")) or leaf(),
        ]
        return self.rng.choice(
            self.rng.choice(
                [arithmetic, arithmetic, choices, lookups, folds, calls, self.seldom(scope, depth)]
            )
        )()

    def seldom(self, scope: Scope, depth: int) -> list[Callable[[], str]]:
        """What few programs have otherwise: operations on whole inputs, introspection, copies."""
        given = "shape" if "shape" in scope else self.leaf("tuple", scope)

        def part(kind: str) -> str:
            return self.of(kind, scope, depth - 1)

        real = "ratio" if "ratio" in scope else self.leaf("float", scope)
        whole: list[Callable[[], str]] = [
            lambda: f"{self.rng.choice(['max', 'min', 'sum', 'len'])}({given})",
            lambda: f"sorted({given})[{self.rng.choice(['0', '-1'])}]",
            lambda: f"int({self.rng.choice(['any', 'all'])}({given}))",
            lambda: f"math.{self.rng.choice(['ceil', 'trunc', 'floor'])}({real})",
            lambda: f"int(float32({real} * 2.6))",
            lambda: f"int(float({self.leaf('int', scope)}) * 1.5)",
            lambda: f"next(c for c in TILES if c >= {self.leaf('int', scope)})",
        ]
        if self.rng.random() < 0.4:
            return whole
        return [
            lambda: f"(~{part('int')} {self.rng.choice('|^')} {self.leaf('int', scope)})",
            lambda: f"int(math.log2({self.leaf('int', scope)}))",
            lambda: f"math.prod({given})",
            lambda: "math.gcd(LIMIT, 8)",
            lambda: f"TILES[rank_of({part('int')})]",
            lambda: f"(rank_of({part('int')}) {self.rng.choice('+*-')} {self.leaf('int', scope)})",
            lambda: f"rank_of({part('int')}).value",
            lambda: f"getattr({part('box')}, 'width')",
            lambda: f"getattr({part('box')}, 'height', {self.leaf('int', scope)})",
            lambda: f"(1 if type({self.leaf('int', scope)}) is int else 2)",
            lambda: f"len(frozenset({{LIMIT, 4}}) | set(TILES)) + {self.leaf('int', scope)}",
            lambda: f"copy.copy({self.leaf('dict', scope)})['a']",
            lambda: f"copy.deepcopy({self.leaf('box', scope)}).width",
            lambda: f"cast(int, {part('int')})",
            lambda: f"tuple(iter({given}))[0]",
            lambda: f"bisect.bisect({self.rng.choice(['STEPS', '(1, 8)'])}, {part('int')})",
            lambda: f"dict(zip(('a', 'b'), {given}))['b']",
            lambda: f"{part('dict')}.get('c', {part('int')})",
            lambda: f"sum({self.leaf('list', scope)}, start={part('int')})",
        ]

    def seq(self, scope: Scope, functions: tuple[str, ...]) -> str:
        """What may be asked of a sequence input, if there is one."""
        return f"{self.rng.choice(functions)}(lens)" if "lens" in scope else ""

    def unwrapped(self, scope: Scope) -> str:
        """An optional int that was tested."""
        known = [n for n, t in scope.items() if t == "opt"]
        if not known:
            return self.leaf("int", scope)
        name = self.rng.choice(known)
        return f"({name} if {name} is not None else {self.leaf('int', scope)})"

    def nearest(self, scope: Scope) -> str:
        """A key of the table of rows."""
        return self.pick(
            lambda: f"min(ROWS.keys(), key=lambda k: abs(k - {self.leaf('int', scope)}))",
            lambda: f"min(ROWS, key=lambda k: (k < {self.leaf('int', scope)}, k))",
            lambda: self.rng.choice(["1", "16"]),
        )

    def members(self, scope: Scope, kind: str) -> str:
        """A generator over constants or a sequence."""
        name = self.name()
        inner = {**scope, name: "int"}
        source = self.pick(
            lambda: "TILES", lambda: "range(3)", lambda: "(1, 2, 5)",
            lambda: self.leaf("tuple", scope), lambda: "TABLE.values()",
        )  # fmt: skip
        test = f" if {self.of('bool', inner, 1)}" if self.rng.random() < 0.4 else ""
        return f"{self.of(kind, inner, 1)} for {name} in {source}{test}"

    def real(self, scope: Scope, depth: int) -> str:
        """A float."""

        def f() -> str:
            return self.of("float", scope, depth - 1)

        def i() -> str:
            return self.of("int", scope, depth - 1)

        return self.pick(
            lambda: f"({f()} {self.rng.choice('+-*')} {f()})",
            lambda: f"({i()} / {self.rng.choice(['4', '3', '0.5', self.leaf('int', scope)])})",
            lambda: (
                f"({f()} {self.rng.choice(['/', '//', '%'])} {self.rng.choice(['2.0', '0.3', f()])})"
            ),
            lambda: f"float({i()})",
            lambda: f"({f()} * {i()})",
            lambda: f"(-{f()})",
            lambda: f"math.sqrt({self.pick(f, i)})",
            lambda: f"math.log2({i()})",
            lambda: f"float32({f()})",
            lambda: f"({f()} if {self.of('bool', scope, depth - 1)} else {f()})",
            lambda: f"{self.rng.choice(['min', 'max'])}({f()}, {i()})",
            lambda: f"abs({f()})",
            lambda: f"sum({self.members(scope, 'float')})",
        )

    # -- conditions -------------------------------------------------------------------------------

    def condition(self, scope: Scope, depth: int) -> str:
        """A bool."""

        def i() -> str:
            return self.of("int", scope, depth - 1)

        def b() -> str:
            return self.of("bool", scope, depth - 1)

        def part(kind: str) -> str:
            return self.of(kind, scope, depth - 1)

        compare = self.rng.choice(["<", "<=", ">", ">=", "==", "!="])
        number = self.rng.choice(["int", "int", "float"])
        return self.pick(
            lambda: f"{i()} {compare} {i()}",
            lambda: f"{i()} {compare} {i()}",
            lambda: f"{part(number)} {compare} {part(number)}",
            lambda: f"{i()} {self.rng.choice(['<', '<='])} {i()} {compare} {i()}",
            lambda: f"(not {b()})",
            lambda: f"({b()} {self.rng.choice(['and', 'or'])} {b()})",
            lambda: f"{i()} {self.rng.choice(['in', 'not in'])} (1, 2, {self.leaf('int', scope)})",
            lambda: f"{i()} in TABLE",
            lambda: f'"{self.rng.choice("ac")}" in {part("dict")}',
            lambda: f"{part('opt')} is {self.rng.choice(['', 'not '])}None",
            lambda: f"{part('str')} {self.rng.choice(['==', '!=', '<', 'in'])} {part('str')}",
            lambda: (
                f"({part('str')}).{self.rng.choice(['startswith', 'endswith'])}({self.leaf('str', scope)})"
            ),
            lambda: f"{self.rng.choice(['any', 'all'])}({self.members(scope, 'bool')})",
            lambda: f"bool({part(self.rng.choice(['int', 'str', 'opt', 'float', 'tuple']))})",
            lambda: (
                f"isinstance({part(self.rng.choice(['int', 'bool', 'float', 'opt']))}, {self.rng.choice(['int', 'bool', '(int, float)', 'str'])})"
            ),
            lambda: (
                f"{part('mode')} {self.rng.choice(['is', '==', '!=', 'is not'])} {self.leaf('mode', scope)}"
            ),
            lambda: f"{part('mode')} in (Mode.FAST, Mode.AUTO)",
            lambda: f"{self.rng.choice(['any', 'all'])}({self.leaf('tuple', scope)})",
            lambda: f"{self.leaf('str', scope)} in ('a', {self.leaf('str', scope)})",
            lambda: f"({part('float')}).is_integer()",
            lambda: f"hasattr({part('box')}, {self.rng.choice(['width', 'height'])!r})",
            lambda: f"{part('bool')} {self.rng.choice('&|^')} {part('bool')}",
            lambda: f"{part('tuple')} {self.rng.choice(['==', '<', '!='])} {part('tuple')}",
            lambda: f"({part('mode')}).quick",
            lambda: f"rank_of({i()}) {self.rng.choice(['<', '==', '>=', 'is'])} Rank.MID",
            lambda: self.seq(scope, ("any", "all")) or f"{i()} in {{1, 4, 16}}",
            lambda: f"{i()} in {{c for c in TILES}}",
            lambda: (
                f"{{LIMIT, 4}} {self.rng.choice(['==', '<=', '>'])} {{4, {self.rng.choice(['12', '1'])}}}"
            ),
            lambda: f"{part('bool')} {self.rng.choice(['is True', 'is not False', '== True'])}",
        )

    # -- text, and None -----------------------------------------------------------------------------

    def text(self, scope: Scope, depth: int) -> str:
        """A string."""

        def s() -> str:
            return self.of("str", scope, depth - 1)

        def i() -> str:
            return self.leaf("int", scope)

        return self.pick(
            lambda: f"({s()} + {s()})",
            lambda: f'f"{{{self.plain("int", scope)}}}x{{{self.plain("str", scope)}}}"',
            lambda: f'f"{{{self.plain("int", scope)}:>4}}|{{{self.plain("bool", scope)}!r}}"',
            lambda: f'f"{{{self.plain("float", scope)}:.2f}}"',
            lambda: f"({s()} if {self.of('bool', scope, depth - 1)} else {s()})",
            lambda: f"{s()}.{self.rng.choice(['upper', 'lower', 'strip', 'title', 'swapcase'])}()",
            lambda: f'{s()}.replace("x", {self.leaf("str", scope)})',
            lambda: f'{s()}.split("-")[0]',
            lambda: (
                f"str({self.leaf(self.rng.choice(['int', 'bool', 'float', 'opt', 'str']), scope)})"
            ),
            lambda: f'"-".join(({s()}, {self.leaf("str", scope)}))',
            lambda: f'("%s:%d" % ({self.leaf("str", scope)}, {i()}))',
            lambda: f'"{{}}/{{}}".format({self.leaf("str", scope)}, {i()})',
            lambda: f"{s()}[{self.rng.choice(['0', '-1', ':1', '1:'])}]",
            lambda: f"({s()} * {self.rng.choice(['2', i()])})",
            lambda: f'{s()}.removeprefix("b")',
            lambda: f"NAMES[{self.of('int', scope, depth - 1)} % 3]",
            lambda: f"{self.leaf('mode', scope)}.name",
        )

    def optional(self, scope: Scope, depth: int) -> str:
        """An int or None."""
        return self.pick(
            lambda: (
                f"({self.of('int', scope, depth - 1)} if {self.of('bool', scope, depth - 1)} else None)"
            ),
            lambda: f"TABLE.get({self.leaf('int', scope)})",
            lambda: f"maybe({self.leaf('int', scope)})",
            lambda: f"{self.of('dict', scope, depth - 1)}.get('c')",
            lambda: self.leaf("opt", scope),
        )

    # -- containers -------------------------------------------------------------------------------

    def sequence(self, scope: Scope, depth: int) -> str:
        """A tuple of three ints."""

        def i() -> str:
            return self.of("int", scope, depth - 1)

        def t() -> str:
            return self.leaf("tuple", scope)

        return self.pick(
            lambda: self.made("tuple", scope, depth),
            lambda: f"tuple({self.leaf('int', scope)} + c for c in range(3))",
            lambda: f"({i()}, *{t()}[1:])",
            lambda: f"(({i()},) + {t()}[:2])",
            lambda: f"{t()}[::-1]",
            lambda: f"tuple(sorted({self.pick(lambda: 'TILES', lambda: '(k, 3, LIMIT)')}))",
            lambda: f"tuple(reversed({t()}))",
            lambda: f"({t()} if {self.of('bool', scope, depth - 1)} else {t()})",
            lambda: f"tuple(map(double, {t()}))",
            lambda: f"tuple(k + v for k, v in enumerate({t()}))",
            lambda: f"(({i()},) * 3)",
        )

    def listed(self, scope: Scope, depth: int) -> str:
        """A list of ints."""
        return self.pick(
            lambda: self.made("list", scope, depth),
            lambda: f"[{self.leaf('int', scope)} * c for c in (1, 2, 3)]",
            lambda: f"list({self.leaf('tuple', scope)})",
            lambda: f"([{self.leaf('int', scope)}] + {self.leaf('list', scope)})",
            lambda: f"([c for c in TILES if c != 4] + [{self.leaf('int', scope)}])",
            lambda: f"{self.leaf('list', scope)}.copy()",
            lambda: f"[*{self.leaf('tuple', scope)}, 1]",
        )

    def record(self, scope: Scope, depth: int) -> str:
        """A dict with constant keys."""
        return self.pick(
            lambda: self.made("dict", scope, depth),
            lambda: f"{self.leaf('dict', scope)}.copy()",
            lambda: f'{{**{self.leaf("dict", scope)}, "a": {self.leaf("int", scope)}}}',
            lambda: f"dict({self.leaf('dict', scope)}, b={self.leaf('int', scope)})",
            lambda: f"({self.leaf('dict', scope)} | BASE)",
            lambda: f"config({self.of('int', scope, depth - 1)})",
            lambda: (
                f"({self.leaf('dict', scope)} if {self.of('bool', scope, depth - 1)} else config(1))"
            ),
            lambda: f"{{k: v + 1 for k, v in {self.leaf('dict', scope)}.items()}}",
        )

    def point(self, scope: Scope, depth: int) -> str:
        """A NamedTuple."""
        return self.pick(
            lambda: self.made("point", scope, depth),
            lambda: f"{self.leaf('point', scope)}._replace(y={self.leaf('int', scope)})",
            lambda: f"Point(*{self.leaf('tuple', scope)}[:2])",
        )

    def box(self, scope: Scope, depth: int) -> str:
        """A dataclass."""
        return self.pick(
            lambda: self.made("box", scope, depth),
            lambda: f"Box.square({self.of('int', scope, depth - 1)})",
            lambda: f"replace({self.leaf('box', scope)}, width={self.leaf('int', scope)})",
        )

    def mode(self, scope: Scope, depth: int) -> str:
        """An Enum member."""
        return self.pick(
            lambda: self.leaf("mode", scope),
            lambda: (
                f"({self.leaf('mode', scope)} if {self.of('bool', scope, depth - 1)} else Mode.SLOW)"
            ),
            lambda: f"Mode[{self.rng.choice(['FAST', 'AUTO'])!r}]",
            lambda: f"pick_mode({self.leaf('int', scope)})",
        )

    def function(self, scope: Scope, depth: int) -> str:
        """A function of an int."""
        return self.pick(
            lambda: self.leaf("function", scope),
            lambda: f"(double if {self.of('bool', scope, depth - 1)} else shrink)",
            lambda: f"partial(spread, {self.leaf('int', scope)}, 1)",
            lambda: f"adder({self.leaf('int', scope)})",
        )
