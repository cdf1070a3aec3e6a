"""A program under observation: CPython runs its text with every site noted and overwritable.

All sites are instrumented at once. A site's name depends on the call and the iteration in which it
is met; both are kept beside CPython's own stack, and the name is looked up among those the compiler
gave. Names that two different calls would answer to are set aside.
"""

from __future__ import annotations

import ast
import copy
import functools
import re
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

FAULTS: Final = (
    ArithmeticError, AssertionError, AttributeError, LookupError, NameError, RuntimeError,
    StopIteration, TypeError, ValueError,
)  # fmt: skip
_INNER: Final = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp,
    ast.GeneratorExp,
)  # fmt: skip
_NAME: Final = re.compile(r"(?P<base>.+?)(?P<turns>(?:\[\d+\])*)(?P<calls>@.*)?")


@dataclass(slots=True)
class Call:
    """One running call of an instrumented function."""

    chain: tuple[tuple[int, int, str], ...] | None  # (line, column, turns) of each call around
    turns: dict[int, int] = field(default_factory=dict)


def parts(name: str) -> tuple[str, str, str]:
    """A site's name as base, iterations and calls."""
    found = _NAME.fullmatch(name)
    assert found is not None
    return found["base"], found["turns"], found["calls"] or ""


class Observer:
    """Runs a program; `sites` are the names, with their kinds, that are noted and overwritten."""

    def __init__(self, text: str, entry: str, sites: Mapping[str, str]) -> None:
        self.sites = dict(sites)
        self.bases: dict[str, list[str]] = {}
        for name in sites:
            self.bases.setdefault(parts(name)[0], []).append(name)
        tree = _Instrument({(parts(n)[0], k) for n, k in sites.items()}).module(ast.parse(text))
        self.seen: dict[str, Any] = {}
        self.overwrites: Mapping[str, Any] = {}
        self.stack: list[Call] = []
        self.running = False
        self.pending: tuple[int, int, str] | None = None
        self.chains: dict[str, set[object]] = {}
        self.resolved: dict[object, str | None] = {}
        names = {
            "__name__": "observed", "__at__": self.at, "__enter__": self.enter,
            "__leave__": self.leave, "__call__": self.call, "__tick__": self.tick,
            "__reset__": self.reset, "__field__": self.record_field,
        }  # fmt: skip
        module = types.ModuleType("observed")
        module.__dict__.update(names)
        self.names = module.__dict__
        sys.modules["observed"] = module
        exec(compile(tree, "observed.py", "exec"), self.names)
        self.function = self.names[entry]

    # -- what the instrumented text calls ---------------------------------------------------------

    def at(self, base: str, depth: int, value: Any) -> Any:
        """A site is met."""
        name = self.resolve(base, depth) if self.running else None
        if name is None:
            return value
        if name in self.overwrites:
            value = self.overwrites[name]
        self.seen[name] = value
        return value

    def resolve(self, base: str, depth: int) -> str | None:
        """The name of the site, if it is one that is looked at."""
        here = self.stack[-1]
        turns = "".join(f"[{here.turns[k]}]" for k in range(depth))
        if here.chain is None:
            return None
        key = (base, turns, here.chain)
        if key not in self.resolved:
            self.resolved[key] = found = self._resolve(base, turns, here.chain)
            if found is not None:
                self.chains.setdefault(found, set()).add(here.chain)
        return self.resolved[key]

    def _resolve(
        self, base: str, turns: str, chain: tuple[tuple[int, int, str], ...]
    ) -> str | None:
        for columns in (False, True):
            calls = ""
            for depth in range(len(chain) + 1):
                if depth:
                    line, column, inner = chain[-depth]
                    calls += f"@L{line}" + (f"C{column}" if columns else "") + inner
                if f"{base}{turns}{calls}" in self.sites:
                    return f"{base}{turns}{calls}"
        return None

    def ambiguous(self) -> set[str]:
        """Names that several calls answer to: which of them is meant is not checked here."""
        return {name for name, chains in self.chains.items() if len(chains) > 1}

    def call(self, line: int, column: int, depth: int, function: Any) -> Any:
        """A call is about to be made."""
        if not self.running or not callable(function) or isinstance(function, type):
            return function
        here = self.stack[-1]
        turns = "".join(f"[{here.turns[k]}]" for k in range(depth))
        known = self.followed(function)

        def forward(*args: Any, **kwargs: Any) -> Any:
            self.pending = (line, column, turns) if known else None
            if known:
                return function(*args, **kwargs)
            self.stack.append(Call(None))  # who calls what in there is not followed
            try:
                return function(*args, **kwargs)
            finally:
                self.stack.pop()

        return forward

    def followed(self, function: Any) -> bool:
        """Whether a callable starts an instrumented function at once."""
        while isinstance(function, functools.partial):
            function = function.func
        function = getattr(function, "__func__", getattr(function, "__wrapped__", function))
        code = getattr(function, "__code__", None)
        return code is not None and code.co_filename == "observed.py" and code.co_name != "<lambda>"

    def enter(self) -> None:
        """An instrumented function starts."""
        chain: tuple[tuple[int, int, str], ...] | None = () if self.running else None
        if self.stack:
            around = self.stack[-1].chain
            chain = None if self.pending is None or around is None else (*around, self.pending)
        self.stack.append(Call(chain))
        self.pending = None

    def leave(self) -> None:
        """It ends."""
        self.stack.pop()

    def reset(self, depth: int) -> None:
        """A loop starts."""
        self.stack[-1].turns[depth] = -1

    def tick(self, depth: int) -> bool:
        """A loop starts an iteration."""
        self.stack[-1].turns[depth] += 1
        return True

    def record_field(self, base: str, depth: int, record: Any) -> Any:
        """A record is returned by name: its fields are sites; other names do not see them."""
        for name in self.bases:
            if name.startswith(base + ".") and name.count(".") == base.count(".") + 1:
                key = name[len(base) + 1 :]
                if isinstance(record, dict) and key in record:
                    record = {**record, key: self.at(name, depth, record[key])}
                elif hasattr(record, "__dict__") and hasattr(record, key):
                    record = copy.copy(record)
                    setattr(record, key, self.at(name, depth, getattr(record, key)))
        return record

    # -- running ------------------------------------------------------------------------------------

    def run(
        self,
        arguments: Mapping[str, Any],
        overwrites: Mapping[str, Any],
        finish: Callable[[Any], Any],
    ) -> Any:
        """What `finish` makes of the result; None if the program raises. `finish` may raise."""
        self.seen, self.overwrites = {}, overwrites
        self.stack, self.pending, self.running = [], None, True
        for cached in self.names.values():
            if hasattr(cached, "cache_clear"):
                cached.cache_clear()
        try:
            return finish(self.function(**arguments))
        except FAULTS:
            return None
        finally:
            self.running = False


