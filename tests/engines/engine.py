"""Runs functions of an engine from their own text, without importing the engine.

A module's statements run one by one, each when the first name that it binds is asked for. What the
facts file states of calls and attributes takes their place in the text; everything else that the
engine defines runs as it is written.
"""

from __future__ import annotations

import ast
import builtins
import copy
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

from tests.engines.asked import Asked
from tests.engines.overwrite import Overwriter
from tests.engines.stubs import (
    PACKAGES,
    REAL,
    Environment,
    Member,
    Stub,
    Unstated,
    corpus_file,
    libraries,
    value_of,
)

Prepared = dict[tuple[type, str, ast.stmt], tuple[CodeType, list[str]]]
"""What the statements of modules are under one facts file, those without a pin."""
MEMBER = re.compile(r"([a-z_]\w*\.)*[A-Z]\w*(\.\w+)+")


@cache
def parsed(path: Path) -> ast.Module:
    """A module's syntax tree; shared, never changed."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def bindings(path: Path) -> dict[str, list[ast.stmt]]:
    """The top-level statements that bind each name of a module."""
    out: dict[str, list[ast.stmt]] = {}
    for statement in parsed(path).body:
        for name in dict.fromkeys(_binds(statement)):
            out.setdefault(name, []).append(statement)
    return out


@cache
def _functions(statement: ast.stmt) -> frozenset[str]:
    """The names that pins may know the functions of a top-level statement by."""
    head = f"{statement.name}." if isinstance(statement, ast.ClassDef) else ""
    names = [n.name for n in ast.walk(statement) if isinstance(n, ast.FunctionDef)]
    return frozenset([*names, *(head + n for n in names)])


def _binds(statement: ast.AST) -> list[str]:
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [statement.name]
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return [a.asname or a.name.split(".")[0] for a in statement.names]
    out = (
        [statement.id]
        if isinstance(statement, ast.Name) and isinstance(statement.ctx, ast.Store)
        else []
    )
    for child in ast.iter_child_nodes(statement):
        if not isinstance(
            child, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
        ):
            out += _binds(child)
    return out


def _class_level(statement: ast.AST, inside: bool = False) -> list[str]:
    """The names that class bodies in a statement read while they run."""
    inside = inside or isinstance(statement, ast.ClassDef)
    if isinstance(statement, ast.Name):
        return [statement.id] if inside and isinstance(statement.ctx, ast.Load) else []
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
        parts = [*statement.decorator_list, *statement.args.defaults, *statement.args.kw_defaults]
        return [n for p in parts if p is not None for n in _class_level(p, inside)]
    if isinstance(statement, ast.Lambda):
        return []
    return [n for child in ast.iter_child_nodes(statement) for n in _class_level(child, inside)]


class Module:
    """One module of the engine: its names, filled on demand."""

    def __init__(self, engine: Engine, name: str, path: Path) -> None:
        self._engine, self._name, self._path = engine, name, path
        self._names = Names(self)

    def __getattr__(self, name: str) -> Any:
        try:
            return self._names[name]
        except KeyError:
            pass
        if corpus_file(self._engine.corpus, f"{self._name}.{name}") is not None:
            return self._engine.module(f"{self._name}.{name}")
        if name != "__getattr__" and "__getattr__" in bindings(self._path):
            self._engine.importing += 1
            try:
                return self._names["__getattr__"](name)
            except Unstated:
                return Stub(f"{self._name}.{name}")
            finally:
                self._engine.importing -= 1
        raise AttributeError(f"{self._name}.{name}")


class Names(dict[str, Any]):
    """A module's globals."""

    def __init__(self, module: Module) -> None:
        super().__init__()
        self.module = module
        self.done: set[int] = set()
        engine = module._engine
        self.update(
            __builtins__={**vars(builtins), "__import__": engine.importer(module._name)},
            __name__="tests.engines.engine", __file__=str(module._path),
            __stated__=engine.stated_call, __pinned__=engine.pinned, __value__=engine.pin_value,
            __second__=lambda _, x: x, __with_field__=with_field, **engine.names(),
        )  # fmt: skip

    def __missing__(self, name: str) -> Any:
        module, engine = self.module, self.module._engine
        stated = engine.globals_of(module._name, name)
        if stated is not engine:
            self[name] = stated
            return stated
        statements = bindings(module._path).get(name)
        if not statements:
            self[name] = engine.starred(module._name, module._path, name)
            return self[name]
        for statement in statements:
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                self[name] = engine.imported(module._name, module._path, statement, name)
            elif id(statement) not in self.done:
                self.done.add(id(statement))
                engine.execute(module, statement, self)
        if not dict.__contains__(self, name):
            raise KeyError(name)
        return dict.__getitem__(self, name)


