"""Lift a function of a small package, and compare its graph with the package run by CPython."""

from __future__ import annotations

import importlib
import itertools
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from types import FunctionType
from typing import Any

from selc.diag.diagnostic import Refused, Sink
from selc.frontend.facts import load_facts
from selc.frontend.lower import lower
from selc.ir.interp import run_program
from selc.ir.program import Program
from selc.ir.value import Symbol


def write(folder: Path, files: dict[str, str]) -> None:
    """Write a package `pkg`."""
    for name, text in {"__init__.py": "", **files}.items():
        path = folder / "pkg" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))


def lift(folder: Path, target: str, facts: str) -> Program:
    """The program of `target` under `facts` (YAML)."""
    path = folder / "facts.yaml"
    path.write_text(textwrap.dedent(facts))
    sink = Sink()
    loaded = load_facts([path], sink)
    assert not sink.items, sink.items
    return lower(target, loaded, [folder], sink)


def refusal(folder: Path, target: str, facts: str) -> str:
    """The first message that says why `target` is refused."""
    try:
        lift(folder, target, facts)
    except Refused as refused:
        return f"{refused.diagnostics[0].code} {refused.diagnostics[0].message}"
    raise AssertionError("it was lifted")


@contextmanager
def imported(folder: Path) -> Iterator[None]:
    """The package importable."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in [n for n in sys.modules if n == "pkg" or n.startswith("pkg.")]:
            del sys.modules[name]


def shown(value: Any) -> Any:
    """A value with its type; Enum members by name."""
    if isinstance(value, Enum):
        return ("symbol", f"{type(value).__name__}.{value.name}")
    if isinstance(value, Symbol):
        return ("symbol", value.name)
    if isinstance(value, (type, FunctionType)):
        return ("symbol", value.__qualname__)
    if isinstance(value, (tuple, list)):
        return tuple(shown(v) for v in value)
    return (type(value).__name__, value)


def agree(
    folder: Path, program: Program, target: str, arguments: Mapping[str, Sequence[Any]]
) -> int:
    """Compare the `result` on every combination of arguments; how many returned.

    An argument that is an Enum member is given to the graph as its symbol.
    """
    module, _, name = target.rpartition(":")
    returned = 0
    with imported(folder):
        function: Any = importlib.import_module(module)
        for part in name.split("."):
            function = getattr(function, part)
        for values in itertools.product(*arguments.values()):
            call = dict(zip(arguments, values, strict=True))
            given = {
                k: _symbol(program, k, v) for k, v in call.items() if k in program.graph.inputs
            }
            got = run_program(program, given)
            try:
                want = function(**{k: _member(v) for k, v in call.items()})
            except Exception:  # noqa: BLE001  # whatever the program raises
                assert not got.returned, (call, got)
                continue
            assert got.returned, (call, got.guard)
            assert shown(got.points["result"]) == shown(want), (call, got.points, want)
            returned += 1
    return returned


def _symbol(program: Program, name: str, value: Any) -> Any:
    if isinstance(value, str):
        for known in program.graph.inputs[name].domain.values or ():
            if isinstance(known, Symbol) and known.name == value.rpartition(":")[2]:
                return known
    return value


def _member(value: Any) -> Any:
    """`pkg.mod:Class.MEMBER` as the member."""
    if isinstance(value, str) and value.startswith("pkg."):
        module, _, rest = value.partition(":")
        found: Any = importlib.import_module(module)
        for part in rest.split("."):
            found = getattr(found, part)
        return found
    return value
