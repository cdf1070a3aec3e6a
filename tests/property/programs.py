"""Random programs of the supported subset, each with the facts that it needs."""

from __future__ import annotations

import dataclasses
import itertools
import json
import random
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from tests.property.expressions import SCALARS, Expressions, Scope
from tests.property.observe import FAULTS
from tests.property.prelude import needed
from tests.property.statements import Writer

DOMAINS: Final[dict[str, tuple[tuple[Any, ...], ...]]] = {
    "bool": ((False, True), (True, 0, 1)),
    "float": ((0.5, 1.0, -2.25), (0.0, -0.0, 3.0)),
    "str": (("a", "bf16", "x-y"), ("", "fp8")),
    "opt": ((None, 0, 3), (7, None)),
    "tuple": (((1, 2, 3), (4, 0, -1)), ((0, 0, 0), (9, 8, 7), (1, 1, 2))),
    "mode": (("Mode.SLOW", "Mode.FAST"), ("Mode.AUTO", "Mode.SLOW", "Mode.FAST")),
}


STATED: Final[dict[str, Any]] = {
    "sms": 132,
    "tuned": {"table": [[0, 64], [1, 16], [2, 128], [3, 32]]},
}
"""Functions of the prelude whose results the facts state; they do give these."""
ENVIRONMENT: Final = {"SELC_PROPERTY_WIDTH": "6"}
"""The environment as the facts state it; campaigns run in it."""


@dataclass(frozen=True, slots=True)
class Input:
    """One declared input: its kind and its few values."""

    name: str
    kind: str
    type: str
    values: tuple[Any, ...]
    range: tuple[int, int, int] | None = None
    element: tuple[int, int] | None = None  # of a sequence of one or two of these


@dataclass(frozen=True, slots=True)
class Made:
    """One program with its facts."""

    text: str
    facts: dict[str, Any]
    inputs: tuple[Input, ...]
    constants: dict[str, Any]

    @property
    def facts_text(self) -> str:
        """The facts file; JSON is YAML."""
        return json.dumps(self.facts, indent=1) + "\n"

    def assumed(self, row: dict[str, Any]) -> bool:
        """Whether every `assume` of the facts holds."""
        names = {**row, **self.constants}
        return all(eval(a, {}, names) for a in self.facts["selection"].get("assume", ()))


def inputs_of(rng: random.Random) -> list[Input]:
    """A few inputs of several kinds and types; the product of their domains is small."""
    out = [integer(rng, "m", rng.choice(["runtime", "runtime", "unpinnable"]), 12)]
    options: list[Callable[[], Input]] = [
        lambda: integer(rng, "n", "runtime", 5),
        lambda: integer(rng, "r", "request", 4),
        lambda: listed(rng, "flag", "bool"),
        lambda: listed(rng, "ratio", "float"),
        lambda: listed(rng, "text", "str"),
        lambda: listed(rng, "limit", "opt"),
        lambda: listed(rng, "shape", "tuple"),
        lambda: listed(rng, "mode", "mode"),
        lambda: sequence(rng),
        lambda: Input("stride", "knob", "int", rng.choice([(0, 1), (2, 8, 4)])),
    ]
    out.extend(option() for option in rng.sample(options, rng.choice((1, 1, 2, 2, 3))))
    return out


def integer(rng: random.Random, name: str, kind: str, size: int) -> Input:
    """An int input by its range."""
    low, step = rng.choice([(1, 1), (0, 1), (-3, 1), (1, 1), (0, 8), (60, 1)])
    high = low + step * rng.randint(1, size)
    return Input(name, kind, "int", tuple(range(low, high + 1, step)), (low, high, step))


def sequence(rng: random.Random) -> Input:
    """A sequence input: one or two elements."""
    low, high = rng.choice([(0, 2), (1, 3), (0, 3)])
    every = range(low, high + 1)
    values = (*((a,) for a in every), *itertools.product(every, every))
    return Input("lens", "runtime", "seq", values, element=(low, high))


def listed(rng: random.Random, name: str, type_: str) -> Input:
    """An input by its values."""
    return Input(
        name, rng.choice(["runtime", "runtime", "request"]), type_, rng.choice(DOMAINS[type_])
    )


def declaration(given: Input) -> dict[str, Any]:
    """An input as a facts file declares it."""
    if given.range is not None:
        low, high, step = given.range
        out: dict[str, Any] = {"kind": given.kind, "type": "int", "range": [low, high]}
        return {**out, "multiple_of": step} if step > 1 else out
    if given.element is not None:
        return {"kind": given.kind, "length": [1, 2], "element": {"range": list(given.element)}}
    values = [list(v) if isinstance(v, tuple) else v for v in given.values]
    return {"kind": given.kind, "values": values}


def program(rng: random.Random, size: int = 7) -> Made:
    """A random selection `choose` with its facts; one that returns somewhere, if that is easy."""
    written = write(rng, size)
    for _ in range(6):
        made = promised(written, rng)
        if made is not None:
            return made
        written = write(rng, size)
    return written


