"""Modules as they are met: functions, classes, imports and constants, found without importing.

A module is read once and by text alone. Names are followed through imports and re-exports; what
lies outside the package of the linted file is not looked for.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from selc.diag.source_text import decode
from selc.lint.values import dotted

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
_DEPTH = 6


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """One function or method."""

    module: Module
    qualname: str
    node: FunctionNode
    owner: Class | None = None

    @property
    def is_method(self) -> bool:
        """Whether the first parameter is the object."""
        return self.owner is not None and not any(
            dotted(mark) == "staticmethod" for mark in self.node.decorator_list
        )

    @property
    def parameters(self) -> list[ast.arg]:
        """Every parameter that a call can name, in order, without the object."""
        arguments = self.node.args
        listed = [*arguments.posonlyargs, *arguments.args]
        return [*(listed[1:] if self.is_method else listed), *arguments.kwonlyargs]


@dataclass(frozen=True, slots=True, eq=False)
class Class:
    """One class."""

    module: Module
    name: str
    node: ast.ClassDef
    methods: dict[str, Function] = field(default_factory=dict)

    def bases(self, index: Index) -> Iterator[Class]:
        """Base classes that are found."""
        for base in self.node.bases:
            found = index.resolve(self.module, dotted(base))
            if isinstance(found, Class) and found is not self:
                yield found

    def method(self, index: Index, name: str, depth: int = _DEPTH) -> Function | None:
        """A method of this class or of the nearest base that has it."""
        if name in self.methods:
            return self.methods[name]
        if depth:
            for base in self.bases(index):
                found = base.method(index, name, depth - 1)
                if found is not None:
                    return found
        return None


class Module:
    """One source file."""

    def __init__(self, path: Path, shown: str, name: str, text: str) -> None:
        self.path = path
        self.shown = shown
        self.name = name
        self.text = text
        self.functions: dict[str, Function] = {}
        self.classes: dict[str, Class] = {}
        self.imports: dict[str, str] = {}
        self.constants: dict[str, ast.expr] = {}
        self.tree = ast.parse(text)
        self._collect(self.tree.body, None)

    @cached_property
    def lines(self) -> list[str]:
        """The text in lines."""
        return self.text.split("\n")

    @property
    def package(self) -> str:
        """What relative imports start from."""
        return self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]

    def all_functions(self) -> Iterator[Function]:
        """Functions and methods in source order, none that is nested in another."""
        yield from self.functions.values()
        for each in self.classes.values():
            yield from each.methods.values()

    def line(self, number: int) -> str:
        """One line, without its indentation."""
        return self.lines[number - 1].strip() if 0 < number <= len(self.lines) else ""

    def _collect(self, body: list[ast.stmt], owner: Class | None) -> None:
        for node in body:
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    self._function(node, owner)
                case ast.ClassDef() if owner is None:
                    each = self.classes.setdefault(node.name, Class(self, node.name, node))
                    self._collect(node.body, each)
                case ast.Import() | ast.ImportFrom():
                    self.imports.update(imported(node, self.package))
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self.constants.setdefault(name, value)
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    self.constants.setdefault(name, value)
                case ast.If(body=inner, orelse=other):
                    self._collect([*inner, *other], owner)
                case ast.Try(body=inner, handlers=handlers, orelse=other):
                    caught = [each for handler in handlers for each in handler.body]
                    self._collect([*inner, *caught, *other], owner)
                case ast.With(body=inner):
                    self._collect(inner, owner)
                case _:
                    pass

    def _function(self, node: FunctionNode, owner: Class | None) -> None:
        if owner is None:
            name = node.name if node.name not in self.functions else f"{node.name}@{node.lineno}"
            self.functions[name] = Function(self, node.name, node)
        else:
            name = node.name if node.name not in owner.methods else f"{node.name}@{node.lineno}"
            owner.methods[name] = Function(self, f"{owner.name}.{node.name}", node, owner)


def imported(node: ast.Import | ast.ImportFrom, package: str) -> Iterator[tuple[str, str]]:
    """Local names and what they stand for."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield (
                alias.asname or alias.name.split(".")[0],
                (alias.name if alias.asname else alias.name.split(".")[0]),
            )
        return
    base = node.module or ""
    if node.level:
        parts = package.split(".")
        parts = parts[: len(parts) - node.level + 1]
        base = ".".join([*parts, *([node.module] if node.module else [])])
    for alias in node.names:
        yield alias.asname or alias.name, f"{base}.{alias.name}"