def with_field(record: Any, key: str, value: object) -> Any:
    """A copy of a record with one field, if it has it, overwritten."""
    if isinstance(record, dict):
        return type(record)({**record, key: value}) if key in record else record
    if hasattr(record, key):
        record = copy.copy(record)
        object.__setattr__(record, key, value)
    return record


def spelling(key: str) -> str:
    """A key of `functions:` as Python writes it."""
    try:
        return ast.unparse(ast.parse(key.strip(), mode="eval"))
    except SyntaxError:
        return key


class Engine:
    """The modules of the corpus under one facts file, with pins."""

    transformer: type[Facts] | None = None

    def __init__(
        self,
        corpus: Path,
        doc: Mapping[str, Any],
        entry: str,
        function: str,
        overwriter: Overwriter,
        prepared: Prepared,
    ) -> None:
        self.corpus = corpus
        self.prepared = prepared
        self.doc = doc
        self.entry = entry
        self.function = function
        self.overwriter = overwriter
        self.functions: dict[str, Any] = dict(doc.get("functions") or {})
        self.libraries = libraries(Environment(doc.get("env") or {}))
        self.modules: dict[str, Module] = {}
        self.spelled = {spelling(k): k for k in self.functions}
        self.importing = 0  # modules whose own statements run
        self.inputs: Mapping[str, Any] = {}
        self.active = {pin.name: pin for pins in overwriter.pins.values() for pin in pins}
        self.launches: list[tuple[str, dict[str, Any]]] = []
        self.asked = Asked(corpus, entry.split(".")[0])
        kinds = ("runtime", "unpinnable", *["request"] * (doc["selection"]["scope"] == "launch"))
        self.batch = {k for k, v in (doc.get("inputs") or {}).items() if v.get("kind") in kinds}

    def begin(self, inputs: Mapping[str, Any]) -> None:
        """Another run on other inputs."""
        self.inputs = inputs
        self.launches.clear()
        self.asked.begin(repr(sorted((k, v) for k, v in inputs.items() if k not in self.batch)))

    def names(self) -> dict[str, Any]:
        """What a kind of engine adds to the names of every module."""
        return {}

    # -- modules --------------------------------------------------------------------------------

    def module(self, name: str) -> Module:
        """A module of the corpus."""
        if name not in self.modules:
            path = corpus_file(self.corpus, name)
            if path is None:
                raise ImportError(name)
            self.modules[name] = Module(self, name, path)
        return self.modules[name]

    def importer(self, importing: str) -> Any:
        """`__import__` as code of one module sees it."""

        def load(
            name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
        ) -> Any:
            whole = self.absolute(importing, level, name)
            if whole.split(".")[0] not in PACKAGES:
                return self.outside(whole if fromlist else whole.split(".")[0])
            return self.module(whole if fromlist else whole.split(".")[0])

        return load

    def absolute(self, importing: str, level: int, name: str | None) -> str:
        """The dotted name that an import names."""
        if level == 0:
            return name or ""
        path = corpus_file(self.corpus, importing)
        parts = importing.split(".")
        keep = len(parts) - level + (path is not None and path.name == "__init__.py")
        return ".".join([*parts[:keep], *([name] if name else [])])

    def outside(self, name: str) -> Any:
        """A module of a library; one that the facts state as null is not there."""
        stated = self.doc.get("globals") or {}
        parts = name.split(".")
        if any(stated.get(".".join(parts[:n]), name) is None for n in range(1, len(parts) + 1)):
            raise ModuleNotFoundError(name)
        top = name.split(".")[0]
        if top in self.libraries:
            found = self.libraries[top]
            for part in name.split(".")[1:]:
                found = getattr(found, part)
            return found
        return __import__(name, fromlist=["*"]) if top in REAL else Stub(name)

    def imported(
        self, importing: str, path: Path, statement: ast.Import | ast.ImportFrom, name: str
    ) -> Any:
        """What one import statement binds to a name."""
        alias = next(a for a in statement.names if (a.asname or a.name.split(".")[0]) == name)
        if alias.name in self.libraries:
            return self.libraries[alias.name]
        if isinstance(statement, ast.Import):
            whole = alias.name if alias.asname else alias.name.split(".")[0]
            return self.module(whole) if whole.split(".")[0] in PACKAGES else self.outside(whole)
        base = self.absolute(importing, statement.level, statement.module)
        if base.split(".")[0] not in PACKAGES:
            return getattr(self.outside(base), alias.name)
        try:
            return getattr(self.module(base), alias.name)
        except (AttributeError, ImportError, Unstated):
            whole = f"{base}.{alias.name}"  # a module of a package without a file of its own
            return (
                self.module(whole) if corpus_file(self.corpus, whole) is not None else Stub(whole)
            )

    def starred(self, importing: str, path: Path, name: str) -> Any:
        """What `from module import *` binds to a name."""
        for statement in bindings(path).get("*", ()):
            assert isinstance(statement, ast.ImportFrom)
            base = self.absolute(importing, statement.level, statement.module)
            if base.split(".")[0] in PACKAGES and not name.startswith("_"):
                with suppress(KeyError):
                    return self.module(base)._names[name]
        raise KeyError(name)

    def needed(self, statement: ast.stmt) -> ast.stmt:
        """A class without finalizers; of a long one, only what the function can reach."""
        if not isinstance(statement, ast.ClassDef):
            return statement
        body = [
            s
            for s in statement.body
            if not (isinstance(s, ast.FunctionDef) and s.name == "__del__")
        ]
        cls, _, method = self.function.partition(".")
        if cls == statement.name and method and len(body) > 60:
            wanted, todo = {method}, [method]
            while todo:
                name = todo.pop()
                for item in body:
                    if isinstance(item, ast.FunctionDef) and item.name == name:
                        read = {n.attr for n in ast.walk(item) if isinstance(n, ast.Attribute)}
                        todo += read - wanted
                        wanted |= read
            body = [s for s in body if not isinstance(s, ast.FunctionDef) or s.name in wanted]
        shorter = copy.copy(statement)
        shorter.body = body or [ast.Pass(lineno=statement.lineno, col_offset=0)]
        return shorter

    def execute(self, module: Module, statement: ast.stmt, names: Names) -> None:
        """Run one top-level statement."""
        pinned = not self.overwriter.pins.keys().isdisjoint(_functions(statement))
        key = (type(self), module._name, statement)
        code, read = (None if pinned else self.prepared.get(key)) or self.compiled(
            module, statement
        )
        if not pinned:
            self.prepared[key] = code, read
        for name in read:
            with suppress(KeyError):
                names[name]  # class bodies look into the dict itself, not for what is missing
        exec(code, names)

    def compiled(self, module: Module, statement: ast.stmt) -> tuple[CodeType, list[str]]:
        """A top-level statement with facts and pins in it, and what its class bodies read."""
        fresh = copy.deepcopy(self.needed(statement))
        Prepare(self, module, bindings(module._path)).top(fresh)
        tree = ast.fix_missing_locations(ast.Module([fresh], []))
        flags = __import__("__future__").annotations.compiler_flag
        code = compile(tree, str(module._path), "exec", flags=flags, dont_inherit=True)
        return code, _class_level(fresh)

    def globals_of(self, module: str, name: str) -> Any:
        """What `globals:` and `tables:` state of a module's name; the engine itself if nothing."""
        stated = self.doc.get("globals") or {}
        keys = [f"{module}.{name}"] + [name] * (module == self.entry)
        for key in keys:
            if key in stated:
                return value_of(stated[key], self.member)
        return self

    def member(self, text: str) -> Any:
        """`Class.MEMBER` of the entry module, if there is one; a class for `class module:Class`."""
        if text.startswith("class "):
            home, _, cls = text.removeprefix("class ").rpartition(":")
            return self.module(home)._names[cls]
        if not MEMBER.fullmatch(text):
            return None
        head, *rest = text.split(".")
        if head.islower():
            parts = text.split(".")
            end = next(
                (
                    i
                    for i in range(len(parts), 0, -1)
                    if corpus_file(self.corpus, ".".join(parts[:i])) is not None
                ),
                0,
            )
            return self.enum_member(Member(".".join(parts[:-1]), parts[-1])) if end else None
        stated = [
            str(o.get("class")).rpartition(":")[0] for o in (self.doc.get("objects") or {}).values()
        ]
        for place in (self.entry, *stated):
            try:
                found = self.module(place)._names[head]
                for part in rest:
                    found = getattr(found, part)
            except (KeyError, AttributeError, ImportError):
                continue
            return found
        return None

    # -- what facts state of calls --------------------------------------------------------------

    def stated_call(
        self,
        key: str,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
        site: tuple[int, int] = (0, 0),
        callee: Callable[[], Any] | None = None,
        dotted: str | None = None,
    ) -> Any:
        """The result of a call that the facts state."""
        if callee is not None and not self.active:
            self.asked.note(key, site, (args, kwargs or {}), callee, dotted)
        fact = self.functions[key]
        if isinstance(fact, Mapping):
            if "value" in fact:
                return value_of(fact["value"], self.member)
            if "kind" in fact:
                return self.inputs[f"{key}()"]
            for row in fact["table"]:
                if tuple(value_of(row[:-1], self.member)) == args:
                    return value_of(row[-1], self.member)
            raise KeyError(args)
        return value_of(fact, self.member)

    # -- pins -----------------------------------------------------------------------------------

    def pinned(self, name: str) -> bool:
        """Whether the code that asks runs for the call that the pin names."""
        lines = self.active[name].lines
        if not lines:
            return True
        frame = sys._getframe(1)
        inside = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>", "<lambda>")
        while frame.f_code.co_name in inside:
            assert frame.f_back is not None
            frame = frame.f_back
        for line in lines:
            back = frame.f_back
            while back is not None and (
                not isinstance(back.f_globals, Names) or back.f_code.co_name in inside
            ):
                back = back.f_back
            if back is None or back.f_lineno != line:
                return False
            frame = back
        return True

    def pin_value(self, name: str) -> Any:
        """What a pin is set to."""
        return self.enum_member(self.active[name].value)

    def enum_member(self, value: Any) -> Any:
        """A pin's value, Enum members looked up."""
        if isinstance(value, tuple):
            return tuple(self.enum_member(v) for v in value)
        if not isinstance(value, Member):
            return value
        parts = value.path.split(".")
        end = next(
            i
            for i in range(len(parts), 0, -1)
            if corpus_file(self.corpus, ".".join(parts[:i])) is not None
        )
        found: Any = self.module(".".join(parts[:end]))
        for part in [*parts[end:], value.name]:
            found = getattr(found, part)
        return found


