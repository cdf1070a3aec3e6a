"""The oracle of functions that end in launches: cases, runs, and the points of a run.

Which calls are launches CPython tells: all that it cannot run. The few that are none stand,
function by function, in `data/quiet_calls.yaml`.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from selc.ir.program import Program
from tests.engines.oracle import (
    FAULTS,
    Bare,
    Case,
    Execution,
    Inputs,
    Unplaced,
    plain,
    put,
    thawed,
)
from tests.engines.overwrite import Overwriter, parse_pin
from tests.engines.recording import Recorder
from tests.engines.stubs import Device, Dtype, Record, Stub, Tensor
from tests.engines.tensors import Sheet, Value

QUIET = Path(__file__).parent / "data" / "quiet_calls.yaml"


class Anything(str):
    """What stands for an argument that is no choice: equal to any name that a graph has for one."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and other.startswith("<tensor")

    __ne__ = object.__ne__
    __hash__ = str.__hash__


Anything.__name__ = "str"
TENSOR = Anything("<tensor>")


@cache
def quiet_calls() -> dict[str, list[str]]:
    """Facts file -> calls of libraries in its function that launch nothing."""
    listed = yaml.safe_load(QUIET.read_text(encoding="utf-8"))
    return {stem: list(calls) for stem, calls in listed.items()}


class LaunchCase(Case):
    """A facts file whose function ends in launches."""

    def build(
        self, program: Program | None = None, pins: Mapping[str, Any] | None = None
    ) -> Execution:
        overwriter = Overwriter()
        placed = []
        for name, value in (pins or {}).items():
            assert program is not None
            pin = parse_pin(name, program.sites[name].kind, thawed(value))
            if pin is None:
                raise Unplaced(name)
            overwriter.add(pin)
            placed.append(pin)
        quiet = frozenset(quiet_calls().get(self.path.stem, ()))
        return LaunchExecution(self, Recorder(self, overwriter, quiet), placed)


def case_of(path: Path, corpus: Path, program: Program) -> Case:
    """The case of a facts file; what is launched is recorded where the program has such points."""
    recorded = any(p.name == "call" or p.name.startswith("self.") for p in program.points)
    return LaunchCase(path, corpus) if recorded else Case(path, corpus)


class LaunchExecution(Execution):
    """The function of a case, its launches recorded."""

    def points(self, inputs: Inputs, names: list[str]) -> dict[str, Any] | None:
        self.engine.begin(inputs)
        arguments = self.arguments(inputs)
        before = {
            k: dict(vars(v))
            for k, v in arguments.items()
            if hasattr(v, "__dict__") and not isinstance(v, (Stub, Tensor))
        }
        try:
            result = self.call(**arguments)
        except FAULTS:
            return None
        found = dict(passed(self.engine.launches))
        for owner, attributes in before.items():
            for name, value in vars(arguments[owner]).items():
                if name not in attributes or attributes[name] is not value:
                    found.update(choices(f"{owner}.{name}", value))
        found.update(results("", result))
        extra = {k: v for k, v in found.items() if k not in names and v != TENSOR}
        if extra:
            raise AssertionError(f"CPython passes {extra}, which are no points ({names})")
        out = {n: found.get(n) for n in names}
        scope = {**self.case.names(inputs), "result": out}
        return (
            out if all(eval(t, {}, scope) for t in self.case.selection.get("require", [])) else None
        )

    def argument(self, name: str, inputs: Inputs) -> Any:
        declared = [
            k
            for section in ("tensors", "inputs", "objects")
            for k in self.case.doc.get(section) or {}
        ]
        stated = self.case.facts.get(name)
        if (
            name != "self"
            and any(k.startswith(name + ".") for k in declared)
            and name not in (self.case.doc.get("objects") or {})
        ):
            return self.implied(name, stated if isinstance(stated, Mapping) else {}, inputs)
        return super().argument(name, inputs)

    def implied(self, path: str, attrs: Mapping[str, Any], inputs: Inputs) -> Any:
        """An object that is declared only by its parts."""
        return self.instance(Bare, attrs, path, inputs)

    def instance(self, cls: type, attrs: Mapping[str, Any], path: str, inputs: Inputs) -> Any:
        if cls is Device:
            return Device(attrs["type"], attrs.get("index"))
        out = super().instance(cls, attrs, path, inputs)
        for section in ("tensors", "inputs", "objects"):
            for name in self.case.doc.get(section) or {}:
                if name.startswith(path + ".") and "." in name[len(path) + 1 :]:
                    inner = name[len(path) + 1 :].split(".")[0]
                    if not hasattr(out, inner):
                        put(out, inner, self.implied(f"{path}.{inner}", {}, inputs))
        return out

    def class_of(self, name: str | None) -> type:
        return Device if name == "torch:device" else super().class_of(name)

    def tensor(self, stated: Mapping[str, Any], inputs: Inputs) -> Tensor:
        made = super().tensor(stated, inputs)
        return Sheet(
            tuple(made.shape),
            made.dtype,
            str(made.device),
            made._strides if stated.get("strides") else None,
        )


def passed(recorded: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """The points of a run: the callees in order, and what each launch got."""
    out: dict[str, Any] = {}
    if recorded:
        out["call"] = " + ".join(text for text, _ in recorded)
    counts: dict[str, int] = {}
    for text, kwargs in recorded:
        counts[text] = n = counts.get(text, 0) + 1
        name = text if n == 1 else f"{text}#{n}"
        for key, value in kwargs.items():
            out.update(choices(f"{name}{key}" if key.startswith("[") else f"{name}.{key}", value))
    return out


def results(name: str, value: Any) -> dict[str, Any]:
    """The choices among what the function returns."""
    if value is None or isinstance(value, (Value, Tensor, Device)):
        return {}
    if isinstance(value, dict):
        return {
            k: v
            for key, inner in value.items()
            for k, v in results(f"{name}.{key}" if name else str(key), inner).items()
        }
    if isinstance(value, (tuple, list)):
        fields = getattr(value, "_fields", None)
        names = (
            [f"{name}.{f}" if name else f for f in fields]
            if fields
            else [f"{name}[{i}]" for i in range(len(value))]
        )
        return {
            k: v
            for part, inner in zip(names, value, strict=True)
            for k, v in results(part, inner).items()
        }
    return {name or "result": scalar(value)}


def choices(name: str, value: Any) -> dict[str, Any]:
    """An argument as points: dicts made by the function have one for each entry."""
    if isinstance(value, dict) and not isinstance(value, Record):
        return {
            k: v for key, inner in value.items() for k, v in choices(f"{name}.{key}", inner).items()
        }
    return {name: scalar(value)}


def scalar(value: Any) -> Any:
    """An argument as a graph holds it."""
    if isinstance(value, (tuple, list)):
        inner = tuple(scalar(v) for v in value)
        return inner if not inner or any(v != TENSOR for v in inner) else TENSOR
    if isinstance(value, (Value, Tensor, Device, Bare, Record)):
        return TENSOR
    if isinstance(value, Stub):
        return value._name
    if inspect.isroutine(value) or isinstance(value, type):
        return value.__qualname__
    return (
        plain(value)
        if value is None or isinstance(value, (bool, int, float, str, Dtype, Enum))
        else TENSOR
    )