class Index:
    """Modules by path and by dotted name; remembers every file that was looked at."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._by_path: dict[Path, Module | None] = {}
        self._found: dict[tuple[str, str], Function | Class | Module | None] = {}
        self.looked: set[Path] = set()

    def module(self, path: Path, text: str | None = None) -> Module | None:
        """The module of a file; None if it cannot be read or parsed."""
        self.looked.add(path)
        if path not in self._by_path:
            try:
                source = decode(path.read_bytes()) if text is None else text
                self._by_path[path] = Module(path, self.shown(path), module_name(path), source)
            except (OSError, SyntaxError, ValueError, RecursionError):
                self._by_path[path] = None
        return self._by_path[path]

    def shown(self, path: Path) -> str:
        """The path as reports name it: relative to the project, with forward slashes."""
        try:
            return path.relative_to(self.root).as_posix()
        except ValueError:
            return path.as_posix()

    def resolve(self, module: Module, name: str) -> Function | Class | Module | None:
        """What a dotted name stands for in a module, if it is in the same package."""
        key = (module.shown, name)
        if key not in self._found:
            self._found[key] = None  # a name that is defined by itself
            self._found[key] = self._resolve(module, name, _DEPTH)
        found = self._found[key]
        if found is not None:
            self.looked.add(found.path if isinstance(found, Module) else found.module.path)
        return found

    def by_name(self, module: Module, name: str) -> Function | Class | Module | None:
        """What an absolute dotted name stands for, seen from a module."""
        return self._absolute(module, name, _DEPTH)

    def _resolve(self, module: Module, name: str, depth: int) -> Function | Class | Module | None:
        head, _, rest = name.partition(".")
        found: Function | Class | Module | None = None
        if head in module.functions:
            found = module.functions[head]
        elif head in module.classes:
            found = module.classes[head]
        elif head in module.imports and depth:
            whole = module.imports[head]
            return self._absolute(module, f"{whole}.{rest}" if rest else whole, depth - 1)
        if not rest:
            return found
        if isinstance(found, Class) and "." not in rest:
            return found.method(self, rest)
        return None

    def _absolute(self, origin: Module, name: str, depth: int) -> Function | Class | Module | None:
        top = name.partition(".")[0]
        alone = "." not in origin.name  # a file that is in no package sees its neighbours
        if not depth or not (alone or top == origin.name.partition(".")[0]):
            return None
        base = _package_root(origin)
        parts = name.split(".")
        for cut in range(len(parts), 0, -1):
            found = self._file(base.joinpath(*parts[:cut]))
            if found is None:
                continue
            module = self.module(found)
            rest = ".".join(parts[cut:])
            if module is None or (module is origin and not rest):
                return module
            return self._resolve(module, rest, depth) if rest else module
        return None

    @staticmethod
    def _file(stem: Path) -> Path | None:
        for path in (stem / "__init__.py", stem.with_name(f"{stem.name}.py")):
            if path.is_file():
                return path
        return None


def _package_root(module: Module) -> Path:
    """The folder that the dotted name of a module starts in."""
    path = module.path.parent if module.path.name == "__init__.py" else module.path
    for _ in module.name.split("."):
        path = path.parent
    return path


def module_name(path: Path) -> str:
    """The dotted name of a file, by the packages around it."""
    parts = [] if path.name == "__init__.py" else [path.stem]
    folder = path.parent
    while (folder / "__init__.py").is_file() and folder.name.isidentifier():
        parts.append(folder.name)
        folder = folder.parent
    if not (folder / "__init__.py").is_file() and folder.name.isidentifier() and len(parts) > 0:
        # A namespace package inside a package: folders without __init__.py below one that has it.
        above, names = folder, list[str]()
        for _ in range(4):
            names.append(above.name)
            above = above.parent
            if (above / "__init__.py").is_file():
                while (above / "__init__.py").is_file() and above.name.isidentifier():
                    names.append(above.name)
                    above = above.parent
                parts += names
                break
    return ".".join(reversed(parts)) or path.stem