class Prepare:
    """Puts stated calls and pins into a copy of a statement."""

    def __init__(self, engine: Engine, module: Module, bound: Mapping[str, list[ast.stmt]]) -> None:
        self.engine, self.module, self.bound = engine, module, bound

    def top(self, statement: ast.stmt) -> None:
        """Prepare a top-level statement in place."""
        if isinstance(statement, ast.ClassDef):
            for item in statement.body:
                self.definition(item, f"{statement.name}.")
        else:
            self.definition(statement, "")
        transformer = self.engine.transformer or Facts
        transformer(self.engine, self.module._name, self.module._path, self.bound).visit(statement)

    def definition(self, statement: ast.stmt, prefix: str) -> None:
        """Put the pins into a function and the functions in it."""
        if isinstance(statement, ast.FunctionDef):
            self.engine.overwriter.function(statement, prefix + statement.name)
            for node in ast.walk(statement):
                if isinstance(node, ast.FunctionDef):
                    node.returns = None
                    if node is not statement:
                        self.engine.overwriter.function(node, node.name)
        else:
            for node in ast.iter_child_nodes(statement):
                if isinstance(node, ast.stmt):
                    self.definition(node, prefix)


class Facts(ast.NodeTransformer):
    """Replaces what `functions:` states, by spelling or by qualified name."""

    def __init__(
        self, engine: Engine, name: str, path: Path, bound: Mapping[str, list[ast.stmt]]
    ) -> None:
        self.engine, self.name, self.path, self.bound = engine, name, path, bound
        self.local: list[dict[str, str | None]] = []

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        names: dict[str, str | None] = {}
        every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        for child in ast.walk(node):
            if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
                names[child.id] = None
            elif isinstance(child, (ast.Import, ast.ImportFrom)):
                names.update(
                    {a.asname or a.name.split(".")[0]: self.target(child, a) for a in child.names}
                )
        names.update({a.arg: None for a in every})
        self.local.append(names)
        self.generic_visit(node)
        self.local.pop()
        return node

    def target(self, statement: ast.Import | ast.ImportFrom, alias: ast.alias) -> str:
        """The dotted name that an import binds."""
        if isinstance(statement, ast.Import):
            return alias.name if alias.asname else alias.name.split(".")[0]
        return f"{self.engine.absolute(self.name, statement.level, statement.module)}.{alias.name}"

    def qualified(self, node: ast.expr) -> str | None:
        """The dotted name of a chain of attributes, through imports."""
        if isinstance(node, ast.Attribute):
            base = self.qualified(node.value)
            return None if base is None else f"{base}.{node.attr}"
        if not isinstance(node, ast.Name):
            return None
        for names in reversed(self.local):
            if node.id in names:
                return names[node.id]
        statements = self.bound.get(node.id)
        if not statements:
            return None
        for child in ast.walk(statements[-1]):
            if isinstance(child, (ast.Import, ast.ImportFrom)):
                for alias in child.names:
                    if (alias.asname or alias.name.split(".")[0]) == node.id:
                        return self.target(child, alias)
        return f"{self.name}.{node.id}"

    def key(self, node: ast.expr) -> str | None:
        """The fact that is stated of an expression."""
        if not isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)):
            return None
        found = self.engine.spelled.get(ast.unparse(node))
        if found is not None:
            return found
        name = self.qualified(node)
        return name if name is not None and name in self.engine.functions else None

    def visit_Call(self, node: ast.Call) -> ast.AST:
        key = self.key(node) or self.key(node.func)
        if key is None:
            return self.generic_visit(node)
        plain = ast.Tuple([self.visit(a) for a in node.args], ast.Load())
        named = ast.Dict(
            [None if k.arg is None else ast.Constant(k.arg) for k in node.keywords],
            [self.visit(k.value) for k in node.keywords],
        )
        parts = [ast.Constant(key), plain, named, *self.asking(node)]
        return ast.copy_location(ast.Call(ast.Name("__stated__", ast.Load()), parts, []), node)

    def asking(self, node: ast.Call) -> list[ast.expr]:
        """Where a stated call stands, what it would call, and that by its dotted name."""
        site = (ast.Constant(node.lineno), ast.Constant(node.col_offset))
        nothing = ast.arguments([], [], None, [], [], None, [])
        return [
            ast.Tuple(list(site), ast.Load()),
            ast.Lambda(nothing, copy.deepcopy(node.func)),
            ast.Constant(self.qualified(node.func)),
        ]

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        key = self.key(node) if isinstance(node.ctx, ast.Load) else None
        fact = self.engine.functions.get(key) if key is not None else None
        if key is None or fact == "opaque" or (isinstance(fact, Mapping) and "value" not in fact):
            return self.generic_visit(node)
        return ast.copy_location(
            ast.Call(ast.Name("__stated__", ast.Load()), [ast.Constant(key)], []), node
        )
