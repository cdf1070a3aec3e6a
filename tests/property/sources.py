"""Random selections: source text in the supported subset, and the same text under observation.

In the observed text every single definition `x = e` outside loops and helpers reads
`x = _at("f.x#2", e)`, where `_at` notes the value and puts another one in its place if told to.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

HEADER: Final = "from selc.lang import Bits, Runtime, assume, record, require, selection\n\n\n"
HELPER: Final = """\
def clamp(x: int, low: int = 0, high: int = 9) -> int:
    if x < low:
        return low
    y = x
    if y > high:
        y = high
    return y


"""
RECORD: Final = """\
@record
class Out:
    first: Bits[object]
    second: Bits[object]


"""
SIGNATURE: Final = """\
@selection(family="random", scope="launch")
def f(m: Runtime[int], n: Runtime[int], k: int) -> Out:
"""
PARAMETERS: Final = ("m", "n", "k")
CONSTANTS: Final = ("0", "1", "2", "3", "7", "64", "-1", "True", "False", "0.5", "2.0")


@dataclass(slots=True)
class Source:
    """One selection, plain and observed. `sites` are the names that `_at` sees."""

    plain: str
    observed: str
    sites: list[str]


@dataclass(slots=True)
class Writer:
    """Writes statements; `names` are the variables that are bound here for certain."""

    rng: random.Random
    lines: list[tuple[str, str]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    depth: int = 0
    narrow: bool = False  # results take few values

    def pick(self, *options: Callable[[], str]) -> str:
        """One of some ways to write something."""
        return self.rng.choice(options)()

    def expression(self, names: list[str], depth: int = 2) -> str:
        """An expression that is mostly numeric and sometimes fails."""

        def leaf() -> str:
            return self.rng.choice([*names, *names, self.rng.choice(CONSTANTS)])

        def sub() -> str:
            return self.expression(names, depth - 1)

        if depth == 0:
            return leaf()
        return self.pick(
            leaf,
            lambda: f"({sub()} {self.rng.choice('+-*+-')} {sub()})",
            lambda: f"({sub()} {self.rng.choice(['//', '%', '/'])} {self.pick(leaf, lambda: '3')})",
            lambda: f"({sub()} if {self.condition(names, depth - 1)} else {sub()})",
            lambda: f"{self.rng.choice(['min', 'max'])}({sub()}, {sub()})",
            lambda: f"clamp({sub()}{self.rng.choice(['', ', high=20', ', -3'])})",
            lambda: f"{{0: 5, 1: {leaf()}, 2: 9}}[{sub()} % 3]",
            lambda: f"{{0: 5, 1: {leaf()}, 2: 9}}.get({sub()}, {leaf()})",
            lambda: f"({sub()} {self.rng.choice(['and', 'or'])} {sub()})",
            lambda: f"abs({sub()})",
            lambda: f"[{leaf()}, {leaf()}, 4][{self.rng.choice([leaf(), '1', '-1', '0'])}]",
            lambda: f"sum(x * 2 for x in ({leaf()}, {leaf()}))",
            lambda: f"min((8, 1, 16), key=lambda c: abs(c - {leaf()}))",
        )

    def condition(self, names: list[str], depth: int = 1) -> str:
        """A comparison, a chain, or a combination of them."""

        def sub() -> str:
            return self.expression(names, depth)

        compare = self.rng.choice(["<", "<=", ">", ">=", "==", "!="])
        return self.pick(
            lambda: f"{sub()} {compare} {sub()}",
            lambda: f"0 <= {sub()} < {sub()}",
            lambda: f"not {sub()}",
            lambda: f"({sub()} > 2 {self.rng.choice(['and', 'or'])} {sub()} < 5)",
            lambda: f"{sub()} in (1, 2, 64)",
        )

    def result(self, names: list[str]) -> str:
        """What is returned."""
        first, second = self.expression(names), self.rng.choice(names)
        if self.narrow:
            first, second = (
                f"clamp({first})",
                f"(7 if {self.condition(names)} else clamp({second}))",
            )
        return f"Out(first={first}, second={second})"

    def emit(self, plain: str, observed: str | None = None) -> None:
        """One line."""
        pad = "    " * (self.depth + 1)
        self.lines.append((pad + plain, pad + (plain if observed is None else observed)))

    def assign(self, names: list[str], loop: bool) -> list[str]:
        """A definition."""
        name = self.rng.choice("abcd")
        value = self.expression(names)
        operator = (
            self.rng.choice(["+", "-", "*"]) if name in names and self.rng.random() < 0.2 else ""
        )
        count = self.counts[name] = self.counts.get(name, 0) + 1
        if loop or operator:
            self.emit(f"{name} {operator}= {value}")
        else:
            self.emit(f"{name} = {value}", f'{name} = _at("f.{name}#{count}", {value})')
        return [*names, name]

    def branch(self, names: list[str], size: int, loop: bool) -> list[str]:
        """An if, perhaps with an else."""
        self.emit(f"if {self.condition(names)}:")
        then = self.block(names, size // 2, loop, nested=True)
        other = names
        if self.rng.random() < 0.6:
            self.emit("else:")
            other = self.block(names, size // 2, loop, nested=True)
        return [x for x in then if x in other]

    def repeat(self, names: list[str]) -> list[str]:
        """A loop over constants."""
        self.emit(f"for i in {self.rng.choice(['(1, 2, 3)', 'range(2)', 'range(0, 9, 4)'])}:")
        self.block([*names, "i"], 2, loop=True, nested=True)
        return names

    def block(self, names: list[str], size: int, loop: bool, nested: bool = False) -> list[str]:
        """Some statements."""
        self.depth += nested
        for _ in range(max(1, self.rng.randint(size // 2, size))):
            roll = self.rng.random()
            if roll < 0.55:
                names = self.assign(names, loop)
            elif roll < 0.75 and self.depth < 3:
                names = self.branch(names, size, loop)
            elif roll < 0.82 and not loop and self.depth < 2:
                names = self.repeat(names)
            elif roll < 0.86:
                self.emit(f'require({self.condition(names)}, "needed")')
            elif roll < 0.88:
                self.emit(f"assert {self.condition(names)}")
            elif roll < 0.95 and nested:
                self.emit(f"return {self.result(names)}")
                break
            elif roll < 0.97 and loop:
                self.emit(self.rng.choice(["break", "continue"]))
                break
            else:
                a, b = self.rng.choice(names), self.expression(names, 1)
                self.counts["p"] = self.counts.get("p", 0) + 1
                self.counts["q"] = self.counts.get("q", 0) + 1
                self.emit(f"p, q = {a}, {b}")
                names = [*names, "p", "q"]
        self.depth -= nested
        return names


def source(rng: random.Random, narrow: bool = False) -> Source:
    """A random selection `f(m, n, k)`; k is a fact."""
    writer = Writer(rng, narrow=narrow)
    names = writer.block(list(PARAMETERS), 6, loop=False)
    writer.emit(f"return {writer.result(names)}")
    head = HEADER + HELPER + RECORD + SIGNATURE
    plain = head + "".join(f"{p}\n" for p, _ in writer.lines)
    observed = head + "".join(f"{o}\n" for _, o in writer.lines)
    sites = []
    for name, count in writer.counts.items():
        numbered = [f"f.{name}#{k}" for k in range(1, count + 1)]
        sites += [site for site in numbered if f'"{site}"' in observed]
        if count == 1:  # a variable that is defined once has no number
            observed = observed.replace(f'"f.{name}#1"', f'"f.{name}"')
    single = {f"f.{name}#1" for name, count in writer.counts.items() if count == 1}
    return Source(plain, observed, [s.removesuffix("#1") if s in single else s for s in sites])
