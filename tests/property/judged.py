"""One random program compiled whole, and judged by brute force under its pins.

The judge runs the source under CPython with sites overwritten. It knows nothing of graphs: it reads
the compiler's JSON answer and calls the emitted selector.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import random
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from selc.driver.compile import run
from selc.driver.options import CompileOptions
from tests import adapters
from tests.property.agreement import (
    Disagreement,
    arguments,
    compare,
    domain,
    points_of,
    same,
)
from tests.property.observe import Observer
from tests.property.programs import Made
from tests.sel_case import selected

MAX_ROWS = 24
MAX_TUPLES = 8
Row = Mapping[str, Any]


class Unjudged(Exception):
    """A pin that CPython does not meet under a certain name, or an answer without a relation."""


def from_json(value: Any) -> Any:
    """Lists are tuples; JSON has no infinities."""
    if value in ("inf", "-inf", "nan"):
        return float(value)
    return tuple(from_json(v) for v in value) if isinstance(value, list) else value


def listed(candidates: Any) -> list[Any]:
    """Candidates in either form."""
    if isinstance(candidates, list):
        return [from_json(v) for v in candidates]
    if not candidates["range"]:
        raise Unjudged("no range of candidates")
    low, high, step = (candidates["range"] + [1])[:3]
    return list(range(low, high + 1, step))


def member(value: Any, observer: Observer) -> Any:
    """A value of the answer as the program holds it."""
    if isinstance(value, str) and value.startswith(("Mode.", "Rank.")):
        kind, _, name = value.partition(".")
        return getattr(observer.names[kind], name)
    return tuple(member(v, observer) for v in value) if isinstance(value, tuple) else value


@dataclass(slots=True)
class Judge:
    """One compiled program."""

    made: Made
    rng: random.Random
    folder: Path
    native: bool = False
    counts: dict[str, int] = field(default_factory=dict)
    reason: str = ""
    returned: dict[str, set[str]] = field(default_factory=dict)
    displayed: set[str] = field(default_factory=set)  # tuples whose elements are named where made
    varied: bool = False  # several `return`s name different variables as one point
    answer: dict[str, Any] = field(init=False)
    observer: Observer = field(init=False)

    def compile(self) -> bool:
        """Compile; whether there is an answer to judge."""
        case, facts = self.folder / "case.py", self.folder / "facts.yaml"
        case.write_text(self.made.text, encoding="utf-8")
        facts.write_text(self.made.facts_text, encoding="utf-8")
        emit = ("python", "native") if self.native else ("python",)
        outcome = run(
            CompileOptions(
                str(case),
                (facts,),
                out=self.folder / "out",
                emit=emit,
                native=self.native,
                use_cache=False,
                format="json",
            )
        )
        if outcome.exit_code == 2:
            self.reason = f"{outcome.diagnostics[0].code} {outcome.diagnostics[0].message}"
            return False
        self.answer = outcome.json
        pins = {p["name"]: kind_of(p["name"]) for p in self.answer["pins"]}
        self.returned = self.named()
        returned = {f"choose.{n}": "variable" for ns in self.returned.values() for n in ns}
        self.observer = Observer(self.made.text, "choose", {**returned, **pins})
        return True

    # -- the reference ----------------------------------------------------------------------------

    def cpython(self, row: Row, overwrites: Mapping[str, Any]) -> tuple[Any, dict[str, Any]] | None:
        """The result and its points under CPython; None if it raises or a `require` fails."""
        names = {**row, **self.made.constants}

        def finish(result: Any) -> tuple[Any, dict[str, Any]]:
            self.required(names, result)
            return result, points_of(result)

        given = {k: member(v, self.observer) for k, v in overwrites.items()}
        found: tuple[Any, dict[str, Any]] | None = self.observer.run(
            arguments(self.made, self.observer, row), given, finish
        )
        return found

    def required(self, names: Row, result: Any) -> None:
        """The guards of the facts file."""
        for text in self.made.facts["selection"].get("require", ()):
            if not eval(text, {}, {**names, "result": result}):
                raise AssertionError(text)

    def rows(self, limit: int) -> list[dict[str, Any]]:
        """Admitted inputs: all if they are few."""
        every = domain(self.made, limit, self.rng)
        return [r for r in every if self.made.assumed(r)]

    @property
    def knobs(self) -> list[str]:
        """The names of the knobs, declared order."""
        return [i.name for i in self.made.inputs if i.kind == "knob"]

    @property
    def sequence(self) -> bool:
        """Whether an input is a sequence."""
        return any(i.element is not None for i in self.made.inputs)

    @property
    def role(self) -> dict[str, str]:
        """The role of every point."""
        return {p["name"]: p["role"] for p in self.answer["points"]}

    def role_of(self, name: str) -> str:
        """The role of a point, or of the point that a part belongs to."""
        roles = self.role
        while name not in roles and name:
            name = re.sub(r"(\.?[^.\[]*|\[\d+\])$", "", name)
        return roles.get(name, "bits")

    def named(self) -> dict[str, set[str]]:
        """The variables that `return` statements name, by point, if they all name the same."""
        tree = ast.parse(self.made.text)
        chosen = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "choose")
        out: dict[str, list[str]] = {}
        returns = 0
        bound = {i.name for i in self.made.inputs} | set(self.made.constants)
        for node in own(chosen.body):
            if isinstance(node, ast.Return) and node.value is not None:
                returns += 1
                for point, name in names_in(node.value, ""):
                    if name not in bound:
                        out.setdefault(point, []).append(name)
        bodies = [n for n in own(chosen.body) if isinstance(n, ast.Assign)]
        made = [(t.id, n.value) for n in bodies for t in n.targets if isinstance(t, ast.Name)]
        counts = Counter(name for name, _ in made)
        self.displayed = {n for n, e in made if counts[n] == 1 and isinstance(e, ast.Tuple)}
        self.varied = any(
            len(names) < returns or "?" in names or len(set(names)) > 1 for names in out.values()
        )
        return {
            point: set(names)
            for point, names in out.items()
            if len(names) == returns and len(set(names)) == 1 and "?" not in names
        }

    # -- the judgement ----------------------------------------------------------------------------

    def judge(self) -> None:
        """Everything that the answer claims.

        Raises:
            Disagreement: CPython says otherwise.
            Unjudged: it cannot be told.
        """
        names = list(self.role)
        if any(b.startswith(f"{a}[") for a in names for b in names):
            raise Unjudged("a field is a tuple on one path and has parts on another")
        self.dependence()
        pins = [p for p in self.answer["pins"] if not p["free"]]
        self.candidates(pins)
        relation = self.answer["legal"]["relation"]
        if relation is None:
            raise Unjudged("no relation")
        legal = [tuple(from_json(v) for v in row) for row in relation]
        axes = [listed(p["candidates"]) + [from_json(v) for v in p["offered"]] for p in pins]
        axes += [list(k["choices"]) for k in self.answer["knobs"]]
        size = 1
        for axis in axes:
            size *= max(1, len(axis))
        every = list(itertools.islice(itertools.product(*axes), 4096))
        if size > 4096:
            every = []
        illegal = [r for r in every if not any(same(r, known) for known in legal)]
        module = None
        if self.answer["artifacts"]["module"]:
            module = adapters.load(
                self.folder / "out" / "__init__.py", f"judged_{self.folder.name.replace('-', '_')}"
            )
        for row in self.rng.sample(legal, min(MAX_TUPLES, len(legal))):
            self.legal(pins, row, module)
        for row in self.rng.sample(illegal, min(MAX_TUPLES, len(illegal))):
            self.illegal(pins, row, module)

    def free(self, row: Row) -> dict[str, Any]:
        """The values of free pins; those that depend on the request are found at a batch point."""
        out: dict[str, Any] = {}
        later = []
        for pin in self.answer["pins"]:
            if pin["free"] and pin.get("at") is None:
                out[pin["name"]] = from_json(pin["default"])
            elif pin["free"]:
                later.append(pin)
        for pin in later:
            at = {k: from_json(v) for k, v in pin["at"].items()}
            self.cpython({**row, **at}, out)
            if pin["name"] not in self.observer.seen:
                raise Unjudged(f"{pin['name']} is not met at {at}")
            out[pin["name"]] = self.observer.seen[pin["name"]]
        return out

    def overwrites(self, pins: list[Any], row: tuple[Any, ...], inputs: Row) -> dict[str, Any]:
        """The sites that a tuple overwrites."""
        given = dict(zip([p["name"] for p in pins], row, strict=False))
        return {**self.free(inputs), **given}

    def setting(self, pins: list[Any], row: tuple[Any, ...]) -> dict[str, Any]:
        """The knobs of a tuple."""
        names = [k["name"] for k in self.answer["knobs"]]
        return dict(zip(names, row[len(pins) :], strict=True))

    def holds(self, pins: list[Any], row: tuple[Any, ...], inputs: Row) -> dict[str, Any] | None:
        """The points under a tuple if every guard holds in both readings."""
        over = self.overwrites(pins, row, inputs)
        first = self.cpython(inputs, over)
        if first is None:
            return None
        points = first[1]
        second: dict[str, Any] = {}
        for point, names in self.returned.items():
            if self.role_of(point) == "aux":
                continue
            if point in points or point in self.role:
                value = at_point(points, point, list(self.role))
                second.update({f"choose.{n}": value for n in names})
                continue
            head = "" if point == "result" else point
            inner = [n for n in self.role if n.startswith(f"{head}[")]
            if inner and not names & self.displayed:
                if any(self.role_of(n) == "aux" for n in inner):
                    raise Unjudged("only some elements of a returned tuple are overwritten")
                value = tuple(points[n] for n in inner)
                second.update({f"choose.{n}": value for n in names})
        known = {k: v for k, v in second.items() if k in self.observer.sites}
        seen = self.observed(inputs, known, first[0])
        if not seen and self.varied:
            raise Unjudged("several returns name different variables as one point")
        return points if seen else None

    def observed(self, inputs: Row, overwrites: Mapping[str, Any], result: Any) -> bool:
        """Reading (b): no pin, the returned variables overwritten."""
        given = {k: member(v, self.observer) for k, v in overwrites.items()}
        names = {**inputs, **self.made.constants}

        def finish(_: Any) -> bool:
            self.required(names, result)
            return True

        return self.observer.run(arguments(self.made, self.observer, inputs), given, finish) is True

    def legal(self, pins: list[Any], row: tuple[Any, ...], module: Any) -> None:
        """A tuple that is called legal: no guard fails, no bits move, the selector agrees."""
        setting = self.setting(pins, row)
        bits: dict[object, dict[str, Any]] = {}
        if module is not None:
            module.repin({**{p["name"]: v for p, v in zip(pins, row, strict=False)}, **setting})
        for inputs in self.rows(MAX_ROWS):
            if any(not same(inputs[k], v) for k, v in setting.items()):
                continue
            points = self.holds(pins, row, inputs)
            self.certain(pins)
            if points is None:
                raise Disagreement(f"called legal: {row}; a guard fails at {inputs}")
            mine = {k: v for k, v in points.items() if self.role_of(k) == "bits"}
            request = repr([(i.name, inputs[i.name]) for i in self.made.inputs if self.request(i)])
            for k, v in bits.setdefault(request, mine).items():
                if not same(v, mine.get(k)):
                    raise Disagreement(f"pinned {row}: {k} moves at {inputs}")
            if module is not None:
                given = {k: v for k, v in inputs.items() if k in self.selector_inputs(module)}
                got = selected(module, module.select, given)
                compare(f"the selector pinned {row}", points, got, inputs)
            self.counts["legal"] = self.counts.get("legal", 0) + 1

    def request(self, given: Any) -> bool:
        """Whether an input is the request's own."""
        return bool(given.kind == "request" and self.answer["scope"] == "request")

    def selector_inputs(self, module: Any) -> set[str]:
        """The arguments that a selector takes."""
        return set(inspect.signature(module.select_unpinned).parameters)

    def illegal(self, pins: list[Any], row: tuple[Any, ...], module: Any) -> None:
        """A tuple that is not called legal: the selector refuses it, and some guard fails."""
        if module is not None:
            tuple_ = {**{p["name"]: v for p, v in zip(pins, row, strict=False)}}
            tuple_ |= self.setting(pins, row)
            try:
                module.repin(tuple_)
            except module.SelectionError:
                pass
            else:
                raise Disagreement(f"repin accepts {row}, which is not legal")
        setting = self.setting(pins, row)
        rows = self.rows(4096)
        if len(rows) > 2000:
            return
        some = [r for r in rows if all(same(r[k], v) for k, v in setting.items())]
        fails = not some or any(self.holds(pins, row, inputs) is None for inputs in some)
        self.certain(pins)
        key = "illegal" if fails else "stricter"
        self.counts[key] = self.counts.get(key, 0) + 1

    def certain(self, pins: list[Any]) -> None:
        """Refuse to judge pins that several calls answer to.

        Raises:
            Unjudged: one does.
        """
        doubtful = self.observer.ambiguous() & {p["name"] for p in self.answer["pins"]}
        if doubtful:
            raise Unjudged(f"{sorted(doubtful)} are met in several calls")

    def candidates(self, pins: list[Any]) -> None:
        """The values that a site takes unpinned are its candidates, exactly."""
        rows = self.rows(4096)
        taken: dict[str, list[Any]] = {p["name"]: [] for p in self.answer["pins"]}
        for inputs in rows:
            self.cpython(inputs, {})
            for name in taken:
                if name in self.observer.seen:
                    taken[name].append(self.observer.seen[name])
        self.certain(pins)
        for pin in pins:
            found = listed(pin["candidates"])
            if not taken[pin["name"]]:
                raise Unjudged(f"{pin['name']} is never met")
            missing = [v for v in taken[pin["name"]] if not any(same(v, c) for c in found)]
            never = [c for c in found if not any(same(v, c) for v in taken[pin["name"]])]
            if missing:
                raise Disagreement(f"{pin['name']} takes {missing[:3]}, which are no candidates")
            exact = isinstance(pin["candidates"], list) or pin["candidates"]["exact"]
            if never and exact and pin["evidence"] in ("proved", "exhaustive"):
                raise Disagreement(f"{pin['name']} never takes {never[:3]}")

    def dependence(self) -> None:
        """Which batch inputs each point depends on."""
        if self.made.facts["selection"].get("require") or self.sequence:
            return  # what a point depends on are aggregates, which are no arguments
        every = domain(self.made, 4096, self.rng)
        if len(every) > 400:
            return
        found = {repr(sorted(r.items())): self.cpython(r, {}) for r in every}
        batch = [
            i
            for i in self.made.inputs
            if i.kind in ("runtime", "unpinnable") or (i.kind == "request" and not self.request(i))
        ]
        for point in self.answer["points"]:
            if point.get("decided", True) is False:
                continue
            depends = [i.name for i in batch if self.moves(every, found, point["name"], i.name)]
            if sorted(point["depends_on"]) != sorted(depends):
                raise Disagreement(
                    f"{point['name']} depends on {depends}, the answer says {point['depends_on']}"
                )

    def moves(
        self, rows: list[dict[str, Any]], found: Mapping[str, Any], point: str, name: str
    ) -> bool:
        """Whether some two inputs that differ in one only give different values."""
        groups: dict[str, Any] = {}
        for row in rows:
            result = found[repr(sorted(row.items()))]
            if result is None:
                continue
            rest = repr(sorted((k, v) for k, v in row.items() if k != name))
            value = at_point(result[1], point, list(self.role))
            if not same(groups.setdefault(rest, value), value):
                return True
        return False


