"""A judge of whole answers that runs the source under CPython, and shares nothing with selc.

One copy of the source is instrumented: behind every place that a pin names, and every place where a
choice is made, stands a question whether it is overwritten. Reading (a) overwrites pins; reading
(b) overwrites, in the source without pins, each choice that is not `aux` with what (a) returned.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import itertools
import re
import sys
import types
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.prove.observed import FAULTS, Change, bodies, changes, stored

Row = dict[str, Any]
WRITERS = {
    "append",
    "clear",
    "extend",
    "insert",
    "pop",
    "popitem",
    "remove",
    "setdefault",
    "update",
}


def exact(value: Any) -> Any:
    """Equal exactly for values of equal type."""
    if isinstance(value, (list, tuple)):
        return ("sequence", *map(exact, value))
    if isinstance(value, dict):
        return ("mapping", *((exact(k), exact(v)) for k, v in value.items()))
    return (type(value).__name__, value)


def loaded(data: Any) -> Any:
    """JSON and YAML as the program sees it: lists are tuples."""
    if isinstance(data, list):
        return tuple(map(loaded, data))
    return {k: loaded(v) for k, v in data.items()} if isinstance(data, dict) else data


def written(node: ast.AST) -> dict[str, set[str]]:
    """The variables in which something writes, and the parts that it writes; "" is any."""
    out: dict[str, set[str]] = {}
    for n in ast.walk(node):
        e: Any = None
        if isinstance(n, (ast.Attribute, ast.Subscript)) and not isinstance(n.ctx, ast.Load):
            e = n
        elif isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute):
            e = n.func.value if n.func.attr in WRITERS else None
        part = ""
        while isinstance(e, (ast.Attribute, ast.Subscript)):
            part = e.attr if isinstance(e, ast.Attribute) else str(getattr(e.slice, "value", ""))
            e = e.value
        if isinstance(e, ast.Name):
            out.setdefault(e.id, set()).add(part)
    return out


def own(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """All statements of a function in source order, without those of functions inside."""
    for s in body:
        if not isinstance(s, (ast.FunctionDef, ast.ClassDef)):
            yield s
            for inner in bodies(s):
                yield from own(inner)


@dataclass
class Places:
    """Where hooks go in one function: behind statements, in front of some, around expressions."""

    function: ast.FunctionDef
    seen: set[Change] = field(default_factory=set)  # changes by helpers and other names
    behind: dict[int, list[tuple[str, str]]] = field(default_factory=dict)  # statement: name, key
    before: dict[int, list[tuple[str, str, str]]] = field(default_factory=dict)  # and the field
    around: dict[int, list[str]] = field(default_factory=dict)  # expression: keys
    head: list[tuple[str, str]] = field(default_factory=list)

    @property
    def parameters(self) -> set[str]:
        """The names of the parameters."""
        a = self.function.args
        return {p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs)}

    def join(self, name: str, key: str) -> bool:
        """The join of a variable, or a parameter that is never assigned."""
        if any(name in stored(s) for s in self.function.body):
            self._join(self.function.body, name, key, stored)
            return True
        if name in self.parameters:
            self.head.append((name, key))
        return name in self.parameters

    def record(self, name: str, key: str) -> dict[str, str]:
        """The joins of the fields of a record that a variable holds, by the part written there."""
        if not any(name in stored(s) for s in self.function.body):
            return {}
        parts = self.changed(self.function, name)
        keys = {"": key} if "" in parts else {p: f"{key} {p}" for p in ["", *parts]}
        for part, own_key in keys.items():

            def binds(node: ast.AST, part: str = part) -> set[str]:
                into = self.changed(node, name)
                writes = part in into or (part == "" and "" in parts and bool(into))
                return stored(node) | ({name} if writes else set())

            self._join(self.function.body, name, own_key, binds)
        return keys

    def changed(self, node: ast.AST, name: str) -> set[str]:
        """The parts of a variable's record that a statement changes; "" is any."""
        at = {(n.lineno, n.col_offset) for n in ast.walk(node) if isinstance(n, ast.stmt)}
        seen = {part for *place, n, part in self.seen if n == name and tuple(place) in at}
        return written(node).get(name, set()) | seen

    def _join(
        self, body: list[ast.stmt], name: str, key: str, binds: Callable[[ast.AST], set[str]]
    ) -> None:
        having = [s for s in body if name in binds(s)]
        for s in having:
            last = s is having[-1]
            leaves = any(isinstance(n, ast.Return) for n in ast.walk(s))
            if isinstance(s, (ast.If, ast.Try, ast.With)) and (last or leaves):
                for inner in bodies(s):
                    self._join(inner, name, key, binds)
            if last:
                self.behind.setdefault(id(s), []).append((name, key))

    def definition(self, name: str, number: int, key: str) -> bool:
        """The definition of a variable with a number."""
        for s in own(self.function.body):
            if isinstance(s, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and name in stored(s):
                number -= 1
                if number == 0:
                    self.behind.setdefault(id(s), []).append((name, key))
                    return True
        return False

    def record_field(self, record: str, part: str, key: str) -> bool:
        """A field of a record that is returned by name."""
        found = False
        for s in own(self.function.body):
            value = s.value if isinstance(s, ast.Return) else None
            if isinstance(value, ast.Name) and value.id == record:
                self.before.setdefault(id(s), []).append((record, part, key))
                found = True
        return found

    def expression(self, position: str, key: str) -> bool:
        """An expression at a position as sites are named."""
        for n in ast.walk(self.function):
            if isinstance(n, ast.expr) and position == at(n):
                self.around.setdefault(id(n), []).append(key)
                return True
        return False


def at(e: ast.expr) -> str:
    """The position of an expression."""
    line = "" if e.end_lineno == e.lineno else f"L{e.end_lineno}C"
    return f"L{e.lineno}C{e.col_offset + 1}-{line}{(e.end_col_offset or 0) + 1}"


class _Hooks(ast.NodeTransformer):
    def __init__(self, places: Places) -> None:
        self.places = places

    def body(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for s in statements:
            behind = self.places.behind.get(id(s), ())
            before = self.places.before.get(id(s), ())
            for name in ("body", "orelse", "finalbody"):
                if getattr(s, name, None):
                    setattr(s, name, self.body(getattr(s, name)))
            for handler in getattr(s, "handlers", ()):
                handler.body = self.body(handler.body)
            for name, value in ast.iter_fields(s):
                if isinstance(value, ast.expr):
                    setattr(s, name, self.visit(value))
            for record, part, key in before:
                out += ast.parse(f"{record} = __field__({key!r}, {record}, {part!r})").body
            out.append(s)
            for name, key in behind:
                out += ast.parse(
                    f"try: {name} = __at__({key!r}, {name})\n"
                    f"except NameError:\n    if {key!r} in __whole__(): {name} = __over__[{key!r}]"
                ).body
        return out

    def visit(self, node: ast.AST) -> Any:
        keys = self.places.around.get(id(node), ())
        out: Any = self.generic_visit(node)
        for key in keys:
            out = ast.Call(ast.Name("__at__", ast.Load()), [ast.Constant(key), out], [])
        return out


class Source:
    """A selection with hooks for pins (by name) and choices (`choice NAME`, by return)."""

    def __init__(
        self,
        path: Path,
        function: str,
        pins: Sequence[str],
        points: Collection[str] = (),
        runs: Sequence[Row] = (),
    ) -> None:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        functions = {n.name: Places(n) for n in tree.body if isinstance(n, ast.FunctionDef)}
        self.records = {
            n.name: [f.target.id for f in n.body
                     if isinstance(f, ast.AnnAssign) and isinstance(f.target, ast.Name)]
            for n in tree.body if isinstance(n, ast.ClassDef)
        }  # fmt: skip
        self.unplaced = [p for p in pins if not self._pin(functions, p)]
        self.points = points  # a tuple is one choice if it has a name here, else its elements are
        self.choices: list[list[Choice]] = []  # of each return
        self.over: dict[str, Any] = {}
        self.undo: list[Callable[[], None]] = []
        self.log: dict[str, Any] = {}
        entry = functions[function]
        if runs:
            copy = ast.parse(path.read_text(encoding="utf-8"))
            entry.seen = changes(copy, function, runs)
        for s in own(entry.function.body):
            if isinstance(s, ast.Return) and s.value is not None:
                self._choices(entry, s)
        for places in functions.values():
            f = places.function
            f.body = _Hooks(places).body(f.body)
            heads = [f"{n} = __at__({key!r}, {n})" for n, key in places.head]
            f.body[:0] = ast.parse("\n".join(heads)).body
        module = types.ModuleType("judged")
        sys.modules["judged"] = module
        self.names = module.__dict__
        self.names.update(
            {"__at__": self._at, "__field__": self._field, "__over__": self.over,
             "__return__": self._return, "__whole__": self._whole}
        )  # fmt: skip
        exec(compile(ast.fix_missing_locations(tree), str(path), "exec"), self.names)
        self.call = self.names[function]
        self.parameters = sorted(entry.parameters)
        self.taken = 0

    def _pin(self, functions: dict[str, Places], pin: str) -> bool:
        function, _, rest = pin.partition(".")
        places = functions.get(function)
        if places is None or any(c in rest for c in "@[") or rest == "return":
            return False
        if rest.startswith("L") and "C" in rest and "-" in rest:
            return places.expression(rest, pin)
        name, _, number = rest.partition("#")
        if number:
            return places.definition(name, int(number), pin)
        record, _, part = rest.partition(".")
        return places.record_field(record, part, pin) if part else places.join(record, pin)

    def _choices(self, entry: Places, s: ast.Return) -> None:
        keys: list[Choice] = []
        number = len(self.choices)
        assert s.value is not None

        def made(e: ast.expr, point: str) -> None:
            whole = (point or "result") in self.points
            parts = None if whole else fields_of(e, self.records)
            key = f"choice {number} {point}"
            if parts is None and isinstance(e, ast.Name):
                built = [
                    d.value
                    for d in own(entry.function.body)
                    if isinstance(d, ast.Assign)
                    and [t.id for t in d.targets if isinstance(t, ast.Name)] == [e.id]
                ]
                inner = [fields_of(b, self.records) for b in built]
                changed = entry.changed(entry.function, e.id)
                if len(built) == 1 and inner[0] is not None and not whole:
                    parts = [] if "" in changed else [p for p in inner[0] if p[0] not in changed]
                if parts is not None or e.id not in entry.parameters:
                    joins = entry.record(e.id, f"{key} record")
                    rest = set(joins) - {""}
                    keys.extend(Choice(point, k, p, rest) for p, k in joins.items())
            if parts is not None:
                for name, part in parts:
                    made(part, joined(point, name))
            elif not isinstance(e, (ast.Name, ast.Constant)):
                entry.around.setdefault(id(e), []).append(key)
                keys.append(Choice(point, key))

        made(s.value, "")
        self.choices.append(keys)
        s.value = ast.Call(ast.Name("__return__", ast.Load()), [ast.Constant(number), s.value], [])

    # -- the hooks ---------------------------------------------------------------------------------

    def _at(self, key: str, value: Any) -> Any:
        if key in self.over:
            new = self.over[key]
            value = filled(value, new, self.undo) if isinstance(new, Parts) else new
        self.log[key] = value
        return value

    def _field(self, key: str, record: Any, part: str) -> Any:
        if isinstance(record, dict):
            return {**record, part: self._at(key, record[part])}
        new = {part: self._at(key, getattr(record, part))}
        if isinstance(record, tuple):
            return record._replace(**new)  # type: ignore[attr-defined]  # a NamedTuple
        return dataclasses.replace(record, **new)

    def _whole(self) -> set[str]:
        return {k for k, v in self.over.items() if not isinstance(v, Parts)}

    def _return(self, number: int, value: Any) -> Any:
        self.taken = number
        return value

    def run(self, call: Row, over: Mapping[str, Any]) -> Any:
        """The points; raises what the source raises."""
        self.over.clear()
        self.over.update(over)
        self.log.clear()
        try:
            return points_of(self.call(**call), "", self.points)
        finally:
            while self.undo:
                self.undo.pop()()


def fields_of(e: ast.expr, records: Mapping[str, list[str]]) -> list[tuple[str, ast.expr]] | None:
    """The fields of a record, a dictionary or a tuple that an expression makes."""
    if isinstance(e, ast.Dict):
        pairs = zip(e.keys, e.values, strict=True)
        return [(str(k.value), v) for k, v in pairs if isinstance(k, ast.Constant)]
    if isinstance(e, ast.Tuple):
        return [(f"[{i}]", v) for i, v in enumerate(_before_star(e.elts))]
    if isinstance(e, ast.Call) and isinstance(e.func, ast.Name) and e.func.id in records:
        named = list(zip(records[e.func.id], _before_star(e.args), strict=False))
        return named + [(k.arg, k.value) for k in e.keywords if k.arg is not None]
    return None


def _before_star(values: list[ast.expr]) -> Iterator[ast.expr]:
    return itertools.takewhile(lambda v: not isinstance(v, ast.Starred), values)


def joined(point: str, part: str) -> str:
    """The name of a part of a choice."""
    return f"{point}{part}" if part.startswith("[") or not point else f"{point}.{part}"


@dataclass
class Choice:
    """Where a `return` makes a point, or all points of a record: the key of a hook.

    Of a record it is the part `part`, or all parts but those of other hooks.
    """

    point: str
    key: str
    part: str = ""
    rest: set[str] = field(default_factory=set)

    def has(self, step: str) -> bool:
        """Whether the hook is for a part."""
        return step == self.part if self.part else step not in self.rest


class Parts(dict[str, Any]):
    """New values of some parts of a record, by their paths: `.down.width`, `.rows[0]`."""


_FIRST = re.compile(r"\.([^.\[]+)|\[(\d+)\]")


def first(path: str) -> tuple[str | int, str]:
    """The first step of a path, and the rest."""
    found = _FIRST.match(path)
    assert found is not None, path
    return found[1] if found[2] is None else int(found[2]), path[found.end() :]


def filled(record: Any, parts: Parts, undo: list[Callable[[], None]]) -> Any:
    """The record with parts replaced: in place, but for tuples; `undo` takes it back."""
    inner: dict[Any, Parts] = {}
    for path, value in parts.items():
        if not path:
            return value
        step, rest = first(path)
        inner.setdefault(step, Parts())[rest] = value
    plain = not dataclasses.is_dataclass(record) and not hasattr(record, "_fields")
    scalars = all([*new] == [""] for new in inner.values())
    if plain and scalars and not isinstance(record, (dict, list)):
        return tuple(new[""] for new in inner.values())
    for step, new in inner.items():
        if isinstance(record, (dict, list)) and (isinstance(step, int) or step in record):
            old = record[step]
            undo.append(functools.partial(record.__setitem__, step, old))
            record[step] = filled(old, new, undo)
        elif isinstance(record, tuple):
            items = list(record)
            at = step if isinstance(step, int) else record._fields.index(step)  # type: ignore[attr-defined]  # a NamedTuple
            items[at] = filled(items[at], new, undo)
            record = type(record)(*items) if hasattr(record, "_fields") else tuple(items)
        elif dataclasses.is_dataclass(record) and hasattr(record, str(step)):
            old = getattr(record, str(step))
            undo.append(functools.partial(object.__setattr__, record, str(step), old))
            object.__setattr__(record, str(step), filled(old, new, undo))
    return record


def points_of(result: Any, name: str, points: Collection[str]) -> Row:
    """The fields of a result by the names of points; a tuple that `points` name is one."""
    if dataclasses.is_dataclass(result):
        parts = {f.name: getattr(result, f.name) for f in dataclasses.fields(result)}
    elif isinstance(result, dict):
        parts = result
    elif (name or "result") in points or not isinstance(result, (list, tuple)):
        return {name or "result": result}
    elif hasattr(result, "_asdict"):
        parts = result._asdict()
    else:
        parts = {f"[{i}]": value for i, value in enumerate(result)}
    out: Row = {}
    for key, value in parts.items():
        out |= points_of(value, joined(name, str(key)), points)
    return out


@dataclass
class Tally:
    """What was judged."""

    assignments: int = 0
    legal: int = 0
    inputs: int = 0
    runs: int = 0
    differences: list[str] = field(default_factory=list)


@dataclass
class Judge:
    """A source, its domain, and what is called around each run."""

    source: Source
    calls: list[Row]  # the inputs of each admitted call, knobs among them
    arguments: Callable[[Row], Row]  # inputs to arguments
    setting: Callable[[Row], Any]  # a context in which knobs have values
    required: Callable[[Row, Row], bool]  # guards of the facts file, on inputs and result
    request: Sequence[str] = ()  # the inputs that bits may follow
    first: list[int] = field(default_factory=list)  # calls that refuted something, the last first
    seen: dict[Any, bool] = field(default_factory=dict)  # reading (b), by call and choices

    def judge(self, answer: Mapping[str, Any], rows: Sequence[Sequence[Any]]) -> Tally:
        """Compare an answer, with its whole relation, with what CPython does."""
        tally = Tally(inputs=len(self.calls))
        roles = {p["name"]: p["role"] for p in answer["points"]}
        pins = [p for p in answer["pins"] if not p["free"]]
        free = {p["name"]: loaded(p["default"]) for p in answer["pins"] if p["free"]}
        axes = [[*map(loaded, listed(p["candidates"])), *map(loaded, p["offered"])] for p in pins]
        axes += [list(map(loaded, k["choices"])) for k in answer["knobs"]]
        names = [p["name"] for p in pins]
        knobs = [k["name"] for k in answer["knobs"]]
        said = {exact(row) for row in rows}
        self._candidates(pins, knobs, tally)
        for row in itertools.product(*axes):
            over = {**free, **dict(zip(names, row, strict=False))}
            given = dict(zip(knobs, row[len(names) :], strict=True))
            with self.setting(given):
                fault = self._refuted(over, given, roles, tally)
            tally.assignments += 1
            tally.legal += fault is None
            if (fault is None) != (exact(row) in said):
                shown = dict(zip([*names, *knobs], row, strict=True))
                says = "legal, not called so" if fault is None else f"called legal: {fault}"
                tally.differences.append(f"{shown}: {says}")
        return tally

    def _candidates(
        self, pins: Sequence[Mapping[str, Any]], knobs: Sequence[str], tally: Tally
    ) -> None:
        taken: dict[str, dict[Any, Any]] = {p["name"]: {} for p in pins}
        for call in self.calls:
            with self.setting({k: call[k] for k in knobs}):
                self._points(call, {})
            for name, values in taken.items():
                if name in self.source.log:
                    value = self.source.log[name]
                    values[exact(value)] = value
        for pin in pins:
            have = {exact(loaded(v)) for v in listed(pin["candidates"])}
            want = set(taken[pin["name"]])
            if want - have or (pin.get("exact", True) and have - want):
                tally.differences.append(
                    f"{pin['name']}: takes {sorted(want - have, key=str)[:4]} besides, "
                    f"never {sorted(have - want, key=str)[:4]}"
                )

    def _points(self, call: Row, over: Mapping[str, Any]) -> Row | None:
        try:
            points: Row = self.source.run(self.arguments(call), over)
        except FAULTS:
            return None
        return points

    def _refuted(self, over: Row, given: Row, roles: Mapping[str, str], tally: Tally) -> str | None:
        """What speaks against an assignment: a call that breaks a guard, or bits that move."""
        bits: dict[Any, tuple[Any, Row]] = {}
        order = [*self.first, *(i for i in range(len(self.calls)) if i not in set(self.first))]
        for i in order:
            call = self.calls[i]
            if any(exact(call[k]) != exact(v) for k, v in given.items()):
                continue
            tally.runs += 1
            points = self._points(call, over)
            if points is None or not self.required(call, points):
                return self._noted(i, f"reading (a) fails for {call}")
            if not self._kept(i, call, points, roles, tally):
                return self._noted(i, f"reading (b) fails for {call}")
            mine = exact({n: points.get(n) for n, role in roles.items() if role == "bits"})
            other = bits.setdefault(exact([call[n] for n in self.request]), (mine, call))
            if other[0] != mine:
                return f"bits move between {other[1]} and {call}"
        return None

    def _noted(self, i: int, fault: str) -> str:
        if i in self.first:
            self.first.remove(i)
        self.first.insert(0, i)
        return fault

    def _kept(self, i: int, call: Row, points: Row, roles: Mapping[str, str], tally: Tally) -> bool:
        """Reading (b), remembered by call and choices."""
        chosen = {n: v for n, v in points.items() if roles.get(n, "bits") != "aux"}
        over: Row = {}
        for c in self.source.choices[self.source.taken]:
            inside = {n: v for n, v in chosen.items() if within(n, c.point) is not None}
            if (c.point or "result") in chosen and list(inside) in ([], [c.point or "result"]):
                if not c.part:
                    over[c.key] = chosen[c.point or "result"]
                continue
            paths = {str(within(n, c.point)): v for n, v in inside.items()}
            parts = Parts({p: v for p, v in paths.items() if c.has(str(first(p)[0]))})
            if parts:
                over[c.key] = parts
        known = (i, self.source.taken, exact(points))
        if known not in self.seen:
            tally.runs += 1
            again = self._points(call, over)
            self.seen[known] = again is not None and self.required(call, {**again, **chosen})
        return self.seen[known]


def within(point: str, name: str) -> str | None:
    """The path of a point in the record of a name (`""`: all that is returned); None if outside."""
    if not name:
        return point if point.startswith("[") else f".{point}"
    rest = point.removeprefix(name)
    return rest if point.startswith(name) and rest[:1] in ("", ".", "[") else None


def listed(candidates: Any) -> list[Any]:
    """Candidates in either form."""
    if isinstance(candidates, list):
        return candidates
    low, high, step = candidates["range"]
    return list(range(low, high + 1, step))
