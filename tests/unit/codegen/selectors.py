"""Hand-built selectors for the tests of code generation: no front end, no cut, no solver."""

from __future__ import annotations

import importlib.util
import itertools
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from selc.codegen import Argument, Factor, KnobSpec, PinSpec, SelectorSpec, emit
from selc.diag.diagnostic import Sink
from selc.diag.span import NOWHERE, Span
from selc.ir.domain import Domain
from selc.ir.graph import Graph, Node
from selc.ir.op import Op, evaluate
from selc.ir.program import Guard, Point, Program, Site
from selc.ir.residual import Candidates, Pin, Residual, ResidualGuard
from selc.ir.value import UNDEF, Value, same

Leaves = Mapping[str, Node]


def at(line: int, column: int = 1) -> Span:
    return Span("tile.py", line, column, line, column + 4)


class Maker:
    """Collects what a selector needs; `body` builds both graphs from their leaves."""

    def __init__(
        self,
        inputs: Mapping[str, Domain],
        pins: Mapping[str, tuple[Value, ...]] | None = None,
        knobs: Mapping[str, tuple[Value, ...]] | None = None,
        family: str = "tile",
    ) -> None:
        self.inputs = dict(inputs)
        self.pins = dict(pins or {})
        self.knobs = dict(knobs or {})
        self.family = family
        self.points: list[tuple[str, str, Callable[[Graph, Leaves], Node]]] = []
        self.guards: list[tuple[str, str, str, Callable[[Graph, Leaves], Node], str]] = []
        self.arguments: tuple[Argument, ...] | None = None
        self.factors: tuple[Factor, ...] = ()
        self.default: dict[str, Value] | None = None
        self.aggregates: dict[str, Domain] = {}

    def point(self, name: str, make: Callable[[Graph, Leaves], Node], role: str = "bits") -> Maker:
        self.points.append((name, role, make))
        return self

    def guard(
        self,
        text: str,
        make: Callable[[Graph, Leaves], Node],
        kind: str = "require",
        evidence: str = "unknown",
        why: str = "",
    ) -> Maker:
        self.guards.append((kind, text, why, make, evidence))
        return self

    def leaves(self, graph: Graph) -> dict[str, Node]:
        out = {n: graph.input(n, "runtime", d) for n, d in self.inputs.items()}
        out |= {n: graph.input(n, "runtime", d) for n, d in self.aggregates.items()}
        out |= {n: graph.input(n, "pin", Domain(values=v)) for n, v in self.pins.items()}
        return out | {n: graph.input(n, "knob", Domain(values=v)) for n, v in self.knobs.items()}

    def spec(self) -> SelectorSpec:
        graph = Graph()
        leaves = self.leaves(graph)
        points, guards, assumes, evidence = [], [], [], []
        program_guards = []
        for name, role, make in self.points:
            points.append((Point(name, role, make(graph, leaves)), make(graph, leaves)))
        for line, (kind, text, why, make, proof) in enumerate(self.guards, 1):
            node = make(graph, leaves)
            guard = Guard(kind, "facts", text, why, at(line, 5), graph.const(True), node)
            if proof == "unknown":
                program_guards.append(guard)
            if kind == "assume":
                assumes.append((guard, node))
            else:
                guards.append(ResidualGuard(guard, node))
                evidence.append(proof)
        sites = {n: Site(n, "variable", at(9)) for n in self.pins}
        program = Program(
            graph, "tile.py", self.family, self.family, "launch", "tile.py",
            [p for p, _ in points], program_guards, sites,
        )  # fmt: skip
        pins = [Pin(n, sites[n], Candidates(v), parameter=n) for n, v in self.pins.items()]
        residual = Residual(graph, "launch", points, guards, assumes, pins, sorted(self.knobs))
        default = {n: v[0] for n, v in (self.pins | self.knobs).items()}
        arguments = self.arguments or tuple(
            Argument(n, "runtime", d) for n, d in self.inputs.items()
        )
        return SelectorSpec(
            program=program,
            residual=residual,
            arguments=arguments,
            pins=tuple(PinSpec(n, n, "int", v, v, location=at(9)) for n, v in self.pins.items()),
            knobs=tuple(KnobSpec(n, v, v[0]) for n, v in self.knobs.items()),
            evidence=tuple(evidence),
            factors=self.factors,
            default=self.default or default,
            manifest={"format": 1, "selc": "0.1.0", "family": self.family},
            header="selc 0.1.0\ntile.py:tile, input 0123abcd",
        )