class _Instrument:
    """Rewrites a module."""

    def __init__(self, wanted: set[tuple[str, str]]) -> None:
        self.wanted = {base for base, _ in wanted}
        self.kinds = dict(wanted)

    def module(self, tree: ast.Module) -> ast.Module:
        """Every function of a module, also methods."""
        for statement in tree.body:
            if isinstance(statement, ast.FunctionDef):
                _Function(self, statement.name).run(statement)
            elif isinstance(statement, ast.ClassDef):
                for item in statement.body:
                    if isinstance(item, ast.FunctionDef):
                        _Function(self, f"{statement.name}.{item.name}").run(item)
        return ast.fix_missing_locations(tree)


def stored(statement: ast.AST) -> list[str]:
    """The names that a statement binds in its own function."""
    out: list[str] = []
    todo = [statement]
    while todo:
        node = todo.pop(0)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id not in out:
            out.append(node.id)
        if not isinstance(node, _INNER):
            todo += ast.iter_child_nodes(node)
    return out


def position(node: ast.expr) -> str:
    """`L3C9-17`, or `L3C9-L4C5` over several lines."""
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    end = f"{node.end_col_offset + 1}"
    if node.end_lineno != node.lineno:
        end = f"L{node.end_lineno}C{end}"
    return f"L{node.lineno}C{node.col_offset + 1}-{end}"


