"""Selections with bit classes under CPython: what pins and classes do to the source.

A site `f.x` is overwritten after the last statement of the body that defines x, a choice without a
name where it is returned, one that is read off a row in that row. A pinned class overwrites its
fields: with what the source chooses under all other pins if it returns and that is in the class,
else with the first member of the class (its representative before the others) that comes out and
under which the source returns, else with the first.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Row = Mapping[str, Any]
FAILED = object()


def key(value: Any) -> Any:
    """Equal for equal type and value."""
    if isinstance(value, (tuple, list)):
        return tuple(key(v) for v in value)
    return type(value).__name__, value


@dataclass(frozen=True)
class Source:
    """A function whose variables and returned choices can be overwritten."""

    run: Any
    name: str
    choices: Mapping[str, str]  # choice -> the variable that it is, or ''

    def call(self, inputs: Row, variables: Row, returned: Row) -> dict[str, Any] | None:
        """What it returns; None if it raises."""
        try:
            out = self.run(inputs, variables, returned)
        except (AssertionError, ArithmeticError, LookupError, TypeError, ValueError):
            return None
        assert isinstance(out, dict)
        return out


def rewritten(text: str) -> Source:
    """Put a hook behind every variable and into the returned dict."""
    tree = ast.parse(text)
    function = next(n for n in tree.body if isinstance(n, ast.FunctionDef))
    last: dict[str, int] = {}
    for k, statement in enumerate(function.body):
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                last[node.id] = k
    body: list[ast.stmt] = []
    choices: dict[str, str] = {}
    columns: dict[str, list[str]] = {}
    hooks: list[tuple[int, str]] = []
    for k, statement in enumerate(function.body):
        if isinstance(statement, ast.Return):
            assert isinstance(statement.value, ast.Dict)
            for i, (name, value) in enumerate(
                zip(statement.value.keys, statement.value.values, strict=True)
            ):
                assert isinstance(name, ast.Constant)
                if isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name):
                    assert isinstance(value.slice, ast.Constant)
                    record, part = value.value.id, str(value.slice.value)
                    choices[str(name.value)] = f"{record}.{part}"
                    columns.setdefault(record, []).append(part)
                    continue
                choices[str(name.value)] = value.id if isinstance(value, ast.Name) else ""
                if not isinstance(value, ast.Name):
                    hook = f"__returned.get({name.value!r}, 0) if {name.value!r} in __returned"
                    made = ast.parse(f"{hook} else 0", mode="eval").body
                    assert isinstance(made, ast.IfExp)
                    made.orelse = value
                    statement.value.values[i] = made
        body.append(statement)
        for variable, at in last.items():
            if at == k:
                text = f"if {variable!r} in __over: {variable} = __over[{variable!r}]"
                body += ast.parse(text).body
                hooks.append((len(body), variable))
    for at, variable in reversed(hooks):
        for part in columns.get(variable, ()):
            own = f"{variable}.{part}"
            hook = f"if {own!r} in __over: {variable} = {{**{variable}, {part!r}: __over[{own!r}]}}"
            body[at:at] = ast.parse(hook).body
    function.body = body
    function.args.kwonlyargs += [ast.arg("__over"), ast.arg("__returned")]
    function.args.kw_defaults += [None, None]
    space: dict[str, Any] = {}
    exec(compile(ast.fix_missing_locations(tree), "<judge>", "exec"), space)
    inner = space[function.name]

    def run(inputs: Row, variables: Row, returned: Row) -> object:
        return inner(**inputs, __over=dict(variables), __returned=dict(returned))

    return Source(run, function.name, choices)


@dataclass(frozen=True)
class Partition:
    """A class as the facts state it."""

    name: str
    fields: tuple[str, ...]
    classes: Mapping[str, Sequence[tuple[Any, ...]]]  # representative first
    given: Mapping[str, Any] = field(default_factory=dict)

    def of(self, choice: Row) -> Any:
        values = tuple(choice[f] for f in self.fields)
        if all(key(choice[k]) == key(v) for k, v in self.given.items()):
            for name, members in self.classes.items():
                if key(values) in [key(m) for m in members]:
                    return name
        return values

    def members(self, wanted: Any) -> Sequence[tuple[Any, ...]]:
        return [wanted] if isinstance(wanted, tuple) else self.classes[wanted]


@dataclass(frozen=True)
class Judge:
    """A selection, its partitions, its roles, and the calls that it gets."""

    source: Source
    partitions: Sequence[Partition]
    roles: Mapping[str, str]
    inputs: Mapping[str, Sequence[Any]]
    request: tuple[str, ...]
    require: Sequence[str] = ()
    fixed: Sequence[str] = ()  # variables that no input moves: they are no sites

    def calls(self) -> Iterator[dict[str, Any]]:
        for row in itertools.product(*self.inputs.values()):
            yield dict(zip(self.inputs, row, strict=True))

    def run(self, inputs: Row, pins: Row, fields: Row) -> dict[str, Any] | None:
        """The source with pins, and with choices overwritten; None where a guard fails."""
        own = {self.source.choices[f] or f: v for f, v in fields.items()}
        variables = {**own, **{p.partition(".")[2]: v for p, v in pins.items()}}
        variables = {k: v for k, v in variables.items() if k not in self.fixed}
        named = {self.source.choices[f] for f in fields}
        returned = {f: v for f, v in fields.items() if not self.source.choices[f]}
        out = self.source.call(inputs, {k: v for k, v in variables.items() if k in named or
                                        k not in fields}, returned)  # fmt: skip
        if out is None or any(not eval(t, {}, {**inputs, "result": out}) for t in self.require):
            return None
        return out

    def fields(self, inputs: Row, pins: Row, classes: Row) -> dict[str, Any]:
        """What the pinned classes make of their fields."""
        out: dict[str, Any] = {}
        for partition in self.partitions:
            if partition.name not in classes:
                continue
            wanted = classes[partition.name]
            others = {k: v for k, v in classes.items() if k != partition.name}
            base = self.fields(inputs, pins, others)
            own = self.kept(inputs, pins, others)
            if own is not None and key(partition.of(own)) == key(wanted):
                out.update({f: own[f] for f in partition.fields})
                continue
            members = [
                dict(zip(partition.fields, m, strict=True)) for m in partition.members(wanted)
            ]
            legal = [
                m for m in members if self.keeps(self.run(inputs, pins, {**base, **m}), classes)
            ]
            out.update((legal or members)[0])
        return out

    def keeps(self, choice: Row | None, classes: Row) -> bool:
        """Whether a choice is in the committed classes."""
        return choice is not None and all(
            key(p.of(choice)) == key(classes[p.name]) for p in self.partitions if p.name in classes
        )

    def kept(self, inputs: Row, pins: Row, classes: Row) -> dict[str, Any] | None:
        """Reading (a): with pins and classes; None if a guard fails or a class is left."""
        out = self.run(inputs, pins, self.fields(inputs, pins, classes))
        return out if self.keeps(out, classes) else None

    def legal(self, inputs: Row, pins: Row, classes: Row) -> dict[str, Any] | None:
        """What is chosen; None if either reading breaks a guard."""
        out = self.kept(inputs, pins, classes)
        if out is None or self.run(inputs, {}, {f: v for f, v in out.items()
                                               if self.roles[f] != "aux"}) is None:  # fmt: skip
            return None
        return out

    def protected(self, choice: Row) -> Any:
        """What may follow the request alone."""
        loose = {f for p in self.partitions for f in p.fields}
        plain = {k: v for k, v in choice.items() if self.roles[k] == "bits" and k not in loose}
        return key([*plain.items(), *[(p.name, p.of(choice)) for p in self.partitions]])