def at_point(points: Mapping[str, Any], name: str, others: list[str]) -> Any:
    """A point's value; one that holds a tuple is put together."""
    if name in points or any(n.startswith(name + "[") for n in others if n != name):
        return points.get(name)
    if name == "result" and len(others) == 1:
        return tuple(points.values())
    return tuple(v for k, v in points.items() if k.startswith(name + "["))


def own(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements of a function without those of nested ones."""
    out: list[ast.stmt] = []
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            continue
        out.append(statement)
        for part in ("body", "orelse", "finalbody"):
            out += own(getattr(statement, part, None) or [])
        for handler in getattr(statement, "handlers", ()):
            out += own(handler.body)
    return out


def names_in(e: ast.expr, prefix: str) -> list[tuple[str, str]]:
    """The variables that a returned expression names, with their points."""
    if isinstance(e, ast.Name):
        return [(prefix or "result", e.id)]
    if isinstance(e, ast.IfExp):  # `?` is no name: what is returned is now one arm, now the other
        arms = names_in(e.body, prefix) + names_in(e.orelse, prefix)
        return [(point, "?") for point, _ in arms]
    parts: list[tuple[str, ast.expr]] = []
    dot = f"{prefix}." if prefix else ""
    if isinstance(e, ast.Dict):
        pairs = zip(e.keys, e.values, strict=True)
        parts = [(f"{dot}{k.value!s}", v) for k, v in pairs if isinstance(k, ast.Constant)]
    elif isinstance(e, (ast.Tuple, ast.List)):
        parts = [(f"{prefix}[{i}]", v) for i, v in enumerate(e.elts)]
    elif isinstance(e, ast.Call) and isinstance(e.func, ast.Name) and e.func.id in ("Point", "Box"):
        names = ("x", "y") if e.func.id == "Point" else ("width", "depth")
        parts = [(dot + n, v) for n, v in zip(names, e.args, strict=False)]
        parts += [(f"{dot}{k.arg}", k.value) for k in e.keywords]
    return [found for name, part in parts for found in names_in(part, name)]


def kind_of(name: str) -> str:
    """The kind of a site by the form of its name."""
    last = name.rpartition("@")[0] or name
    if last.endswith(".return"):
        return "return"
    return (
        "parameter"
        if last.count(".") == 1 and last.rpartition(".")[2] in PARAMETERS
        else "variable"
    )


PARAMETERS = (
    "m",
    "n",
    "r",
    "flag",
    "ratio",
    "text",
    "limit",
    "shape",
    "mode",
    "stride",
    "k",
    "x",
    "a",
    "b",
    "low",
    "high",
    "by",
    "side",
    "values",
)