class _Function:
    """Rewrites one function."""

    def __init__(self, module: _Instrument, name: str) -> None:
        self.module = module
        self.name = name
        self.counts: dict[str, int] = {}
        self.joins: dict[int, list[str]] = {}
        self.totals: dict[str, int] = {}

    def run(self, node: ast.FunctionDef) -> None:
        """Rewrite the body in place."""
        body = node.body
        names = list(dict.fromkeys(n for s in body for n in stored(s)))
        for name in names:
            self.place(body, name)
        arguments = node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        node.body = self.block(body, 0)
        heads = [
            ast.parse(f"{a.arg} = __at__({self.name + '.' + a.arg!r}, 0, {a.arg})").body[0]
            for a in every
            if a.arg not in names and self.module.kinds.get(f"{self.name}.{a.arg}") == "parameter"
        ]
        outer = [s for s in node.body if isinstance(s, (ast.Global, ast.Nonlocal))]
        rest = [s for s in node.body if not isinstance(s, (ast.Global, ast.Nonlocal))]
        guarded = ast.parse("__enter__()\ntry:\n    pass\nfinally:\n    __leave__()").body
        assert isinstance(guarded[1], ast.Try)
        guarded[1].body = [*heads, *(rest or [ast.Pass()])]
        node.body = [*outer, *guarded]

    def place(self, body: list[ast.stmt], name: str) -> None:
        """Where the join of a variable's definitions is overwritten."""
        having = [s for s in body if name in stored(s)]
        for statement in having:
            last = statement is having[-1]
            leaves = any(isinstance(n, ast.Return) for n in ast.walk(statement))
            if (last or leaves) and isinstance(statement, (ast.If, ast.Try, ast.With)):
                for part in ("body", "orelse", "finalbody"):
                    self.place(getattr(statement, part, []), name)
                for handler in getattr(statement, "handlers", []):
                    self.place(handler.body, name)
            if last:
                self.joins.setdefault(id(statement), []).append(name)

    def block(self, body: list[ast.stmt], depth: int) -> list[ast.stmt]:
        """A list of statements, rewritten."""
        out: list[ast.stmt] = []
        for statement in body:
            names = stored(statement)
            joined = self.joins.get(id(statement), [])
            plain = isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign))
            numbered = []
            if plain:
                for name in names:
                    self.counts[name] = self.counts.get(name, 0) + 1
                    numbered.append((name, f"{self.name}.{name}#{self.counts[name]}"))
            out += self.statement(statement, depth)
            for name, base in numbered:
                out += self.noted(name, base, depth)
            for name in joined:
                out += self.noted(name, f"{self.name}.{name}", depth)
        return out

    def noted(self, name: str, base: str, depth: int) -> list[ast.stmt]:
        """A variable's value is noted, if it has one."""
        if base not in self.module.wanted:
            return []
        text = f"try:\n    {name} = __at__({base!r}, {depth}, {name})\nexcept NameError:\n    pass"
        return ast.parse(text).body

    def statement(self, s: ast.stmt, depth: int) -> list[ast.stmt]:
        """One statement, with what goes before it."""
        if isinstance(s, ast.FunctionDef):
            _Function(self.module, s.name).run(s)
            return [s]
        if isinstance(s, (ast.For, ast.While)):
            return self.loop(s, depth)
        for name, value in ast.iter_fields(s):
            if isinstance(value, ast.expr):
                setattr(s, name, self.expression(value, depth))
            elif name in ("body", "orelse", "finalbody"):
                setattr(s, name, self.block(value, depth))
            elif name == "handlers":
                for handler in value:
                    handler.body = self.block(handler.body, depth)
            elif isinstance(value, list):
                setattr(
                    s,
                    name,
                    [self.expression(v, depth) if isinstance(v, ast.expr) else v for v in value],
                )
        if isinstance(s, ast.With):
            for item in s.items:
                item.context_expr = self.expression(item.context_expr, depth)
        if isinstance(s, ast.Return):
            self.returned(s, depth)
        return [s]

    def returned(self, s: ast.Return, depth: int) -> None:
        """The returned value and, where it is named, its fields."""
        value = s.value or ast.Constant(None)
        if isinstance(value, ast.Name):
            base = f"{self.name}.{value.id}"
            value = _wrapped("__field__", base, depth, value)
        if self.module.kinds.get(f"{self.name}.return") == "return":
            value = _wrapped("__at__", f"{self.name}.return", 0, value)
        s.value = value

    def loop(self, s: ast.For | ast.While, depth: int) -> list[ast.stmt]:
        """A loop: its iterations are counted."""
        before = ast.parse(f"__reset__({depth})").body
        if isinstance(s, ast.For):
            s.iter = self.expression(s.iter, depth)
            s.body = [*ast.parse(f"__tick__({depth})").body, *self.block(s.body, depth + 1)]
        else:
            test = self.expression(s.test, depth + 1)
            tick = ast.parse(f"__tick__({depth})", mode="eval").body
            s.test = ast.BoolOp(ast.And(), [tick, test])
            s.body = self.block(s.body, depth + 1)
        s.orelse = self.block(s.orelse, depth)
        return [*before, s]

    def expression(self, e: ast.expr, depth: int) -> ast.expr:
        """An expression with its parts; those of lambdas and comprehensions have no sites."""
        if isinstance(getattr(e, "ctx", None), (ast.Store, ast.Del)):
            if isinstance(e, (ast.Subscript, ast.Attribute)):
                e.value = self.expression(e.value, depth)
            if isinstance(e, ast.Subscript):
                e.slice = self.expression(e.slice, depth)
            return e
        if isinstance(e, (ast.Lambda, ast.JoinedStr)):
            return e
        base = f"{self.name}.{position(e)}"
        if isinstance(e, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            first = e.generators[0]
            first.iter = self.expression(first.iter, depth)
        else:
            for name, value in ast.iter_fields(e):
                if isinstance(value, ast.expr):
                    setattr(e, name, self.expression(value, depth))
                elif isinstance(value, list):
                    setattr(e, name, [self.part(v, depth) for v in value])
        out: ast.expr = e
        if isinstance(e, ast.Call):
            e.func = ast.Call(
                ast.Name("__call__", ast.Load()),
                [
                    ast.Constant(e.lineno),
                    ast.Constant(e.col_offset + 1),
                    ast.Constant(depth),
                    e.func,
                ],
                [],
            )
        if base in self.module.wanted:
            out = _wrapped("__at__", base, depth, e)
        return out

    def part(self, v: Any, depth: int) -> Any:
        """An element of a list inside an expression."""
        if isinstance(v, ast.keyword):
            v.value = self.expression(v.value, depth)
            return v
        return self.expression(v, depth) if isinstance(v, ast.expr) else v


def _wrapped(function: str, base: str, depth: int, e: ast.expr) -> ast.expr:
    return ast.Call(
        ast.Name(function, ast.Load()), [ast.Constant(base), ast.Constant(depth), e], []
    )
