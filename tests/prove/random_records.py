"""Random small selections whose choices are fields of records, for the brute-force judge."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

HEAD = """\
from dataclasses import dataclass, replace
from typing import NamedTuple


@dataclass(frozen=True)
class Tile:
    w: int
    s: int
{post}

@dataclass
class Plan:
    w: int
    s: int


class Row(NamedTuple):
    w: int
    s: int


class Both(NamedTuple):
    up: Row
    down: Row


@dataclass(frozen=True)
class Out:
    k: str
    tile: Tile


def make(m, step):
    w = 8 if m <= 30 * step else 24
    return Tile(w, step)


def widest(r, m):
    assert m <= r.w * 12, "inside a helper"
    return r.w if r.s > 1 else r.w + r.s


"""
POST = """
    def __post_init__(self):
        assert self.w * self.s <= {most}
"""
FACTS = """\
selection:
  function: choose
  scope: launch
  returns: {returns}
inputs:
  m: {{kind: runtime, type: int, range: [1, 90]}}
  n: {{kind: runtime, type: int, values: [1, 2]}}
"""


@dataclass
class Writer:
    """One program while it is written."""

    rng: random.Random
    lines: list[str] = field(default_factory=list)
    scalars: list[str] = field(default_factory=list)
    kinds: dict[str, str] = field(default_factory=dict)  # records by their class, `dict` or `list`
    count: int = 0

    def name(self, stem: str) -> str:
        """A name that is not used yet."""
        self.count += 1
        return f"{stem}{self.count}"

    def put(self, line: str, depth: int = 1) -> None:
        """A line of the function."""
        self.lines.append("    " * depth + line)

    def test(self) -> str:
        """A condition on the inputs."""
        at = self.rng.choice([12, 24, 33, 45, 60, 78])
        return self.rng.choice(
            [f"m > {at}", f"m <= {at}", f"m // 24 > {self.rng.choice([0, 1, 2])}", "n > 1"]
        )

    def read(self, name: str, part: str) -> str:
        """A field of a record."""
        kind = self.kinds[name]
        if kind == "list":
            name = f"{name}[{self.rng.randrange(2)}]"
        return f'{name}["{part}"]' if kind == "dict" else f"{name}.{part}"

    def width(self) -> str:
        """What a field is made of: seldom a name."""
        low, high = self.rng.sample([4, 6, 8, 12, 16, 24], 2)
        ways = [
            f"{low} if {self.test()} else {high}",
            f"{low} if {self.test()} else {high}",
            f"({low}, {high}, {low + high}, 8)[m // 24]",
            f"m // {self.rng.choice([20, 30, 45])} * 4 + 4",
            f"max({low}, n * 4)",
            str(low),
        ]
        ways += self.rng.sample(self.scalars, min(2, len(self.scalars)))
        ways += [self.read(r, "w") + " + 2" for r in self.kinds]
        ways += [self.read(r, "w") for r in self.kinds]
        return self.rng.choice(ways)

    def step(self) -> str:
        """A small number."""
        return self.rng.choice(
            ["1", "2", f"1 if {self.test()} else 2", "n", f"2 if {self.test()} else 3"]
        )

    def record(self, kind: str) -> str:
        """An expression that makes a record."""
        w, s = self.width(), self.step()
        if kind == "dict":
            return f'{{"w": {w}, "s": {s}}}'
        return self.rng.choice([f"{kind}({w}, {s})", f"{kind}(w={w}, s={s})"])

    def define(self) -> None:
        """A variable that holds a record."""
        kind = self.rng.choice(["Tile", "Plan", "Row", "dict"])
        way = self.rng.randrange(8)
        new = self.name("r")
        if way < 3:
            self.put(f"{new} = {self.record(kind)}")
        elif way == 3:
            self.put(f"if {self.test()}:")
            self.put(f"{new} = {self.record(kind)}", 2)
            if self.rng.random() < 0.3:
                read = f'{new}["w"]' if kind == "dict" else f"{new}.w"
                self.put(f"assert m <= {read} * 12", 2)
            self.put("else:")
            self.put(f"{new} = {self.record(kind)}", 2)
        elif way == 4:
            kind = "Tile"
            self.put(f"{new} = make(m, {self.rng.choice(['1', '2'])})")
        elif way == 5 and self.kinds:
            kind = self.copy(new)
        elif way == 6 and self.kinds:
            old = self.rng.choice([*self.kinds])
            kind = self.kinds[old]
            self.put(f"{new} = {old}")
        else:
            kind = "list" if self.rng.random() < 0.5 else kind
            if kind == "list":
                self.put(f"{new} = []")
                self.put("for i in range(2):")
                self.put(
                    f"{new}.append({self.rng.choice(['Tile', 'Row'])}({self.width()}, i + 1))", 2
                )
            else:
                self.put(f"{new} = {self.record(kind)}")
        self.kinds[new] = kind

    def copy(self, new: str) -> str:
        """A copy of a record with another field."""
        old = self.rng.choice([*self.kinds])
        kind, w = self.kinds[old], self.width()
        part = self.rng.choice(["w", "s"])
        w = w if part == "w" else self.step()
        if kind == "dict":
            self.put(f'{new} = {{**{old}, "{part}": {w}}}')
        elif kind == "Row":
            self.put(f"{new} = {old}._replace({part}={w})")
        elif kind == "list":
            self.put(f"{new} = [{old}[1], {old}[0]]")
        else:
            self.put(f"{new} = replace({old}, {part}={w})")
        return kind

    def change(self) -> None:
        """Another value for a field of a record."""
        able = [r for r, kind in self.kinds.items() if kind in ("dict", "Plan")]
        if not able:
            return
        r = self.rng.choice(able)
        if self.kinds[r] == "dict" and self.rng.random() < 0.3:
            self.put(f"{r}.update(w={self.width()})")
            return
        depth = 1
        if self.rng.random() < 0.5:
            self.put(f"if {self.test()}:")
            depth = 2
        self.put(f"{self.read(r, 'w')} = {self.width()}", depth)

    def guard(self) -> None:
        """A requirement that reads records."""
        r = self.rng.choice([*self.kinds])
        w, s = self.read(r, "w"), self.read(r, "s")
        other = self.read(self.rng.choice([*self.kinds]), "w")
        most, late = self.rng.choice([16, 24, 40]), self.rng.choice([24, 48])
        self.put(
            self.rng.choice(
                [
                    f"assert m <= {w} * {self.rng.choice([6, 9, 12, 18])}",
                    f"assert {w} * {s} <= {most} or m > {late}",
                    f"assert {w} * {s} + n <= {self.rng.choice([26, 40, 60])}",
                    f"assert m <= {w} * {s} * {self.rng.choice([6, 9])} or {self.test()}",
                    f"assert {w} <= {other} + {self.rng.choice([4, 12, 20])}",
                    f"assert m <= {other} * 12 + {w}",
                ]
            )
        )

    def result(self, depth: int = 1) -> None:
        """A `return`."""
        names = [*self.kinds]
        a, b = self.rng.choice(names), self.rng.choice(names)
        tiles = [r for r, kind in self.kinds.items() if kind == "Tile"]
        ways = [f'{{"down": {a}, "up": {b}}}'] * 3 + [f'{{"down": {a}, "w": {self.read(b, "w")}}}']
        ways += [
            f'{{"down": {a}, "w": {self.width()}}}',
            f'{{"down": {self.record("Row")}, "up": {b}}}',
        ]
        ways += [f'Out("a", {self.rng.choice(tiles)})'] * 3 if tiles else []
        ways += [a] if self.kinds[a] != "list" else []
        self.put(f"return {self.rng.choice(ways)}", depth)


def program(seed: int) -> tuple[str, str]:
    """The source and the facts of a selection."""
    rng = random.Random(seed)
    out = Writer(rng)
    for _ in range(rng.randrange(3)):
        new = out.name("x")
        out.put(f"{new} = {out.width()}")
        out.scalars.append(new)
    for _ in range(rng.choice([1, 2, 2, 3])):
        out.define()
        if rng.random() < 0.5:
            out.guard()
        if rng.random() < 0.4:
            out.change()
    if rng.random() < 0.15:
        out.put(f"if {out.test()}:")
        if rng.random() < 0.5:
            r = rng.choice([*out.kinds])
            out.put(f"assert m <= {out.read(r, 'w')} * 12", 2)
        out.result(2)
    out.guard()
    out.result()
    post = POST.format(most=rng.choice([24, 40, 60])) if rng.random() < 0.3 else ""
    source = HEAD.format(post=post) + "def choose(m, n):\n" + "\n".join(out.lines) + "\n"
    ends = [line for line in out.lines if line.lstrip().startswith("return")]
    roles = ['{"*": bits}']
    if "list" not in out.kinds.values():  # each field is a point: a whole record would be one
        roles += ['{"*": bits, "down.w": neutral}'] if all('"down"' in e for e in ends) else []
        roles += ['{"*": neutral, "up.w": bits}'] if all('"up"' in e for e in ends) else []
    returns = rng.choice(roles)
    return source, FACTS.format(returns=returns)
