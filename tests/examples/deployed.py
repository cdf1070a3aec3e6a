"""A family of the examples at a deployment: compiled, and run by CPython with sites overwritten."""

from __future__ import annotations

import ast
import inspect
import random
import sys
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any

from selc.diag.diagnostic import Sink
from selc.driver.pipeline import Clock, Decided, Plan, decide
from selc.frontend.facts import load_facts
from selc.ir.interp import run
from selc.lang import AssumeError, knobs
from tests.engines.overwrite import Overwriter, parse_pin
from tests.sel_case import flatten

ROOT = Path(__file__).resolve().parents[2]
FAMILIES = {"moe": "moe", "all_reduce": "all_reduce", "gemm": "gemm", "cutlass_fp8": "cutlass_fp8"}
Row = Mapping[str, Any]


class Unplaced(Exception):
    """A site that cannot be overwritten in the source from here."""


class Deployed:
    """One example, compiled for some layers of facts (and, for small domains, one file more)."""

    def __init__(self, family: str, layers: tuple[str, ...], more: Path | None = None) -> None:
        self.name = FAMILIES[family]
        self.path = ROOT / "examples" / f"{family}.py"
        paths = [ROOT / "examples/facts" / f"{layer}.yaml" for layer in layers]
        self.files = tuple(paths + ([more] if more is not None else []))
        self.facts = load_facts(self.files, Sink())

    def decide(self, skip: frozenset[str] = frozenset()) -> Decided:
        """What the compiler finds out."""
        return decide(Plan(str(self.path), self.files, (), skip=skip), None, Sink(), Clock())

    def rows(self, decided: Decided, count: int, seed: int = 0) -> list[dict[str, Any]]:
        """Batches and knobs: corners, small ones, and random ones."""
        draw = random.Random(seed)
        inputs = decided.program.graph.inputs
        sides = {n: i.domain for n, i in inputs.items()}
        ends = [{n: d[0] for n, d in sides.items()}, {n: d[len(d) - 1] for n, d in sides.items()}]
        return ends + [
            {n: d[draw.randrange(min(len(d), 200) if k % 2 else len(d))] for n, d in sides.items()}
            for k in range(count)
        ]

    def cpython(self, decided: Decided, overwrites: Row) -> Any:
        """The source, run by CPython with sites overwritten; a function from a row to points.

        Raises:
            Unplaced: some site has no place here.
        """
        tree = ast.parse(self.path.read_text(encoding="utf-8"))
        put = Overwriter()
        pins = []
        for name, value in overwrites.items():
            pin = parse_pin(name, decided.program.sites[name].kind, value)
            if pin is None or pin.lines:
                raise Unplaced(name)
            pins.append(pin)
            put.add(pin)
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                put.function(node, node.name)
        if not all(p.placed for p in pins):
            raise Unplaced([p.name for p in pins if not p.placed])
        names: dict[str, Any] = {
            "__name__": f"overwritten_{self.name}",
            "__pinned__": lambda name: name in overwrites,
            "__value__": lambda name: overwrites[name],
            "__second__": lambda _, value: value,
        }
        module = ModuleType(names["__name__"])
        module.__dict__.update(names)
        sys.modules[names["__name__"]] = module
        code = ast.fix_missing_locations(tree)
        exec(compile(code, str(self.path), "exec"), module.__dict__)
        function = module.__dict__[self.name]
        fixed = self._arguments(function, module.__dict__)
        free = {n for n, i in decided.program.graph.inputs.items() if i.kind == "knob"}

        def points(row: Row) -> dict[str, Any] | None:
            batch = module.__dict__["Batch"]
            call = {**fixed, "batch": batch(**{f.name: row[f.name] for f in fields(batch)})}
            try:
                with knobs({k: v for k, v in row.items() if k in free}):
                    return flatten(function(**call))
            except AssumeError:
                raise
            except AssertionError:
                return None

        return points

    def _arguments(self, function: Any, names: Row) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for name in inspect.signature(function).parameters:
            given: Any = {**self.facts.facts, **self.facts.tables}.get(name)
            cls: Any = names.get(str(function.__annotations__[name]))
            if name == "batch":
                continue
            if hasattr(cls, "__dataclass_fields__"):
                known = {f.name for f in fields(cls)}
                out[name] = cls(**{k: v for k, v in (given or {}).items() if k in known})
            elif name in self.facts.facts or name in self.facts.tables:
                out[name] = given
        return out


def residual_points(decided: Decided, setting: Row) -> dict[str, Any] | None:
    """What R gives for inputs and parameters; None if a guard fails in any reading."""
    residual = decided.residual
    nodes = [n for _, n in residual.points]
    guards = [n for g in residual.guards for n in g.readings]
    shown = run(residual.graph, [*nodes, *guards], setting)
    if any(v is not True for v in shown[len(nodes) :]):
        return None
    return {p.name: v for (p, _), v in zip(residual.points, shown, strict=False)}
