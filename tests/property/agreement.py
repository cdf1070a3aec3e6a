"""One random program by every way of running it: do they agree?

CPython on the source is the reference. The interpreter (on G0 and after every pass) and the emitted
selectors are compared on whether the call returns and on every point, in type and bits; the sites
are compared by value, and by what overwriting some of them does.
"""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from selc.driver.arguments import arguments as arguments_of
from selc.ir.interp import Result, run_program
from selc.ir.program import Program
from selc.ir.value import UNDEF, Symbol
from tests import adapters
from tests.property.observe import Observer
from tests.property.programs import Made
from tests.sel_case import equal, flatten, selected, simplified

MAX_INPUTS = 32


class Disagreement(Exception):
    """Two ways of running one program differ."""


@dataclass(slots=True)
class Report:
    """What was compared."""

    calls: int = 0
    returned: int = 0
    sites: int = 0
    unseen_sites: int = 0
    overwritten: int = 0
    counts: Counter[str] = field(default_factory=Counter)


def domain(made: Made, limit: int, rng: random.Random) -> list[dict[str, Any]]:
    """All inputs if they are few, else some."""
    names = [i.name for i in made.inputs]
    every = itertools.product(*[i.values for i in made.inputs])
    rows = [dict(zip(names, row, strict=True)) for row in itertools.islice(every, 4096)]
    return rows if len(rows) <= limit else rng.sample(rows, limit)


def arguments(made: Made, observer: Observer, row: Mapping[str, Any]) -> dict[str, Any]:
    """The call's arguments as the program gets them."""
    out = {}
    for i in made.inputs:
        value = row[i.name]
        if i.type == "mode":
            value = getattr(observer.names["Mode"], str(value).rpartition(".")[2])
        out[i.name] = value
    return {**out, **made.constants}


def inputs(program: Program, row: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs of the graph."""
    out: dict[str, Any] = {}
    for name, declared in program.graph.inputs.items():
        value = eval(name, {}, dict(row)) if name.endswith(")") else row[name]
        domain_ = declared.domain
        for known in domain_.values or ():
            if isinstance(known, Symbol) and known.name == value:
                value = known
        out[name] = value
    return out


def thaw(value: Any, observer: Observer) -> Any:
    """A graph's value as the program would hold it."""
    if isinstance(value, Symbol):
        kind, _, name = value.name.rpartition(".")
        return getattr(observer.names[kind], name)
    return tuple(thaw(v, observer) for v in value) if isinstance(value, tuple) else value


def frozen(value: Any) -> Any:
    """A program's value as a graph would hold it, comparable."""
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, Symbol) or type(value).__name__ == "Symbol":
        return value.name
    if isinstance(value, (tuple, list)):
        return tuple(frozen(v) for v in value)
    return value


def same(a: Any, b: Any) -> bool:
    """Equal in type and bits; Enum members by name. One NaN is like another."""
    if isinstance(a, float) and isinstance(b, float) and a != a:
        return b != b
    return equal(frozen(a), frozen(b))


def points_of(result: Any) -> dict[str, Any]:
    """A result as points."""
    return {k: frozen(v) for k, v in flatten(result).items()}


def field_name(point: str) -> str:
    """A point as the fields of nested records name it."""
    name = re.sub(
        r"[^A-Za-z0-9]+",
        "_",
        point.removeprefix("item_").removeprefix("result_").removeprefix("result["),
    ).strip("_")
    return re.sub(r"^n(?=\d)", "", name)


