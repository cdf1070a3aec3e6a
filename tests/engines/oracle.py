"""A facts file of this folder as an oracle: the function it names, executed by CPython.

The function and everything that its package defines run from their own text. What stands in for the
rest comes from the same facts file that the compiler gets.
"""

from __future__ import annotations

import ast
import dataclasses
import itertools
import random
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cached_property
from pathlib import Path
from types import FunctionType
from typing import Any

import yaml

from selc.ir.interp import run_program
from selc.ir.op import Op
from selc.ir.program import Program
from selc.ir.value import Symbol
from tests.engines.engine import Engine, Prepared, bindings
from tests.engines.overwrite import Overwriter, parse_pin
from tests.engines.stubs import (
    DTYPES,
    Array,
    Dtype,
    Member,
    Number,
    Numbers,
    Record,
    Stub,
    Tensor,
    Unstated,
    value_of,
)

FAULTS = (
    AssertionError, ValueError, TypeError, ArithmeticError, LookupError, StopIteration,
    RuntimeError,
    AttributeError, UnboundLocalError,
)  # fmt: skip
Inputs = Mapping[str, Any]


class Unplaced(Exception):
    """A pin whose site the oracle does not find."""


class Case:
    """One facts file."""

    def __init__(self, path: Path, corpus: Path) -> None:
        self.path = path
        self.corpus = corpus
        self.doc: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
        self.selection = self.doc["selection"]
        self.module, _, self.function = self.selection["function"].rpartition(":")
        self.facts = expanded(self.doc.get("facts") or {})
        self.inputs: dict[str, Any] = dict(self.doc.get("inputs") or {})
        self.prepared: Prepared = {}
        for name, fact in (self.doc.get("functions") or {}).items():
            if isinstance(fact, Mapping) and "kind" in fact:
                self.inputs[f"{name}()"] = fact

    # -- inputs ---------------------------------------------------------------------------------

    def draw(self, name: str, rng: random.Random) -> Any:
        """A random value of an input."""
        spec = self.inputs[name]
        if "values" in spec:
            return value_of(rng.choice(spec["values"]))
        if "length" in spec:
            low, high = spec["length"]
            a, b = spec["element"]["range"]
            most = min(b, a + rng.randrange(1 << rng.randint(0, (b - a + 1).bit_length())))
            count = min(high, low + rng.randrange(1 << rng.randint(0, 7)))
            return tuple(
                rng.randint(a, most) for _ in range(count if rng.random() < 0.99 else high)
            )
        if "range" not in spec:
            return rng.choice([False, True])
        low, high = spec["range"]
        step: int = spec.get("multiple_of", 1)
        first, last = -(-low // step), high // step
        if rng.random() < 0.5:
            return step * rng.randint(first, last)
        return step * min(
            last, first + rng.randrange(1 << rng.randint(0, (last - first + 1).bit_length()))
        )

    def holds(self, name: str, value: Any) -> bool:
        """Whether a value is in an input's domain."""
        spec = self.inputs[name]
        if "range" not in spec:
            return False
        low, high = spec["range"]
        return (
            type(value) is int and low <= value <= high and value % spec.get("multiple_of", 1) == 0
        )

    def admitted(self, inputs: Inputs) -> bool:
        """Whether every `assume` of the facts file holds."""
        if not self.selection.get("assume"):
            return True
        engine = self.plain
        scope = Scope(
            engine, self.names({k: value_of(v, engine.member) for k, v in inputs.items()})
        )
        return all(eval(a, {}, scope) for a in self.selection["assume"])

    @cached_property
    def plain(self) -> Engine:
        """The function's engine without pins, for what facts say of its module."""
        return self.engine(Overwriter())

    def names(self, inputs: Inputs) -> dict[str, Any]:
        """Facts and inputs as the facts file's expressions see them; dotted ones are attributes."""
        out = dict(self.stated)
        for root in {n.split(".")[0] for n in inputs if "." in n} & out.keys():
            out[root] = value_of(self.facts[root])  # afresh, for it gets attributes
        for name, value in inputs.items():
            *path, last = name.split(".")
            here = out
            for part in path if all(p.isidentifier() for p in [*path, last]) else ():
                here = here.setdefault(part, Record())
            here[last if here is not out else name] = value
        return out

    @cached_property
    def stated(self) -> dict[str, Any]:
        """The facts' values; shared, never changed."""
        return {k: value_of(v) for k, v in self.facts.items()}

    def samples(self, program: Program, count: int, rng: random.Random) -> list[dict[str, Any]]:
        """Boundary inputs first, then random ones; each once, all admitted."""
        if not self.inputs:
            return [{}]
        out: dict[str, dict[str, Any]] = {}
        edges = [
            {**{n: self.draw(n, rng) for n in self.inputs}, name: value}
            for name, values in self.boundaries(program).items()
            for value in values
            for _ in range(1 if len(self.inputs) == 1 else 3)
        ]
        rng.shuffle(edges)
        tries = 20 * count
        drawn = ({n: self.draw(n, rng) for n in self.inputs} for _ in range(tries))
        for inputs in itertools.chain(edges[:count], drawn):
            if len(out) >= count + min(count, len(edges)):
                break
            if self.admitted(inputs):
                out.setdefault(repr(sorted(inputs.items())), inputs)
        return list(out.values())

    def boundaries(self, program: Program) -> dict[str, list[Any]]:
        """Per integer input: the values around which something may change.

        These are the constants that the graph compares with, the values at which a comparison
        changes side, the neighbours of both, and the ends of the range.
        """
        from selc.vra.thresholds import thresholds

        constants = {
            a.attr
            for n in program.graph.nodes
            if n.op in (Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE, Op.MIN2, Op.MAX2)
            for a in n.args
            if a.is_const and type(a.attr) is int
        }
        changes = thresholds(program, 2048) if program.graph.inputs else {}
        out: dict[str, list[Any]] = {}
        for name, spec in self.inputs.items():
            if "range" not in spec:
                continue
            step = spec.get("multiple_of", 1)
            seen = {
                *spec["range"],
                *constants,
                *(v for v in changes.get(name, ()) if type(v) is int),
            }
            near = {v + d for v in seen for d in (-step, -1, 0, 1, step)}
            out[name] = sorted(v for v in near if self.holds(name, v))
        return out

    # -- running --------------------------------------------------------------------------------

    def build(
        self, program: Program | None = None, pins: Mapping[str, Any] | None = None
    ) -> Execution:
        """The function with the values of some sites overwritten.

        Raises:
            Unplaced: a pin's site is not found in the text.
        """
        overwriter = Overwriter()
        placed = []
        for name, value in (pins or {}).items():
            assert program is not None
            pin = parse_pin(name, program.sites[name].kind, thawed(value))
            if pin is None:
                raise Unplaced(name)
            overwriter.add(pin)
            placed.append(pin)
        return Execution(self, self.engine(overwriter), placed)

    def engine(self, overwriter: Overwriter) -> Engine:
        """The function's engine with pins."""
        return Engine(self.corpus, self.doc, self.module, self.function, overwriter, self.prepared)


class Scope(dict[str, Any]):
    """Names of an expression in a facts file: its own, then those of the function's module."""

    def __init__(self, engine: Engine, names: Mapping[str, Any]) -> None:
        super().__init__(names)
        self.module = engine.module(engine.entry)

    def __missing__(self, name: str) -> Any:
        return self.module._names[name]


class Execution:
    """The function of a case, ready to be called."""

    def __init__(self, case: Case, engine: Engine, pins: list[Any]) -> None:
        self.case = case
        self.engine = engine
        self.pins = pins
        module = engine.module(case.module)
        head, *rest = case.function.split(".")
        found = module._names[head]
        self.owner = found if rest else None
        for part in rest:
            found = vars(found).get(part) or getattr(found, part)
        if isinstance(found, (staticmethod, property, classmethod)):
            self.static = isinstance(found, staticmethod)
            found = found.fget if isinstance(found, property) else found.__func__
        self.call = found
        self.spec = parameters(bindings(module._path)[head][-1], rest)

    def points(self, inputs: Inputs, names: list[str]) -> dict[str, Any] | None:
        """Every point's value, or None if the function does not return or a `require` fails.

        Raises:
            Unplaced: a pin's site was never met in the text that ran.
        """
        self.engine.begin(inputs)
        arguments = self.arguments(inputs)
        result = None
        try:
            result = self.call(**arguments)
            tests = self.case.selection.get("require", [])
            good = all(eval(t, {}, {**self.case.names(inputs), "result": result}) for t in tests)
        except FAULTS:
            good = False
        if not good:
            return None
        found = dict(leaves(result, "", frozenset(names)))
        extra = [k for k in found if k not in names and not (k == "result" and found[k] is None)]
        if extra:
            raise AssertionError(f"the function returns {extra}, which are no points ({names})")
        return {n: found.get(n) for n in names}

    def unplaced(self) -> list[str]:
        """Pins that no text that ran so far holds."""
        return [pin.name for pin in self.pins if not pin.placed]

    def arguments(self, inputs: Inputs) -> dict[str, Any]:
        """The keyword arguments of one call, made afresh."""
        case, out = self.case, {}
        for name in self.spec:
            value = self.argument(name, inputs)
            if value is not self:
                out[name] = value
        for name, value in inputs.items():
            owner, _, field = name.rpartition(".")
            if owner and owner.split(".")[0] in out and not name.endswith("()"):
                target = out[owner.split(".")[0]]
                for part in owner.split(".")[1:]:
                    target = getattr(target, part)
                listed = "length" in case.inputs.get(name, {})
                put(
                    target, field, Numbers(value) if listed else value_of(value, self.engine.member)
                )
        assert case is self.case
        return out

    def argument(self, name: str, inputs: Inputs) -> Any:
        """One argument; the execution itself where the source's default holds."""
        case, doc = self.case, self.case.doc
        if name in inputs:
            array = "ndarray" in self.spec[name] or "Tensor" in self.spec[name]
            given = value_of(inputs[name], self.engine.member)
            return Array(given) if array and isinstance(given, tuple) else given
        if name in (doc.get("tensors") or {}):
            return self.tensor(doc["tensors"][name], inputs)
        if (
            name == "self"
            and self.owner is not None
            and not isinstance(case.facts.get("self"), str)
        ):
            return self.instance(self.owner, case.facts.get("self") or {}, "self", inputs)
        if name == "cls":
            return self.owner
        if name in (doc.get("objects") or {}):
            stated = doc["objects"][name]
            return self.instance(
                self.class_of(stated.get("class")), stated.get("attrs") or {}, name, inputs
            )
        knob = (doc.get("knobs") or {}).get(name)
        if knob is not None:
            return value_of(knob["fixed"] if isinstance(knob, Mapping) else knob)
        for section in (case.facts, doc.get("tables") or {}):
            if name in section:
                return value_of(section[name], self.engine.member)
        return self

    def tensor(self, stated: Mapping[str, Any], inputs: Inputs) -> Tensor:
        """A tensor of the shape that the facts give for these inputs."""
        names = self.case.names(inputs)

        def sizes(listed: list[Any] | None) -> tuple[int, ...] | None:
            return None if listed is None else tuple(eval(str(s), {}, names) for s in listed)

        shape = sizes(stated["shape"])
        assert shape is not None
        dtype = DTYPES[str(stated["dtype"]).removeprefix("torch.")]
        return Tensor(shape, dtype, stated.get("device"), sizes(stated.get("strides")))

    def class_of(self, name: str | None) -> type:
        """A class of the engine by `module:Class`."""
        if name is None:
            return Bare
        module, _, cls = name.rpartition(":")
        found = self.engine.module(module or self.case.module)._names[cls]
        assert isinstance(found, type)
        return found

    def instance(self, cls: type, attrs: Mapping[str, Any], path: str, inputs: Inputs) -> Any:
        """An object with stated attributes; those of deeper `objects:` and `tensors:` as well."""
        out: Any = object.__new__(cls)
        for name, value in expanded(attrs).items():
            put(out, name, value_of(value, self.engine.member))
        for section in ("objects", "tensors"):
            for name, stated in (self.case.doc.get(section) or {}).items():
                if name.startswith(path + ".") and "." not in name[len(path) + 1 :]:
                    field = name[len(path) + 1 :]
                    if section == "tensors":
                        put(out, field, self.tensor(stated, inputs))
                    else:
                        inner = self.class_of(stated.get("class"))
                        put(
                            out,
                            field,
                            self.instance(inner, stated.get("attrs") or {}, name, inputs),
                        )
        return out


class Bare:
    """An object of which only attributes are stated."""


def put(target: Any, name: str, value: Any) -> None:
    """Set an attribute of an object or record."""
    if isinstance(target, dict):
        target[name] = value
    elif hasattr(target, "__dict__"):
        target.__dict__[name] = value
    else:
        object.__setattr__(target, name, value)


def parameters(statement: ast.stmt, path: list[str]) -> dict[str, str]:
    """The parameters of a function or method, with their annotations."""
    for part in path:
        assert isinstance(statement, ast.ClassDef)
        statement = next(
            s
            for s in statement.body
            if isinstance(s, (ast.FunctionDef, ast.ClassDef)) and s.name == part
        )
    node = next(n for n in ast.walk(statement) if isinstance(n, ast.FunctionDef))
    spec = node.args
    every = (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)
    return {a.arg: ast.unparse(a.annotation) if a.annotation else "" for a in every}


def expanded(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted keys as nested mappings."""
    out: dict[str, Any] = {}
    for key, value in facts.items():
        here, parts = out, str(key).split(".")
        for part in parts[:-1]:
            here = here.setdefault(part, {})
        if isinstance(value, Mapping) and isinstance(here.get(parts[-1]), dict):
            here[parts[-1]].update(value)
        else:
            here[parts[-1]] = dict(value) if isinstance(value, Mapping) else value
    return out


# -- results -----------------------------------------------------------------------------------


def leaves(value: Any, name: str, whole: frozenset[str]) -> Iterator[tuple[str, Any]]:
    """Every field of a result, by its point's name."""
    here = name or "result"
    if here in whole or is_leaf(value):
        yield here, plain(value)
        return
    if isinstance(value, dict):
        parts = [(joined(name, str(k)), v) for k, v in value.items()]
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        parts = [(joined(name, f), getattr(value, f)) for f in value._fields]
    elif isinstance(value, (tuple, list)):
        parts = [(f"{name}[{i}]", v) for i, v in enumerate(value)]
    elif dataclasses.is_dataclass(value):
        parts = [(joined(name, f.name), getattr(value, f.name)) for f in dataclasses.fields(value)]
    else:
        parts = [(joined(name, k), v) for k, v in vars(value).items()]
    for inner, part in parts:
        yield from leaves(part, inner, whole)


def joined(prefix: str, name: str) -> str:
    """A field's name."""
    return f"{prefix}.{name}" if prefix else name


def is_leaf(value: Any) -> bool:
    """Whether a value is a scalar of the graph."""
    return value is None or isinstance(
        value, (bool, int, float, str, Dtype, Enum, Stub, type, FunctionType)
    )


def plain(value: Any) -> Any:
    """A value as graphs hold it."""
    if isinstance(value, Enum):
        return ("member", f"{type(value).__name__}.{value.name}")
    if isinstance(value, Number):
        return int(value)
    if isinstance(value, (type, FunctionType)):
        return ("member", value.__qualname__)
    if isinstance(value, Dtype):
        return ("member", value.name)
    if isinstance(value, Symbol):
        return ("member", value.name)
    if isinstance(value, (tuple, list)):
        return tuple(plain(v) for v in value)
    if isinstance(value, Stub):
        raise Unstated(f"{value!r} is returned")
    return value


def thawed(value: Any) -> Any:
    """A value of a graph as the program gets it."""
    if isinstance(value, Symbol) and value.kind == "dtype":
        return DTYPES[value.name.removeprefix("torch.")]
    if isinstance(value, Symbol):
        if not value.kind.startswith("enum:"):
            raise Unplaced(value.name)
        return Member(value.kind.removeprefix("enum:"), value.name.rpartition(".")[2])
    return tuple(thawed(v) for v in value) if isinstance(value, tuple) else value


def frozen(value: Any) -> Any:
    """A form that is equal exactly for values of equal type."""
    if isinstance(value, tuple):
        return ("tuple", *(frozen(v) for v in value))
    return (type(value).__name__, repr(value) if isinstance(value, float) else value)


# -- agreement ---------------------------------------------------------------------------------


@dataclasses.dataclass(slots=True)
class Tally:
    """What was compared."""

    unpinned: int = 0
    returned: int = 0
    pinned: int = 0
    pin_sets: int = 0
    unplaced: list[str] = dataclasses.field(default_factory=list)
    stubbed: dict[str, str] = dataclasses.field(default_factory=dict)
    silent: set[str] = dataclasses.field(default_factory=set)


def agree(
    case: Case, program: Program, want: dict[str, Any] | None, inputs: Inputs, pins: Inputs
) -> bool:
    """Compare one run; whether the function returned.

    Raises:
        AssertionError: CPython and the graph differ.
    """
    given = graph_inputs(program, inputs)
    got = run_program(program, given, pins)
    shown = f"{case.path.name}: inputs {dict(inputs)}, pins {dict(pins)}"
    if (want is not None) != got.returned:
        stopped = (
            f"{got.guard.text!r} at line {got.guard.span.line} fails" if got.guard else "returns"
        )
        raise AssertionError(
            f"{shown}: CPython {'returns' if want is not None else 'raises'}, the graph: {stopped}"
        )
    for name, value in (want or {}).items():
        if frozen(value) != frozen(plain(got.points[name])):
            raise AssertionError(
                f"{shown}: {name} is {value!r}, the graph has {got.points[name]!r}"
            )
    return got.returned


def graph_inputs(program: Program, inputs: Inputs) -> dict[str, Any]:
    """The leaves of the graph; a sequence is known by what may be asked of it."""
    members = {
        (name, v.name): v
        for name, leaf in program.graph.inputs.items()
        for v in leaf.domain.values or ()
        if isinstance(v, Symbol)
    }
    out: dict[str, Any] = {}
    for name, value in inputs.items():
        out[name] = value
        if isinstance(value, tuple) and value and all(type(v) is int for v in value):
            for ask in (min, max, sum, len, any, all):
                out[f"{ask.__name__}({name})"] = ask(value)
        if isinstance(value, Dtype):
            out[name] = Symbol("dtype", value.name, value.itemsize)
        if isinstance(value, str):
            out[name] = members.get((name, ".".join(value.split(".")[-2:])), value)
    return {k: v for k, v in out.items() if k in program.graph.inputs}


def compare(case: Case, program: Program, count: int, pin_sets: int, seed: int) -> Tally:
    """Check the graph against CPython, unpinned and with random pins."""
    rng = random.Random(seed)
    tally = Tally()
    names = [p.name for p in program.points]
    samples = case.samples(program, count, rng)
    function = case.build()
    for inputs in samples:
        tally.unpinned += 1
        tally.returned += agree(case, program, function.points(inputs, names), inputs, {})
    tally.stubbed = function.engine.asked.stubbed_helpers()
    tally.silent = set(getattr(function.engine, "silent", ()))
    seen = values_of_sites(case, program, samples, rng)
    for _ in range(pin_sets if seen else 0):
        chosen = rng.sample(sorted(seen), min(len(seen), rng.choice([1, 1, 2, 3])))
        pins = {name: rng.choice(seen[name]) for name in chosen}
        try:
            function = case.build(program, pins)
        except Unplaced as unplaced:
            tally.unplaced.append(str(unplaced))
            continue
        few = rng.sample(samples, min(len(samples), 40))
        wanted = [(inputs, function.points(inputs, names)) for inputs in few]
        missed = function.unplaced()
        if missed:
            tally.unplaced += missed
            continue
        tally.pin_sets += 1
        for inputs, want in wanted:
            agree(case, program, want, inputs, pins)
            tally.pinned += 1
    return tally


def values_of_sites(
    case: Case, program: Program, samples: list[dict[str, Any]], rng: random.Random
) -> dict[str, list[Any]]:
    """The values that sites take in the unpinned program."""
    out: dict[str, dict[Any, Any]] = {}
    for inputs in rng.sample(samples, min(len(samples), 60)):
        given = graph_inputs(program, inputs)
        for name, value in run_program(program, given).sites.items():
            out.setdefault(name, {})[frozen(plain(value))] = value
    return {name: list(values.values()) for name, values in out.items()}