def write(rng: random.Random, size: int) -> Made:
    """One attempt."""
    inputs = inputs_of(rng)
    x = Expressions(rng, wild=rng.choice((0.0, 0.0, 0.03)))
    writer = Writer(rng, x)
    writer.narrow = rng.random() < 0.8
    writer.returns = rng.choice(
        ["dict"] * 6 + ["tuple", "bare", "nested", "point", "box", "record"]
    )
    scope: Scope = {i.name: i.type for i in inputs} | {"k": "int"}
    scope = writer.block(scope, size)
    if rng.random() < 0.5:
        scope = writer.relation(scope)
    writer.emit(f"return {writer.result(scope)}")
    head = ["    global calls"] if writer.globals else []
    names = ", ".join([i.name for i in inputs] + ["k"])
    body = f"def choose({names}):\n" + "\n".join(head + writer.lines) + "\n"
    enums = "Mode\n" if any(i.type == "mode" for i in inputs) else ""
    text = f"from __future__ import annotations\n\n{needed(body + enums)}\n\n{body}"
    constants = {"k": rng.choice([0, 5, 8])}
    selection: dict[str, Any] = {
        "function": "choose",
        "scope": rng.choice(["launch", "launch", "request"]),
    }
    roles = {}
    if writer.returns == "dict":
        roles = {
            p: rng.choice(["bits", "bits", "neutral", "aux"]) for p in ("first", "second", "third")
        }
        if writer.related:
            roles["first"] = roles["second"] = "bits"
        selection["returns"] = roles
    plain = [i for i in inputs if i.type == "int" and i.kind != "knob"]
    if rng.random() < 0.2 and plain:
        selection["assume"] = [f"{plain[0].name} != {plain[0].values[-1]}"]
    if rng.random() < 0.15 and writer.returns == "dict":
        selection["require"] = [
            f"result['first'] != {rng.choice(['7', '3', 'None'])} or m < {inputs[0].values[-1]}"
        ]
    facts: dict[str, Any] = {
        "selection": selection, "facts": constants,
        "inputs": {i.name: declaration(i) for i in inputs},
    }  # fmt: skip
    stated = {name: fact for name, fact in STATED.items() if f"{name}(" in body}
    if stated:
        facts["functions"] = stated
    if "os.environ" in text:
        facts["env"] = ENVIRONMENT
    return Made(text, facts, tuple(inputs), constants)


def promised(made: Made, rng: random.Random) -> Made | None:
    """With domains on which the program returns, so that its guards speak of pins.

    The few inputs on which it raises are kept out by an `assume`, more by narrower domains; None
    if nothing is left.
    """
    call = running(made)
    if call is None:
        return made
    names = [i.name for i in made.inputs]
    rows = list(itertools.islice(itertools.product(*[i.values for i in made.inputs]), 2000))
    rows = [r for r in rows if made.assumed(dict(zip(names, r, strict=True)))]
    failing = [r for r in rows if not call(dict(zip(names, r, strict=True)))]
    if len(failing) == len(rows):
        return None
    if not failing or rng.random() < (0.6 if "assert" in made.text else 0.05):
        return made  # perhaps only some values of a pin fail
    said = {type(v) for r in failing for v in r} <= {int, bool, str, type(None)}
    if said and len(failing) <= 4 and not any(i.type == "mode" for i in made.inputs):
        texts = []
        for row in failing:
            pairs = zip(names, row, strict=True)
            parts = [f"{n} is None" if v is None else f"{n} == {v!r}" for n, v in pairs]
            texts.append(f"not ({' and '.join(parts)})")
        selection = dict(made.facts["selection"])
        selection["assume"] = [*selection.get("assume", []), *texts]
        return dataclasses.replace(made, facts={**made.facts, "selection": selection})
    return narrowed(made, rows, failing)


def running(made: Made) -> Callable[[dict[str, Any]], bool] | None:
    """Whether the program returns, and what the facts require of its result holds."""
    names: dict[str, Any] = {"__name__": "builtins"}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            exec(compile(made.text, "case.py", "exec"), names)
    except SyntaxError:
        return None
    modes = [i.name for i in made.inputs if i.type == "mode"]

    def call(row: dict[str, Any]) -> bool:
        given = {**row, **{n: names["Mode"][row[n].removeprefix("Mode.")] for n in modes}}
        try:
            result = names["choose"](**given, **made.constants)
            known = {**row, **made.constants, "result": result}
            return all(eval(t, {}, known) for t in made.facts["selection"].get("require", ()))
        except FAULTS:
            return False

    return call


def narrowed(made: Made, rows: list[Any], failing: list[Any]) -> Made | None:
    """Without the values that fail most, one by one, until none fails; None: nothing is left."""
    values = [list(i.values) for i in made.inputs]
    while failing:
        worst: tuple[float, int, Any] = (-1.0, 0, None)
        for k, own in enumerate(values):
            if len(own) < 2 or made.inputs[k].element is not None:
                continue
            for v in own:
                bad = sum(r[k] is v or key(r[k]) == key(v) for r in failing)
                every = sum(r[k] is v or key(r[k]) == key(v) for r in rows)
                worst = max(worst, (bad / max(1, every) + bad * 1e-6, k, v), key=lambda w: w[0])
        if worst[0] <= 0:
            return None
        _, k, gone = worst
        values[k] = [v for v in values[k] if key(v) != key(gone)]
        rows, failing = ([r for r in some if key(r[k]) != key(gone)] for some in (rows, failing))
        if not rows:
            return None
    inputs = []
    for i, own in zip(made.inputs, values, strict=True):
        left = i if len(own) == len(i.values) else dataclasses.replace(i, values=tuple(own))
        if left is not i and i.range is not None:
            low, high, step = own[0], own[-1], i.range[2]
            whole = own == list(range(low, high + 1, step))
            left = dataclasses.replace(left, range=(low, high, step) if whole else None)
        inputs.append(left)
    facts = {**made.facts, "inputs": {i.name: declaration(i) for i in inputs}}
    return dataclasses.replace(made, facts=facts, inputs=tuple(inputs))


def key(value: Any) -> tuple[str, str]:
    """Equal for equal values of one type."""
    return type(value).__name__, repr(value)


__all__ = ["SCALARS", "Input", "Made", "program"]