def merged(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """A field that is a tuple on one path and has parts on another stands twice, once as null."""
    out: dict[str, Any] = {}
    for name, value in pairs:
        if value is not None or name not in out:
            out[name] = value
    return out


def compare(
    who: str, want: Mapping[str, Any] | None, got: Mapping[str, Any] | None, at: object
) -> None:
    """Whether both return, and the same points.

    Raises:
        Disagreement: they differ.
    """
    if want is None or got is None:
        agree = want is got
    else:
        want, got = (merged((field_name(k), v) for k, v in found.items()) for found in (want, got))
        agree = all(same(v, got[k]) if k in got else v is None for k, v in want.items())
        agree = agree and all(k in want or v is None for k, v in got.items())
    if not agree:
        raise Disagreement(f"{who} at {at}: CPython {want}, got {got}")


@dataclass(slots=True)
class Agreement:
    """One program, the same by every way of running it."""

    made: Made
    program: Program
    rng: random.Random
    report: Report = field(default_factory=Report)
    observer: Observer = field(init=False)
    rows: list[dict[str, Any]] = field(init=False)
    wanted: list[dict[str, Any] | None] = field(default_factory=list)
    values: dict[str, list[Any]] = field(default_factory=dict)  # by site, as CPython takes them

    def __post_init__(self) -> None:
        kinds = {name: site.kind for name, site in self.program.sites.items()}
        self.observer = Observer(self.made.text, "choose", kinds)
        self.rows = [r for r in domain(self.made, MAX_INPUTS, self.rng) if self.admitted(r)]

    # -- CPython ----------------------------------------------------------------------------------

    def admitted(self, row: Mapping[str, Any]) -> bool:
        """Whether every `assume` of the facts holds."""
        return self.made.assumed(dict(row))

    def by_cpython(
        self, row: Mapping[str, Any], overwrites: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        """The points; None if the program raises or a `require` of the facts does not hold."""
        names = {**row, **self.made.constants}

        def finish(result: Any) -> dict[str, Any]:
            for text in self.made.facts["selection"].get("require", ()):
                if not eval(text, {}, {**names, "result": result}):
                    raise AssertionError(text)
            return points_of(result)

        given = {k: thaw(v, self.observer) for k, v in overwrites.items()}
        found: dict[str, Any] | None = self.observer.run(
            arguments(self.made, self.observer, row), given, finish
        )
        return found

    # -- comparisons ------------------------------------------------------------------------------

    def interpreters(self) -> None:
        """The interpreter on G0, with its sites, and after every pass.

        Raises:
            Disagreement: it differs from CPython.
        """
        stages = [("lower", self.program), *simplified(self.program)]
        sites = []
        for row in self.rows:
            want = self.by_cpython(row, {})
            self.wanted.append(want)
            self.report.calls += 1
            self.report.returned += want is not None
            seen = dict(self.observer.seen)
            for name, value in seen.items():
                self.values.setdefault(name, []).append(value)
            for name, stage in stages:
                result = run_program(stage, inputs(self.program, row))
                compare(f"the interpreter after {name}", want, graph_points(result), row)
                if name == "lower":
                    met = {k: v for k, v in result.sites.items() if v is not UNDEF}
                    sites.append((row, seen, met, want is not None))
        for row, seen, met, returned in sites:
            for name in self.checkable():
                if name in seen and name not in met and not returned:
                    continue  # a `finally` runs although the program is about to raise
                if (name in seen) != (name in met) or (
                    name in seen and not same(seen[name], met[name])
                ):
                    here, there = seen.get(name, "not reached"), met.get(name, "not reached")
                    raise Disagreement(f"site {name} at {row}: CPython {here}, graph {there}")
        self.report.sites = len(self.program.sites)
        self.report.unseen_sites = self.report.sites - len(self.checkable())

    def checkable(self) -> list[str]:
        """Sites that CPython met under a name that is certain."""
        return sorted(set(self.values) - self.observer.ambiguous())

    def overwrites(self, times: int) -> None:
        """Some sites overwritten by values that they take somewhere, and by others.

        Raises:
            Disagreement: the interpreter differs from CPython.
        """
        names = self.checkable()
        for _ in range(times if names and self.rows else 0):
            row = self.rng.choice(self.rows)
            chosen = self.rng.sample(names, min(len(names), self.rng.choice((1, 1, 2, 3))))
            given = {n: frozen_graph(self.rng.choice(self.values[n])) for n in chosen}
            want = self.by_cpython(row, given)
            result = run_program(self.program, inputs(self.program, row), given)
            compare(f"the interpreter with {given}", want, graph_points(result), row)
            self.report.overwritten += 1

    def selectors(self, folder: Path, native: bool) -> None:
        """The emitted selectors, in which nothing is pinned.

        Raises:
            Disagreement: one differs from CPython.
        """
        declared = self.program.graph.inputs
        knobs = {n for n, i in declared.items() if i.kind == "knob"}
        settings = {n: self.program.settings.get(n, declared[n].domain[0]) for n in knobs}
        for name in ("python", *(["native"] if native else [])):
            module = adapters.emit(self.program, folder / name, native=name == "native")
            for row, want in zip(self.rows, self.wanted, strict=True):
                if any(not same(row[k], settings[k]) for k in knobs):
                    continue
                taken = {a.name for a in arguments_of(self.program)}
                given = {k: v for k, v in row.items() if k in taken}
                for way in (module.select, module.select_unpinned):
                    got = selected(module, way, given)
                    got = None if got is None else {k: frozen(v) for k, v in got.items()}
                    compare(f"{name} {way.__name__}", want, got, row)
            self.report.counts[name] += 1


def graph_points(result: Result) -> dict[str, Any] | None:
    """The points by the interpreter."""
    if not result.returned:
        return None
    parts = (flatten(frozen(x), name).items() for name, x in result.points.items())
    return merged(pair for items in parts for pair in items)


def frozen_graph(value: Any) -> Any:
    """A program's value as a graph holds it."""
    if isinstance(value, Enum):
        kind = type(value).__name__
        return Symbol(f"enum:case.{kind}", f"{kind}.{value.name}")
    return tuple(frozen_graph(v) for v in value) if isinstance(value, (tuple, list)) else value