def interpret(graph: Graph, env: Mapping[str, Value]) -> list[Value]:
    """Every node's value, by the definition of the operations."""
    out: list[Value] = []
    for node in graph.nodes:
        if node.op is Op.CONST:
            out.append(node.attr)
        elif node.op is Op.INPUT:
            out.append(env[str(node.attr)])
        else:
            out.append(evaluate(node.op, node.attr, tuple(out[a.id] for a in node.args)))
    return out


def expected(spec: SelectorSpec, env: Mapping[str, Value]) -> tuple[Value, ...] | str:
    """The outputs, or the text of the first guard that fails ('undefined' if none speaks)."""
    values = interpret(spec.residual.graph, env)
    for guard, node in spec.residual.assumes:
        if values[node.id] is not True:
            return guard.text
    for item in (spec.residual.guards[i] for i in spec.checked):
        if any(values[n.id] is not True for n in item.readings):
            return item.guard.text
    out = tuple(values[n.id] for _, n in spec.residual.points)
    return "undefined" if any(v is UNDEF for v in out) else out


def write(
    spec: SelectorSpec, folder: Path, native: bool = True, sink: Sink | None = None, **more: Any
) -> Path:
    target = folder / f"sel{len(list(folder.iterdir()))}_{folder.name}".replace("-", "_")
    wanted = frozenset({"native", "python", "header"})
    messages = sink if sink is not None else Sink()
    emit(spec, target, wanted, native, messages, **more)
    if sink is None and native:
        assert not messages.items, [d.message for d in messages]
    return target


_count = itertools.count()


def load(package: Path) -> ModuleType:
    """The emitted package, imported under a name of its own."""
    name = f"emitted_{next(_count)}"
    spec = importlib.util.spec_from_file_location(
        name, package / "__init__.py", submodule_search_locations=[str(package)]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def outcome(module: ModuleType, function: Callable[..., Any], args: Sequence[Value]) -> object:
    """The points of a call, or the text of the guard that refused it."""
    try:
        return tuple(module.points(function(*args)).values())
    except module.SelectionError as error:
        return error.guard or ("undefined" if "defines no choice" in str(error) else str(error))


def agree(a: object, b: object) -> bool:
    """Equal in type and bits; symbols by name."""
    if isinstance(a, str) or isinstance(b, str):
        return type(a) is type(b) and a == b
    assert isinstance(a, tuple)
    assert isinstance(b, tuple)
    return len(a) == len(b) and all(_agree(x, y) for x, y in zip(a, b, strict=True))


def _agree(x: object, y: object) -> bool:
    if type(x).__name__ == type(y).__name__ == "Symbol":
        return repr(x) == repr(y)
    if isinstance(x, tuple) and isinstance(y, tuple):
        return len(x) == len(y) and all(_agree(a, b) for a, b in zip(x, y, strict=True))
    if isinstance(x, float) and isinstance(y, float) and x != x:
        return y != y
    return same(x, y)


def calls(spec: SelectorSpec, limit: int = 3000, seed: int = 1) -> Iterator[tuple[Value, ...]]:
    """All calls of a small domain; the ends and random ones of a large one."""
    domains = [a.domain for a in spec.arguments if a.domain is not None]
    count = 1
    for d in domains:
        count *= len(d)
    if count <= limit:
        yield from itertools.product(*domains)
        return
    ends = [(d[0], d[len(d) - 1]) for d in domains]
    yield from itertools.islice(itertools.product(*ends), limit // 2)
    rng = random.Random(seed)
    for _ in range(limit // 2):
        yield tuple(d[rng.randrange(len(d))] for d in domains)


def compare(spec: SelectorSpec, package: Path, limit: int = 3000) -> int:
    """Native, Python and the interpreter on the same calls; returns how many."""
    module = load(package)
    assert module.NATIVE, module.NATIVE_REASON
    done = 0
    rng = random.Random(7)
    for args in calls(spec, limit):
        if spec.residual.parameters and not spec.factors and rng.random() < 0.3:
            name = rng.choice(spec.residual.parameters)
            module.repin({name: rng.choice(spec.parameter_values(name))})
        names = [a.name for a in spec.arguments]
        assert spec.default is not None
        tuple_now = dict(spec.default) | module.pins()
        want = expected(spec, dict(zip(names, args, strict=True)) | tuple_now)
        native = outcome(module, module.select, args)
        python = outcome(module, module._python_select, args)
        assert agree(native, want), (args, tuple_now, native, want)
        assert agree(python, want), (args, tuple_now, python, want)
        done += 1
    return done


__all__ = ["NOWHERE", "Maker", "agree", "calls", "compare", "expected", "load", "outcome", "write"]
